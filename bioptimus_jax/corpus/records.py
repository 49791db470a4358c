"""What the readers of all formats give."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Record:
    """What a file says: a document, or why it is none.

    `version` counts a PubMed record's versions from 1 and is 0 where a format knows none. `reason` is empty for a
    document; `deletion` takes back what came before under this id, in this version or (0) in all; `bad_record`
    explains itself in `note`. Without abstract, too new or undated it has no text.
    """

    id: str
    text: str = ''
    version: int = 0
    reason: str = ''
    note: str = ''


class BadRecord(Exception):
    """A record that cannot be read; the message says what is wrong with it, not where it is."""
