"""Forms that are known and not read: what to say of each, and what is read in their place."""

import re
from pathlib import Path

from bioptimus_jax.errors import InputError

READ = 'text, CoNLL, PubTator, BRAT, BioC, JSON, CSV, and tables in Parquet or Arrow'
PACKED = {
    b'BZh': 'compressed with bzip2; unpack it',
    b'\xfd7zXZ': 'compressed with xz; unpack it',
    b'\x28\xb5\x2f\xfd': 'compressed with zstd; unpack it',
    b'PK\x03\x04': 'an archive, as .zip, .docx and .xlsx are; save what is in it as .txt or .csv',
    b'%PDF': 'a PDF; save its text as .txt',
    b'\xd0\xcf\x11\xe0': 'a document of Office; save its text as .txt, or a table as .csv',
    b'{\\rtf': 'RTF; save its text as .txt',
    b'SQLite format 3': 'a database; export its table as .csv',
}
"""First bytes of a file, and what to say of it."""
ENDINGS = {
    '.spacy': "a DocBin of spaCy; write each Doc's to_json() as a line of .jsonl",
    '.xlsx': 'a workbook of Excel; save it as .csv',
    '.xls': 'a workbook of Excel; save it as .csv',
    '.pkl': 'a pickle, which could run anything; write a table with to_parquet',
    '.pickle': 'a pickle, which could run anything; write a table with to_parquet',
    '.yaml': 'YAML; write it as .json',
    '.yml': 'YAML; write it as .json',
    **dict.fromkeys(('.zip', '.tgz', '.tar', '.7z', '.rar'), 'an archive; unpack it'),
    **dict.fromkeys(('.bz2', '.xz', '.zst'), 'compressed; unpack it, or use gzip'),
    **dict.fromkeys(('.xmi', '.cas'), 'of UIMA; write its mentions as BRAT or BioC'),
}
"""Ending of a file -> what it is, and what to do."""
MARKUP = re.compile(
    r'\s*<(\?xml|!doctype|(html|head|body|article|document|doc|pubmedarticle|pmc)(\s+[\w:.-]+=|\s*/?>))',
    re.IGNORECASE,
)


def remedy_for(file: Path) -> str:
    """What a file in a form that is not read is, by its ending, and what to do; '' for others."""
    return ENDINGS.get(file.suffix.lower(), '')


def refuse_unread(file: Path) -> None:
    """Raise InputError for a file in a form that is not read, by its name."""
    if remedy := remedy_for(file):
        raise InputError(f'{file}: is {remedy}; read are {READ}')


def refuse_packed(place: str, content: bytes) -> None:
    """Raises InputError for a file that holds no text."""
    for first, said in PACKED.items():
        if content.startswith(first):
            raise InputError(f'{place}: is {said}; read are {READ}')
    begin = content[:4096]
    if 4 * begin.count(0) > len(begin):  # half of UTF-16; a few are read as blanks, wherever they stand
        raise InputError(f'{place}: is no text, but binary or UTF-16; save it as UTF-8; read are {READ}')
