"""Places in real abstracts where sentence splitters disagree, each read and judged: does a sentence end there?

    python benchmarks/judged.py

prints the places with their context; benchmarks/sentences.py scores splitters against them. The abstracts are those
2,000 of BIOPTIMUS_DATA that belong to no benchmark and have the smallest hashes of their texts. judged.tsv has every
place where the splitter of this project, BlingFire and nupunkt did not all cut or all leave the text whole in November
2026, and where a later version of ours cuts alone (`none`): the hash of the abstract, the letters and digits before the
place, who cut there, whether a sentence ends there.
One sentence each: a heading, a remark in brackets after a full stop, a reference, the number of an item with its text.
What is `unclear` is not counted. The rule of splitting.py was written with the abstracts of even hashes in sight; those
of odd hashes were judged afterwards.
"""

import dataclasses
import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pubmed import other_abstracts
from splitters import LIBRARY, OURS, Splitter, boundaries, make

from bioptimus_jax.corpus.audit import reduced
from bioptimus_jax.storage.hashing import hash64

FILE = Path(__file__).with_name('judged.tsv')
COLUMNS = ['abstract', 'letters', 'cut_by', 'border']
VERDICTS = {'yes': True, 'no': False, 'unclear': None}
ABSTRACTS = 2000
HALVES = ('development', 'held out')
CONTEXT = 60  # characters on either side that are printed


@dataclasses.dataclass(frozen=True)
class Place:
    """A place in an abstract, with the splitters of November 2026 that cut there, and whether a sentence ends there."""

    abstract: str
    letters: int
    cut_by: tuple[str, ...]
    is_border: bool | None

    @property
    def half(self) -> str:
        return HALVES[int(self.abstract, 16) % 2]


def places(file: Path = FILE) -> list[Place]:
    """The judged places, in the order of the file."""
    header, *rows = [line.split('\t') for line in file.read_text('utf-8').splitlines()]
    assert header == COLUMNS, f'{file}: has the columns {header}, not {COLUMNS}'
    return [Place(a, int(letters), tuple(by.split('+')), VERDICTS[border]) for a, letters, by, border in rows]


def judged_abstracts(texts: Iterable[str], known: Sequence[Place]) -> list[dict[str, Any]]:
    """The abstracts that were searched: text, places, and where BlingFire cuts. SystemExit where one is missing."""
    by_hash = {f'{hash64(text, purpose=b"sentences"):016x}': text for text in texts}
    chosen = sorted(by_hash)[:ABSTRACTS]
    if missing := {place.abstract for place in known} - set(chosen):
        raise SystemExit(
            f'{FILE.name}: BIOPTIMUS_DATA lacks {len(missing)} of its abstracts, {min(missing)} first'
        )
    split = make(LIBRARY)
    return [
        {
            'text': by_hash[key],
            'half': HALVES[int(key, 16) % 2],
            'borders': [(p.letters, p.is_border) for p in known if p.abstract == key],
            'library': sorted(boundaries(split(by_hash[key]))),
        }
        for key in chosen
    ]


def decisions(split: Splitter, abstracts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Half -> how a splitter decides the judged places; `not_judged`: where else it departs from BlingFire."""
    made: dict[str, list[tuple[bool, bool]]] = {half: [] for half in HALVES}
    not_judged = dict.fromkeys(HALVES, 0)
    for abstract in abstracts:
        half, found, known = abstract['half'], boundaries(split(abstract['text'])), dict(abstract['borders'])
        not_judged[half] += len((found ^ set(abstract['library'])) - known.keys())
        made[half] += [(at in found, border) for at, border in known.items() if border is not None]
    return {half: {**rated(made[half]), 'not_judged': not_judged[half]} for half in HALVES}


def decisions_before(known: Sequence[Place]) -> dict[str, Any]:
    """The same for this project's splitter of November 2026, as the list has it."""
    return {
        half: rated(
            [(OURS in p.cut_by, p.is_border) for p in known if p.half == half and p.is_border is not None]
        )
        for half in HALVES
    }


def rated(made: Sequence[tuple[bool, bool]]) -> dict[str, Any]:
    """Counts and rates of decisions `(cut, border)`."""
    right = sum(cut and border for cut, border in made)
    wrong = sum(cut and not border for cut, border in made)
    borders = sum(border for _, border in made)
    return {
        'places': len(made),
        'borders': borders,
        'decided_right': sum(cut == border for cut, border in made),
        'cut_right': right,
        'cut_wrong': wrong,
        'precision': right / max(right + wrong, 1),
        'recall': right / max(borders, 1),
    }


def index_after(text: str, letters: int) -> int:
    """The index of the letter or digit that has so many before it."""
    counts = itertools.accumulate((len(reduced(character)) for character in text), initial=0)
    return next(i for i, count in enumerate(counts) if count == letters and reduced(text[i]))


def main() -> None:
    known = places()
    texts = {f'{hash64(text, purpose=b"sentences"):016x}': text for text in other_abstracts()}
    for place in known:
        text, verdict = texts[place.abstract], {True: 'yes', False: 'no', None: 'unclear'}[place.is_border]
        at = index_after(text, place.letters)
        before, after = text[max(0, at - CONTEXT) : at], text[at : at + CONTEXT]
        print(f'{verdict:8}{"+".join(place.cut_by):18}{before:>{CONTEXT}}|{after}')


if __name__ == '__main__':
    main()
