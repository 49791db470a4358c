"""What every stage of a run takes on a machine, in seconds: by its speeds, and the lengths of texts and sets.

The constants were taken on an idle machine with two cores (LOG.md), and are multiplied by its `slowness`.
"""

import dataclasses
import math
import os
from collections.abc import Sequence
from pathlib import Path

from bioptimus_jax.analysis.config import HasAnalysis
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.recommended import completed
from bioptimus_jax.finetuning.task import task_for
from bioptimus_jax.hosts.workers import cores
from bioptimus_jax.pretrain.disk import WORDS_PER_DOCUMENT, new_tokens
from bioptimus_jax.pretrain.evaluate import batches_and_rows
from bioptimus_jax.pretrain.plan import Plan
from bioptimus_jax.pretrain.throughput import forward_flops_per_token, training_flops_per_token
from bioptimus_jax.report.layout import Column, Table, fixed
from bioptimus_jax.sets.corpora import sets_in, settings_on
from bioptimus_jax.start.machine import Machine
from bioptimus_jax.start.speeds import Speeds, speeds_of
from bioptimus_jax.text.words import count_words

CONSTANT = {
    'start': 6.0,
    'corpus': 1.0,
    'vocab': 3.0,
    'contexts': 2.0,
    'surgery': 3.0,
    'rows': 2.0,
    'pretrain': 12.0,
    'export': 20.0,
    'finetune': 8.0,
    'analyze': 8.0,
    'report': 5.0,
}
"""Seconds of a stage with hardly any text: processes that start, models that are read and written."""
WORDS_PER_SECOND = {'corpus': 120_000, 'vocab': 60_000, 'contexts': 60_000, 'rows': 60_000}
"""Words that a stage reads on one core."""
WRITTEN = 200e6
"""Bytes of a checkpoint that are written in a second, checksums included."""
WORDS_PER_SENTENCE, WINDOW = 22, 64
"""Words of a sentence of running text; pieces of the windows that words in context are read in."""
FROZEN_SETTINGS = 2
"""Masks beside those of the phases that are evaluated: of tokens and of words."""
PADDING = 1.4
"""Pieces of a batch of sentences with those that fill the shorter ones, for each piece."""
SENTENCE = 40
"""Pieces that one attends to in it."""
PROGRAMS = 1.5
"""Seconds of compiling a step and what evaluates, for each second of the step's forward and backward pass alone."""
OF_A_CELL = 6.0
"""Seconds of a fine-tuning beside its steps."""


@dataclasses.dataclass(frozen=True)
class SetLength:
    """Training examples of a set, and the pieces of its splits, as the source spells them, roughly."""

    name: str
    examples: int
    train: float
    devel: float
    test: float


def lengths_of_sets(settings: Finetune, pieces_per_word: float) -> list[SetLength]:
    """The lengths of the sets that are named; none where they are not here or cannot be read."""
    found = []
    if not os.path.isdir(settings.folder):
        return []
    try:
        for chosen in sets_in(Path(settings.folder), settings.datasets, task=settings.task):
            task = task_for(chosen)
            read, most = task.read(chosen), settings_on(settings, chosen.name).max_pieces
            lengths = [
                sum(
                    _pieces(example.words, pieces_per_word, most if task.cuts else math.inf)
                    for example in examples
                )
                for examples in (read.train, read.devel, read.test)
            ]
            found.append(SetLength(chosen.name, len(read.train), *lengths))
    except (ConfigError, InputError):  # stage `finetune` says what is wrong
        return []
    return found


def _pieces(words: Sequence[str], pieces_per_word: float, most: float) -> float:
    """Pieces of an example that are read, about. What is a word of a sentence is a whole text in sets of texts."""
    return min(count_words(' '.join(words)) * pieces_per_word, most)


@dataclasses.dataclass(frozen=True)
class Costs:
    """What the seconds follow from. `new`: tokens that the source does not have; `words`: of the corpus."""

    experiment: HasAnalysis
    plan: Plan
    speeds: Speeds
    words: float
    new: float
    sets: Sequence[SetLength]

    def seconds(self) -> dict[str, float]:
        """Seconds of every stage that the run has, in its order, and of the program's start."""
        made = {
            'vocab': self._read('vocab'),
            'corpus': self._read('corpus', self.plan.assumed.input_words),
            'rows': self._read('rows'),
            'contexts': self._read('contexts') if self.experiment.surgery.reads_contexts else 0.0,
            'surgery': self._surgery(),
            'pretrain': self.beside_steps() + self.evaluations() + self.steps(),
            'finetune': self.finetuning(),
            'analyze': self.analysis(),
        }
        named = {'start': self._constant('start')}
        for stage in self.experiment.stages:
            named[stage] = made.get(stage, self._constant(stage))
        return named

    def later(self) -> float:
        """Seconds of the stages after pre-training."""
        seconds = self.seconds()
        return sum(list(seconds.values())[list(seconds).index('pretrain') + 1 :])

    def steps(self) -> float:
        """Seconds of the optimiser steps."""
        return self.plan.flops / self.plan.assumed.fill / self.speeds.train

    def beside_steps(self) -> float:
        """Seconds that pre-training takes for its start, its compiler and its checkpoints."""
        layers, settings = self.plan.architecture.layers, self.experiment.runtime
        checkpoints = 3 + self.plan.steps / settings.checkpoint_every_steps
        size = 12 * sum(self.plan.parameters.values())
        written = checkpoints * size / WRITTEN * self.speeds.slowness
        return self._constant('pretrain') + PROGRAMS * self.speeds.compiling * layers + written

    def evaluations(self) -> float:
        """Seconds of the evaluations on held-out rows within and between the phases."""
        settings, phases = self.experiment.evaluation, self.plan.phases
        times = 1 + sum(min(settings.per_phase, phase.steps) for phase in phases)
        # At the start and at the ends of phases also by the masks of the phases.
        masks = FROZEN_SETTINGS * times + len(settings.settings or phases) * (1 + len(phases))
        held = self.words / WORDS_PER_DOCUMENT * self.experiment.corpus.heldout_fraction
        batches, rows = batches_and_rows(max(round(min(settings.rows, held)), 1))
        length = self.experiment.rows.max_document_pieces
        return masks * batches * rows * length * self._forward(length, settings.rate) / self.speeds.forward

    def finetuning(self) -> float:
        """Seconds of all fine-tunings, side by side on the cores of this machine."""
        settings, runtime, a = self.experiment.finetune, self.experiment.runtime, self.plan.architecture
        models = len(settings.models or self.experiment.phases)
        made = [(one, own) for one in self.sets for own in settings_on(settings, one.name).tried]
        cells = models * sum(len(own.seeds) for _, own in made)
        train, forward = training_flops_per_token(a, SENTENCE, 0), self._forward(SENTENCE, 0)
        flops = models * sum(
            len(own.seeds)
            * (
                completed(own, a.hidden, one.examples).epochs * (one.train * train + one.devel * forward)
                + one.test * forward
            )
            for one, own in made
        )
        seconds = flops * PADDING / self.speeds.torch + cells * OF_A_CELL * self.speeds.slowness
        beside = max(min(runtime.workers or len(cores()), len(cores())) // max(runtime.torch_threads, 1), 1)
        return self._constant('finetune') + seconds / min(beside, max(cells, 1))

    def analysis(self) -> float:
        """Seconds of hidden words and of words in context, for the source, the start and every phase."""
        settings, a = self.experiment.analysis, self.plan.architecture
        models = bool(self.experiment.source.path) + 1 + len(self.experiment.phases)
        held = self.words / WORDS_PER_DOCUMENT * self.experiment.corpus.heldout_fraction
        cloze = min(settings.cloze_documents, held) * self.experiment.rows.max_document_pieces
        places = min(settings.geometry_words * settings.geometry_contexts, self.words / WORDS_PER_SENTENCE)
        flops = cloze * self._forward(a.positions, settings.cloze_fraction) + places * WINDOW * self._forward(
            WINDOW, 0
        )
        return self._constant('analyze') * models + models * flops / self.speeds.forward

    def _surgery(self) -> float:
        surgery = self.experiment.surgery
        if not surgery.reads_contexts:
            return self._constant('surgery')
        found = min(self.new * self.experiment.contexts.per_token, self.words / WORDS_PER_SENTENCE)
        pieces = found * WORDS_PER_SENTENCE * self.plan.assumed.pieces_per_word
        return self._constant('surgery') + pieces * self._forward(SENTENCE, 0) / self.speeds.forward

    def _forward(self, attended: float, rate: float) -> float:
        return forward_flops_per_token(self.plan.architecture, attended, rate)

    def _constant(self, stage: str) -> float:
        return CONSTANT.get(stage, 0.0) * self.speeds.slowness

    def _read(self, stage: str, words: float = 0) -> float:
        beside = min(self.experiment.runtime.workers or len(cores()), len(cores()))
        rate = WORDS_PER_SECOND[stage] * beside / self.speeds.slowness
        return self._constant(stage) + (words or self.words) / rate


def stages_table(experiment: HasAnalysis, planned: Plan, on: Machine) -> Table:
    """The time of every stage on this machine; the speeds of a CPU are measured now."""
    speeds = speeds_of(
        on,
        planned.architecture,
        experiment.pretrain.batch_rows // experiment.pretrain.micro_batches,
        experiment.rows.row_pieces,
        experiment.runtime.torch_threads,
    )
    sets = lengths_of_sets(experiment.finetune, planned.assumed.pieces_per_word)
    new = new_tokens(experiment.vocab, planned.architecture.vocab_size)
    costs = Costs(experiment, planned, speeds, planned.words, new, sets)
    seconds = costs.seconds()
    columns = [
        Column('stage', lambda name, _: name),
        Column('minutes', lambda name, value: fixed(value / 60, 1)),
    ]
    known, cores_are = 'Assumed, by its peak', 'cores as if idle'
    if speeds.measured:
        known = 'Measured now, on one layer'
        cores_are = f'a core takes {speeds.slowness:.1f} times as long as an idle one'
    note = (
        f'Of pre-training {costs.steps() / 60:,.1f} are optimiser steps, {costs.evaluations() / 60:,.1f} evaluations. '
        f'{known}: {speeds.train / 1e9:,.0f} GFLOP/s in training, {speeds.forward / 1e9:,.0f} in '
        f'reading, {speeds.torch / 1e9:,.0f} in fine-tuning with PyTorch; {cores_are}.'
    )
    if 'finetune' in experiment.stages and not sets:
        note += ' Without the fine-tunings, as no sets are here.'
    rows = [*seconds.items(), ('all', sum(seconds.values()))]
    return Table.of('Stages on this machine', columns, rows, note=note)
