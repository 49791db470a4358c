"""The tokenizer of a Hugging Face folder, ready for text that is split into words."""

from pathlib import Path
from typing import Any

from bioptimus_jax.vocab.agreement import load_in_transformers


def load_tokenizer(folder: Path) -> Any:
    """The fast tokenizer of a Hugging Face folder, which spells words as within a sentence. Raises InputError."""
    tokenizer = load_in_transformers(folder)
    if getattr(tokenizer, 'add_prefix_space', None) is False:
        # Byte-level vocabularies (RoBERTa's) spell a word otherwise unless a space precedes it.
        tokenizer = load_in_transformers(folder, add_prefix_space=True)
    return tokenizer
