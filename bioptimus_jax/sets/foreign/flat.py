"""Records whose keys name what they hold: objects of JSON, rows of CSV and of tables.

    tokens + ner_tags              words and a tag for each
    text + entities, spans, label  mentions, as [start, end, type] or objects with start and end
    text + label, labels, answers  what is said of a text, or of two texts

So are the exports of doccano, the answers of `bioptimus predict --as=json` and most data sets of the hub.
"""

import dataclasses
import functools
from collections.abc import Collection, Sequence
from typing import Any

from bioptimus_jax.errors import InputError
from bioptimus_jax.progress.console import shortened
from bioptimus_jax.sets.characters import Mention
from bioptimus_jax.sets.foreign.items import Context, Item
from bioptimus_jax.sets.foreign.offsets import MarkedPlace, placed
from bioptimus_jax.sets.prepared import DOCUMENTS, TAGS, TOKENS
from bioptimus_jax.storage.files import JsonObject

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


def item_of(where: str, line: int, entry: JsonObject, context: Context) -> Item:
    """The record as an item. Raises InputError for a value of another kind than its key says."""
    return _Entry(where, entry, context).item(line)


def _stands(value: Any) -> bool:
    """Whether a value says anything, which neither null nor NaN does."""
    return bool(value.strip()) if isinstance(value, str) else value not in (None, [], {}) and value == value


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


@dataclasses.dataclass(frozen=True)
class _Entry:
    """A record of a file: its place, the values by key, and what is shared while the file is read."""

    where: str
    values: JsonObject
    context: Context

    @functools.cached_property
    def found(self) -> dict[str, str]:
        """The keys by their names in lower case."""
        return {key.strip().lower(): key for key in self.values}

    def item(self, line: int) -> Item:
        where, values, asked = self.where, self.values, self.context.keys
        if asked.predicted:
            self.check_like_others()
        texts = self.texts()
        words = self.words(bool(texts))
        key, mentions = self.mentions(texts[:1])
        answer_key = self.key('answer', self.answer_names())
        answers = None if answer_key in (None, key) and mentions else self.answers(answer_key)
        tags = self.tags() if words is not None else None
        if len(texts) == 1 and words is None and mentions is None and not asked.texts:
            refuse_half_a_pair(where, [name for name, own in self.found.items() if values[own]])
        name_key = self.key('', (asked.name,) if asked.name else NAMES)
        if asked.name and name_key is None:
            raise self.lacks(asked.name)
        name = values[name_key] if name_key is not None else None
        if not texts and words is not None and 'tokens' not in self.found and not asked.word:
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
            answer_key is not None
            and answers is not None
            and not isinstance(values[answer_key], str | int | float),
            tuple(values),
            self.document(),
            frozenset(name for name, own in self.found.items() if own != key and _stands(values[own])),
        )

    def lacks(self, name: str) -> InputError:
        """What is wrong where a key that was asked for is not there."""
        return InputError(f'{self.where}: has no {name!r}; it has {shortened(self.values)}')

    def check_like_others(self) -> None:
        """Raise InputError where one of two records alone has a key of a model: of the other one gold would be read."""
        where, context = self.where, self.context
        key = next((self.found[name] for name in OF_MODELS if name in self.found), '')
        context.of_model = key if context.of_model is None else context.of_model
        if bool(key) != bool(context.of_model):
            raise InputError(
                f'{where}: has no {context.of_model!r}, as the records before it have; give it there too, [] for no '
                'mention'
                if context.of_model
                else f'{where}: has {key!r}, and the records before it have not; give all of them what is predicted'
            )

    def document(self) -> str:
        """The document that a record names, '' where it names none."""
        value = next((self.values[self.found[name]] for name in DOCUMENTS if name in self.found), None)
        return str(value) if isinstance(value, str | int) else ''

    def key(self, role: str, names: Sequence[str]) -> str | None:
        """The key for a role: the first of the names that is there, whatever its case."""
        name = next((name for name in names if name.lower() in self.found), None)
        if name is None:
            return None
        key = self.found[name.lower()]
        if role:
            self.context.taken.setdefault(role, key)
        return key

    def answer_names(self) -> Sequence[str]:
        asked = self.context.keys
        if asked.answer:
            return (asked.answer,)
        return (*OF_MODELS, *GOLD) if asked.predicted else ANSWERS

    def texts(self) -> tuple[str, ...]:
        asked, found = self.context.keys.texts, self.found
        if missing := [name for name in asked if name.lower() not in found]:
            raise self.lacks(missing[0])
        names = asked or pair_in(found) or next(((name,) for name in ALONE if name in found), ())
        if names:
            self.context.taken.setdefault('text', ' and '.join(found[name.lower()] for name in names))
        texts = []
        for name in names:
            value = self.values[found[name.lower()]]
            value = value[0] if isinstance(value, list) and len(value) == 1 else value  # as BigBio has them
            if asked and isinstance(value, int | float):
                value = str(value)
            if not isinstance(value, str):
                raise InputError(f'{self.where}: {name!r} is no text: {value!r:.60}')
            if any('\ud800' <= letter <= '\udfff' for letter in value):
                raise InputError(
                    f'{self.where}: {name!r} holds half of a character; write the file again as UTF-8'
                )
            texts.append(value)
        return tuple(texts)

    def words(self, has_text: bool) -> tuple[str, ...] | None:
        asked = self.context.keys.word
        key = self.key('', (asked,) if asked else TOKENS)
        if key is None:
            if asked:
                raise self.lacks(asked)
            return None
        words = self.values[key]
        if isinstance(words, list) and all(isinstance(word, str) for word in words):
            self.context.taken.setdefault('words', key)
            return tuple(words)
        if has_text:  # as Prodigy and spaCy repeat the text
            return None
        if isinstance(words, list):
            raise InputError(f'{self.where}: its words are not all texts')
        raise InputError(f'{self.where}: {key!r} is not a list')

    def tags(self) -> tuple[str, ...] | None:
        asked = self.context.keys
        names = (*OF_MODELS, *TAGS) if asked.predicted else (*TAGS, *OF_MODELS)
        key = self.key('tags', (asked.tag,) if asked.tag else names)
        if key is None:
            if asked.tag:
                raise self.lacks(asked.tag)
            return None
        if not isinstance(self.values[key], list):
            return None
        return tuple(named(self.where, tag, self.context.names_of(key)) for tag in self.values[key])

    def mentions(self, text: Sequence[str]) -> tuple[str | None, tuple[Mention, ...] | None]:
        """The key of mentions and the mentions, None without any. Raises InputError for predictions that are none."""
        predicted = self.context.keys.predicted
        key = self.predicted_beside_gold() if text and predicted else None
        if key is None and not (predicted and self.says_nothing()):
            key = self.marked(text)
        if key is None:
            return None, None
        given, repairs = self.values[key], self.context.repairs
        if given or key.strip().lower() in (*ENTITIES, *OF_MODELS):
            self.context.taken.setdefault('entities', key)
        places = [place for one in given for place in _places(self.where, one)]
        repairs[NO_TYPE] += sum(isinstance(one, dict) and _kinds(one) == [] for one in given)
        return key, placed(self.where, text[0], places, repairs)

    def says_nothing(self) -> bool:
        """Whether a record has keys of a model, and null under all of them."""
        values = [self.values[self.found[name]] for name in OF_MODELS if name in self.found]
        return bool(values) and all(value is None for value in values)

    def marked(self, text: Sequence[str]) -> str | None:
        """The key of the mentions of a text, None without any. Raises InputError for mentions without a text."""
        for name in (*ENTITIES, *ANSWERS):
            key = self.found.get(name)
            value = self.values[key] if key is not None else None
            if not isinstance(value, list) or not (name in ENTITIES or all(map(_is_place, value))):
                continue
            if name not in ENTITIES and not (text and name in ('label', 'labels')):
                continue
            if not text:
                raise InputError(f'{self.where}: has no "text", to which the offsets of its entities refer')
            return key
        return None

    def predicted_beside_gold(self) -> str | None:
        """The key of a model's mentions where the record has gold mentions, too; None where one of both is missing."""
        said = {name: self.values[key] for name, key in self.found.items()}
        name = next((name for name in OF_MODELS if said.get(name) is not None), None)
        marked = (said[name] for name in (*ENTITIES, 'label', 'labels') if name in said)
        golds = [value for value in marked if isinstance(value, list) and all(map(_is_place, value))]
        if name is None or not golds:
            return None
        key, value = self.found[name], said[name]
        if isinstance(value, list) and all(map(_is_place, value)):
            return key if value or any(golds) else None  # two empty lists may be of labels, and say the same
        if any(golds) and not isinstance(value, list):
            raise InputError(
                f'{self.where}: {key!r} holds no list of entities, as the mentions beside it are'
            )
        return None

    def answers(self, key: str | None) -> tuple[str, ...] | None:
        asked = self.context.keys.answer
        if key is None:
            if asked:
                raise self.lacks(asked)
            return None
        value = self.values[key]
        if isinstance(value, dict):  # as spaCy and Label Studio have several
            chosen = value.get('choices')
            value = chosen if isinstance(chosen, list) else None
        if value is None:
            return None
        given = value if isinstance(value, list) else [value]
        # NaN, which equals nothing, is what pandas writes for a missing value.
        if any(isinstance(one, dict | list | None) or one != one for one in given):
            return None
        said = [named(self.where, one, self.context.names_of(key)) for one in given]
        return tuple(label for one in said if (label := one.strip()) or not isinstance(value, list))


def _is_place(one: Any) -> bool:
    return (isinstance(one, list) and len(one) == 3) or (
        isinstance(one, dict) and not {*STARTS, 'offsets'}.isdisjoint(one)
    )


def _kinds(one: JsonObject) -> list[Any]:
    """The types of an entity: none where somebody has taken its label away in Label Studio."""
    kinds = next((one[n] for n in TYPES if n in one), None)
    return kinds if isinstance(kinds, list) else [kinds]


def _places(where: str, one: Any) -> list[MarkedPlace]:
    """The place of an entity, once for each of its types. Raises InputError."""
    if isinstance(one, list) and [type(part) for part in one] == [int, int, str]:
        return [MarkedPlace(one[2], ((one[0], one[1]),))]
    if isinstance(one, dict):
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


def without_role(item: Item, needed: str, remedy: str = '') -> InputError:
    """What is wrong with a record that lacks what is needed, in words, and what to do."""
    return InputError(
        f'{item.place}: needs {needed}; it has {shortened(item.keys, 6, 20) or "nothing"}{remedy and f"; {remedy}"}'
    )


def one_line(text: str) -> str:
    """The text with every run of white space as one blank."""
    return ' '.join(text.split())


def texts_joined(item: Item) -> Item:
    """The item with white space in its texts squeezed, as classifiers read them."""
    return dataclasses.replace(item, texts=tuple(map(one_line, item.texts)))
