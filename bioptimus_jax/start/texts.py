"""What a look into the texts of a corpus tells: how many words there are, and some of the documents."""

import dataclasses
import shlex
from collections.abc import Sequence
from pathlib import Path

from bioptimus_jax.corpus.config import Corpus
from bioptimus_jax.corpus.newest import Identities, standing
from bioptimus_jax.corpus.readers import input_files, named_files, read_file
from bioptimus_jax.corpus.records import Record
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.hosts.remote.store import is_remote
from bioptimus_jax.text.words import count_words

FILES = 4
"""Files that are looked into, evenly chosen of all."""
CHARACTERS = 2_000_000
"""Characters of each text source that are read."""


@dataclasses.dataclass(frozen=True)
class TextSample:
    """`words` in all files, estimated by their sizes unless `counted`; `records`: documents that were read."""

    words: float
    counted: bool
    records: Sequence[Record]

    @property
    def sample(self) -> list[str]:
        """The texts of the documents that were read."""
        return [record.text for record in self.records]

    def said(self) -> str:
        """How many words there are, in a phrase that says whether they were counted."""
        how = 'counted' if self.counted else 'estimated from a sample by the size of the files'
        return f'{float(f"{self.words:.2g}") if not self.counted else self.words:,.0f} words ({how})'


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
    """A look into the files of `settings.inputs`.

    Raises ConfigError and InputError as stage `corpus` does, and InputError where there is no text at all.
    """
    files = input_files(settings)
    chosen = files[:: -(-len(files) // FILES)]
    beginnings = [_beginning(path, prefix, settings) for path, prefix in named_files(chosen)]
    # Only what was read can tell of versions and deletions.
    stand = standing([Identities.of(one.records) for one in beginnings])
    sample = [
        record
        for one, stands in zip(beginnings, stand, strict=True)
        for record, stays in zip(one.records, stands.tolist(), strict=True)
        if stays and not record.reason
    ]
    words = sum(count_words(record.text) for record in sample)
    stored = sum(one.stored for one in beginnings)
    whole = len(chosen) == len(files) and all(one.whole for one in beginnings)
    if not words:
        raise InputError(f'{chosen[0]}: holds no document with text; correct the texts or corpus.text_fields')
    size = sum(path.stat().st_size for path in files)
    return TextSample(float(words) if whole else words * size / stored, whole, sample)


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
