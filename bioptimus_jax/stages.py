"""The table of stages: what each verb reads and writes, and the function that does it."""

import importlib
from collections.abc import Callable
from typing import Any

from bioptimus_jax.errors import ConfigError
from bioptimus_jax.run import Run, Stage, execute
from bioptimus_jax.schema import INITIAL, WITH_CONTEXTS, own_models


def _late(module: str, function: str) -> Callable[..., Any]:
    """The function of a module that is imported when first called: `--help` stays fast."""
    return lambda *arguments: getattr(importlib.import_module(f'bioptimus_jax.{module}'), function)(
        *arguments
    )


def _surgery_needs(run: Run) -> tuple[str, ...]:
    return ('vocab', 'contexts') if run.config.surgery.strategy in WITH_CONTEXTS else ('vocab',)


def _export_needs(run: Run) -> tuple[str, ...]:
    """Phases that have ended can be exported while pre-training goes on."""
    return ('vocab', 'surgery', 'pretrain') if run.manifest('pretrain') else ('vocab', 'surgery')


def _ner_needs(run: Run) -> tuple[str, ...]:
    """What the models come from: phases from export, step 0 from surgery, folders from nowhere."""
    own = own_models(run.config)
    if not own:
        return ()
    return ('vocab', 'surgery') if own == [INITIAL] else ('vocab', 'surgery', 'export')


STAGES: dict[str, Stage] = {
    stage.name: stage
    for stage in (
        Stage(
            'corpus',
            'documents, deduplicated, benchmark texts left out, a share held out',
            'config.corpus.inputs, config.corpus.audit.folder',
            'corpus/documents (ArrayRecord), audit.jsonl, bad_records.jsonl, broken_files.jsonl',
            ('corpus',),
            lambda run: (),
            _late('corpus.build', 'build'),
            _late('corpus.build', 'external_inputs'),
            format=2,  # documents in contiguous shards, near duplicates left out
        ),
        Stage(
            'vocab',
            'the WordPiece vocabulary, which of its tokens the source does not have, word frequencies',
            "corpus/, the source's vocabulary, config.vocab.general",
            'vocab/tokenizer.json, vocab.txt, new_tokens.txt, comparison.json, words.parquet, frequency.json',
            ('vocab',),
            lambda run: ('corpus',),
            _late('vocab.build', 'build'),
            _late('vocab.build', 'external_inputs'),
        ),
        Stage(
            'contexts',
            'sentences for every new token, uniform over their places',
            'corpus/, vocab/',
            'contexts/sentences.parquet, occurrences.parquet',
            ('seed', 'contexts'),
            lambda run: ('corpus', 'vocab'),
            _late('vocab.contexts', 'build'),
        ),
        Stage(
            'surgery',
            "the weights at step 0: the source's, with embedding rows for new tokens",
            'vocab/, contexts/, the source',
            'surgery/model (Hugging Face folder), tokens.jsonl, report.json',
            ('seed', 'surgery', 'model'),
            _surgery_needs,
            _late('surgery.graft', 'build'),
            _late('surgery.graft', 'external_inputs'),
        ),
        Stage(
            'rows',
            'documents tokenised once and packed into rows',
            'corpus/, vocab/',
            'rows/train, rows/heldout (.npy)',
            ('rows',),
            lambda run: ('corpus', 'vocab'),
            _late('pretrain.rows', 'build'),
        ),
        Stage(
            'pretrain',
            'masked language modelling through the curriculum',
            'surgery/, rows/, config.curriculum.probe and texts',
            'pretrain/checkpoints, curriculum.json, difficulty.json, metrics.jsonl',
            ('seed', 'phases', 'phase', 'curriculum', 'pretrain', 'evaluation'),
            lambda run: ('surgery', 'rows'),
            _late('pretrain.loop', 'build'),
            _late('pretrain.difficulty', 'external_inputs'),
            extendable=('.duration', 'config.phases'),
        ),
        Stage(
            'export',
            'a Hugging Face folder per phase and snapshot, checked on reload',
            'pretrain/, vocab/',
            'export/PHASE, export/PHASE@PERCENT',
            (),
            _export_needs,
            _late('export', 'build'),
            extendable=('inputs.pretrain',),
        ),
        Stage(
            'ner',
            'fine-tuning and entity-level scores',
            'export/, config.ner.folder',
            'ner/lint.json, MODEL/SET/SETTING/seed-N, results.jsonl, statistics.json, slices.json, labels.json',
            ('ner',),
            _ner_needs,
            _late('ner.build', 'build'),
            _late('ner.build', 'external_inputs'),
            extendable=(
                'ner.seeds',
                'ner.models',
                'ner.datasets',
                'ner.settings',
                'ner.setting',
                'ner.keep',
                'inputs.vocab',
                'inputs.surgery',
                'inputs.export',
            ),  # every cell knows what it is of
            grows=('set ', 'model '),
        ),
        Stage(
            'analyze',
            "word-level loss across vocabularies, geometry of embeddings and words, the sets' entities in pieces",
            'export/, surgery/, corpus/, vocab/, config.ner.folder',
            'analyze/cloze.json, geometry.json, points.json, entities.json',
            ('analysis', 'evaluation', 'rows'),
            lambda run: ('corpus', 'vocab', 'surgery', 'export'),
            _late('analysis.build', 'build'),
            _late('analysis.build', 'external_inputs'),
        ),
        Stage(
            'report',
            'tables and figures of this run as one page',
            'everything that is there',
            'report/index.html, tables.md, csv/TABLE.csv, cards/MODEL.md (model cards with scores)',
            (),
            lambda run: (),
            _late('report.page', 'build'),
            always=True,
        ),
    )
}


def run_all(run: Run, replace: bool = False) -> None:
    """Every stage of `config.stages` in order; finished ones are kept, with `replace` only those that still match."""
    for name in run.config.stages:
        if name not in STAGES:
            raise ConfigError(f'config.stages: {name!r} is not a stage; known: {", ".join(STAGES)}')
    for name in run.config.stages:
        execute(run, STAGES[name], replace, keep_matching=True)
        run.check_stop()
