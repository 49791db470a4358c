"""Which public set the name of a folder means, and which of them have scores that do not compare."""

from collections import defaultdict
from collections.abc import Iterable

from bioptimus_jax.sets import biolm, blurb, texts, words

Record = blurb.Published | texts.Published | words.Published


def record_of(name: str) -> Record | None:
    """The record of a set of BLURB or Bio-LM; None for others, and for JNLPBA with its types."""
    return blurb.record_of(name) or biolm.record_of(name)


def texts_of(name: str) -> texts.Published | None:
    """The record, where it is one of texts."""
    record = record_of(name)
    return record if isinstance(record, texts.Published) else None


def mentions_of(name: str) -> blurb.Published | None:
    """The record, where it is one of entities."""
    record = record_of(name)
    return record if isinstance(record, blurb.Published) else None


def first_fold(name: str) -> str:
    """The fold on which settings are chosen for all folds of a set; '' for other sets."""
    return getattr(record_of(name), 'first', '')


def clashes(names: Iterable[str]) -> list[str]:
    """A line for each corpus that several of these sets are forms of, if not the same form."""
    forms: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name in names:
        record = record_of(name)
        if corpus := getattr(record, 'corpus', ''):
            forms[corpus][getattr(record, 'source', '')].append(name)
    return [
        f'{", ".join(name for of_form in found.values() for name in of_form)}: forms of one corpus with other '
        'examples, splits or labels; their scores do not compare'
        for found in forms.values()
        if len(found) > 1
    ]
