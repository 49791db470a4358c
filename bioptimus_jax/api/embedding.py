"""Vectors of texts, from Python."""

import numpy as np

from bioptimus_jax.api.bars import Bar, shown
from bioptimus_jax.api.objects import (
    PLACE,
    ModelOrFolder,
    Texts,
    TokenizerOrFolder,
    as_folder,
    loaded_from,
    texts_of,
    undisturbed,
    whole_number,
    workplace,
)
from bioptimus_jax.errors import ConfigError


def embed(
    model: ModelOrFolder,
    texts: Texts,
    *,
    tokenizer: 'TokenizerOrFolder | None' = None,
    pooling: str = '',
    dimensions: int = 0,
    max_pieces: int = 0,
    progress: bool | None = None,
) -> np.ndarray:
    """The vectors of texts, float32, a row of length 1 each: their products are cosines.

    `model`: a folder, as `config.pretrain.objective=contrastive` exports it or as sentence-transformers saves a plain
    encoder; its id on the hub; or a model of transformers with `tokenizer`. `texts`: a list, or rows of a data set with
    a column `text`; special tokens in them are text. `pooling`: mean or cls; empty: as the folder or hub id says, which
    the model is in or was loaded from, else the mean. `dimensions`: how many of the numbers are kept, from the first,
    of a model that was trained for it; 0: all. `max_pieces`: how much is read of a text, from its
    beginning; 0: as the folder says. `progress`: a bar; by default on a terminal and in a notebook.

    Raises InputError for a folder without a model of a known family, and for vectors that are made in another way;
    ConfigError for a longer vector or window than the model has.
    """
    # Late: it takes a second.
    import jax

    from bioptimus_jax.analysis.sentence_vectors import text_vectors
    from bioptimus_jax.model.loaded import load_model
    from bioptimus_jax.model.pooling import FEWEST, MODULES, POOLINGS, USUAL, longest_in, pooling_in

    longest, size, show = (
        whole_number('max_pieces', max_pieces, 0),
        whole_number('dimensions', dimensions, 0),
        shown(progress),
    )
    if 0 < longest < FEWEST:
        raise ConfigError(f'max_pieces: {longest} leaves no piece of a text; give {FEWEST} or more, or 0')
    if pooling and pooling not in POOLINGS:
        raise ConfigError(f'pooling: {pooling!r} is not one of {", ".join(POOLINGS)}')
    given = list(texts_of(texts))
    # Accelerators would round to bfloat16 or TF32.
    exact = jax.default_matmul_precision('highest')
    with workplace() as place, undisturbed(), exact, Bar(show) as bar:
        folder = as_folder(place / 'model', model, tokenizer)
        loaded = load_model(folder)
        told = isinstance(model, PLACE) or (pooling and longest)
        said = folder if told else loaded_from(model, MODULES) or folder
        positions, hidden = loaded.architecture.positions, loaded.architecture.hidden
        if longest > positions:
            raise ConfigError(f'max_pieces: {longest}, but {folder} has {positions} positions')
        if size > hidden:
            raise ConfigError(f'dimensions: {size}, but vectors of {folder} have {hidden} numbers')
        done = 0

        def on_texts(count: int) -> None:
            nonlocal done
            done += count
            bar.at('embed', done, len(given), 'texts')

        vectors_NxD = text_vectors(
            given,
            loaded.subwords,
            loaded.architecture,
            loaded.encoder,
            on_texts,
            pooling or pooling_in(said) or USUAL,
            longest or min(longest_in(said) or positions, positions),
            size or None,
        )
    return vectors_NxD.astype(np.float32)
