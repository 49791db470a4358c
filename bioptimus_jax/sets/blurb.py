"""The five NER sets of BLURB: published counts of mentions, where the files come from, and what they must hold.

The files are those of Crichton et al. (2017), IOB2, from the repository of that paper. BLURB's authors took four sets
from there and made JNLPBA themselves from GENIA's files; the counts are the same in all three splits. They keep only
the letter of every tag, so that all sets have one type of entity. Four have one anyway; JNLPBA has five, and scores
with five types and with one are of different tasks: a set of this name is read as BLURB has it, types merged.
"""

import dataclasses
import re
from collections.abc import Mapping

from bioptimus_jax.config.plugins import Table
from bioptimus_jax.sets import texts, words
from bioptimus_jax.sets.config import ENTITIES

COMMIT = 'df0df02fae6dbb87d88ffcf323b9096528f06f84'
SOURCE = f'https://raw.githubusercontent.com/cambridgeltl/MTL-Bioinformatics-2016/{COMMIT}/data'

# Ends of names: jnlpba-typed keeps types apart, NAME-merged is any set with one type.
TYPED, ONE_TYPE = 'typed', 'merged'


@dataclasses.dataclass(frozen=True)
class Published:
    """A public set of entities.

    `mentions` in train, devel, test (Gu et al. 2021, Table 1; types merged; 0: not published); `in_files`: by split,
    what the public files are known to hold instead. `source`: where it comes from; `licence`: who may use it. Those of
    BLURB have their `folder` at SOURCE, and the SHA-256 of train.tsv, devel.tsv and test.tsv. `merged`: its files hold
    several types, which BLURB merges into one. `corpus`: other forms of it do not compare. `task`: a file of
    finetune/tasks.
    """

    name: str
    mentions: tuple[int, int, int]
    source: str = ''
    licence: str = ''
    folder: str = ''
    checksums: tuple[str, ...] = ()
    in_files: Mapping[str, int] = dataclasses.field(default_factory=dict)
    merged: bool = False
    corpus: str = ''
    task: str = ENTITIES


RECORDS = (
    Published(
        'bc5-chem',
        (5203, 5347, 5385),
        folder='BC5CDR-chem-IOB',
        checksums=(
            '165c4cd2efadd0caf1bb8f3c6bcd3acca199446bb3d55eb06d9137114c9a0b2d',
            '3f1df5cfcff95735663ffc37121fd3687e82b1e9a019bec0480491502652721b',
            '6fce42139a9d819151eff3ab8cb0eda6fbf861fd17d4cfe6be2123f010a3b6c5',
        ),
    ),
    Published(
        'bc5-disease',
        (4182, 4244, 4424),
        folder='BC5CDR-disease-IOB',
        checksums=(
            'd630dafe7dd67e21350cc3278dbdcfadcccbb2b63d0fda83b2427853988e5ad9',
            '8c3af95475029c2100c2b7c0108b2715bc700ac198c7a21d587f11f1d06b17bd',
            'a530bf9e17a4122b101b09cedd5f3cf8e6307d6a0093146c33b8de2e69ec0fa3',
        ),
        in_files={'devel': 4246},
    ),
    Published(
        'ncbi-disease',
        (5134, 787, 960),
        folder='NCBI-disease-IOB',
        checksums=(
            '58379baf4614b8d757d93dd7a21b202849ca99f9b9d71b49185523ff5443300c',
            'b4e1e7efcc2a35047bf2f3d281648357470e674f555d4a26a0049ac37d59cc61',
            '8f088ce45dc4746592188f9e69de3d89d87f3bb8f0ed8c4a287d018123fa148d',
        ),
    ),
    Published(
        'bc2gm',
        (15197, 3061, 6325),
        folder='BC2GM-IOB',
        checksums=(
            '46e17f4e1509483b82c03f27d6f0214020f738fb71704356fb3445eb824ab38d',
            '33a94577aa22f1e70ec9e02781a05baa4e1390e866d28bf2b344888e4e3d4103',
            '30d7a4f571ca8ed22a044528063ba5d0388d666d8b8b329733d6927e5fb30764',
        ),
    ),
    Published(
        'jnlpba',
        (46750, 4551, 8662),
        folder='JNLPBA',
        checksums=(
            'eb39b9e83089e2a7a05505012247b442a89f577b1b19fe55cf12ca6f0e00db84',
            '462b09bc79a4dd69cec2e70b6041f54383b4b94892d2ee971a587fdc74caae80',
            '87c9b8f1f7fcf94add38c16088203d4ddf35c2f61eb2c7e61240c738d8dd9d35',
        ),
        merged=True,
        corpus='JNLPBA',
    ),
)
SETS = Table('ENTITY_SETS', {record.name: record for record in RECORDS})

GROUPS: dict[str, tuple[str, ...]] = {
    'entities': tuple(SETS.own),
    'PICO': ('ebmnlp',),
    'relations': ('chemprot', 'ddi', 'gad'),
    'similarity': ('biosses',),
    'documents': ('hoc',),
    'questions': ('pubmedqa', 'bioasq'),
}
"""BLURB's tasks and their sets. Its score is the mean over tasks."""
MEMBERS = tuple(name for sets in GROUPS.values() for name in sets)


def record_of(name: str) -> Published | texts.Published | words.Published | None:
    """The record of BLURB's set that a folder's name means; None for others, and for JNLPBA with its types."""
    return SETS.get(set_of(name)) or texts.published(name) or words.published(name)


def set_of(name: str) -> str:
    """Which of the five a folder's name means, as bc5-chem for BC5CDR-chem-IOB; empty for none."""
    name = plain(name).replace('bc5cdr', 'bc5')
    return name if name in SETS else ''


def plain(name: str) -> str:
    """The name of a folder without what says how its files are written, as s800 for S800-IOB."""
    return re.sub(r'[-_]iob2?$', '', name.lower()).replace('_', '-')


def true_name(name: str, types: int) -> str:
    """What the set of a record is called, by the number of its types: scores of JNLPBA's five, as they were made
    before its types were merged, are not those of BLURB's set."""
    return f'{name}-{TYPED}' if types > 1 and (known := SETS.get(set_of(name))) and known.merged else name
