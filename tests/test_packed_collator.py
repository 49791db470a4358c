"""Documents that share rows for a Trainer: the loss and the gradients of the batch without packing, or a refusal."""

import numpy as np
import pytest
import torch
import transformers

import bioptimus_jax as bx
from bioptimus_jax.api.packing import Packing

WORDS = [f'w{n}' for n in range(40)]
SPECIAL = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']
TEXTS = [' '.join(WORDS[n:end]) for n, end in ((0, 21), (3, 5), (7, 37), (20, 21), (11, 20), (2, 30))]
SIZES = dict(
    vocab_size=len(SPECIAL) + len(WORDS),
    hidden_size=32,
    num_hidden_layers=3,
    num_attention_heads=2,
    intermediate_size=48,
    max_position_embeddings=50,
    initializer_range=0.2,
    pad_token_id=0,
)
FAMILIES = {
    'Bert': SIZES,
    'Roberta': SIZES,
    'Electra': SIZES,
    'MPNet': SIZES,
    'EuroBert': {**SIZES, 'num_key_value_heads': 2},
    'DistilBert': dict(
        vocab_size=SIZES['vocab_size'],
        dim=32,
        n_layers=2,
        n_heads=2,
        hidden_dim=48,
        max_position_embeddings=50,
    ),
    'ModernBert': {
        **SIZES,
        **dict(local_attention=8, global_attn_every_n_layers=3, cls_token_id=2, sep_token_id=3),
        **dict(bos_token_id=2, eos_token_id=3),
    },
    'DebertaV2': {
        **SIZES,
        **dict(relative_attention=True, pos_att_type=['p2c', 'c2p'], position_biased_input=False),
        'type_vocab_size': 0,
    },
}
ALONE = {'MPNet', 'DebertaV2'}
"""Families that know no attention but transformers' own, `eager`."""


@pytest.fixture(scope='module')
def tokenizer(tmp_path_factory):
    file = tmp_path_factory.mktemp('vocab') / 'vocab.txt'
    file.write_text('\n'.join([*SPECIAL, *WORDS]))
    return transformers.BertTokenizer(str(file), model_max_length=50)


def model_of(family, attention='sdpa', dtype=torch.float32):
    torch.manual_seed(0)
    config = getattr(transformers, f'{family}Config')(**FAMILIES[family])
    config._attn_implementation = 'eager' if family in ALONE else attention
    return getattr(transformers, f'{family}ForMaskedLM')(config).to(dtype)


@pytest.mark.parametrize('attention', ['sdpa', 'eager'])
@pytest.mark.parametrize('family', [name for name in FAMILIES if name != 'DebertaV2'])
def test_loss_and_gradients_are_those_without_packing(tokenizer, family, attention):
    """Rows are wider than the model has positions, and a word is masked as it is without packing."""
    model = model_of(family, attention)
    collator = bx.Collator(tokenizer, '0.3', seed=1, max_pieces=48, pack_for=model, row_pieces=96)
    packed = collator(TEXTS)
    np.testing.assert_array_equal(collator.masked(TEXTS, 0)['input_ids'], packed['input_ids'])
    plain = bx.Collator(tokenizer, '0.3', seed=1, max_pieces=48)(TEXTS)
    assert packed['input_ids'].shape == (2, 96)
    assert sorted(packed['labels'][packed['labels'] >= 0]) == sorted(plain['labels'][plain['labels'] >= 0])
    found = []
    assert model.training
    model.eval()
    for batch in (packed, plain):
        model.zero_grad()
        loss = model(**batch).loss
        loss.backward()
        found.append((loss.item(), {n: p.grad for n, p in model.named_parameters() if p.grad is not None}))
    assert found[0][0] == pytest.approx(found[1][0], abs=2e-6)
    for name, gradient in found[1][1].items():
        torch.testing.assert_close(found[0][1][name], gradient, rtol=1e-3, atol=2e-5)


@pytest.mark.parametrize(
    ('family', 'attention', 'added'), [('Bert', 'eager', 'bfloat16'), ('ModernBert', 'sdpa', '')]
)
def test_a_model_in_half_precision_gets_a_mask_of_its_type(tokenizer, family, attention, added):
    model = model_of(family, attention, torch.bfloat16)
    collator = bx.Collator(tokenizer, pack_for=model, max_pieces=48)
    assert collator.packing == Packing(48, 0, 4 * (family == 'ModernBert'), added, 1)
    assert torch.isfinite(model(**collator(TEXTS)).loss)
    assert model.dtype == torch.bfloat16
    assert all(module.training for module in model.modules())


def test_rows_by_hand(tokenizer):
    """Two documents in the first row, with a piece that is padding within one of them, and one in the second."""
    rows = [
        {'input_ids': np.array([7, 8, 9]), 'attention_mask': np.array([1, 1, 1])},
        {'input_ids': np.array([5, 6]), 'attention_mask': np.array([1, 0])},
        {'input_ids': np.array([4, 4, 4, 4]), 'attention_mask': np.ones(4, int)},
    ]
    assert Packing(8).rows(rows, {})['input_ids'].shape == (2, 7)  # as wide as the fullest row
    made = Packing(6, first=2, window=1, multiple=3).rows(rows, {'input_ids': 1})
    assert made['input_ids'].tolist() == [[4, 4, 4, 4, 1, 1], [7, 8, 9, 5, 6, 1]]
    assert made['position_ids'].tolist() == [[2, 3, 4, 5, 2, 2], [2, 3, 4, 2, 3, 2]]
    whole, near = made['attention_mask']['full_attention'], made['attention_mask']['sliding_attention']
    alone, padding = [0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 1, 1]
    assert whole[1, 0].astype(int).tolist() == [*([[1, 1, 1, 0, 0, 0]] * 3), alone, padding, padding]
    first, *inner, last = [1, 1, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0], [0, 1, 1, 1, 0, 0], [0, 0, 1, 1, 0, 0]
    assert near[0, 0].astype(int).tolist() == [first, *inner, last, padding, padding]
    assert 'position_ids' not in Packing(6, first=None).rows(rows, {})


@pytest.mark.parametrize('family', ['Bert', 'ModernBert'])
def test_a_trainer_trains_and_evaluates_packed_rows(tokenizer, family, tmp_path):
    model, seen = model_of(family), []

    class Watched(transformers.Trainer):
        def compute_loss(self, model, inputs, *given, **named):
            seen.append((model.training, inputs['labels'].shape, inputs['labels'].max(1)[0].min().item()))
            return super().compute_loss(model, inputs, *given, **named)

    arguments = transformers.TrainingArguments(
        str(tmp_path),
        max_steps=2,
        per_device_train_batch_size=6,
        per_device_eval_batch_size=6,
        remove_unused_columns=False,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    )
    collator = bx.Collator(tokenizer, '0.3', max_pieces=48, pack_for=model)
    examples = [{'text': text} for text in TEXTS]
    trainer = Watched(model, arguments, train_dataset=examples, eval_dataset=examples, data_collator=collator)
    trainer.train()
    first, again = trainer.evaluate()['eval_loss'], trainer.evaluate()['eval_loss']
    assert first == again
    assert np.isfinite(first)
    assert [training for training, _, _ in seen] == [True, True, False, False]
    assert all(shape[0] < 6 and 40 < shape[1] <= 48 for _, shape, _ in seen)


def only_in_half():
    """A model whose attention takes no float32, as FlashAttention's does not."""

    def attention(*given, **named):
        raise RuntimeError('FlashAttention only supports fp16 and bf16')

    transformers.AttentionInterface.register('only_half', attention)
    model = model_of('Bert', dtype=torch.bfloat16)
    model.config._attn_implementation = 'only_half'
    return model


@pytest.mark.parametrize(
    ('wrong', 'message'),
    [
        (
            lambda t: dict(pack_for=model_of('DebertaV2')),
            r"DebertaV2ForMaskedLM does not keep .* apart \(attention 'eager'\); leave pack_for out",
        ),
        (lambda t: dict(pack_for=t), 'pack_for: got BertTokenizer'),
        (
            lambda t: dict(pack_for=only_in_half()),
            r"apart \(attention 'only_half'\); load it with .*'sdpa', or leave",
        ),
        (lambda t: dict(row_pieces=96), 'give it as pack_for'),
        (lambda t: dict(pack_for=model_of('Bert'), row_pieces=40), '40, but a document has up to 50 pieces'),
        (
            lambda t: dict(pack_for=model_of('Bert'), row_pieces=97, max_pieces=48, pad_to_multiple_of=8),
            'pad_to_multiple_of is 8',
        ),
    ],
)
def test_what_cannot_be_packed_is_refused_at_once(tokenizer, wrong, message):
    with pytest.raises(bx.ConfigError, match=message):
        bx.Collator(tokenizer, **wrong(tokenizer))
