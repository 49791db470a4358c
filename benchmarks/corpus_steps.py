"""What is timed in corpus.py: a function per variant that gives its step, for a process of its own.

A step that works on documents takes the next block of them and returns its bytes and the seconds of the work alone;
finding the input of a competitor (sentences for the tokenizer) is not timed. Only `finder` reads the stored documents
while it is timed, as the stage does.
"""

import functools
import itertools
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pubmed
from protocol import resident_mb

from bioptimus_jax.corpus.config import Near
from bioptimus_jax.corpus.documents import Document, open_documents
from bioptimus_jax.hosts.config import Runtime
from bioptimus_jax.hosts.workers import open_workers
from bioptimus_jax.rows.blocks import lay_out
from bioptimus_jax.rows.build import ENCODE_DOCUMENTS
from bioptimus_jax.rows.config import Rows
from bioptimus_jax.rows.packing import best_fit
from bioptimus_jax.rows.parts import document_parts
from bioptimus_jax.text.splitting import split_sentences
from bioptimus_jax.tokenizer import subwords
from bioptimus_jax.tokenizer.kinds import wordpiece
from bioptimus_jax.vocab import contexts, occurrences
from bioptimus_jax.vocab.build import read_new_tokens
from bioptimus_jax.vocab.sampling import Search

Step = Callable[[], dict[str, Any]]
Work = Callable[[int, int], Callable[[], Any]]  # of documents [start, stop): the work, ready to be timed
PER_TOKEN = 20
BATCH = 500
FINDER, TOKENIZER = 'finder', 'tokenizer'
COMPETITORS = (TOKENIZER, 'tokenizer_fast', 'plain_loop', 'ahocorasick_rs', 'pyahocorasick')
OTHER_STAGES = ('word_counts', 'signatures', 'rows')
ONE, TWO, MEMORY = 'one_worker', 'two_workers', 'memory'


def make_step(name: str, folder: Path, size: pubmed.Size) -> Step:
    """The step of a variant, warmed up where that matters."""
    os.environ['TOKENIZERS_PARALLELISM'] = 'false'  # one thread, as in a worker
    if name in (ONE, TWO):
        return _workers(1 if name == ONE else 2, folder, size)
    if name == MEMORY:
        return _memory(folder, size)
    return _timed(WORKS[name](folder), folder, size, warm=size.warm if name == FINDER else 1)


def _timed(work: Work, folder: Path, size: pubmed.Size, warm: int) -> Step:
    sizes = pubmed.facts(folder)['bytes']
    for block in range(warm):
        work(block * size.block, (block + 1) * size.block)()
    blocks = itertools.cycle(range(size.warm, size.blocks))

    def step() -> dict[str, Any]:
        block = next(blocks)
        ready = work(block * size.block, (block + 1) * size.block)
        started = time.perf_counter()
        ready()
        return {'seconds': time.perf_counter() - started, 'bytes': sizes[block]}

    return step


def finder_arguments(folder: Path) -> tuple:
    """What a worker of the stage is prepared with: documents, vocabulary, tokens to find, seed."""
    return open_documents(folder, 'train'), folder / 'vocab', read_new_tokens(folder / 'vocab'), 0


def _finder(folder: Path) -> Work:
    arguments = finder_arguments(folder)
    contexts.prepare_search(*arguments)
    search = Search(tokens=len(arguments[2]), k=PER_TOKEN)

    def work(start: int, stop: int) -> Callable[[], Any]:
        return lambda: search.add(*contexts.search_block(start, stop, PER_TOKEN, search.limits))

    return work


def _on_documents(function: Callable[[Sequence[Document]], Any], folder: Path) -> Work:
    source = open_documents(folder, 'train')

    def work(start: int, stop: int) -> Callable[[], Any]:
        return functools.partial(function, source.read(start, stop))

    return work


def _tokenizer(fast: bool, folder: Path) -> Work:
    """The sentences through the tokenizer, and nothing else."""
    tokenizer, source = subwords.load(folder / 'vocab'), open_documents(folder, 'train')
    encode = tokenizer.reader.encode_batch_fast if fast else tokenizer.reader.encode_batch

    def work(start: int, stop: int) -> Callable[[], Any]:
        sentences = [s for d in source.read(start, stop) for s in split_sentences(d.text)]
        batches = [sentences[i : i + BATCH] for i in range(0, len(sentences), BATCH)]

        def encoded() -> None:
            for batch in batches:
                encode(batch, add_special_tokens=False)

        return encoded

    return work


def plain_loop(tokenizer: Any, wanted: set[str], sentences: Sequence[str]) -> set[tuple[int, str]]:
    """(sentence, token) of every wanted token, one sentence after the other."""
    found = set()
    for number, sentence in enumerate(sentences):
        for token in tokenizer.reader.encode(sentence, add_special_tokens=False).tokens:
            if token in wanted:
                found.add((number, token))
    return found


def _plain(folder: Path) -> Work:
    tokenizer, wanted = subwords.load(folder / 'vocab'), set(read_new_tokens(folder / 'vocab'))

    def search(documents: Sequence[Document]) -> None:
        plain_loop(tokenizer, wanted, [s for d in documents for s in split_sentences(d.text)])

    return _on_documents(search, folder)


def _terms(folder: Path) -> list[str]:
    return sorted({wordpiece.KIND.text(token) for token in read_new_tokens(folder / 'vocab')})


def _rust_automaton(folder: Path) -> Work:
    """Raw text, lower case: terms as strings, also within words, so this finds something else."""
    import ahocorasick_rs

    automaton = ahocorasick_rs.AhoCorasick(_terms(folder), matchkind=ahocorasick_rs.MatchKind.LeftmostLongest)
    return _on_documents(
        lambda documents: [automaton.find_matches_as_indexes(d.text.lower()) for d in documents], folder
    )


def _c_automaton(folder: Path) -> Work:
    import ahocorasick

    automaton = ahocorasick.Automaton()
    for number, term in enumerate(_terms(folder)):
        automaton.add_word(term, number)
    automaton.make_automaton()
    return _on_documents(lambda documents: [list(automaton.iter(d.text.lower())) for d in documents], folder)


def _word_counts(folder: Path) -> Work:
    return _on_documents(
        lambda documents: wordpiece.KIND.count_words((d.text for d in documents), True), folder
    )


def _signatures(folder: Path) -> Work:
    from bioptimus_jax.corpus import near

    return _on_documents(lambda documents: near.signatures([d.text for d in documents], Near()), folder)


def _rows(folder: Path) -> Work:
    vocabulary, settings = subwords.load(folder / 'vocab'), Rows()

    def pack(documents: Sequence[Document]) -> None:
        batches = (documents[at : at + ENCODE_DOCUMENTS] for at in range(0, len(documents), ENCODE_DOCUMENTS))
        parts, _ = document_parts(batches, vocabulary, settings.max_document_pieces)
        rows = best_fit([len(part.tokens) for part in parts], settings.row_pieces)
        lay_out(parts, rows, settings.row_pieces)

    return _on_documents(pack, folder)


WORKS: dict[str, Callable[[Path], Work]] = {
    FINDER: _finder,
    TOKENIZER: functools.partial(_tokenizer, False),
    'tokenizer_fast': functools.partial(_tokenizer, True),
    'plain_loop': _plain,
    'ahocorasick_rs': _rust_automaton,
    'pyahocorasick': _c_automaton,
    'word_counts': _word_counts,
    'signatures': _signatures,
    'rows': _rows,
}


def prepared_and_warm(blocks: int, block: int, *arguments: Any) -> None:
    """What a worker prepares, and the first blocks searched: in a corpus without end no worker starts cold."""
    contexts.prepare_search(*arguments)
    for number in range(blocks):
        contexts.search_block(number * block, (number + 1) * block, PER_TOKEN, None)


def _workers(number: int, folder: Path, size: pubmed.Size) -> Step:
    """The stage's search by one worker or two, of new blocks: bytes and seconds from when each has given one."""
    arguments = finder_arguments(folder)
    warm = (size.warm, size.block, *arguments)
    pool = open_workers(Runtime(workers=number), number, prepared_and_warm, warm)
    search, sizes = Search(tokens=len(arguments[2]), k=PER_TOKEN), pubmed.facts(folder)['bytes']
    first = itertools.count(size.warm, size.scaled)

    def step() -> dict[str, Any]:
        start = next(first)
        blocks = range(start, start + size.scaled)
        tasks = ((b * size.block, (b + 1) * size.block, PER_TOKEN, search.limits) for b in blocks)
        ended = []
        for candidates, sentences in pool.map(contexts.search_block, tasks):
            search.add(candidates, sentences)
            ended.append(time.perf_counter())
        return {'seconds': ended[-1] - ended[number - 1], 'bytes': sum(sizes[b] for b in blocks[number:])}

    return step


def _memory(folder: Path, size: pubmed.Size) -> Step:
    """Resident memory after a quarter of the blocks, then after all."""
    occurrences.CACHED_CHUNKS = size.cached_chunks
    work = _finder(folder)
    bounds: Iterator[tuple[int, int]] = itertools.pairwise((0, size.blocks // 4, size.blocks))

    def step() -> dict[str, Any]:
        for block in range(*next(bounds)):
            work(block * size.block, (block + 1) * size.block)()
        return {'resident_mb': resident_mb()}

    return step
