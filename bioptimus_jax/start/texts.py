"""What a look into the texts of a corpus tells: how many words it has and would keep, and some of the documents."""

import dataclasses
import itertools
import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow

from bioptimus_jax.corpus.audit import Auditor
from bioptimus_jax.corpus.config import Audit, Corpus
from bioptimus_jax.corpus.readers import input_files, named_files, read_file
from bioptimus_jax.corpus.records import Record
from bioptimus_jax.corpus.resolve import COLUMNS as DECISIVE
from bioptimus_jax.corpus.resolve import among_others
from bioptimus_jax.corpus.sift import COLUMNS, REASONS, Judge, check_settings
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.hosts.remote.store import is_remote
from bioptimus_jax.progress.console import numbered

FILES = 4
"""Files that are looked into, evenly chosen of all: the first, the last and between, which may be of other years."""
CHARACTERS = 2_000_000
"""Characters of each text source that are read."""


@dataclasses.dataclass(frozen=True)
class TextSample:
    """`words` in all files and, of those, `in_corpus` with copies, and the `documents` that these are of: estimated by
    sizes of files unless `counted`.

    `records`: documents that were read; `kept`: those of them that the corpus would have.
    """

    words: float
    in_corpus: float
    documents: float
    counted: bool
    records: Sequence[Record]
    kept: Sequence[Record]

    @property
    def sample(self) -> list[str]:
        """The texts of the documents that were read and are kept."""
        return [record.text for record in self.kept]

    def said(self) -> str:
        """How many words there are, in a phrase that says whether they were counted."""
        how = 'counted' if self.counted else 'estimated from a sample by the size of the files'
        kept = (
            '' if self.in_corpus == self.words else f', {self._rounded(self.in_corpus)} in the corpus of them'
        )
        return f'{self._rounded(self.words)} words ({how}) in the texts at hand{kept}'

    def _rounded(self, words: float) -> str:
        return f'{words if self.counted else float(f"{words:.2g}"):,.0f}'


def words_at_hand(settings: Corpus) -> TextSample | None:
    """A look into the texts of a configuration, where they are files of this machine and can be read; else None."""
    if not settings.inputs or any(is_remote(place) for place in settings.inputs):
        return None
    try:
        return look_into(settings)
    except (ConfigError, InputError):  # a plan needs no texts; stage `corpus` says what is wrong with them
        return None


def local_texts(given: str) -> tuple[str, ...]:
    """Files and globs from a text with spaces between. Raises ConfigError and InputError unless they are files here."""
    try:
        patterns = tuple(shlex.split(given))
    except ValueError as error:
        raise ConfigError(f'--texts={given}: {error}; close the quotation') from error
    for pattern in patterns:
        if '://' in pattern:
            raise InputError(
                f'{pattern}: looking into texts needs local files; give some of them as files, and set '
                'config.corpus.inputs in the config'
            )
    input_files(Corpus(inputs=patterns))
    return patterns


def look_into(settings: Corpus) -> TextSample:
    """A look into the files of `settings.inputs`, judged as stage `corpus` does it, but for the audit, near duplicates
    and the choice of `max_words`.

    Raises ConfigError and InputError as stage `corpus` does, and InputError where there is no text at all, or none that
    is kept.
    """
    check_settings(settings)
    files = input_files(settings)
    chosen = [files[round(at)] for at in np.linspace(0, len(files) - 1, min(FILES, len(files)))]
    beginnings = [_beginning(path, prefix, settings) for path, prefix in named_files(chosen)]
    records = [record for one in beginnings for record in one.records]
    rows = pyarrow.Table.from_pylist(Judge(settings, Auditor(Audit())).rows(records), COLUMNS)
    column = {name: rows[name].to_numpy() for name in DECISIVE}
    verdicts = among_others(column, np.cumsum([len(one.records) for one in beginnings]))
    verdicts.leave_out_without_copies()
    # Only what was read can tell of versions and deletions.
    stands_N = [verdicts.stands(number) and not record.reason for number, record in enumerate(records)]
    kept_N = verdicts.reason_N == 0
    words = sum(count for count, stands in zip(column['words'].tolist(), stands_N, strict=True) if stands)
    in_corpus = int((column['words'] * verdicts.times())[kept_N].sum())
    if not words:
        raise InputError(f'{chosen[0]}: holds no document with text; correct the texts or corpus.text_fields')
    if not in_corpus:
        reasons = Counter(REASONS[code] for code in verdicts.reason_N.tolist())
        raise InputError(
            f'{chosen[0]}: of {numbered(len(records), "document")} that were looked at none stays '
            f'({", ".join(f"{n:,} {reason}" for reason, n in reasons.items())}); give other texts, or change what '
            'config.corpus leaves out'
        )
    stored, size = sum(one.stored for one in beginnings), sum(path.stat().st_size for path in files)
    whole = len(chosen) == len(files) and all(one.whole for one in beginnings)
    scale = 1.0 if whole else size / stored
    return TextSample(
        words * scale,
        in_corpus * scale,
        kept_N.sum() * scale,
        whole,
        list(itertools.compress(records, stands_N)),
        list(itertools.compress(records, kept_N)),
    )


@dataclasses.dataclass(frozen=True)
class Beginning:
    """Records from the beginning of a file, the stored bytes that they took, and whether that is all of it."""

    records: Sequence[Record]
    stored: int
    whole: bool


def _beginning(path: Path, prefix: str, settings: Corpus) -> Beginning:
    records: list[Record] = []
    characters = stored = complete = 0

    # Words are scaled up by stored bytes, so only texts count that end before the last report of bytes.
    def advance(read: int) -> None:
        nonlocal stored, complete
        stored, complete = stored + read, len(records)

    for record in read_file(path, prefix, settings, advance):
        records.append(record)
        characters += len(record.text)
        if characters > CHARACTERS and complete:
            return Beginning(records[:complete], stored, whole=False)
    return Beginning(records, path.stat().st_size, whole=True)
