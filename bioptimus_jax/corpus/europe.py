"""Europe PMC's answers to a search, in XML with resultType=core: titles and abstracts. Its articles are JATS."""

import re
from collections.abc import Iterator
from pathlib import Path

from lxml import etree, html

from bioptimus_jax.corpus.config import Corpus
from bioptimus_jax.corpus.dates import cut_off, reason_of_dates, span_in
from bioptimus_jax.corpus.medline import kind_of, title_of
from bioptimus_jax.corpus.pieces import elements
from bioptimus_jax.corpus.records import BadRecord, Record, squeezed
from bioptimus_jax.corpus.stored import Advance

ANSWER, RESULT = 'responseWrapper', 'result'
LABEL = re.compile(r'<h4>(.*?)</h4>', re.DOTALL)
# A sign for "less than", which the answers do not escape; what else begins with it is markup.
LESS = re.compile(r'<(?!/?[a-z][\w:.-]*(?:\s+[\w:.-]+\s*=[^<>]*)?\s*/?>|!--)', re.IGNORECASE)
BLOCK = re.compile(r'</?(?:h\d|p|br|ul|ol|li|dl|dt|dd|div)\b[^<>]*>', re.IGNORECASE)  # it parts words


def read(path: Path, prefix: str, settings: Corpus, advance: Advance) -> Iterator[Record]:
    """A record for every result, with its PMID, PMC id or id as id. Raises BrokenFile for damage, as `medline.read`."""
    for number, result in enumerate(elements(path, settings, advance, (RESULT,)), 1):
        try:
            if isinstance(result, BadRecord):
                raise result
            yield _record(result, settings)
        except BadRecord as error:
            yield Record('', reason='bad_record', note=f'result {number} {error}')


def _record(result: etree._Element, settings: Corpus) -> Record:
    id = next(filter(None, (result.findtext(name) for name in ('pmid', 'pmcid', 'id'))), '').strip()
    if not id:
        raise BadRecord('has no id')
    abstract = _plain(result.findtext('abstractText') or '', settings.section_labels)
    if not abstract:
        return Record(id, version=1, reason='no_abstract')
    kind = kind_of(one.text or '' for one in result.iterfind('pubTypeList/pubType'))
    written = [result.findtext(name) or '' for name in ('firstPublicationDate', 'pubYear')]
    if reason := reason_of_dates([span_in(text.replace('-', ' ')) for text in written], cut_off(settings)):
        return Record(id, version=1, reason=reason, kind=kind)
    title = title_of(_plain(result.findtext('title') or '', False))
    return Record(id, f'{title}\n{abstract}' if title else abstract, 1, kind=kind)


def _plain(markup: str, labels: bool) -> str:
    """Text out of the HTML that titles and abstracts are written in; parts of an abstract are lines."""
    parts = LABEL.split(markup)  # text, label, text, label ...
    lines = [_text(parts[0])]
    for label, part in zip(parts[1::2], parts[2::2], strict=True):
        text = _text(part)
        lines.append(f'{_text(label)}: {text}' if labels and text else text)
    return '\n'.join(line for line in lines if line)


def _text(markup: str) -> str:
    if not markup.strip():
        return ''
    markup = BLOCK.sub(' ', LESS.sub('&lt;', markup))
    return squeezed(html.fragment_fromstring(markup, create_parent=True).text_content()).replace('\n', ' ')
