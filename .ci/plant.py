"""Bugs planted one at a time by replacing a text of a file: do the tests that should notice them fail?

    python .ci/plant.py [--list] [--trusted] [NAME ...]

Works in a copy of the tree; yours stays as it is. First the tests of each plant must pass without it (--trusted: left
out). Then for each plant the text is replaced, its tests are run, and the text is put back. A plant is noticed
where a test fails; where all pass, a test is missing. Outside CI, since it takes a minute or so for every plant.

Exit code: 0 if every bug was noticed, 1 if one was not, 2 if a text has left its file or tests fail anyway.
"""

import argparse
import dataclasses
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path('bioptimus_jax')
FAILED = re.compile(r'^FAILED (\S+)', re.MULTILINE)
TESTS_FAILED = 1
"""The exit code of pytest where tests ran and some failed; others say that they could not run."""


@dataclasses.dataclass(frozen=True)
class Plant:
    """A bug: `right`, which stands once in `file`, becomes `wrong`; `tests` (files) and `only` (-k) should notice."""

    file: str
    right: str
    wrong: str
    tests: tuple[str, ...]
    only: str = ''

    def problem(self, root: Path) -> str:
        """Why it cannot be planted in this tree; '' where it can."""
        found = (root / PACKAGE / self.file).read_text('utf-8').count(self.right)
        missing = [name for name in self.tests if not test_file(root, name).is_file()]
        if missing:
            return f'there is no {test_file(Path(), missing[0])}'
        return '' if found == 1 else f'{PACKAGE / self.file} has {self.right!r} {found} times, not once'


def test_file(root: Path, name: str) -> Path:
    """The file of tests of that name."""
    return root / 'tests' / f'test_{name}.py'


PLANTS = {
    'half-of-the-gradient-clipped': Plant(
        'finetuning/updates.py',
        'math.hypot(near_norm, far_norm)',
        'near_norm',
        ('bridge',),
        'head_of_entities',
    ),
    'schedule-beyond-the-bridge': Plant(
        'finetuning/updates.py',
        'self.far.update(scale, slanted_triangle(self.done,',
        'self.far.update(scale, slanted_triangle(self.done + 1,',
        ('bridge',),
        'stability_kit',
    ),
    'brackets-of-denominators': Plant(
        'corpus/mathml.py',
        'PRODUCT if is_one else ATOM',
        'PRODUCT',
        ('medline',),
        'formula',
    ),
    'captions-that-touch': Plant(
        'corpus/article_text.py',
        "found.append(BREAK + ''.join(caption + BREAK for caption in captions))",
        "found.append(''.join(captions))",
        ('articles',),
        'read_once_or',
    ),
    'years-of-citations': Plant(
        'corpus/citations.py',
        'return not all(map(YEAR.fullmatch, numbers))',
        'return True',
        ('articles',),
        'citation',
    ),
    'signs-are-no-words': Plant(
        'corpus/near.py', 'letters[kept] = given[kept]', 'letters[kept] = 0', ('near',), 'other_short'
    ),
    'pieces-of-an-unfinished-file': Plant(
        'corpus/pieces.py',
        'if number < known or (open_tags and not damaged):',
        'if number < known:',
        ('medline',),
        'broken_file',
    ),
    'average-in-evaluations': Plant(
        'pretrain/loop.py', "state.get(AVERAGE, state['params'])", "state['params']", ('causal',), 'average'
    ),
    'average-in-exports': Plant(
        'pretrain/checkpoint.py',
        "part = AVERAGE if AVERAGE in state else 'params'",
        "part = 'params'",
        ('causal',),
        'average',
    ),
    'hidden-tokens-drawn': Plant(
        'tokenizer/subwords.py',
        'drawn_N=left_N)',
        'drawn_N=self.drawn_N)',
        ('bytelevel', 'initialisations', 'spelling'),
        'hidden',
    ),
    'lowest-of-equal-tokens': Plant(
        'tokenizer/subwords.py',
        'for i, meaning in reversed(list(enumerate(source._meanings(one_kind))))',
        'for i, meaning in enumerate(source._meanings(one_kind))',
        ('bytelevel',),
        'same',
    ),
    'corruption-by-word': Plant(
        'pretrain/masking.py',
        'draws_L = jnp.where(setting.draw_per_word, draws_L[unit_L], draws_L)',
        'draws_L = jnp.where(setting.draw_per_word, draws_L, draws_L)',
        ('masking',),
    ),
    'rate-of-long-words': Plant(
        'pretrain/masking.py',
        'jnp.maximum(maskable_count, 1) - 1) / 2',
        'jnp.maximum(maskable_count, 1)) / 2',
        ('masking',),
    ),
    'cut-one-behind-a-sentence': Plant(
        'rows/parts.py',
        'sentence_ends_V[tokens[window - 1]]',
        'sentence_ends_V[tokens[window - 2]]',
        ('rows',),
    ),
    'parts-fit-loosely': Plant('rows/packing.py', '(-lengths[i], i)', '(lengths[i], i)', ('rows',)),
    'optimiser-not-reset': Plant(
        'pretrain/step.py',
        "begun_with = reset_where(starts_anew, state['optimizer'], optimizer.init(params))",
        "begun_with = state['optimizer']",
        ('pretrain', 'curriculum'),
        'reset or restart or anew or skip',
    ),
    'average-of-old-weights': Plant(
        'pretrain/step.py',
        'scored(settings, state[AVERAGE], optimizer_state, moved_on)',
        'scored(settings, state[AVERAGE], optimizer_state, params)',
        ('causal',),
        'micro_batches',
    ),
    'order-of-difficulty': Plant(
        'pretrain/curriculum.py',
        "sign = 1 if order == 'easy_to_hard'",
        "sign = -1 if order == 'easy_to_hard'",
        ('curriculum',),
    ),
    'last-phase-loses-steps': Plant(
        'pretrain/curriculum.py',
        'stop = planned_stop = max(planned_stop, total)',
        'stop = planned_stop',
        ('curriculum',),
    ),
    'contexts-at-the-limit': Plant(
        'vocab/contexts.py',
        'kept = priority <= limits[token]',
        'kept = priority <= limits[token] // 2',
        ('contexts',),
    ),
    'files-by-characters': Plant(
        'storage/files.py', 'int(part) if place % 2 else part', 'part', ('medline',), 'by_the_numbers'
    ),
    'last-record-stands': Plant(
        'corpus/newest.py',
        '(version, revised or latest[version])',
        '(version, 0)',
        ('corpus_stage',),
        'by_the_book',
    ),
    'vague-dates-are-early': Plant(
        'corpus/dates.py',
        'min(last for _, last in known)',
        'min(first for first, _ in known)',
        ('medline',),
        'cut_off',
    ),
    'equal-texts-twice': Plant(
        'vocab/sampling.py', 'kept = self.take(order[first])', 'kept = self.take(order)', ('contexts',)
    ),
    'bias-of-uncounted-tokens': Plant(
        'surgery/bias.py',
        'np.flatnonzero((shared_W >= 0) & (counts_W > 0))',
        'np.flatnonzero(shared_W >= 0)',
        ('initialisations',),
        'bias',
    ),
    'counts-once-a-word': Plant(
        'surgery/bias.py',
        'np.add.at(counts_W, encoding.ids, count)',
        'counts_W[encoding.ids] += count',
        ('initialisations',),
        'bias or count',
    ),
    'contexts-unweighted': Plant(
        'surgery/source.py',
        '        values_ExD *= reading.weight[batch.entries, None]\n',
        '',
        ('surgery', 'initialisations'),
    ),
    'overlap-of-neighbours': Plant(
        'scoring/score.py', 'begun[0] < first', 'begun[0] < first - 1', ('finetune_score',)
    ),
    'certain-of-shuffles': Plant(
        'scoring/resampling.py',
        '(as_large + 1) / (len(shuffled_R) + 1)',
        'as_large / len(shuffled_R)',
        ('resampling',),
    ),
    'one-sided-interval': Plant(
        'scoring/student.py', '(1 + CONFIDENCE) / 2', 'CONFIDENCE', ('statistics_peers', 'lab_arms')
    ),
    'neighbours-become-one': Plant(
        'sets/tags.py',
        "letter = 'B' if name == name_before and kind != before else tag[0]",
        'letter = tag[0]',
        ('finetune_tags',),
    ),
    'exports-barely-checked': Plant('export/gate.py', 'TOLERANCE = 1e-4', 'TOLERANCE = 1e4', ('export',)),
    'quoted-tokens-of-the-model': Plant(
        'tokenizer/quoted.py', 'if parted := sorted(', 'if parted := 0 and sorted(', ('quoted',)
    ),
    'quoted-tokens-after-pickle': Plant(
        'tokenizer/subwords.py',
        'self._reader.encode_special_tokens = True',
        'pass',
        ('quoted',),
    ),
}


def tests_of(tree: Path, plant: Plant) -> subprocess.CompletedProcess[str]:
    """Run the tests of a plant in a copy of the tree, up to the first that fails."""
    files = [str(test_file(Path(), name)) for name in plant.tests]
    only = ['-k', plant.only] if plant.only else []
    command = [
        sys.executable,
        '-m',
        'pytest',
        '-q',
        '-x',
        '-m',
        'not slow',
        '-p',
        'no:cacheprovider',
        *only,
        *files,
    ]
    environment = os.environ | {'PYTHONPATH': str(tree), 'PYTHONDONTWRITEBYTECODE': '1'}
    return subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)


def copied(tree: Path) -> None:
    """Copy what is, or would be, committed."""
    command = ['git', 'ls-files', '-z', '--cached', '--others', '--exclude-standard']
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    for name in filter(None, listed.split('\0')):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)


def noticed(tree: Path, name: str, plant: Plant) -> bool:
    """Plant it, run its tests, take it out again, and say in a line what came of it."""
    file, started = tree / PACKAGE / plant.file, time.monotonic()
    text = file.read_text('utf-8')
    file.write_text(text.replace(plant.right, plant.wrong), 'utf-8')
    try:
        done = tests_of(tree, plant)
    finally:
        file.write_text(text, 'utf-8')
    failed = FAILED.search(done.stdout)
    seen = done.returncode == TESTS_FAILED and failed is not None
    found = failed[1] if seen and failed else f'NOT NOTICED (pytest ended with {done.returncode})'
    print(f'{name:28}{time.monotonic() - started:6.0f} s  {found}', flush=True)
    return seen


def main(arguments: list[str]) -> int:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument('--list', action='store_true', help='the plants, without running anything')
    parser.add_argument('--trusted', action='store_true', help='do not run the tests without a plant first')
    parser.add_argument('names', nargs='*', metavar='NAME', help='only these plants (default: all)')
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in PLANTS]:
        parser.error(f'no plant {unknown[0]!r}; there are {", ".join(PLANTS)}')
    wanted = {name: PLANTS[name] for name in options.names or PLANTS}
    problems = {name: problem for name, plant in wanted.items() if (problem := plant.problem(ROOT))}
    for name, problem in problems.items():
        print(f'{name}: {problem}', file=sys.stderr)
    if problems:
        return 2
    if options.list:
        for name, plant in wanted.items():
            print(f'{name:28}{plant.file:32}{", ".join(plant.tests)}')
        return 0
    with tempfile.TemporaryDirectory(prefix='bioptimus-plant-') as folder:
        tree = Path(folder)
        copied(tree)
        if not options.trusted:
            for name, plant in wanted.items():
                if (done := tests_of(tree, plant)).returncode:
                    print(f'{name}: its tests fail without it:\n{done.stdout[-2000:]}', file=sys.stderr)
                    return 2
        missed = [name for name, plant in wanted.items() if not noticed(tree, name, plant)]
    print(f'{len(wanted) - len(missed)} of {len(wanted)} were noticed')
    return int(bool(missed))


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
