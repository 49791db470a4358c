"""Splits of sets of entities from foreign files: words with tags, or documents with mentions by characters."""

import dataclasses
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from bioptimus_jax.errors import InputError
from bioptimus_jax.sets.characters import Marked, reading
from bioptimus_jax.sets.folders import WITHIN
from bioptimus_jax.sets.foreign.flat import without_role
from bioptimus_jax.sets.foreign.forms import ENDINGS, read_items
from bioptimus_jax.sets.foreign.items import FOUND_KEYS, Item, Items, Keys
from bioptimus_jax.sets.foreign.names import files_beside
from bioptimus_jax.sets.prepared import Tagged, gathered_sentences
from bioptimus_jax.sets.roles import LAST, Columns
from bioptimus_jax.sets.sentences import SplitReading, of_devel, plain_name, plain_suffix

UNSAID = 'texts of which nothing is said, where others have mentions, read as texts without a mention'
NEEDED = '"tokens" with "ner_tags", or "text" with "entities"'


def files_in(folder: Path) -> list[Path]:
    """The files of a folder that are in a foreign form, by their names."""
    found = (path for path in folder.rglob('*') if path.is_file() and plain_suffix(path).lower() in ENDINGS)
    return sorted(
        path for path in found if not any(p.startswith('.') for p in path.relative_to(folder).parts)
    )


def files_of(path: Path) -> list[Path]:
    """The files that decide a split: it, or those of a folder, and those beside it that name labels."""
    every = files_in(path) if path.is_dir() else [path]
    return [*every, *sorted({beside for file in every for beside in files_beside(file)} - {*every})]


def keys_of(path: Path, asked: Columns) -> Keys:
    """The keys that were asked for. Raises InputError for the number of a column."""
    if asked == LAST:
        return FOUND_KEYS
    for name in (asked.word, asked.tag):
        if name.removeprefix('-').isdecimal():
            raise InputError(
                f'{path}: has columns or keys with names, but number {name} was asked for; give a name'
            )
    return Keys(word=asked.word, tag=asked.tag)


def read_split(path: Path, asked: Columns) -> SplitReading:
    """The sentences of a file, or of all files of a folder. Raises InputError with file and record."""
    return split_of(path, items_at(path, keys_of(path, asked)))


def items_at(path: Path, keys: Keys = FOUND_KEYS) -> Items:
    """The records of a file, or of all files of a folder. Raises InputError with file and record."""
    if not path.is_dir():
        return read_items(path, keys)
    every = [(file, read_items(file, keys)) for file in files_in(path)]
    if not every:
        raise InputError(f'{path}: holds no file of {", ".join(ENDINGS)}')
    items = [named for file, found in every for named in _named(file, found.items)]
    repairs = sum((Counter(found.repairs) for _, found in every), Counter[str]())
    within = sum(file.parent != path for file, _ in every)
    repairs += Counter({WITHIN: within})
    return Items(every[0][1].form, tuple(items), repairs, every[0][1].taken)


def _named(file: Path, items: Sequence[Item]) -> list[Item]:
    stem = plain_name(file).partition('.')[0]
    return [
        dataclasses.replace(one, name=one.name or (stem if len(items) == 1 else f'{stem}-{at}'))
        for at, one in enumerate(items, 1)
    ]


def split_of(path: Path, found: Items) -> SplitReading:
    """A split from the items of a file. Raises InputError for an item that lacks what the first one has."""
    if not found.items:
        left = ''.join(f'; {what}: {count:,}' for what, count in found.repairs.items())
        raise InputError(f'{path}: holds no record{left}{of_devel(path)}')
    if by_characters(found.items):
        repairs = Counter(found.repairs)
        made = reading(path, documents(found.items, repairs), repairs)
        return dataclasses.replace(made, form=found.form)
    for item in found.items:
        if item.words is None or item.tags is None:
            raise without_role(item, NEEDED, 'name other keys with word_column and tag_column')
    tagged = gathered_sentences(
        path, (Tagged(one.place, one.words or (), one.tags or (), one.document) for one in found.items)
    )
    said = ', '.join(
        f'{role} from {found.taken[role]!r}' for role in ('words', 'tags') if role in found.taken
    )
    return dataclasses.replace(
        tagged, repairs={**found.repairs, **tagged.repairs}, columns=said, form=found.form
    )


def by_characters(items: Sequence[Item]) -> bool:
    """Whether any record marks its text by characters, and does not say tags of words alone."""
    return any(item.mentions is not None for item in items)


def documents(items: Sequence[Item], repairs: Counter[str]) -> list[Marked]:
    """The texts with their mentions, none where nothing at all is said of a text.

    So Label Studio's JSON-MIN, Prodigy and empty cells of CSV have texts without a mention. Raises InputError for a
    record without a text, and for one that says something else: tags, or anything under a key that the others do not
    have beside their mentions, as where mentions are written otherwise or have a misspelled key.
    """
    found, usual = [], {key for item in items if item.mentions is not None for key in item.others}
    for item in items:
        strange = min(item.others - usual, default='') if item.mentions is None else ''
        says_more = item.mentions is None and (item.tags is not None or strange)
        if not item.texts or says_more:
            remedy = f'{strange!r:.60} is not read as mentions; where there are none, give an empty list'
            raise without_role(item, '"text" with "entities", as the others have', remedy if strange else '')
        if len(item.texts) > 1:
            raise InputError(f'{item.place}: has two texts, but entities are marked in one')
        repairs[UNSAID] += item.mentions is None
        found.append(Marked(item.texts[0], item.mentions or (), item.place, item.name, item.document))
    return found
