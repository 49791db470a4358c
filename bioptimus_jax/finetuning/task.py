"""What a kind of fine-tuning is: how a set is read, cut into windows, learned, decoded, written and measured.

A kind is a file of tasks/, which holds TASK; nothing else knows its name. A record says of which kind it is, where that
is not the first one there was.
"""

import abc
import dataclasses
import shlex
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.finetuning.config import STANDARD, TASKS, Finetune
from bioptimus_jax.finetuning.kept import Reads
from bioptimus_jax.finetuning.outside import Submission
from bioptimus_jax.finetuning.predictions import Predicted, Seeds
from bioptimus_jax.records.finetune import Details, FineTuning, ModelOnSet, ScoredCell, Scores
from bioptimus_jax.records.sets import LabelsOfSet, LintedSet, SetDescription
from bioptimus_jax.records.statistics import MentionSlices
from bioptimus_jax.scoring.metrics import Metric
from bioptimus_jax.sets.corpora import NamedSet
from bioptimus_jax.sets.tags import Span
from bioptimus_jax.storage.files import read_jsonl, write_jsonl

if TYPE_CHECKING:  # reports read scores without torch
    from bioptimus_jax.finetuning.heads import Head

DEFAULT = 'default'
"""Name, in records, of the metric of a task that chooses epochs, seeds and settings and that models are compared by."""


SAME = 0.9
"""Share of answers that may be one and the same before it is said."""


@dataclasses.dataclass(frozen=True)
class Usage:
    """Lines of Python for a model card that give a model's answers to `example`; `means`: to what, in words.

    `pair`: the two texts in its place, where a model reads two.
    """

    means: str
    code: str
    example: str
    pair: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Look:
    """What lint.json and labels.json have of a set, None and empty where nothing, and `lines` for a person."""

    lint: LintedSet | None = None
    labels: LabelsOfSet = dataclasses.field(default_factory=dict)
    lines: Sequence[str] = ()


@dataclasses.dataclass(frozen=True)
class Encoded:
    """The windows of a split's examples, and the oddities that were counted.

    A window has `pieces`, what the encoder reads at once with special tokens, and `example`, a number in the split.
    """

    windows: Sequence[Any]
    counts: Mapping[str, int] = dataclasses.field(default_factory=dict)


class Task(abc.ABC):
    """A kind of fine-tuning. The first half every kind has to say; of the second, the defaults do for most.

    A set is a frozen dataclass with `name`, and with tuples of examples `train`, `devel` and `test`; an example has
    `words`, the number of its `document`, and, unless `answers` says otherwise, `answers`.
    """

    title: str
    """Its name in model cards and, with a small letter, on pages and in messages."""
    hub: str
    """What the Hugging Face hub calls it."""
    hf_class: str = 'AutoModelForTokenClassification'
    """The class of transformers that loads what is fine-tuned, with a logit for each label, and what is kept."""
    unit: str = 'example'
    """What an example is called, in the singular; where a set has no documents it is what is resampled."""
    metrics: Mapping[str, Metric]
    """Metrics by their keys in records; DEFAULT is one of them."""
    cuts: bool = False
    """Whether an example is read at once, and what is longer than config.finetune.max_pieces is cut off."""
    learns: bool = True
    """Whether anything is trained; else a model is scored as it is."""
    files: tuple[str, ...] = ('predictions.jsonl',)
    """What `write` leaves in a cell."""
    heads: tuple[str, ...] = ('linear',)
    """What config.finetune.head may be."""
    reported: tuple[str, ...] = ()
    """Keys of `detail` that results.jsonl holds."""
    summed: tuple[str, ...] = ()
    """Keys of `reported` that the manifest holds, summed over all cells."""

    def command(self, folder: str, text: str) -> str:
        """The command that applies a kept model; `text`: a placeholder for the text, in quotes."""
        return f'bioptimus predict {shlex.quote(folder)} --text={text}'

    @abc.abstractmethod
    def read(self, chosen: NamedSet) -> Any:
        """The set. Raises InputError, which names file and line."""

    @abc.abstractmethod
    def labels(self, dataset: Any, settings: Finetune) -> Sequence[str]:
        """What the head has a logit for, in order."""

    @abc.abstractmethod
    def windows(self, tokenizer: Any, examples: Sequence[Any], settings: Finetune) -> Encoded:
        """Windows of at most config.finetune.max_pieces. `tokenizer`: a fast one of transformers."""

    def reads(self, dataset: Any, settings: Finetune) -> Reads:
        """How a model of this set reads: what `windows` does, for whoever applies the model."""
        return Reads(settings.max_pieces)

    def applied(self, dataset: Any, tokenizer: Any, head: Any, settings: Finetune) -> Scores | None:
        """The scores on test of a kept model that is applied to bare texts; None where it says the same there."""
        return None

    def usage(self, dataset: Any, settings: Finetune) -> Usage | None:
        """How a kept model is applied with transformers alone; None where no few lines say it."""
        return None

    @abc.abstractmethod
    def head(self, pretrained: Any, labels: Sequence[str], settings: Finetune, dtype: str) -> 'Head':
        """What is trained, on a model that transformers has loaded as `hf_class`."""

    @abc.abstractmethod
    def target(self, window: Any, learned: Sequence[Any], head: Any) -> Any:
        """What `head.batch` needs to train on a window of an example with these `learned` answers."""

    @abc.abstractmethod
    def decode(
        self, examples: Sequence, windows: Sequence, found: Sequence, head: Any, settings: Finetune
    ) -> list[Any]:
        """The answers of every example, from what `head.predict` found in every window."""

    def answers(self, example: Any) -> Sequence[Any]:
        """The gold standard of an example, as `metrics` compare it and predictions keep it."""
        return example.answers

    def predicted(self, examples: Sequence[Any], answers: Sequence[Sequence[Any]]) -> list[Predicted]:
        """Examples beside what was answered to them."""
        pairs = zip(examples, answers, strict=True)
        return [Predicted(self.shown(e), tuple(self.answers(e)), tuple(a), e.document) for e, a in pairs]

    def shown(self, example: Any) -> tuple[str, ...]:
        """The words or texts of an example that its answers are for."""
        return example.words

    def learned(self, example: Any, settings: Finetune) -> Sequence[Any]:
        """The same as the model learns it."""
        return self.answers(example)

    def mentions(self, answers: Sequence[Any]) -> Sequence[Span]:
        """Where answers lie in the words, for tasks that find something there."""
        return ()

    def sameness(self, gold: Sequence[Sequence[Any]], answers: Sequence[Sequence[Any]]) -> str:
        """What is said of answers that are one and the same nearly everywhere, and not so in the gold; '' of others."""
        ((most, count),) = Counter(map(tuple, answers)).most_common(1) or [((), 0)]
        share, true = count / max(len(answers), 1), sum(tuple(g) == most for g in gold) / max(len(gold), 1)
        # A set may well be lopsided: then nearly all has to be said alike to be too much.
        if share <= max(SAME, (1 + true) / 2):
            return ''
        return f'{share:.0%} of its answers are {", ".join(map(str, most)) or "no label at all"}'

    def stratum(self, example: Any) -> Hashable:
        """Which examples are alike where a choice of them is stratified: those with the same answers in any order."""
        return tuple(sorted({str(answer) for answer in self.answers(example)}))

    def check_settings(self, settings: Finetune, dataset: str) -> None:
        """Raises ConfigError for settings that sets of this kind cannot be learned with, before any is read."""
        if settings.head not in self.heads:
            raise ConfigError(
                f'config.finetune.head: {settings.head!r}{of_setting(settings)}, but {dataset} is for '
                f'{self.title.lower()}, which has {", ".join(self.heads)}'
            )

    def check(self, chosen: NamedSet, dataset: Any) -> None:  # noqa: B027
        """Raises InputError where a set must not be trained on, after `look` and before any training."""

    def look(self, dataset: Any, tokenizers: Mapping[str, Any], max_pieces: int) -> Look:
        """What is worth knowing of a set."""
        return Look()

    def detail(self, dataset: Any, predicted: Sequence[Any]) -> Details:
        """What a record holds beside the metrics, from the answers on test. Raises InputError."""
        return Details()

    def alike(self, dataset: Any, examples: Sequence[Any]) -> float:
        """The best score on these examples of one answer for everything; 0 where that is to find nothing."""
        return 0.0

    def remarks(self, record: Details) -> list[str]:
        """Lines on the gold standard of a finished cell, or of predictions that were scored."""
        return []

    def slices(self, dataset: Any, predictions: Seeds, tokenizer: Any, known: Any) -> MentionSlices:
        """What slices.json holds: test predictions of all seeds by kinds of example.

        `known`: see `summary.TokenStatistics`.
        """
        return {}

    def write(self, folder: Path, examples: Sequence[Predicted]) -> None:
        """Leave the test predictions in `files`. Raises InputError for what these cannot hold."""
        write_jsonl(folder / self.files[0], map(dataclasses.asdict, examples))

    def written(self, folder: Path) -> list[Predicted]:
        """The test predictions that `write` has left. Raises InputError that names the file."""
        file = folder / self.files[0]
        try:
            return [
                Predicted(tuple(r['words']), tuple(r['gold']), tuple(r['predicted']), r['document'])
                for r in read_jsonl(file, 'score the model again')
            ]
        except (OSError, KeyError, TypeError) as error:
            raise InputError(f'{file}: cannot be read ({error!r}); score the model again') from error

    def word_of(self, examples: Sequence[Any]) -> Mapping[str, tuple[int, ...]] | None:
        """What a record has to say of the test for `asked_again`, see there; None where predictions say all."""
        return None

    def asked_again(self, items: Sequence[Predicted], record: FineTuning) -> Sequence[Any] | None:
        """The examples of all test predictions, as the model has read them, for it to answer them once more.

        There are none where a task keeps too little of them; None where the record lacks what `word_of` has said.
        """
        return ()

    def vote(self, given: Sequence[Sequence[Any]]) -> Sequence[Any]:
        """What several seeds say together of one example: at each place the answer that most of them give.

        Among answers that are given equally often it is the earliest seed's.
        """
        return tuple(Counter(at_place).most_common(1)[0][0] for at_place in zip(*given, strict=True))

    def counted(self, answers: Sequence[Any]) -> Sequence[Any]:
        """What `vote` counts of the answers of a seed, at each place."""
        return answers

    @property
    def averages(self) -> bool:
        """Whether seeds that answer together do so by the mean of what their heads have found; else they vote."""
        return False

    @property
    def together(self) -> str:
        """What models of several seeds do to answer together, as a verb."""
        return 'answer by the mean of their logits' if self.averages else 'vote'

    def keep(self, folder: Path, found: Sequence[Any]) -> None:  # noqa: B027
        """Leave what the head found in the windows of test, where `mean` can use it."""

    def mean(
        self, dataset: Any, folders: Sequence[Path], labels: Sequence[str], settings: Finetune
    ) -> list[Any] | None:
        """Answers to the test items from the mean of what several seeds have found; None where it was not kept."""
        return None

    def shared(self, dataset: Any, other: Any) -> Mapping[str, str]:
        """What models of a set can find in another: labels of the first -> of the other. Nothing by default."""
        return {}

    def restrict_labels(self, answers: Sequence[Any], names: Mapping[str, str]) -> Sequence[Any]:
        """The answers to an example with these labels alone, by their other names."""
        return answers

    def read_file(self, chosen: NamedSet, file: Path) -> tuple[Sequence[Any], Any]:
        """The examples of a test file, or of such a folder, without the other splits; and a set of these alone for
        `detail`, None where this needs the other splits. Raises InputError."""
        raise InputError(f'{file}: this task reads only whole sets; give the folder of one')

    def outside(self, chosen: NamedSet, asked: Submission) -> tuple[list[Any], list[str]]:
        """Answers to the test items that were predicted elsewhere, and what is odd about them. Raises InputError."""
        raise InputError(f'{asked.file}: this task reads no predictions that were made elsewhere')

    def of(self, dataset: str, said: SetDescription | None = None) -> 'Task':
        """This task as the set of that name is measured; itself where all sets are measured alike.

        `said`: the description of a set that is not public.
        """
        return self

    @property
    def metric(self) -> Metric:
        return self.metrics[DEFAULT]

    def scores(self, gold: Sequence[Any], predicted: Sequence[Any]) -> dict[str, dict[str, float]]:
        """What a record holds of a split, by metric."""
        return {name: metric.scores(gold, predicted) for name, metric in self.metrics.items()}


def of_setting(settings: Finetune) -> str:
    """Words for messages: which of several settings has a value."""
    [name] = settings.settings
    return '' if name == STANDARD else f' in setting {name!r}'


def task_for(chosen: NamedSet) -> Task:
    """What is learned from a set, as it is measured."""
    return TASKS.load(chosen.task).of(chosen.name, chosen.described)


def task_of(record: ModelOnSet) -> Task:
    """The kind that a record of a fine-tuning says, as its set is measured."""
    return TASKS.load(record.task or Finetune.task).of(record.dataset, record.set)


def score_of(record: ScoredCell, split: str) -> float:
    """The score on a split, 'devel' or 'test', by which seeds, settings and models are compared."""
    return record.splits[split][DEFAULT][task_of(record).metric.name]


def devel_chooses(record: ScoredCell) -> bool:
    """Whether its score on devel may choose: devel was not trained on, and the task learns something."""
    return isinstance(record, FineTuning) and not record.learned_devel and task_of(record).learns
