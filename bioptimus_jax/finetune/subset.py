"""A low-resource setting: some of the training sentences, chosen by what they say."""

from collections import Counter
from collections.abc import Sequence

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.hashing import hash64
from bioptimus_jax.sets.corpora import Sentence
from bioptimus_jax.sets.tags import OUTSIDE

PURPOSE = b'ner subset'


def chosen_sentences(train: Sequence[Sentence], count: int, seed: int, name: str) -> tuple[Sentence, ...]:
    """`count` sentences in the order of the file; all of them for 0.

    Every sentence has a hash of its words and tags and the seed, and the lowest are taken: so a smaller choice lies
    within a larger one of the same seed, and the same sentences are chosen in whatever order the file has them. Of
    sentences that are equal, the second and third have hashes of their own. Raises ConfigError where there are too few
    sentences, InputError naming the set where none of those chosen has a mention.
    """
    if not count:
        return tuple(train)
    if count > len(train):
        raise ConfigError(f'config.finetune.train_sentences: {count}, but {name} has {len(train)} of them')
    seen: Counter[str] = Counter()
    ranked = []
    for at, sentence in enumerate(train):
        content = '\n'.join(f'{word}\t{tag}' for word, tag in zip(sentence.words, sentence.tags, strict=True))
        seen[content] += 1
        priority = hash64(f'{seen[content]}\n{content}', key=seed.to_bytes(8, 'little'), purpose=PURPOSE)
        ranked.append((priority, at))
    chosen = tuple(train[at] for at in sorted(at for _, at in sorted(ranked)[:count]))
    if all(tag == OUTSIDE for sentence in chosen for tag in sentence.tags):
        raise InputError(
            f'{name}: none of the {count} training sentences of train_seed={seed} has a mention; take more of them, or '
            'another config.finetune.train_seed'
        )
    return chosen
