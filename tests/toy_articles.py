"""Articles in JATS, archives of them as PMC gives them, and notes in the layout of MIMIC-III's NOTEEVENTS.csv."""

import csv
import io
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

DOCTYPE = (
    '<!DOCTYPE article PUBLIC "-//NLM//DTD JATS (Z39.96) Journal Archiving and Interchange DTD v1.2 20190208//EN" '
    '"JATS-archivearticle1.dtd">'
)
COLUMNS = (
    'ROW_ID SUBJECT_ID HADM_ID CHARTDATE CHARTTIME STORETIME CATEGORY DESCRIPTION CGID ISERROR TEXT'.split()
)


def article(
    pmc: str = '1',
    body: str = '<p>It is a paragraph of an article.</p>',
    abstract: str = '',
    title: str = 'A title',
    meta: str = '',
    after: str = '',
    attributes: str = '',
    ids: str | None = None,
) -> str:
    """An article; `abstract` and `meta` are XML within article-meta, `after` is XML behind the body."""
    ids = f'<article-id pub-id-type="pmc">{pmc}</article-id>' if ids is None else ids
    return (
        '<article xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:mml="http://www.w3.org/1998/Math/MathML"'
        f'{attributes}><front><journal-meta><journal-id>J</journal-id></journal-meta><article-meta>{ids}'
        f'<title-group><article-title>{title}</article-title></title-group>{meta}{abstract}</article-meta></front>'
        f'<body>{body}</body>{after}</article>'
    )


def packed(path: Path, entries: Mapping[str, bytes | str], form: int = tarfile.GNU_FORMAT) -> Path:
    """A tar archive of these files, gzipped where its name says so."""
    with tarfile.open(path, 'w:gz' if path.suffix == '.gz' else 'w', format=form) as made:
        for name, content in entries.items():
            content = content.encode() if isinstance(content, str) else content
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            made.addfile(entry, io.BytesIO(content))
    return path


def note(
    row: int | str = 1, text: str = 'A note of some words.', category: str = 'ECG', error: str = ''
) -> list:
    """The cells of a note."""
    return [row, 7, 8, '2151-07-16', '', '', category, 'Report', '', error, text]


def noted(path: Path, rows: Sequence[Sequence], columns: Sequence[str] = COLUMNS, **form) -> Path:
    """A table of notes, quoted as MIMIC's is: texts, and no numbers."""
    with open(path, 'w', encoding='utf-8', newline='') as file:
        csv.writer(file, **{'quoting': csv.QUOTE_NONNUMERIC, 'lineterminator': '\n', **form}).writerows(
            [columns, *rows]
        )
    return path
