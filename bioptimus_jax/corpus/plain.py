"""Plain text, by its beginning: PubMed's tagged text, PMC's plain text, PubTator, words with tags, or paragraphs.

Other forms are refused.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from bioptimus_jax.corpus import annotated, tagged
from bioptimus_jax.corpus.config import Corpus
from bioptimus_jax.corpus.dates import undated, without_dates
from bioptimus_jax.corpus.lines import Lines, joined_documents, lines, paragraphs, peeked
from bioptimus_jax.corpus.records import Record, squeezed
from bioptimus_jax.corpus.stored import Advance
from bioptimus_jax.errors import BrokenFile
from bioptimus_jax.sets.standoff import PUBTATOR_TEXT
from bioptimus_jax.sets.tagged import tagged_columns

PART = re.compile(r'==== (Front|Body|Refs|Back)\b.*')
FEWEST_LINES, LONG_LINE = 10, 200
"""Lines that are so many, and on the mean so long, are more likely documents than parts of one paragraph."""
PMC_NAME = re.compile(r'PMC\d+')
LISTED = re.compile(r'1[.:] \S.*\b(?:18|19|20)\d\d\b')
PMID_LINE = re.compile(r'(?:DOI: \S+ +)?PMID: *\d+')
NOT_TEXT = (
    (
        re.compile(r'<\?xml|<!DOCTYPE|<html|<[A-Za-z-]+(?:Set|set)>|<article[ >]', re.IGNORECASE),
        'is XML or HTML',
        '.xml',
    ),
    (re.compile(r'[\[{]\s*\{?"'), 'is JSON', '.jsonl or .json'),
    (re.compile(r'TY {2}- |%0 |@\w+\{'), 'is a list of references', '.nbib, saved from PubMed anew'),
)


def read(path: Path, prefix: str, settings: Corpus, advance: Advance) -> Iterator[Record]:
    """The records of a file of plain text. Raises BrokenFile for what is no running text."""
    sample, whole = peeked(lines(path, settings.encoding, advance), annotated.SAMPLE)
    first = next((line.strip() for _, line in sample if line.strip()), '')
    if tagged.BEGINNING.match(first):
        return tagged.records(whole, settings)
    if PART.fullmatch(first):
        return _parts(whole, prefix, settings)
    if PUBTATOR_TEXT.fullmatch(first):
        return annotated.pubtator(whole, settings)
    if asked := tagged_columns(line for _, line in sample):
        return annotated.sentences(path, whole, asked, prefix, settings)
    for pattern, what, ending in NOT_TEXT:
        if pattern.match(first):
            raise BrokenFile(
                f'{path}: {what}, not running text; name it {ending}, or take it out of the inputs'
            )
    if LISTED.match(first) and any(PMID_LINE.match(line) for _, line in sample):
        raise BrokenFile(
            f"{path}: is PubMed's list of abstracts, with authors and addresses among the texts; save it from PubMed "
            'in format PubMed (.nbib), or fetch it as XML'
        )
    return _paragraphs(sample, whole, prefix, settings)


def _paragraphs(
    sample: Sequence[tuple[int, str]], whole: Lines, prefix: str, settings: Corpus
) -> Iterator[Record]:
    """Documents of the texts between empty lines; says so where a line may have been meant as a document."""
    lengths = [len(line.strip()) for _, line in sample]
    yield from without_dates(settings)
    if len(lengths) >= FEWEST_LINES and min(lengths) and sum(lengths) > LONG_LINE * len(lengths):
        note = 'text without an empty line is one paragraph; if a line is a document, put empty lines between them'
        yield Record('', reason='form', note=note)
    yield from joined_documents(paragraphs(whole), prefix, settings)


def _parts(numbered: Iterable[tuple[int, str]], prefix: str, settings: Corpus) -> Iterator[Record]:
    """The body of an article in PMC's plain text, a line a paragraph.

    Its front has title, authors, addresses and abstract in one, so it is left out as the references are.
    """
    part, body = '', list[str]()
    for _, line in numbered:
        if found := PART.fullmatch(line.strip()):
            part = found[1]
        elif part == 'Body' and line.strip():
            body.append(squeezed(line))
    note = "PMC's plain text; the body is read, but not the front with its authors and abstract, nor the references"
    yield Record('', reason='form', note=note)
    text = '\n'.join(body) if 'paragraphs' in settings.article_parts else ''
    is_pmc = PMC_NAME.fullmatch(prefix)
    reason = undated(text, settings)
    yield Record(prefix if is_pmc else f'{prefix}-0', '' if reason else text, int(bool(is_pmc)), reason)
