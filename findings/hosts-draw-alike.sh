#!/usr/bin/env bash
# grain 0.2.18: `dataset[host::hosts].random_map(...)` gives the n-th records of all hosts the same random numbers.
#   - 8 hosts mask 15% of 128 places in each of 4 rows. In the global batch of 32 different rows are 4 different
#     masks, each of them 8 times.
#   - The numbers come from the seed and the index, and the index begins with 0 on each host, because the slice is a
#     dataset of its own. `seed()` is the same on all hosts, as it has to be for shuffle.
#   - So what is drawn in one step goes together on all hosts: places of masks, where a long text is cut, which task a
#     record is for. A record has other numbers as soon as the number of hosts changes.
#   - A slice behind random_map gives 32 different masks, and the same for any number of hosts.
#     `to_iter_dataset().random_map(...)` behind a slice does as above. DataLoader with an IndexSampler gives 32
#     different masks.
# The documentation recommends slices for sharding, and `seed` so that each transformation has its own numbers. It
# does say that the generator depends on "the index of the element in the dataset", but not that sharding makes these
# indices equal. One host shows nothing, and neither does a look at the batch of one. Remedy: random_map first, then
# the slice, which costs nothing since elements are computed when they are asked for; or a seed to which the host is
# added, for random_map alone. Seen on 2026-11-29, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install grain==0.2.18 numpy==2.4.6
cat > "$folder/try.py" <<'PYTHON'
from importlib.metadata import version

import grain
import numpy as np

ROWS, PLACES = 4, 128
print('grain', version('grain'))


class Mask(grain.transforms.RandomMap):
    """The record and the places of it that are masked."""

    def random_map(self, record, rng):
        return int(record), tuple(np.flatnonzero(rng.random(PLACES) < 0.15).tolist())


def shuffled():
    return grain.MapDataset.range(960).seed(7).shuffle()


def slice_first(host, hosts):
    return shuffled()[host::hosts].random_map(Mask())


def slice_last(host, hosts):
    return shuffled().random_map(Mask())[host::hosts]


def iterated(host, hosts):
    return shuffled()[host::hosts].to_iter_dataset().random_map(Mask())


def loaded(host, hosts):
    shard = grain.sharding.ShardOptions(host, hosts)
    sampler = grain.samplers.IndexSampler(num_records=960, shard_options=shard, shuffle=True, num_epochs=1, seed=7)
    return grain.DataLoader(data_source=range(960), sampler=sampler, operations=[Mask()])


def own_seed(host, hosts):
    return shuffled()[host::hosts].random_map(Mask(), seed=1000 + host)


def first_batch(pipeline, hosts):
    """The first rows of all hosts."""
    return [row for host in range(hosts) for row, _ in zip(pipeline(host, hosts), range(ROWS))]


for pipeline, right in ((slice_first, False), (iterated, False), (slice_last, True), (loaded, True), (own_seed, True)):
    batch = first_batch(pipeline, 8)
    records, masks = {record for record, _ in batch}, {mask for _, mask in batch}
    print(f'{pipeline.__name__:12s} 8 hosts: {len(records)} different records, {len(masks)} different masks')
    assert len(records) == 8 * ROWS
    assert len(masks) == (8 * ROWS if right else ROWS), f'{len(masks)} different masks'

masks = [mask for _, mask in first_batch(slice_first, 8)]
assert masks == 8 * masks[:ROWS]

for pipeline, same in ((slice_first, False), (slice_last, True)):
    few, many = (dict(row for host in range(hosts) for row in pipeline(host, hosts)) for hosts in (2, 8))
    equal = sum(few[record] == many[record] for record in few)
    print(f'{pipeline.__name__:12s} of {len(few)} records with 2 and with 8 hosts {equal} have the same mask')
    assert few.keys() == many.keys() and (equal == 960 if same else equal < 480)
PYTHON
"$folder/env/bin/python" "$folder/try.py"
echo 'As stated: behind a slice all hosts draw the same numbers.'
