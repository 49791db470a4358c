"""What the corpus was made of: documents left out by reason, and benchmark sentences that were found in them."""

from collections import Counter, defaultdict

from bioptimus_jax.corpus.config import SPECIAL_ARTICLES
from bioptimus_jax.pretrain import mixture
from bioptimus_jax.pretrain.overlap import PIECES
from bioptimus_jax.pretrain.shares import OWN
from bioptimus_jax.records.counts import CorpusCounts
from bioptimus_jax.report.layout import Column, Table, count, each, percent
from bioptimus_jax.report.measures import Measures
from bioptimus_jax.report.section import Section

SHOWN = 20
NOT_RUN = 'stage corpus has not been run.'


def documents(m: Measures) -> Table:
    """What was read, what was left out and why, and what is left."""
    counts = CorpusCounts.of(m.manifest_of('corpus'))
    records: list[tuple[str, int | None, int | None]] = []
    note = ''
    if counts:
        records = [('read', counts.documents_read, None)]
        for reason, n in counts.left_out.items():
            records.append((f'left out: {reason.replace("_", " ")}', n, None))
        for split, name in (('train', 'for training'), ('heldout', 'held out')):
            records.append((name, counts.documents(split), counts.words[split]))
        for kind, n in counts.kinds.items():
            records.append((f'of both: {SPECIAL_ARTICLES[kind]}', n, None))
        for name, words in counts.words_not_read.items():
            records.append((f'not read of both: {name}', None, words))
        if counts.broken_files:
            note = (
                f'{counts.broken_files} files are broken, {counts.read_in_part} of which were read in part: '
                'corpus/broken_files.jsonl.'
            )
    columns = [
        Column('', lambda name, n, words: name),
        Column('documents', lambda name, n, words: count(n)),
        Column(
            'share',
            lambda name, n, words: percent(n / counts.documents_read if counts and n is not None else None),
        ),
        Column('words', lambda name, n, words: count(words)),
    ]
    if (rows := m.rows_of()) and rows.pairs is not None:
        note += f' Rows hold {rows.pairs:,} pairs'
        note += (
            '.' if rows.share_random is None else f', the second text of {rows.share_random:.1%} is random.'
        )
    return Table.of('Documents', columns, records, note=note.strip(), absent=NOT_RUN)


def corpora(m: Measures) -> Table:
    """How much of the rows each corpus gives to each phase, and what is on record of it."""
    shares, overlaps = mixture.shares(m.run.config, m.phases), {one.corpus: one.found for one in m.overlaps}
    known = {**mixture.documents(m.run.config, m.manifest_of('pretrain')), OWN: m.manifest_of('corpus')}
    columns = [
        Column('corpus', lambda name, counts: name),
        *each({n: f'rows of {n}' for n in m.phases}, lambda n, name, counts: percent(shares[name][n])),
        Column('documents for training', lambda name, counts: count(counts and counts.train)),
        Column('words', lambda name, counts: count(counts and counts.words.get('train'))),
        Column(
            'benchmark sentences looked for',
            lambda name, counts: count(counts and (counts.audit.sentences if counts.audit else 0)),
        ),
        Column(
            'documents left out for them',
            lambda name, counts: count(counts and counts.left_out.get('benchmark', 0)),
        ),
        Column('held-out documents in it', lambda name, counts: count(overlaps.get(name))),
    ]
    records = [(name, CorpusCounts.of(known.get(name))) for name in shares]
    note = (
        f'{OWN} is the corpus of this run, which the other tables are about. Held-out documents are of it; those in '
        f'another corpus begin with the same {PIECES} pieces as one that is trained on.'
    )
    return Table.of(
        'Corpora of the phases',
        columns,
        records * (len(shares) > 1),
        note=note,
        absent='the phases read one corpus, that of this run.',
    )


def leaks(m: Measures) -> Table:
    """Sentences of the benchmark sets that stood in documents, by set and split."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    containing: Counter[tuple[str, str]] = Counter()
    for document in m.audit:
        containing.update({(s.dataset, s.split) for s in document.sentences})
        for s in document.sentences:
            found[s.dataset, s.split].add(s.text)
    columns = [
        Column('set', lambda dataset, split: dataset),
        Column('split', lambda dataset, split: split),
        Column('sentences', lambda *place: count(len(found[place]))),
        Column('documents', lambda *place: count(containing[place])),
    ]
    note = (
        f'{len(m.audit):,} documents were left out, before the held-out split, the vocabulary and the contexts.'
        ' All sentences, with the documents that contain them: corpus/audit.jsonl.'
    )
    absent = 'no sentence was found, or config.corpus.audit.folder names no sets.'
    return Table.of('Benchmark sentences in the input', columns, sorted(found), note=note, absent=absent)


def leaked_sentences(m: Measures) -> Table:
    """Some of them, evenly spread."""
    every = [(document.document, s) for document in m.audit for s in document.sentences]
    chosen = every[:: max(len(every) // SHOWN, 1)][:SHOWN]
    columns = [
        Column('document', lambda document, s: str(document)),
        Column('from', lambda document, s: f'{s.dataset}/{s.split}'),
        Column('sentence', lambda document, s: s.text),
    ]
    return Table.of(f'{len(chosen)} of these sentences', columns, chosen, absent='none was found.')


SECTION = Section(
    'Corpus',
    'What was read, what was left out and why, and which benchmark sentences were in it.',
    ('corpus',),
    {'documents': documents, 'corpora': corpora, 'leaks': leaks, 'leaked_sentences': leaked_sentences},
)
