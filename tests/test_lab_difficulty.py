"""Perplexity by masking setting of any models: by hand, against transformers, from the command line to the page."""

import json
import math
import re
import shutil
from types import SimpleNamespace

import jax
import numpy as np
import pytest
import tokenizers
import torch
from tokenizers import decoders, models, pre_tokenizers, processors
from toy_articles import article
from transformers import (
    ErnieConfig,
    ErnieForMaskedLM,
    ErnieModel,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForMaskedLM,
)

from bioptimus_jax.analysis import difficulty, masked_lm
from bioptimus_jax.cli import main as cli
from bioptimus_jax.corpus.documents import Document
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.lab.sections import difficulty as shown
from bioptimus_jax.model import tensors
from bioptimus_jax.model.families.bert import Bert
from bioptimus_jax.pretrain import perplexity
from bioptimus_jax.pretrain.masking import MASKED, REPLACED, UNCHANGED
from bioptimus_jax.report.measures import read_measures
from bioptimus_jax.run.folder import Run
from bioptimus_jax.storage.files import read_json, write_json
from bioptimus_jax.tokenizer.kinds.wordpiece import SPECIAL_TOKENS, make

LETTERS = 'abcdeimnorst'
TOKENS = [*SPECIAL_TOKENS, *LETTERS, *('##' + c for c in LETTERS), 'dose', 'rate', '.']
CONFIG = """
from bioptimus_jax.experiment.config import defaults

def get_config(argument=''):
    c = defaults()
    c.corpus.update(inputs=({texts!r},), words_per_document=5)
    c.rows.update(max_document_pieces=24)
    c.pretrain.max_word_pieces = 4
    c.curriculum.update(samples=2, documents=8)
    c.runtime.devices = 1
    return c
"""


@pytest.fixture(scope='module')
def place(tmp_path_factory):
    """Texts, a config, a BERT and a RoBERTa with weights drawn at random."""
    folder = tmp_path_factory.mktemp('difficulty')
    generator = np.random.default_rng(0)
    words = [''.join(generator.choice(list(LETTERS), generator.integers(2, 8))) for _ in range(40)]
    texts = [' '.join(generator.choice([*words, 'dose', 'rate'], 30)) + '.' for _ in range(12)]
    (folder / 'news.txt').write_text('\n\n'.join(texts))
    (folder / 'trained.txt').write_text('\n\n'.join(texts))
    (folder / 'tiny.py').write_text(CONFIG.format(texts=str(folder / 'trained.txt')))
    shape = Bert(len(TOKENS), 16, 1, 2, 24, 24, initializer_range=0.5)
    make(TOKENS, True).save(folder / 'bert', 24)
    parameters = shape.initial_parameters(jax.random.key(0, impl='threefry2x32'))
    tensors.write_folder(folder / 'bert', shape, parameters, folder / 'bert')
    write_roberta(folder / 'roberta')
    write_foreign(folder / 'foreign', ErnieForMaskedLM)
    return folder


def write_roberta(folder):
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    names = ['<s>', '<pad>', '</s>', '<unk>', '<mask>', *alphabet, 'do', 'se', 'dose']
    ids = {name: number for number, name in enumerate(names)}
    tokenizer = tokenizers.Tokenizer(models.BPE(ids, [('d', 'o'), ('s', 'e'), ('do', 'se')]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.RobertaProcessing(('</s>', 2), ('<s>', 0))
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=30,
        bos_token='<s>',
        cls_token='<s>',
        pad_token='<pad>',
        sep_token='</s>',
        eos_token='</s>',
        unk_token='<unk>',
        mask_token='<mask>',
    ).save_pretrained(folder)
    torch.manual_seed(0)
    shape = dict(vocab_size=len(names), hidden_size=16, num_hidden_layers=1, num_attention_heads=2)
    settings = RobertaConfig(**shape, intermediate_size=24, max_position_embeddings=32, pad_token_id=1)
    RobertaForMaskedLM(settings).save_pretrained(folder)


def write_foreign(folder, kind):
    """A model of a family that is not computed here, with a byte-level tokenizer."""
    write_roberta(folder)
    shape = dict(
        vocab_size=264, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=24
    )
    kind(ErnieConfig(**shape, max_position_embeddings=30, pad_token_id=1)).save_pretrained(folder)


def experiment(place, **changes):
    loaded = config.load(str(place / 'tiny.py'))
    for dotted, value in {'curriculum.texts': f'{place}/news.txt,', **changes}.items():
        config.override(loaded, dotted, value)
    return Experiment.from_config(loaded)


def test_perplexity_by_hand():
    masked = SimpleNamespace(
        weights_M=np.array([[1, 1, 1, 0], [1, 1, 0, 0]]),
        kinds_M=np.array([[MASKED, REPLACED, UNCHANGED, MASKED], [MASKED, UNCHANGED, MASKED, MASKED]]),
    )
    losses = np.log([[8.0, 32.0, 1.0, 99.0], [2.0, 4.0, 99.0, 99.0]])
    one = perplexity.sums_of(losses, masked, np.array([0, 0]), 1)
    assert one['weight'] == [5]
    assert one['loss'] == pytest.approx([math.log(8 * 32 * 1 * 2 * 4)])
    found = perplexity.of_setting(one)
    assert found.perplexity.samples == pytest.approx([2048 ** (1 / 5)])
    assert found.masked.samples == pytest.approx([4])  # the root of 8 times 2
    assert found.replaced.mean == pytest.approx(32)
    assert found.kept.mean == pytest.approx(2)
    assert found.positions == {'perplexity': 5, 'masked': 2, 'replaced': 1, 'kept': 2}
    # The upper row in the second sample, the lower in the first.
    found = perplexity.of_setting(perplexity.sums_of(losses, masked, np.array([1, 0]), 2))
    assert found.perplexity.samples == pytest.approx([8 ** (1 / 2), 256 ** (1 / 3)])
    assert found.masked.samples == pytest.approx([2, 8])
    assert found.replaced is None  # none in the first sample
    assert found.positions == {'perplexity': 2.5, 'masked': 1, 'replaced': 0.5, 'kept': 1}
    # Logarithms ln 4 apart: their mean ± 12.7062 (t with one degree of freedom) times half of that, taken back.
    made = perplexity.summary([2.0, 8.0])
    assert made.mean == pytest.approx(4)
    assert made.interval == pytest.approx([4 * 2**-12.7062, 4 * 2**12.7062], rel=1e-4)
    assert perplexity.summary([3.0]).interval is None
    # Samples that differ as much as those of two texts: 360 ± 1,783 is no interval of a perplexity.
    wide = perplexity.summary([220.0, 500.7]).interval
    assert 0 < wide[0] < 220
    assert wide[1] > 500.7


def test_a_setting_without_such_positions_has_no_perplexity_of_them():
    sums = {'loss': 2.0, 'weight': 2.0, 'masked_loss': 2.0, 'masked_weight': 2.0}
    sums |= {'replaced_loss': 0.0, 'replaced_weight': 0.0, 'kept_loss': 0.0, 'kept_weight': 0.0}
    found = perplexity.of_setting({name: np.array([value]) for name, value in sums.items()})
    assert found.masked.mean == pytest.approx(math.e)
    assert found.replaced is None
    assert found.kept is None


def test_transformers_and_jax_give_a_bert_the_same_perplexities(place, tmp_path, monkeypatch):
    run = Run(tmp_path / 'run', experiment(place), quiet=True)
    ours = difficulty.measure(run, [str(place / 'bert')]).models[0]
    monkeypatch.setattr(difficulty, '_computed_here', lambda folder: False)
    theirs = difficulty.measure(run, [str(place / 'bert')]).models[0]
    assert (ours.computed_by, theirs.computed_by) == ('jax', 'transformers')
    assert (ours.model, ours.rows) == ('bert', theirs.rows)
    assert ours.pieces == theirs.pieces
    for name, measured in ours.settings.items():
        assert theirs.settings[name].positions == measured.positions
        for kind in perplexity.CORRUPTIONS:
            if measured.of(kind) is None:
                assert theirs.settings[name].of(kind) is None
                continue
            assert theirs.settings[name].of(kind).samples == pytest.approx(
                measured.of(kind).samples, rel=1e-4
            )
    # Weights are far from even, so that agreement says something.
    assert abs(ours.settings['0.1'].masked.mean / len(TOKENS) - 1) > 0.2


def test_a_roberta_is_masked_in_its_own_words(place):
    model = masked_lm.load(place / 'roberta', 1)
    text = 'dose rate. A dose'
    batch = model.rows([Document('a', text)], 12, 'tokenizer')
    pieces = model.tokenizer.convert_ids_to_tokens(batch['tokens'][0])
    assert ''.join(pieces).startswith('<s>ĠdoseĠrate.</s>')  # cut after the sentence
    begins = [p for p, starts in zip(pieces, batch['cuts'][0], strict=True) if starts]
    assert [p for p in begins if not p.startswith('<')] == ['Ġ', 'Ġ', '.']
    spaced = batch['word_starts'][0]
    assert [p for p, s in zip(pieces, spaced, strict=True) if s and not p.startswith('<')] == ['Ġ', 'Ġ']
    # A document longer than a row is cut, and nothing is lost.
    assert len(batch['tokens']) == 2
    assert len(set(batch['documents'][:, 0])) == 1
    assert batch['segment_lengths'].sum() == len(model.tokenizer(text)['input_ids']) + 2
    assert model.vocabulary.mask == 4
    assert not set(model.vocabulary.drawn_N) & {0, 1, 2, 3, 4}
    assert model.longest == 30  # 32 positions, of which RoBERTa uses the first two for padding


def test_the_losses_of_a_roberta_are_those_of_transformers_own_labels(place):
    model = masked_lm.load(place / 'roberta', 1)
    inputs = np.array([[0, 40, 4, 42, 2, 1], [0, 4, 50, 51, 52, 2]])
    masked = SimpleNamespace(
        inputs_L=inputs, slots_M=np.array([[2, 1], [1, 0]]), targets_M=np.array([[41, 40], [60, 0]])
    )
    losses = model.slot_losses(masked, inputs != 1, inputs)
    for row, slot, target in ((0, 0, 41), (0, 1, 40), (1, 0, 60)):
        labels = torch.full((1, 6), -100)
        labels[0, masked.slots_M[row, slot]] = target
        given = torch.tensor(inputs[row : row + 1])
        with torch.no_grad():
            wanted = model.model(input_ids=given, attention_mask=(given != 1).long(), labels=labels).loss
        assert losses[row, slot] == pytest.approx(float(wanted), rel=1e-5)


def test_the_verb_measures_several_models_and_the_page_shows_them(place, tmp_path, capsys):
    command = ['difficulty', f'--config={place}/tiny.py', f'--workdir={tmp_path}/run']
    command += [f'--config.curriculum.texts={place}/news.txt', f'--model={place}/bert']
    assert cli.main([*command, f'--model=other={place}/foreign', '--json']) == 0
    printed = capsys.readouterr()
    assert 'difficulty: 8 documents, one begins: ' in printed.err
    found = read_json(tmp_path / 'run' / 'difficulty.json')
    assert json.loads(printed.out) == found
    assert [r['model'] for r in found['models']] == ['bert', 'other']
    assert (found['documents'], found['samples']) == (8, 2)
    # Weights so small know nothing: every piece of the 264 is as likely as any other.
    means = [s['perplexity']['mean'] for s in found['models'][1]['settings'].values()]
    assert means == pytest.approx([264] * 4, rel=0.1)
    m = read_measures(Run(tmp_path / 'run', experiment(place), quiet=True))
    table = shown.difficulty(m)
    assert re.search(r'^other +0\.4 +words 20%, 100-0-0 ', table.text(), re.MULTILINE)
    for row, (name, of_setting) in zip(table.rows[-4:], found['models'][1]['settings'].items(), strict=True):
        assert (row[1].text, row[4].value) == (
            name,
            pytest.approx(of_setting['perplexity']['mean'], rel=1e-6),
        )
    at = list(table.columns).index('place')
    for model in ('bert', 'other'):
        rows = [r for r in table.rows if r[0].text == model]
        assert sorted(r[at].value for r in rows) == [1, 2, 3, 4]
        by_place = sorted(rows, key=lambda r: r[at].value)
        assert [r[3].value for r in by_place] == sorted(r[3].value for r in rows)
        assert list(table.columns)[3] == '[MASK]'
    assert f'8 documents ({place}/news.txt), in 2 samples' in table.note
    figure = shown.masking_difficulty(m)
    assert '>other<' in figure.svg
    assert 'bert' in figure.alt
    assert list(tmp_path.joinpath('run').iterdir()) == [tmp_path / 'run' / 'difficulty.json']


def test_what_cannot_be_measured_is_said_in_a_line(place, tmp_path):
    run = Run(tmp_path / 'run', experiment(place), quiet=True)
    read = {'curriculum.texts': f'{place}/*.txt,'}
    on_trained = Run(tmp_path / 'run', experiment(place, **read), quiet=True)
    headless, bert = tmp_path / 'headless', place / 'bert'
    write_foreign(headless, ErnieModel)
    damaged = shutil.copytree(headless, tmp_path / 'damaged')
    (damaged / 'model.safetensors').write_bytes(b'no weights')
    for of, named, error, message in (
        (run, ['nothing'], ConfigError, "--model: 'nothing' is not a phase"),
        (run, [bert, bert], ConfigError, "--model: two models are called 'bert'"),
        (run, [tmp_path], InputError, r'config\.json: no such file'),
        (run, [headless], InputError, 'headless: lacks .*, so it has no perplexity'),
        (run, [damaged], InputError, r'is not a masked language model .*; name another model'),
        (on_trained, [bert], ConfigError, r'trained\.txt is a file of config\.corpus\.inputs'),
    ):
        with pytest.raises(error, match=message):
            difficulty.measure(of, [*map(str, named)])
    # A preprint's tenth version stands, and not its second.
    for version in (2, 10):
        text = article(
            ids='<article-id pub-id-type="doi">10.1101/1</article-id>', body=f'<p>Text {version}.</p>'
        )
        (tmp_path / f'1v{version}.full.xml').write_text(text, 'utf-8')
    read = experiment(place, **{'curriculum.texts': f'{tmp_path}/*.full.xml,'})
    assert [d.text for d in difficulty.difficulty.documents(read, run.folder)] == ['A title\nText 10.']
    assert not (tmp_path / 'run' / 'difficulty.json').exists()


def test_the_difficulty_that_decided_the_order_is_shown_too(tmp_path):
    def setting(*samples):
        # As older versions summed them up: on the linear scale, where the lower end falls below 0.
        return {'mean': sum(samples) / 2, 'interval': [-5.0, 9.0], 'samples': list(samples)}

    settings = {
        name: {'perplexity': setting(*every), 'masked': setting(*hidden), 'replaced': None, 'kept': None}
        | {'positions': {'perplexity': 10, 'masked': 10, 'replaced': 0, 'kept': 0}}
        for name, every, hidden in (('0.1', (8, 10), (4, 9)), ('0.2', (6, 8), (6, 13.5)))
    }
    record = {
        'probe': 'initial',
        'texts': ['news'],
        'documents': 5,
        'samples': 2,
        'measure': 'all',
        'phases': {},
    }
    record |= {'rows': 9, 'pieces': 99, 'settings': settings}
    write_json(tmp_path / 'run' / 'pretrain' / 'difficulty.json', record)
    run = Run(tmp_path / 'run', Experiment(), quiet=True)
    table = shown.difficulty(read_measures(run))
    first, second = ([c.text for c in r] for r in table.rows)
    # Roots of 4 · 9 and 8 · 10; exp of ln 6 ± 12.7062 times half of ln 9/4, and so on. Never below 0.
    assert first[:5] == ['initial (step 0)', '0.1', '', '6 [0.03473, 1037]', '8.944 [2.167, 36.92]']
    assert second[3:5] == ['9 [0.05209, 1555]', '6.928 [1.114, 43.09]']
    # The record is of a run that goes by all selected positions; 0.1 is the harder one by them.
    assert [first[8], second[8]] == ['2', '1']
    # exp of the mean of ln 8/6 and ln 10/8, and of that ± 12.7062 times half their distance
    assert [first[9], second[9]] == ['1.291 [0.857, 1.945]', '—']
    assert 'over all selected pieces, as config.curriculum.order does' in table.note
    # By what is hidden 0.2 is, in both samples by a half.
    write_json(tmp_path / 'run' / 'pretrain' / 'difficulty.json', {**record, 'measure': 'masked'})
    by_hidden = shown.difficulty(read_measures(run))
    assert [r[8].text for r in by_hidden.rows] == ['1', '2']
    assert by_hidden.rows[1][9].text == '1.500 [1.500, 1.500]'
    assert 'at [MASK], as config.curriculum.order does' in by_hidden.note
    figure = shown.masking_difficulty(read_measures(run))
    assert '[MASK]: initial (step 0) 6 (0.1), 9 (0.2)' in figure.alt
    assert json.loads(json.dumps(table.csv()))
