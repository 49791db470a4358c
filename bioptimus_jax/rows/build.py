"""Rows: every document tokenised once and packed, whole, into rows of fixed width.

Legend: R rows, L pieces a row, G segments a row.

A row holds documents (or parts of long ones, or pairs of texts: layouts.py), each between two special tokens, best-fit
within fixed blocks of documents, so that the rows are the same for any number of workers. Held-out rows hold one each,
or the two of texts apart, which lie side by side in any row.
"""

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from bioptimus_jax.corpus.documents import Document, DocumentSource, open_documents
from bioptimus_jax.errors import InputError
from bioptimus_jax.hosts.config import Runtime
from bioptimus_jax.hosts.workers import open_workers, ranges
from bioptimus_jax.progress.console import Console, numbered
from bioptimus_jax.records.counts import RowCountsOfSplits, SplitRows, StageResult
from bioptimus_jax.rows.blocks import Block, lay_out
from bioptimus_jax.rows.config import HasRows
from bioptimus_jax.rows.config import Rows as RowSettings
from bioptimus_jax.rows.layouts import layout_of
from bioptimus_jax.rows.packing import best_fit
from bioptimus_jax.rows.parts import apart_parts, document_parts, pair_parts
from bioptimus_jax.rows.stored import ShardWriter
from bioptimus_jax.run.folder import Run
from bioptimus_jax.tokenizer.quoted import quotation_note
from bioptimus_jax.tokenizer.subwords import Subwords
from bioptimus_jax.tokenizer.subwords import load as load_subwords

ENCODE_DOCUMENTS = 250  # encodings of larger batches are heavy
_documents: DocumentSource  # of this process: see _prepare
_subwords: Subwords


def build(run: Run[HasRows], folder: Path) -> StageResult:
    """Stage `rows`: tokenise and pack the training split in every shape; one document a row for the held-out split."""
    settings, runtime, console = run.config.rows, run.config.runtime, run.console
    corpus, vocab = run.folder('corpus'), run.folder('vocab')
    packed = {shape.split(settings): shape.within(settings) for shape in run.config.row_shapes}
    counts = {
        split: _write(ShardWriter(folder / split, of, pack=True), 'train', corpus, vocab, runtime, console)
        for split, of in packed.items()
    }
    of_each = ShardWriter(folder / 'heldout', settings, pack=False)
    heldout = _write(of_each, 'heldout', corpus, vocab, runtime, console)
    for split, counted in counts.items():
        _check(settings, corpus, counted)
        console.say(f'rows: {counted.rows:,} of {_in_words(packed[split], counted)}')
    train = counts.pop('train')
    return StageResult(RowCountsOfSplits(train=train, heldout=heldout, more=counts or None))


def external_inputs(experiment: HasRows) -> dict[str, Path | str]:
    """The shapes of rows that phases have of their own, for the fingerprint of the stage."""
    return {f'shape:{shape.split(experiment.rows)}': 'packed' for shape in experiment.row_shapes[1:]}


def _write(
    writer: ShardWriter, split: str, corpus: Path, vocab: Path, runtime: Runtime, console: Console
) -> SplitRows:
    """Write the rows of the documents of a split, made in worker processes."""
    documents, settings = open_documents(corpus, split), writer.settings
    writer.folder.mkdir(exist_ok=True)
    progress = console.progress(f'rows: {writer.folder.name}', len(documents), 'documents')
    spans = ranges(len(documents), settings.block_documents)
    arguments = (corpus.absolute(), vocab.absolute(), split)
    with open_workers(runtime, len(spans), _prepare, arguments) as workers:
        tasks = ((settings, writer.pack, span) for span in spans)
        for block, counted in workers.map(_make_block, tasks, console.check_stop):
            writer.add(block, counted)
            progress.update(counted['documents'])
    return writer.close()


def _check(settings: RowSettings, corpus: Path, train: SplitRows) -> None:
    """Raise InputError where there is nothing to train on."""
    layout = layout_of(settings.layout)
    if layout.apart and not train.rows:
        raise InputError(
            f'{corpus}: no training document has two texts, and config.rows.layout={settings.layout} '
            f'needs them ({layout.meaning}); name the fields of both in config.corpus.text_fields, or take another '
            'layout'
        )
    if not train.rows:
        raise InputError(f'{corpus}: no training documents to make rows of; check corpus counts')
    if layout.labelled and not train.share_random:
        raise InputError(
            f'{corpus}: no second text is of another document, as of one alone, so nothing can be told; add texts, '
            'or set config.rows.layout=documents, and an objective that needs no pairs'
        )
    if layout.labelled and train.share_random == 1:
        raise InputError(
            f'{corpus}: no document has two sentences, so the second text of every pair is random and '
            'nothing can be told; set config.rows.layout=documents, and an objective that needs no pairs'
        )


def _in_words(settings: RowSettings, train: SplitRows) -> str:
    paired = f', {numbered(train.pairs, "pair")}' if train.pairs is not None else ''
    paired += f', {train.share_random:.1%} of them random' if train.share_random is not None else ''
    quoted = f', {quotation_note(train.special_tokens_quoted)}' if train.special_tokens_quoted else ''
    return (
        f'{settings.row_pieces} pieces, fill {train.fill:.3f}, '
        f'{numbered(train.documents_cut, "document")} cut, {numbered(train.tokens_dropped, "token")} dropped, '
        f'{train.share_at_384_and_more:.1%} of tokens at positions of 384 and more{paired}{quoted}'
    )


def _prepare(corpus: Path, vocab: Path, split: str) -> None:
    """What every block of this process needs, made once."""
    global _documents, _subwords
    _documents, _subwords = open_documents(corpus, split), load_subwords(vocab)


def _beside(span: tuple[int, int]) -> Iterator[Sequence[Document]]:
    """The documents before a block, the nearest first, and then those behind it; read one by one, as asked for."""
    for at in itertools.chain(range(span[0] - 1, -1, -1), range(span[1], len(_documents))):
        yield _documents.read(at, at + 1)


def _make_block(settings: RowSettings, pack: bool, span: tuple[int, int]) -> tuple[Block, Counter[str]]:
    starts = range(*span, ENCODE_DOCUMENTS)
    batches = (_documents.read(at, min(at + ENCODE_DOCUMENTS, span[1])) for at in starts)
    layout, together = layout_of(settings.layout), 1
    if layout.is_random:
        parts, counted = pair_parts(batches, _subwords, settings, span[0], _beside(span))
    elif layout.apart:
        parts, counted = apart_parts(batches, _subwords, settings)
        together = 2
    else:
        parts, counted = document_parts(batches, _subwords, settings.max_document_pieces, settings.words)
    width = settings.row_pieces if pack else settings.max_document_pieces
    units = [range(at, at + together) for at in range(0, len(parts), together)]
    lengths = [sum(len(parts[number].tokens) for number in unit) for unit in units]
    rows = best_fit(lengths, width) if pack else [[number] for number in range(len(units))]
    return lay_out(parts, [[part for unit in row for part in units[unit]] for row in rows], width), counted
