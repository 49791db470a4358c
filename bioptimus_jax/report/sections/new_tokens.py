"""What surgery made: new tokens and their neighbours, contexts found; how well the models name new tokens where they
are hidden words.
"""

import functools
from collections.abc import Sequence
from typing import Any

from bioptimus_jax.records.analysis import HiddenWords
from bioptimus_jax.report.layout import Cell, Column, Table, count, each, fixed, percent
from bioptimus_jax.report.measures import NOT_ANALYZED, Measures
from bioptimus_jax.report.section import Section
from bioptimus_jax.tokenizer.config import TOKENIZERS

EXAMPLES = 10
NOT_RUN = 'stage surgery has not been run.'


def surgery_examples(m: Measures) -> Table:
    """New tokens: how the source spells them, contexts found, nearest neighbours; evenly spread."""
    new = [t for t in m.tokens if t.spelling]
    begins = TOKENIZERS.load(m.run.config.vocab.tokenizer).begins
    telling = [t for t in new if len(t.token) > 5 and begins(t.token)] or new
    columns = [
        Column('new token', lambda t: t.token),
        Column('spelling in the source', lambda t: _joined(t.spelling, ' ')),
        Column('contexts', lambda t: count(t.contexts)),
        Column('norm', lambda t: fixed(t.norm, 2)),
        Column('cosine to averaged', lambda t: fixed(t.cosine)),
        Column('nearest rows', lambda t: _joined(t.neighbours or (), ', ')),
        Column('fallback', lambda t: t.fallback or ''),
    ]
    absent = 'the vocabulary has no token that the source lacks.' if m.tokens else NOT_RUN
    chosen = telling[:: max(1, len(telling) // EXAMPLES)][:EXAMPLES]
    return Table.of('New tokens after surgery', columns, chosen, absent=absent)


def contexts(m: Measures) -> Table:
    """How many sentences were found for the new tokens."""
    most = m.run.config.contexts.per_token
    found = [t.contexts for t in m.tokens if t.contexts is not None]
    groups = {
        'none': sum(n == 0 for n in found),
        f'1 to {most - 1}': sum(0 < n < most for n in found),
        f'{most}': sum(n >= most for n in found),
    }
    columns = [
        Column('contexts', lambda name, n: name),
        Column('tokens', lambda name, n: count(n)),
        Column('share', lambda name, n: percent(n / len(found))),
    ]
    note = ''
    if found:
        share = percent(groups['none'] / len(m.tokens)).text
        note = f'Tokens without any are {share} of the whole vocabulary; the paper found none for fewer than a tenth.'
    absent = 'no token needed one.' if m.tokens else NOT_RUN
    rows = groups.items() if found else ()
    return Table.of('Contexts of the new tokens', columns, rows, note=note, absent=absent)


def named(m: Measures) -> Table:
    """Hidden words that are one token: nats a word of every model, new tokens by frequency."""
    records = [r for r in m.cloze if r.by_class]
    classes = records[0].by_class if records else {}

    def nats(r: HiddenWords, name: str, _: Any) -> Cell:
        return fixed(r.by_class[name].nats_per_word)

    columns = [
        Column('word in the corpus, per million', lambda name, _: name),
        Column('hidden words', lambda _, of_class: count(of_class.words)),
        Column('tokens', lambda _, of_class: count(of_class.tokens)),
        Column('frequency alone', lambda _, of_class: fixed(of_class.frequency_nats)),
        *(Column(m.label(r.model), functools.partial(nats, r)) for r in records),
    ]
    note = (
        'Words that are one token of the vocabulary, new ones by how often the word is in the corpus; nats a word. The'
        ' source has new tokens in pieces, all of which are hidden. Frequency alone: what a model needs that knows only'
        ' how often words occur in the corpus, the logarithm of 1 / frequency.'
    )
    return Table.of('New tokens as hidden words', columns, classes.items(), note=note, absent=NOT_ANALYZED)


def behind(m: Measures) -> Table:
    """New tokens that cost the last model as much as their frequency alone, or more."""
    models = m.new_tokens[0].nats_per_word if m.new_tokens else {}
    columns = [
        Column('new token', lambda t: t.token),
        Column('hidden words', lambda t: count(t.words)),
        *each({name: m.label(name) for name in models}, lambda name, t: fixed(t.nats_per_word[name], 2)),
        Column('frequency alone', lambda t: fixed(t.frequency, 2)),
        Column('behind it', lambda t: fixed(t.behind, 2)),
    ]
    bad = [t for t in m.new_tokens if t.behind >= 0]
    note = (
        f'{len(bad):,} of {len(m.new_tokens):,} new tokens that are hidden words cost the last model as many nats as'
        f' their frequency alone, or more; the first {EXAMPLES}, by nats in all. analyze/bad_tokens.txt names all'
        ' for config.surgery.fit_only. One hidden word says little about a token.'
    )
    absent = 'stage analyze has not been run to its end, or no hidden word is a new token.'
    return Table.of('New tokens that are still bad', columns, bad[:EXAMPLES], note=note, absent=absent)


SECTION = Section(
    'New tokens',
    'What surgery made of the tokens that the source does not have.',
    ('surgery',),
    {'surgery': surgery_examples, 'contexts': contexts, 'named': named, 'behind': behind},
)


def _joined(parts: Sequence[str] | str, by: str) -> str:
    return parts if isinstance(parts, str) else by.join(p if isinstance(p, str) else str(p[0]) for p in parts)
