"""What of a set is learned and what chooses the epoch: in low resources some examples, chosen by what they say."""

import dataclasses
import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.task import Task
from bioptimus_jax.storage.hashing import hash64

PURPOSE = b'ner subset'


Ranked = list[tuple[float, int]]
"""Priority and number of every example; the lowest are taken."""


def at_random(ranked: Ranked, strata: Callable[[int], Hashable], seed: int) -> Ranked:
    """The ranking as it is."""
    return ranked


def stratified(ranked: Ranked, strata: Callable[[int], Hashable], seed: int) -> Ranked:
    """Spread so that, however many are taken, every stratum has its share of them, up to one example.

    The r-th of the n examples of a stratum gets the priority (r + start) / n, its start drawn from [0, 1) by the seed:
    so rare strata are not all left out of a small choice, and a smaller choice is still part of a larger one.
    """
    members: dict[Hashable, list[int]] = defaultdict(list)
    for _, at in sorted(ranked):
        members[strata(at)].append(at)
    spread = []
    for stratum, numbers in members.items():
        start = hash64(repr(stratum), key=seed.to_bytes(8, 'little'), purpose=PURPOSE) / 2**64
        spread += [((rank + start) / len(numbers), at) for rank, at in enumerate(numbers)]
    return spread


CHOICES = {'random': at_random, 'stratified': stratified}
"""What config.finetune.train_choice may be."""


def as_learned(task: Task, dataset: Any, settings: Finetune) -> Any:
    """The set with the examples that a setting learns as train, and those that choose its epoch as devel."""
    chosen = {
        split: chosen_examples(task, getattr(dataset, split), settings, dataset.name, split)
        for split in ('train', 'devel')
    }
    if settings.learn_devel:
        chosen['train'] += chosen['devel']
    return dataclasses.replace(dataset, **chosen)


def as_seen(dataset: Any, settings: Finetune) -> Any:
    """The set with all that a training can have shown a model as train, whatever a setting chooses from it."""
    if not settings.learn_devel:
        return dataset
    return dataclasses.replace(dataset, train=(*dataset.train, *dataset.devel))


def chosen_examples(
    task: Task, examples: Sequence[Any], settings: Finetune, name: str, split: str = 'train'
) -> tuple[Any, ...]:
    """The chosen examples, as many as `settings` say, in the order of the file; all of them for 0.

    Every example has a hash of its words, its answers and the seed, and the lowest are taken: so a smaller choice lies
    within a larger one of the same seed, and the same examples are chosen in whatever order the file has them. Among
    examples that are equal, the second and third have hashes of their own. Raises ConfigError where there are too few
    examples, InputError naming the set where all of those chosen have one and the same answer.
    """
    key, seed = f'{split}_sentences', settings.train_seed
    count = getattr(settings, key)
    if not count:
        return tuple(examples)
    if count > len(examples):
        raise ConfigError(f'config.finetune.{key}: {count}, but {name} has {len(examples)} of them')
    seen: Counter[str] = Counter()
    ranked: Ranked = []
    for at, example in enumerate(examples):
        # There is one tag a word; texts have fewer or more answers than words.
        lines = itertools.zip_longest(example.words, task.answers(example), fillvalue='')
        content = '\n'.join(f'{word}\t{answer}' for word, answer in lines)
        seen[content] += 1
        priority = hash64(f'{seen[content]}\n{content}', key=seed.to_bytes(8, 'little'), purpose=PURPOSE)
        ranked.append((priority, at))
    ranked = CHOICES[settings.train_choice](ranked, lambda at: task.stratum(examples[at]), seed)
    chosen = tuple(examples[at] for at in sorted(at for _, at in sorted(ranked)[:count]))
    different = {answer for example in chosen for answer in task.answers(example) or ('no label',)}
    if len(different) < 2:
        raise InputError(
            f'{name}: all of the {count} {split} examples of train_seed={seed} have the answer '
            f'{", ".join(map(str, different))}; take more of them, or another config.finetune.train_seed'
        )
    return chosen
