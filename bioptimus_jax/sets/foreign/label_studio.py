"""Label Studio's export in JSON: tasks of data, and annotations with what each person has marked.

What the list of JSON-MIN holds is flat, and read there. Of several annotations of a task the one that is marked as
ground truth is read, else the first, and it is said. A task that nobody has annotated, as all are that wait to be
imported, is left out and counted, unless texts alone are wanted. Where answers of a model are wanted, and tasks have
predictions, these are read.
"""

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bioptimus_jax.errors import InputError
from bioptimus_jax.progress.console import shortened
from bioptimus_jax.sets.foreign import flat
from bioptimus_jax.sets.foreign.items import Context, Dialect, Item
from bioptimus_jax.storage.files import JsonObject

NOT_ANNOTATED = 'tasks of Label Studio that nobody has annotated, or all have skipped, left out'
SEVERAL = 'tasks of Label Studio with annotations of several people, of which one is read'
NOT_ANSWERED = 'tasks of Label Studio that answer {} and not {!r}, as set.json asks, left out'
OTHERS = 'annotations that are not mentions'
OF_REGIONS = 'answers in Label Studio about a region, and not about the text, left out'
ADDRESS = re.compile(r'(https?|s3|gs|azure-blob)://\S+|/data/\S+')
REGIONS = ('labels', 'hypertextlabels')
NUMBERS = ('rating', 'number')
OF_OTHERS = flat.KNOWN - {'id', 'predictions'}
"""Keys that a task has in its data alone."""


def _is_one(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get('data'), dict):
        return False
    if 'annotations' in value or 'completions' in value:
        return isinstance(value.get('annotations', value.get('completions')), list)
    return OF_OTHERS.isdisjoint(value)


def _read(where: str, line: int, value: Any, context: Context) -> Iterator[Item]:
    given = value.get(_asked(where, value, context), value.get('completions', []))
    if given == [] and context.taken.get('results') == 'predictions':
        given = [{'result': []}]  # the model has found nothing
    done = [one for one in given if isinstance(one, dict) and not one.get('was_cancelled')]
    if not done:
        if context.leaves_out(NOT_ANNOTATED):
            return
        done = [{'result': []}]
    context.repairs[SEVERAL] += len(done) > 1
    chosen = next((one for one in done if one.get('ground_truth')), done[0])
    result = chosen.get('result')
    if not isinstance(result, list) or not all(isinstance(one, Mapping) for one in result):
        raise InputError(f'{where}: an annotation has no list "result"; export it again as JSON')
    name = {key: value['data'][key] for key in (context.keys.name,) if key in value['data']}
    entry = {'id': value.get('id'), **name, **_texts(where, value['data'], context)}
    marked, questions = _marked(where, result, context)
    wanted = context.keys.answer
    asked = next((name for name in questions if name.lower() == wanted.lower()), '')
    why = NOT_ANSWERED.format(shortened(questions) or 'nothing', wanted)
    if wanted and not asked and context.leaves_out(why):
        return
    # One question may have any name, as long as all tasks answer this one.
    if not wanted and len(questions) == 1 and context.taken.setdefault('question', *questions) in questions:
        [marked['labels']] = questions.values()
    elif asked:
        marked[wanted] = questions[asked]
    if not (context.keys.texts or 'entities' in marked):
        flat.refuse_half_a_pair(where, [key.lower() for key, text in value['data'].items() if text])
    item = flat.item_of(where, line, entry | marked, context)
    yield dataclasses.replace(item, keys=(*questions, *item.keys, *map(str, value['data'])))


def _asked(where: str, value: JsonObject, context: Context) -> str:
    """The key that is read. Raises InputError where some tasks have predictions and others none."""
    if not context.keys.predicted:
        return 'annotations'
    found_none = 'predictions' in value and context.taken.get('results') == 'predictions'
    asked = 'predictions' if value.get('predictions') or found_none else 'annotations'
    if (first := context.taken.setdefault('results', asked)) != asked:
        raise InputError(
            f'{where}: is read by its {asked}, but a task before it by its {first}; export tasks that all have '
            'predictions, or none of them'
        )
    return asked


def _texts(where: str, data: JsonObject, context: Context) -> dict[str, str]:
    """The text of a task, or the pair of texts. Raises InputError where it is not told which it is."""
    texts = {key: text for key, text in data.items() if isinstance(text, str)}
    known = context.keys.texts or flat.pair_in(texts)
    names = known or (['text'] if 'text' in texts else list(texts))
    if missing := [name for name in names if name not in texts]:
        raise InputError(f'{where}: has no {missing[0]!r}; it has {shortened(data)}')
    if not known and len(names) != 1:
        raise InputError(
            f'{where}: which of its data is the text is not known ({shortened(texts) or "none is a text"}); call it '
            '"text", or name it in set.json'
        )
    if wrong := next((texts[name] for name in names if ADDRESS.fullmatch(texts[name].strip())), None):
        raise InputError(
            f'{where}: has the address of a text, {wrong[:60]!r}, and not the text; import the texts themselves into '
            'Label Studio, and export again'
        )
    return {name if known else 'text': texts[name] for name in names}


def _marked(
    where: str, result: Sequence[JsonObject], context: Context
) -> tuple[JsonObject, dict[str, list[Any]]]:
    """Entities of an annotation, and its answers to each question, which is what a control is called."""
    entities: list[JsonObject] = []
    questions: dict[str, list[Any]] = {}
    for one in result:
        kind, value = str(one.get('type', '')), one.get('value')
        name = str(one.get('from_name') or 'labels')
        if kind in REGIONS and isinstance(value, dict):
            entities.append(_region(where, kind, value))
        elif isinstance(value, Mapping) and kind in ('choices', *NUMBERS) and 'start' in value:
            context.repairs[OF_REGIONS] += 1
        elif kind == 'choices' and isinstance(value, Mapping) and isinstance(value.get('choices'), list):
            questions[name] = [*questions.get(name, ()), *value['choices']]
        elif kind in NUMBERS and isinstance(value, Mapping):
            questions[name] = [*questions.get(name, ()), value.get(kind)]
        elif kind.endswith('labels'):
            raise InputError(
                f'{where}: has regions of the type {kind!r:.60}; read are those of text (labels, hypertextlabels)'
            )
        else:
            context.repairs[OTHERS] += 1
    # An annotation without any region says that there is none.
    return {'entities': entities} if entities or not questions else {}, questions


def _region(where: str, kind: str, value: JsonObject) -> JsonObject:
    place = value.get('globalOffsets', value)
    start, end, labels = place.get('start'), place.get('end'), value.get(kind)
    if type(start) is not int or type(end) is not int or not isinstance(labels, list):
        raise InputError(f'{where}: a region has no start, end and {kind}: {dict(value)!r:.80}')
    return {'start': start, 'end': end, 'labels': labels, 'text': value.get('text')}


DIALECT = Dialect('Label Studio', _is_one, _read)
