"""The sets of entities: counts beside the published ones, what is wrong with them, labels."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from bioptimus_jax.finetuning.entities import lint
from bioptimus_jax.records.sets import LintedSet, LintedSplit
from bioptimus_jax.report.drawing import SERIES, Figure, draw_panels, in_legend, name_axes, with_line
from bioptimus_jax.report.layout import Cell, Column, Table, count, each, missing
from bioptimus_jax.report.measures import Measures
from bioptimus_jax.report.section import Section
from bioptimus_jax.sets.sentences import SPLITS

OTHER = 'other types'
ABSENT = 'stage finetune has not looked through the sets.'


def counted(m: Measures) -> Table:
    """Sentences, words and mentions of every split, beside BLURB's counts, with repairs and repetitions."""
    records = [(record, split, record.splits[split]) for record in m.lint for split in SPLITS]
    documents = any(found.documents > 1 for *_, found in records)
    published = any(found.blurb is not None for *_, found in records)

    def again(place: str, record: LintedSet, split: str, _: LintedSplit) -> Cell:
        found = record.repeated.get(place.format(split))
        return count(found.sentences if found else None)

    columns = [
        Column('set', lambda record, *_: record.dataset),
        Column('split', lambda _, split, __: split),
        Column('tags', lambda r, *_: r.scheme if r.form == 'columns' else r.form),
        Column('documents', lambda *r: count(r[2].documents if r[2].documents > 1 else None), '', documents),
        *each(
            {x: x for x in ('sentences', 'words', 'mentions')}, lambda what, *r: count(getattr(r[2], what))
        ),
        Column('BLURB', lambda *r: _beside(r[2]), when=published),
        Column('repairs', lambda *r: count(sum(r[2].repairs.values()))),
        *each(
            {'within {}': 'again within', '{} from train': 'from train', '{} from devel': 'from devel'}, again
        ),
    ]
    note = (
        'Tags: the scheme of the files, read as IOB2. Repairs: tags that had to be read differently. Again within:'
        ' sentences that occur earlier in the same split; from train, from devel: sentences with the same words in'
        ' that split.'
    )
    if published:
        note += ' BLURB: mentions by Gu et al. (2021), Table 1, and how far the files are from it; known: all public'
        note += ' files are.'
    if documents:
        note += ' Documents: — where the files do not mark them.'
    return Table.of('The sets', columns, records, note=note + _notes(m), absent=ABSENT)


def label_shares(m: Measures) -> Figure:
    """Which share of a split's words are first and further words of mentions of each type (paper, Figure 6)."""
    title = 'Labels of the sets'
    if not m.labels:
        return Figure('label_shares', title, absent=ABSENT)
    bars = {f'{d}, {split}': m.labels[d][split] for d in m.labels for split in SPLITS}
    mentions: Counter[str] = Counter()
    for found in bars.values():
        mentions.update({kind: found.mentions * share for kind, share in found.types.items()})
    most = len(SERIES) - (len(mentions) > len(SERIES))
    types = [kind for kind, _ in mentions.most_common(most)]
    types += [OTHER] * (len(mentions) > len(types))
    shares = [_by_label(found.tags, types) for found in bars.values()]

    def draw(panels: list[Any]) -> None:
        [axes] = panels
        floor = [0.0] * len(bars)
        for (kind, colour), first in itertools.product(zip(types, SERIES, strict=False), (True, False)):
            width = [share.get((kind, first), 0.0) for share in shares]
            label, strength = (in_legend(kind), 1.0) if first else (with_line(kind), 0.5)
            axes.barh(range(len(bars)), width, 0.72, floor, color=colour, alpha=strength, label=label)
            floor = [low + w for low, w in zip(floor, width, strict=True)]
        axes.set_yticks(range(len(bars)), list(bars))
        axes.set_ylim(len(bars) - 0.5, -0.5)
        axes.grid(False, axis='y')
        name_axes(panels, 'share of all words, %', '')

    inside = [f'{name} {sum(share.values()):.1f}' for name, share in zip(bars, shares, strict=True)]
    caption = 'Strong: the first word of a mention (B-); pale: its further words (I-). All other words are O.'
    alt = f'Percent of the words that are in mentions: {"; ".join(inside)}.'
    svg = draw_panels('label_shares', draw, height=max(2.0, 0.24 * len(bars) + 0.8))
    return Figure('label_shares', title, caption, alt, svg)


SECTION = Section(
    'Entity sets',
    'What the models were fine-tuned and scored on, and what is wrong with it.',
    ('finetune',),
    {'sets': counted},
    (label_shares,),
)


def _beside(found: LintedSplit) -> Cell:
    if found.blurb is None:
        return missing()
    difference = found.mentions - found.blurb
    known = ', known' if found.mentions == found.public_files else ''
    shown = f' ({difference:+,}{known})' if difference else ''
    return Cell(f'{found.blurb:,}{shown}', float(found.blurb))


def _notes(m: Measures) -> str:
    """What the counts do not say: types that were merged, and the notes of the lint."""
    parts = []
    for record in m.lint:
        merged = record.merged_types
        said = [f'{", ".join(merged)} are read as one type'] if merged else []
        parts += [f'{record.dataset}: {note}' for note in (*said, *lint.notes(record, m.label))]
    return f' {"; ".join(parts)}.' if parts else ''


def _by_label(tags: Mapping[str, float], types: Sequence[str]) -> dict[tuple[str, bool], float]:
    """(type, whether first word) -> percent of the words."""
    shares: dict[tuple[str, bool], float] = defaultdict(float)
    for tag, share in tags.items():
        prefix, _, kind = tag.partition('-')
        if kind:
            shares[kind if kind in types else OTHER, prefix == 'B'] += 100 * share
    return dict(shares)
