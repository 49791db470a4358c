"""Sentence splitters on biomedical text: boundaries right and wrong, hard cases, speed.

    python benchmarks/sentences.py [--quick] [--rounds N]

Boundaries are known where an abstract stands, letter by letter, as a run of whole sentences in an NER set
(BIOPTIMUS_DATA). A boundary is the number of letters and digits before it; precision, recall and F1 are over all
boundaries inside abstracts, which every splitter gets as one line. The sentences of JNLPBA were made by people (GENIA),
those of BC5CDR by a program. Those of NCBI-disease are shown but not counted: they begin inside numbers ("0. 9 %") and
names. In a hard case full stops mean something else; it counts if every sentence is right. Places where splitters
disagree in 2,000 other abstracts were read and judged one by one (judged.py). Speed: one process per splitter, in turn,
each splitting abstracts for a second.
The full run writes results/sentences.json; --quick takes texts made of the hard cases' sentences, and writes nothing.
"""

import argparse
import bisect
import itertools
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from judged import HALVES, decisions, decisions_before, judged_abstracts, places
from protocol import Variant, interleave, publish, ratio, serve, start, versions_of
from pubmed import abstracts, data_folder, other_abstracts
from splitters import HARD, NAMES, OURS, PACKAGES, Splitter, boundaries, make

from bioptimus_jax.corpus.audit import reduced
from bioptimus_jax.sets.corpora import read_iob2
from bioptimus_jax.storage.files import read_json, write_json

SETS = ('jnlpba', 'bc5-chem', 'ncbi-disease')  # BC2GM holds single sentences, BC5-disease those of BC5-chem
NOT_COUNTED = ('ncbi-disease',)
KEY = 40  # letters by which an abstract is looked up
OTHER_ABSTRACTS = 5000  # to be timed on; one splitter learns its abbreviations from them
MADE_TEXTS, SENTENCES_PER_TEXT = 300, 8
STEP_SECONDS = 1.0  # --quick: half of it

Gold = list[tuple[str, list[int]]]  # abstracts and the boundaries inside them


def main() -> None:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument('--quick', action='store_true', help='made texts, writes nothing; under a minute')
    parser.add_argument('--rounds', type=int, default=9, help='timed rounds (default 9; --quick: 1)')
    parser.add_argument('--variant', help=argparse.SUPPRESS)
    parser.add_argument('--workload', help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.variant:
        run_variant(options.variant, Path(options.workload), options.quick)
        return
    with tempfile.TemporaryDirectory(prefix='bioptimus-sentences-') as folder:
        measure(Path(folder) / 'workload.json', options.quick, 1 if options.quick else options.rounds)


def measure(stored: Path, quick: bool, rounds: int) -> None:
    write_json(stored, workload(quick))
    common = [__file__, f'--workload={stored}', *(('--quick',) if quick else ())]
    started = start({name: [*common, f'--variant={name}'] for name in NAMES}, at_once=2)
    variants = [variant for variant in started if is_installed(variant)]
    rows = interleave(variants, rounds, warmups=0 if quick else 1)
    for variant in variants:
        variant.close()
    speeds = {v.name: [row[v.name]['bytes'] / row[v.name]['seconds'] / 1e6 for row in rows] for v in variants}
    table = {
        v.name: {
            **v.facts,
            'mb_per_second': statistics.median(speeds[v.name]),
            'ours_over_it': ratio(speeds[OURS], speeds[v.name]),
        }
        for v in variants
    }
    before = decisions_before(places())
    print_table(table)
    print_judged(
        {f'{OURS}, before': before, **{name: entry['judged'] for name, entry in table.items()}}, quick
    )
    best = max((name for name in table if name != OURS), key=lambda name: table[name]['sets']['all']['f1'])
    ours = table[OURS]
    publish(
        'sentences',
        {
            'peers': versions_of(*PACKAGES),
            'hard_cases': len(HARD),
            'judged_before': before,
            'table': table,
            'rounds': rows,
        },
        quick,
        f1=ours['sets']['all']['f1'],
        best_other_f1=table[best]['sets']['all']['f1'],
        hard_right=ours['hard_right'] / len(HARD),
        mb_per_second=ours['mb_per_second'],
    )


def is_installed(variant: Variant) -> bool:
    """Whether the splitter's library is there; if not, its process ends, with a line that says so."""
    if 'missing' not in variant.facts:
        return True
    print(f'{variant.name}: left out, {variant.facts["missing"]} is not installed')
    variant.close()
    return False


def run_variant(name: str, stored: Path, quick: bool) -> None:
    """A splitter's process: its scores are its facts; every step splits abstracts for a second."""
    facts = read_json(stored)
    assert facts
    try:
        split = make(name, facts['texts'])
    except ModuleNotFoundError as error:
        serve(dict, {'missing': error.name})
        return
    sets = {key: scores(split, pairs) for key, pairs in facts['gold'].items()}
    counted = [entry for key, entry in sets.items() if key not in NOT_COUNTED]
    sets['all'] = rated(*(sum(e[key] for e in counted) for key in ('abstracts', 'right', 'wrong', 'missed')))
    wrong = [case for case in HARD if [s.strip() for s in split(' '.join(case))] != list(case)]
    stream = itertools.cycle(facts['texts'])

    def step() -> dict[str, Any]:
        done, ends = 0, time.perf_counter() + (STEP_SECONDS / 2 if quick else STEP_SECONDS)
        while time.perf_counter() < ends:
            text = next(stream)
            split(text)
            done += len(text.encode())
        return {'bytes': done}

    judged = decisions(split, facts['judged'])
    serve(step, {'sets': sets, 'judged': judged, 'hard_right': len(HARD) - len(wrong), 'hard_wrong': wrong})


def workload(quick: bool) -> dict[str, Any]:
    """`texts` to be timed on, and trained on, none gold; by set, `gold` abstracts with boundaries; what is `judged`."""
    if quick:
        made = made_texts()
        return {'texts': [text for text, _ in made], 'gold': {'made': made}, 'judged': []}
    texts = [' '.join(text.split()) for text in abstracts()]
    gold = {name: known_boundaries(name, texts) for name in SETS}
    known = {text for pairs in gold.values() for text, _ in pairs}
    others = (text for text in texts if text not in known)
    judged = judged_abstracts(other_abstracts(), places())
    return {'texts': list(itertools.islice(others, OTHER_ABSTRACTS)), 'gold': gold, 'judged': judged}


def made_texts() -> Gold:
    """Sentences of the hard cases in random order."""
    draw, sentences = random.Random(0), [sentence for case in HARD for sentence in case]
    found = []
    for _ in range(MADE_TEXTS):
        drawn = draw.choices(sentences, k=SENTENCES_PER_TEXT)
        found.append((' '.join(drawn), sorted(boundaries(drawn))))
    return found


def known_boundaries(dataset: str, texts: Sequence[str]) -> Gold:
    """The abstracts that stand, letter by letter, as whole sentences in the set's files, with their boundaries."""
    by_key: dict[str, list[tuple[str, str]]] = {}
    for text in texts:
        letters = reduced(text)
        by_key.setdefault(letters[:KEY], []).append((text, letters))
    found = {}
    for path in sorted((data_folder() / 'ner' / dataset).glob('*.tsv')):
        sentences = [reduced(' '.join(sentence.words)) for sentence in read_iob2(path)]
        running = ''.join(sentences)
        starts = [0, *itertools.accumulate(map(len, sentences))]
        known = set(starts)
        for begin in starts:
            for text, letters in by_key.get(running[begin : begin + KEY], ()):
                end = begin + len(letters)
                if end in known and running.startswith(letters, begin):
                    inside = starts[bisect.bisect_right(starts, begin) : bisect.bisect_left(starts, end)]
                    found[text] = [b - begin for b in inside]
    return list(found.items())


def scores(split: Splitter, gold: Gold) -> dict[str, Any]:
    right = wrong = missed = 0
    for text, inside in gold:
        found, expected = boundaries(split(text)), set(inside)
        right += len(found & expected)
        wrong += len(found - expected)
        missed += len(expected - found)
    return rated(len(gold), right, wrong, missed)


def rated(texts: int, right: int, wrong: int, missed: int) -> dict[str, Any]:
    counts = {'abstracts': texts, 'right': right, 'wrong': wrong, 'missed': missed}
    rates = {
        'precision': right / max(right + wrong, 1),
        'recall': right / max(right + missed, 1),
        'f1': 2 * right / max(2 * right + wrong + missed, 1),
    }
    return counts | rates


def print_table(table: dict[str, dict[str, Any]]) -> None:
    names = list(table[OURS]['sets'])
    for name in names:
        entry = table[OURS]['sets'][name]
        print(
            f'{name}: {entry["abstracts"]:,} abstracts, {entry["right"] + entry["missed"]:,} boundaries inside them'
        )
    print(f'{"":18}' + ''.join(f'{name:>22}' for name in names) + f'{"hard":>8}{"MB/s":>9}')
    print(f'{"":18}' + f'{"P     R    F1":>22}' * len(names))
    for name, entry in sorted(table.items(), key=lambda item: -item[1]['sets']['all']['f1']):
        cells = ''.join(
            f'{100 * s["precision"]:10.2f}{100 * s["recall"]:6.2f}{100 * s["f1"]:6.2f}'
            for s in entry['sets'].values()
        )
        print(f'{name:18}{cells}{entry["hard_right"]:5}/{len(HARD)}{entry["mb_per_second"]:9.2f}')


def print_judged(table: dict[str, dict[str, Any]], quick: bool) -> None:
    """How the judged places are decided, by half; nothing where made texts were taken."""
    for half in () if quick else HALVES:
        print(
            f'\njudged, {half}: {table[OURS][half]["places"]} places, {table[OURS][half]["borders"]} borders'
        )
        print(f'{"":18}{"decided right":>15}{"P":>9}{"R":>9}{"not judged":>12}')
        for name, halves in sorted(table.items(), key=lambda item: -item[1][half]['decided_right']):
            entry = halves[half]
            rates = f'{100 * entry["precision"]:9.2f}{100 * entry["recall"]:9.2f}'
            print(f'{name:18}{entry["decided_right"]:15}{rates}{entry.get("not_judged", 0):12}')


if __name__ == '__main__':
    main()
