"""The table of stages: what each verb reads and writes, and the function that does it."""

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bioptimus_jax.config.fields import meant
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.finetuning.config import HasFinetune, own_models
from bioptimus_jax.model.config import INITIAL, SOURCE
from bioptimus_jax.pretrain.config import HasTraining
from bioptimus_jax.records.manifests import Manifest
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.fingerprint import StageOfRun, check_bases
from bioptimus_jax.run.folder import Run
from bioptimus_jax.run.manifests import find_flaws, read_claim, require_as_taken, require_whole
from bioptimus_jax.run.stage import Stage
from bioptimus_jax.storage.files import is_held
from bioptimus_jax.surgery.config import HasSurgery


def _late(module: str, function: str) -> Callable[..., Any]:
    """The function of a module that is imported when first called: `--help` stays fast."""
    return lambda *given: getattr(importlib.import_module(f'bioptimus_jax.{module}'), function)(*given)


def _of_settings(module: str, function: str) -> Callable[[Run], None]:
    """The same for a check that reads the configuration alone."""
    check = _late(module, function)
    return lambda run: check(run.config)


def _surgery_needs(experiment: HasSurgery) -> tuple[str, ...]:
    """Contexts and corpus where the initialisation reads them."""
    surgery = experiment.surgery
    return ('vocab', *('corpus',) * surgery.reads_corpus, *('contexts',) * surgery.reads_contexts)


def _finetune_needs(experiment: HasFinetune) -> tuple[str, ...]:
    """What the models come from: phases from export, step 0 from surgery, folders from nowhere."""
    own = own_models(experiment)
    if not own:
        return ()
    return ('vocab', 'surgery') if set(own) <= {INITIAL, SOURCE} else ('vocab', 'surgery', 'export')


def _phases_asked_for(experiment: HasTraining) -> dict[str, Path | str]:
    """Whoever asks for more phases, or for fewer, has a stage that is not up to date."""
    return {f'phase:{name}': 'asked for' for name in experiment.phases}


def keys(section: str, names: str) -> tuple[str, ...]:
    """Keys of a section, by their names with spaces between."""
    return tuple(f'{section}.{name}' for name in names.split())


DONE = 'done'
"""What a dry run says of a stage that is left as it is."""
WORD_COUNTS = 'vocab/words.parquet'
TRACKED = keys('runtime', 'tensorboard trackers')
WORKERS = keys('runtime', 'workers cluster')

STAGES: dict[str, Stage] = {
    stage.name: stage
    for stage in (
        Stage(
            'corpus',
            'documents, deduplicated, benchmark texts left out, a share held out',
            'config.corpus.inputs, config.corpus.audit.folder',
            'corpus/documents (ArrayRecord), audit.jsonl, bad_records.jsonl, broken_files.jsonl',
            ('corpus',),
            lambda experiment: (),
            _late('corpus.build', 'build'),
            _late('corpus.build', 'external_inputs'),
            check=_of_settings('corpus.sift', 'check'),
            memory='lower config.runtime.workers',
            format=3,  # which version of a record stands, what is the same text, what is a word, what an article says
            also_reads=WORKERS,
        ),
        Stage(
            'vocab',
            'the tokenizer, which of its tokens the source does not have, word frequencies',
            "corpus/, the source's vocabulary, config.vocab.general",
            'vocab/tokenizer.json and the like, new_tokens.txt, comparison.json, words.parquet, frequency.json',
            ('vocab',),
            lambda experiment: ('corpus',),
            _late('vocab.build', 'build'),
            _late('vocab.build', 'external_inputs'),
            check=_of_settings('vocab.build', 'check'),
            memory='lower config.vocab.sample_words or config.runtime.workers',
            also_reads=('source', 'model.max_positions', 'surgery.strategy', *WORKERS),
        ),
        Stage(
            'contexts',
            'sentences for every new token, uniform over their places',
            'corpus/, vocab/',
            'contexts/sentences.parquet, occurrences.parquet',
            ('seed', 'contexts'),
            lambda experiment: ('corpus', 'vocab'),
            _late('vocab.contexts', 'build'),
            memory='lower config.contexts.per_token or config.runtime.workers',
            also_reads=WORKERS,
        ),
        Stage(
            'surgery',
            "the weights at step 0: the source's, with embedding rows for new tokens",
            'vocab/, contexts/, the source; with a donor also that, or corpus/',
            'surgery/model (Hugging Face folder), tokens.jsonl, report.json; surgery/source, merged from an adapter',
            ('seed', 'surgery', 'model'),
            _surgery_needs,
            _late('surgery.graft', 'build'),
            _late('surgery.graft', 'external_inputs'),
            check=_of_settings('surgery.graft', 'check'),
            memory='lower config.surgery.batch_pieces',
            also_reads=(
                *('source', 'rows.layout', 'rows.max_document_pieces', 'runtime.deterministic', *TRACKED),
                *keys('vocab', 'kind lowercase size'),
            ),
            reads_files=lambda experiment: (WORD_COUNTS,) * experiment.surgery.counts_words,
        ),
        Stage(
            'rows',
            'documents tokenised once and packed into rows',
            'corpus/, vocab/',
            'rows/train, rows/heldout (.npy); rows/train-PIECES-LONGEST for phases with rows of their own',
            ('rows',),
            lambda experiment: ('corpus', 'vocab'),
            _late('rows.build', 'build'),
            _late('rows.build', 'external_inputs'),
            memory='lower config.rows.block_documents or config.runtime.workers',
            also_reads=('phases', 'phase', *WORKERS),
        ),
        Stage(
            'pretrain',
            'masked language modelling through the curriculum',
            'surgery/, rows/, config.curriculum.probe and texts, the sets of config.evaluation.entities',
            'pretrain/checkpoints, curriculum.json, difficulty.json, heldout_overlap.json, metrics.jsonl',
            ('seed', 'phases', 'phase', 'curriculum', 'pretrain', 'objective', 'evaluation'),
            lambda experiment: ('surgery', 'rows'),
            _late('pretrain.loop', 'build'),
            _late('pretrain.difficulty', 'external_inputs'),
            changeable_keys=('.duration', 'config.phases'),
            open_ended_inputs=('phase.', 'corpora:'),
            check=_late('pretrain.plan', 'check'),
            lines=('clock',),
            memory='raise config.pretrain.micro_batches, which gives the same batch in parts, or lower '
            'config.rows.row_pieces',
            also_reads=(
                *('source', 'corpus.heldout_fraction', 'vocab.kind', 'vocab.size', *TRACKED),
                *keys('model', 'dropout attention_dropout'),
                *keys('rows', 'row_pieces max_document_pieces layout'),
                *keys('finetune', 'folder task'),
                *keys(
                    'runtime', 'devices fsdp tensor attention remat scan_layers deterministic profile_steps'
                ),
                *keys('runtime', 'log_every_steps checkpoint_every_steps keep_checkpoints until train_hours'),
            ),
        ),
        Stage(
            'export',
            'a Hugging Face folder per phase and snapshot, checked on reload',
            'pretrain/, vocab/',
            'export/PHASE, export/PHASE@PERCENT',
            (),
            lambda experiment: ('vocab', 'surgery'),
            _late('export.build', 'build'),
            _phases_asked_for,
            reads_if_done=('pretrain',),  # phases that have ended can be exported while pre-training goes on
            changeable_keys=('inputs.pretrain',),
            open_ended_inputs=('phase:',),
            also_reads=('source', 'phases', 'evaluation.snapshots_per_phase', 'runtime.torch_threads'),
        ),
        Stage(
            'finetune',
            'fine-tuning and entity-level scores',
            'export/, config.finetune.folder',
            'finetune/lint.json, MODEL/SET/SETTING/seed-N, results.jsonl, statistics.json, slices.json, labels.json, '
            'crossed.json, search.json, in_corpus.json',
            ('finetune',),
            _finetune_needs,
            _late('finetuning.build', 'build'),
            _late('finetuning.build', 'external_inputs'),
            changeable_keys=(  # every cell knows what it is of
                *keys(
                    'finetune',
                    'seeds models datasets task settings setting of_set halving tuned_on keep crossed',
                ),
                *keys('inputs', f'vocab surgery export {WORD_COUNTS}'),
            ),
            open_ended_inputs=('set ', 'model '),
            reads_files=lambda experiment: (WORD_COUNTS,) * bool(own_models(experiment)),
            check=_late('finetuning.build', 'check'),
            memory='lower config.finetune.batch_sentences, config.finetune.max_pieces or config.runtime.workers',
            needs_free_accelerator=_late('finetuning.cards', 'needs_free_accelerator'),
            also_reads=(
                *('source', 'phases', 'evaluation.snapshots_per_phase', 'runtime.torch_threads'),
                *(*WORKERS, *TRACKED),
            ),
        ),
        Stage(
            'analyze',
            "word-level loss across vocabularies, geometry, the sets' entities in pieces and from frozen states, "
            'vectors of sentences',
            'export/, surgery/, corpus/, vocab/, config.finetune.folder',
            'analyze/cloze.json, geometry.json, points.json, new_tokens.json, bad_tokens.txt, entities.json, '
            'frozen.json, snapshots.json, similarity.json',
            ('analysis', 'evaluation', 'rows'),
            lambda experiment: ('corpus', 'vocab', 'surgery', 'export'),
            _late('analysis.build', 'build'),
            _late('analysis.build', 'external_inputs'),
            changeable_keys=('inputs.export',),
            reads_files=lambda experiment: (WORD_COUNTS,),
            memory='lower config.analysis.pairs, config.analysis.geometry_words, config.analysis.frozen_sentences or '
            'config.analysis.cloze_documents',
            also_reads=('source', *keys('finetune', 'folder datasets task'), 'runtime.deterministic'),
        ),
        Stage(
            'report',
            'tables and figures of this run as one page',
            'everything that is there',
            'report/index.html, tables.md, csv/TABLE.csv, figures/FIGURE.svg, cards/MODEL.md (model cards with scores)',
            (),
            lambda experiment: (),
            _late('report.page', 'build'),
            always=True,
        ),
    )
}


def run_all(run: Run, replace: bool = False) -> None:
    """Every stage of `config.stages` in order; finished ones are kept, with `replace` only those that still match."""
    _check_all(check_order(run), replace)
    for number, name in enumerate(run.config.stages, 1):
        run.counted = f'stage {number} of {len(run.config.stages)}'
        execute(run, STAGES[name], replace, keep_matching=True)
        run.console.check_stop()
    run.counted = ''


def foreseen(run: Run, replace: bool = False) -> dict[str, str]:
    """What `run_all` would do with every stage; nothing is written and no large file read.

    Raises what `run_all` would refuse at once, and what it would refuse when the stage's turn comes.
    """
    _check_all(check_order(run), replace)
    found: dict[str, str] = {}
    for name in run.config.stages:
        stage = StageOfRun(run, STAGES[name])
        found[name] = _foreseen(stage, replace)
        remade = [n for n in stage.needs() if found.get(n, DONE) != DONE]
        if remade and found[name] == DONE:
            found[name] = f'{DONE}, if {remade[0]} is then what it was'
    return found


def _foreseen(own: StageOfRun, replace: bool) -> str:
    run, stage = own.run, own.stage
    if is_held(run.lock(stage.name)):
        return 'another process is working on it'
    if stage.always:
        return 'is rebuilt each time'
    manifest = run.manifest(stage.name)
    if not manifest and not read_claim(own.folder):
        return f'would begin{", unless a base run has it" * bool(run.config.runtime.base_run)}'
    try:
        changes = own.check_settings(replace=False)
        seen = own.check_inputs(replace=False)
        place = run.stage_folder(stage.name)
        require_as_taken(own.folder, manifest or Manifest())
        flaws = find_flaws(place, manifest or Manifest(), None)
        # What is missing is made again here, and in no other run.
        if flaws.changed or place != own.folder:
            require_whole(place, flaws)
    except (ConfigError, InputError):
        if not replace:
            raise
        return 'would be deleted and rebuilt'
    if not manifest:
        return 'would continue'
    if changes := [*changes, *seen.changes, *(f'{name} is missing' for name in flaws.missing)]:
        return f'would continue from what is done ({"; ".join(changes)})'
    if seen.unread:
        more = f' (and {len(seen.unread) - 1} more)' * (len(seen.unread) > 1)
        return f'{DONE}, if {seen.unread[0]}{more}, whose time has changed, still holds the same'
    return DONE


def check_order(run: Run) -> list[StageOfRun]:
    """The stages of a run. Raises ConfigError for a name that is none, and for one that reads what is not there before
    it."""
    check_bases(run.config.runtime.base_run)
    before: list[str] = []
    for name in run.config.stages:
        if name not in STAGES:
            raise ConfigError(
                f'config.stages: {name!r} is not a stage; known: {", ".join(STAGES)}{meant(name, STAGES)}'
            )
        for needed in StageOfRun(run, STAGES[name]).needs():
            if needed not in before and not run.manifest(needed):
                raise ConfigError(
                    f'config.stages: {name} needs {needed}, which is not done and does not come before it; name it'
                )
        before.append(name)
    return [StageOfRun(run, STAGES[name]) for name in run.config.stages]


def _check_all(stages: Sequence[StageOfRun], replace: bool) -> None:
    """Raise whatever can be known to be wrong with any of the stages before the first one begins."""
    for own in stages:
        if own.check_settings(replace) or replace or not own.run.manifest(own.stage.name):
            own.check_ahead()
    for own in stages:
        own.check_inputs(replace)
