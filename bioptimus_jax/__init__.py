"""Adapt a general encoder to a domain: vocabulary, embedding surgery, curriculum pre-training, NER.

What `__all__` names is for you, documented and stable; any other module is internal and may change without a word.
The names are imported when they are first asked for: `import bioptimus_jax` itself imports nothing.
"""

__version__ = '0.1.0'

__all__ = [  # noqa: RUF022, in the order of the data flow
    'train_vocabulary',
    'replace_vocabulary',
    'add_words',
    'mask',
    'Collator',
    'adapt',
    'finetune',
    'difficulty',
    'predict',
    'Predictor',
    'embed',
    'score',
    'results',
    'ConfigError',
    'InputError',
]

_HOMES = {
    **dict.fromkeys(('train_vocabulary', 'replace_vocabulary', 'add_words'), 'api.vocabulary'),
    **dict.fromkeys(('mask', 'Collator'), 'api.masking'),
    'adapt': 'api.adapting',
    'results': 'api.running',
    'finetune': 'api.finetuning',
    **dict.fromkeys(('predict', 'Predictor'), 'api.applying'),
    'embed': 'api.embedding',
    **dict.fromkeys(('difficulty', 'score'), 'api.measuring'),
    **dict.fromkeys(('ConfigError', 'InputError'), 'errors'),
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    import importlib

    return getattr(importlib.import_module(f'{__name__}.{_HOMES[name]}'), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
