"""The leak audit on real abstracts: recall against labels, precision by a plain search, and what carries no label.

    python benchmarks/audit.py [--quick]

The abstracts of BIOPTIMUS_DATA say whether they are texts of BC5CDR, NCBI-disease or JNLPBA; all three splits of these
sets' files are looked for. Every flagged text must contain the sentences it was flagged for, by a search that shares
nothing with the audit but the rule (case-folded letters and digits in one run). Flagged texts without a label are
printed with their sentences, and their ids are in results/audit.json. --quick takes every fourth abstract and writes
nothing.
"""

import argparse
import gzip
import json
import os
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from protocol import publish

from bioptimus_jax.corpus.audit import AuditedSentence, Auditor, reduced
from bioptimus_jax.corpus.config import Audit

LABELS = {'bc5-chem': 'bc5cdr', 'bc5-disease': 'bc5cdr', 'ncbi-disease': 'ncbi-disease', 'jnlpba': 'jnlpba'}


def main() -> None:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument('--quick', action='store_true', help='every fourth abstract, writes nothing')
    options = parser.parse_args()
    data = Path(os.environ.get('BIOPTIMUS_DATA', ''))
    if not (data / 'pubmed').is_dir():
        raise SystemExit('BIOPTIMUS_DATA names no folder with pubmed/ and ner/; set it')
    auditor = Auditor(Audit(str(data / 'ner'), tuple(LABELS), ('train', 'devel', 'test')))
    labelled = {name: [0, 0] for name in sorted(set(LABELS.values()))}
    flagged, wrong, unlabelled = 0, 0, []
    for number, record in enumerate(abstracts(data / 'pubmed')):
        if options.quick and number % 4:
            continue
        text = f'{record["title"]}\n{record["abstract"]}'
        found = auditor.matches(reduced(text))
        label = record.get('benchmark')
        if label in labelled:
            labelled[label][0] += 1
            labelled[label][1] += bool(found)
        flagged += bool(found)
        wrong += any(plain_letters(sentence.text) not in plain_letters(text) for sentence in found)
        if found and label not in labelled:
            unlabelled.append(
                {'id': record['id'], 'label': label, 'sets': sorted({s.dataset for s in found})}
            )
            print(record['id'], *map(described, found), sep='\n    ')
    for name, (count, hits) in labelled.items():
        print(f'{name:14} {hits:,} of {count:,} labelled texts found')
    print(
        f'{flagged:,} texts flagged, {wrong} of them without the sentence, {len(unlabelled)} without a label'
    )
    total, hits = (sum(counts[i] for counts in labelled.values()) for i in (0, 1))
    result: dict[str, Any] = {'labelled': labelled, 'unlabelled': unlabelled}
    metrics = {
        'recall': hits / total,
        'precision': 1 - wrong / max(flagged, 1),
        'unlabelled': len(unlabelled),
    }
    publish('audit', result, options.quick, **metrics)


def abstracts(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob('*.jsonl.gz')):
        with gzip.open(path, 'rt', encoding='utf-8') as lines:
            yield from map(json.loads, lines)


def plain_letters(text: str) -> str:
    """The rule of the audit, character by character."""
    return ''.join(c for c in unicodedata.normalize('NFKD', text).casefold() if c.isalnum())


def described(sentence: AuditedSentence) -> str:
    return f'{sentence.dataset}/{sentence.split}: {sentence.text}'


if __name__ == '__main__':
    main()
