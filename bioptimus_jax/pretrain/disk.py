"""Disk space of a run, stage by stage, estimated from the config.

Bytes for each word, document and context are those of real PubMed abstracts (measured on 4,000 and on 54,864 of them).
"""

import dataclasses

from bioptimus_jax.pretrain.config import HasTraining
from bioptimus_jax.progress.console import in_units, numbered
from bioptimus_jax.tokenizer.config import Vocab

WORDS_PER_DOCUMENT = 228
DOCUMENT_BYTES_PER_WORD = 4.04  # ArrayRecord, each record compressed by itself
SCRATCH_BYTES_PER_WORD, SCRATCH_BYTES_PER_DOCUMENT = 3.45, 480  # Parquet; signatures of near duplicates
NEW_TOKENS = 0.64  # share of a biomedical vocabulary that bert-base-uncased does not have
CONTEXT_BYTES = 59  # sentence, which several tokens share, and place
VOCABULARY_BYTES_PER_ENTRY = 31  # of WordPiece: vocab.txt, tokenizer.json
TOKEN_RECORD_BYTES = 400  # a line of surgery/tokens.jsonl
TOKENIZER_BYTES = 1_000_000  # of an exported folder
SEGMENT_BYTES, PIECES_PER_SEGMENT = 10, 64  # its length and document; as many places as the fullest row has
FLOAT = 4


@dataclasses.dataclass(frozen=True)
class Space:
    """Bytes that a stage takes, and what they are."""

    stage: str
    size: float
    what: str


def disk_space(
    experiment: HasTraining,
    parameters: int,
    entries: int,
    corpus_words: float,
    input_words: float,
    pieces_per_word: float,
    fill: float,
) -> list[Space]:
    """The space of every stage of the experiment, by far the most of it; 0 words: what grows with them is left out.

    `entries` are those of the vocabulary. `input_words` are those of the files that the corpus is chosen from, all of
    which the scratch folder holds.
    """
    rows, new = experiment.rows, new_tokens(experiment.vocab, entries)
    documents, scratch_documents = corpus_words / WORDS_PER_DOCUMENT, input_words / WORDS_PER_DOCUMENT
    heldout = experiment.corpus.heldout_fraction
    token_bytes = 2 if entries <= 2**16 else 4
    pieces = corpus_words * (1 - heldout) * pieces_per_word
    train_rows = {shape: pieces / (shape.row_pieces * fill) for shape in experiment.row_shapes}
    train = sum(count * _row_bytes(shape.row_pieces, token_bytes) for shape, count in train_rows.items())
    packed = [f'{numbered(round(count), "row")} of {shape.row_pieces}' for shape, count in train_rows.items()]
    held = documents * heldout * _row_bytes(rows.max_document_pieces, token_bytes)
    model = parameters * FLOAT
    kept = len(experiment.phases) * experiment.evaluation.snapshots_per_phase
    keep = experiment.runtime.keep_checkpoints
    # The weights, the two moments of Adam, and where it is asked for their moving average.
    checkpoint = (4 if experiment.pretrain.averages else 3) * model
    spaces = [
        Space('corpus', corpus_words * DOCUMENT_BYTES_PER_WORD, f'{numbered(round(documents), "document")}'),
        Space(
            'corpus',
            input_words * SCRATCH_BYTES_PER_WORD + scratch_documents * SCRATCH_BYTES_PER_DOCUMENT,
            f'.corpus.scratch while it works, {numbered(round(scratch_documents), "document")} read',
        ),
        Space('vocab', entries * VOCABULARY_BYTES_PER_ENTRY, 'tokenizer'),
        Space(
            'contexts',
            new * experiment.contexts.per_token * CONTEXT_BYTES,
            f'{experiment.contexts.per_token} a token, {new:,.0f} new ones',
        ),
        Space('surgery', model + new * TOKEN_RECORD_BYTES, 'the weights at step 0, a line a token'),
        Space(
            'rows',
            train + held,
            f'{", ".join(packed)}, and held-out ones',
        ),
        Space(
            'pretrain',
            (kept + keep + 1) * checkpoint,
            f'checkpoints: {kept} kept for good, the newest {keep}, one being written; {in_units(checkpoint)} each',
        ),
        Space('export', kept * (model + TOKENIZER_BYTES), numbered(kept, 'folder')),
    ]
    return [space for space in spaces if space.stage in experiment.stages and space.size]


def new_tokens(vocab: Vocab, entries: int) -> float:
    """How many entries the source does not have: none of its own, else a share of those that the text gives."""
    if vocab.kind == 'source':
        return 0
    return (vocab.size if vocab.kind == 'append' else entries) * NEW_TOKENS


def _row_bytes(pieces: int, token_bytes: int) -> float:
    segments = max(pieces // PIECES_PER_SEGMENT, 1)
    return pieces * token_bytes + pieces / 8 + segments * SEGMENT_BYTES
