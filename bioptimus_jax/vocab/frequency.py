"""Words of the run's corpus and of a general one by how often they occur (paper, Figure 1).

The paper draws four classes and leaves their bounds open; ours are in `PER_MILLION`. A word is one of the
tokenizer's that has a letter: punctuation and numbers are counted for the vocabulary, but are no words of a field.
"""

import dataclasses
import itertools
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet

from bioptimus_jax.errors import InputError
from bioptimus_jax.records.vocabulary import ClassOfWords, CorpusWords, Frequency, WordCount
from bioptimus_jax.storage.files import atomic, write_json
from bioptimus_jax.text.words import bare_counts

FILE = 'frequency.json'
PER_MILLION = (100, 10, 1)
"""Lower bounds of the classes, occurrences in a million running words; the last class is what is left."""

CLASSES = (
    f'{PER_MILLION[0]} or more',
    *(f'{low} to {high}' for high, low in itertools.pairwise(PER_MILLION)),
    f'below {PER_MILLION[-1]}',
)
ABSENT = 'absent'
LEAST_STORED = 2
EXAMPLES = 20

WORDS = pyarrow.schema(
    [('word', pyarrow.string()), ('count', pyarrow.int64()), ('general_count', pyarrow.int64())]
)


def write(folder: Path, domain: Mapping[str, int], general: Mapping[str, int], share: float) -> None:
    """Write frequency.json (`classify`, and the share of documents counted), and words.parquet: what occurs twice or
    more in a corpus, frequent first."""
    known = domain.keys() | general.keys()
    counts = ((w, domain.get(w, 0), general.get(w, 0)) for w in known)
    rows = sorted((c for c in counts if max(c[1:]) >= LEAST_STORED), key=lambda c: (-c[1], -c[2], c[0]))
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    table = pyarrow.table(dict(zip(WORDS.names, map(list, columns), strict=True)), schema=WORDS)
    with atomic(folder / 'words.parquet', 'wb') as file:
        pyarrow.parquet.write_table(table, file, compression='zstd')
    write_json(folder / FILE, classify(domain, general, share).json())


def read(folder: Path) -> tuple[list[str], np.ndarray]:
    """The words of words.parquet and how often each was counted: int64 [words]. Raises InputError."""
    path = folder / 'words.parquet'
    try:
        table = pyarrow.parquet.read_table(path, columns=['word', 'count'])
    except (OSError, pyarrow.ArrowException) as error:
        raise InputError(f'{path}: cannot be read ({error}); run `bioptimus vocab --replace`') from error
    return table['word'].to_pylist(), table['count'].to_numpy()


def classify(domain: Mapping[str, int], general: Mapping[str, int], share: float = 1.0) -> Frequency:
    """Both corpora by class, from a share of their documents; without general words `domain` alone."""
    domain, general = bare_counts(domain), bare_counts(general)
    alone = Frequency(share_counted=share, per_million=tuple(PER_MILLION), domain=_by_class(domain))
    if not general:
        return alone
    totals = sum(domain.values()), sum(general.values())
    pairs: Counter[tuple[str, str]] = Counter()
    for word in domain.keys() | general.keys():
        here, there = domain.get(word, 0), general.get(word, 0)
        pairs[class_of(there, totals[1]), class_of(here, totals[0])] += 1
    every = (*CLASSES, ABSENT)
    lacking = sorted((w for w in domain if w not in general), key=lambda w: (-domain[w], w))
    return dataclasses.replace(
        alone,
        general=_by_class(general),
        cross={g: {d: pairs[g, d] for d in every if (g, d) != (ABSENT, ABSENT)} for g in every},
        examples=tuple(WordCount(w, domain[w]) for w in lacking[:EXAMPLES]),
    )


def class_of(count: int, total: int) -> str:
    """The class of a word that occurs `count` times among `total` running words."""
    if not count:
        return ABSENT
    # In whole numbers, so that no rounding decides about a count on a bound.
    return next(
        (name for name, low in zip(CLASSES, PER_MILLION, strict=False) if count * 1_000_000 >= low * total),
        CLASSES[-1],
    )


def _by_class(counts: Mapping[str, int]) -> CorpusWords:
    total = sum(counts.values())
    different, running = Counter(dict.fromkeys(CLASSES, 0)), Counter(dict.fromkeys(CLASSES, 0))
    for count in counts.values():
        name = class_of(count, total)
        different[name] += 1
        running[name] += count
    classes = {
        name: ClassOfWords(different[name], round(running[name] / max(total, 1), 6)) for name in CLASSES
    }
    return CorpusWords(total, len(counts), classes)
