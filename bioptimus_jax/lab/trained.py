"""Every scored model of several runs: how it was trained, and under which conditions its scores compare with others.

What a model is comes from the manifests alone: names of folders, arms and phases say nothing here.
"""

import dataclasses
import itertools
import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from bioptimus_jax.config.fields import walk
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.finetuning.config import NOT_OF_A_SETTING
from bioptimus_jax.model.config import SNAPSHOT, SOURCE, phase_of
from bioptimus_jax.pretrain import mixture
from bioptimus_jax.pretrain.config import PAPER_PHASES, SELF_PACED, HasTraining, Phase
from bioptimus_jax.pretrain.curriculum import ScheduledPhase, Stretch, stretches
from bioptimus_jax.pretrain.objective import masking_of, objective_of, unusual_objective
from bioptimus_jax.pretrain.shape import StepShape, own_shape, shape_of, warmup_of
from bioptimus_jax.pretrain.shares import PATTERN, quotas
from bioptimus_jax.records.curriculum import RowCounts
from bioptimus_jax.records.finetune import FineTuning
from bioptimus_jax.records.manifests import Manifest
from bioptimus_jax.report.measures import PHASE_INITIAL, Measures, weights_among
from bioptimus_jax.rows.config import RowShape
from bioptimus_jax.storage.files import digest
from bioptimus_jax.surgery.config import PAPER_ROWS, Surgery

OF_THE_ROW = ('scale', 'batch_pieces')  # keys of surgery that a row's name has anyway, or that decide nothing
PRETRAIN_ROW = ('learning_rate', 'micro_batches')
ROWS_ROW = ('shard_rows',)
EVALUATION = ('seed', 'rows', 'rate')
TOLD_OF_A_PHASE = (
    *('masking', 'rate', 'rate_end', 'rate_parts', 'corruption', 'objective'),  # by its name
    *('duration', 'duration_unit', 'learning_rate', 'schedule'),  # by words and by the path of the rates
    'micro_batches',  # decides nothing
)
"""Keys of a phase that are no conditions of their own; all others are."""
BUDGETS = ('words of', 'learning rate', 'mentions of', 'training sentences')
"""Beginnings of names of conditions."""
DIGITS = 8
"""Digits of a digest that are shown."""
SAME_WORDS = 0.01
"""Share of words by which the same text may differ in the rows of two vocabularies."""
T = TypeVar('T')


def setting_name(phase: Phase) -> str:
    """What a phase masks, as 'words 20 %, all [MASK]' or 'words 15 to 40 %'; 80-10-10 goes without saying."""
    first, last = (f'{100 * rate:.3g}' for rate in phase.rates)
    name = f'{phase.masking} {first} %'
    if first != last:
        name = f'{phase.masking} {first} to {last} %'
        name += f' in {phase.rate_parts} parts' if phase.rate_parts else ''
    if tuple(phase.corruption) == (1.0, 0.0, 0.0):
        return f'{name}, all [MASK]'
    shares = '-'.join(f'{100 * share:.3g}' for share in phase.corruption)
    return name if shares == '80-10-10' else f'{name}, {shares}'


def phase_name(config: HasTraining, name: str) -> str:
    """What a phase trains on: what it masks; with an objective that is not the usual one also the name of that."""
    setting = setting_name(config.phase[name])
    if not (own := unusual_objective(config, name)):
        return setting
    return f'{own}, {setting}' if masking_of(config, name) else own


PAPER_SETTINGS = tuple(setting_name(phase) for phase in PAPER_PHASES.values())


def losses_under(m: Measures, model: str) -> dict[str, float]:
    """Held-out losses of a model at [MASK], by the setting that was masked; {} where none was scored.

    Of a phase whose rate moves it is the first rate.
    """
    losses = end.losses if (end := m.phase_end(model)) else {}
    masked = {name: dataclasses.replace(m.run.config.phase[name], rate_end=0.0) for name in losses}
    return {setting_name(masked[name]): loss for name, loss in losses.items()}


def loss_measured_by(m: Measures) -> tuple[Any, ...]:
    """What must be alike for held-out losses of two runs to compare: pieces, documents, masks, and what the loss is."""
    stage = m.manifests.get('pretrain') or m.begun.get('pretrain') or Manifest()
    config = m.run.config  # of a run among others it is that of all of them

    def made_with(section: str, name: str) -> Any:
        return stage.settings.get(f'{section}.{name}', getattr(getattr(config, section), name))

    masks = tuple(made_with('evaluation', name) for name in EVALUATION)
    loss = objective_of(config, made_with('pretrain', 'objective')).heldout_loss
    return m.content_of('vocab'), m.rows_of('heldout'), masks, loss


@dataclasses.dataclass(frozen=True)
class Trained:
    """A scored model: one of `measures`' own, at the end of its `path` of settings, or one given as a folder.

    `partial`: a snapshot within the last phase of `path`, or step 0. `rate`: the first phase's peak learning rate.
    """

    measures: Measures
    model: str
    path: tuple[str, ...] = ()
    partial: bool = False
    rate: float = 0.0
    conditions: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def own(self) -> bool:
        return bool(self.path) or self.partial

    @property
    def config(self) -> Experiment:
        return self.measures.run.config

    @property
    def folder(self) -> Path:
        return self.measures.run.workdir

    @property
    def seed(self) -> int | None:
        """The seed of contexts, rows and pre-training; a model that was given as a folder has none that is known."""
        return self.config.seed if self.own else None

    @property
    def initialisation(self) -> str:
        """Strategy, scale of the new rows, and whatever else is not as in the paper's rows."""
        surgery = self.config.surgery
        parts = [surgery.strategy]
        if surgery.initialisation.scaled:
            parts.append(surgery.scale)
        different = surgery.different(Surgery(**PAPER_ROWS))
        parts += [_in_words(name, value) for name, value in different.items() if name not in OF_THE_ROW]
        return ', '.join(parts)

    @property
    def words(self) -> float:
        """Words of the corpus seen in pre-training, up to here."""
        m = self.measures
        step = m.step_of(self.model)
        if step is not None and (read := words_until(m, step)):
            return read
        planned = _planned(m)[: len(self.path)]  # what is on record of a run without evaluations
        return 0.0 if self.partial else sum(planned)

    def cells(self, dataset: str, setting: str = '') -> list[FineTuning]:
        return self.measures.cells(self.model, dataset, setting)


def curriculum_name(path: Sequence[str]) -> str:
    """The settings in order; `static: ...` where there is but one; the paper's four have a name in any order."""
    listed = '; '.join(path)
    if len(set(path)) == 1:
        return f'static: {path[0]}'
    if sorted(path) != sorted(PAPER_SETTINGS):
        return listed
    named = {PAPER_SETTINGS: 'easy to hard', PAPER_SETTINGS[::-1]: 'hard to easy'}
    return named.get(tuple(path), f'shuffled: {listed}')


def _in_words(name: str, value: Any) -> str:
    """`layers 3, 4` or, where none is named, `middle layers`; `shrinkage 1`, `map respelled`."""
    if isinstance(value, tuple):
        return f'{name} {", ".join(map(str, value))}' if value else f'middle {name}'
    return f'{name} {value:g}' if isinstance(value, float) else f'{name} {value}'


def trained_models(runs: Sequence[Measures]) -> list[Trained]:
    """Every model of these runs that has been scored or evaluated, in order."""
    found = []
    for m in runs:
        scored = list(dict.fromkeys(r.model for r in m.finetuned))
        ends = [name for name in m.phases if m.phase_end(name)]
        for model in dict.fromkeys([*(x for x in m.on_the_way if x in (*scored, *ends)), *scored]):
            found.append(_trained(m, model))
    return found


def differing(first: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """The conditions that both have and that are not the same; one that either lacks is no difference."""
    return [name for name in first if name in other and first[name] != other[name]]


def group_comparable(members: Iterable[tuple[Mapping[str, str], T]]) -> list[tuple[dict[str, str], list[T]]]:
    """Members by conditions that do not differ, and the conditions of each part."""
    parts: list[tuple[dict[str, str], list[T]]] = []
    for own, member in members:
        part = next((part for part in parts if not differing(part[0], own)), None)
        if part is None:
            parts.append(part := ({}, []))
        # A part has the conditions of all its members, which the next ones must not contradict.
        part[0].update(own)
        part[1].append(member)
    return parts


def one_set_up(models: Sequence[Trained], ignored: tuple[str, ...] = BUDGETS) -> tuple[list[Trained], str]:
    """The models of the largest group of runs that compare, and what is left out.

    `ignored`: how the names of conditions begin that may differ.
    """
    runs: dict[int, list[Trained]] = {}
    for t in models:
        runs.setdefault(id(t.measures), []).append(t)
    conditions = [
        {n: value for t in of_run for n, value in t.conditions.items() if not n.startswith(ignored)}
        for of_run in runs.values()
    ]
    groups = [
        list(itertools.chain(*members))
        for _, members in group_comparable(zip(conditions, runs.values(), strict=True))
    ]
    if not groups:
        return [], ''
    largest = max(groups, key=len)
    folders = sorted({t.folder.name for group in groups if group is not largest for t in group})
    named = f'Left out, since they were made differently: {", ".join(folders)}.' if folders else ''
    return largest, named


def name_among(t: Trained, among: Sequence[Trained], ignored: Collection[str] = ()) -> str:
    """What tells an arm from the others of initialisation, settings, rates and words; not by those `ignored`."""

    def parts(x: Trained) -> list[str]:
        lengths = [length for name, length in x.conditions.items() if name.startswith('words of')]
        alike = len(lengths) > 1 == len(set(lengths))
        # Of the whole run: snapshots and ends of phases are of one arm.
        rates = _rates(x.measures)
        shares = [f'{rate / rates[0]:.3g}' for rate in rates]
        found = {
            'initialisation': x.initialisation,
            'settings': curriculum_name(x.path) if x.path else '',
            'rate': f'learning rate {x.rate:g}',
            'shares': f'learning rates of phases as {" : ".join(shares)}' if set(shares) - {'1'} else '',
            'path': f'learning rate: {_path_of_rates(x.measures).partition(" over ")[0]}',
            'words': f'{f"{len(lengths)} × {lengths[0]}" if alike else "; ".join(lengths)} words',
        }
        return [text for name, text in found.items() if name not in ignored]

    several = [len(set(column)) > 1 for column in zip(*map(parts, among), strict=True)]
    return ', '.join(filter(None, itertools.compress(parts(t), several))) or t.initialisation


def words_until(m: Measures, step: int) -> float:
    """Words in the batches of the first so many steps, by their mean; 0 where stage rows has not been run."""
    if not m.rows_of():
        return 0.0
    steps = Counter[tuple[str, StepShape]]()
    for stretch in _stretches(m):
        stop = step if stretch.stop is None else min(step, stretch.stop)
        steps[stretch.phase, stretch.shape] += max(stop - stretch.start, 0)
    return sum(taken * _words_in_step(m, *of) for of, taken in steps.items())


def same_phases(a: Measures, b: Measures) -> bool:
    """Whether the phases of two runs, one after the other, have as many words, to a percent; where those of a run are
    not known, whether they were asked to last as long."""
    if len(a.phases) != len(b.phases):
        return False
    if not (a.rows_of() and b.rows_of()):
        return _durations(a) == _durations(b)
    words = zip(*(_taken(m, _planned(m)) for m in (a, b)), strict=True)
    return all(math.isclose(*of_phase, rel_tol=SAME_WORDS) for of_phase in words)


def _durations(m: Measures) -> list[tuple[float, str]]:
    """How long the phases were asked to last, and in what."""
    phases = [m.run.config.phase[name] for name in m.phases]
    return [(phase.duration, phase.duration_unit) for phase in phases]


def _stretches(m: Measures) -> tuple[Stretch, ...]:
    """The steps of a run by their shapes; all of them have the run's own where no curriculum is on record."""
    config = m.run.config
    if not m.curriculum:
        return (Stretch(0, None, '', own_shape(config)),)
    counts = _counts(m)
    schedule = tuple(
        ScheduledPhase(
            p.name, config.phase[p.name], p.start, p.stop, warmup=warmup_of(config, p.name, counts)
        )
        for p in m.curriculum
    )
    return stretches(schedule, config)


def _counts(m: Measures) -> dict[tuple[str, RowShape], RowCounts]:
    both = itertools.product(m.run.config.phases, m.run.config.row_shapes)
    return {(name, shape): found for name, shape in both if (found := _counts_of(m, name, shape))}


def _counts_of(m: Measures, phase: str, shape: RowShape) -> RowCounts | None:
    """What a phase is measured against: of other corpora, as it is on record; otherwise the run's own rows."""
    split = shape.split(m.run.config.rows)
    recorded = next((r.counts or {} for r in m.curriculum if r.name == phase), {})
    own = m.rows_of(split)
    return recorded.get(split) or (RowCounts(own.rows, own.tokens, own.words) if own else None)


def _words_in_step(m: Measures, phase: str, shape: StepShape) -> float:
    counts = _counts_of(m, phase, shape.rows)
    return shape.batch_rows * counts.words / counts.rows if counts else 0.0


def _trained(m: Measures, model: str) -> Trained:
    if model not in m.on_the_way or not m.phases:
        of_source = _source_weights(m) if model == SOURCE else {}
        return Trained(m, model, conditions=of_source | _of_fine_tuning(m, model))
    config = m.run.config
    at = m.phases.index(phase_of(model)) + 1 if phase_of(model) in m.phases else 0
    names = m.phases[:at]
    rates = _rates(m)
    conditions = _conditions(m, names, rates) | _of_fine_tuning(m, model)
    path = tuple(phase_name(config, name) for name in names)
    return Trained(m, model, path, not at or SNAPSHOT in model, rates[0], conditions)


def _rates(m: Measures) -> list[float]:
    """The peak learning rate of every phase."""
    config = m.run.config
    return [config.phase[name].learning_rate or config.pretrain.learning_rate for name in m.phases]


def _conditions(m: Measures, names: Sequence[str], rates: Sequence[float]) -> dict[str, str]:
    """What must be equal for scores of two models to be of one experiment, beside what a table compares."""
    config, reads = m.run.config, m.run.config.surgery.reads_contexts
    evaluation = {f'evaluation.{name}': str(getattr(config.evaluation, name)) for name in EVALUATION}
    return {
        **_contents(m),
        **_source_weights(m),
        **_shape(m),
        **(_keys('contexts', config.contexts) if 'contexts' in m.manifests and reads else {}),
        **_keys('rows', config.rows, ROWS_ROW),
        **_of_phases(m, names, rates),
        'learning rate': _path_of_rates(m),
        **evaluation,
        **_keys('pretrain', config.pretrain, PRETRAIN_ROW),
        **_of_objectives(config.resolved.objective, map(config.objective_in, names)),
    }


def _of_objectives(resolved: Mapping[str, Any], names: Iterable[str]) -> dict[str, str]:
    """Settings of these objectives, `resolved` by name; paths, which no manifest has, are left out."""
    return {
        f'objective.{one}.{key}': str(value)
        for one in dict.fromkeys(names)
        for key, value, metadata in walk(resolved[one])
        if not metadata.get('path')
    }


def _keys(section: str, settings: Any, left_out: Collection[str] = ()) -> dict[str, str]:
    fields = (field.name for field in dataclasses.fields(settings))
    return {f'{section}.{name}': str(getattr(settings, name)) for name in fields if name not in left_out}


def _contents(m: Measures) -> dict[str, str]:
    """Digests of the corpus and of a vocabulary of its own."""
    own = ('corpus',) if m.run.config.vocab.kind == 'source' else ('corpus', 'vocab')
    return {stage: content[:DIGITS] for stage in own if (content := m.content_of(stage))}


def _shape(m: Measures) -> dict[str, str]:
    """The architecture: that of a source, or the configured one. A source has a shape of its own, but no dropout."""
    inputs = m.manifest_of('surgery').inputs
    configured = _keys('model', m.run.config.model)
    of_source = [value for name, value in inputs.items() if value and name.endswith(':config.json')]
    if not of_source:
        return configured
    dropout = {name: value for name, value in configured.items() if name.endswith('dropout')}
    return {'architecture': of_source[0][:DIGITS], **dropout}


def _of_phases(m: Measures, names: Sequence[str], rates: Sequence[float]) -> dict[str, str]:
    """What the phases up to a model decide: words, learning rates, and all keys that the names of their settings leave
    open."""
    found: dict[str, str] = {}
    for number, (name, words, rate) in enumerate(zip(names, _taken(m, _planned(m)), rates, strict=False), 1):
        found[f'words of phase {number}'] = _rounded(words)
        found[f'learning rate of phase {number} as a share of the first'] = f'{rate / rates[0]:.3g}'
        open_keys = _open_keys(m, m.run.config.phase[name], first=number == 1)
        found |= {f'{key.replace("_", " ")} of phase {number}': x for key, x in open_keys.items()}
    return found


def _open_keys(m: Measures, phase: Phase, first: bool) -> dict[str, str]:
    """The keys of a phase that its name, its words and its learning rate do not tell, as far as they decide something;
    what it takes from the run is as there."""
    config = m.run.config
    shape, pretrain = shape_of(config, phase), config.pretrain
    found = {f.name: getattr(phase, f.name) for f in dataclasses.fields(phase)}
    found |= {'batch_rows': shape.batch_rows, **shape.rows._asdict(), 'corpora': _corpora_of(m, phase)}
    for key in ('warmup_fraction', 'end_fraction'):
        found[key] = getattr(pretrain, key) if found[key] < 0 else found[key]
    unused = set(TOLD_OF_A_PHASE)
    if phase.corruption[0] == 1:  # where all is [MASK] there is nothing to draw
        unused.add('corruption_unit')
    if first:
        unused.add('optimizer')
    elif phase.schedule == 'continue':  # the path is that of a phase before
        unused |= {'fall', 'warmup_fraction', 'end_fraction'}
    return {key: str(value) for key, value in found.items() if key not in unused}


def _corpora_of(m: Measures, phase: Phase) -> str:
    """The shares of the corpora in the rows of a phase, each by the digest of its rows where that is known."""
    inputs = (m.manifests.get('pretrain') or m.begun.get('pretrain') or Manifest()).inputs
    shares = sorted(
        f'{(inputs.get(mixture.CONTENT.format(name)) or "")[:DIGITS] or name}={rows / PATTERN:g}'
        for name, rows in quotas(phase.corpora).items()
    )
    return ', '.join(shares)


def _path_of_rates(m: Measures) -> str:
    paths: list[list[str]] = []
    for name, words in zip(m.phases, _planned(m), strict=True):
        if not paths or m.run.config.phase[name].schedule == 'restart':
            paths.append([])
        paths[-1].append(_rounded(words))
    if len(paths) == len(m.phases):
        return 'a path for each phase'
    number = 'one path' if len(paths) == 1 else f'{len(paths)} paths'
    return f'{number} over phases of {", then ".join(map("; ".join, paths))} words'


def _source_weights(m: Measures) -> dict[str, str]:
    weights = weights_among(m.manifest_of('surgery').inputs)
    return {'source': _digits(weights)} if weights and m.run.config.surgery.initialisation.source else {}


def _digits(weights: Sequence[str]) -> str:
    """What is shown of the digests of weights."""
    return (weights[0] if len(weights) == 1 else digest(weights))[:DIGITS]


def _rounded(words: float) -> str:
    """Words to three digits: the same text in another vocabulary is some words more or less."""
    return f'{float(f"{words:.3g}"):,.0f}'


def _planned(m: Measures) -> list[float]:
    """Words of every phase before they are rounded to whole steps."""
    return [_words(m, name) for name in m.phases]


def _taken(m: Measures, planned: Sequence[float]) -> list[float]:
    """Words of every phase: those planned, but what was measured where self-pacing or lack of time moved its end."""
    moved = m.run.config.curriculum.order == SELF_PACED or any(r.reduced_from for r in m.curriculum)
    if not moved or not m.rows_of():
        return list(planned)
    steps = [m.step_of(name) for name in (PHASE_INITIAL, *m.phases)]
    taken = []
    for name, (before, end), words in zip(m.phases, itertools.pairwise(steps), planned, strict=True):
        known = words if before is None or end is None else words_until(m, end) - words_until(m, before)
        # Within a step it is rounding, in which conditions must not differ.
        step = _words_in_step(m, name, shape_of(m.run.config, m.run.config.phase[name]))
        taken.append(known if abs(known - words) > step else words)
    return taken


def _words(m: Measures, name: str) -> float:
    config, phase = m.run.config, m.run.config.phase[name]
    shape = shape_of(config, phase)
    total = _counts_of(m, name, shape.rows)
    if phase.duration_unit == 'words' or total is None:
        return phase.duration
    if phase.duration_unit == 'steps':
        warmup = warmup_of(config, name, _counts(m))
        before = sum(steps * _words_in_step(m, name, of) for steps, of in warmup)
        later = phase.duration - sum(steps for steps, _ in warmup)
        return before + later * _words_in_step(m, name, shape)
    return phase.duration * (1 if phase.duration_unit == 'epochs' else 1 / total.tokens) * total.words


def _of_fine_tuning(m: Measures, model: str) -> dict[str, str]:
    if not any(r.model == model for r in m.finetuned):
        return {}
    settings = m.run.config.finetune
    found = _keys('finetune', settings, NOT_OF_A_SETTING)
    tried = {name: settings.setting.get(name, {}) for name in settings.settings}
    found['finetune.settings'] = json.dumps(tried, sort_keys=True)
    for key in ('of_set', 'halving', 'tuned_on'):
        if value := getattr(settings, key):
            found[f'finetune.{key}'] = json.dumps(value, sort_keys=True)
    # The folder of a rival is not in its name: those of two folders are two models.
    weights = weights_among(m.manifest_of('finetune').inputs, f'model {model}:')
    if weights and model != SOURCE:
        found[f'weights of {m.label(model)}'] = _digits(weights)
    for r in m.finetuned:
        if r.model == model:
            if r.gold_in_file is not None:
                found[f'mentions of {r.dataset}'] = str(r.gold_in_file)
            if r.sentences:
                found[f'training sentences of {r.dataset}'] = str(r.sentences['train'])
    return found
