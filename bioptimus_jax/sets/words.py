"""Sets with a class for every word: EBM PICO, in the form of BLURB's own script (Gu et al. 2021, section 4)."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Published:
    """A public set: its classes, documents and words with a class in train, devel, test, where it comes from, licence.

    One class a word: where participants, interventions and outcomes overlap, the files keep the last of them.
    """

    name: str
    types: tuple[str, ...]
    documents: tuple[int, int, int]
    words: tuple[int, int, int]
    source: str
    licence: str
    task: str = 'word_classes'


RECORDS = (
    Published(
        'ebmnlp',
        ('PAR', 'INT', 'OUT'),
        (3842, 960, 191),
        (339167, 87308, 16364),
        'EBM-NLP 2.00, starting spans',
        'none stated',
    ),
)
SETS = {record.name: record for record in RECORDS}


def published(name: str) -> Published | None:
    """The record that the name of a folder means, whatever its letters' case; ebm-pico is ebmnlp."""
    plain = name.lower().replace('-', '').replace('_', '').replace('ebmpico', 'ebmnlp')
    return SETS.get(plain)
