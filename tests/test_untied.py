"""Models whose output layer has a table of its own: read, grafted, trained, exported and merged like any other."""

import functools
import json

import jax
import numpy as np
import pytest
import safetensors.numpy
from toy_pretraining import of_letters
from toy_sets import save_encoder
from toy_source import LETTERS, OLD, SPECIAL, WORD, built, ids, make_run, make_source

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.export import gate
from bioptimus_jax.export.merge import merge
from bioptimus_jax.model import tensors
from bioptimus_jax.model.families.bert import Bert
from bioptimus_jax.model.families.eurobert import EuroBert
from bioptimus_jax.model.trees import flatten
from bioptimus_jax.pretrain import curriculum
from bioptimus_jax.pretrain.objective import make_objective
from bioptimus_jax.pretrain.shape import RowCounts
from bioptimus_jax.pretrain.sharding import make_mesh
from bioptimus_jax.pretrain.step import sharded_step
from bioptimus_jax.storage.files import read_json
from bioptimus_jax.tokenizer.kinds.wordpiece import SPECIAL_TOKENS, make

OWN, TABLE, BIAS = Bert.own_output_table, Bert.table, Bert.output_bias
TEXTS = ['aspirin and heparin twice daily', 'no dose']
BIASES = {'bert': 'cls.predictions.decoder.bias', 'roberta': 'lm_head.decoder.bias'}


@pytest.mark.parametrize('kind', ['bert', 'roberta', 'modernbert', 'eurobert', 'ultrabert'])
def test_what_transformers_saves_is_computed_written_and_merged_as_it_is(tmp_path, kind):
    folder = save_encoder(
        tmp_path / 'source', kind, layers=1, tie_word_embeddings=False, initializer_range=0.3
    )
    file = folder / 'model.safetensors'
    state = safetensors.numpy.load_file(file)
    if kind in BIASES:  # of its two biases transformers trains and computes with this one
        state[BIASES[kind]] = np.linspace(-1, 1, len(state[BIASES[kind]]), dtype=np.float32)
        safetensors.numpy.save_file(state, file, metadata={'format': 'pt'})
    architecture, params, fresh = tensors.load_folder(folder)
    assert architecture.untied
    assert not fresh
    gate.check_export(folder, architecture, params, folder, TEXTS)  # logits of transformers, by what it saved
    merge([folder, folder], [], tmp_path / 'merged')  # behind the gate, too
    found, mean, _ = tensors.load_folder(tmp_path / 'merged')
    assert found == architecture
    assert read_json(tmp_path / 'merged' / 'config.json')['tie_word_embeddings'] is False
    flat = flatten(mean)
    for name, value in flatten(params).items():
        np.testing.assert_array_equal(flat[name], value, err_msg=name)
    assert not np.array_equal(flat[architecture.table], flat[architecture.output_table])


@pytest.mark.parametrize('strategy', ['averaged_input', 'averaged_last', 'gaussian'])
def test_new_tokens_get_rows_in_both_tables(tmp_path, strategy):
    source = make_source(OLD, untied=True)
    vocabulary = [*SPECIAL, 'drug', WORD, *LETTERS, 'drugs']
    new, report, _ = built(make_run(tmp_path, source, vocabulary, surgery__strategy=strategy))
    before, word, drug = flatten(source.parameters), vocabulary.index(WORD), vocabulary.index('drug')
    for table in (TABLE, OWN):
        np.testing.assert_array_equal(new[table][drug], before[table][OLD.index('drug')])
        assert not new[table][len(vocabulary) :].any()
    pieces = ids('bro', '##nch', '##oco', '##nst', '##ric', '##tion')
    mean = before[OWN][pieces].mean(axis=0)
    assert np.allclose(new[OWN][word], mean, atol=1e-6) == (strategy != 'gaussian')
    assert not np.allclose(new[OWN][word], new[TABLE][word], atol=1e-2)
    # Only the rows of new tokens are made anew, drawn or not: an adapter trains no more of the table.
    assert OWN in report['parameters']['synthesised']


def test_a_kept_vocabulary_keeps_both_tables_and_a_fit_by_predictions_is_refused(tmp_path):
    source = make_source(OLD, untied=True)
    kept = {'surgery__strategy': 'copy', 'vocab__kind': 'source'}
    new, *_ = built(make_run(tmp_path / 'kept', source, OLD, **kept))
    for table in (TABLE, OWN):
        np.testing.assert_array_equal(new[table], flatten(source.parameters)[table])
    fit = {'surgery__strategy': 'contextualized', 'surgery__fit_steps': 2, 'surgery__fit_cross_entropy': 0.5}
    with pytest.raises(
        ConfigError, match=r'fit_cross_entropy: 0\.5 fits rows that are read and predicted, but'
    ):
        built(make_run(tmp_path / 'fit', source, [*OLD, WORD], **fit))


# Slow: the table of a BERT is split by the same rule.
@pytest.mark.parametrize(
    'family',
    [
        pytest.param(Bert, id='bert', marks=pytest.mark.slow),
        pytest.param(functools.partial(EuroBert, key_heads=1), id='eurobert'),
    ],
)
def test_both_tables_are_split_over_a_mesh_and_trained(tmp_path, family):
    """Heads of queries that share one of keys are split, too, and compute what one device does."""
    subwords, rows, pieces = make([*SPECIAL_TOKENS, *'abcdefghij'], True), 8, 16
    (tmp_path / 'vocab.txt').write_text('\n'.join(subwords.tokens))
    experiment, mesh = of_letters(tmp_path, pieces, ('0.1',)), make_mesh(8, fsdp=2, tensor=2)
    model = family(len(subwords.tokens), 16, 1, 2, 16, pieces, untied=True)
    objective = make_objective(experiment, model, subwords, pieces, mesh, print)
    schedule = curriculum.make_schedule(experiment, RowCounts(rows, 1, 1))
    tokens = np.random.default_rng(0).integers(5, len(subwords.tokens), (rows, pieces)).astype(np.int32)
    batch = {
        'tokens': tokens,
        'word_starts': tokens > 0,
        'segment_lengths': np.full((rows, 1), pieces, np.int32),
    }
    before = model.initial_parameters(jax.random.key(0))
    step, state = sharded_step(objective, mesh, before)
    state, metrics = step(state, batch, curriculum.table(schedule, experiment))
    assert np.isfinite(metrics['loss'])
    if family is not Bert:
        alone = make_objective(experiment, model, subwords, pieces, make_mesh(1), print)
        step, of_one = sharded_step(alone, make_mesh(1), before)
        of_one, wanted = step(of_one, batch, curriculum.table(schedule, experiment))
        assert float(metrics['loss']) == pytest.approx(float(wanted['loss']), rel=1e-5)
        for path, value in flatten(of_one['params']).items():
            np.testing.assert_allclose(flatten(state['params'])[path], value, atol=2e-5, err_msg=path)
    before, after = flatten(before), flatten(state['params'])
    for table in (TABLE, OWN):
        assert tuple(after[table].sharding.spec) == ('tensor', 'fsdp')
        assert np.abs(np.asarray(after[table]) - before[table]).max() > 1e-4
        assert not np.asarray(after[table])[len(subwords.tokens) :].any()


def test_a_head_that_is_the_table_of_embeddings_is_never_missing(tmp_path):
    """A tied EuroBERT has no parameter but those of its encoder, so a bare encoder has its head too."""
    import transformers

    folder = save_encoder(tmp_path / 'tied', 'eurobert', layers=1, tie_word_embeddings=True)
    architecture, params, fresh = tensors.load_folder(folder)
    assert not architecture.untied
    assert not fresh
    assert params.keys() == {'embeddings', 'encoder'}
    gate.check_export(folder, architecture, params, folder, TEXTS)
    bare = transformers.AutoModel.from_pretrained(folder)
    for name in ('model.safetensors', 'config.json'):
        (folder / name).unlink()
    bare.save_pretrained(folder)
    assert not tensors.lacks_head(folder)
    _, again, fresh = tensors.load_folder(folder)
    assert not fresh
    jax.tree.map(np.testing.assert_array_equal, again, params)


WRONG = {
    'electra': (False, 'tie_word_embeddings is False; ELECTRA is supported only with True'),
    'bert': ('no', "tie_word_embeddings is 'no'; true or false is expected"),
}


@pytest.mark.parametrize('kind', WRONG)
def test_what_cannot_be_untied_is_refused_in_one_line(tmp_path, kind):
    folder, (value, expected) = save_encoder(tmp_path / kind, kind, layers=1), WRONG[kind]
    values = {**read_json(folder / 'config.json'), 'tie_word_embeddings': value}
    (folder / 'config.json').write_text(json.dumps(values))
    with pytest.raises(InputError, match=expected):
        tensors.load_folder(folder)
