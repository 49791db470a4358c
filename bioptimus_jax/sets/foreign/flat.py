"""Records whose keys name what they hold: objects of JSON, rows of CSV and of tables.

    tokens + ner_tags              words and a tag for each
    text + entities, spans, label  mentions, as [start, end, type] or objects with start and end
    text + label, labels, answers  what is said of a text, or of two texts

So are the exports of doccano, the answers of `bioptimus predict --as=json` and most data sets of the hub.
"""

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from bioptimus_jax.errors import InputError
from bioptimus_jax.progress.console import shortened
from bioptimus_jax.sets.foreign.items import Context, Item
from bioptimus_jax.sets.foreign.offsets import MarkedPlace, placed
from bioptimus_jax.sets.prepared import DOCUMENTS, TAGS, TOKENS

PAIRS = (
    ('sentence1', 'sentence2'),
    ('sentence_1', 'sentence_2'),
    ('text1', 'text2'),
    ('text_1', 'text_2'),
    ('text_a', 'text_b'),
    ('premise', 'hypothesis'),
    ('question', 'context'),
    ('text', 'text_pair'),
)
"""Keys of two texts."""
SECOND = tuple(second for _, second in PAIRS if second != 'context')
"""Keys that only a second text has; a context may be anything."""
ALONE = ('text', 'sentence', 'question')
OF_MODELS = (
    *('answers', 'predicted', 'prediction', 'predictions', 'predicted_label', 'predicted_labels'),
    *('predicted_entities', 'predicted_spans', 'predicted_tags', 'pred_entities', 'pred_label', 'pred_tags'),
)
"""Keys of what a model says, which a set has only where it has nothing else."""
OF_NOBODY = ('entities', 'annotations')
"""Keys under which gold answers and predictions stand alike."""
GOLD = ('label', 'labels', 'gold_label', 'gold', 'answer', 'class', 'score')
ANSWERS = (*GOLD, *OF_MODELS)
ENTITIES = ('entities', 'spans', 'ents', 'mentions')
NAMES = ('id', 'doc_id', 'document_id', 'pmid')
STARTS, ENDS = ('start', 'start_offset', 'start_char', 'begin'), ('end', 'end_offset', 'end_char')
TYPES = ('label', 'type', 'labels', 'entity_group', 'entity_type', 'entity')
KNOWN = frozenset(
    (*TOKENS, *TAGS, *ALONE, *ANSWERS, *ENTITIES, *NAMES, *(name for pair in PAIRS for name in pair))
)
NO_TYPE = 'marked places without a type, left out'
UNKNOWN, NOT_ASKED = -1, -100
"""How `datasets` writes a label that is not told, and how sets that are cut into pieces write one that is not asked."""
READ = (
    '"tokens" with "ner_tags", "text" with "entities" ([start, end, type]), "text" with "label", or two texts as '
    '"sentence1" and "sentence2" with "label"'
)


def item_of(where: str, line: int, entry: Mapping[str, Any], context: Context) -> Item:
    """The record as an item. Raises InputError for a value of another kind than its key says."""
    found = {str(key).strip().lower(): key for key in entry}
    if context.keys.predicted:
        _check_like_others(where, found, context)
    texts = _texts(where, entry, found, context)
    words = _words(where, entry, found, context, bool(texts))
    key, mentions = _mentions(where, texts[:1], entry, found, context)
    answer_key = _key(found, context, 'answer', _answer_names(context))
    answers = None if answer_key in (None, key) and mentions else _answers(where, entry, answer_key, context)
    tags = _tags(where, entry, found, context) if words is not None else None
    if len(texts) == 1 and words is None and mentions is None and not context.keys.texts:
        refuse_half_a_pair(where, [name for name, own in found.items() if entry[own]])
    name_key = _key(found, context, '', (context.keys.name,) if context.keys.name else NAMES)
    if context.keys.name and name_key is None:
        raise InputError(f'{where}: has no {context.keys.name!r}; it has {shortened(entry)}')
    name = entry[name_key] if name_key is not None else None
    if not texts and words is not None and 'tokens' not in found and not context.keys.word:
        texts = words  # of "words" some mean two texts
    return Item(
        where,
        line,
        '' if name is None else str(name),
        texts,
        words,
        tags,
        mentions,
        answers,
        answers is not None and not isinstance(entry[answer_key], str | int | float),
        tuple(map(str, entry)),
        _document(entry, found),
        frozenset(name for name, own in found.items() if own != key and _stands(entry[own])),
    )


def _check_like_others(where: str, found: Mapping[str, Any], context: Context) -> None:
    """Raise InputError where one of two records alone has a key of a model: of the other one gold would be read."""
    key = next((str(found[name]) for name in OF_MODELS if name in found), '')
    context.of_model = key if context.of_model is None else context.of_model
    if bool(key) != bool(context.of_model):
        raise InputError(
            f'{where}: has no {context.of_model!r}, as the records before it have; give it there too, [] for no mention'
            if context.of_model
            else f'{where}: has {key!r}, and the records before it have not; give all of them what is predicted'
        )


def _stands(value: Any) -> bool:
    """Whether a value says anything, which neither null nor NaN does."""
    return bool(value.strip()) if isinstance(value, str) else value not in (None, [], {}) and value == value


def _document(entry: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """The document that a record names, '' where it names none."""
    value = next((entry[found[name]] for name in DOCUMENTS if name in found), None)
    return str(value) if isinstance(value, str | int) else ''


def _key(found: Mapping[str, Any], context: Context, role: str, names: Sequence[str]) -> Any:
    """The key of an entry for a role: the first of the names that is there, whatever its case."""
    name = next((name for name in names if name.lower() in found), None)
    if name is None:
        return None
    key = found[name.lower()]
    if role:
        context.taken.setdefault(role, str(key))
    return key


def _answer_names(context: Context) -> Sequence[str]:
    if context.keys.answer:
        return (context.keys.answer,)
    return (*OF_MODELS, *GOLD) if context.keys.predicted else ANSWERS


def _texts(
    where: str, entry: Mapping[str, Any], found: Mapping[str, Any], context: Context
) -> tuple[str, ...]:
    asked = context.keys.texts
    if asked and (missing := [name for name in asked if name.lower() not in found]):
        raise InputError(f'{where}: has no {missing[0]!r}; it has {shortened(entry)}')
    pair = asked or pair_in(found)
    names = pair or next(((name,) for name in ALONE if name in found), ())
    if names:
        context.taken.setdefault('text', ' and '.join(str(found[name.lower()]) for name in names))
    texts = []
    for name in names:
        value = entry[found[name.lower()]]
        value = value[0] if isinstance(value, list) and len(value) == 1 else value  # as BigBio has them
        if asked and isinstance(value, int | float):
            value = str(value)
        if not isinstance(value, str):
            raise InputError(f'{where}: {name!r} is no text: {value!r:.60}')
        if any('\ud800' <= letter <= '\udfff' for letter in value):
            raise InputError(f'{where}: {name!r} holds half of a character; write the file again as UTF-8')
        texts.append(value)
    return tuple(texts)


def pair_in(keys: Collection[str]) -> tuple[str, ...]:
    """The two of these keys that hold a pair of texts, () where none do. `keys`: in lower case."""
    return next((pair for pair in PAIRS if {*keys}.issuperset(pair)), ())


def refuse_half_a_pair(where: str, keys: Collection[str]) -> None:
    """Raise InputError for one text beside the second text of another pair. `keys`: in lower case."""
    first, left = (next((name for name in keys if name in names), '') for names in (ALONE, SECOND))
    if first and left:
        raise InputError(
            f'{where}: has {first!r} and {left!r}, so one text would go unread; call two texts "sentence1" and '
            '"sentence2"'
        )


def _words(
    where: str, entry: Mapping[str, Any], found: Mapping[str, Any], context: Context, has_text: bool
) -> tuple[str, ...] | None:
    asked = context.keys.word
    key = _key(found, context, '', (asked,) if asked else TOKENS)
    if key is None:
        if asked:
            raise InputError(f'{where}: has no {asked!r}; it has {shortened(entry)}')
        return None
    words = entry[key]
    if isinstance(words, list) and all(isinstance(word, str) for word in words):
        context.taken.setdefault('words', str(key))
        return tuple(words)
    if has_text:  # as Prodigy and spaCy repeat the text
        return None
    if isinstance(words, list):
        raise InputError(f'{where}: its words are not all texts')
    raise InputError(f'{where}: {key!r} is not a list')


def _tags(
    where: str, entry: Mapping[str, Any], found: Mapping[str, Any], context: Context
) -> tuple[str, ...] | None:
    asked = context.keys.tag
    names = (*OF_MODELS, *TAGS) if context.keys.predicted else (*TAGS, *OF_MODELS)
    key = _key(found, context, 'tags', (asked,) if asked else names)
    if key is None:
        if asked:
            raise InputError(f'{where}: has no {asked!r}; it has {shortened(entry)}')
        return None
    if not isinstance(entry[key], list):
        return None
    return tuple(named(where, tag, context.names_of(str(key))) for tag in entry[key])


def named(where: str, value: Any, names: Sequence[str]) -> str:
    """A label as a word. Raises InputError for a number that stands for none."""
    if value == NOT_ASKED and not isinstance(value, bool | float):
        raise InputError(
            f'{where}: has {NOT_ASKED} for a tag, as sets that are cut into the pieces of a tokenizer have; give words '
            'with their tags'
        )
    if not isinstance(value, int) or isinstance(value, bool) or not names:
        return str(value)
    if not 0 <= value < len(names):
        why = 'its label is not given' if value == UNKNOWN else f'label {value} has no name'
        raise InputError(f'{where}: {why}; leave such rows out')
    return names[value]


def _mentions(
    where: str, text: Sequence[str], entry: Mapping[str, Any], found: Mapping[str, Any], context: Context
) -> tuple[Any, tuple[Any, ...] | None]:
    """The key of mentions and the mentions, None without any. Raises InputError for predictions that are none."""
    key = _predicted_beside_gold(where, entry, found) if text and context.keys.predicted else None
    if key is None and not (context.keys.predicted and _says_nothing(entry, found)):
        key = _marked(where, text, entry, found)
    if key is None:
        return None, None
    if entry[key] or str(key).strip().lower() in (*ENTITIES, *OF_MODELS):
        context.taken.setdefault('entities', str(key))
    places = [place for one in entry[key] for place in _places(where, one)]
    context.repairs[NO_TYPE] += sum(isinstance(one, Mapping) and _kinds(one) == [] for one in entry[key])
    return key, placed(where, text[0], places, context.repairs)


def _says_nothing(entry: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """Whether a record has keys of a model, and null under all of them."""
    values = [entry[found[name]] for name in OF_MODELS if name in found]
    return bool(values) and all(value is None for value in values)


def _marked(where: str, text: Sequence[str], entry: Mapping[str, Any], found: Mapping[str, Any]) -> Any:
    """The key of the mentions of a text, None without any. Raises InputError for mentions without a text."""
    for name in (*ENTITIES, *ANSWERS):
        key = found.get(name)
        value = entry[key] if key is not None else None
        if not isinstance(value, list) or not (name in ENTITIES or all(map(_is_place, value))):
            continue
        if name not in ENTITIES and not (text and name in ('label', 'labels')):
            continue
        if not text:
            raise InputError(f'{where}: has no "text", to which the offsets of its entities refer')
        return key
    return None


def _predicted_beside_gold(where: str, entry: Mapping[str, Any], found: Mapping[str, Any]) -> Any:
    """The key of a model's mentions where the record has gold mentions, too; None where one of the two is missing."""
    key = next((found[name] for name in OF_MODELS if name in found and entry[found[name]] is not None), None)
    marked = (entry[found[name]] for name in (*ENTITIES, 'label', 'labels') if name in found)
    golds = [value for value in marked if isinstance(value, list) and all(map(_is_place, value))]
    if key is None or not golds:
        return None
    value = entry[key]
    if isinstance(value, list) and all(map(_is_place, value)):
        return key if value or any(golds) else None  # two empty lists may be of labels, and say the same
    if any(golds) and not isinstance(value, list):
        raise InputError(f'{where}: {key!r} holds no list of entities, as the mentions beside it are')
    return None


def _is_place(one: Any) -> bool:
    return (isinstance(one, list) and len(one) == 3) or (
        isinstance(one, Mapping) and not {*STARTS, 'offsets'}.isdisjoint(one)
    )


def _kinds(one: Mapping[str, Any]) -> list[Any]:
    """The types of an entity: none where somebody has taken its label away in Label Studio."""
    kinds = next((one[n] for n in TYPES if n in one), None)
    return kinds if isinstance(kinds, list) else [kinds]


def _places(where: str, one: Any) -> list[MarkedPlace]:
    """The place of an entity, once for each of its types. Raises InputError."""
    if isinstance(one, list) and [type(part) for part in one] == [int, int, str]:
        return [MarkedPlace(one[2], ((one[0], one[1]),))]
    if isinstance(one, Mapping):
        start, end = (next((one[n] for n in names if n in one), None) for names in (STARTS, ENDS))
        parts = one.get('offsets') or [[start, end]]
        kinds, quoted = _kinds(one), one.get('text')
        quoted = ' '.join(map(str, quoted)) if isinstance(quoted, list) else quoted
        whole = isinstance(parts, list) and all(
            isinstance(part, list) and [type(x) for x in part] == [int, int] for part in parts
        )
        if whole and all(isinstance(kind, str) for kind in kinds):
            quoted = quoted if isinstance(quoted, str) else None
            return [MarkedPlace(kind, tuple(map(tuple, parts)), quoted) for kind in kinds]
    raise InputError(f'{where}: the entity {one!r:.80} is not [start, end, type], nor an object with these')


def _answers(where: str, entry: Mapping[str, Any], key: Any, context: Context) -> tuple[Any, ...] | None:
    if context.keys.answer and key is None:
        raise InputError(f'{where}: has no {context.keys.answer!r}; it has {shortened(entry)}')
    value = None if key is None else entry[key]
    if isinstance(value, Mapping):  # as spaCy and Label Studio have several
        chosen = value.get('choices')
        value = chosen if isinstance(chosen, list) else None
    if value is None:
        return None
    names = context.names_of(str(key))
    given = value if isinstance(value, list) else [value]
    # NaN, which equals nothing, is what pandas writes for a missing value.
    if any(isinstance(one, Mapping | list | None) or one != one for one in given):
        return None
    said = [named(where, one, names) for one in given]
    return tuple(label for one in said if (label := one.strip()) or not isinstance(value, list))


def without_role(item: Item, needed: str, remedy: str = '') -> InputError:
    """What is wrong with a record that lacks what is needed, in words, and what to do."""
    return InputError(
        f'{item.place}: needs {needed}; it has {shortened(item.keys, 6, 20) or "nothing"}{remedy and f"; {remedy}"}'
    )


def renamed(entry: Mapping[str, Any], **changed: Any) -> dict[str, Any]:
    """An entry with other values under some keys, which stand before all others."""
    return {**changed, **{key: value for key, value in entry.items() if key not in changed}}


def one_line(text: str) -> str:
    """The text with every run of white space as one blank."""
    return ' '.join(text.split())


def texts_joined(item: Item) -> Item:
    """The item with white space in its texts squeezed, as classifiers read them."""
    return dataclasses.replace(item, texts=tuple(map(one_line, item.texts)))
