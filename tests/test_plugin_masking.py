"""A masking strategy as the how-to adds it: a file, and training, evaluation and difficulty all mask it."""

import dataclasses
import importlib.util
import json

import jax
import numpy as np
import pytest
import transformers
from toy_plugins import plugged, shown
from toy_pretraining import of_letters

from bioptimus_jax.api.masking import IGNORED, Collator
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.pretrain import difficulty, evaluate, mixture, step, units
from bioptimus_jax.pretrain.config import Phase, Pretrain
from bioptimus_jax.pretrain.masking import Masker, MaskingParams, row_keys, seed_key
from bioptimus_jax.pretrain.unit_weights import WordWeights
from bioptimus_jax.rows.stored import Rows
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.folder import Run
from bioptimus_jax.run.shipped import plug_ins, variations
from bioptimus_jax.start.shown import HIDDEN, KEPT, RANDOM, first_rows
from bioptimus_jax.tokenizer.kinds.wordpiece import SPECIAL_TOKENS, make
from bioptimus_jax.tokenizer.subwords import load

PIECES, LETTERS, RATE = 128, 'abcdefghijklmnopqrst', 0.2
PHASES, PHASE = ('0.1', '0.2'), {'rate': RATE, 'duration': 2.0}
BATCHES = {'pretrain.batch_rows': 40, 'evaluation.rows': 60, 'runtime.log_every_steps': 1}
# Mean runs at 20 % of rows of words of two pieces: 1 / 0.8, and less a little where a row ends; 4 / 0.8 likewise.
SINGLE, SPANS = 1.24, 4.95


@pytest.fixture(scope='module')
def spans(tmp_path_factory):
    """The record that the how-to's file puts into the table."""
    file = tmp_path_factory.mktemp('mine') / 'spans.py'
    file.write_text(shown('add-masking.md', 'mine/spans.py'))
    with plugged(file):
        assert list(units.MASKINGS) == [*units.MASKINGS.own, 'spans']
        return units.MASKINGS['spans']


def experiment(folder, **changes):
    phases = {f'phase.{name}.{key}': value for name in PHASES for key, value in PHASE.items()}
    return of_letters(folder, PIECES, PHASES, **BATCHES, **phases, **changes)


@pytest.fixture(scope='module')
def prepared(tmp_path_factory):
    """Rows of one document of 63 words of two pieces."""
    folder = tmp_path_factory.mktemp('units')
    (folder / 'vocab.txt').write_text('\n'.join([*SPECIAL_TOKENS, *LETTERS, *('##' + x for x in LETTERS)]))
    rng = np.random.default_rng(0)
    with open(folder / 'corpus.jsonl', 'w') as file:
        for number in range(300):
            text = ' '.join(''.join(rng.choice(list(LETTERS), 2)) for _ in range(PIECES // 2 - 1))
            file.write(json.dumps({'id': str(number), 'title': '', 'abstract': text}) + '\n')
    run = Run(folder / 'run', experiment(folder), quiet=True)
    for stage in ('corpus', 'vocab', 'surgery', 'rows'):
        execute(run, STAGES[stage])
    return folder


def taken_at(slots_BxM, weights_BxM):
    """True where a piece was masked, [B, L]."""
    taken = np.zeros((len(slots_BxM), PIECES), bool)
    rows, slots = np.nonzero(weights_BxM)
    taken[rows, slots_BxM[rows, slots]] = True
    return taken


def mean_run(taken):
    return taken.sum() / (taken & ~np.pad(taken, ((0, 0), (1, 0)))[:, :-1]).sum()


def test_no_span_of_the_howto_masks_a_word_in_part(spans, monkeypatch):
    """Rows of words of one to twelve pieces, and of more than a unit of ten words can hold side by side."""
    monkeypatch.setitem(units.MASKINGS, 'spans', spans)
    rng, rows, longest_word = np.random.default_rng(5), 64, 12
    words = [rng.integers(1, longest_word + 1 if row % 2 else 3, PIECES) for row in range(rows)]
    starts = np.zeros((rows, PIECES), bool)
    for row, lengths in enumerate(words):
        ends = np.cumsum(lengths)
        starts[row, [0, *ends[ends < PIECES]]] = True
    phase = Phase('spans', 0.5, (1.0, 0.0, 0.0))
    settings = Pretrain(max_word_pieces=longest_word)
    masker = Masker.of(make([*SPECIAL_TOKENS, 'a'], True), settings, [phase], PIECES)
    tokens, keys = np.full((rows, PIECES), len(SPECIAL_TOKENS), np.int32), row_keys(seed_key(1), 0, rows)
    setting = MaskingParams.of(phase, longest_word)
    masked = jax.jit(masker.mask)(tokens, starts, tokens > 0, setting, keys)
    taken = taken_at(np.asarray(masked.slots_M), np.asarray(masked.weights_M))
    assert taken.mean() == pytest.approx(0.5, abs=0.03)
    word_of = starts.cumsum(axis=1)
    whole = [
        {*taken[row][word_of[row] == word]}
        for row in range(rows)
        for word in range(1, 1 + word_of[row].max())
    ]
    assert len(whole) > 2000
    assert not [one for one in whole if len(one) > 1], 'a word is masked in part'
    begins = np.zeros_like(taken)
    at, slots = np.nonzero(np.asarray(masked.begins_M))
    begins[at, np.asarray(masked.slots_M)[at, slots]] = True
    unit_of = begins.cumsum(axis=1) * taken
    of_units = [(starts & taken)[row][unit_of[row] == n].sum() for row in range(rows) for n in range(1, 20)]
    assert 7 <= max(of_units) <= 10, 'at most ten words'


@pytest.mark.parametrize('lengths', [{}, {'words': 2, 'pieces': 3}])
def test_a_strategy_says_how_long_its_units_are(lengths):
    with pytest.raises(ValueError, match='either `words` or `pieces`: how many a unit has at most'):
        units.Strategy(lambda words_L, draws_L: words_L, **lengths)


def never(words_L, draws_L):
    raise AssertionError('no phase names this strategy')


def test_the_strategy_of_the_howto_is_what_the_loop_trains_and_scores(prepared, spans, monkeypatch):
    with pytest.raises(ConfigError, match=r"phase\.0\.2\.masking: plug-in 'spans' is not installed"):
        experiment(prepared, **{'phase.0.2.masking': 'spans'})
    counted = []
    monkeypatch.setitem(units.MASKINGS, 'never', units.Strategy(never, words=1))
    monkeypatch.setitem(
        units.MASKINGS,
        'spans',
        dataclasses.replace(
            spans, unit_starts=lambda *arrays: (counted.append(''), spans.unit_starts(*arrays))[1]
        ),
    )
    chosen = {'phase.0.2.masking': 'spans', 'curriculum.order': 'hard_to_easy'}
    run = Run(prepared / 'run', experiment(prepared, **{**chosen, 'curriculum.samples': '2'}), quiet=True)
    masked_by_step, frozen, traced = {}, [], []
    example_at, under = step.example_at, evaluate.Maskable.under

    def watched(objective, batch, table, number):
        """What the compiled step masks is read while it runs."""
        traced.append(objective)
        found = example_at(objective, batch, table, number)
        jax.debug.callback(
            lambda at, *arrays: masked_by_step.update({int(at): taken_at(*map(np.asarray, arrays))}),
            number,
            found.rows.masked.slots_M,
            found.rows.masked.weights_M,
        )
        return found

    def kept(*arguments):
        frozen.append(under(*arguments))
        return frozen[-1]

    monkeypatch.setattr(step, 'example_at', watched)
    monkeypatch.setattr(evaluate.Maskable, 'under', kept)
    execute(run, STAGES['pretrain'])
    jax.effects_barrier()

    phases = {record['name']: record for record in json.loads(curriculum_of(run))}
    for name, expected, pieces in (('0.1', SINGLE, 1), ('0.2', SPANS, 4)):
        steps = range(phases[name]['start'], phases[name]['stop'])
        taken = np.concatenate([masked_by_step[number] for number in steps])
        assert taken.mean() == pytest.approx(RATE * 126 / 128, rel=0.05), name
        assert mean_run(taken) == pytest.approx(expected, rel=0.1), name
        torn = (taken[:, 1:-1:2] != taken[:, 2:-1:2]).any()
        assert torn == (pieces == 1), 'spans are of whole words'
        records = [r for r in run.metrics.of('pretrain') if r['kind'] == 'train' and r['phase'] == name]
        assert np.mean([r['unit_pieces'] for r in records]) == pytest.approx(pieces, rel=0.1), name
        assert len(frozen) == 2  # of difficulty, and of the frozen evaluation
        for masks in frozen:
            batch = masks.masked[name]
            held = taken_at(np.concatenate(batch.slots_M), np.concatenate(batch.weights_M))
            assert mean_run(held) == pytest.approx(expected, rel=0.15), name
    assert len(traced) == 1, 'one compiled step serves both'
    assert len(counted) == 3, 'traced for the step, for difficulty, and for the frozen masks'


PARTS = """
SHARES = {'of': 0.5}
def begins(words_L, draws_L):
    return words_L & joined(draws_L)
def joined(draws_L):
    '''Those that begin.'''
    return draws_L >= SHARES['of']
"""


def test_the_code_of_a_strategy_that_is_not_shipped_is_compared(prepared, spans, monkeypatch, tmp_path):
    """The file of its function counts, and its values; not comments, docstrings and layout."""
    assert not plug_ins(variations(experiment(prepared)))

    def digest(record):
        monkeypatch.setitem(units.MASKINGS, 'spans', record)
        given = experiment(prepared, **{'phase.0.2.masking': 'spans'})
        [(name, value)] = plug_ins(variations(given, ('phase',))).items()
        assert name == 'plug-in:masking spans'
        return value

    def of(source, words=1):
        file = tmp_path / f'spans{len(list(tmp_path.iterdir()))}.py'
        file.write_text(source)
        loaded = importlib.util.spec_from_file_location(file.stem, file)
        module = importlib.util.module_from_spec(loaded)
        loaded.loader.exec_module(module)
        return digest(units.Strategy(module.begins, words=words))

    known = of(PARTS)
    said = PARTS.replace('Those that', 'Where they'), PARTS.replace('\ndef', '\n\n\n# a comment\ndef')
    assert {of(same) for same in said} == {known}
    others = [PARTS.replace(*change) for change in (('0.5', '0.3'), ('>=', '<'), ('words_L &', 'words_L |'))]
    found = {known, digest(spans), of(PARTS, words=4), *map(of, others)}
    weighed = {'the': 0.0}, {'the': 0.5}
    lists = [units.Strategy(every_word, words=1, weights=WordWeights(weights)) for weights in weighed]
    assert len({*found, *map(digest, lists)}) == 8
    here, there = tmp_path / 'here.tsv', tmp_path / 'there.tsv'
    of_files = [units.Strategy(every_word, words=1, weights=WordWeights(file=file)) for file in (here, there)]
    assert digest(of_files[0]) == digest(of_files[1]), 'where a file lies decides nothing'
    assert digest(units.Strategy(every_word, words=1, weights=Half())) not in found


def test_a_file_of_weights_is_compared_by_its_content(prepared, monkeypatch, tmp_path):
    file = tmp_path / 'stop.txt'
    file.write_text('ab\n')
    stops = units.Strategy(every_word, words=1, weights=WordWeights(file=file))
    monkeypatch.setitem(units.MASKINGS, 'stops', stops)
    given = experiment(prepared, **{'phase.0.2.masking': 'stops'})
    assert file in difficulty.external_inputs(given).values()
    assert file not in difficulty.external_inputs(experiment(prepared)).values()
    file.write_text('ab\tmany\n')
    with pytest.raises(InputError, match="line 1 has the weight 'many'"):
        difficulty.external_inputs(given)


def test_stop_words_are_neither_trained_nor_scored_nor_shown_nor_collated(prepared, monkeypatch, tmp_path):
    """All pieces of words that begin with one of ten letters, under the phase that names them, and no other."""
    file = tmp_path / 'stop.txt'
    file.write_text('\n'.join(first + second for first in LETTERS[:10] for second in LETTERS))
    stops = units.Strategy(every_word, words=1, weights=WordWeights(file=file))
    monkeypatch.setitem(units.MASKINGS, 'stops', stops)
    run = Run(prepared / 'run', experiment(prepared, **{'phase.0.2.masking': 'stops'}), quiet=True)
    stop, words = set(LETTERS[:10]), load(run.folder('vocab'))
    rows = mixture.open_rows(run.config, run.folder('rows'), run.manifest('vocab'))
    shown = list(first_rows(run.config, rows, run.folder('vocab'), 8, PIECES))
    marks = HIDDEN, RANDOM, KEPT
    for phase, common in (('0.1', True), ('0.2', False)):
        of_rows = [
            {
                p.text[:1]
                for p, read in zip(row.plain, row.phases[phase], strict=True)
                if read.marked in marks and p.begins
            }
            for row in shown
        ]
        assert bool(stop & set().union(*of_rows)) == common
        assert set().union(*of_rows) - stop
    masks = evaluate.freeze_masks(Rows(run.folder('rows'), 'heldout'), run.config, ['0.2'], words, 1, 64)
    for name, common in (('frozen_words', True), ('0.2', False)):
        masked = masks.masked[name]
        targets = masked.targets_M[masked.weights_M > 0]
        assert bool(stop & {words.tokens[i] for i in targets}) == common
    tokenizer = transformers.AutoTokenizer.from_pretrained(run.folder('vocab'))
    texts = [' '.join(a + b for a in LETTERS for b in LETTERS[n::7]) for n in range(7)]
    for phase, common in (('0.2', True), ('0.3', False)):
        changes = {} if common else {'masking': 'stops'}
        batch = Collator(tokenizer, phase, **changes).masked(texts, 0)
        labels = tokenizer.convert_ids_to_tokens(batch['labels'][batch['labels'] != IGNORED])
        assert bool(stop & {*labels}) == common
        assert (batch['labels'] != IGNORED).sum() / batch['attention_mask'].sum() == pytest.approx(
            0.2, abs=0.06
        )


def every_word(words_L, draws_L):
    return words_L


class Half:
    """Weights of a plug-in's own kind."""

    files = ()

    def check(self):
        pass

    def of(self, subwords):
        return lambda tokens_L, words_L, xp: 0.5 + (tokens_L % 2)


def curriculum_of(run):
    return (run.folder('pretrain') / 'curriculum.json').read_text()
