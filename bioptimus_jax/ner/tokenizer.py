"""The tokenizer of a Hugging Face folder, ready for text that is split into words."""

from pathlib import Path
from typing import Any

from bioptimus_jax.errors import InputError


def load_tokenizer(folder: Path) -> Any:
    """The fast tokenizer of a Hugging Face folder, which spells words as within a sentence. Raises InputError."""
    from transformers import AutoTokenizer
    from transformers.utils import logging

    logging.set_verbosity_error()
    if not folder.is_dir():
        raise InputError(f'{folder}: no such folder; give a Hugging Face folder with a tokenizer')
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            folder, use_fast=True, trust_remote_code=False, local_files_only=True
        )
        if getattr(tokenizer, 'add_prefix_space', None) is False:
            # Byte-level vocabularies (RoBERTa's) spell a word otherwise unless a space precedes it.
            tokenizer = AutoTokenizer.from_pretrained(
                folder, use_fast=True, add_prefix_space=True, trust_remote_code=False, local_files_only=True
            )
    except Exception as error:  # what a folder holds can lead transformers to any of them
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f'{folder}: holds no tokenizer that transformers can load ({reason})') from error
    if not getattr(tokenizer, 'is_fast', False):
        raise InputError(f'{folder}: its tokenizer has no fast version, which the alignment of words needs')
    return tokenizer
