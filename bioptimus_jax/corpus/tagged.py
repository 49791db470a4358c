"""PubMed's own tagged text (.nbib, format PubMed): lines as `AB  - Some text`, a record after the other."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from bioptimus_jax.corpus.config import Corpus
from bioptimus_jax.corpus.dates import cut_off, reason_of_dates, span_in
from bioptimus_jax.corpus.lines import Lines, lines
from bioptimus_jax.corpus.medline import YEAR, abstract_of, kind_of, title_of
from bioptimus_jax.corpus.records import BadRecord, Record, is_number, squeezed
from bioptimus_jax.corpus.stored import Advance

TAGGED = re.compile(r'([A-Z][A-Z0-9]{1,3}) {0,2}- ?(.*)')
BEGINNING = re.compile(r'PMID {0,2}- ?\d')
FIELDS = {'mesh': ('MH',), 'journal': ('JT', 'TA'), 'type': ('PT',), 'keyword': ('OT',)}
"""What config.corpus.content may ask for -> the tags that say it; and the year, out of DP."""
QUALIFIED = ('mesh', 'keyword')
"""Fields in which a star marks what an article is about; behind a stroke a heading has its qualifiers."""
KIND_OF_BOND = {
    'RIN': 'retracted',
    'RRI': 'retracted',
    'ROF': 'retraction',
    'PROF': 'retraction',
    'ECF': 'concern',
    'EFR': 'correction',
}
CONTINUED = '      '
# The part that `span_in` reads of a date such as 20230105, or 2023/01/05 10:00 for the way into PubMed.
COMPACT = re.compile(r'^(\d{4})[/-]?(\d\d)[/-]?(\d\d)\b.*')
Fields = dict[str, list[str]]


def read(path: Path, prefix: str, settings: Corpus, advance: Advance) -> Iterator[Record]:
    """The records of a file of tagged text, as `records` gives them."""
    return records(lines(path, settings.encoding, advance), settings)


def records(numbered: Lines, settings: Corpus) -> Iterator[Record]:
    """A record for every citation, with its PMID as id and title and abstract as text, or with a reason.

    Labels of sections stand in the abstract and stay there. Everything else, as authors, addresses, headings and
    abstracts in other languages, is left out.
    """
    for number, fields in _citations(numbered):
        pmid = ''.join(fields.get('PMID', ())).strip()
        try:
            if isinstance(wrong := fields.get('?'), list):
                raise BadRecord(f'has a line that is neither tagged nor continued ({wrong[0][:40]!r})')
            if not is_number(pmid):
                raise BadRecord(f'has a PMID that is not a number ({pmid[:40]!r})')
            yield _record(str(int(pmid)), fields, settings)
        except BadRecord as error:
            yield Record('', reason='bad_record', note=f'line {number}: the record {error}')


def _citations(numbered: Iterable[tuple[int, str]]) -> Iterator[tuple[int, Fields]]:
    """The fields of every citation by their tags, and its first line; under `?` what is none."""
    start, fields, last = 0, Fields(), list[str]()
    for number, line in numbered:
        if not line.strip():
            continue
        found = None if line.startswith(CONTINUED) else TAGGED.match(line)
        if found and found[1] == 'PMID':
            if fields:
                yield start, fields
            start, fields = number, {}
        if found:
            last = fields.setdefault(found[1], [])
            last.append(found[2])
        elif line.startswith(CONTINUED) and last:
            last[-1] += ' ' + line
        else:
            fields.setdefault('?', []).append(line)
            start = start or number
    if fields:
        yield start, fields


def _record(pmid: str, fields: Fields, settings: Corpus) -> Record:
    abstract = '\n'.join(filter(None, (abstract_of(squeezed(text)) for text in fields.get('AB', ()))))
    if not abstract:
        return Record(pmid, version=1, reason='no_abstract')
    written = [text for tag in ('DP', 'DEP') for text in fields.get(tag, ())] or fields.get('EDAT', [])
    kind = kind_of(fields.get('PT', ()), (bond for tag, bond in KIND_OF_BOND.items() if tag in fields))
    days = [span_in(COMPACT.sub(r'\1 \2 \3', text)) for text in written]
    if reason := reason_of_dates(days, cut_off(settings)):
        return Record(pmid, version=1, reason=reason, kind=kind)
    title = title_of(squeezed(' '.join(fields.get('TI') or fields.get('BTI') or ())))
    told = {name: values for name, tags in FIELDS.items() if (values := _values(name, tags, fields))}
    if year := YEAR.search(' '.join(fields.get('DP', ()))):
        told['year'] = (year[0],)
    return Record(pmid, f'{title}\n{abstract}' if title else abstract, 1, kind=kind, fields=told)


def _values(name: str, tags: Iterable[str], fields: Fields) -> tuple[str, ...]:
    written = (squeezed(text) for tag in tags for text in fields.get(tag, ()))
    if name in QUALIFIED:
        written = ((text.partition('/')[0] if name == 'mesh' else text).strip('*') for text in written)
    return tuple(dict.fromkeys(written))
