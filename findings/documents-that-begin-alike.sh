#!/usr/bin/env bash
# scorch 0.2.0 (scores for coreference resolution): with two folders, doc1.json is scored against whichever of
# doc1.json, doc10.json, doc11.json, ... the file system names first.
#   - 99 documents, doc1 to doc99, and a system whose files are exact copies of the gold ones: the CoNLL score was .95
#     here, not 1. It depends on the order of the folder, so it may be another number on another disk.
#   - With the same files called doc01 to doc99 it is 1, as it is when the file of each name is scored alone.
# One would expect doc1.json of one folder to meet doc1.json of the other: the README says that files with the same base
# name, less the extension, belong together. Numbered documents and names such as PMC123 and PMC1234 begin alike.
# Nothing is raised. What is compared are mentions of two documents, which have the same identifiers where these are
# places (sentence and word), as those that its own converter from CoNLL makes. Scores are too low, and not the same
# elsewhere.
# Remedy: numbers with leading zeros, so that no name is the beginning of another.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install scorch==0.2.0 numpy==2.4.6 scipy==1.17.1
cat > "$folder/try.py" <<'PYTHON'
import importlib.metadata
import json
import pathlib
import random
import sys

from scorch.main import main_entry_point, process_files

print('scorch', importlib.metadata.version('scorch'))
folder = pathlib.Path(sys.argv[1])
draw = random.Random(0)
names = range(1, 100)
texts = {}
for number in names:
    mentions = [f'{sentence}.{word}-{word + 1}' for sentence in range(8) for word in (0, 4, 8)]
    draw.shuffle(mentions)
    clusters = {}
    while mentions:
        size = draw.randint(1, 5)
        clusters[str(len(clusters))], mentions = mentions[:size], mentions[size:]
    texts[number] = json.dumps({'type': 'clusters', 'clusters': clusters})


def score(name):
    """The CoNLL score of the command for two folders of equal files, which are called by this pattern."""
    root = folder / name.format(0)
    for side in ('gold', 'sys'):
        (root / side).mkdir(parents=True)
        for number, text in texts.items():
            (root / side / f'{name.format(number)}.json').write_text(text)
    main_entry_point([str(root / 'gold'), str(root / 'sys'), str(root / 'out.txt')])
    return float((root / 'out.txt').read_text().split()[-1])


short, long = score('doc{}'), score('doc{:02}')
print(f'doc1 to doc99: {short:.4f}, doc01 to doc99: {long:.4f}')
assert long == 1
assert short < 0.999, 'each document meets its own now'
for number in names:
    file = folder / 'doc0' / 'gold' / f'doc{number}.json'
    with file.open() as gold, file.open() as system:
        assert float(list(process_files(gold, system))[-1].split()[-1]) == 1
PYTHON
"$folder/env/bin/python" "$folder/try.py" "$folder" 2> "$folder/progress" || { cat "$folder/progress"; exit 1; }
echo 'As stated: a document may be scored against another one whose name begins alike.'
