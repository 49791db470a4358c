"""Stage `contexts`: up to k sentences for every token that the source does not have (paper, section 3).

A uniform sample over the places where a sentence has the token, in one pass and the same for any number of workers
and any order of the documents (sampling.py). A sentence that occurs n times has n places, so it is likelier than one
that occurs once; it is taken at most once. The paper calls its program for this job qik-find.
"""

import dataclasses
import itertools
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow
import pyarrow.parquet

from bioptimus_jax.corpus.documents import DocumentSource, document_key, open_documents
from bioptimus_jax.errors import InputError, Stopped
from bioptimus_jax.hosts.workers import Workers, open_workers, ranges
from bioptimus_jax.progress.console import Console, numbered
from bioptimus_jax.records.counts import ContextCounts, StageResult
from bioptimus_jax.run.folder import Run
from bioptimus_jax.storage.files import atomic
from bioptimus_jax.text.splitting import split_sentences
from bioptimus_jax.tokenizer.subwords import load
from bioptimus_jax.vocab.build import read_new_tokens
from bioptimus_jax.vocab.config import HasVocab
from bioptimus_jax.vocab.occurrences import TokenFinder, cut_around
from bioptimus_jax.vocab.sampling import Candidates, Search, hash_texts, priorities, ranks

BLOCK = 2048  # documents a worker takes at a time
PARTIAL = '.partial.npz'
SECONDS_BETWEEN_SAVES = 60

SENTENCES = pyarrow.schema(
    [
        ('sentence', pyarrow.int64()),
        ('document', pyarrow.string()),
        ('number', pyarrow.int32()),
        ('text', pyarrow.string()),
    ]
)
OCCURRENCES = pyarrow.schema(
    [
        ('token', pyarrow.string()),
        ('sentence', pyarrow.int64()),
        ('start', pyarrow.int32()),
        ('end', pyarrow.int32()),
        ('rank', pyarrow.int32()),
    ]
)

Columns: TypeAlias = dict[str, list[Any]]


class _Prepared:
    """What every task of this process needs, set by `prepare_search`."""

    documents: DocumentSource
    finder: TokenFinder
    token_hashes: np.ndarray


_prepared = _Prepared()


class Located(NamedTuple):
    """A sampled occurrence: number of the token, its priority, where its sentence is, and the span in its text."""

    token: int
    priority: int
    document: str
    number: int
    text: str
    start: int
    end: int


@dataclasses.dataclass(frozen=True)
class TokenContexts:
    """The sampled sentences, and one entry per sampled occurrence of a token (columns of equal length).

    `sentence` indexes `sentences`; `start` and `end` are characters of that text; `rank` counts a token's
    contexts from 0, so that `rank < m` is a sample of m, drawn in the same way.
    """

    sentences: list[str]
    tokens: list[str]
    sentence: np.ndarray
    start: np.ndarray
    end: np.ndarray
    rank: np.ndarray


def load_contexts(folder: Path) -> TokenContexts:
    """The contexts of a finished stage. Raises InputError for missing or damaged tables."""
    sentences, occurrences = (_read(folder / name) for name in ('sentences.parquet', 'occurrences.parquet'))
    columns = {name: occurrences[name].to_numpy() for name in ('sentence', 'start', 'end', 'rank')}
    return TokenContexts(sentences['text'].to_pylist(), occurrences['token'].to_pylist(), **columns)


def _read(path: Path) -> pyarrow.Table:
    try:
        return pyarrow.parquet.read_table(path)
    except (OSError, pyarrow.ArrowException) as error:
        raise InputError(f'{path}: cannot be read ({error}); run `bioptimus contexts --replace`') from error


def build(run: Run[HasVocab], folder: Path) -> StageResult:
    """Write sentences.parquet and occurrences.parquet (both empty where no token is new); return counts."""
    vocab_folder = run.folder('vocab')
    tokens = read_new_tokens(vocab_folder)
    if not tokens:
        reason = (
            'the vocabulary has no token that the source lacks'
            if run.config.source.path
            else 'there is no source'
        )
        run.console.say(f'contexts: nothing to look for, {reason}')
        _write_tables(folder, tokens, [])
        return StageResult(ContextCounts(tokens=0, occurrences=0, sentences=0))
    documents = open_documents(run.folder('corpus'), 'train')
    k, longest = run.config.contexts.per_token, run.config.contexts.max_characters
    blocks = ranges(len(documents), BLOCK)
    arguments = (documents, vocab_folder.absolute(), tokens, run.config.seed)
    started = time.monotonic()
    with open_workers(run.config.runtime, len(blocks), prepare_search, arguments) as pool:
        search = Search(tokens=len(tokens), k=k)
        search.resume(folder / PARTIAL)
        _scan_all(run.console, pool, blocks, search, folder / PARTIAL)
        located = _locate_all(run.console, pool, search.candidates, longest)
    _write_tables(folder, tokens, located)
    # Only now: until both tables are whole a restart needs the search.
    (folder / PARTIAL).unlink(missing_ok=True)
    seconds = time.monotonic() - started
    per_token = np.bincount([row.token for row in located], minlength=len(tokens))
    without, some, every = (
        int(of_tokens.sum())
        for of_tokens in (per_token == 0, (per_token > 0) & (per_token < k), per_token == k)
    )
    run.console.say(
        f'contexts: of {numbered(len(tokens), "new token")} {without / len(tokens):.1%} have none, '
        f'{some / len(tokens):.1%} have 1-{k - 1}, {every / len(tokens):.1%} have {k}; '
        f'{numbered(search.sentences, "sentence")} searched, {search.sentences / seconds:,.0f}/s'
    )
    counts = ContextCounts(
        tokens=len(tokens),
        tokens_without=without,
        tokens_with_some=some,
        tokens_with_all=every,
        sentences_searched=search.sentences,
        occurrences=len(located),
        not_located=len(search.candidates) - len(located),
        sentences=len({row.text for row in located}),
    )
    return StageResult(counts)


def sample_contexts(
    experiment: HasVocab,
    documents: DocumentSource,
    vocab: Path,
    tokens: list[str],
    k: int,
    most_documents: int,
    console: Console,
) -> TokenContexts:
    """A sample of up to k contexts for tokens of the vocabulary in a folder, in memory; nothing is written.

    At most about `most_documents` of the documents are searched, in blocks spread over all of them.
    """
    blocks = ranges(len(documents), BLOCK)
    blocks = blocks[:: max(math.ceil(len(documents) / most_documents), 1)]
    arguments = (documents, vocab.absolute(), tokens, experiment.seed)
    with open_workers(experiment.runtime, len(blocks), prepare_search, arguments) as pool:
        search = Search(tokens=len(tokens), k=k)
        _scan_all(console, pool, blocks, search, None)
        rows = _locate_all(console, pool, search.candidates, experiment.contexts.max_characters)
    sentences, occurrences = _tables(tokens, rows)
    columns = {name: np.array(occurrences[name], np.int64) for name in ('sentence', 'start', 'end', 'rank')}
    return TokenContexts(sentences['text'], occurrences['token'], **columns)


def _scan_all(
    console: Console, pool: Workers, all_blocks: list[tuple[int, int]], search: Search, partial: Path | None
) -> None:
    """Search the blocks that are not done yet; `partial`: where what is found is saved, if anywhere."""
    sizes, blocks = [b - a for a, b in all_blocks], all_blocks[search.blocks :]
    progress = console.progress('contexts: searching', sum(sizes), 'documents')
    progress.start_at(sum(sizes[: search.blocks]))
    saved = time.monotonic()

    def tasks() -> Iterator[tuple]:
        for start, stop in blocks:
            # The limits known by now: pruning is exact whatever they are.
            yield start, stop, search.k, search.limits

    found = pool.map(search_block, tasks(), console.check_stop)
    try:
        for (start, stop), (candidates, sentences) in zip(blocks, found, strict=True):
            search.add(candidates, sentences)
            progress.update(stop - start)
            if partial is not None and time.monotonic() - saved > SECONDS_BETWEEN_SAVES:
                search.save(partial)
                saved = time.monotonic()
    except Stopped:
        # What is found is saved here, too: the next start goes on from this block.
        if partial is not None and search.blocks:
            search.save(partial)
        raise
    search.merge()


def _locate_all(console: Console, pool: Workers, sample: Candidates, longest: int) -> list[Located]:
    """Every sampled occurrence that is located."""
    in_order = sample.take(np.argsort(sample.document, kind='stable'))
    bounds = np.searchsorted(
        in_order.document, np.arange(0, int(in_order.document.max(initial=-1)) + BLOCK + 1, BLOCK)
    )
    tasks = [(in_order.take(np.arange(a, b)), longest) for a, b in itertools.pairwise(bounds) if a < b]
    progress = console.progress('contexts: cutting out', len(sample), 'contexts')
    rows: list[Located] = []
    for (part, _), located in zip(tasks, pool.map(_locate, tasks, console.check_stop), strict=True):
        rows.extend(located)
        progress.update(len(part))
    return rows


def prepare_search(documents: DocumentSource, vocab_folder: Path, tokens: list[str], seed: int) -> None:
    """What `search_block` needs in a process, made once."""
    _prepared.documents, _prepared.finder = documents, TokenFinder(load(vocab_folder), tokens)
    _prepared.token_hashes = hash_texts(tokens, seed)


def search_block(start: int, stop: int, k: int, limits: np.ndarray | None) -> tuple[Candidates, int]:
    """The bottom-k of one block, without what the sample so far rules out; and its number of sentences."""
    documents = _prepared.documents.read(start, stop)
    split = [split_sentences(document.text) for document in documents]
    lengths = np.fromiter(map(len, split), np.int64, len(split))
    sentences = [sentence for part in split for sentence in part]
    owner = np.repeat(np.arange(len(split)), lengths)
    within = ranks(owner)
    keys = np.array([document_key(document.id) for document in documents], np.uint64)
    sentence, token, _ = _prepared.finder.find(sentences)
    priority = priorities(_prepared.token_hashes[token], keys[owner[sentence]], within[sentence])
    if limits is not None:
        kept = priority <= limits[token]
        sentence, token, priority = sentence[kept], token[kept], priority[kept]
    used, position = np.unique(sentence, return_inverse=True)
    text = hash_texts([sentences[s] for s in used.tolist()])[position]
    found = Candidates(
        token.astype(np.int32), priority, text, start + owner[sentence], within[sentence].astype(np.int32)
    )
    return found.smallest(k), len(sentences)


def _locate(sample: Candidates, longest: int) -> list[Located]:
    """What `_locate_all` gives for candidates of one block, in order of documents."""
    source = _prepared.documents
    first, stop = int(sample.document[0]), int(sample.document[-1]) + 1
    documents = source.read(first, stop)
    split = {i: split_sentences(documents[i - first].text) for i in np.unique(sample.document).tolist()}
    places = list(zip(sample.document.tolist(), sample.number.tolist(), strict=True))
    different = {place: i for i, place in enumerate(dict.fromkeys(places))}
    sentences = [split[document][number] for document, number in different]
    index = np.array([different[place] for place in places], np.int64)
    start_I, end_I = _prepared.finder.locate(sentences, index, sample.token.astype(np.int64))
    rows = []
    for i, (document, number) in enumerate(places):
        if start_I[i] >= 0:
            cut = cut_around(sentences[index[i]], int(start_I[i]), int(end_I[i]), longest)
            identity = documents[document - first].id
            rows.append(Located(int(sample.token[i]), int(sample.priority[i]), identity, number, *cut))
    return rows


def _write_tables(folder: Path, tokens: list[str], rows: list[Located]) -> None:
    sentences, occurrences = _tables(tokens, rows)
    _write(folder / 'sentences.parquet', sentences, SENTENCES)
    _write(folder / 'occurrences.parquet', occurrences, OCCURRENCES)


def _tables(tokens: list[str], rows: list[Located]) -> tuple[Columns, Columns]:
    """Sentences by (document id, number), occurrences by (token, rank): the order of work is gone.

    The first of equal sentences stands for all: each is encoded once, whatever tokens it serves.
    """
    place_of: dict[str, tuple[str, int]] = {}
    for document, number, text in sorted({(row.document, row.number, row.text) for row in rows}):
        place_of.setdefault(text, (document, number))
    number_of = {text: i for i, text in enumerate(place_of)}
    by_sentence: Columns = {
        'sentence': list(range(len(place_of))),
        'document': [document for document, _ in place_of.values()],
        'number': [number for _, number in place_of.values()],
        'text': list(place_of),
    }
    rows = sorted(rows)
    by_occurrence: Columns = {
        'token': [tokens[row.token] for row in rows],
        'sentence': [number_of[row.text] for row in rows],
        'start': [row.start for row in rows],
        'end': [row.end for row in rows],
        'rank': ranks(np.array([row.token for row in rows], np.int64)).tolist(),
    }
    return by_sentence, by_occurrence


def _write(path: Path, columns: Columns, schema: pyarrow.Schema) -> None:
    table = pyarrow.table(columns, schema=schema)
    with atomic(path, 'wb') as file:
        pyarrow.parquet.write_table(table, file, compression='zstd')
