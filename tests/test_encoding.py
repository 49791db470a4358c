"""Encoding for surgery: layout in rows, one window at a time as the reference, devices, stopping and going on."""

from pathlib import Path

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioptimus_jax.errors import Stopped
from bioptimus_jax.model.families.bert import Bert
from bioptimus_jax.model.loaded import Loaded
from bioptimus_jax.surgery import reading, source
from bioptimus_jax.surgery.layout import ROW_LENGTHS, BatchLayout
from bioptimus_jax.surgery.reading import StateReading
from bioptimus_jax.tokenizer.kinds import wordpiece

VOCABULARY = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', *'abcdefgh', *(f'##{c}' for c in 'abcdefgh')]
CLS, SEP = 2, 3


def make_source(layers: int = 2, positions: int = 160) -> Loaded:
    shape = dict(hidden=8, layers=layers, heads=2, intermediate=12, max_positions=positions)
    architecture = Bert(len(VOCABULARY), **shape, initializer_range=0.4)
    parameters = jax.tree.map(np.asarray, architecture.initial_parameters(jax.random.key(3)))
    tokenizer = wordpiece.make(VOCABULARY, lowercase=True)
    return Loaded(Path('source'), architecture, parameters, tokenizer, [])


def random_reading(seed: int, windows: int, longest: int, targets: int = 5) -> StateReading:
    """Windows of any length, pieces of every window for random targets, some of them for several."""
    draw = np.random.default_rng(seed)
    lengths = draw.integers(3, longest + 1, windows)
    made = [np.array([CLS, *draw.integers(5, len(VOCABULARY), n - 2), SEP], np.int32) for n in lengths]
    window = np.repeat(np.arange(windows), draw.integers(1, 6, windows))
    draw.shuffle(window)
    position = draw.integers(1, lengths[window] - 1) if windows else np.zeros(0, np.int64)
    target = draw.integers(0, targets, len(window))
    return StateReading(made, window, position, target, draw.random(len(window)), np.ones(targets, np.int64))


def states_alone(made: Loaded, tokens) -> np.ndarray:
    """One window through the model, by itself; padded, so that one shape serves all."""
    positions_1xL = np.arange(made.architecture.max_positions, dtype=np.int32)[None]
    tokens_1xL = np.zeros_like(positions_1xL)
    tokens_1xL[0, : len(tokens)] = tokens
    segments_1xL = (positions_1xL < len(tokens)).astype(np.int32)
    batch = {'tokens': tokens_1xL, 'segments': segments_1xL, 'positions': positions_1xL}
    return np.asarray(_encode(made.architecture, made.parameters, batch))[0, : len(tokens)]


_encode = jax.jit(Bert.encode, static_argnums=0)


def reference(made: Loaded, read: StateReading) -> np.ndarray:
    sums = np.zeros((len(read.contexts), made.architecture.hidden))
    states = [states_alone(made, window) for window in read.windows]
    for entry in range(len(read.window)):
        state = states[read.window[entry]][read.position[entry]]
        sums[read.target[entry]] += read.weight[entry] * state.astype(np.float64)
    return sums


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**20),
    windows=st.integers(0, 40),
    longest=st.integers(3, 600),
    batch_pieces=st.integers(16, 3000),
    shards=st.sampled_from([1, 2, 3, 8]),
)
def test_every_piece_lies_where_it_is_looked_for(seed, windows, longest, batch_pieces, shards):
    read = random_reading(seed, windows, longest)
    layout = BatchLayout(read, batch_pieces, longest, shards)
    found, entries, shapes = [], [], set()
    for number in range(len(layout)):
        assert layout.windows_before(number) == len(found)
        batch = layout.batch(number)
        rows, length = batch.tokens_BxL.shape
        assert rows % shards == 0
        assert batch.tokens_BxL.size <= batch_pieces or rows == shards
        shapes.add((length, rows, batch.slots_SxK.shape))
        for tokens_L, segments_L, positions_L in zip(
            batch.tokens_BxL, batch.segments_BxL, batch.positions_BxL
        ):
            assert not tokens_L[segments_L == 0].any()
            for segment in np.unique(segments_L[segments_L > 0]):
                assert positions_L[segments_L == segment].tolist() == list(
                    range((segments_L == segment).sum())
                )
                found.append(tokens_L[segments_L == segment].tolist())
        assert batch.windows == len(found) - layout.windows_before(number)
        flat_SxP = batch.tokens_BxL.reshape(shards, -1)
        read_SK = np.take_along_axis(flat_SxP, batch.slots_SxK, 1).ravel()
        at_SK = np.take_along_axis(batch.positions_BxL.reshape(shards, -1), batch.slots_SxK, 1).ravel()
        for entry, slot in zip(batch.entries, batch.slot_of_entry, strict=True):
            assert at_SK[slot] == read.position[entry]
            assert read_SK[slot] == read.windows[read.window[entry]][read.position[entry]]
        entries += batch.entries.tolist()
    assert sorted(found) == sorted(window.tolist() for window in read.windows)
    assert sorted(entries) == list(range(len(read.window)))
    assert len(shapes) <= len(ROW_LENGTHS) + 1
    assert len({length for length, *_ in shapes}) == len(shapes)


def test_short_windows_share_rows():
    read = random_reading(0, 2000, 60)
    layout = BatchLayout(read, 2048, 512, 1)
    places = sum(layout.batch(number).tokens_BxL.size for number in range(len(layout)))
    assert sum(map(len, read.windows)) > 0.95 * places


@pytest.mark.parametrize('batch_pieces', [0, 16, 300, 1024, 100_000])
def test_the_sums_are_those_of_one_window_at_a_time(batch_pieces):
    made, read = make_source(), random_reading(1, 30, 160)
    found = source.sum_states(made, read, batch_pieces)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, reference(made, read), atol=1e-5)


def test_only_the_states_that_are_read_leave_the_devices(monkeypatch):
    shapes, inner = [], source._read

    def watched(*arguments):
        states = inner(*arguments)
        shapes.append((arguments[5].size, states.shape))
        return states

    monkeypatch.setattr(source, '_read', watched)
    read = random_reading(2, 300, 100)
    encoded = []
    source.sum_states(make_source(1), read, 4096, encoded.append)
    assert sum(encoded) == 300
    assert len(shapes) == len(encoded) > 1
    assert all(states[0] < pieces / 3 for pieces, states in shapes)  # 3 of about 50 are read


def test_slots_of_the_last_layer_are_what_the_whole_layer_has_there():
    made = make_source(layers=2)
    draw = np.random.default_rng(0)
    batch = {
        'tokens': draw.integers(0, len(VOCABULARY), (3, 12)).astype(np.int32),
        'segments': np.repeat([[1, 2, 3, 0]], 3, axis=1).repeat(3, axis=0).astype(np.int32),
        'positions': np.tile(np.arange(3, dtype=np.int32), (3, 4)),
    }
    slots = np.array([0, 35, 13, 13, 7], np.int32)
    whole = np.asarray(_encode(made.architecture, made.parameters, batch)).reshape(-1, 8)
    alone = _encode(made.architecture, made.parameters, batch, slots=slots)
    np.testing.assert_allclose(alone, whole[slots], atol=1e-6)
    with pytest.raises(ValueError, match='slots'):
        made.architecture.encode(made.parameters, batch, slots=slots, all_layers=True)


def test_one_device_and_eight_give_the_same_sums(monkeypatch):
    assert jax.local_device_count() == 8
    made, read = make_source(), random_reading(3, 60, 100)
    eight = source.sum_states(made, read, 2048)
    np.testing.assert_array_equal(eight, source.sum_states(made, read, 2048))
    monkeypatch.setattr(jax, 'local_devices', lambda: jax.devices()[:1])
    np.testing.assert_allclose(source.sum_states(made, read, 2048), eight, atol=1e-5)


def test_bfloat16_is_near_float32():
    made, read = make_source(), random_reading(4, 40, 100)
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ('rows',))
    layout = BatchLayout(read, 1024, 160, mesh.size)
    states = {
        dtype: [s.astype(float) for _, s in source._encoded(made, dtype, mesh, layout, 0)]
        for dtype in ('float32', 'bfloat16')
    }
    for exact, near in zip(*states.values(), strict=True):
        assert 0 < abs(exact - near).max() < 0.1


def test_a_token_at_the_edge_of_a_truncated_context():
    made = make_source(positions=12)  # ten pieces a window
    letters = 'abcdefghabcdefghabcdefgh'
    sentence = ' '.join(letters)
    spans = {0: {0: [(0, 1)], 1: [(len(sentence) - 1, len(sentence))], 2: [(24, 27)]}}
    read = reading.read_contexts(made.subwords, made.capacity, [sentence], spans, 3)
    ids = [VOCABULARY.index(letter) for letter in letters]
    first, last, middle = (states_alone(made, [CLS, *p, SEP]) for p in (ids[:10], ids[-10:], ids[8:18]))
    expected = [first[1], last[10], middle[[5, 6]].mean(0)]
    np.testing.assert_allclose(source.sum_states(made, read, 64), expected, atol=1e-5)


def test_a_token_that_stands_twice_is_the_mean_of_both():
    made = make_source()
    read = reading.read_contexts(made.subwords, made.capacity, ['ab c ab'], {0: {0: [(0, 2), (5, 7)]}}, 1)
    tokens = [VOCABULARY.index(piece) for piece in ('[CLS]', 'a', '##b', 'c', 'a', '##b', '[SEP]')]
    expected = states_alone(made, tokens)[[1, 2, 4, 5]].mean(0)
    np.testing.assert_allclose(source.sum_states(made, read, 64), [expected], atol=1e-5)


def test_nothing_to_read(tmp_path):
    made = make_source()
    told = []
    for kept in (None, tmp_path / 'kept.npz'):
        read = random_reading(0, 0, 10)
        sums = source.sum_states(made, read, 64, told.append, kept=kept, start_at=told.append)
        np.testing.assert_array_equal(sums, np.zeros((5, 8)))
    assert sum(told) == 0


# --- stopping and going on ---


class StopsAfter:
    """`advance` and `start_at`: counts windows, and stops after a number of batches."""

    def __init__(self, batches: int):
        self.batches, self.started, self.encoded = batches, -1, 0

    def advance(self, windows: int) -> None:
        self.encoded += windows
        self.batches -= 1
        if not self.batches:
            raise Stopped

    def start_at(self, windows: int) -> None:
        self.started = windows


def encode_keeping(
    made, read, kept, batches: int = -1, batch_pieces: int = 1024
) -> tuple[StopsAfter, object]:
    watch = StopsAfter(batches)
    try:
        sums = source.sum_states(made, read, batch_pieces, watch.advance, kept=kept, start_at=watch.start_at)
    except Stopped:
        sums = None
    return watch, sums


@pytest.mark.parametrize('batches', [1, 3])
def test_stopped_and_gone_on_with_gives_the_same_bits(tmp_path, batches):
    made, read = make_source(), random_reading(5, 120, 100)
    whole = source.sum_states(made, read, 1024)
    first, nothing = encode_keeping(made, read, tmp_path / 'kept.npz', batches)
    assert nothing is None
    assert first.started == 0
    assert 0 < first.encoded < 120
    second, sums = encode_keeping(made, read, tmp_path / 'kept.npz')
    assert second.started == first.encoded
    assert first.encoded + second.encoded == 120
    np.testing.assert_array_equal(sums, whole)
    third, sums = encode_keeping(made, read, tmp_path / 'kept.npz')  # done: nothing is encoded again
    assert (third.started, third.encoded) == (120, 0)
    np.testing.assert_array_equal(sums, whole)


def test_sums_are_kept_from_time_to_time(tmp_path, monkeypatch):
    made, read = make_source(), random_reading(5, 120, 100)
    monkeypatch.setattr(source, 'SECONDS_BETWEEN_SAVES', 0)
    watch = StopsAfter(-1)

    def killed(windows: int) -> None:
        watch.advance(windows)
        if watch.batches == -4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        source.sum_states(made, read, 1024, killed, kept=tmp_path / 'kept.npz')
    second, sums = encode_keeping(made, read, tmp_path / 'kept.npz')
    assert 0 < second.started < watch.encoded  # the batch that was cut off is done again
    np.testing.assert_array_equal(sums, source.sum_states(made, read, 1024))


@pytest.mark.parametrize('damage', ['cut', 'flipped', 'empty', 'text'])
def test_a_damaged_record_starts_anew(tmp_path, damage):
    made, read, kept = make_source(), random_reading(5, 120, 100), tmp_path / 'kept.npz'
    encode_keeping(made, read, kept, 2)
    stored = bytearray(kept.read_bytes())
    if damage == 'flipped':
        stored[stored.index(b'sums.npy') + 200] ^= 1
    changed = {'cut': stored[: len(stored) // 2], 'flipped': stored, 'empty': b'', 'text': b'no zip'}
    kept.write_bytes(changed[damage])
    watch, sums = encode_keeping(made, read, kept)
    assert (watch.started, watch.encoded) == (0, 120)
    np.testing.assert_array_equal(sums, source.sum_states(made, read, 1024))


@pytest.mark.parametrize('change', ['weights', 'windows', 'weight', 'batch_pieces'])
def test_sums_of_something_else_are_not_taken(tmp_path, change):
    made, read, kept = make_source(), random_reading(5, 120, 100), tmp_path / 'kept.npz'
    encode_keeping(made, read, kept, 2)
    batch_pieces = 1024
    if change == 'weights':
        made = make_source()
        made.parameters['encoder'] = jax.tree.map(lambda leaf: leaf * 1.01, made.parameters['encoder'])
    elif change == 'windows':
        read.windows[7][1] = 6 if read.windows[7][1] == 5 else 5
    elif change == 'weight':
        read.weight[0] += 1
    else:
        batch_pieces = 512
    watch, sums = encode_keeping(made, read, kept, batch_pieces=batch_pieces)
    assert (watch.started, watch.encoded) == (0, 120)
    np.testing.assert_array_equal(sums, source.sum_states(made, read, batch_pieces))
