"""Heads and tag schemes: the chain against every path there is, padding that cannot matter, other encoders."""

import dataclasses
import itertools
import json
import random
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from toy_sets import DRUGS, OTHER, TYPES, load_tagger, save_byte_level, save_encoder, save_set, settings

import bioptimus_jax as bx
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.finetuning import stored, training
from bioptimus_jax.finetuning.batches import drawn, parts
from bioptimus_jax.finetuning.config import HEADS
from bioptimus_jax.finetuning.entities.align import IGNORED, align, piece_labels, word_labels
from bioptimus_jax.finetuning.entities.batches import collate
from bioptimus_jax.finetuning.entities.crf import Chain, ChainWords, may_follow
from bioptimus_jax.finetuning.entities.segments import LENGTHS, Segments
from bioptimus_jax.finetuning.kept import Reads
from bioptimus_jax.finetuning.optimizer import slanted_triangle
from bioptimus_jax.finetuning.stored import save_model
from bioptimus_jax.finetuning.tasks.entities import TASK as ENTITIES
from bioptimus_jax.finetuning.training import finetune, predict
from bioptimus_jax.records.kept import KeptEnsemble
from bioptimus_jax.scoring.score import score
from bioptimus_jax.sets.corpora import read_dataset, read_split
from bioptimus_jax.sets.sentences import Sentence
from bioptimus_jax.sets.tags import decode, encode, from_spans, labels_of, spans
from bioptimus_jax.storage.files import read_json, sha256, write_json
from bioptimus_jax.vocab.agreement import load_for_words, load_in_transformers

SCHEMES = ('bio', 'io', 'bioul')
ENCODERS = ('bert', 'roberta', 'electra', 'distilbert', 'modernbert', 'eurobert', 'ultrabert')


@pytest.fixture(scope='module')
def bert(tmp_path_factory):
    return save_encoder(tmp_path_factory.mktemp('bert'))


@pytest.fixture(scope='module')
def drugs(tmp_path_factory):
    return read_dataset(save_set(tmp_path_factory.mktemp('sets') / 'drugs'))


# ---- the chain


def random_chain(generator, scheme='bio', types=('X',)):
    chain = Chain(labels_of(types, scheme), scheme).double()
    for parameter in chain.parameters():
        torch.nn.init.normal_(parameter, generator=generator)
    return chain


def random_case(generator, labels, sizes):
    """Emissions, labels, mask and ends of chains of these sizes; padding holds large numbers."""
    most = max(sizes)
    emissions = torch.randn(len(sizes), most, labels, generator=generator, dtype=torch.float64)
    mask = torch.arange(most) < torch.tensor(sizes)[:, None]
    emissions[~mask] = 1e3
    gold = torch.randint(labels, (len(sizes), most), generator=generator)
    opens, closes = torch.randint(2, (2, len(sizes)), generator=generator).bool()
    return emissions, gold, mask, opens, closes


def path_scores(chain, emissions_TxC, paths_PxT, opens, closes):
    """Scores of paths, written out term by term."""
    total = sum(emissions_TxC[t, paths_PxT[:, t]] for t in range(paths_PxT.shape[1]))
    for t in range(1, paths_PxT.shape[1]):
        total = total + chain.transitions_CxC[paths_PxT[:, t - 1], paths_PxT[:, t]]
    return total + bool(opens) * chain.begin_C[paths_PxT[:, 0]] + bool(closes) * chain.end_C[paths_PxT[:, -1]]


def all_paths(chain, emissions_TxC, size, opens, closes):
    paths = list(itertools.product(range(len(chain.begin_C)), repeat=size))
    return paths, path_scores(chain, emissions_TxC, torch.tensor(paths), opens, closes)


@pytest.mark.parametrize('seed', range(3))
def test_likelihood_and_gradient_are_those_of_all_paths(seed):
    generator = torch.Generator().manual_seed(seed)
    chain = random_chain(generator, SCHEMES[seed % 3])
    case = random_case(generator, len(chain.begin_C), (3, 1, 4, 2))
    emissions, gold, mask, opens, closes = case
    emissions.requires_grad_()
    inputs = [emissions, *chain.parameters()]
    given = chain.log_likelihood(ChainWords(emissions, mask, opens, closes), gold)
    expected = []
    for b, size in enumerate(mask.sum(1).tolist()):
        scores = all_paths(chain, emissions[b], size, opens[b], closes[b])[1]
        (own,) = path_scores(chain, emissions[b], gold[b : b + 1, :size], opens[b], closes[b])
        expected.append(own - torch.logsumexp(scores, 0))
    expected = torch.stack(expected)
    torch.testing.assert_close(given, expected)
    assert (given < 0).all()
    sure = chain.probabilities(ChainWords(emissions, mask, opens, closes), gold)
    for b, size in enumerate(mask.sum(1).tolist()):
        paths, scores = all_paths(chain, emissions[b], size, opens[b], closes[b])
        same_PxT = torch.tensor(paths) == gold[b, :size]
        torch.testing.assert_close(sure[b, :size], torch.softmax(scores, 0) @ same_PxT.double())
    weights = torch.randn(len(given), generator=generator, dtype=torch.float64)
    ours = torch.autograd.grad(given @ weights, inputs)
    theirs = torch.autograd.grad(expected @ weights, inputs)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b)
    assert not ours[0][~mask].any()  # padding has no say


@pytest.mark.parametrize('scheme', SCHEMES)
def test_best_path_is_the_best_of_those_that_the_scheme_allows(scheme):
    generator = torch.Generator().manual_seed(1)
    for _ in range(8):
        chain = random_chain(generator, scheme)
        labels = labels_of(('X',), scheme)
        emissions, _, mask, opens, closes = random_case(generator, len(labels), (4, 1, 3, 4))
        found = chain.best_labels(ChainWords(emissions, mask, opens, closes))
        for b, size in enumerate(mask.sum(1).tolist()):
            paths, scores = all_paths(chain, emissions[b], size, opens[b], closes[b])
            allowed = [
                (score.item(), path)
                for path, score in zip(paths, scores, strict=True)
                if is_allowed([labels[i] for i in path], scheme, opens[b], closes[b])
            ]
            assert tuple(found[b, :size].tolist()) == max(allowed)[1]


def is_allowed(tags, scheme, opens, closes):
    ends = ['O'] * bool(opens), ['O'] * bool(closes)
    return all(may_follow(a, b, scheme) for a, b in itertools.pairwise([*ends[0], *tags, *ends[1]]))


@pytest.mark.parametrize('scheme', SCHEMES)
def test_allowed_are_the_tags_that_mentions_can_have(scheme):
    labels = labels_of(('X', 'Y'), scheme)
    count = 0
    for size in (1, 2, 3):
        for tags in itertools.product(labels, repeat=size):
            # What mentions can have is what comes back from the spans that are read in it.
            iob2 = from_spans(spans(decode(tags, scheme)), size)
            assert is_allowed(tags, scheme, True, True) == (encode(iob2, scheme) == tags), tags
            count += 1
    assert count == sum(len(labels) ** n for n in (1, 2, 3))


def test_a_window_that_cuts_a_mention_may_begin_and_end_inside_it():
    labels = labels_of(('X',), 'bioul')
    chain = Chain(labels, 'bioul')
    inside = torch.zeros(1, 3, len(labels))
    inside[:, :, labels.index('I-X')] = 9
    mask, yes, no = torch.ones(1, 3, dtype=torch.bool), torch.tensor([True]), torch.tensor([False])
    read = lambda *ends: [labels[i] for i in chain.best_labels(ChainWords(inside, mask, *ends))[0].tolist()]  # noqa: E731
    assert read(no, no) == ['I-X', 'I-X', 'I-X']
    assert read(yes, no) == ['B-X', 'I-X', 'I-X']
    assert read(yes, yes) == ['B-X', 'I-X', 'L-X']


def test_an_untrained_chain_is_the_cross_entropy_word_by_word():
    generator = torch.Generator().manual_seed(0)
    chain = Chain(labels_of(('X',), 'bio'), 'bio')
    emissions, gold, mask, opens, closes = random_case(generator, 3, (5, 2, 1))
    expected = torch.nn.functional.cross_entropy(emissions[mask], gold[mask], reduction='sum')
    given = -chain.double().log_likelihood(ChainWords(emissions, mask, opens, closes), gold).sum()
    torch.testing.assert_close(given, expected)


# ---- mentions as spans


def ways_to_cut(size, types):
    """Every way to cut words into mentions (first word, one behind the last, type) and words outside."""
    if not size:
        return [()]
    ways = list(ways_to_cut(size - 1, types))
    for begin in range(size):
        ways += [(*way, (begin, size, kind)) for way in ways_to_cut(begin, types) for kind in range(types)]
    return ways


def tags_of_cut(cut, size, labels):
    tags = [labels.index('O')] * size
    for begin, end, kind in cut:
        tags[begin:end] = [labels.index(f'I-{"XY"[kind]}')] * (end - begin)
        tags[begin] = labels.index(f'B-{"XY"[kind]}')
    return tags


def score_of_cut(segments, emissions_TxE, cut):
    """Term by term."""
    outside, first, every, last = emissions_TxE.split([1, *[len(segments.tags_Kx2)] * 3], dim=1)
    within = {word for begin, end, _ in cut for word in range(begin, end)}
    total = sum(outside[word, 0] for word in range(len(emissions_TxE)) if word not in within)
    for begin, end, kind in cut:
        length = segments.lengths_NxK[min(end - begin, LENGTHS) - 1, kind]
        total = total + first[begin, kind] + every[begin:end, kind].sum() + last[end - 1, kind] + length
    return total


@pytest.mark.parametrize('seed', range(2))
def test_spans_are_scored_and_chosen_among_all_ways_to_cut(seed):
    generator = torch.Generator().manual_seed(seed)
    labels = labels_of(('X', 'Y'), 'bio')
    segments = Segments(labels).double()
    torch.nn.init.normal_(segments.lengths_NxK, generator=generator)
    sizes = (4, 1, 3, 2)
    emissions, _, mask, opens, closes = random_case(generator, segments.scores, sizes)
    cuts = [ways_to_cut(size, 2) for size in sizes]
    gold = [random.Random(seed + b).choice(ways) for b, ways in enumerate(cuts)]
    ids = torch.zeros(mask.shape, dtype=torch.int64)
    for b, cut in enumerate(gold):
        ids[b, : sizes[b]] = torch.tensor(tags_of_cut(cut, sizes[b], labels))
    emissions.requires_grad_()
    words = ChainWords(emissions, mask, opens, closes)
    given, expected, best = segments.log_likelihood(words, ids), [], segments.best_labels(words)
    sure = segments.probabilities(words, ids)
    for b, (size, ways) in enumerate(zip(sizes, cuts, strict=True)):
        scores = torch.stack([score_of_cut(segments, emissions[b, :size], cut) for cut in ways])
        expected.append(scores[ways.index(gold[b])] - torch.logsumexp(scores, 0))
        tagged = [tags_of_cut(cut, size, labels) for cut in ways]
        same_PxT = torch.tensor(tagged) == ids[b, :size]
        torch.testing.assert_close(sure[b, :size], torch.softmax(scores, 0) @ same_PxT.double())
        tags = [labels[i] for i in best[b, :size].tolist()]
        found = tuple(sorted((first, last + 1, 'XY'.index(kind)) for kind, first, last in spans(tags)))
        assert found == ways[int(scores.argmax())]
    torch.testing.assert_close(given, torch.stack(expected))
    inputs = [emissions, segments.lengths_NxK]
    ours, theirs = (torch.autograd.grad(x.sum(), inputs) for x in (given, torch.stack(expected)))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b)
    assert not ours[0][~mask].any()  # padding has no say


def test_a_mention_longer_than_any_length_and_one_that_nothing_begins_have_a_score():
    labels = labels_of(('X',), 'bio')
    segments, size = Segments(labels), LENGTHS + 5
    torch.nn.init.normal_(segments.lengths_NxK)
    emissions = torch.randn(1, size, segments.scores, generator=torch.Generator().manual_seed(0))
    words = ChainWords(emissions, torch.ones(1, size, dtype=torch.bool), *torch.ones(2, 1, dtype=torch.bool))
    ids = torch.full((1, size), labels.index('I-X'))  # its B- is in another window
    own = score_of_cut(segments, emissions[0], [(0, size, 0)])
    expected = own - segments.log_partition(words)[0]
    torch.testing.assert_close(segments.log_likelihood(words, ids)[0], expected)


# ---- every head


@pytest.mark.parametrize('head', HEADS)
def test_padding_and_neighbours_cannot_matter(bert, drugs, head):
    tokenizer, tagger = load_tagger(bert, TYPES, settings(head=head), 0)
    tagger.eval()
    windows = align(tokenizer, drugs.train[:12], 64, 8).windows
    labels = [piece_labels(w, drugs.train[w.example].tags, label_ids(tagger), 'first') for w in windows]
    if tagger.chain is not None:
        for parameter in tagger.chain.parameters():
            torch.nn.init.normal_(parameter)
        labels = [word_labels(w, drugs.train[w.example].tags, label_ids(tagger)) for w in windows]
    assert len({len(w.pieces) for w in windows}) > 3

    def batch(which):
        chosen = {'labels': [labels[i] for i in which], 'chained': tagger.chain is not None}
        return collate([windows[i] for i in which], pad=0, device='cpu', **chosen)

    together = batch(range(len(windows)))
    logits, ids = tagger(together), tagger.predict(together)
    weighted = 0.0
    for i, window in enumerate(windows):
        alone = batch([i])
        size = len(window.pieces)
        torch.testing.assert_close(tagger(alone)[0], logits[i, :size], atol=1e-5, rtol=1e-4)
        starts = list(window.starts)
        assert tagger.predict(alone)[0, starts].tolist() == ids[i, starts].tolist()
        weighted += tagger.loss(alone).item() * len(window.words)
    words = sum(len(w.words) for w in windows)
    assert tagger.loss(together).item() == pytest.approx(weighted / words, rel=1e-4)


def label_ids(tagger):
    return {label: i for i, label in enumerate(tagger.labels)}


@pytest.mark.parametrize(
    ('head', 'scheme', 'label_pieces'),
    [
        *((head, 'bio', 'first') for head in HEADS[1:]),
        ('linear', 'io', 'all'),
        ('linear', 'bioul', 'all'),
        ('crf', 'bioul', 'first'),
        # Slow: each has the head of one of the cases above and the scheme of another.
        pytest.param('bilstm', 'bioul', 'first', marks=pytest.mark.slow),
        pytest.param('bilstm_crf', 'io', 'first', marks=pytest.mark.slow),
    ],
)
def test_every_head_and_scheme_learns_gives_iob2_and_is_kept(
    bert, drugs, head, scheme, label_pieces, tmp_path
):
    # A single-word mention is told from a longer one by the word after it, which takes longer to learn.
    epochs = 8 if scheme == 'bioul' else 4
    chosen = settings(
        head=head, scheme=scheme, label_pieces=label_pieces, head_learning_rate=0.02, epochs=epochs
    )

    def save(tokenizer, tagger):
        save_model(ENTITIES, tokenizer, tagger, ENTITIES.reads(drugs, chosen), tmp_path / 'kept')

    first = finetune(ENTITIES, bert, drugs, chosen, 0, save=save)
    check_answers_again(tmp_path / 'kept', drugs.test, first.test)
    assert {tag for tags in first.test for tag in tags} <= {'O', 'B-Drug', 'I-Drug'}
    gold = [s.tags for s in drugs.test]
    most = score(gold, [decode(encode(tags, scheme), scheme) for tags in gold])['strict']['f1']
    assert score(gold, first.test)['strict']['f1'] >= most * (0.8 if scheme == 'bioul' else 0.95)
    again = finetune(ENTITIES, bert, drugs, dataclasses.replace(chosen, epochs=1), 0)
    assert again.first_loss == first.first_loss  # the same seed begins with the same head
    assert again.history[0]['loss'] < again.first_loss


def check_answers_again(folder, sentences, tags):
    """What `bx.predict` says of the bare sentences is what was predicted when the model was trained."""
    texts = [' '.join(one.words) for one in sentences]
    for text, one, said in zip(texts, tags, bx.predict(folder, texts), strict=True):
        ends = list(itertools.accumulate(map(len, text.split(' ')), lambda a, b: a + 1 + b))
        begins = [0, *(end + 1 for end in ends)]
        expected = [[begins[first], ends[last], kind] for kind, first, last in spans(one)]
        assert said['entities'] == expected
        assert all(0.2 < sure <= 1 for sure in said.get('probabilities', ()))


@pytest.fixture(scope='module')
def chained(bert, tmp_path_factory):
    """A kept tagger with a chain, which has learned nothing."""
    tokenizer, tagger = load_tagger(bert, TYPES, settings(head='bilstm_crf'), 0)
    folder = tmp_path_factory.mktemp('chained') / 'model'
    save_model(ENTITIES, tokenizer, tagger, Reads(64, 8), folder)
    return folder


def of_head(**changes):
    def change(folder):
        file = folder / 'head.json'
        record = read_json(file)
        write_json(file, {**record, **changes, 'built': record['built'] | changes.get('built', {})})

    return change


def cut(name):
    def change(folder):
        (folder / name).write_bytes((folder / name).read_bytes()[:-9])

    return change


def other_tensors(folder):
    """A file of tensors for which the record is right, but for the shapes."""
    tensors = load_file(folder / 'head.safetensors')
    save_file({**tensors, 'chain.begin_C': torch.zeros(7)}, folder / 'head.safetensors')
    of_head(sha256=sha256(folder / 'head.safetensors'))(folder)


@pytest.mark.parametrize(
    ('damage', 'message'),
    [
        (
            lambda folder: (folder / 'head.json').write_text('{'),
            r'head\.json: is damaged \(.*; keep the model again',
        ),
        (
            of_head(version=2),
            r'head\.json: is damaged \(of version 2, and this program reads version 1\); keep',
        ),
        (of_head(tensors=3), r'head\.json: is damaged \(tensors: not an object\); keep'),
        (
            of_head(built={'head': 'maxent'}),
            r"head\.json: is damaged \(built: .*head: 'maxent' is not one of linear",
        ),
        (of_head(built={'layers': 3}), r'head\.json: is damaged \(built: .*layers: no such key'),
        (
            of_head(built={'lstm_hidden': -1}),
            r'head\.json: is damaged \(built: .*lstm_hidden: must be at least 0',
        ),
        (
            of_head(built={'head': 'span'}),
            r'head\.json: chain\.begin_C is not as a head \(head=span, .* has it here',
        ),
        (
            of_head(labels=['O', 'B-X', 'I-X']),
            r'head\.json: has other labels than config\.json of its encoder; keep',
        ),
        (of_head(hf_class='AutoModel'), r'names AutoModel; a model that answers is one of'),
        (
            of_head(hf_class='AutoModelForSequenceClassification'),
            r'lacks bert\.pooler\.dense\.bias, .*, so its answers would be random',
        ),
        (
            other_tensors,
            r'head\.json: chain\.begin_C is not as a head \(head=bilstm_crf, .* has it here; keep',
        ),
        (
            lambda folder: (folder / 'head.safetensors').unlink(),
            r'head\.safetensors: is missing; restore it, or keep',
        ),
        (
            cut('head.safetensors'),
            r'head\.safetensors: is not the file that head\.json was written for; restore',
        ),
        (
            lambda folder: shutil.rmtree(folder / 'encoder'),
            r'encoder: no such folder; it must be a Hugging Face folder',
        ),
        (cut('encoder/model.safetensors'), r'encoder: cannot be loaded by transformers'),
    ],
)
def test_a_kept_head_that_is_damaged_is_refused_in_one_line(chained, damage, message, tmp_path):
    shutil.copytree(chained, tmp_path / 'model')
    damage(tmp_path / 'model')
    with pytest.raises(InputError, match=message) as error:
        bx.predict(tmp_path / 'model', ['the dose'])
    assert '\n' not in str(error.value)


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'members': ['seed-0', '../seed-1']}, r"damaged \('\.\./seed-1' among its members\); keep"),
        ({'members': ['seed-0']}, r'damaged \(fewer than two members\); keep'),
        ({'members': 'seed-0'}, r'damaged \(members: not a list\); keep'),
        ({'version': 2}, r'damaged \(of version 2, and'),
        ({'members': ['seed-0', 'seed-7']}, r'seed-7: no such folder'),
        ({'setting': 'a'}, r'seed-1: has other labels than .*seed-0, and they are to answer together; keep'),
        ({'task': 'none'}, r"plug-in 'none' is not installed; install"),
    ],
)
def test_seeds_that_answer_together_are_refused_in_one_line(chained, changes, message, tmp_path):
    record = KeptEnsemble(model='a', dataset='drugs', setting='standard', members=('seed-0', 'seed-1'))
    stored.join(dict.fromkeys(record.members, chained), record, Reads(64, 8), tmp_path / 'model')
    assert bx.predict(tmp_path / 'model', ['the dose']) == bx.predict(chained, ['the dose'])
    write_json(tmp_path / 'model' / 'ensemble.json', record.json() | changes)
    other = tmp_path / 'model' / 'seed-1' / 'encoder' / 'config.json'
    other.write_text(other.read_text().replace('Drug', 'Dose'))  # weights alone are linked
    with pytest.raises((InputError, ConfigError), match=message) as error:
        bx.predict(tmp_path / 'model', ['the dose'])
    assert '\n' not in str(error.value)


def test_io_reads_neighbouring_mentions_as_one_and_bioul_does_not(bert, drugs):
    gold = [s.tags for s in drugs.test]
    for scheme, lossless in (('io', False), ('bioul', True), ('bio', True)):
        there_and_back = [decode(encode(tags, scheme), scheme) for tags in gold]
        assert (score(gold, there_and_back)['default']['f1'] == 1) == lossless


def test_the_units_of_the_lstm(bert):
    sizes = {}
    for units in (0, 5):
        _, tagger = load_tagger(bert, TYPES, settings(head='bilstm', lstm_hidden=units), 0)
        sizes[units] = tagger.lstm.hidden_size, tagger.linear.in_features
        assert not any('classifier' in name for name, _ in tagger.named_parameters())
    assert sizes == {0: (16, 32), 5: (5, 10)}


def test_a_model_whose_weights_are_not_finite_is_refused_by_the_tensor(tmp_path):
    folder = save_encoder(tmp_path)
    weights = load_file(folder / 'model.safetensors')
    name = next(name for name in weights if name.endswith('layer.0.output.dense.weight'))
    weights[name][0, 0] = float('nan')
    save_file(weights, folder / 'model.safetensors', metadata={'format': 'pt'})
    with pytest.raises(InputError, match=r'layer\.0\.output\.dense\.weight holds values that are not finite'):
        load_tagger(folder, TYPES, settings(), 0)


@pytest.mark.parametrize('head', ['linear', 'bilstm_crf'])
def test_bfloat16_is_for_the_encoder_alone(bert, drugs, head):
    losses = {}
    for dtype in ('float32', 'bfloat16', 'auto'):
        tokenizer, tagger = load_tagger(bert, TYPES, settings(head=head, dtype=dtype), 0)
        tagger.eval()
        windows = align(tokenizer, drugs.train[:8], 64, 8).windows
        tags = [drugs.train[w.example].tags for w in windows]
        of = word_labels if tagger.chain is not None else lambda *given: piece_labels(*given, 'first')
        labels = [of(w, t, label_ids(tagger)) for w, t in zip(windows, tags, strict=True)]
        batch = collate(windows, pad=0, device='cpu', chained=tagger.chain is not None, labels=labels)
        scores = tagger(batch)
        assert scores.dtype == torch.float32
        assert (scores.bfloat16().float() != scores).any()  # not one rounded to 8 bits
        assert {p.dtype for p in tagger.parameters()} == {torch.float32}
        losses[dtype] = tagger.loss(batch).item()
    assert losses['auto'] == losses['float32']
    assert 0 < abs(losses['bfloat16'] - losses['float32']) < 0.02


# ---- labels and windows


def test_later_pieces_go_on_with_the_tag_in_every_scheme(bert):
    tokenizer, _ = load_tagger(bert, TYPES, settings(), 0)
    tags = ('B-X', 'I-X', 'B-X', 'O')
    (window,) = align(tokenizer, [Sentence(('zolmipan',) * 4, tags)], 64, 8).windows
    expected = {
        'bio': 'B-X I-X I-X I-X B-X I-X O O',
        'io': 'I-X I-X I-X I-X I-X I-X O O',
        'bioul': 'B-X I-X L-X L-X U-X L-X O O',
    }
    for scheme, wanted in expected.items():
        labels = labels_of(('X',), scheme)
        ids = piece_labels(window, encode(tags, scheme), {t: i for i, t in enumerate(labels)}, 'all')
        assert [labels[i] for i in ids if i != IGNORED] == wanted.split()
        # Between the last piece of a word and the next word nothing contradicts the scheme.
        pieces = wanted.split()
        assert all(may_follow(a, b, scheme) for a, b in zip(pieces[1::2], pieces[2::2], strict=False))


@pytest.mark.parametrize('head', ['linear', 'bilstm_crf'])
def test_a_sentence_of_600_pieces_has_one_tag_a_word_from_windows_with_context(bert, head):
    generator = random.Random(0)
    words = tuple(generator.choice((*DRUGS, *OTHER)) for _ in range(450))
    sentence = Sentence(words, ('O',) * len(words))
    chosen = settings(head=head, max_pieces=64, overlap_pieces=16)
    tokenizer, tagger = load_tagger(bert, TYPES, chosen, 0)
    aligned = align(tokenizer, [sentence], 64, 16)
    assert (
        sum(end - start for w in aligned.windows for start, end in zip(w.starts, w.ends, strict=True)) >= 600
    )
    assert [i for w in aligned.windows for i in w.words] == list(range(len(words)))
    assert [w.opens for w in aligned.windows] == [True] + [False] * (len(aligned.windows) - 1)
    assert [w.closes for w in aligned.windows] == [False] * (len(aligned.windows) - 1) + [True]
    for at, window in enumerate(aligned.windows):
        assert list(window.shown) == list(range(window.shown[0], window.shown[-1] + 1))
        assert set(window.words) <= set(window.shown)
        assert at == 0 or window.starts[0] - 1 >= 16 - 2
        assert window.closes or len(window.pieces) - 1 - window.ends[-1] >= 16 - 2
        first_pieces = tokenizer.convert_ids_to_tokens([window.pieces[s] for s in window.shown_starts])
        assert all(words[i].startswith(p) for i, p in zip(window.shown, first_pieces, strict=True))
    (tags,) = predict(ENTITIES, tagger, [sentence], aligned.windows, chosen)
    assert len(tags) == len(words)
    # Each word has the tag that its own window gives it, however the windows are batched.
    for window in aligned.windows:
        only = [window]
        (alone,) = predict(ENTITIES, tagger, [sentence], only, chosen)
        assert [alone[i] for i in window.words] == [tags[i] for i in window.words]
    assert len(set(tags)) > 1  # an untrained head, so that equal tags mean something


@pytest.mark.parametrize('scheme', SCHEMES)
@pytest.mark.parametrize('head', ['linear', 'crf'])
def test_words_without_pieces_inside_a_mention_are_o(bert, tmp_path, head, scheme):
    train = 'zolmipan\tB-Drug\n\u200b\tI-Drug\ndose\tI-Drug\ngot\tO\n\u00ad\tO\n\n' * 20
    for split in ('train', 'devel', 'test'):
        (tmp_path / f'{split}.tsv').write_text(train, 'utf-8')
    dataset = read_dataset(tmp_path)
    outcome = finetune(ENTITIES, bert, dataset, settings(head=head, scheme=scheme, epochs=2), 0)
    assert outcome.alignment['zero_piece_words'] == 3 * 20 * 2
    for tags in outcome.test:
        assert (tags[1], tags[4]) == ('O', 'O')
        assert len(tags) == 5
    assert any(tags[0] != 'O' for tags in outcome.test)
    # Gold mentions stay as they are: nothing is dropped from the reference.
    assert score([s.tags for s in dataset.test], outcome.test)['default']['gold'] == 20


def test_a_sentence_of_100_000_words_through_a_chain(bert):
    sentence = Sentence(('of', 'zolmipan') * 50_000, ('O',) * 100_000)
    chosen = settings(head='crf', batch_sentences=64)
    tokenizer, tagger = load_tagger(bert, TYPES, chosen, 0)
    aligned = align(tokenizer, [sentence], 128, 32)
    some = aligned.windows[:200]
    assert [i for w in aligned.windows for i in w.words] == list(range(100_000))
    (tags,) = predict(ENTITIES, tagger, [sentence], some, chosen)
    assert len(tags) == 100_000


# ---- other encoders


@pytest.mark.parametrize('kind', ENCODERS)
def test_encoders_of_other_families(kind, drugs, tmp_path):
    from transformers import AutoModelForTokenClassification

    folder = save_encoder(tmp_path, kind)
    small = dataclasses.replace(drugs, train=drugs.train[:60], test=drugs.test[:10])
    for head in ('linear', 'bilstm_crf'):
        chosen = settings(head=head, epochs=2)
        kept = tmp_path / head

        def save(tokenizer, tagger, kept=kept, chosen=chosen):
            save_model(ENTITIES, tokenizer, tagger, ENTITIES.reads(small, chosen), kept)

        outcome = finetune(ENTITIES, folder, small, chosen, 0, save=save)
        check_answers_again(kept, small.test, outcome.test)
        assert outcome.history[-1]['loss'] < outcome.history[0]['loss'] < outcome.first_loss
        tokenizer, tagger = load_tagger(folder, TYPES, dataclasses.replace(chosen, dropout=0.0), 0)
        windows = align(tokenizer, small.test, 64, 8).windows
        batch = collate(windows, pad=tagger.encoder.config.pad_token_id, device='cpu', chained=False)
        tagger.train()  # every dropout of the family is switched off by the one key
        torch.testing.assert_close(tagger(batch), tagger(batch))
        torch.testing.assert_close(tagger(batch), tagger.eval()(batch), atol=1e-5, rtol=1e-4)
    torch.manual_seed(0)
    plain = AutoModelForTokenClassification.from_pretrained(folder, num_labels=3).eval()
    _, tagger = load_tagger(folder, TYPES, settings(), 0)
    theirs = plain(input_ids=batch.pieces_BxL, attention_mask=batch.mask_BxL).logits
    torch.testing.assert_close(tagger.eval()(batch), theirs)  # padding and seed as in transformers


@pytest.mark.parametrize('kind', ['roberta', 'modernbert'])
def test_a_byte_level_word_is_spelled_with_its_space(tmp_path, kind):
    tokenizer, tagger = load_tagger(save_encoder(tmp_path / 'given', kind), TYPES, settings(), 0)
    save_model(ENTITIES, tokenizer, tagger, Reads(), tmp_path / 'kept')
    for known in (tokenizer, load_for_words(tmp_path / 'kept')):  # once, however often it is read and saved
        (window,) = align(known, [Sentence(('got', 'of'), ('O', 'O'))], 64, 8).windows
        assert known.convert_ids_to_tokens(window.pieces) == ['<s>', 'Ġgot', 'Ġof', '</s>']


@pytest.mark.parametrize('hf_class', ['RobertaTokenizerFast', 'PreTrainedTokenizerFast'])
def test_words_of_a_real_set_cost_as_many_pieces_as_its_sentences(tmp_path, data, hf_class):
    """1.24 a word of the test of NCBI-disease with RoBERTa's vocabulary, where each word alone would cost 1.49."""
    files = data / 'vocab' / 'roberta-base'
    lines = (files / 'merges.txt').read_text('utf-8').splitlines()[1:]
    merges = [tuple(line.split(' ')) for line in lines]
    save_byte_level(tmp_path, hf_class, json.loads((files / 'vocab.json').read_text('utf-8')), merges)
    tokenizer = load_for_words(tmp_path)
    sentences = read_split(data / 'ner' / 'ncbi-disease', 'test')
    of_lists = tokenizer([list(s.words) for s in sentences], is_split_into_words=True)['input_ids']
    of_texts = load_in_transformers(tmp_path)([' ' + ' '.join(s.words) for s in sentences])['input_ids']
    assert of_lists == of_texts
    pieces, words = sum(len(row) - 2 for row in of_lists), sum(len(s.words) for s in sentences)
    assert round(pieces / words, 2) == 1.24


def test_positions_of_a_table_begin_behind_the_row_of_padding(tmp_path):
    folder = save_encoder(tmp_path, 'roberta')
    # RoBERTa numbers its positions after the padding's: 130 rows are 128 positions.
    (folder / 'tokenizer_config.json').write_text(
        json.dumps(json.loads((folder / 'tokenizer_config.json').read_text()) | {'model_max_length': 999})
    )
    load_tagger(folder, TYPES, settings(max_pieces=128), 0)
    with pytest.raises(ConfigError, match=r'config\.finetune\.max_pieces: 129, but .* has 128 positions'):
        load_tagger(folder, TYPES, settings(max_pieces=129), 0)


# ---- the default


@pytest.mark.parametrize('head', ['linear', 'crf', 'span', 'bilstm'])
def test_a_batch_in_parts_has_the_loss_of_the_batch(bert, drugs, head, monkeypatch):
    chosen = settings(epochs=2, learning_rate=1e-3, dropout=0.0, head=head)
    in_parts = finetune(ENTITIES, bert, drugs, chosen, 7)
    cut = []
    monkeypatch.setattr(
        training, 'parts', lambda lengths: cut.append(parts(lengths)) or [range(len(lengths))]
    )
    whole = finetune(ENTITIES, bert, drugs, chosen, 7)
    assert max(map(len, cut)) > 1
    assert [h['loss'] for h in in_parts.history] == pytest.approx(
        [h['loss'] for h in whole.history], rel=1e-3
    )


@pytest.mark.parametrize('dropout', [0.0, 0.1])
def test_the_default_is_a_plain_loop_around_transformers(bert, drugs, dropout, monkeypatch):
    """AutoModelForTokenClassification, torch's AdamW on every parameter, clipping, the slanted triangle.

    With dropout whole batches have to be computed, as there, for the same places to be dropped.
    """
    from transformers import AutoConfig, AutoModelForTokenClassification, AutoTokenizer

    if dropout:
        monkeypatch.setattr(training, 'parts', lambda lengths: [range(len(lengths))])
    chosen = settings(epochs=3, learning_rate=1e-3, weight_decay=0.3, dropout=dropout)
    ours = finetune(ENTITIES, bert, drugs, chosen, 7)
    torch.manual_seed(7)
    config = AutoConfig.from_pretrained(
        bert, num_labels=3, hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout
    )
    model = AutoModelForTokenClassification.from_pretrained(bert, config=config).train()
    tokenizer = AutoTokenizer.from_pretrained(bert)
    encoded = tokenizer([list(s.words) for s in drugs.train], is_split_into_words=True)
    names = {'O': 0, 'B-Drug': 1, 'I-Drug': 2}
    labels = []
    for i, sentence in enumerate(drugs.train):
        words = encoded.word_ids(i)
        first = [w is not None and w != before for w, before in zip(words, [None, *words], strict=False)]
        labels.append([names[sentence.tags[w]] if f else -100 for w, f in zip(words, first, strict=True)])
    decayed = lambda name: 'LayerNorm' not in name and not name.endswith('bias')  # noqa: E731
    groups = [
        {'params': [p for n, p in model.named_parameters() if decayed(n)], 'weight_decay': 0.3},
        {'params': [p for n, p in model.named_parameters() if not decayed(n)], 'weight_decay': 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=1e-3)
    count = len(drugs.train)
    updates, done, losses = 3 * len(drawn(count, 8, (7, 1))), 0, []
    for epoch in (1, 2, 3):
        epoch_losses = []
        for rows in drawn(count, 8, (7, epoch)):
            batch = tokenizer.pad({'input_ids': [encoded['input_ids'][i] for i in rows]}, return_tensors='pt')
            target = torch.nn.utils.rnn.pad_sequence([torch.tensor(labels[i]) for i in rows], True, -100)
            for group in optimizer.param_groups:
                group['lr'] = 1e-3 * slanted_triangle(done, updates, 0.1)
            loss = model(**{k: batch[k] for k in ('input_ids', 'attention_mask')}, labels=target).loss
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            epoch_losses.append(loss.item())
            done += 1
        losses.append(np.mean(epoch_losses))
    np.testing.assert_allclose([h['loss'] for h in ours.history], losses, rtol=2e-3)
    assert ours.first_loss == pytest.approx(1.1, abs=0.2)  # the logarithm of three labels
    assert ours.updates == updates
    assert ours.trained_parameters == sum(p.numel() for p in model.parameters())
    counts = np.array([sum(t == tag for s in drugs.train for t in s.tags) for tag in names])
    shares = counts / counts.sum()
    assert ours.chance_loss == pytest.approx(-(shares * np.log(shares)).sum(), abs=1e-4)
