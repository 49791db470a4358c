"""Several corpora in one run: exact shares, every corpus in its own order, resumed to the bit, refused in one line."""

import dataclasses
import json
import shutil
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from toy_pretraining import assert_same_bits, killed_copy, of_letters, pretrained, watched_batches

from bioptimus_jax.corpus.documents import open_documents
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.pretrain import curriculum, mixture, overlap
from bioptimus_jax.pretrain.curriculum import make_schedule
from bioptimus_jax.pretrain.order import Order, Pattern, unmixed
from bioptimus_jax.pretrain.plan import Assumptions, check, make_plan
from bioptimus_jax.pretrain.shares import PATTERN, quotas
from bioptimus_jax.rows.blocks import TOKENIZER_WORD_STARTS
from bioptimus_jax.rows.stored import Rows
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.folder import Run
from bioptimus_jax.tokenizer.kinds.wordpiece import SPECIAL_TOKENS

PIECES, SIZES = 64, (37, 11, 23)
LETTERS = {'own': 'abcdefghij', 'notes': 'klmnopqrst'}
MIXED = {'0.1': ('own=3', 'notes=1'), '0.4': ('notes=1',)}


@pytest.mark.parametrize(
    ('weights', 'expected'),
    [
        ((), {'own': 1000}),
        (('own=0.7', 'notes=0.3'), {'own': 700, 'notes': 300}),
        (('a=1', 'b=1', 'own=1'), {'a': 334, 'b': 333, 'own': 333}),
        (('notes=5e6',), {'notes': 1000}),
    ],
)
def test_shares_are_rows_of_a_thousand(weights, expected):
    assert quotas(weights) == expected


def test_rows_follow_the_shares_and_each_corpus_its_own_order():
    """Against a count row by row; every thousand rows have the shares exactly, and every batch nearly."""
    stretches = {0: (700, 300, 0), 250: (0, 0, 1000), 260: (1, 500, 499)}
    ends = [*list(stretches)[1:], None]
    patterns = [Pattern.of(at, rows_C, end, 8) for (at, rows_C), end in zip(stretches.items(), ends)]
    order, batch_rows = Order(SIZES, 5, patterns), 8
    alone = [Order([size], 5, unmixed(1)) for size in SIZES]
    firsts, given = np.cumsum([0, *SIZES]), Counter()
    read = {start: [] for start in stretches}
    for step in range(385):
        start = max(s for s in stretches if s <= step)
        for row in order(step):
            corpus = np.searchsorted(firsts, row, side='right') - 1
            assert row - firsts[corpus] == alone[corpus](given[corpus])[0]
            given[corpus] += 1
            read[start].append(corpus)
    for start, corpora in read.items():
        for first in range(0, len(corpora) - PATTERN + 1, PATTERN):
            counts = np.bincount(corpora[first : first + PATTERN], minlength=3)
            np.testing.assert_array_equal(counts, stretches[start])
    in_batches = np.reshape(read[0], (-1, batch_rows)) == 0
    assert np.abs(in_batches.sum(axis=1) - 0.7 * batch_rows).max() < 2
    assert Order(SIZES, 5, patterns)(331).tolist() == order(331).tolist()
    # A corpus that gives nothing yet changes only the numbers of those behind it.
    later = [
        Pattern.of(at, (own, 0, *others), end, 8)
        for (at, (own, *others)), end in zip(stretches.items(), ends)
    ]
    wider = Order((SIZES[0], 5, *SIZES[1:]), 5, later)
    for step in (0, 249, 250, 384):
        rows = wider(step)
        assert (rows - 5 * (rows >= SIZES[0])).tolist() == order(step).tolist()


def experiment(folder, **changes):
    corpora = {f'phase.{name}.corpora': ','.join(mixed) for name, mixed in MIXED.items()}
    own = {'corpus__inputs': folder / 'own.jsonl', 'corpora.notes.run': folder / 'notes', **corpora}
    return of_letters(folder, PIECES, MIXED, **{**own, **changes})


@pytest.fixture(scope='module')
def prepared(tmp_path_factory):
    """Two runs with one vocabulary, whose texts share no letter."""
    folder = tmp_path_factory.mktemp('corpora')
    (folder / 'vocab.txt').write_text('\n'.join([*SPECIAL_TOKENS, *''.join(LETTERS.values())]))
    rng = np.random.default_rng(0)
    for name, letters in LETTERS.items():
        with open(folder / f'{name}.jsonl', 'w') as file:
            for number in range(300):
                text = ' '.join(rng.choice(list(letters), rng.integers(5, 40)))
                file.write(json.dumps({'id': f'{name}{number}', 'title': '', 'abstract': text}) + '\n')
        run = Run(folder / name, experiment(folder, corpus__inputs=folder / f'{name}.jsonl'), quiet=True)
        for stage in ('corpus', 'vocab', 'rows', *(('surgery',) if name == 'own' else ())):
            execute(run, STAGES[stage])
    return folder


def opened(prepared, workdir, **changes):
    if not workdir.exists():
        shutil.copytree(prepared / 'own', workdir)
    return Run(workdir, experiment(prepared, **changes), quiet=True)


EARLY = {'curriculum.order': 'self_paced', 'curriculum.patience': 1, 'curriculum.min_improvement': 1.0}
"""A phase ends at its second evaluation."""


@pytest.mark.parametrize(
    ('changes', 'end'), [({}, 6), ({**EARLY, 'evaluation.per_phase': 3}, 4)], ids=['given', 'self-paced']
)
def test_phases_read_the_corpora_that_they_name_and_a_killed_run_goes_on(changes, end, prepared, tmp_path):
    """Killed in the second phase, which may begin earlier than was planned."""
    run = opened(prepared, tmp_path / 'whole', **changes)
    with watched_batches() as seen, killed_copy(run, tmp_path / 'killed', lambda step: step > 8):
        pretrained(run)
    placed = curriculum.read_phases(run.workdir / 'pretrain')
    assert [phase.stop for phase in placed] == [end, 12]
    shapes = mixture.open_rows(run.config, run.folder('rows'), run.manifest('vocab'))
    [*counts] = mixture.counts_of(run.config, shapes).values()
    assert [phase.counts for phase in placed] == [{'train': of_phase} for of_phase in counts]
    first_of_notes = len(SPECIAL_TOKENS) + len(LETTERS['own'])
    of_notes = [(seen[step]['tokens'].max(axis=1) >= first_of_notes).sum() for step in range(12)]
    assert of_notes == [2] * end + [8] * (12 - end)
    [found] = overlap.read(run.workdir / 'pretrain')
    assert (found.corpus, found.found) == ('notes', 0)
    notes = Run(prepared / 'notes', run.config, quiet=True).manifest('rows').content
    assert run.manifest('pretrain').inputs['corpora:notes'] == notes
    assert_same_bits(run, pretrained(opened(prepared, tmp_path / 'killed', **changes)), '0.4')


def test_a_finished_run_goes_on_with_rows_of_another_corpus(prepared, tmp_path):
    alone = {'phase.0.1.corpora': ''}
    both = opened(prepared, tmp_path / 'run', **alone)
    first = pretrained(Run(both.workdir, dataclasses.replace(both.config, phases=('0.1',)), quiet=True))
    assert 'corpora:notes' not in first.manifest('pretrain').inputs
    shutil.copytree(first.workdir, tmp_path / 'before')
    run = pretrained(both)
    assert 'corpora:notes' in run.manifest('pretrain').inputs
    assert run.metrics.of('pretrain')[-1]['step'] == 12
    assert_same_bits(run, Run(tmp_path / 'before', first.config, quiet=True), '0.1')
    # Then it goes on with a third corpus. Its name sorts before the second one's, which must not matter.
    third = {
        'phase.0.5.masking': 'words',
        'phase.0.5.corpora': 'more=1',
        'corpora.more.run': prepared / 'own',
    }
    third |= {'phase.0.5.duration': 6.0, 'phase.0.5.duration_unit': 'steps'}
    more = opened(prepared, tmp_path / 'run', **alone, **third).config
    more = dataclasses.replace(more, phases=('0.1', '0.4', '0.5'))
    shutil.copytree(run.workdir, tmp_path / 'longer')
    longer = pretrained(Run(tmp_path / 'longer', more, quiet=True))
    assert {'corpora:more', 'corpora:notes'} < longer.manifest('pretrain').inputs.keys()
    assert longer.metrics.of('pretrain')[-1]['step'] == 18
    assert_same_bits(longer, run, '0.4')
    # Other rows under the name of those that were trained on are refused.
    with pytest.raises(ConfigError, match=r'inputs.corpora:notes: '):
        pretrained(opened(prepared, tmp_path / 'run', **alone, **{'corpora.notes.run': prepared / 'own'}))


def test_a_duration_in_words_counts_those_of_the_mixture(prepared, tmp_path):
    """And the rows of the other corpus may be some that its run has from a base run."""
    of_notes = {'corpus__inputs': prepared / 'notes.jsonl', 'runtime__base_run': prepared / 'notes'}
    taken = Run(tmp_path / 'taken', experiment(prepared, **of_notes), quiet=True)
    for stage in ('corpus', 'vocab', 'rows'):
        execute(taken, STAGES[stage])
    assert not (taken.workdir / 'rows' / 'train').exists()
    changes = {
        'phase.0.1.duration_unit': 'words',
        'phase.0.1.duration': 5000,
        'corpora.notes.run': taken.workdir,
    }
    run = opened(prepared, tmp_path / 'run', **changes)
    rows = mixture.open_rows(run.config, run.folder('rows'), run.manifest('vocab'))
    own, notes = (Rows(prepared / name / 'rows', 'train').counts for name in LETTERS)
    a_row = 0.75 * own.words / own.rows + 0.25 * notes.words / notes.rows
    schedule = make_schedule(run.config, mixture.counts_of(run.config, rows))
    assert schedule[0].stop == round(5000 / a_row / 8)
    # An epoch of the other corpus is its own, also in a plan, which goes by the rows that are on record.
    changes |= {'phase.0.4.duration_unit': 'epochs', 'phase.0.4.duration': 3}
    e = experiment(prepared, **changes)
    of_notes = make_schedule(e, mixture.counts_of(e, rows))[1]
    planned = make_plan(e, Assumptions()).phases[1]
    assert planned.steps == of_notes.stop - of_notes.start == round(3 * notes.rows / 8)
    assert planned.pieces == pytest.approx(3 * notes.tokens, rel=0.1)
    with pytest.raises(ConfigError, match=r'config\.corpora\.notes\.run: /nowhere has no rows.*phase 0\.4'):
        make_plan(experiment(prepared, **{**changes, 'corpora.notes.run': '/nowhere'}), Assumptions())
    [rows] = rows.values()
    assert len(rows) == own.rows + notes.rows


@pytest.mark.parametrize(
    ('changes', 'refusal'),
    [
        (
            {'phase.0.1.corpora': 'own=1,news=1'},
            r"config\.phase\.0\.1\.corpora: 'news' has no config\.corpora",
        ),
        ({'phase.0.1.corpora': 'own=0,notes=0'}, r'config\.phase\.0\.1\.corpora: .*weights above 0'),
        ({'phase.0.1.corpora': 'own=1,own=2'}, r'config\.phase\.0\.1\.corpora: .*each for another corpus'),
        ({'phase.0.1.corpora': 'own=much'}, r'config\.phase\.0\.1\.corpora: .*could not convert'),
        ({'phase.0.1.corpora': 'own=5000,notes=1'}, r'gives less than one of 1,000 rows'),
        (
            {'phase.0.1.duration_unit': 'epochs'},
            r'config\.phase\.0\.1\.duration_unit: several corpora have no epochs',
        ),
        (
            {'corpora.notes.run': '/nowhere'},
            r'config\.corpora\.notes\.run: /nowhere has no finished stage rows',
        ),
        ({'rows.layout': 'pairs'}, r'config\.corpora\.notes\.run: .*layout=documents, this run with pairs'),
        ({'rows.row_pieces': 128}, r'config\.corpora\.notes\.run: .*rows\.row_pieces=64, this run with 128'),
        ({'rows.words': 'unicode'}, r'config\.corpora\.notes\.run: .*words=tokenizer, this run with unicode'),
        (
            {'rows.max_document_pieces': 32, 'model.max_positions': 32},
            r'config\.corpora\.notes\.run: its config\.rows\.max_document_pieces: 64 pieces, but .* 32 positions',
        ),
    ],
)
def test_what_cannot_be_mixed_is_refused_in_one_line(prepared, tmp_path, changes, refusal):
    with pytest.raises(ConfigError, match=refusal) as caught:
        check(Run(tmp_path / 'run', experiment(prepared, **changes), quiet=True))
    assert '\n' not in str(caught.value)


def test_rows_with_other_arrays_are_not_read_together(prepared):
    rows, others = (Rows(prepared / name / 'rows', 'train') for name in LETTERS)
    others.fields = (*others.fields, TOKENIZER_WORD_STARTS)
    for first, second in ((rows, others), (others, rows)):
        with pytest.raises(
            InputError, match=r'train: has the arrays tokens, .*but .*train has tokens, .*config\.rows'
        ):
            first.concatenated([second])


def test_held_out_texts_that_another_corpus_trains_on_are_counted_and_said(prepared, tmp_path):
    """The same texts under other ids: a run holds out by ids."""
    lines = map(json.loads, (prepared / 'own.jsonl').read_text().splitlines())
    (tmp_path / 'same.jsonl').write_text(
        ''.join(json.dumps({**d, 'id': f'x{d["id"]}'}) + '\n' for d in lines)
    )
    same = Run(tmp_path / 'same', experiment(prepared, corpus__inputs=tmp_path / 'same.jsonl'), quiet=True)
    for stage in ('corpus', 'vocab', 'rows'):
        execute(same, STAGES[stage])
    heldout = {d.text for d in open_documents(prepared / 'own' / 'corpus', 'heldout')}
    both = heldout & {d.text for d in open_documents(same.workdir / 'corpus', 'train')}
    assert 0 < len(both) < len(heldout)
    said, folders = [], {'notes': prepared / 'notes', 'same': same.workdir}
    same.console.say = said.append
    corpora = {name: Rows(folder / 'rows', 'train') for name, folder in folders.items()}
    found = overlap.record(same.console, Rows(prepared / 'own' / 'rows', 'heldout'), corpora, tmp_path)
    assert found == overlap.read(tmp_path)
    assert [(one.corpus, one.heldout, one.found) for one in found] == [
        ('notes', len(heldout), 0),
        ('same', len(heldout), len(both)),
    ]
    [line] = said
    assert f'{len(both)} of {len(heldout)} held-out documents begin' in line
    assert 'of corpus same, which is trained on; the held-out loss is lower for it' in line


def test_beginnings_are_equal_where_their_pieces_are():
    """Documents of packed rows may differ beyond 64 pieces, and in the last piece."""
    rng = np.random.default_rng(0)
    rows = [rng.integers(5, 7, (6, 300)), np.full((6, 300), 5)]
    rows[1][:, ::97] = 6
    lengths = np.stack([rng.permutation([1, 3, 3, 64, 65, 66, 90, 0]) for _ in range(6)])
    shards = [
        {'tokens': of, 'segment_lengths': lengths, 'documents': lengths.astype(np.uint64)} for of in rows
    ]
    numbers = np.concatenate([found for found, _ in overlap.beginnings(SimpleNamespace(shards=shards))])
    expected = [
        tuple(row[stop - length : stop - 1][:64])
        for of in rows
        for row, ends, of_row in zip(of, lengths.cumsum(axis=1), lengths)
        for stop, length in zip(ends, of_row)
        if length
    ]
    assert len(set(expected)) == len(set(zip(expected, numbers.tolist()))) == len(set(numbers.tolist()))


def test_another_vocabulary_is_refused(prepared, tmp_path):
    shutil.copytree(prepared / 'notes', tmp_path / 'other')
    (tmp_path / 'vocab.txt').write_text('\n'.join([*SPECIAL_TOKENS, *'abcdefghijklmnopqrst', 'u']))
    other = Run(
        tmp_path / 'other',
        experiment(prepared, vocab__file=tmp_path / 'vocab.txt', corpus__inputs=prepared / 'notes.jsonl'),
        quiet=True,
    )
    for stage in ('vocab', 'rows'):
        execute(other, STAGES[stage], replace=True)
    with pytest.raises(ConfigError, match=r'config\.corpora\.notes\.run: .* has another vocabulary'):
        execute(
            opened(prepared, tmp_path / 'run', **{'corpora.notes.run': tmp_path / 'other'}),
            STAGES['pretrain'],
        )
