"""What the corpus was made of: documents left out by reason, and benchmark sentences that were found in them."""

from collections import Counter, defaultdict

from bioptimus_jax.report.layout import Table, count, missing, percent, words
from bioptimus_jax.report.measures import Measures

SHOWN = 20
NOT_RUN = 'stage corpus has not been run.'


def documents(m: Measures) -> Table:
    """What was read, what was left out and why, and what is left."""
    counts = m.manifests.get('corpus', {}).get('counts', {})
    rows = []
    if 'read' in counts:
        read = counts['read']
        rows = [[words('read'), count(read), percent(1.0), missing()]]
        for reason, n in counts['left_out'].items():
            rows.append(
                [words(f'left out: {reason.replace("_", " ")}'), count(n), percent(n / read), missing()]
            )
        for split, name in (('train', 'for training'), ('heldout', 'held out')):
            rows.append(
                [
                    words(name),
                    count(counts[split]),
                    percent(counts[split] / read),
                    count(counts['words'][split]),
                ]
            )
    broken = counts.get('broken_files', 0)
    note = f'{broken} broken files were left out: corpus/broken_files.jsonl.' if broken else ''
    return Table('Documents', ['', 'documents', 'share', 'words'], rows, note=note, absent=NOT_RUN)


def leaks(m: Measures) -> Table:
    """Sentences of the benchmark sets that stood in documents, by set and split."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    containing: Counter[tuple[str, str]] = Counter()
    for document in m.audit:
        for place in {(s['dataset'], s['split']) for s in document['sentences']}:
            containing[place] += 1
        for s in document['sentences']:
            found[s['dataset'], s['split']].add(s['text'])
    rows = [
        [words(dataset), words(split), count(len(texts)), count(containing[dataset, split])]
        for (dataset, split), texts in sorted(found.items())
    ]
    note = (
        f'{len(m.audit):,} documents were left out, before the held-out split, the vocabulary and the contexts.'
        ' All sentences, with the documents they stood in: corpus/audit.jsonl.'
    )
    absent = 'no sentence was found, or config.corpus.audit.folder names no sets.'
    return Table(
        'Benchmark sentences in the input',
        ['set', 'split', 'sentences', 'documents'],
        rows,
        note=note,
        absent=absent,
    )


def leaked_sentences(m: Measures) -> Table:
    """Some of them, evenly spread."""
    every = [(document['document'], s) for document in m.audit for s in document['sentences']]
    rows = [
        [words(document), words(f'{s["dataset"]}/{s["split"]}'), words(s['text'])]
        for document, s in every[:: max(len(every) // SHOWN, 1)][:SHOWN]
    ]
    return Table(
        f'{len(rows)} of these sentences', ['document', 'from', 'sentence'], rows, absent='none was found.'
    )
