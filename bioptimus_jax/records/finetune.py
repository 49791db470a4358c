"""What stage finetune writes of its cells: scores.json of each, stopped-N.json, and results.jsonl of them all."""

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Self

from bioptimus_jax.records.manifests import ConfigValues
from bioptimus_jax.records.record import Record, left_out, others
from bioptimus_jax.records.sets import SetDescription
from bioptimus_jax.storage.files import JsonObject

BASELINES = ('majority', 'prior', 'bm25')
"""Keys of the scores of answers that read nothing, and of one that compares words."""
Scores = Mapping[str, Mapping[str, float]]
"""Metric -> its numbers by their names; the metric `default` is the one that models are compared by."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelOnSet(Record):
    """A model that is fine-tuned on a set under a setting.

    `task`: the kind of fine-tuning, left out of entities. `set`: the description of a set that is not public.
    """

    model: str
    dataset: str
    task: str | None = left_out()
    set: SetDescription | None = left_out()
    setting: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Details(Record):
    """What a task says of test predictions beside its metrics.

    `test_untyped`, `test_by_type`: entities of any type; of each type. `gold_in_file`, `gold_left_out`, `gold_scored`:
    how many are in the test file, are left out, are scored; `recall_in_file`: recall over all in the file.
    `gold_not_strict`: those that are none in strict mode. `merged_types`: read as one. `unseen_labels`: labels that
    training lacks. `majority`, `prior`: scores of answers that read nothing; `bm25`: of documents by the words that
    they share with a query. `applied`: scores of the bare text, where
    a kept model cuts it into other words. `own`: what a task of a plug-in adds, by its names.
    """

    test_untyped: Scores | None = left_out()
    test_by_type: Scores | None = left_out()
    gold_in_file: int | None = left_out()
    gold_left_out: int | None = left_out()
    gold_scored: int | None = left_out()
    recall_in_file: float | None = left_out()
    gold_not_strict: int | None = left_out()
    merged_types: tuple[str, ...] | None = left_out()
    unseen_labels: Mapping[str, int] | None = left_out()
    majority: float | None = left_out()
    prior: float | None = left_out()
    bm25: float | None = left_out()
    applied: Scores | None = left_out()
    own: JsonObject = others()

    @property
    def baselines(self) -> dict[str, float]:
        """The scores of BASELINES, by their names, where the task has them."""
        return {name: value for name in BASELINES if (value := getattr(self, name)) is not None}

    @property
    def details(self) -> dict[str, Any]:
        """The fields of this part alone."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(Details)}


@dataclasses.dataclass(frozen=True, kw_only=True)
class KeptUnits(Record):
    """Counts of a metric for every unit of a test set, in the record of a run.

    `kind`: documents or examples. `text`, `gold`: digests of words and of gold answers. `counts`: column after column,
    compressed, in base 64. `type`: of the numbers, where they are not whole and small.
    """

    kind: str
    text: str
    gold: str
    counts: str
    type: str | None = left_out()


@dataclasses.dataclass(frozen=True, kw_only=True)
class CellSettings(Record):
    """Values of the keys of config.finetune that decide a result, with a number for each that was 0.

    `by_rule`: the keys that the `rule` of this version gave a number, for a model of `width` units.
    """

    values: ConfigValues
    width: int
    by_rule: tuple[str, ...] = ()
    rule: int | None = left_out()


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScoredCell(ModelOnSet, Details):
    """Test predictions that were scored. `files`: file of predictions -> its SHA-256."""

    FIRST: ClassVar[tuple[str, ...]] = ('model', 'dataset', 'task', 'set', 'setting', 'seed', 'test')
    seed: int
    test: Scores
    files: Mapping[str, str] | None = left_out()

    @property
    def splits(self) -> dict[str, Scores]:
        """Split -> its scores."""
        return {'test': self.test}


@dataclasses.dataclass(frozen=True, kw_only=True)
class OutsideCell(ScoredCell):
    """Predictions that were made elsewhere, in the file `outside`; `seedless`: they stand for every seed."""

    FIRST: ClassVar[tuple[str, ...]] = (
        *('model', 'dataset', 'task', 'set', 'setting', 'seed', 'seedless', 'outside', 'test'),
    )
    seedless: bool = False
    outside: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class FineTuning(ScoredCell):
    """A fine-tuning: scores of the best epoch, and how it was trained.

    `learned_devel`: devel was learned, so its scores choose nothing. `devel_alike`: the best score on devel of one
    answer for everything. `sentences`: split -> examples. `history`: epoch, its mean loss, the score on devel.
    `alignment`: oddities of windows. `word_of`: number of a test sentence -> its `word_of`, where predictions are kept
    for parts of its words; left out of texts. `first_loss`: before any update; `chance_loss`: what the shares of the
    answers alone would give. `sameness`: what is said where the answers to devel are all alike. `settings`: what it was
    trained with. `print`: digest of all that decides it. From `alignment` on only scores.json has a key, `units` only
    the record of a run.
    """

    FIRST: ClassVar[tuple[str, ...]] = (
        *(
            'model',
            'dataset',
            'task',
            'set',
            'setting',
            'seed',
            'learned_devel',
            'devel',
            'devel_alike',
            'test',
        ),
        *(field.name for field in dataclasses.fields(Details)),
        *('sentences', 'seconds', 'history', 'train_sentences_per_second', 'predict_sentences_per_second'),
        *(
            'best_epoch',
            'units',
            'alignment',
            'word_of',
            'train_sentences',
            'updates',
            'trained_parameters',
            'first_loss',
        ),
        *('chance_loss', 'sameness', 'settings', 'print', 'files'),
    )
    learned_devel: bool | None = left_out()
    devel: Scores
    devel_alike: float = 0.0
    sentences: Mapping[str, int] | None = left_out()
    seconds: float | None = left_out()
    history: tuple[Mapping[str, float], ...] = ()
    train_sentences_per_second: float | None = left_out()
    predict_sentences_per_second: float | None = left_out()
    best_epoch: int | None = left_out()
    units: KeptUnits | None = left_out()
    alignment: Mapping[str, int] | None = left_out()
    word_of: Mapping[str, tuple[int, ...]] | None = left_out()
    train_sentences: int | None = left_out()
    updates: int | None = left_out()
    trained_parameters: int | None = left_out()
    first_loss: float | None = left_out()
    chance_loss: float | None = left_out()
    sameness: str | None = left_out()
    settings: CellSettings | None = left_out()
    print: str | None = left_out()

    @property
    def splits(self) -> dict[str, Scores]:
        """Split -> its scores."""
        return {'devel': self.devel, 'test': self.test}

    def result(self, reported: Collection[str]) -> Self:
        """What results.jsonl has of it; `reported`: the details that it has."""
        details = {name: value for name, value in self.details.items() if name in reported}
        own = {name: value for name, value in self.own.items() if name in reported}
        none = dict.fromkeys((*self.details, *self.FIRST[self.FIRST.index('alignment') :]))
        return dataclasses.replace(self, **{**none, **details, 'own': own})


@dataclasses.dataclass(frozen=True, kw_only=True)
class StoppedCell(ModelOnSet):
    """A cell that a search stopped after so many epochs: its curve on devel; see `FineTuning`."""

    seed: int
    history: tuple[Mapping[str, float], ...]
    print: str


Trained = FineTuning | StoppedCell
"""A cell that was trained to the end, or to a rung of a search."""
