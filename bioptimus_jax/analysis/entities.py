"""How finely a vocabulary cuts the entities of the benchmark: the case for a vocabulary of the domain.

Tinn et al. (PubMedBERT) make it with single terms; here it is all mentions of each NER set. Training splits only:
they are enough, and whoever looks at this table has seen nothing of devel and test.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.records.vocabulary import Entities, PiecesOfMentions, WholeEntity
from bioptimus_jax.sets.corpora import NamedSet, entity_sets, name_of, read_split, split_files
from bioptimus_jax.sets.tags import spans
from bioptimus_jax.tokenizer.metaspace import count_words
from bioptimus_jax.tokenizer.subwords import Subwords

MANY_PIECES = 3
EXAMPLES = 20


def measured_sets(settings: Finetune) -> list[NamedSet]:
    """The sets whose mentions are measured, one of each folder; none without `finetune.folder`. Raises InputError."""
    return list({one.folder: one for one in entity_sets(settings)}.values()) if settings.folder else []


def entity_files(settings: Finetune) -> list[Path]:
    """The files that their mentions are read from. Raises InputError."""
    return [file for one in measured_sets(settings) for file in split_files(one.folder, 'train')]


def compare_on_entities(chosen: Sequence[NamedSet], own: Subwords, source: Subwords | None) -> Entities:
    """`measure` of every set under the run's own tokenizer and the source's, and `examples`.

    Examples are mentions of any set that the source cuts into `MANY_PIECES` or more while the run's vocabulary keeps
    them whole, the most frequent first. Raises InputError.
    """
    sets = {name_of(one.folder): count_mentions(one) for one in chosen}
    measured = {}
    for name, counts in sets.items():
        measured[name] = {'vocabulary': measure(own, counts)}
        if source is not None:
            measured[name]['source'] = measure(source, counts)
    every: Counter[str] = sum(sets.values(), Counter())
    return Entities('train', measured, _examples(every, own, source) if source else ())


def count_mentions(chosen: NamedSet) -> Counter[str]:
    """How often each mention of a set's training split occurs, its words joined by a space. Raises InputError."""
    counts: Counter[str] = Counter()
    for sentence in read_split(chosen, 'train'):
        counts.update(' '.join(sentence.words[first : last + 1]) for _, first, last in spans(sentence.tags))
    return counts


def measure(subwords: Subwords, mentions: Mapping[str, int]) -> PiecesOfMentions:
    """Sizes and rates over all mentions, frequent ones as often as they occur.

    Words are the tokenizer's: pieces a word, shares that are one piece or hold an unknown character; and the share of
    mentions that are a single piece. An unknown piece is not a whole word.
    """
    total = words = pieces = whole = unknown = whole_mentions = 0
    texts = list(mentions)
    for text, encoding in zip(texts, subwords.encode_words(texts), strict=True):
        times = mentions[text]
        found, alone = count_words(encoding, subwords.unknown)
        lost = encoding.ids.count(subwords.unknown)
        total += times
        words += times * found
        pieces += times * len(encoding.tokens)
        unknown += times * lost
        whole += times * alone
        whole_mentions += times * (len(encoding.tokens) == 1 and not lost)
    return PiecesOfMentions(
        mentions=total,
        different=len(texts),
        words=words,
        pieces_per_word=round(pieces / max(words, 1), 4),
        unknown_words=round(unknown / max(words, 1), 6),
        one_piece_words=round(whole / max(words, 1), 4),
        one_piece_mentions=round(whole_mentions / max(total, 1), 4),
    )


def _examples(mentions: Mapping[str, int], own: Subwords, source: Subwords) -> tuple[WholeEntity, ...]:
    texts = list(mentions)
    pairs = zip(*(each.encode_words(texts) for each in (own, source)), strict=True)
    counts: Counter[str] = Counter()
    spelled: dict[str, list[str]] = {}
    for text, (ours, theirs) in zip(texts, pairs, strict=True):
        if len(ours.tokens) == 1 and ours.ids != [own.unknown] and len(theirs.tokens) >= MANY_PIECES:
            entity = own.text(ours.ids[0])  # one, however its letters are capitalised
            counts[entity] += mentions[text]
            spelled[entity] = theirs.tokens
    frequent = sorted(counts, key=lambda entity: (-counts[entity], entity))[:EXAMPLES]
    return tuple(WholeEntity(e, counts[e], tuple(spelled[e])) for e in frequent)
