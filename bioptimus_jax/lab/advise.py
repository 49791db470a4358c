"""Is a new vocabulary worth it? What keeping, appending and replacing do to texts and sets, before any training."""

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bioptimus_jax.corpus.content import fields_asked, shares
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.task import task_for
from bioptimus_jax.lab.expected import FEWEST_SETS, Expected, Observed, expect, left_out, observe
from bioptimus_jax.model.tensors import read_architecture
from bioptimus_jax.progress.console import numbered
from bioptimus_jax.report.layout import Column, Table, count, each, fixed, percent
from bioptimus_jax.scoring.student import interval
from bioptimus_jax.sets.corpora import sets_in
from bioptimus_jax.start.recommend import based_on, folder_of
from bioptimus_jax.start.texts import look_into
from bioptimus_jax.start.ways import KEEP, SEEN, SMALLEST, Way, decide, plans, text_per_flop, ways
from bioptimus_jax.tokenizer.subwords import load as load_subwords

LEARNED = ('train', 'devel')
"""Splits of a set that are looked at: test says nothing before a model is scored."""


@dataclasses.dataclass(frozen=True)
class AdviceRequest:
    """`size`: entries of a new vocabulary, 0: as many as the source's; `pieces` to train on, 0: as many as it takes."""

    source: str
    texts: tuple[str, ...]
    sets: str = ''
    task: str = Finetune.task
    size: int = 0
    pieces: float = 0
    pairs: Sequence[tuple[str, str]] = ()
    keys: Sequence[tuple[str, str]] = ()


@dataclasses.dataclass(frozen=True)
class OfSet:
    """What a vocabulary does to a set: pieces of an example and of a mention, and the share of mentions it respells."""

    name: str
    way: str
    examples: int
    pieces: float
    mentions: int
    respelled: float | None
    mention_pieces: float | None
    expected: Expected | None


@dataclasses.dataclass(frozen=True)
class Advice:
    """All that is said: `vocabulary` is KEEP, APPEND or REPLACE, and `why`."""

    vocabulary: str
    why: str
    ways: Mapping[str, Way]
    text_per_flop: Mapping[str, float]
    parameters: Mapping[str, int]
    sets: Sequence[OfSet]
    observed: Sequence[Observed]
    content: Mapping[str, float]

    def tables(self) -> list[Table]:
        """What content keeps, vocabularies, sets, and what was observed."""
        return [t for t in (_content(self), _vocabularies(self), _sets(self), _evidence(self)) if not t.empty]


def advise(asked: AdviceRequest) -> Advice:
    """Raises ConfigError and InputError."""
    folder = folder_of(asked.source)
    source, observed = load_subwords(folder), observe(asked.pairs)
    chosen = sets_in(Path(asked.sets), (), task=asked.task) if asked.sets else []
    shape = read_architecture(folder)
    _, loaded = based_on(folder, shape, asked.texts, asked.keys)
    loaded.rows.max_document_pieces = min(loaded.rows.max_document_pieces, shape.positions)
    experiment = Experiment.from_config(loaded, paths=False)
    texts = look_into(experiment.corpus)
    size = asked.size or max(len(source.tokens), SMALLEST)
    found = ways(source, texts.sample, size)
    planned = plans(experiment, found)
    text = text_per_flop(found, planned)
    of_sets = [row for one in chosen for row in _of_set(one, found, observed)]
    parameters = {name: sum(plan.parameters.values()) for name, plan in planned.items()}
    content = experiment.corpus.content
    kept = shares(content, texts.records) if fields_asked(content) else {}
    advised = _advised(found, text, observed, asked.pieces)
    return Advice(*advised, found, text, parameters, of_sets, observed, kept)


def _of_set(chosen: Any, found: Mapping[str, Way], observed: Sequence[Observed]) -> Iterator[OfSet]:
    """A row for every vocabulary."""
    task = task_for(chosen)
    dataset = task.read(chosen)
    examples = [example for split in LEARNED for example in getattr(dataset, split)]
    mentions = [
        ' '.join(task.shown(example)[first : last + 1])
        for example in examples
        for _, first, last in task.mentions(task.answers(example))
    ]
    whole = [' '.join(example.words) for example in examples]
    kept = [encoding.tokens for encoding in found[KEEP].subwords.encode_words(mentions)]
    for name, way in found.items():
        own = [encoding.tokens for encoding in way.subwords.encode_words(mentions)]
        pieces = sum(len(encoding.ids) for encoding in way.subwords.encode(whole)) / max(len(whole), 1)
        respelled = sum(a != b for a, b in zip(own, kept, strict=True))
        share = respelled / len(own) if own and name != KEEP else None
        per_mention = sum(map(len, own)) / len(own) if own else None
        gain = expect(share, observed) if observed and share is not None else None
        yield OfSet(chosen.name, name, len(examples), pieces, len(mentions), share, per_mention, gain)


def _advised(
    found: Mapping[str, Way], text: Mapping[str, float], observed: Sequence[Observed], pieces: float
) -> tuple[str, str]:
    """The vocabulary that the texts, the training and the observed pairs speak for."""
    best, why = decide(found, text, pieces or math.inf)
    if best == KEEP:
        return best, why
    if not pieces:
        needed = SEEN * found[best].new
        why += f'; train on at least {needed:,} pieces, {SEEN} for each new token, or keep the old one'
    if len(observed) < FEWEST_SETS:
        return best, why
    mean, half = interval([one.gain for one in observed])
    gain, over = str(Expected(mean, half)), f'over {numbered(len(observed), "set")}'
    if mean + half < 0:
        return KEEP, f'{why}; but the pairs lost F1 with a new one, {gain} {over}'
    if mean - half <= 0:
        return best, f'{why}; the pairs do not tell it from the old one in F1: {gain} {over}'
    return best, f'{why}; the pairs gained {gain} F1 with a new one, {over}'


def _content(advice: Advice) -> Table:
    columns = [
        Column('condition', lambda name, _: name),
        Column('documents', lambda _, share: percent(share, 1)),
    ]
    note = 'Share of the documents at hand that each condition of corpus.content alone would keep, and all together.'
    return Table.of('Text by content', columns, list(advice.content.items()), note=note)


def _vocabularies(advice: Advice) -> Table:
    kept = advice.ways[KEEP]

    def saved(name: str) -> str:
        low, high = advice.ways[name].saved_interval(kept)
        return '' if name == KEEP else f'{advice.ways[name].saved(kept):.1%} [{low:.1%}, {high:.1%}]'

    columns = [
        Column('vocabulary', lambda name: name),
        Column('entries', lambda name: count(len(advice.ways[name].subwords.tokens))),
        Column('new', lambda name: count(advice.ways[name].new)),
        Column('pieces a word', lambda name: fixed(advice.ways[name].pieces_per_word)),
        Column('pieces saved', saved),
        Column('words of one piece', lambda name: percent(advice.ways[name].one_piece)),
        Column(
            'unknown words',
            lambda name: percent(advice.ways[name].unknown, 3),
            when=any(way.unknown for way in advice.ways.values()),
        ),
        Column('text per FLOP', lambda name: fixed(advice.text_per_flop[name], 2)),
        Column('parameters', lambda name: count(advice.parameters[name])),
    ]
    note = (
        f'{numbered(len(kept.pieces_D), "document")} of your texts; the new vocabularies are trained on as many others,'
        ' so one of the whole corpus saves more. [95 % interval over documents]. Text per FLOP: words that training'
        ' reads for the same work, as a multiple of the first row.'
    )
    return Table.of('Your texts', columns, advice.ways, note=note)


def _sets(advice: Advice) -> Table:
    columns = [
        Column('set', lambda row: row.name),
        Column('vocabulary', lambda row: row.way),
        Column('examples', lambda row: count(row.examples)),
        Column('pieces each', lambda row: fixed(row.pieces, 1)),
        Column('mentions', lambda row: count(row.mentions or None)),
        Column('respelled', lambda row: percent(row.respelled)),
        Column('pieces a mention', lambda row: fixed(row.mention_pieces, 2)),
        Column('expected F1', lambda row: str(row.expected or ''), when=bool(advice.observed)),
    ]
    note = (
        'Training and devel alone. Respelled: mentions that have other pieces than with the kept vocabulary.'
    )
    if advice.observed:
        note += ' Expected F1: the difference to keeping it [95 % interval for one more set], from the pairs below.'
    return Table.of('Your sets', columns, advice.sets, note=note)


def _evidence(advice: Advice) -> Table:
    missed = {one.dataset: error for one, error in left_out(advice.observed)}
    columns = [
        Column('set', lambda one: one.dataset),
        Column('respelled', lambda one: percent(one.share)),
        *each(
            {'gain': 'gain in F1', 'respelled': 'respelled mentions', 'same': 'other mentions'},
            lambda name, one: fixed(getattr(one, name), 2),
        ),
        Column(
            'expected from the others',
            lambda one: fixed(one.gain + missed[one.dataset], 2),
            when=bool(missed),
        ),
    ]
    note = (
        'Test F1 of the second model of every pair less that of the first: means over pairs and seeds. It holds for'
        ' models and trainings as large as these.'
    )
    return Table.of('Pairs of fine-tuned models', columns, advice.observed, note=note)
