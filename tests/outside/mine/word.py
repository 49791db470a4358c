"""Documents of a word processor (.docx): a file is a document, its paragraphs are lines."""

import zipfile

from lxml import etree

from bioptimus_jax.ext import Format, InputError, Record, squeezed

TEXT = '{http://schemas.openxmlformats.org/wordprocessingml/2006/main}'
LARGEST = 2**25  # bytes of XML that a file may unpack to


def read(path, prefix, settings, advance):
    """The record of a file. Raises InputError."""
    try:
        with zipfile.ZipFile(path) as packed:
            inside = packed.getinfo('word/document.xml')
            if inside.file_size > LARGEST:
                raise InputError(f'{path}: unpacks to {inside.file_size:,} bytes; split it')
            tree = etree.fromstring(
                packed.read(inside), etree.XMLParser(resolve_entities=False, no_network=True)
            )
    except (zipfile.BadZipFile, KeyError, etree.XMLSyntaxError) as error:
        raise InputError(f'{path}: is no .docx ({error}); save it again') from error
    paragraphs = (''.join(paragraph.itertext(f'{TEXT}t')) for paragraph in tree.iter(f'{TEXT}p'))
    advance(path.stat().st_size)
    yield Record(prefix, '\n'.join(filter(None, map(squeezed, paragraphs))))


FORMATS = {'.docx': Format(read, gzipped=False)}
