"""Parameter paths, rules that must cover everything, strict merging."""

import numpy as np
import pytest

from bioptimus_jax.errors import InputError
from bioptimus_jax.model.trees import flatten, match_rules, merge_strict, unflatten

TREE = {'encoder': {'0': {'kernel': 1, 'bias': 2}}, 'LayerNorm': {'scale': 3}}


def test_flatten_gives_paths_in_order_and_unflatten_undoes_it():
    flat = flatten(TREE)
    assert list(flat.items()) == [('encoder/0/kernel', 1), ('encoder/0/bias', 2), ('LayerNorm/scale', 3)]
    assert unflatten(flat) == TREE


@pytest.mark.parametrize('flat', [{'a': 1, 'a/b': 2}, {'a/b': 1, 'a': 2}])
def test_unflatten_refuses_a_leaf_that_is_also_a_folder(flat):
    with pytest.raises(ValueError, match='a'):
        unflatten(flat)


def test_the_first_rule_that_matches_decides():
    decay = match_rules(TREE, [('LayerNorm|bias$', False), ('.*', True)])
    assert decay == {'encoder': {'0': {'kernel': True, 'bias': False}}, 'LayerNorm': {'scale': False}}


def test_rules_may_give_none():
    assert match_rules(TREE, [('.*', None)])['LayerNorm'] == {'scale': None}


def test_every_uncovered_parameter_is_listed():
    with pytest.raises(ValueError, match='encoder/0/bias, LayerNorm/scale') as caught:
        match_rules(TREE, [('kernel$', 1)])
    assert 'encoder/0/kernel' not in str(caught.value)


def test_a_long_list_is_cut_and_counted():
    with pytest.raises(ValueError, match='and 22 more'):
        match_rules({f'parameter_{n}': n for n in range(30)}, [('^x', 1)])


def test_merge_names_missing_unused_and_wrong_shapes_at_once():
    template = {'a': np.zeros((2, 3)), 'b': np.zeros(4), 'same': np.zeros(1)}
    loaded = {'a': np.zeros((3, 2)), 'c': np.zeros(4), 'same': np.ones(1)}
    with pytest.raises(InputError) as caught:
        merge_strict(template, loaded, 'weights.bin')
    message = str(caught.value)
    assert message.startswith('weights.bin: ')
    assert 'missing b' in message
    assert 'not part of the model c' in message
    assert 'a has shape (3, 2), expected (2, 3)' in message
    assert 'same' not in message
    assert '\n' not in message


def test_merge_takes_the_loaded_values_in_the_order_of_the_template():
    merged = merge_strict(
        {'x': {'a': np.zeros(1)}, 'b': np.zeros(1)}, {'b': np.ones(1), 'x': {'a': np.full(1, 2)}}, 'w'
    )
    assert list(flatten(merged)) == ['x/a', 'b']
    assert merged['x']['a'][0] == 2
