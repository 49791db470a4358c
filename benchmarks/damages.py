"""Damaged files of a run folder: does the next verb notice?

    python benchmarks/damages.py [--quick] [--stages A,B] [--folder DIR]

In the world of `operations.py`: every kind of file that a stage lists in its manifest (numbers in names left out), the
manifest itself and metrics.jsonl, damaged in every way (a byte flipped, cut in half, deleted, empty, other JSON, other
encoding), each on a run as it was after that stage; then the next verb that reads it, in a fork. What came of it:

    noticed    one line that names the file (exit code 2 or 3), or, where the verb goes on, a line or the page names it
    harmless   exit code 0, nothing said, and every file is what it would have been
    used       exit code 0, nothing said, and a file differs
    crash      a crash file, a traceback, more than a line, or a line that does not name the file

With --folder the work is kept there and the same command goes on from it. The full run writes results/damages.json;
--quick damages vocab alone, and writes nothing.
"""

import argparse
import collections
import json
import re
import tempfile
from pathlib import Path
from typing import Any

from operations import STAGES, copy, files_of, forked, losses_of, prepare, surroundings, undisturbed
from protocol import publish

from bioptimus_jax.cli.main import BAD_INPUT, DONE, USAGE
from bioptimus_jax.records.manifests import Manifest
from bioptimus_jax.run.manifests import MANIFEST, read_manifest
from bioptimus_jax.storage.files import read_json, write_json

NEXT = {
    'corpus': 'vocab',
    'vocab': 'contexts',
    'contexts': 'surgery',
    'surgery': 'pretrain',
    'rows': 'pretrain',
    'pretrain': 'export',
    'export': 'finetune',
    'finetune': 'report',
    'analyze': 'report',
    'report': 'report',
}
"""The first verb that reads what a stage has written."""
DAMAGES = ('flip', 'cut', 'delete', 'empty', 'other JSON', 'other encoding')


def main() -> None:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument('--quick', action='store_true', help='damages vocab alone; writes nothing')
    parser.add_argument('--stages', default=','.join(NEXT))
    parser.add_argument('--folder', help='keep the work here, and go on from it')
    options = parser.parse_args()
    stages = ['vocab'] if options.quick else options.stages.split(',')
    with tempfile.TemporaryDirectory(prefix='bioptimus-damages-') as temporary:
        folder = Path(options.folder or temporary).resolve()
        surroundings(folder)
        tries = measure(folder, stages)
    counted = collections.Counter(one['outcome'] for one in tries)
    publish('damages', {'tries': tries}, options.quick, damages=len(tries), **counted)


def measure(folder: Path, stages: list[str]) -> list[dict[str, Any]]:
    """A record for every damage; kept in `folder` as it grows."""
    config = prepare(folder)
    last = max(STAGES.index(NEXT[name]) for name in stages)
    wanted = {name: undisturbed(folder, config, name) for name in STAGES[: last + 1]}
    record = read_json(folder / 'damages.json') or []
    done = {(one['stage'], one['file'], one['damage']) for one in record}
    for stage in stages:
        _, alike, losses = wanted[NEXT[stage]]
        before = folder / f'{"after" if stage == NEXT[stage] else "before"}-{NEXT[stage]}'
        for name in kinds(before / stage):
            for damage in DAMAGES:
                if (stage, name, damage) not in done:
                    one = attempt(folder, config, stage, before, name, damage, alike, losses)
                    record.append(one)
                    write_json(folder / 'damages.json', record)
                    print(json.dumps(one), flush=True)
    return [one for one in record if one['stage'] in stages]


def kinds(folder: Path) -> list[str]:
    """One file of every kind that a manifest lists, the manifest, and metrics.jsonl beside the folder."""
    found: dict[str, str] = {}
    for name in (read_manifest(folder) or Manifest()).files:
        if name.startswith('checkpoints/'):
            place = re.sub(r'[0-9a-f]{8,}|\d+', 'N', name)
        else:
            place = re.sub(r'\d{2,}', 'N', name)
        found[place] = name
    return [*found.values(), MANIFEST, '../metrics.jsonl']


def attempt(
    folder: Path,
    config: Path,
    stage: str,
    before: Path,
    name: str,
    damage: str,
    alike: dict[str, str],
    losses: list[Any],
) -> dict[str, Any]:
    """Damage one file, run the next verb, and see what came of it."""
    run = folder / 'run'
    copy(before, run)
    path = (run / stage / name).resolve()
    one = {'stage': stage, 'file': name, 'damage': damage, 'verb': NEXT[stage]}
    if not path.is_file():
        return {**one, 'outcome': 'harmless', 'said': 'not written by then'}
    own = str(path.relative_to(run))
    spoil(path, damage)
    spoiled = path.read_bytes() if path.exists() else None
    code, text = forked([NEXT[stage], f'--config={config}', f'--workdir={run}'], folder)
    lines = [line for line in text.splitlines() if line.startswith('bioptimus: ')]
    page = run / 'report' / 'index.html'
    told = text + (page.read_text() if NEXT[stage] == 'report' and page.exists() else '')
    if code in (USAGE, BAD_INPUT) and len(lines) == 1 and 'Traceback' not in text:
        named = path.name in lines[0] or f"stage '{stage}'" in lines[0]
        return {**one, 'outcome': 'noticed' if named else 'crash', 'said': lines[0].replace(str(run), 'RUN')}
    if code != DONE:
        return {**one, 'outcome': 'crash', 'said': f'code {code}: {text[-300:]}'}
    said = (f'Incomplete: {stage} has lost', f'{path.name} does not hold', f'{stage} has no {path.name}')
    if any(words in told for words in said):
        return {**one, 'outcome': 'noticed', 'said': 'Incomplete'}
    found = files_of(run)
    changed = [n for n, sum in alike.items() if sum and n != own and found.get(n) != sum]
    if NEXT[stage] == 'pretrain' and losses_of(run) != losses:  # others leave metrics.jsonl as it is
        changed.append('losses')
    anew = ['(the file itself was written again)'] * (path.exists() and path.read_bytes() != spoiled)
    return {**one, 'outcome': 'used' if changed else 'harmless', 'said': '; '.join(changed + anew)}


def spoil(path: Path, damage: str) -> None:
    """Damage a file in place."""
    content = path.read_bytes()
    if damage == 'delete':
        path.unlink()
        return
    at = len(content) // 2
    path.write_bytes(
        {
            'flip': content[:at] + bytes([content[at] ^ 1 if content else 1]) + content[at + 1 :]
            if content
            else b'x',
            'cut': content[:at],
            'empty': b'',
            'other JSON': b'[{"a": 1}, 2]\n' if content[:1] == b'{' else b'{"a": 1}\n',
            'other encoding': content.decode('latin-1').encode('utf-16'),
        }[damage]
    )


if __name__ == '__main__':
    main()
