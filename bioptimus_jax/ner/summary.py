"""What the fine-tunings of a model on a set say together: mean and interval over seeds, failures, slices."""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bioptimus_jax.files import read_jsonl
from bioptimus_jax.ner.cells import Cell
from bioptimus_jax.ner.corpora import Dataset
from bioptimus_jax.ner.predictions import Predicted, read_predictions, units
from bioptimus_jax.ner.score import MODES, counts
from bioptimus_jax.ner.slices import Material, slices, training_mentions
from bioptimus_jax.ner.statistics import bootstrap_f1, failures, interval, summary
from bioptimus_jax.ner.tokenizer import load_tokenizer
from bioptimus_jax.run import Run
from bioptimus_jax.vocab import frequency

Group = Sequence[tuple[Cell, dict[str, Any]]]
"""The cells of one model, set and setting, in order of seeds, with their records."""


def grouped(cells: Iterable[Cell], records: Mapping[str, dict[str, Any]]) -> list[Group]:
    """The finished cells by model, set and setting."""
    by = lambda cell: (cell.model, cell.dataset_folder.name, cell.setting)  # noqa: E731
    return [[(cell, records[cell.name]) for cell in group] for _, group in itertools.groupby(cells, by)]


def statistics_of(group: Group) -> dict[str, Any]:
    """`summary` of test and devel F1, the bootstrap interval of test F1, and why seeds failed, as a JSON value."""
    cell = group[0][0]
    failed = failures({c.seed: record for c, record in group})
    unit, counts_SxUx3 = _by_unit([read_predictions(c.target / 'predictions.tsv') for c, _ in group])
    scores = {
        split: {
            mode: summary({c.seed: r[split][mode]['f1'] for c, r in group}, list(failed)) for mode in MODES
        }
        for split in ('devel', 'test')
    }
    return {
        'model': cell.model,
        'dataset': cell.dataset_folder.name,
        'setting': cell.setting,
        **scores,
        'interval': interval(bootstrap_f1(counts_SxUx3)),
        'unit': unit,
        'units': counts_SxUx3.shape[1],
        'failures': failed,
    }


def slices_of(group: Group, dataset: Dataset, known: 'Known') -> dict[str, Any]:
    """`slices` of the test mentions, over all seeds, with what is known of the model's tokens."""
    cell = group[0][0]
    tokenizer = load_tokenizer(cell.model_folder)

    def pieces(words: Sequence[str]) -> list[str]:
        return tokenizer(
            list(words), is_split_into_words=True, add_special_tokens=False, verbose=False
        ).tokens()

    material = Material(
        training_mentions((s.words, s.tags) for s in dataset.train),
        pieces,
        known.contexts_of,
        known.count_of(tokenizer) if known.counts else None,
        known.corpus_words,
    )
    predictions = [read_predictions(c.target / 'predictions.tsv') for c, _ in group]
    name = {'model': cell.model, 'dataset': dataset.name, 'setting': cell.setting}
    return {**name, 'slices': slices(predictions, material)}


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


def _by_unit(predictions: Sequence[Sequence[Predicted]]) -> tuple[str, np.ndarray]:
    """What is resampled, and the counts of every seed added up within it: int64 [S, U, 3]."""
    name, unit_U = units(predictions[0])
    by_unit = np.zeros((len(predictions), int(unit_U.max()) + 1, 3), np.int64)
    for counts_Ux3, sentences in zip(by_unit, predictions, strict=True):
        np.add.at(counts_Ux3, unit_U, counts([s.gold for s in sentences], [s.predicted for s in sentences]))
    return name, by_unit
