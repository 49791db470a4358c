"""Longer documents: positions that the source lacks."""

import dataclasses
import itertools

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioptimus_jax.errors import ConfigError
from bioptimus_jax.experiment.config import defaults
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.model.config import FAMILIES
from bioptimus_jax.model.rotary import KEYS, Rope
from bioptimus_jax.model.trees import flatten
from bioptimus_jax.rows.config import Rows
from bioptimus_jax.surgery.config import ROPES, Longer
from bioptimus_jax.surgery.graft import check_rows
from bioptimus_jax.surgery.longer import lengthened, stretched
from bioptimus_jax.surgery.stretches import STRETCHES

TABLE_3x2 = np.array([[0, 0], [1, 10], [2, 40]], np.float32)


def test_rows_by_hand() -> None:
    copied = STRETCHES['copied'].rows(TABLE_3x2, 5)
    assert copied.tolist() == [[0, 0], [1, 10], [2, 40], [0, 0], [1, 10]]
    between = STRETCHES['interpolated'].rows(TABLE_3x2, 5)
    assert between.tolist() == [[0, 0], [0.5, 5], [1, 10], [1.5, 25], [2, 40]]
    assert STRETCHES['interpolated'].rows(TABLE_3x2[:1], 3).tolist() == [[0, 0]] * 3


@given(st.integers(1, 9), st.integers(0, 12), st.sampled_from([*STRETCHES]))
def test_what_there_is_stays(rows: int, more: int, name: str) -> None:
    table_PxD = np.random.default_rng(rows).normal(size=(rows, 3)).astype(np.float32)
    made = STRETCHES[name].rows(table_PxD, rows + more)
    assert (made.dtype, made.shape) == (np.float32, (rows + more, 3))
    assert made.min() >= table_PxD.min()
    assert made.max() <= table_PxD.max()
    if not more or name == 'copied':
        np.testing.assert_array_equal(made[:rows], table_PxD)


@pytest.mark.parametrize('name', FAMILIES)
def test_every_family_gets_positions_and_keeps_all_else(name: str) -> None:
    source = FAMILIES.load(name)(120, 16, 2, 2, 24, 36, **({'buckets': 6} if name == 'deberta-v2' else {}))
    made = lengthened(Longer(positions=70), source)
    assert made.positions == 70
    assert dataclasses.replace(made, max_positions=source.max_positions) == source
    before = source.initial_parameters(jax.random.key(0))
    after, longer = stretched(Longer(positions=70), made, before)
    assert longer == [path for path in flatten(before) if 'position_embeddings' in path]
    assert {path: np.shape(x) for path, x in flatten(after).items()} == dict(made.shapes())
    for path, value in flatten(before).items():
        np.testing.assert_array_equal(flatten(after)[path][: len(value)], value)
    check_rows(Rows(max_document_pieces=70), made)
    with pytest.raises(
        ConfigError,
        match=r'max_document_pieces: 70 pieces, .* set it to \d+ or less, or config\.surgery\.longer\.pos',
    ):
        check_rows(Rows(max_document_pieces=70), source)


def test_rotary_positions_turn_as_asked() -> None:
    assert tuple(KEYS) == ROPES, 'the schema lists the types without loading jax'
    for name in ('eurobert', 'modernbert', 'ultrabert'):
        source = FAMILIES.load(name)(120, 16, 2, 2, 24, 36)
        wider = lengthened(Longer(positions=72, rope_theta=1e6), source)
        assert wider.rope == source.rope._replace(base=1e6)
        assert getattr(wider, 'local_rope', None) == getattr(source, 'local_rope', None), 'near layers stay'
        yarn = lengthened(Longer(positions=72, rope_type='yarn', rope_factor=2.0), source)
        assert yarn.rope == Rope(
            source.rope.base, 'yarn', (('factor', 2.0), ('original_max_position_embeddings', 36))
        )
        # What has grown grows on: the factors are multiplied, and the context before all of it stays.
        again = lengthened(Longer(positions=216, rope_type='yarn', rope_factor=3.0), yarn)
        assert again.rope == Rope(
            source.rope.base, 'yarn', (('factor', 6.0), ('original_max_position_embeddings', 36))
        )
        with pytest.raises(
            ConfigError, match='linear, but the positions of the source have grown by yarn; set yarn'
        ):
            lengthened(Longer(rope_type='linear', rope_factor=2.0), yarn)
        linear = lengthened(Longer(rope_type='linear', rope_factor=2.0), source)
        twice = lengthened(Longer(rope_type='linear', rope_factor=2.0), linear)
        assert twice.rope == Rope(source.rope.base, 'linear', (('factor', 4.0),))
        assert (linear.positions, linear.rope) == (36, Rope(source.rope.base, 'linear', (('factor', 2.0),)))
        plain = lengthened(Longer(rope_type='default'), dataclasses.replace(source, rope=linear.rope))
        assert plain.rope == Rope(source.rope.base)


WRONG = {
    'fewer': (
        *('roberta', dict(positions=20)),
        r'longer\.positions: 20 are fewer than the 34 of the source; leave it at 0, and set',
    ),
    'no rope': (
        *('roberta', dict(rope_theta=1e6)),
        r'longer: a RoBERTa has no rotary positions, so rope_theta and rope_type have',
    ),
    'distances': (
        *('deberta-v2', dict(positions=70)),
        r'rel_embeddings/embedding of this DeBERTa.* a row for each distance up to',
    ),
}


UNFIT = {
    'no factor': (
        {'rope_type': 'yarn'},
        r"rope_factor: 0\.0 does not go with rope_type='yarn'; linear and yarn need",
    ),
    'a factor alone': ({'rope_factor': 2.0}, r"rope_factor: 2\.0 does not go with rope_type=''"),
    'no base': ({'rope_theta': 0.5}, r'rope_theta: 0\.5; a base above 1 is expected, or 0'),
    'no type': ({'rope_type': 'longrope'}, r"rope_type: 'longrope' is not one of"),
}


@pytest.mark.parametrize('flaw', [*WRONG, *UNFIT])
def test_what_a_source_cannot_have_and_what_does_not_go_together_is_refused(flaw: str) -> None:
    *family, given, message = WRONG.get(flaw) or UNFIT[flaw]
    config = defaults()
    config.surgery.longer.update(given)
    source = [FAMILIES.load(name)(120, 16, 2, 2, 24, 36) for name in family]
    with pytest.raises(ConfigError, match=message):
        lengthened(Longer(**given), *source) if source else Experiment.from_config(config)


def test_shares_of_two_rows_add_up_to_one() -> None:
    """A table of the numbers of its places, so that each row says where it was taken."""
    table_PxD = np.arange(9, dtype=np.float32)[:, None]
    made = STRETCHES['interpolated'].rows(table_PxD, 17)[:, 0]
    assert made.tolist() == [n / 2 for n in range(17)]
    assert all(a < b for a, b in itertools.pairwise(STRETCHES['interpolated'].rows(table_PxD, 23)[:, 0]))
