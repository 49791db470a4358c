"""Keys of several sections that have to go together."""

import itertools
import re
from collections.abc import Iterator

from bioptimus_jax.analysis.config import HasAnalysis
from bioptimus_jax.config.fields import meant, walk
from bioptimus_jax.finetuning.config import wrong_finetune
from bioptimus_jax.model.config import INITIAL, SOURCE
from bioptimus_jax.pretrain.config import BY_DIFFICULTY, ENTITIES, LONGEST, SELF_PACED
from bioptimus_jax.pretrain.optimizers import OPTIMIZERS
from bioptimus_jax.pretrain.shape import wrong_shapes
from bioptimus_jax.pretrain.shares import OWN, quotas
from bioptimus_jax.surgery.config import wrong_surgery


def unset_variables(e: HasAnalysis, beginning: str) -> Iterator[str]:
    """Environment variables that paths name and that are not set, of keys with that beginning; a message each."""
    for name, value, metadata in walk(e):
        is_path = metadata.get('path') and name.startswith(beginning)
        unset = re.search(r'\$(\w+)', str(value)) if is_path else None
        if unset:
            yield f'config.{name}: {unset[0]} is not set; set that environment variable, or give --config.{name}=...'


def unread_files(e: HasAnalysis) -> Iterator[str]:
    """Paths that are given, and that nothing reads; a message each."""
    if e.vocab.file and e.vocab.kind != 'file':
        yield (
            f'config.vocab.file: {e.vocab.file} is not read where config.vocab.kind is {e.vocab.kind}; set '
            'config.vocab.kind=file, or --config.vocab.file= to leave the file out'
        )


def inconsistencies(e: HasAnalysis) -> Iterator[str]:
    """What is wrong with keys that have to go together, a message each.

    Only the first is sure: the later checks take for granted what the earlier ones have seen.
    """
    if len(set(e.stages)) != len(e.stages):
        yield f'config.stages: different ones are needed, got {", ".join(e.stages)}'
    for name in e.phases:
        yield from _wrong_phase(e, 'phases', name)
    for name in e.evaluation.settings:
        yield from _wrong_phase(e, 'evaluation.settings', name)
    for name in e.phases:
        yield from _wrong_corpora(e, name)
    given = e.curriculum.order in ('given', SELF_PACED)
    # An order that is computed may put any phase behind any other.
    for before, name in zip(e.phases, e.phases[1:]) if given else itertools.permutations(e.phases, 2):
        yield from _wrong_continuation(e, before, name)
    yield from _wrong_curriculum(e)
    if e.rows.max_document_pieces > e.rows.row_pieces:
        yield (
            f'config.rows.max_document_pieces: {e.rows.max_document_pieces} does not fit into '
            f'config.rows.row_pieces={e.rows.row_pieces}'
        )
    if e.model.hidden % e.model.heads:
        yield f'config.model.heads: {e.model.heads} does not divide config.model.hidden={e.model.hidden}'
    if e.pretrain.batch_rows % e.pretrain.micro_batches:
        yield f'config.pretrain.micro_batches: does not divide batch_rows={e.pretrain.batch_rows}'
    for name in e.phases:
        yield from wrong_shapes(e, name)
    if e.pretrain.ema and OPTIMIZERS[e.pretrain.optimizer].evaluated:
        yield (
            f'config.pretrain.ema: {e.pretrain.optimizer} scores an average of its own; set ema to 0, or take another '
            'config.pretrain.optimizer'
        )
    if e.runtime.train_hours and e.curriculum.order == SELF_PACED:
        yield (
            'config.runtime.train_hours: the last of self-paced phases takes the steps that others gave up, so none '
            "are taken away; set it to 0, or config.curriculum.order to 'given'"
        )
    if e.pretrain.head_steps and OPTIMIZERS[e.pretrain.optimizer].whole_steps:
        yield (
            f'config.pretrain.head_steps: {e.pretrain.optimizer} applies its learning rate itself, to all weights; set '
            'head_steps to 0, or take another config.pretrain.optimizer'
        )
    if e.source.adapter and not (e.source.path and e.surgery.initialisation.source):
        yield (
            f'config.source.adapter: {e.source.adapter} is for the weights of a source; name that in '
            'config.source.path, with a config.surgery.strategy that takes its weights'
        )
    if e.pretrain.lora and not e.surgery.initialisation.source:
        yield (
            f'config.pretrain.lora_rank: {e.pretrain.lora_rank}, but config.surgery.strategy={e.surgery.strategy} '
            'begins with random weights, which an adapter would leave as they are; set it to 0, or take a source'
        )
    if e.pretrain.lora and OPTIMIZERS[e.pretrain.optimizer].for_matrices:
        yield (
            f'config.pretrain.optimizer: {e.pretrain.optimizer} is for the matrices of the encoder, which an adapter '
            f'(lora_rank={e.pretrain.lora_rank}) leaves as they are; take adamw'
        )
    two = e.runtime.profile_steps
    if len(two) > 2 or list(two) != sorted(two):
        yield f'config.runtime.profile_steps: the first and the last step are needed, got {two}'
    for name in e.objective.keys() - set(e.all_objectives):
        yield (
            f'config.objective.{name}: settings of an objective that is not trained; set '
            f'config.pretrain.objective={name} or that of a phase, or leave them out'
        )
    yield from wrong_finetune(e.finetune)
    yield from wrong_surgery(e.surgery)


def _wrong_phase(e: HasAnalysis, where: str, name: str) -> Iterator[str]:
    """What is wrong with a phase that the key `where` names."""
    if name not in e.phase:
        yield f'config.{where}: {name!r} has no config.phase entry; known: {", ".join(e.phase)}{meant(name, e.phase)}'
    if name in (INITIAL, SOURCE):
        yield f'config.{where}: {name!r} is the name of another model; choose another name'
    phase, key = e.phase[name], f'config.phase.{name}'
    triple = phase.corruption
    if len(triple) != 3 or min(triple) < 0 or abs(sum(triple) - 1) > 1e-6:
        yield f'{key}.corruption: three probabilities that sum to 1, got {triple}'
    if phase.rate_parts == 1 or (phase.rate_parts and not phase.rate_end):
        yield (
            f'{key}.rate_parts: {phase.rate_parts}, but a rate moves in two parts or more, and needs {key}.rate_end'
        )
    if 0 < phase.rate_end < 0.01:
        yield f'{key}.rate_end: {phase.rate_end}, but must be 0, or at least 0.01'
    longest = LONGEST[phase.duration_unit]
    if not 0 < phase.duration <= longest:
        yield f'{key}.duration: must be above 0 and at most {longest:,} {phase.duration_unit}, got {phase.duration}'


def _wrong_corpora(e: HasAnalysis, name: str) -> Iterator[str]:
    phase, where = e.phase[name], f'config.phase.{name}.corpora'
    try:
        asked = quotas(phase.corpora)
    except ValueError as error:
        yield f'{where}: {", ".join(phase.corpora)}: {error}; write own=0.7,NAME=0.3'
        return
    known = (OWN, *e.corpora)
    for unknown in asked.keys() - set(known):
        yield f'{where}: {unknown!r} has no config.corpora entry; known: {", ".join(known)}{meant(unknown, known)}'
    if len(asked) > 1 and phase.duration_unit == 'epochs':
        yield f'config.phase.{name}.duration_unit: several corpora have no epochs; set words, tokens or steps'


def _wrong_continuation(e: HasAnalysis, before: str, name: str) -> Iterator[str]:
    """What is wrong with a phase that goes on with the learning rate of the one before it."""
    phase, key = e.phase[name], f'config.phase.{name}'
    if phase.schedule != 'continue':
        return
    if phase.fall != e.phase[before].fall:
        yield (
            f'{key}.fall: {phase.fall!r}, but its learning rate continues that of {before}, '
            f'which falls {e.phase[before].fall!r}; set the same, or {key}.schedule=restart'
        )
    for where in ('warmup_fraction', 'end_fraction'):
        if (value := getattr(phase, where)) >= 0:
            yield (
                f'{key}.{where}: {value}, but its learning rate continues that of {before}; set it there, or '
                f'{key}.schedule=restart'
            )


def _wrong_curriculum(e: HasAnalysis) -> Iterator[str]:
    asked, others = e.curriculum, sorted(set(e.phases) - set(e.phases_under(e.pretrain.objective)))
    if asked.order in (*BY_DIFFICULTY, SELF_PACED) and others:
        yield (
            f'config.curriculum.order: {asked.order} compares phases by config.pretrain.objective='
            f'{e.pretrain.objective}, but phase {others[0]} has another, {e.objective_in(others[0])}; set given'
        )
    if asked.order in BY_DIFFICULTY and asked.measure == 'masked':
        for name in e.phases:
            if not e.phase[name].corruption[0]:
                yield f'config.curriculum.measure: {asked.measure!r}, but phase {name} has no [MASK]; set all'
    if len(set(e.phases)) != len(e.phases) or not e.phases:
        yield f'config.phases: one or more different names are needed, got {e.phases}'
    if asked.pace == ENTITIES and not e.evaluation.entities:
        yield (
            f'config.curriculum.pace: {asked.pace!r}, but config.evaluation.entities names no set; name one of '
            'config.finetune.folder, as ncbi-disease'
        )
    named = e.evaluation.entities
    if len(set(named)) != len(named):
        yield f'config.evaluation.entities: different ones are needed, got {", ".join(named)}'
    least = asked.patience + 2  # one to compare with, `patience` that are flat, and the planned end
    if asked.order == SELF_PACED and e.evaluation.per_phase < least:
        yield (
            f'config.evaluation.per_phase: {e.evaluation.per_phase} evaluations cannot end a phase early with '
            f'config.curriculum.patience={asked.patience}; at least {least} are needed'
        )
