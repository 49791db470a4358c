"""BioASQ's yes or no questions of task 7b in BLURB's form: lines of id, question, snippets, answer.

Train and devel are those of the training file, test those of the five golden files; BLURB's lists say which is which
and in what order. A line feed within a text becomes a blank, nothing else of it changes; snippets are joined by blanks.
"""

import json
from collections.abc import Iterator

from bioptimus_jax.errors import InputError
from bioptimus_jax.rebuild.originals import Builder, Example, Made, Originals
from bioptimus_jax.sets.sentences import SPLITS

TRAINING = ('trainining7b.json', 'training7b.json')  # the first is how its owner spells it
GOLDEN = tuple(f'7B{batch}_golden.json' for batch in range(1, 6))
LISTS = dict(zip(SPLITS, ('train_id.tsv', 'dev_id.tsv', 'test_id.tsv'), strict=True))


def make(originals: Originals, fold: int) -> Made:
    """The questions that the lists name. Raises InputError naming file and question."""
    training = dict(_questions(*originals.text(*TRAINING)))
    golden = {name: x for file in GOLDEN for name, x in _questions(*originals.text(file))}
    splits = {}
    for split, known in {'train': training, 'devel': training, 'test': golden}.items():
        shown, names = originals.listed(LISTS[split])
        lacking = [name for name in names if name not in known]
        if lacking:
            where = TRAINING[0] if known is training else ', '.join(GOLDEN)
            raise InputError(f'{shown}: names {lacking[0]}, which is not a yes/no question of {where}')
        splits[split] = [known[name] for name in names]
    return Made(splits)


def _questions(shown: str, text: str) -> Iterator[tuple[str, Example]]:
    """Ids of yes or no questions, and their lines."""
    try:
        for at, question in enumerate(json.loads(text)['questions']):
            if question['type'] != 'yesno':
                continue
            parts = [snippet['text'] for snippet in question['snippets']]
            columns = (question['id'], question['body'], ' '.join(parts), question['exact_answer'])
            plain = tuple(str(column).replace('\n', ' ') for column in columns)
            if any('\t' in column for column in plain):
                raise InputError(f'{shown}: question {at + 1} has a tab in it')
            yield plain[0], Example(plain)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise InputError(f'{shown}: is not a file of questions of BioASQ ({error!r})') from error


BUILDER = Builder(
    'trainining7b.json, 7B1_golden.json to 7B5_golden.json of BioASQ; train_id.tsv, dev_id.tsv, test_id.tsv of BLURB',
    make,
    (
        '980f3508f4e8022bdd07dfdbe36611aa4c3e1f3801b27560329d14f224577017',
        'bf9ae5f70164bb9eff330faa6bf827d53d34b721b744abc7e8004865612e6695',
        'eab1e35b18a2ea65cd0d780431198568dd15241eaf3f8faadb13372c20156530',
    ),
)
