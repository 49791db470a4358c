"""Documents from the files of a corpus, read as a stream with bounded memory: a `Format` for each ending.

No record is skipped silently: what cannot be read becomes a record that says why, or raises InputError with file,
line and remedy; a file that is cut off, damaged or not what its `.md5` says raises BrokenFile.
"""

import dataclasses
import glob
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from lxml import etree

from bioptimus_jax.config.plugins import Table
from bioptimus_jax.corpus import (
    annotated,
    bioc,
    columns,
    dates,
    europe,
    jats,
    jsons,
    markup,
    medline,
    parquet,
    plain,
    stored,
    tagged,
)
from bioptimus_jax.corpus.config import Corpus
from bioptimus_jax.corpus.content import fields_asked
from bioptimus_jax.corpus.documents import Document
from bioptimus_jax.corpus.lines import lines, peeked
from bioptimus_jax.corpus.newest import Identities, standing
from bioptimus_jax.corpus.records import SURROGATE, BadRecord, Record
from bioptimus_jax.corpus.rows import from_rows, text_fields_of
from bioptimus_jax.corpus.stored import Advance
from bioptimus_jax.errors import BrokenFile, ConfigError, InputError
from bioptimus_jax.sets.folders import OF_WORDS
from bioptimus_jax.sets.quoting import is_quoted
from bioptimus_jax.sets.tagged import tagged_columns
from bioptimus_jax.storage import tables
from bioptimus_jax.storage.files import by_numbers

PUBMED_NAME = re.compile(r'pubmed\d\dn\d{4,}\.xml(\.gz)?')
# The records of a file in order, from its path, the prefix of ids that it does not give itself, and the settings.
Read = Callable[[Path, str, Corpus, Advance], Iterator[Record]]


@dataclasses.dataclass(frozen=True)
class Format:
    """How files are read, whether .gz may come behind their ending, and whether records have versions."""

    read: Read
    gzipped: bool = True
    versioned: bool = False


def input_files(settings: Corpus, key: str = 'corpus.inputs') -> list[Path]:
    """The files of `settings.inputs`: patterns in their order, each expanded by the numbers in names, every file once.

    A folder saved by `datasets` means its files; the folder of an entity set means the files of its train split.

    Raises ConfigError for an empty list or a wrong `published_before`; InputError for a pattern without a match,
    a folder, another ending; messages name the `key` that the patterns come from.
    """
    dates.cut_off(settings)  # a mistake in it shall not wait for the first XML file
    if not settings.inputs:
        raise ConfigError(f'config.{key}: is empty; give files or globs that end in {_endings()}')
    files: dict[Path, Path] = {}
    for pattern in settings.inputs:
        for path in _matches(pattern, key):
            if SURROGATE.search(str(path)):
                raise InputError(f'{path}: its name is not UTF-8; rename it')
            if not ending_of(path):
                raise InputError(f'{path}: unknown kind of file; {key} takes {_endings()}')
            files.setdefault(path.resolve(), path)
    _require_order(list(files.values()), key)
    return list(files.values())


def _matches(pattern: str, key: str) -> list[Path]:
    """The files that a pattern of the settings means. Raises InputError for none."""
    given = Path(pattern).expanduser()
    if given.is_dir():
        if not (files := tables.saved_files(given) or annotated.training_files(given)):
            raise InputError(f'{pattern}: is a folder; name its files in {key}, as in {pattern}/*.jsonl.gz')
        return files
    # A name that is there is taken as it is: it may contain brackets, which mean a choice in a pattern.
    found = (
        [given]
        if given.is_file()
        else map(Path, sorted(glob.glob(str(given), recursive=True), key=by_numbers))
    )
    files = [path for path in found if path.is_file()]
    if not files:
        raise InputError(f'{pattern}: no such file, and no file matches it; correct --config.{key}')
    return files


def _require_order(paths: Sequence[Path], key: str) -> None:
    """PubMed numbers its files in the order in which they apply, updates after the baseline."""
    for before, path in itertools.pairwise(p for p in paths if PUBMED_NAME.fullmatch(p.name)):
        if by_numbers(path.name) < by_numbers(before.name):
            raise ConfigError(
                f'config.{key}: {path} comes after {before}; give PubMed files of one year only, in the order of '
                'their names, the baseline first'
            )


def read_inputs(settings: Corpus) -> Iterator[Document]:
    """The documents of all input files in order, of each id the one that stands, as in a corpus.

    Files whose records have versions are read twice: which one stands is known when all are read. Raises InputError,
    for a bad record too.
    """
    files = list(named_files(input_files(settings)))
    identities = [identities_in(path, prefix, settings) for path, prefix in files]
    for (path, prefix), stands in zip(files, standing(identities), strict=True):
        yield from documents_in(path, prefix, settings, stands)


def identities_in(path: Path, prefix: str, settings: Corpus) -> Identities:
    """What decides which records of a file stand; empty where its format knows neither versions nor deletions.

    Raises InputError, for a bad record too.
    """
    ending = ending_of(path)
    if not (ending and FORMATS[ending].versioned):
        return Identities.of(())
    records, said = _good_records(path, prefix, settings), list[Record]()
    for record in records:
        said.append(record)
        if record.reason == 'form':
            continue
        if not record.version and record.reason != 'deletion':
            return Identities.of(())  # a form that knows none; the others of the file are like the first
        break
    return Identities.of(itertools.chain(said, records))


def documents_in(path: Path, prefix: str, settings: Corpus, stands: np.ndarray) -> Iterator[Document]:
    """The documents of a file in order; `stands` says of every record whether it stands, and is empty where all do.

    Raises InputError, for a bad record too.
    """
    for number, record in enumerate(_good_records(path, prefix, settings)):
        if not record.reason and (not len(stands) or stands[number]):
            yield Document(record.id, record.text, path.name)


def _good_records(path: Path, prefix: str, settings: Corpus) -> Iterator[Record]:
    for record in read_file(path, prefix, dataclasses.replace(settings, on_bad_record='skip')):
        if record.reason == 'bad_record':
            raise InputError(f'{path}: {record.note}; correct or remove it')
        yield record


def named_files(paths: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    """Files and the prefix of ids that their format does not give: the stem, numbered from the second of a name on.

    Files of the same name may lie in two folders; ids differ, whatever the folders are called.
    """
    stems: Counter[str] = Counter()
    for path in paths:
        stem = path.name.removesuffix('.gz').removesuffix(ending_of(path))
        stems[stem] += 1
        yield path, stem if stems[stem] == 1 else f'{stem}~{stems[stem]}'


def read_file(
    path: Path, prefix: str, settings: Corpus, advance: Advance = lambda stored_bytes: None
) -> Iterator[Record]:
    """The records of one file in order; `advance` is told the stored bytes that were consumed.

    White space is squeezed; paragraphs and text fields stay apart by a line break. A bad record says so, or raises
    InputError if `on_bad_record` is `fail`. Raises BrokenFile, too, after the records before the damage.
    """
    stored.check_md5(path)
    for record in FORMATS[ending_of(path)].read(path, prefix, settings, advance):
        if record.reason == 'bad_record' and settings.on_bad_record == 'fail':
            raise InputError(
                f'{path}: {record.note}; correct it, or leave such records out with --config.corpus.on_bad_record=skip'
            )
        if record.kind and record.kind in settings.leave_out and not record.reason:
            record = record._replace(text='', reason=record.kind)
        yield record


def ending_of(path: Path) -> str:
    """The ending of `FORMATS` that a file has, without .gz; empty where it has none of them."""
    bare = path.name.removesuffix('.gz')
    suffix = Path(bare).suffix
    return suffix if suffix in FORMATS and (FORMATS[suffix].gzipped or bare == path.name) else ''


def _endings() -> str:
    return ', '.join(f'{ending}[.gz]' if one.gzipped else ending for ending, one in FORMATS.items())


def _xml(path: Path, prefix: str, settings: Corpus, advance: Advance) -> Iterator[Record]:
    """Records of XML, read as what its outermost element says that it is."""
    try:
        with stored.opened(path, longest=markup.LONGEST_RECORD) as source:
            root = markup.root_of(source.stream)
    except etree.XMLSyntaxError as error:
        raise markup.broken(path, 0, error) from error
    except BadRecord as error:
        raise BrokenFile(f'{path}: {error}; take it out of the inputs') from error
    if root not in ROOTS:
        raise BrokenFile(
            f"{path}: is XML, but not PubMed's nor an article in JATS, BioC, or an answer of Europe PMC or by OAI-PMH "
            f'(it begins with <{root}>); take it out of the inputs'
        )
    yield from ROOTS[root](path, prefix, settings, advance)


def _table(path: Path, prefix: str, settings: Corpus, advance: Advance) -> Iterator[Record]:
    asked = fields_asked(settings.content)
    rows = parquet.rows(
        path, lambda names, texts: text_fields_of(names, texts, settings), settings.id_field, advance, asked
    )
    return from_rows(path, 'row', rows, settings)


def _tsv(path: Path, prefix: str, settings: Corpus, advance: Advance) -> Iterator[Record]:
    sample, found = peeked(lines(path, settings.encoding, advance), annotated.SAMPLE)
    if asked := tagged_columns(line for _, line in sample):
        return annotated.sentences(path, found, asked, prefix, settings)
    cells = (
        columns.quoted(path, found, '\t') if is_quoted(line for _, line in sample) else columns.tabbed(found)
    )
    return columns.read(path, cells, prefix, settings)


def _csv(path: Path, prefix: str, settings: Corpus, advance: Advance) -> Iterator[Record]:
    sample, found = peeked(lines(path, settings.encoding, advance), columns.SAMPLE)
    mark, guessed = columns.delimiter_of([line for _, line in sample])
    if guessed:
        yield Record('', reason='form', note=f'its cells end at {mark!r}')
    yield from columns.read(path, columns.quoted(path, found, mark), prefix, settings, even=True)


FORMATS = Table(
    'FORMATS',
    {
        '.xml': Format(_xml, versioned=True),
        '.nxml': Format(jats.read_file, versioned=True),
        '.tar': Format(jats.read_packed, versioned=True),
        '.jsonl': Format(jsons.read, versioned=True),
        '.json': Format(jsons.read, versioned=True),
        '.nbib': Format(tagged.read, versioned=True),
        '.txt': Format(plain.read, versioned=True),
        **dict.fromkeys(('.pubtator', '.PubTator'), Format(plain.read)),
        **dict.fromkeys(OF_WORDS, Format(annotated.read)),
        '.tsv': Format(_tsv),
        '.csv': Format(_csv),
        '.parquet': Format(_table, gzipped=False),
        '.arrow': Format(_table, gzipped=False),
    },
)
"""How files are read, by their ending."""
# The reader of XML by its outermost element.
ROOTS: dict[str, Read] = {
    **dict.fromkeys(medline.ROOTS, medline.read),
    jats.ARTICLE: jats.read_file,
    **dict.fromkeys(jats.SETS, jats.read_set),
    bioc.COLLECTION: bioc.read,
    europe.ANSWER: europe.read,
}
