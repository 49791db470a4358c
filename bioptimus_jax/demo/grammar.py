"""Morphology, templates and the lexicon of the generated biomedical world.

Names are made of syllables and endings. On purpose an ending does not decide the class of a name: drugs share
theirs with reagents, proteins and devices, diseases share theirs with processes and measures. What a name is
shows in the company that it keeps, which is what pre-training on the corpus can learn and spelling cannot.

Nor does frequency: NER training shows names as a sample of texts would, frequent ones more often, but not only those.
Were the seen names the frequent ones, a new vocabulary would have nearly all of them whole and cut many of the others,
and a tagger would learn that what is cut is no name (LOG.md).
"""

import dataclasses
import functools
import random
import re
from collections.abc import Callable, Sequence

ONSETS = 'b c d f g l m n p r s t v z br cl dr fl gl pl pr tr st'.split()
VOWELS = 'a e i o u'.split()
CODAS = ['', '', '', 'l', 'm', 'n', 'r', 's', 'x']
ORGANS = (
    'hepat nephr cardi neur gastr derm oste arthr pneumon enter pancreat thyr mening retin bronch splen '
    'aden col cyst my angi lymph chondr rhin ot kerat phleb'
).split()
ORGAN_ADJECTIVES = (
    'hepatic renal cardiac cerebral gastric dermal ovarian pulmonary intestinal pancreatic thyroid retinal '
    'bronchial splenic vascular muscular lymphatic spinal adrenal corneal'
).split()
DRUG_ENDINGS = 'mab tinib statin pril olol cillin ine ol ide an'.split()
DISEASE_ENDINGS = 'itis oma opathy osis emia iasis'.split()
DECOY_ENDINGS = {
    'reagent': 'ate ose tinib olol cillin ine ol ide an'.split(),
    'protein': 'ase in kin mab statin pril ine an'.split(),
    'device': 'scan port mab statin pril olol ol an'.split(),
    'process': 'ation ing osis oma opathy iasis'.split(),
    'measure': 'metry index emia itis opathy oma'.split(),
    'organism': 'ella coccus ium itis iasis emia'.split(),
}
DISEASE_HEADS = 'fibrosis carcinoma failure syndrome dystrophy deficiency lymphoma insufficiency'.split()
FINDING_HEADS = 'perfusion function tissue clearance biopsy volume imaging resection'.split()
DEGREES = 'chronic acute familial juvenile idiopathic'.split()

Phrase = tuple[tuple[str, ...], str]
"""Words and the class of what they name ('' for plain words)."""
Phrases = list[Phrase]


@dataclasses.dataclass(frozen=True)
class Lexicon:
    """Names by class, frequent ones first, and the part of each class that NER training may show ('seen')."""

    names: dict[str, tuple[tuple[str, ...], ...]]
    seen: dict[str, tuple[tuple[str, ...], ...]]
    unseen: dict[str, tuple[tuple[str, ...], ...]]


def lexicon(rng: random.Random, names_per_class: int = 140, seen_fraction: float = 0.4) -> Lexicon:
    """All names of the world, different from each other whatever their class."""
    taken: set[str] = set()
    word = functools.partial(_new_word, rng, taken)
    names: dict[str, list[tuple[str, ...]]] = {
        'drug': [(word(DRUG_ENDINGS),) for _ in range(names_per_class)]
    }
    single = names_per_class * 6 // 10
    names['disease'] = [(word(DISEASE_ENDINGS, roots=ORGANS),) for _ in range(single)]
    names['disease'] += _phrases(rng, taken, names_per_class - single, DISEASE_HEADS, DISEASE_ENDINGS)
    for kind, endings in DECOY_ENDINGS.items():
        roots = ORGANS if kind in ('process', 'measure', 'organism') else None
        names[kind] = [(word(endings, roots=roots),) for _ in range(names_per_class // 2)]
    names['finding'] = _phrases(rng, taken, names_per_class // 2, FINDING_HEADS, DECOY_ENDINGS['process'])
    names['gene'] = [(_symbol(rng, taken),) for _ in range(names_per_class)]
    seen, unseen = {}, {}
    for kind, entries in names.items():
        rng.shuffle(entries)
        shown: dict[tuple[str, ...], None] = {}
        while len(shown) < round(len(entries) * seen_fraction):
            shown[draw(rng, entries)] = None
        seen[kind], unseen[kind] = tuple(shown), tuple(name for name in entries if name not in shown)
    return Lexicon({kind: tuple(entries) for kind, entries in names.items()}, seen, unseen)


def draw(rng: random.Random, names: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """A name, the first ones several times as often as others."""
    return names[int(len(names) * rng.random() ** 1.3)]


def syllables(rng: random.Random, count: int) -> str:
    """Pronounceable letters."""
    return ''.join(rng.choice(ONSETS) + rng.choice(VOWELS) + rng.choice(CODAS) for _ in range(count))


def _new_word(
    rng: random.Random, taken: set[str], endings: Sequence[str], roots: Sequence[str] | None = None
) -> str:
    while True:
        stem = syllables(rng, rng.choice((1, 1, 2)))
        if roots is not None:
            stem = rng.choice((rng.choice(roots), stem[:3] + rng.choice(roots), stem))
        ending = rng.choice(endings)
        if stem[-1] in 'aeiou' and ending[0] in 'aeiou':
            stem = stem[:-1] + rng.choice('bdlmnrtv')
        name = stem + ending
        if name not in taken and len(name) > 5:
            taken.add(name)
            return name


def _phrases(
    rng: random.Random, taken: set[str], count: int, heads: Sequence[str], endings: Sequence[str]
) -> list[tuple[str, ...]]:
    """Names of two or three words: half of them on a known head, half on a new one."""
    found: list[tuple[str, ...]] = []
    heads = [*heads, *(_new_word(rng, taken, endings) for _ in range(len(heads) * 3))]
    while len(found) < count:
        middle = rng.choice(((), (), ('cell',)))
        degree = rng.choice(((), (rng.choice(DEGREES),)))
        name = (*degree, rng.choice(ORGAN_ADJECTIVES), *middle, rng.choice(heads))
        if ' '.join(name) not in taken:
            taken.add(' '.join(name))
            found.append(name)
    return found


def _symbol(rng: random.Random, taken: set[str]) -> str:
    while True:
        letters = ''.join(rng.choice('ABCDEFGKLMNPRSTVX') for _ in range(rng.choice((2, 3, 3))))
        name = letters + rng.choice(('', 'K', 'R')) + str(rng.randint(1, 19))
        if name.lower() not in taken:
            taken.add(name.lower())
            return name


@functools.cache
def parse(template: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """A template's parts. `{kind}` is a name or number, `[a|b {kind}]` a choice, the rest stands as it is."""
    parts: list[tuple[str, tuple[str, ...]]] = []
    for slot, choice, word in re.findall(r'\{(\w+)\}|\[([^\]]+)\]|([^\s\[{]+)', template):
        if choice:
            parts.append(('choice', tuple(choice.split('|'))))
        else:
            parts.append(('slot', (slot,)) if slot else ('word', (word,)))
    return tuple(parts)


def expand(rng: random.Random, template: str, pick: Callable[[str], Phrase]) -> Phrases:
    """One sentence of a template; `pick(kind)` fills its slots."""
    sentence: Phrases = []
    for sort, value in parse(template):
        if sort == 'slot':
            sentence.append(pick(value[0]))
        elif sort == 'choice':
            sentence += expand(rng, rng.choice(value), pick)
        else:
            sentence.append((value, ''))
    return sentence


def text(sentence: Phrases) -> str:
    """The sentence as one writes it: a capital first letter, no space before punctuation."""
    written = ' '.join(word for words, _ in sentence for word in words)
    written = re.sub(r' ([.,;:?)%])', r'\1', written).replace('( ', '(')
    return written[:1].upper() + written[1:]


def iob2(sentence: Phrases, kind: str, label: str) -> list[tuple[str, str]]:
    """`(word, tag)` pairs, with names of one class tagged B-label, I-label."""
    return [
        (word, f'{"I" if position else "B"}-{label}' if found == kind else 'O')
        for words, found in sentence
        for position, word in enumerate(words)
    ]
