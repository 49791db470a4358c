"""A low-resource setting: some of the training examples, chosen by what they say."""

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Any

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.finetune.task import Task
from bioptimus_jax.hashing import hash64

PURPOSE = b'ner subset'


def chosen_examples(task: Task, train: Sequence[Any], count: int, seed: int, name: str) -> tuple[Any, ...]:
    """`count` training examples in the order of the file; all of them for 0.

    Every example has a hash of its words, its answers and the seed, and the lowest are taken: so a smaller choice lies
    within a larger one of the same seed, and the same examples are chosen in whatever order the file has them. Of
    examples that are equal, the second and third have hashes of their own. Raises ConfigError where there are too few
    examples, InputError naming the set where all of those chosen have one and the same answer.
    """
    if not count:
        return tuple(train)
    if count > len(train):
        raise ConfigError(f'config.finetune.train_sentences: {count}, but {name} has {len(train)} of them')
    seen: Counter[str] = Counter()
    ranked = []
    for at, example in enumerate(train):
        lines = itertools.zip_longest(example.words, task.answers(example), fillvalue='')
        content = '\n'.join(f'{word}\t{answer}' for word, answer in lines)
        seen[content] += 1
        priority = hash64(f'{seen[content]}\n{content}', key=seed.to_bytes(8, 'little'), purpose=PURPOSE)
        ranked.append((priority, at))
    chosen = tuple(train[at] for at in sorted(at for _, at in sorted(ranked)[:count]))
    different = {answer for example in chosen for answer in task.answers(example)}
    if len(different) < 2:
        raise InputError(
            f'{name}: all of the {count} training examples of train_seed={seed} have the answer '
            f'{", ".join(map(str, different))}; take more of them, or another config.finetune.train_seed'
        )
    return chosen
