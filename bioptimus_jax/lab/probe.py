"""`bioptimus surgery --probe`: which initialisation rebuilds rows that are known? No training, some minutes.

A seeded choice of tokens that the source has is hidden from its vocabulary: its tokenizer then spells them in other
pieces, as it does new tokens. Their rows are rebuilt by every strategy and variant and compared with the true ones.
"""

import dataclasses
import functools
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bioptimus_jax.corpus.documents import open_documents
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.hosts.devices import present
from bioptimus_jax.lab.costs import Costs
from bioptimus_jax.model.loaded import Loaded
from bioptimus_jax.model.trees import flatten, unflatten
from bioptimus_jax.progress.console import Console, clock
from bioptimus_jax.records.probe import HiddenToken, LikenessOfTokens, Probe, ProbedRows
from bioptimus_jax.run.folder import Run
from bioptimus_jax.storage.files import write_json
from bioptimus_jax.surgery import donor, fit, recovery
from bioptimus_jax.surgery.bias import token_counts
from bioptimus_jax.surgery.config import PAPER_ROWS, HasSurgery, Surgery
from bioptimus_jax.surgery.donor import Donated
from bioptimus_jax.surgery.graft import rows_fit
from bioptimus_jax.surgery.initialisations import INITIALISATIONS, MAPS, middle
from bioptimus_jax.surgery.material import Material, gather
from bioptimus_jax.surgery.rows import seeded
from bioptimus_jax.surgery.source import computing, load_source, watched
from bioptimus_jax.surgery.spelling import likeness, with_borders
from bioptimus_jax.surgery.synthesis import make, summing
from bioptimus_jax.tokenizer.subwords import Subwords
from bioptimus_jax.tokenizer.subwords import load as load_subwords
from bioptimus_jax.vocab.contexts import TokenContexts, sample_contexts

FILE = 'probe.json'
PAPER = Surgery(**PAPER_ROWS)
MOST_DOCUMENTS = 50_000  # searched for contexts: minutes, whatever the size of the corpus
STRATA = 10
MOST_COMPARED = 2000  # of the new tokens, compared with the source's in likeness
AGAIN = 0.1  # share of the tokens that one of the fits goes on with


def probe(run: Run[HasSurgery], tokens: int, contexts: int, fit_steps: int = 0) -> Probe:
    """Hide about `tokens` tokens, give each up to `contexts` sentences, write WORKDIR/probe.json.

    With `fit_steps` the gradient fit of so many steps is among the variants; it takes longest by far.

    Needs the stages corpus and vocab. Returns what it has written. Raises ConfigError without a source or for a
    useless number, InputError where too few tokens can be hidden.
    """
    for flag, value in (('--probe-tokens', tokens), ('--probe-contexts', contexts)):
        if value < 1:
            raise ConfigError(f'{flag}={value}: must be at least 1')
    if not run.config.source.path:
        raise ConfigError('config.source.path: is empty, but --probe needs a source')
    run.computes('probe', str(present()), **computing())
    with tempfile.TemporaryDirectory(prefix='bioptimus-') as merged:
        source, started = load_source(run.config.source, run.config.seed, Path(merged)), time.monotonic()
    assert source is not None, 'there is a path'
    folder = run.folder('vocab')
    subwords = load_subwords(folder)
    vocabulary, counts_W = subwords.tokens, token_counts(folder, subwords)
    hidden = choose(source, vocabulary, counts_W, tokens, run.config.seed)
    counts_N = counts_W[[vocabulary.index(token) for token in hidden]]
    run.console.say(f'probe: {len(hidden):,} of {len(source.vocabulary):,} tokens of the source are hidden')
    searching = time.monotonic()
    documents = open_documents(run.folder('corpus'), 'train')
    found = sample_contexts(run.config, documents, folder, hidden, contexts, MOST_DOCUMENTS, run.console)
    costs = Costs(time.monotonic() - searching)
    shape = source.architecture
    compared = variants(shape.layers, contexts, fit_steps, head=not source.fresh)
    wanted = [one for one in compared if rows_fit(one, shape)]
    donate = functools.partial(donor.donate, run, source.subwords, hidden)
    wanted, donated = _with_donor(run.console, run.config.surgery, wanted, donate)
    sums = costs.timed(summing(run.config.surgery.batch_pieces, run.console))
    without = hiding(source, hidden)
    spellings = list(map(without.subwords.spell_token, hidden))
    true_N = np.array([source.vocabulary.index(token) for token in hidden])
    texts = with_borders(source.subwords, true_N)
    material = gather(without, hidden, spellings, found, wanted, run.config.seed, sums, texts)
    material = dataclasses.replace(material, donated=donated)
    weights_N, like = _weights(subwords, source.subwords, without.subwords, texts)
    rebuilt, described = _compared(
        run.console,
        run.config.seed,
        wanted,
        material,
        true_N,
        hidden,
        without,
        found,
        counts_N,
        weights_N,
        costs,
    )
    result = Probe(
        source=run.config.source.path,
        seed=run.config.seed,
        contexts_per_token=contexts,
        source_tokens=len(source.vocabulary),
        windows=material.windows,
        likeness=like,
        variants=rebuilt,
        hidden=described,
        seconds=round(time.monotonic() - started, 1),
    )
    write_json(run.workdir / FILE, result.json())
    run.console.say(f'probe: nearest to the true rows: {result.variants[0].flags}')
    run.console.say(f'probe: {run.workdir / FILE}, {clock(result.seconds)}')
    return result


def choose(
    source: Loaded, vocabulary: Sequence[str], counts_W: np.ndarray, wanted: int, seed: int
) -> list[str]:
    """Tokens of both vocabularies that occur in the corpus and that other pieces can spell, equally many from each
    of ten classes of frequency; never more than half of them, so that something is left to spell and to fit with.
    """
    usable = {source.vocabulary[i] for i in source.subwords.kind.respellable(source.subwords)}
    counted = sorted(
        (int(count), token)
        for token, count in zip(vocabulary, counts_W, strict=True)
        if count and token in usable
    )
    if len(counted) < 2:
        raise InputError(
            f'--probe: {len(counted)} tokens of the source occur in the corpus and can be spelled without themselves; '
            'take a larger corpus, or a vocabulary that shares more with the source'
        )
    wanted = min(wanted, len(counted) // 2)
    generator = seeded(seed, wanted)
    strata = min(STRATA, wanted)
    chosen: list[str] = []
    for number, places in enumerate(np.array_split(np.arange(len(counted)), strata)):
        # Differences of rounded multiples: the classes are as even as can be, and together give `wanted`.
        size = (number + 1) * wanted // strata - number * wanted // strata
        chosen += [counted[i][1] for i in generator.choice(places, size, replace=False)]
    return sorted(chosen)


def hiding(source: Loaded, hidden: Sequence[str]) -> Loaded:
    """The source as if its vocabulary lacked those tokens: it neither spells with them nor predicts them.

    Their ids, and the table with the true rows, stay.
    """
    ids = [source.vocabulary.index(token) for token in hidden]
    flat = dict(flatten(source.parameters))
    if (path := source.architecture.output_bias) in flat:
        flat[path] = np.array(flat[path])
        flat[path][ids] = np.finfo(np.float32).min
    return dataclasses.replace(source, subwords=source.subwords.without(ids), parameters=unflatten(flat))


def _with_donor(
    console: Console, own: Surgery, wanted: Sequence[Surgery], donate: Callable[[], Donated]
) -> tuple[list[Surgery], Donated | None]:
    """The variants with the donor of the run's `own` settings, and what it knows.

    Those that need a donor are left out where word vectors cannot be trained. Raises what is wrong with a donor that
    was named.
    """
    wanted = [
        dataclasses.replace(one, anchors=own.anchors) if one.initialisation.donor else one for one in wanted
    ]
    needing = [one for one in wanted if one.initialisation.donor]
    try:
        for one in needing:
            donor.check(dataclasses.replace(one, donor=own.donor))
        return wanted, donate() if needing else None
    except (ConfigError, InputError) as error:
        if own.donor:
            raise
        console.say(f'probe: without variants that need a donor: {error}')
        return [one for one in wanted if one not in needing], None


def _weights(
    own: Subwords, source: Subwords, without: Subwords, texts_N: Sequence[str]
) -> tuple[np.ndarray | None, LikenessOfTokens | None]:
    """Weights of the hidden tokens [N], with which they are as like the rest of the source as new tokens are.

    And quartiles of both likenesses. Frequent words, of which a source's vocabulary is made, have relatives in it more
    often than new tokens do: without weights the probe flatters what reads spelling. None without new tokens.
    """
    (new_M,) = np.nonzero(own.shared_with(source) < 0)
    if not len(new_M):
        return None, None
    new_M = new_M[:: max(1, len(new_M) // MOST_COMPARED)]
    hidden_N = likeness(texts_N, with_borders(without, without.drawn_N))
    likeness_M = likeness(with_borders(own, new_M), with_borders(source, source.drawn_N))
    quartiles = (tuple(np.quantile(x, (0.25, 0.5, 0.75)).round(3).tolist()) for x in (hidden_N, likeness_M))
    return recovery.weights_like(hidden_N, likeness_M), LikenessOfTokens(*quartiles)


def variants(layers: int, contexts: int, fit_steps: int = 0, head: bool = False) -> list[Surgery]:
    """What is compared, for a source of so many layers: every initialisation, and the paper's with other layers,
    poolings, numbers of contexts, shrinkages and maps; gradient fits, with a `head` also by cross-entropy."""
    like = functools.partial(dataclasses.replace, PAPER)
    read: list[tuple[int, ...]] = [(-1,), *((n,) for n in range(layers)), ()]
    maps = [name for name, one in MAPS.items() if one.anchors]
    mapped = [like(layers=each, map=name) for name in maps for each in read]
    found = _initialisations('literal', layers, read) + mapped
    fewer = [m for m in (1, 2, 5) if m < contexts]
    changes: list[dict[str, Any]] = [
        *({'pooling': name} for name in ('first', 'last')),
        *({'max_contexts': m} for m in fewer),
        *({'shrinkage': k} for k in (1.0, 5.0)),
        *({'map': name, 'shrinkage': k} for name in maps for k in (1.0, 5.0)),
        *({'map': 'respelled', 'shrinkage': k, 'max_contexts': m} for k in (0.0, 1.0, 5.0) for m in fewer),
    ]
    found += [dataclasses.replace(one, **change) for one in (PAPER, like(layers=())) for change in changes]
    # One factor for all rows changes no rank but that by dot product; moving them to the source's mean does.
    found.append(like(scale='rescaled'))
    defaults = [dataclasses.replace(Surgery(), map=name, shrinkage=k) for name in maps for k in (1.0, 5.0)]
    found += _initialisations('centred', layers, read)
    found += [dataclasses.replace(one, scale='centred') for one in (*mapped, *defaults)]
    if fit_steps:
        of_rows = [s for s in _initialisations('centred', layers, read) if not s.initialisation.states]
        found += _fits(of_rows, layers, fit_steps, head)
    return list(dict.fromkeys(found))


def _fits(of_rows: Sequence[Surgery], layers: int, fit_steps: int, head: bool) -> list[Surgery]:
    """Gradient fits that begin with several rows; with `head` also by cross-entropy.

    Token distillation begins with rows that are made of rows alone (`of_rows`).
    """
    changes: list[dict[str, Any]] = [{'fit_layer': middle(layers)[0] or 1}, {'fit_again': AGAIN}]
    changes += [{'fit_cross_entropy': 1.0}, {'fit_cross_entropy': 1.0, **changes[0]}] if head else []
    starts = [dataclasses.replace(PAPER, scale='centred'), *of_rows, Surgery()]
    wanted: list[tuple[Surgery, dict[str, Any]]] = [(start, {}) for start in starts]
    wanted += [(start, change) for start in (*of_rows[:1], Surgery()) for change in changes]
    return [dataclasses.replace(start, fit_steps=fit_steps, **change) for start, change in wanted]


def _initialisations(scale: str, layers: int, read: Sequence[tuple[int, ...]]) -> list[Surgery]:
    """Every initialisation that is compared in that scale; with each of the layers, where it reads states."""
    found = []
    compared = [(name, one) for name, one in INITIALISATIONS.items() if scale in one.probed]
    for name, one in sorted(compared, key=lambda item: item[1].states):
        unnamed = () if one.usual_layers(layers) == middle(layers) else middle(layers)
        for each in read if one.states else read[:1]:
            found.append(dataclasses.replace(PAPER, strategy=name, layers=each or unnamed, scale=scale))
    return found


def named(settings: Surgery) -> str:
    """The strategy and what differs from the paper's rows: `contextualized layers=3,4 map=linear`."""
    different = settings.different(PAPER).items()
    return ' '.join([settings.strategy, *(f'{name}={_text(value)}' for name, value in different)])


def flags(settings: Surgery) -> str:
    """What makes these rows on the command line. Ranks say nothing about length: literal rows are rescaled."""
    scaled = dataclasses.replace(settings, scale='rescaled') if settings.scale == 'literal' else settings
    wanted = {'strategy': settings.strategy, **scaled.different(Surgery())}
    return ' '.join(f'--config.surgery.{name}={_text(value)}' for name, value in wanted.items())


def _text(value: Any) -> str:
    return (','.join(map(str, value)) or '()') if isinstance(value, tuple) else str(value)


def _compared(
    console: Console,
    seed: int,
    wanted: Sequence[Surgery],
    material: Material,
    true_N: np.ndarray,
    hidden: Sequence[str],
    source: Loaded,
    contexts: TokenContexts,
    counts_N: np.ndarray,
    weights_N: np.ndarray | None,
    costs: Costs,
) -> tuple[tuple[ProbedRows, ...], tuple[HiddenToken, ...]]:
    contexts_N = np.max([found_N for _, found_N in material.sums.values()], axis=0)
    pieces_N = np.array([len(pieces) for pieces in material.spellings])
    thirds_N = np.argsort(np.argsort(counts_N, kind='stable')) * 3 // len(counts_N)
    numbers = {'contexts': contexts_N, 'pieces': pieces_N, 'frequency': thirds_N}
    progress = console.progress('probe: comparing', len(wanted), 'variants')
    records = []
    for settings in wanted:
        started = time.monotonic()
        made = make(settings, material, seed, lambda tokens: console.check_stop())
        if settings.fit_steps:
            fitting = console.progress('probe: gradient fit', fit.steps(settings), 'steps')
            advance = watched(fitting, console.check_stop)
            made = fit.fitted(settings, made, source, hidden, contexts, seed, advance)
        seconds = round(time.monotonic() - started + costs.of(settings, material), 2)
        measured = recovery.measure(made.rows, true_N, material.table)
        summary = recovery.summary(measured, numbers, seed, weights_N)
        records.append(
            ProbedRows(
                name=named(settings),
                flags=flags(settings),
                seconds=seconds,
                map=made.map,
                **vars(summary),
                fit=made.fit.summary if made.fit else None,
            )
        )
        progress.update(1)
        console.check_stop()
    records.sort(key=lambda r: (r.rank[0], -r.cosine[0]))
    columns = zip(hidden, *(x.tolist() for x in (contexts_N, pieces_N, counts_N)), strict=True)
    return tuple(records), tuple(HiddenToken(*row) for row in columns)
