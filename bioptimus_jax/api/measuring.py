"""Two measures for anybody's models: the difficulty of masking settings, and scores of predictions made elsewhere."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bioptimus_jax.api.bars import Bar, Barred, shown
from bioptimus_jax.api.objects import (
    OF_TEXTS,
    PLACE,
    FilePath,
    Keys,
    ModelOrFolder,
    Texts,
    TokenizerOrFolder,
    as_folder,
    as_json,
    experiment,
    texts_of,
    undisturbed,
    workplace,
    write_texts,
)
from bioptimus_jax.errors import InputError
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.run.folder import Run
from bioptimus_jax.sets.texts import CLASSES, in_order
from bioptimus_jax.storage.files import JsonObject, write_json, write_jsonl


def difficulty(
    model: ModelOrFolder,
    tokenizer: 'TokenizerOrFolder | None',
    texts: Texts,
    *,
    samples: int = 10,
    keys: Keys | None = None,
    progress: bool | None = None,
) -> dict[str, dict[str, Any]]:
    """How hard each masking setting of the curriculum is for a model: its perplexity there (paper, Figure 4).

    `model`: any masked language model of transformers with a fast tokenizer, also of families that cannot be adapted
    here, or a folder with None. `texts`: documents, preferably of a domain that the model was not trained on; they
    are dealt to `samples`, each of which has a perplexity. `keys`: other values, as `{'phase.0.4.rate': 0.3}`.
    `progress`: a bar; by default on a terminal and in a notebook.

    Returns phase -> 'masked' (at hidden pieces), 'replaced', 'kept' and 'perplexity' (at all that are predicted), each
    with `mean`, the geometric one, `interval` (95 %, None for one sample) and `samples`, or None where a sample has no
    such piece; and 'positions', the number of each in a sample. Perplexity counts pieces: models with different
    vocabularies compare in the order of the settings, not in the values.

    Raises ConfigError for invalid keys, InputError for a model without a head or fewer texts than samples.
    """
    show = shown(progress)
    with workplace() as place, undisturbed(), Bar(show) as bar:
        folder, documents = as_folder(place / 'model', model, tokenizer), list(texts_of(texts))
        write_texts(place / 'texts.jsonl', documents)
        asked = {
            'curriculum.texts': (place / 'texts.jsonl',),
            'curriculum.samples': samples,
            'curriculum.documents': max(len(documents), 1),
        }
        run = Run(place / 'run', experiment(OF_TEXTS, asked, keys or {}), quiet=True)
        run.console = Barred(bar)
        from bioptimus_jax.analysis.difficulty import measure  # late: imports jax and torch

        [measured] = measure(run, [f'model={folder}']).models
        return {name: of_setting.json() for name, of_setting in measured.settings.items()}


class Scores(NamedTuple):
    """The values of each metric on a test set, with the ends `low` and `high` of a 95 % interval; and what is odd."""

    measures: dict[str, dict[str, float]]
    notes: tuple[str, ...]


def score(
    gold: FilePath | Sequence[Mapping[str, Any]],
    predicted: FilePath | Sequence[Mapping[str, Any]],
    *,
    task: str = Finetune.task,
    types: Mapping[str, str] | None = None,
) -> Scores:
    """Score what any program predicted for a test set, as stage finetune does.

    `gold`: a set's folder or test file in any form that stage finetune reads; or records, `{'words': [...], 'tags':
    [...]}` of entities, `{'text': '...', 'answers': ['yes']}` of texts, `{'words': [A, B], 'answers': [3.5]}` of two.
    `predicted`: one for each item of the test set in its order: a file or BRAT folder, or records `{'words': [...],
    'predicted': [...]}` with tags, `{'text': '...', 'entities': [[start, end, type]]}` with characters, `{'answers':
    [...]}`. `task`: of sets without a record of ours, a file of finetuning/tasks ('entities', 'classes', 'similarity').
    `types`: what the set calls a predicted type of entities; '' leaves it out.

    `scores.measures['default']` holds `f1`, `precision` and `recall` for entities, and the metric of the set for texts,
    with `low` and `high`: a bootstrap over documents, or test items; NaN where no draw has a score. Raises InputError
    unless every item is there once.
    """
    from bioptimus_jax.finetuning.scoring import score as scored  # late: reads tasks

    with workplace() as place:
        of_predicted = place / 'predicted.jsonl'
        if isinstance(predicted, PLACE):
            of_predicted = Path(predicted)
        else:
            write_jsonl(of_predicted, _records('predicted', predicted))
        if isinstance(gold, PLACE):
            of_gold = Path(gold)
        else:
            of_gold = _gold_file(place, _records('gold', gold), task, of_predicted)
        found = scored(of_gold, of_predicted, task, types or {})
        return Scores(found.measures(), found.notes)


def _records(name: str, given: Iterable[Any]) -> list[JsonObject]:
    """The records of an argument of that name, as JSON can hold them. Raises InputError for what is none."""
    records = list(map(as_json, given))
    for number, one in enumerate(records):
        if not isinstance(one, Mapping):
            raise InputError(f'{name}: number {number} is no record, but {one!r:.40}')
    return records


def _gold_file(place: Path, records: Sequence[JsonObject], task: str, predicted: Path) -> Path:
    """The gold standard as a file: of texts with several labels, or none, as JSON. Raises InputError.

    `predicted`: the file of predictions; its labels count as labels of the set, too.
    """
    from bioptimus_jax.sets.described import OF_SEVERAL  # late: imports pyarrow

    lines = list(_gold_lines(records))
    answers = [record['answers'] for record in records if 'tags' not in record]
    if task != CLASSES or all(len(given) == 1 for given in answers):
        if len(answers) == len(records) and all('id' in record for record in records):
            write_jsonl(place / 'gold.jsonl', map(_named_row, records))
            return place / 'gold.jsonl'
        (place / 'gold.tsv').write_text(''.join(lines), 'utf-8')
        return place / 'gold.tsv'
    texts = list(map(_texts_of, records))
    if other := next((n for n, of_one in enumerate(texts) if len(of_one) != len(texts[0])), 0):
        raise InputError(f'gold: number {other} has another number of texts than the first')
    keys = [f'sentence{n}' for n in range(1, len(texts[0]) + 1)]
    given = [list(map(str, of_one)) for of_one in answers]
    folder = place / 'gold'
    folder.mkdir()
    rows = [
        {**_id_of(record), **dict(zip(keys, of_one)), 'labels': labels}
        for record, of_one, labels in zip(records, texts, given, strict=True)
    ]
    write_jsonl(folder / 'test.jsonl', rows)
    labels = in_order([*(label for of_one in given for label in of_one), *_labels_in(predicted)])
    named = {'name': 'id'} if all('id' in row for row in rows) else {}
    several = {**named, 'task': CLASSES, 'texts': keys, 'answer': 'labels', 'labels': labels, 'several': True}
    write_json(folder / 'set.json', {**several, 'measures': OF_SEVERAL})
    return folder / 'test.jsonl'


def _texts_of(record: Mapping[str, Any]) -> Sequence[Any]:
    return record.get('words') or [record.get('text')]


def _id_of(record: JsonObject) -> JsonObject:
    return {'id': record['id']} if 'id' in record else {}


def _named_row(record: JsonObject) -> JsonObject:
    """A record of one answer as a row of a set that names its texts."""
    words = [' '.join(word.split()) for word in _texts_of(record)]
    keys = ('text',) if len(words) == 1 else ('sentence1', 'sentence2')
    return {**_id_of(record), **dict(zip(keys, words)), 'label': str(record['answers'][0])}


def _labels_in(predicted: Path) -> Iterator[str]:
    """The labels that a file of predictions as records names; none of another file."""
    from bioptimus_jax.sets.described import SEPARATOR  # late, as above
    from bioptimus_jax.sets.foreign.forms import form_at, read_items
    from bioptimus_jax.sets.foreign.items import PREDICTED_KEYS

    there = predicted.is_file() and form_at(predicted)
    for item in read_items(predicted, PREDICTED_KEYS).items if there else ():
        for answer in item.answers or ():
            parts = [answer] if item.listed else answer.split(SEPARATOR)
            yield from filter(None, map(str.strip, parts))


def _gold_lines(records: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A file of columns: a word and its tag a line, or a text, or two, and its answer."""
    for number, record in enumerate(records):
        words = _texts_of(record)
        given = record.get('tags', record.get('answers'))
        fits = isinstance(given, list | tuple) and all(isinstance(word, str) for word in words)
        if not fits or ('tags' in record and len(given) != len(words)):
            raise InputError(
                f"gold: number {number} needs 'words' with a tag for each in 'tags', or 'text', or two 'words', with "
                f"'answers'; it has {', '.join(map(str, record)) or 'no key'}"
            )
        if 'tags' in record:
            yield ''.join(f'{word}\t{tag}\n' for word, tag in zip(words, given)) + '\n'
        else:
            yield '\t'.join([*(' '.join(word.split()) for word in words), ','.join(map(str, given))]) + '\n'
