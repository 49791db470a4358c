"""The NER sets themselves: counts beside the published ones, what is wrong with them, how tokenizers cut them."""

from collections import Counter
from typing import Any

from bioptimus_jax.report.layout import Cell, Table, count, missing, words
from bioptimus_jax.report.measures import Measures
from bioptimus_jax.sets.sentences import SPLITS

EXAMPLE = 60
"""Characters of a sentence that a note shows."""
ABSENT = 'stage finetune has not looked through the sets.'


def counted(m: Measures) -> Table:
    """Sentences, words and mentions of every split, beside BLURB's counts, with repairs and repetitions."""
    documents = any(record['splits'][s]['documents'] > 1 for record in m.lint for s in SPLITS)
    published = any('blurb' in record['splits'][s] for record in m.lint for s in SPLITS)
    columns = [
        'set',
        'split',
        'tags',
        *(['documents'] if documents else []),
        'sentences',
        'words',
        'mentions',
    ]
    columns += ['BLURB'] * published + ['repairs', 'again within', 'from train', 'from devel']
    rows = []
    for record in m.lint:
        for split in SPLITS:
            found = record['splits'][split]
            again = [
                count(record['repeated'][place]['sentences']) if place in record['repeated'] else missing()
                for place in (f'within {split}', f'{split} from train', f'{split} from devel')
            ]
            rows.append(
                [
                    words(record['dataset']),
                    words(split),
                    words(record['scheme'] if record['form'] == 'columns' else record['form']),
                    *([count(found['documents'] if found['documents'] > 1 else None)] if documents else []),
                    *(count(found[what]) for what in ('sentences', 'words', 'mentions')),
                    *([_beside(found)] if published else []),
                    count(sum(found['repairs'].values())),
                    *again,
                ]
            )
    note = (
        'Tags: the scheme of the files, read as IOB2. Repairs: tags that had to be read in another way. Again within:'
        ' sentences that stand before in the same split; from train, from devel: whose words stand in that split.'
    )
    if published:
        note += ' BLURB: mentions by Gu et al. (2021), Table 1, and how far the files are from it; known: all public'
        note += ' files are.'
    if documents:
        note += ' Documents: — where the files do not mark them.'
    note += _notes(m)
    return Table('The sets', columns, rows, note=note, absent=ABSENT)


def in_pieces(m: Measures) -> Table:
    """What each tokenizer leaves of a set: words without a piece, mentions lost, sentences too long for a window."""
    columns = ['set', 'tokenizer of', 'words without piece', 'in mentions', 'mentions lost']
    columns += ['longest sentence, pieces', 'sentences in several windows']
    rows = []
    for record in m.lint:
        for name, measured in record['tokenizers'].items():
            found = [measured[split] for split in SPLITS]
            sums = [
                count(sum(f[key] for f in found))
                for key in ('words_without_piece', 'of_them_in_mentions', 'mentions_without_piece')
            ]
            longest = count(max(f['longest_sentence_pieces'] for f in found))
            several = count(sum(f['long_sentences'] for f in found))
            rows.append([words(record['dataset']), words(m.label(name)), *sums, longest, several])
    windows = sorted({t['max_pieces'] for record in m.lint for t in record['tokenizers'].values()})
    note = (
        'All splits. A word without a piece counts as O. Models with the same tokenizer are there once. A window holds'
        f' {" or ".join(str(size) for size in windows)} pieces; every word of a longer sentence is still scored once.'
    )
    return Table('The sets in pieces', columns, rows, note=note, absent=ABSENT)


def _beside(found: dict[str, Any]) -> Cell:
    if 'blurb' not in found:
        return missing()
    difference = found['mentions'] - found['blurb']
    known = ', known' if found['mentions'] == found.get('public_files') else ''
    shown = f' ({difference:+,}{known})' if difference else ''
    return Cell(f'{found["blurb"]:,}{shown}', float(found['blurb']))


def _notes(m: Measures) -> str:
    """What the counts do not say: types that were merged or cannot be learned, sentences tagged in several ways."""
    parts = []
    for record in m.lint:
        name, different = record['dataset'], record['tagged_differently']
        if record.get('merged_types'):
            parts.append(f'{name}: {", ".join(record["merged_types"])} are read as one type')
        if different['sentences']:
            example = different['examples'][0][:EXAMPLE]
            parts.append(f'{name}: {different["sentences"]:,} tagged in more than one way, as “{example}”')
        if record['unseen_labels']:
            unseen = ', '.join(f'{tag} {n:,}' for tag, n in record['unseen_labels'].items())
            parts.append(f'{name}: not in train and so never learned: {unseen}')
        repairs: Counter[str] = Counter()
        for split in SPLITS:
            repairs.update(record['splits'][split]['repairs'])
        if repairs:
            parts.append(f'{name} repaired: {", ".join(f"{what} {n:,}" for what, n in repairs.items())}')
    return f' {"; ".join(parts)}.' if parts else ''
