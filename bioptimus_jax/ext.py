"""What config files and extensions import: these names are stable, their homes are not.

A name is imported when it is first asked for, so that a config file which wants `defaults` loads neither jax nor torch.
The how-tos under docs/howto/ show one extension of each kind.
"""

import importlib

_HOMES = {
    # What a config file is made of.
    'experiment.config': 'defaults environment load objective override phase',
    'experiment.arguments': 'check_argument read_options',
    'experiment.schema': 'Experiment',
    # What every extension may need.
    'config.fields': 'key',
    'errors': 'ConfigError InputError',
    # A model family, `FAMILY`, and attention, `KERNELS`.
    'model.architecture': 'Architecture Rule',
    'model.compute': 'Compute',
    'model.layers': 'RULES Embeddings Layer LikeBert Predictions',
    'model.attention': 'Attend Dropped Ranges attend',
    'model.tensors': 'load_folder to_tensors',
    'experiment.trial': 'Trial attention_flaw',
    # A kind of tokenizer, `KIND`.
    'tokenizer.subwords': 'Kind Subwords',
    'tokenizer.kinds.wordpiece': 'WordPiece',
    'tokenizer.kinds.bytelevel': 'ByteLevel',
    'tokenizer.kinds.sentencepiece_bpe': 'SentencePieceBPE',
    'tokenizer.kinds.unigram': 'Unigram',
    # Pre-training: an objective, `OBJECTIVE`; `MASKINGS`, `OPTIMIZERS`, `FALLS`, `DECAYS`, `LAYOUTS`, `WORD_RULES`.
    'pretrain.objective': 'Example Objective',
    'pretrain.objectives.mlm': 'MaskedLM',
    'pretrain.units': 'Strategy',
    'pretrain.optimizers': 'Optimizer',
    'pretrain.rates': 'Fall',
    'pretrain.decay': 'Decay',
    'rows.layouts': 'Layout',
    'rows.words': 'WordRule',
    # Surgery: `INITIALISATIONS`, `STRETCHES`.
    'surgery.initialisations': 'Initialisation Inputs averaged_input',
    'surgery.rows': 'unit',
    'surgery.stretches': 'Stretch',
    # Fine-tuning: a task, `TASK`; `MEASURES`, `FEATURES`, `TEXT_SETS`, `ENTITY_SETS`.
    'finetuning.task': 'DEFAULT Encoded Look Task',
    'records.finetune': 'Details Scores',
    'finetuning.heads': 'Head',
    'finetuning.batches': 'padded',
    'finetuning.config': 'PAPER_FINETUNING Finetune',
    'finetuning.texts.features': 'Features',
    'scoring.metrics': 'Answers Metric divided',
    'sets.corpora': 'NamedSet split_files',
    'sets.sentences': 'SPLITS',
    # A corpus: `FORMATS`.
    'corpus.readers': 'Format',
    'corpus.records': 'Record squeezed',
    'corpus.config': 'Corpus',
    # A tracker, `TRACKER`; a verb, `VERB`; a section of the page, `SECTION`; how a set is built, `BUILDER`.
    'progress.tracker': 'Tracker',
    'cli.command': 'Command Verb described flag needed switch',
    'report.section': 'Section',
    'report.measures': 'Measures',
    'report.layout': 'Cell Column Table count fixed percent words',
    'report.drawing': 'Figure curves',
    'rebuild.originals': 'Builder Originals',
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}
__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> object:
    if home := _HOME_OF.get(name):
        return getattr(importlib.import_module(f'bioptimus_jax.{home}'), name)
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}; it has {", ".join(__all__)}')


def __dir__() -> list[str]:
    return __all__
