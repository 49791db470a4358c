"""A Hugging Face folder as tokenizer and head."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypedDict

import torch

from bioptimus_jax.errors import ConfigError, InputError, pickled_code
from bioptimus_jax.finetuning import adapters
from bioptimus_jax.finetuning.config import JAX, Finetune
from bioptimus_jax.finetuning.heads import Head
from bioptimus_jax.finetuning.stability import draw, freeze, reinitialise, remove_layers
from bioptimus_jax.finetuning.task import Task
from bioptimus_jax.model.folder import config_values, is_finetuned
from bioptimus_jax.model.weights import refuse_wrapped, weight_files
from bioptimus_jax.vocab.agreement import load_for_words, said_by

CANNOT = 'cannot be loaded by transformers ({})'


def load_head(
    task: Task, folder: Path, labels: Sequence[str], settings: Finetune, seed: int
) -> tuple[Any, Head]:
    """Tokenizer and head of a Hugging Face folder, on the GPU if there is one; only what is above the encoder is new.

    The head of a folder that was fine-tuned is drawn again, whatever labels it had: it knows another task.
    With `settings.encoder` jax the head is on the CPU, and its encoder beyond a bridge (`finetuning.bridge`).
    transformers initialises whatever weight is missing at random without raising, so this checks.
    Raises InputError naming folder and weights, ConfigError where windows or layers do not fit.
    """
    import transformers
    from transformers.utils import logging

    os.environ['TOKENIZERS_PARALLELISM'] = 'false'
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    finetuned = is_finetuned(folder)
    tokenizer = load_for_words(folder)
    try:
        config = transformers.AutoConfig.from_pretrained(
            folder, trust_remote_code=False, local_files_only=True
        )
        _set_dropout(config, settings.dropout)
        config.id2label = dict(enumerate(labels))
        config.label2id = {label: i for i, label in enumerate(labels)}
        remove_layers(config, settings, folder)
        # Loading draws the weights that the folder lacks.
        torch.manual_seed(seed)
        model, info = load_weights(folder, task.hf_class, config=config, ignore_mismatched_sizes=finetuned)
    except (ConfigError, InputError):  # they say what is wrong already
        raise
    except Exception as error:  # what a folder holds can lead transformers to any of them
        raise InputError(f'{folder}: {CANNOT.format(said_by(error))}') from error
    _check_weights(folder, model, info)
    if finetuned and model.base_model is not model:
        # A pooler is above the encoder, too: it has learned what the head read.
        above = [module for module in model.children() if module is not model.base_model]
        pooler = getattr(model.base_model, 'pooler', None)
        torch.manual_seed(seed + 1)  # other numbers than those of what the folder lacked
        draw([*above, *([pooler] if isinstance(pooler, torch.nn.Module) else [])], model)
    check_embedding_rows(folder, tokenizer, model)
    limit = min(tokenizer.model_max_length, positions_of(model, settings.max_pieces))
    check_positions(settings, limit, folder)
    bridged = settings.encoder == JAX
    device = 'cpu' if bridged else device_here()
    # What is new is drawn on the CPU, and so the same with and without a GPU.
    head = task.head(model, labels, settings, 'float32' if bridged else computing_dtype(settings, device))
    if settings.lora:
        head.adapter = adapters.put_on(head, settings.lora)
    if settings.reinit_layers:
        reinitialise(head, settings.reinit_layers)
    if settings.freeze_layers:
        freeze(head, settings.freeze_layers)
    if bridged:
        from bioptimus_jax.finetuning.bridge import cross, devices_here

        head.bridge = cross(
            head, folder, settings, seed, computing_dtype(settings, devices_here()[0].platform)
        )
    return tokenizer, head.to(device)


class LoadingInfo(TypedDict):
    """What transformers says of the tensors of a folder that it loaded."""

    missing_keys: set[str]
    unexpected_keys: set[str]
    mismatched_keys: set[Any]


def load_weights(
    folder: Path, hf_class: Any, refused: str = CANNOT, **options: Any
) -> tuple[Any, LoadingInfo]:
    """A folder's model by a class of transformers, and what is missing or of another shape; in float32, if not said.

    Nothing is downloaded, and no code of the folder is run. Raises InputError; `refused` says what for a reason.
    """
    import transformers

    config_values(folder)
    weight_files(folder)  # raises for what is in the place of a file
    kind = getattr(transformers, hf_class) if isinstance(hf_class, str) else hf_class
    try:
        model, info = kind.from_pretrained(
            folder,
            output_loading_info=True,
            weights_only=True,
            trust_remote_code=False,
            local_files_only=True,
            **{'dtype': torch.float32, **options},
        )
    except Exception as error:  # what a folder holds can lead transformers to any of them
        if flaw := pickled_code(error):
            raise InputError(f'{folder}: {flaw}') from error
        raise InputError(f'{folder}: {refused.format(said_by(error))}') from error
    tables = (
        name for name in info['missing_keys'] if name.endswith(('embeddings.weight', 'embed_tokens.weight'))
    )
    refuse_wrapped(info['unexpected_keys'], tables, folder)
    return model, info


def device_here() -> str:
    """Where models are put."""
    return 'cuda' if torch.cuda.is_available() else 'cpu'


def computing_dtype(settings: Finetune, device: str) -> str:
    """config.finetune.dtype; auto is bfloat16 on a GPU or TPU."""
    return ('float32' if device == 'cpu' else 'bfloat16') if settings.dtype == 'auto' else settings.dtype


def check_positions(settings: Finetune, limit: int, folder: Path) -> None:
    """Raise ConfigError where a window is longer than the model's positions."""
    if settings.max_pieces > limit:
        raise ConfigError(
            f'config.finetune.max_pieces: {settings.max_pieces}, but {folder} has {limit} positions; set it to '
            f'{limit} or less'
        )


def _set_dropout(config: Any, rate: float) -> None:
    """Every architecture has its own names: hidden_dropout_prob, attention_dropout, classifier_dropout ..."""
    for name, value in config.to_dict().items():
        number = isinstance(value, int | float) and not isinstance(value, bool)  # some write 0 for 0.0
        if 'dropout' in name and (value is None or number):
            setattr(config, name, rate)


def _check_weights(folder: Path, model: Any, info: LoadingInfo) -> None:
    for name, tensor in model.state_dict().items():
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise InputError(
                f'{folder}: {name} holds values that are not finite; take another checkpoint of the model'
            )
    # A pooler is above the encoder, though transformers counts it in: masked language models have none.
    inside = re.compile(rf'{model.base_model_prefix}\.(?!pooler\.)')
    missing = sorted(
        filter(inside.match, [*info['missing_keys'], *(name for name, *_ in info['mismatched_keys'])])
    )
    if missing:
        wrong = ', '.join(missing[:4])
        raise InputError(
            f'{folder}: weights are missing or have another shape: {wrong}; export the model again'
        )


def check_embedding_rows(folder: Path, tokenizer: Any, model: Any) -> None:
    """Raises InputError where the tokenizer knows ids that the table of embeddings has no row for."""
    rows = model.get_input_embeddings().num_embeddings
    largest = max(tokenizer.get_vocab().values(), default=0)
    if largest >= rows:
        raise InputError(
            f'{folder}: the tokenizer has ids up to {largest:,}, but the model has {rows:,} rows; these are not the '
            'weights of this tokenizer'
        )


def positions_of(model: Any, unlimited: int) -> int:
    """Pieces that the position table can number; RoBERTa's begins after the padding's row."""
    for name, module in model.named_modules():
        if name.endswith('position_embeddings') and isinstance(module, torch.nn.Embedding):
            return module.num_embeddings - (0 if module.padding_idx is None else module.padding_idx + 1)
    return getattr(model.config, 'max_position_embeddings', unlimited)
