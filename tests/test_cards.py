"""Fine-tuning on a simulated host of four GPUs, and on a dask cluster: where cells run, and what failures cost."""

import dataclasses
import os
from collections import Counter
from pathlib import Path

import pytest
import torch
import toy_cards

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.finetuning import cells
from bioptimus_jax.finetuning.cards import torch_device
from bioptimus_jax.finetuning.cells import Cell, memory_kind, run_cells
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.hosts.config import Runtime
from bioptimus_jax.sets.corpora import NamedSet


@pytest.fixture
def host(monkeypatch):
    """Makes a host of so many cards of this machine."""

    def make(cards):
        monkeypatch.delenv('CUDA_VISIBLE_DEVICES', raising=False)
        for name, function in toy_cards.of_host(cards).items():
            monkeypatch.setattr(torch.cuda, name, function)
        monkeypatch.setattr(cells, 'run_cell', toy_cards.simulated_cell)

    return make


def run_on_cards(folder, sets, **runtime):
    """Cells of `sets`, a number of seeds each: what they gave by set and seed, what was said, the error at the end."""
    of_sets = {NamedSet(name, Path(name)): seeds for name, seeds in sets.items()}
    common = {'setting': 'standard', 'settings': Finetune(), 'threads': 1, 'quiet': True, 'fingerprint': ''}
    todo = [
        Cell('m', Path('m'), dataset=one, seed=n, target=folder / f'm/{one.name}/standard/seed-{n}', **common)
        for one, seeds in of_sets.items()
        for n in range(seeds)
    ]
    datasets, done, said = {one: one.name for one in of_sets}, {}, []
    try:
        for cell, record in run_cells(Runtime(**runtime), todo, datasets, said.append, lambda: None):
            done[cell.dataset.name, cell.seed] = record
    except (ConfigError, InputError) as error:
        return done, said, error
    return done, said, None


def test_twenty_cells_on_four_cards(host, tmp_path, monkeypatch):
    """No card gets all; two small cells share one and large ones have one for themselves, as was measured. What runs
    out of memory beside another is tried alone; what is too large or is killed costs the others nothing."""
    host(4)
    (tmp_path / 'nvidia-smi').write_text(f'#!/bin/sh\necho asked >> {tmp_path}/asked\n')
    (tmp_path / 'nvidia-smi').chmod(0o755)
    monkeypatch.setenv('PATH', str(tmp_path), prepend=os.pathsep)
    assert torch_device() == 'cuda (4 x NVIDIA H100 80GB HBM3)'
    sets = {'growing': 4, 'small': 8, 'large': 6, 'giant': 1, 'killed': 1}
    done, said, error = run_on_cards(tmp_path, sets, workers=20)
    assert sum(sets.values()) == 20
    assert list(done) == [(name, n) for name, seeds in sets.items() for n in range(seeds) if name != 'giant']
    used = Counter(record['CUDA_VISIBLE_DEVICES'] for record in done.values())
    # A card whose processes start sooner takes more, and the last one may find nothing left.
    assert len(used) > 2
    assert max(used.values()) < 15
    assert {record['JAX_PLATFORMS'] for record in done.values()} == {'cpu'}
    beside = {name: [r['beside'] for (of, _), r in done.items() if of == name] for name in sets}
    assert max(beside['small']) == 2
    assert set(beside['large']) == {1}
    assert {done[name, 0]['first'] for name in sets if name != 'giant'} == {1}, 'the first of a kind is alone'
    lacking = [line for line in said if 'ran out of memory beside others; it is tried again' in line]
    assert any('m/growing/standard' in line for line in lacking)
    # Of a small cell and one that grows the one that asks last goes without; no other two fit as told and not as taken.
    assert all('m/growing/' in line or 'm/small/' in line for line in lacking)
    assert [line for line in said if 'its process was killed; it is started again (1 of 2)' in line]
    assert str(error) == (
        'finetune: m/giant/standard/seed-0: the memory of NVIDIA H100 80GB HBM3 (80 GiB) is not enough for it alone '
        '(CUDA out of memory. Tried to allocate 90.00 GiB); lower config.finetune.batch_sentences or '
        'config.finetune.max_pieces'
    )
    assert isinstance(error, InputError)
    assert not (tmp_path / 'asked').exists()


@pytest.mark.parametrize(
    ('change', 'same'), [({'learning_rate': 1e-3}, True), ({'batch_sentences': 64}, False)]
)
def test_what_was_measured_holds_for_settings_that_take_the_same_memory(change, same, tmp_path):
    one = Cell('m', Path('m'), NamedSet('s', Path('s')), 'a', Finetune(), 0, tmp_path, 1, True, '')
    settings = dataclasses.replace(Finetune(), settings=('b',), **change)
    other = dataclasses.replace(one, setting='b', settings=settings, seed=1)
    assert (memory_kind(one) == memory_kind(other)) == same


def test_a_failed_cell_lets_those_that_run_end_on_the_cards_that_were_given(host, tmp_path, monkeypatch):
    host(2)
    monkeypatch.setenv('CUDA_VISIBLE_DEVICES', '3,5')
    done, said, error = run_on_cards(tmp_path, {'broken': 1, 'late': 3})
    assert list(done) == [('late', 0)]
    assert {record['CUDA_VISIBLE_DEVICES'] for record in done.values()} <= {'3', '5'}
    assert isinstance(error, ConfigError)
    assert said == ['finetune: m/broken/standard/seed-0: failed; 1 more are finished before the run ends']
