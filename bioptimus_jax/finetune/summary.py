"""What the fine-tunings of a model on a set say together: mean and interval over seeds, failures, slices."""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from bioptimus_jax.files import read_jsonl
from bioptimus_jax.finetune.cells import Cell
from bioptimus_jax.finetune.predictions import Predicted, counts_by_unit, read_predictions
from bioptimus_jax.finetune.score import MODES
from bioptimus_jax.finetune.slices import Material, training_mentions
from bioptimus_jax.finetune.statistics import bootstrap_f1, failures, interval, summary
from bioptimus_jax.run import Run
from bioptimus_jax.sets.corpora import Dataset
from bioptimus_jax.vocab import frequency

Group = Sequence[tuple[Cell, dict[str, Any]]]
"""The cells of one model, set and setting, in order of seeds, with their records."""


def place(cell: Cell) -> dict[str, str]:
    """What the seeds of a group have in common."""
    return {'model': cell.model, 'dataset': cell.dataset.name, 'setting': cell.setting}


def grouped(cells: Iterable[Cell], records: Mapping[str, dict[str, Any]]) -> list[Group]:
    """The finished cells by model, set and setting."""
    return [[(cell, records[cell.name]) for cell in group] for _, group in itertools.groupby(cells, place)]


def predictions_of(group: Group) -> list[list[Predicted]]:
    """The test sentences as every seed tagged them."""
    return [read_predictions(cell.target / 'predictions.tsv') for cell, _ in group]


def statistics_of(group: Group, predictions: Sequence[Sequence[Predicted]]) -> dict[str, Any]:
    """`summary` of test and devel F1, the bootstrap interval of test F1, and why seeds failed, as a JSON value."""
    failed = failures({cell.seed: record for cell, record in group})
    unit, counts_SxUx3 = counts_by_unit(predictions)
    scores = {
        split: {
            mode: summary({c.seed: r[split][mode]['f1'] for c, r in group}, list(failed)) for mode in MODES
        }
        for split in ('devel', 'test')
    }
    return {
        **scores,
        'interval': interval(bootstrap_f1(counts_SxUx3)),
        'unit': unit,
        'units': counts_SxUx3.shape[1],
        'failures': failed,
    }


def material_of(dataset: Dataset, tokenizer: Any, known: 'Known') -> Material:
    """What the mentions of a set are sliced by, with what is known of the model's tokens."""

    def pieces(words: Sequence[str]) -> list[str]:
        return tokenizer(
            list(words), is_split_into_words=True, add_special_tokens=False, verbose=False
        ).tokens()

    return Material(
        training_mentions((s.words, s.tags) for s in dataset.train),
        pieces,
        known.contexts_of,
        known.count_of(tokenizer) if known.counts else None,
        known.corpus_words,
    )


@dataclasses.dataclass(frozen=True)
class Known:
    """Of a model of this run: contexts of every new token, and counts of words; empty for any other model."""

    contexts_of: Mapping[str, int] | None = None
    counts: Mapping[str, int] = dataclasses.field(default_factory=dict)
    corpus_words: int = 0

    def count_of(self, tokenizer: Any) -> Callable[[str], int]:
        """How often the rarest of BERT's words in a word of a file was counted; those counted once are not known."""
        inner = tokenizer.backend_tokenizer

        def count(word: str) -> int:
            text = inner.normalizer.normalize_str(word) if inner.normalizer else word
            parts = inner.pre_tokenizer.pre_tokenize_str(text) if inner.pre_tokenizer else [(text, None)]
            return min((self.counts.get(part, 0) for part, _ in parts), default=0)

        return count


def known_of_run(run: Run) -> Known:
    """What surgery and vocab of this run say of its own models' tokens. Raises InputError."""
    tokens = read_jsonl(run.folder('surgery') / 'tokens.jsonl')
    contexts = {record['token']: record['contexts'] for record in tokens if 'contexts' in record}
    words, counts_W = frequency.read(run.folder('vocab'))
    total = (run.manifest('vocab') or {})['counts']['words_counted']
    return Known(contexts or None, dict(zip(words, counts_W.tolist(), strict=True)), total)
