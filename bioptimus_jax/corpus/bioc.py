"""BioC, XML or JSON, as PMC, PubMed and PubTator give it: documents in passages that say what they are."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bioptimus_jax.corpus.config import Corpus
from bioptimus_jax.corpus.dates import cut_off, reason_of_dates, span_in
from bioptimus_jax.corpus.pieces import elements
from bioptimus_jax.corpus.records import BadRecord, Record, is_number, squeezed
from bioptimus_jax.corpus.stored import Advance
from bioptimus_jax.storage.files import JsonObject

COLLECTION = 'collection'
# Sections of which nothing is read, as of an article in JATS.
APART = frozenset(
    'REF TABLE ACK_FUND AUTH_CONT COMP_INT SUPPL ABBR APPENDIX REVIEW_INFO KEYWORD FOOTNOTE'.split()
)
NOT_READ = re.compile('ref|table|table_foot.*|foot.*|kwd.*|keyword.*')
Passages = Iterable[tuple[Mapping[str, str], str]]


def read(path: Path, prefix: str, settings: Corpus, advance: Advance) -> Iterator[Record]:
    """A record for every document of a collection in XML. Raises BrokenFile for damage, as `medline.read`."""
    for number, document in enumerate(elements(path, settings, advance, ('document',)), 1):
        if isinstance(document, BadRecord):
            yield Record('', reason='bad_record', note=f'document {number} {document}')
            continue
        passages = (
            ({i.get('key', ''): i.text or '' for i in p.iterchildren('infon')}, _text(p))
            for p in document.iterchildren('passage')
        )
        yield _record(number, document.findtext('id') or '', passages, settings)


def of_json(number: int, document: Any, settings: Corpus) -> Record:
    """The record of a document in JSON."""
    passages = document.get('passages') if isinstance(document, dict) else None
    if not isinstance(passages, list) or not all(isinstance(p, dict) for p in passages):
        return Record('', reason='bad_record', note=f'document {number} has no passages')
    found = ((p['infons'] if isinstance(p.get('infons'), dict) else {}, _text_of_json(p)) for p in passages)
    return _record(number, str(document.get('id') or ''), found, settings)


def _text(passage: Any) -> str:
    # Texts of a passage, or of its sentences where it is cut into these.
    return ' '.join(text.text or '' for text in passage.iter('text') if text.getparent().tag != 'annotation')


def _text_of_json(passage: JsonObject) -> str:
    sentences = passage.get('sentences')
    parts = sentences if isinstance(sentences, list) and sentences and not passage.get('text') else [passage]
    return ' '.join(str(part.get('text') or '') for part in parts if isinstance(part, dict))


def _record(number: int, id: str, passages: Passages, settings: Corpus) -> Record:
    lines: list[str] = []
    title, pmc, years = '', '', list[str]()
    for infons, text in passages:
        kind = _kind(infons)
        pmc = pmc or str(infons.get('article-id_pmc', '')).removeprefix('PMC')
        if kind and infons.get('year'):  # a reference has the year of another article
            years.append(str(infons['year']))
        line = squeezed(text).replace('\n', ' ')
        if kind == 'title':
            title = title or line
        elif line and (kind in settings.article_parts or (kind == 'label' and settings.section_labels)):
            lines.append(line)
    id = f'PMC{int(pmc)}' if is_number(pmc) else id.strip()
    if not id:
        return Record('', reason='bad_record', note=f'document {number} has no id')
    if not lines:
        return Record(id, version=1, reason='no_text')
    if reason := reason_of_dates([span_in(year) for year in years], cut_off(settings)):
        return Record(id, version=1, reason=reason)
    if title and 'title' in settings.article_parts:
        lines.insert(0, title)
    return Record(id, '\n'.join(lines), 1)


def _kind(infons: Mapping[str, str]) -> str:
    """A part of `article_parts`, `label` for the title of a section, or empty for what is not read."""
    kind = str(infons.get('type', '')).casefold()
    section = str(infons.get('section_type', '')).upper()
    if 'caption' in kind:
        return 'captions'
    if section in APART or NOT_READ.fullmatch(kind):
        return ''
    if section == 'TITLE' or (kind in ('front', 'title') and not section):
        return 'title'
    if 'title' in kind:
        return 'label'
    return 'abstract' if section == 'ABSTRACT' or kind == 'abstract' else 'paragraphs'
