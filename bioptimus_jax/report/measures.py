"""What a run has measured so far, read from its folder; an unfinished run gives what is there."""

import dataclasses
import functools
import itertools
import math
import os
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from bioptimus_jax.errors import InputError
from bioptimus_jax.finetuning import search
from bioptimus_jax.finetuning.finished import CELLS, RESULTS, claimed, read_cell
from bioptimus_jax.finetuning.task import Task, devel_chooses, score_of, task_of
from bioptimus_jax.model.config import SOURCE, phase_of
from bioptimus_jax.model.folder import given
from bioptimus_jax.pretrain import goodput
from bioptimus_jax.pretrain.curriculum import PHASES
from bioptimus_jax.pretrain.curriculum import RECORD as CURRICULUM
from bioptimus_jax.pretrain.overlap import RECORD as OVERLAP
from bioptimus_jax.records.analysis import FrozenScore, HiddenWords, NewToken, Points, SentenceVectors, Shape
from bioptimus_jax.records.corpus import AuditedDocument
from bioptimus_jax.records.counts import RowCountsOfSplits, SplitRows
from bioptimus_jax.records.curriculum import (
    Difficulty,
    Facts,
    HeldoutOverlap,
    OfSetting,
    OrderDifficulty,
    PlacedPhase,
)
from bioptimus_jax.records.finetune import BASELINES, FineTuning, ModelOnSet
from bioptimus_jax.records.manifests import Begun, Claim, Manifest
from bioptimus_jax.records.metrics import Encoded, EncodedFlops, Evaluation, Spans, Spent, Training
from bioptimus_jax.records.probe import Probe
from bioptimus_jax.records.record import REMEDY, Record
from bioptimus_jax.records.sets import LabelShares, LabelsOfSet, LintedSet, TrainingMentions
from bioptimus_jax.records.statistics import (
    CrossedModel,
    ItemSlices,
    MentionSlices,
    ModelStatistics,
    SettingSearch,
    SlicedModel,
)
from bioptimus_jax.records.surgery import TokenRow
from bioptimus_jax.records.vocabulary import Comparison, Entities, Frequency
from bioptimus_jax.run.folder import Run
from bioptimus_jax.run.manifests import outdated, read_claim
from bioptimus_jax.scoring.comparison import SeedKey
from bioptimus_jax.storage.files import JsonObject, read_json
from bioptimus_jax.surgery.account import TOKENS_FILE
from bioptimus_jax.vocab.frequency import FILE as FREQUENCY

PROBE = 'probe.json'
DIFFICULTY = 'difficulty.json'
PHASE_INITIAL = 'initial'
NO_PHASES = 'this run trains no phases; it fine-tunes models that were made before.'
NOT_SCORED = 'stage finetune has not been run, or has scored nothing yet.'
NOT_ANALYZED = 'stage analyze has not been run to its end.'
OF_BASELINES = (
    'Majority: the answer that training gives most often, for every text; prior: answers drawn as often as training'
    ' gives them; bm25: documents by the words that they share with a query.'
)
READ = ('corpus', 'vocab', 'surgery', 'pretrain', 'export', 'finetune', 'analyze')
WEIGHTS = ('model', 'pytorch_model', 'adapter_model')
"""The beginnings of the names of files of weights."""
LABELS = {SOURCE: 'source', PHASE_INITIAL: 'initial (step 0)'}
RecordT = TypeVar('RecordT', bound=Record)
OfModelT = TypeVar('OfModelT', bound=ModelOnSet)


class FileOfStage(NamedTuple):
    """What a field is read from: a file of a stage, of that kind, whose entries are `of` that kind of record."""

    stage: str
    file: str
    kind: type | None
    of: type[Record] | None


def _of(stage: str, file: str, kind: type, of: type[Record] | None = None, last: bool = False) -> Any:
    """A field that is read from a file of a stage, a list or an object; its entries are of that kind of record.

    `last`: the stage writes the file once all else is done. While it goes on, what lies there may be of earlier
    settings, and is not read.
    """
    return dataclasses.field(
        default_factory=kind, metadata={'of': FileOfStage(stage, file, kind, of), 'last': last}
    )


def _one(stage: str, file: str, of: type[Record], last: bool = False) -> Any:
    """A field that is read from a file of a stage, one record; None where there is no file. `last`: see `_of`."""
    return dataclasses.field(default=None, metadata={'of': FileOfStage(stage, file, None, of), 'last': last})


@dataclasses.dataclass(frozen=True)
class MeasuredDifficulty:
    """The perplexities of a model by phase, and what they were measured on."""

    on: Facts
    model: str
    settings: Mapping[str, OfSetting]


@dataclasses.dataclass(frozen=True)
class Measures:
    """Records of one run, in the formats that the stages write; empty where a stage has not been run."""

    run: Run
    training: list[Training] = dataclasses.field(default_factory=list)
    spent: list[Spent] = dataclasses.field(default_factory=list)
    evaluations: list[Evaluation] = dataclasses.field(default_factory=list)
    clock: list[Spans] = dataclasses.field(default_factory=list)
    finetuned: list[FineTuning] = dataclasses.field(default_factory=list)
    cloze: list[HiddenWords] = _of('analyze', 'cloze.json', list, HiddenWords, last=True)
    geometry: list[Shape] = _of('analyze', 'geometry.json', list, Shape, last=True)
    points: Points | None = _one('analyze', 'points.json', Points, last=True)
    similarity: list[SentenceVectors] = _of('analyze', 'similarity.json', list, SentenceVectors, last=True)
    frozen: list[FrozenScore] = _of('analyze', 'frozen.json', list, FrozenScore, last=True)
    snapshots: list[HiddenWords] = _of('analyze', 'snapshots.json', list, HiddenWords, last=True)
    new_tokens: list[NewToken] = _of('analyze', 'new_tokens.json', list, NewToken, last=True)
    tokens: list[TokenRow] = dataclasses.field(default_factory=list)
    audit: list[AuditedDocument] = dataclasses.field(default_factory=list)
    comparison: Comparison | None = _one('vocab', 'comparison.json', Comparison)
    frequency: Frequency | None = _one('vocab', FREQUENCY, Frequency)
    entities: Entities | None = _one('analyze', 'entities.json', Entities, last=True)
    probe: Probe | None = None
    difficulty: list[MeasuredDifficulty] = dataclasses.field(default_factory=list)
    encoded: Sequence[Encoded | EncodedFlops] = dataclasses.field(default_factory=list)
    statistics: list[ModelStatistics] = _of('finetune', 'statistics.json', list, ModelStatistics, last=True)
    slices: list[SlicedModel] = _of('finetune', 'slices.json', list, SlicedModel, last=True)
    crossed: list[CrossedModel] = _of('finetune', 'crossed.json', list, CrossedModel, last=True)
    lint: list[LintedSet] = _of('finetune', 'lint.json', list, LintedSet)
    training_mentions: list[TrainingMentions] = dataclasses.field(default_factory=list)
    labels: dict[str, LabelsOfSet] = dataclasses.field(default_factory=dict)
    search: SettingSearch | None = _one('finetune', search.FILE, SettingSearch, last=True)
    kept_steps: dict[str, int] = _of('pretrain', PHASES, dict)
    curriculum: list[PlacedPhase] = _of('pretrain', CURRICULUM, list, PlacedPhase)
    overlaps: list[HeldoutOverlap] = _of('pretrain', OVERLAP, list, HeldoutOverlap)
    manifests: dict[str, Manifest] = dataclasses.field(default_factory=dict)
    begun: dict[str, Claim] = dataclasses.field(default_factory=dict)
    """The configuration of every stage that has begun and not ended."""
    gaps: str = ''
    """What finished stages have written and is not there any more, in words."""

    @property
    def trains(self) -> bool:
        """Whether pre-training belongs to this run: one that only fine-tunes given models has no phases."""
        return 'pretrain' in self.run.config.stages or bool(self.evaluations)

    @property
    def keeps_vocabulary(self) -> bool:
        """Whether the pieces are those of the source: as configured, or as stage vocab found."""
        found = self.comparison
        same = found is not None and (found.new, found.lost) == (0, 0)
        return self.run.config.vocab.kind == 'source' or same

    def manifest_of(self, stage: str) -> Manifest:
        """The manifest of a stage, an empty one where it is not finished."""
        return self.manifests.get(stage, Manifest())

    def content_of(self, stage: str) -> str | None:
        """The digest of what a stage wrote."""
        return self.manifest_of(stage).content

    def rows_of(self, split: str = 'train') -> SplitRows | None:
        """What stage rows counted of a split, `train`, `heldout` or that of a `RowShape`; None where it has not."""
        counts = RowCountsOfSplits.of(self.manifest_of('rows'))
        named = {'train': counts.train, 'heldout': counts.heldout, **(counts.more or {})} if counts else {}
        return named.get(split)

    @property
    def phases(self) -> list[str]:
        """Phases in the order of training, which the run may have computed; before it begins, in the order given."""
        if not self.trains:
            return []
        given, trained = self.run.config.phases, [r.name for r in self.curriculum]
        return [n for n in trained if n in given] + [n for n in given if n not in trained]

    @property
    def models(self) -> list[str]:
        """Every model that something is known of: the source, step 0, phases and their snapshots, other paths."""
        seen = [
            *(r.model for r in self.finetuned),
            *(r.model for r in self.cloze),
            *(r.model for r in self.geometry),
        ]
        return self.in_order([*seen, *[PHASE_INITIAL] * self.trains, *self.phases])

    def in_order(self, models: Iterable[str]) -> list[str]:
        """Models, each once: the source, step 0, each phase after its snapshots, other paths."""
        seen = list(dict.fromkeys(models))
        known = [name for name in dict.fromkeys((SOURCE, self.source, PHASE_INITIAL)) if name in seen]
        for phase in self.phases:
            # The shorter name first: 0.1@5 comes before 0.1@25.
            snapshots = [name for name in seen if phase_of(name) == phase and name != phase]
            known += [*sorted(snapshots, key=lambda name: (len(name), name)), *[phase] * (phase in seen)]
        return known + [name for name in seen if name not in known]

    @property
    def on_the_way(self) -> list[str]:
        """Step 0, the phases and their snapshots: the models that follow one another in training."""
        return [x for x in self.models if x == PHASE_INITIAL or phase_of(x) in self.phases]

    @functools.cached_property
    def source(self) -> str:
        """The name under which the source was scored: as source, or by its folder or hub id in config.finetune.models.

        SOURCE where it was not. A run that is read from its manifests, which have no paths, knows it by its weights.
        """
        scored, source = dict.fromkeys(r.model for r in self.finetuned), self.run.config.source
        if SOURCE in scored:
            return SOURCE
        own = list(filter(self._has_weights_of_source, scored))
        if source.path and not source.adapter:
            places = map(given, self.run.config.finetune.models)
            own = [name for name, place in places if name in scored and _same(place, source.path)]
        return next(iter(own), SOURCE)

    def _has_weights_of_source(self, model: str) -> bool:
        """Whether a scored model has all weights that surgery read of the source, those of an adapter among them."""
        tuning: Begun = self.manifests.get('finetune') or self.begun.get('finetune') or Manifest()
        of_source = weights_among(_of_source(self.manifest_of('surgery').inputs))
        of_model = weights_among(tuning.inputs, f'model {model}:')
        return bool(of_source) and set(of_source) <= set(of_model)

    @property
    def datasets(self) -> list[str]:
        return list(dict.fromkeys(r.dataset for r in self.finetuned))

    def label(self, model: str) -> str:
        """A model's name in tables and figures: the one that it was scored by, which no other model has."""
        return LABELS.get(model, model)

    def step_of(self, model: str) -> int | None:
        """The pre-training step at which a phase ended or a snapshot was kept, or None where it is not known."""
        end = self.phase_end(model)
        return end.step if end else self.kept_steps.get(model)

    @property
    def lines(self) -> list[Training | Evaluation]:
        """What pre-training has put on record."""
        return [*self.training, *self.evaluations]

    @property
    def held_out(self) -> dict[int, float]:
        """Held-out losses by step, in nats a piece; a record may have the steps alone."""
        return {e.step: e.frozen_loss for e in self.evaluations if e.frozen_loss is not None}

    def phase_end(self, phase: str) -> Evaluation | None:
        """The evaluation at the end of a phase ('initial': before the first step), or None."""
        for record in reversed(self.evaluations):
            if record.phase == phase and (phase == PHASE_INITIAL or record.phase_end):
                return record
        return None

    def cells(self, model: str, dataset: str, setting: str = '') -> list[FineTuning]:
        """The fine-tunings of a model on a set, in order of seeds; '': under the setting that devel chooses."""
        own = [r for r in self.finetuned if (r.model, r.dataset) == (model, dataset)]
        setting = setting or self.chosen(model, dataset)
        return sorted((r for r in own if r.setting == setting), key=lambda r: r.seed)

    def settings(self, model: str, dataset: str) -> list[str]:
        own = (r for r in self.finetuned if (r.model, r.dataset) == (model, dataset))
        return list(dict.fromkeys(r.setting for r in own))

    def chosen(self, model: str, dataset: str) -> str:
        """The setting with the highest mean score on devel, the first of equals; test has no say.

        With config.finetune.tuned_on the mean is over those models, and all models have the same setting.
        """
        common = best_setting([(self, name) for name in self.run.config.finetune.tuned_on], dataset)
        return common if common in self.settings(model, dataset) else best_setting([(self, model)], dataset)

    def scores(
        self,
        model: str,
        dataset: str,
        split: str = 'test',
        mode: str = 'default',
        what: str = '',
        setting: str = '',
    ) -> list[float]:
        """One number per seed, in percent, under one setting; '': the one that devel chooses, of the set's metric."""
        if not setting and not (setting := self.chosen(model, dataset)):
            return []
        cells = self.cells(model, dataset, setting)
        if split == 'devel':  # what was learned says nothing of a model
            cells = [r for r in cells if devel_chooses(r)]
        return [100 * r.splits[split][mode][what or self.task(dataset).metric.name] for r in cells]

    def by_seed(self, model: str, dataset: str, setting: str = '') -> dict[SeedKey, float]:
        """The test score in percent with each seed of fine-tuning; empty without any."""
        return {(cell.seed,): 100 * score_of(cell, 'test') for cell in self.cells(model, dataset, setting)}

    def baseline(self, name: str, dataset: str) -> list[float]:
        """The test score, in percent, of answers that read nothing; empty where it is not on record."""
        own = (r.baselines for r in self.finetuned if r.dataset == dataset)
        return [100 * found[name] for found in itertools.islice(own, 1) if name in found]

    @property
    def baselines(self) -> list[str]:
        """Baselines that some set has."""
        return [name for name in BASELINES if any(name in r.baselines for r in self.finetuned)]

    def task(self, dataset: str) -> Task:
        """What was learned from a set that was scored."""
        return task_of(next(r for r in self.finetuned if r.dataset == dataset))

    def statistics_of(self, model: str, dataset: str, setting: str = '') -> ModelStatistics | None:
        """The record of statistics.json; '': of the setting that devel chooses."""
        return self._of_model(self.statistics, model, dataset, setting)

    def slices_of(self, model: str, dataset: str, setting: str = '') -> MentionSlices:
        """The mentions of slices.json; '': of the setting that devel chooses."""
        found = self._of_model(self.slices, model, dataset, setting)
        return found.slices if found else {}

    def overlap_of(self, model: str, dataset: str) -> ItemSlices:
        """The test items by what training has of their text, under the setting that devel chooses."""
        found = self._of_model(self.slices, model, dataset, '')
        return found.overlap if found else {}

    def _of_model(
        self, records: Sequence[OfModelT], model: str, dataset: str, setting: str
    ) -> OfModelT | None:
        wanted = model, dataset, setting or self.chosen(model, dataset)
        return next((r for r in records if (r.model, r.dataset, r.setting) == wanted), None)

    def cloze_of(self, model: str) -> HiddenWords | None:
        return next((r for r in self.cloze if r.model == model), None)

    def sentence_vectors_of(self, model: str) -> SentenceVectors | None:
        return next((r for r in self.similarity if r.model == model), None)

    def hidden_words_of(self, model: str) -> HiddenWords | None:
        """Hidden words of a model, snapshots too; see `cloze_of`."""
        return next((r for r in (*self.cloze, *self.snapshots) if r.model == model), None)

    def frozen_f1(self, model: str, dataset: str) -> float | None:
        """The F1, in percent, of entities from the frozen states of a model; None where it was not measured."""
        found = (r.f1 for r in self.frozen if (r.model, r.set) == (model, dataset))
        return next((100 * f1 for f1 in found), None)


def _same(place: str, path: str) -> bool:
    """Whether two texts are of one folder, or of one hub id."""
    return os.path.realpath(place) == os.path.realpath(path)


def _of_source(inputs: Mapping[str, str | None]) -> dict[str, str | None]:
    """The inputs of surgery without those of a donor, whose config.json is the second."""
    configs = [at for at, name in enumerate(inputs) if name.endswith(':config.json')]
    return dict(itertools.islice(inputs.items(), configs[1] if len(configs) > 1 else None))


def weights_among(inputs: Mapping[str, str | None], beginning: str = '') -> list[str]:
    """Digests of the files of weights among inputs whose names begin so."""
    named = [(name, value) for name, value in inputs.items() if name.startswith(beginning)]
    return [value for name, value in named if value and any(f':{of}' in name for of in WEIGHTS)]


def best_setting(models: Sequence[tuple[Measures, str]], dataset: str) -> str:
    """The fine-tuning setting with the highest mean score on devel over all of these models; the first of equals."""
    tried = [m.settings(model, dataset) for m, model in models]
    names = list(dict.fromkeys(name for of_model in tried for name in of_model))
    # A search may leave models with different settings.
    names = [name for name in names if all(name in of_model for of_model in tried)] or names
    found = {n: [s for m, x in models for s in m.scores(x, dataset, 'devel', setting=n)] for n in names}
    return max(found, key=lambda name: statistics.fmean(found[name] or [-math.inf]), default='')


def scored_sets(runs: Iterable[Measures]) -> dict[str, str]:
    """The sets that runs were scored on, and the heading of their scores."""
    return {d: f'{m.task(d).metric.label} {d}' for m in runs for d in m.datasets}


def score_names(*runs: Measures) -> str:
    """What the scores of all their sets are; F1 before there are any."""
    return ', '.join(dict.fromkeys(m.task(d).metric.label for m in runs for d in m.datasets)) or 'F1'


def read_measures(run: Run, details: bool = True) -> Measures:
    """Everything the report is made from. Raises InputError for damaged files, never for missing ones: see `gaps`.

    Without `details` no `audit`, `tokens` and `points`: many runs are read for their scores, and these are large.
    """
    pretrain = run.stage_metrics('pretrain')
    lacking = [said for stage in READ for said in run.lacks(stage)]
    gaps = f'Incomplete: {"; ".join(lacking)}.' if lacking else ''
    manifests = {s: m for s in run.config.stages if (m := run.manifest(s)) is not None}
    begun = _begun([run.workdir / s for s in run.config.stages if not run.manifest(s)])
    older = {stage: anew for stage, anew in outdated(manifests, begun).items() if stage in READ}
    if older:
        said = '; '.join(f'{stage} is of an earlier {", ".join(anew)}' for stage, anew in older.items())
        gaps += f' Not of one making: {said}. Run these again: their numbers may be of another model.'
    training = Training.among(pretrain)
    folders = {stage: run.stage_folder(stage) for stage in READ}
    files = _files(begun, left_out=() if details else ('points',))
    found = {name: _read(folders[stage] / file, kind, of) for name, (stage, file, kind, of) in files.items()}
    return Measures(
        run=run,
        training=training,
        spent=[line.spent for line in training],
        evaluations=Evaluation.among(pretrain),
        clock=Spans.among(run.stage_metrics('pretrain', goodput.STAGE)),
        finetuned=_cells(folders['finetune']),
        tokens=_records(TokenRow, folders['surgery'] / TOKENS_FILE) if details else [],
        audit=_records(AuditedDocument, folders['corpus'] / 'audit.jsonl') if details else [],
        probe=_read(run.workdir / PROBE, None, Probe),
        difficulty=_difficulty(run.workdir, folders['pretrain']),
        labels=_labels(folders['finetune'] / 'labels.json'),
        encoded=Encoded.among(run.stage_metrics('surgery')),
        manifests=manifests,
        begun=begun,
        gaps=gaps.strip(),
        training_mentions=[of_set for one in found['lint'] if (of_set := one.training)],
        **found,
    )


def _files(begun: Collection[str], left_out: Collection[str]) -> dict[str, FileOfStage]:
    """What each field is read from, without those that stages which have begun and not ended write last."""
    read = {f.name: f.metadata for f in dataclasses.fields(Measures) if f.metadata}
    return {
        name: of['of']
        for name, of in read.items()
        if name not in left_out and not (of['last'] and of['of'].stage in begun)
    }


def _begun(unfinished: Iterable[Path]) -> dict[str, Claim]:
    """Stage -> the claim of an attempt, for those of the folders that have one."""
    claims = {folder.name: read_claim(folder) for folder in unfinished}
    return {stage: claim for stage, claim in claims.items() if claim}


def flat(counts: Mapping[str, Any], prefix: str = '') -> JsonObject:
    """Nested counts as `a.b: value`; lists are left out."""
    leaves: JsonObject = {}
    for name, value in counts.items():
        if isinstance(value, Mapping):
            leaves |= flat(value, f'{prefix}{name}.')
        elif not isinstance(value, list):
            leaves[prefix + name] = value
    return leaves


def _difficulty(workdir: Path, pretrain: Path) -> list[MeasuredDifficulty]:
    """A record for every model that was measured: by the verb, and for the order of the curriculum."""
    found, path = [], workdir / DIFFICULTY
    if (value := read_json(path)) is not None:
        asked = Difficulty.read(value, str(path), 'run `bioptimus difficulty` again')
        found = [MeasuredDifficulty(asked, r.model, r.settings) for r in asked.models]
    path = pretrain / DIFFICULTY
    if (value := read_json(path)) is not None:
        order = OrderDifficulty.read(value, str(path), REMEDY)
        found.append(MeasuredDifficulty(order, order.probe, order.settings))
    return found


def _cells(folder: Path) -> list[FineTuning]:
    """Results of a finished stage; of one that goes on the cells that it asks for and that are done, none before it has
    said which; without a record of the stage all that are there."""
    goes_on, asked = read_claim(folder) is not None, claimed(folder) or {}
    if not goes_on and (folder / RESULTS).exists():
        return FineTuning.read_lines(folder / RESULTS)
    cells = []
    for file in sorted(folder.glob(CELLS)):
        record = read_cell(file)
        if isinstance(record, FineTuning) and (not goes_on or asked.get(file.parent) == record.print):
            cells.append(record)
    return cells


def _labels(path: Path) -> dict[str, LabelsOfSet]:
    found = _read(path, dict)
    return {name: LabelShares.read_by_name(of_set, f'{path}, {name}') for name, of_set in found.items()}


def _read(path: Path, kind: type | None, of: type[Record] | None = None, *needed: str) -> Any:
    """The records of a file, or none of them where it does not exist. Raises InputError."""
    value = read_json(path)
    if value is None:
        return kind and kind()
    if of:
        return of.read_all(value, str(path)) if kind is list else of.read(value, str(path))
    records = value if isinstance(value, list) else [value]
    fits = isinstance(value, kind or object) and all(isinstance(record, dict) for record in records)
    if not fits or any(key not in record for record in records for key in needed):
        raise InputError(f'{path}: is damaged (other JSON than was written); {REMEDY}')
    return value


def _records(kind: type[RecordT], path: Path) -> list[RecordT]:
    return kind.read_lines(path) if path.exists() else []
