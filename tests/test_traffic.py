"""What a step sends and updates beside its products, against sums by hand."""

import dataclasses
import math

import pytest
from toy_commands import document

from bioptimus_jax.errors import ConfigError
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.hosts.config import Runtime
from bioptimus_jax.hosts.devices import DEVICES
from bioptimus_jax.model.families.bert import Bert
from bioptimus_jax.pretrain.config import Pretrain
from bioptimus_jax.pretrain.traffic import beside_products, sends, sent_in_a_step
from bioptimus_jax.rows.config import Rows

MODEL = Bert(512, 64, 2, 4, 128, 64, attention_dropout=0.0).padded_with(0)
SHAPES = MODEL.shapes()
# What is looked up, and vectors: sent in float32. Matrices: in bfloat16, of one micro-batch.
TABLES = 4 * sum(math.prod(s) for path, s in SHAPES.items() if path.endswith('embedding') or len(s) == 1)
WHOLE = 4 * sum(map(math.prod, SHAPES.values()))
LOW = (WHOLE - TABLES) / 2
V5E, H100 = DEVICES['tpu-v5e'], DEVICES['h100']


def wanted(rows=64, parts=1, **runtime):
    pretrain = Pretrain(batch_rows=rows, micro_batches=parts)
    return dataclasses.replace(
        Experiment(), phases=('0.1',), rows=Rows(32, 32), pretrain=pretrain, runtime=Runtime(**runtime)
    )


@pytest.mark.parametrize(
    ('device', 'devices', 'asked', 'near', 'far'),
    [
        (V5E, 1, {}, 0, 0),
        # A sum of S bytes over n devices sends 2 S (n - 1) / n from each.
        (V5E, 8, {}, 2 * (LOW + TABLES) * 7 / 8, 0),
        (V5E, 64, {'parts': 1}, 2 * (LOW + TABLES) * 63 / 64, 0),
        # Several micro-batches are added up in float32 first, and sent once.
        (V5E, 8, {'parts': 4}, 2 * WHOLE * 7 / 8, 0),
        # On four hosts each card sends its eighth to the other three.
        (H100, 32, {}, 2 * (LOW + TABLES) * 7 / 8, 2 * (LOW + TABLES) / 8 * 3 / 4),
        (H100, 8, {}, 2 * (LOW + TABLES) * 7 / 8, 0),
        # Full shards: matrices twice and their gradients once; of tables a gather and a sum.
        (V5E, 8, {'fsdp': 8}, (3 * LOW + 3 * TABLES) * 7 / 8, 0),
        (V5E, 8, {'fsdp': 8, 'parts': 2}, (4 * LOW + 6 * TABLES) * 7 / 8, 0),
    ],
)
def test_bytes_sent_by_hand(device, devices, asked, near, far):
    sent = sent_in_a_step(wanted(**asked), MODEL, device, devices)
    assert sent == pytest.approx((near, far))


def test_layers_that_are_split_send_their_states_four_times():
    """States here: 8 rows of 32 pieces of 64 numbers in bfloat16, in two layers."""
    split = sent_in_a_step(wanted(rows=8, tensor=4), MODEL, V5E, 4)
    states = 8 * 32 * 64 * 2
    assert split.near == pytest.approx(2 * 4 * 2 * states * 3 / 4)


def test_what_shards_of_a_host_and_copies_on_others_send():
    """Two hosts of eight: the shards of a host gather over its links, and each card sends what it has to one other."""
    sent = sent_in_a_step(wanted(fsdp=8), MODEL, H100, 16)
    assert sent.near == pytest.approx(3 * (LOW + TABLES) * 7 / 8)
    assert sent.far == pytest.approx(2 * (LOW + TABLES) / 8 / 2)


def test_seconds_follow_from_the_rates_of_the_device():
    beside = beside_products(wanted(), MODEL, H100, 16)
    assert beside.sending == pytest.approx(beside.sent.near / 450e9 + beside.sent.far / 50e9)
    assert beside.updating == pytest.approx(7 * WHOLE / 3350e9)
    assert beside.seconds == beside.sending + beside.updating
    assert beside_products(wanted(fsdp=8), MODEL, H100, 16).updating < beside.updating / 6
    with pytest.raises(ConfigError, match='64 rows are not a multiple of the 128 devices'):
        beside_products(wanted(), MODEL, V5E, 128)


def test_devices_whose_network_nobody_states_are_not_guessed():
    asked = (('l4', 8), ('l4', 16), ('h100', 512))
    assert [sends(DEVICES[name], devices) for name, devices in asked] == [True, False, True]
    assert all(sends(device, 8) for device in DEVICES.values())


def test_the_plan_says_what_several_devices_add(capsys):
    asked = ('plan', '--config=bioptimus', '--device=h100,l4', '--config.model.layers=2')
    found = document(capsys, *asked, '--devices=16')
    [row] = found['between']  # of l4 nobody says what joins two hosts
    hours = next(one['hours'] for one in found['time'] if one['device'] == 'h100')
    assert row['device'] == 'h100'
    assert row['rows'] == 16
    # Its steps, one after the other: what it computes, updates and sends.
    steps = sum(phase['steps'] for phase in found['phases'] if phase['phase'] != 'all')
    beside = row['ms updating'] + row['ms sending']
    assert row['hours at most'] == pytest.approx(hours + steps * beside / 3.6e6, rel=1e-6)
    assert 'between' not in document(capsys, *asked, '--devices=1')
