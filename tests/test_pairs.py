"""Pairs of texts: the published algorithm, rows that hold them, and next sentence prediction as transformers has it."""

import functools
import gzip
import itertools
import json
import random
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toy_pretraining import (
    PAIRS,
    assert_same_bits,
    copy_of,
    experiment,
    killed_copy,
    parameters,
    prepare_pairs,
    pretrained,
)

from bioptimus_jax.corpus.documents import Document
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.model.families.bert import Bert
from bioptimus_jax.model.families.roberta import Roberta
from bioptimus_jax.model.tensors import load_folder, to_tensors
from bioptimus_jax.model.trees import flatten
from bioptimus_jax.pretrain import curriculum
from bioptimus_jax.pretrain.batches import Batches
from bioptimus_jax.pretrain.checkpoint import load_phase
from bioptimus_jax.pretrain.objective import make_objective
from bioptimus_jax.pretrain.plan import check
from bioptimus_jax.pretrain.shape import RowCounts
from bioptimus_jax.pretrain.sharding import batch_sharding, make_mesh
from bioptimus_jax.pretrain.step import example_at, sharded_step
from bioptimus_jax.report.measures import read_measures
from bioptimus_jax.report.sections.corpus import documents as documents_table
from bioptimus_jax.rows.blocks import FOLLOWS, RANDOM, RowPairs
from bioptimus_jax.rows.config import Rows as RowSettings
from bioptimus_jax.rows.layouts import LAYOUTS, PAIRED, make_pairs
from bioptimus_jax.rows.parts import pair_parts, part_bounds
from bioptimus_jax.rows.stored import Rows
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.folder import Run
from bioptimus_jax.surgery.graft import check_rows
from bioptimus_jax.tokenizer.config import Vocab
from bioptimus_jax.tokenizer.kinds.bytelevel import KIND as BYTELEVEL
from bioptimus_jax.tokenizer.kinds.wordpiece import SPECIAL_TOKENS, make
from bioptimus_jax.tokenizer.subwords import load as load_subwords

SEED = 7
PHASE = '0.2'  # whole words


def by_the_published_algorithm(documents, longest, short, random_second, generator):
    """The published algorithm on lists of sentences, each a list of pieces, which are moved and deleted one by one as
    in the paper's code."""
    pairs, surplus, room = [], 0, longest - 3
    for number, document in enumerate(documents):
        target = room
        if generator.random() < short:
            target = int(generator.integers(2, room + 1))
        waiting, chunk = list(document), []
        while waiting or chunk:
            if waiting:
                chunk.append(waiting.pop(0))
            if waiting and sum(map(len, chunk)) < target:
                continue
            count = len(chunk)
            of_first = int(generator.integers(1, count)) if count > 1 else 1
            first = [piece for sentence in chunk[:of_first] for piece in sentence]
            is_random = random_second(count, surplus, generator.random())
            surplus += 2 * is_random - 1
            second = [piece for sentence in chunk[of_first:] for piece in sentence]
            if is_random:
                waiting = chunk[of_first:] + waiting  # put back
                second, tries, other = [], 0, number
                while tries < 10 and other == number:
                    other, tries = int(generator.integers(len(documents))), tries + 1
                for sentence in documents[other][int(generator.integers(len(documents[other]))) :]:
                    second += sentence
                    if len(second) >= target - len(first):
                        break
            elif count == 1 and len(first) > 1:
                at = int(generator.integers(1, len(first)))
                first, second = first[:at], first[at:]
            while len(first) + len(second) > room:
                longer = first if len(first) > len(second) else second
                del longer[0 if generator.random() < 0.5 else -1]
            pairs.append((first, second, is_random))
            chunk = []
    return pairs


def drawn_documents(seed, count=40):
    """Sentences of 1 to 30 pieces; every piece of every document is another number."""
    rng, piece, documents = random.Random(seed), iter(range(10**9)), []
    for _ in range(count):
        documents.append(
            [[next(piece) for _ in range(rng.choice([1, 2, 5, 9, 30]))] for _ in range(rng.randint(1, 12))]
        )
    return documents


RULES = {
    'pairs': lambda count, surplus, draw: count < 2 or draw < 0.5,
    'pairs_exact_half': lambda count, surplus, draw: (
        True if count < 2 else surplus < 0 if surplus else draw < 0.5
    ),
    'two_segments': lambda count, surplus, draw: False,
}


@pytest.mark.parametrize('longest', [8, 40, 128])
@pytest.mark.parametrize('layout', PAIRED)
def test_pairs_are_those_of_the_published_algorithm(layout, longest):
    documents = drawn_documents(longest)
    bounds = [np.cumsum([0, *map(len, document)]).tolist() for document in documents]
    pieces = [list(itertools.chain(*document)) for document in documents]
    wanted = by_the_published_algorithm(
        documents, longest, 0.3, RULES[layout], np.random.default_rng((SEED, longest))
    )
    made = list(
        make_pairs(bounds, longest, 0.3, LAYOUTS[layout].is_random, np.random.default_rng((SEED, longest)))
    )
    found = [(pieces[p.document][slice(*p.first)], pieces[p.other][slice(*p.second)], p.random) for p in made]
    assert found == wanted
    assert all(len(first) + len(second) <= longest - 3 and first for first, second, _ in found)
    random_ones = sum(p.random for p in made)
    if layout == 'pairs':
        assert all(p.other != p.document for p in made if p.random)
    elif layout == 'pairs_exact_half' and longest > 8:
        assert abs(2 * random_ones - len(made)) <= 2
    else:
        assert layout == 'pairs_exact_half' or not random_ones


def test_no_sentence_is_lost_where_a_random_text_replaced_it():
    """Where length has no bound the texts of a document that are its own follow one another without a gap."""
    bounds = [[0, 3, 5, 9, 12], [0, 2], [0, 4, 8]]
    made = list(make_pairs(bounds, 10**6, 1.0, LAYOUTS['pairs'].is_random, np.random.default_rng(SEED)))
    for document, own in enumerate(bounds):
        texts = [
            span
            for p in made
            if p.document == document
            for span in ([p.first] if p.random else [p.first, p.second])
        ]
        assert (texts[0][0], texts[-1][1]) == (0, own[-1])
        assert [begin for begin, _ in texts[1:]] == [end for _, end in texts[:-1]]


@pytest.mark.parametrize('carries_space', [False, True])
def test_sentences_together_are_the_pieces_of_the_text(carries_space):
    text = 'Title of it\nThe dose (5 mg) was low. It rose by 0.5 in p53.  Then\tit fell.\0 An end? Yes'
    if carries_space:
        known = BYTELEVEL.train({'dose': 5}, Vocab(size=300, lowercase=False), None)
    else:
        letters = 'abcdefghijklmnopqrstuvwxyz0123456789'
        known = make([*SPECIAL_TOKENS, *letters, *'.()?', *(f'##{letter}' for letter in letters)], True)
    encoding = known.encode([text])[0]
    bounds = part_bounds(text, encoding.offsets)
    assert (bounds[0], bounds[-1]) == (0, len(encoding.ids))
    assert bounds == sorted(set(bounds))
    ends = [text[: encoding.offsets[at - 1][1]].rstrip(' \0') for at in bounds[1:]]
    assert [end.split()[-1] for end in ends] == ['it', 'low.', 'p53.', 'fell.', 'end?', 'Yes']


@pytest.mark.parametrize(('longest', 'wanted'), [(128, 0.585), (512, 0.581)])
def test_the_share_of_random_pairs_of_real_abstracts(longest, wanted, data):
    """Systematically above a half: what is left of a document in one sentence has no other second text."""
    file = data / 'pubmed' / 'abstracts-00000-of-00004.jsonl.gz'
    vocabulary = data / 'vocab' / 'bert-base-uncased'
    if not file.is_file() or not vocabulary.is_dir():
        pytest.skip(f'no real abstracts or vocabulary in {data}')
    texts = []
    with gzip.open(file, 'rt') as lines:
        for line in lines:
            record = json.loads(line)
            if len(record['abstract'].split()) >= 128:
                texts.append(Document(str(record['id']), record['abstract']))
            if len(texts) == 600:
                break
    settings = RowSettings(layout='pairs', max_document_pieces=longest)
    parts, counted = pair_parts([texts], load_subwords(vocabulary), settings, 0)
    assert counted['random_pairs'] / counted['pairs'] == pytest.approx(wanted, abs=0.03)
    full = np.mean([len(part.tokens) for part in parts]) / longest
    assert full == pytest.approx({128: 0.91, 512: 0.55}[longest], abs=0.05)


@pytest.fixture(scope='module')
def paired(tmp_path_factory):
    """A run of documents of one to eight sentences, packed as pairs."""
    return prepare_pairs(tmp_path_factory.mktemp('pairs'))


def nsp(folder, **changes):
    return experiment(folder, **(PAIRS | {key.replace('__', '.'): value for key, value in changes.items()}))


def test_rows_hold_pairs_and_say_so_whatever_the_number_of_workers(paired, tmp_path):
    run = Run(paired / 'run', nsp(paired), quiet=True)
    rows = Rows(run.folder('rows'), 'train')
    known = load_subwords(run.folder('vocab'))
    batch = rows.read(np.arange(len(rows)))
    seen = {FOLLOWS: 0, RANDOM: 0}
    for tokens, lengths, firsts, labels in zip(
        batch['tokens'], batch['segment_lengths'], batch['first_lengths'], batch['labels']
    ):
        for begin, length, first, label in zip(np.cumsum(lengths) - lengths, lengths, firsts, labels):
            if not length:
                assert (first, label) == (0, 0)
                continue
            pair = tokens[begin : begin + length]
            seps = np.flatnonzero(pair == known.sep)
            assert np.flatnonzero(pair == known.cls).tolist() == [0]
            assert seps.tolist() == [first - 1, length - 1]
            assert 5 <= length <= 32
            seen[label] += 1
    counts = run.manifest('rows').counts['train']
    assert counts['pairs'] == sum(seen.values())
    assert counts['share_random'] == pytest.approx(seen[RANDOM] / counts['pairs'], abs=1e-4)
    assert 0.5 < counts['share_random'] < 0.75
    assert counts['words'] < counts['tokens'] == batch['segment_lengths'].sum()
    assert f'random {counts["share_random"]:.1%}'.split()[1] in documents_table(read_measures(run)).note
    other = copy_of(paired, tmp_path)
    shutil.rmtree(other / 'rows')
    again = Run(other, nsp(paired, runtime__workers=2), quiet=True)
    execute(again, STAGES['rows'])
    assert again.manifest('rows').content == run.manifest('rows').content


def test_token_types_and_places_of_pairs_by_hand():
    batch = {
        'segment_lengths': np.array([[4, 3, 0], [8, 0, 0]]),
        'first_lengths': np.array([[2, 3, 0], [5, 0, 0]]),
        'labels': np.array([[1, 2, 0], [2, 0, 0]]),
    }
    positions = np.array([[0, 1, 2, 3, 0, 1, 2, 0], list(range(8))])
    segments = np.array([[1, 1, 1, 1, 2, 2, 2, 0], [1] * 8])
    pairs = RowPairs.of(batch, positions, segments)
    assert pairs.types_BxL.tolist() == [[0, 0, 1, 1, 0, 0, 0, 0], [0] * 5 + [1] * 3]
    assert pairs.begins_BxG.tolist() == [[0, 4, 7], [0, 7, 7]]


class Parts:
    """Objective, step and batch of the paired run, without dropout."""

    def __init__(self, folder, devices=1, fsdp=1, **changes):
        wanted = dict(model__dropout=0.0, model__attention_dropout=0.0, pretrain__clip_norm=0)
        run = Run(folder / 'run', nsp(folder, **wanted, **changes), quiet=True)
        architecture, params, _ = load_folder(run.folder('surgery') / 'model')
        self.architecture = Bert(**{**vars(architecture), 'dropout': 0.0, 'attention_dropout': 0.0})
        rows, mesh = Rows(run.folder('rows'), 'train'), make_mesh(devices, fsdp)
        known = load_subwords(run.folder('vocab'))
        self.objective = make_objective(run.config, self.architecture, known, rows.pieces, mesh, print)
        schedule = curriculum.make_schedule(run.config, RowCounts(len(rows), 1, 1))
        self.table = curriculum.table(schedule, run.config)
        self.batch = Batches(rows, 8, 0, batch_sharding(mesh), self.objective.reads).at(0)
        self.step, self.state = sharded_step(self.objective, mesh, params)

    @functools.cached_property
    def example(self):
        return jax.jit(lambda batch: example_at(self.objective, batch, self.table, jnp.int32(0)))(self.batch)


@pytest.fixture(scope='module')
def parts(paired):
    """Parts of the paired run as it is; nothing may change them."""
    return Parts(paired)


def test_loss_and_gradients_are_those_of_transformers_on_unpacked_pairs(parts, paired):
    """And in two micro-batches on two devices the step has the gradient of both means over the whole batch."""
    import torch
    import transformers

    params = jax.tree.map(lambda leaf: np.array(leaf) * 3, parts.state['params'])  # away from even chances
    example = parts.example

    def means(params):
        terms, _ = parts.objective.loss(params, {}, example.rows, None)
        found = {name: terms[name] / weight for name, weight in example.weights.items()}
        return sum(found.values()), found

    (_, ours), gradients = jax.jit(jax.value_and_grad(means, has_aux=True))(params)
    gradients = flatten(gradients)

    model = transformers.BertForPreTraining(
        transformers.BertConfig(**parts.architecture.to_config(), attn_implementation='eager')
    )
    tensors = {
        n: torch.from_numpy(np.array(t)) for n, t in to_tensors(params, parts.objective.paired).items()
    }
    missing, unexpected = model.load_state_dict(tensors, strict=False)
    assert not unexpected
    assert all('decoder' in name or 'position_ids' in name for name in missing)
    model.train()
    rows = jax.tree.map(np.asarray, example.rows)
    lengths, firsts, labels = (
        np.asarray(parts.batch[name]) for name in ('segment_lengths', 'first_lengths', 'labels')
    )
    masked = rows.masked
    wide = np.full(masked.inputs_L.shape, -100)
    for row in range(len(wide)):
        for slot, target, weight in zip(masked.slots_M[row], masked.targets_M[row], masked.weights_M[row]):
            if weight:
                wide[row, slot] = target
    padded = {name: [] for name in ('input_ids', 'token_type_ids', 'attention_mask', 'labels')}
    following = []
    for row, segment in zip(*np.nonzero(lengths)):
        begin, length = lengths[row, :segment].sum(), lengths[row, segment]
        rest = 32 - length
        padded['input_ids'].append(np.r_[masked.inputs_L[row, begin : begin + length], [0] * rest])
        padded['token_type_ids'].append(np.r_[np.arange(length) >= firsts[row, segment], [0] * rest])
        padded['attention_mask'].append(np.r_[[1] * length, [0] * rest])
        padded['labels'].append(np.r_[wide[row, begin : begin + length], [-100] * rest])
        following.append(int(labels[row, segment] == RANDOM))
    assert 0 < sum(following) < len(following)
    arrays = {name: torch.from_numpy(np.stack(value).astype(np.int64)) for name, value in padded.items()}
    theirs = model(**arrays, next_sentence_label=torch.tensor(following))
    theirs.loss.backward()
    head, loss = theirs.seq_relationship_logits.detach(), float(theirs.loss.detach())
    assert float(sum(ours.values())) == pytest.approx(loss, rel=1e-5)
    assert float(ours['pairs']) == pytest.approx(
        float(torch.nn.functional.cross_entropy(head, torch.tensor(following))), rel=1e-5
    )
    named = dict(model.named_parameters())
    largest = max(np.abs(g).max() for g in gradients.values())
    for path, gradient in gradients.items():
        other = named[parts.objective.paired.tensor_name(path)].grad.numpy()
        gradient = np.asarray(gradient)[: len(other)] if path in parts.architecture.padded else gradient
        other = other.T if path.endswith('/kernel') else other
        np.testing.assert_allclose(gradient, other, atol=2e-5 * largest, err_msg=path)
    types = gradients['embeddings/token_type_embeddings/embedding']
    assert np.abs(types[1]).max() > 0

    many = Parts(paired, devices=2, fsdp=2)
    many.state['params'] = jax.tree.map(
        lambda new, old: jax.device_put(new, old.sharding), params, many.state['params']
    )
    state, metrics = many.step(many.state, many.batch, many.table)
    assert float(metrics['loss']) == pytest.approx(loss, rel=1e-5)
    assert float(metrics['nsp_loss']) == pytest.approx(float(ours['pairs']), rel=1e-5)
    right = (head.argmax(-1) == torch.tensor(following)).float().mean()
    assert float(metrics['nsp_accuracy']) == pytest.approx(float(right))
    for path, moment in flatten(state['optimizer'][1].mu).items():
        np.testing.assert_allclose(
            np.asarray(moment) / 0.1, gradients[path], atol=2e-5 * largest, err_msg=path
        )


def test_a_pair_does_not_see_another(parts):
    example, params = parts.example, parts.state['params']
    segments = np.asarray(example.rows.segments_BxL)
    row = int((segments == 2).any(axis=1).argmax())
    second = segments[row] == 2
    assert second.any()

    @jax.jit
    def logits(tokens_BxL):
        masked = example.rows.masked._replace(inputs_L=tokens_BxL)
        rows = example.rows._replace(masked=masked)
        batch = {
            'tokens': rows.masked.inputs_L,
            'segments': rows.segments_BxL,
            'positions': rows.positions_BxL,
            'token_types': rows.pairs.types_BxL,
        }
        states = parts.architecture.encode(params, batch)
        first = jnp.take_along_axis(states, rows.pairs.begins_BxG[..., None], axis=1)
        return parts.objective.paired.pair_logits(params, first)

    tokens = np.array(example.rows.masked.inputs_L)
    before = np.asarray(logits(tokens))
    tokens[row, second] = 7
    after = np.array(logits(tokens))
    assert (after[row, 1] != before[row, 1]).any()
    after[row, 1] = before[row, 1]
    np.testing.assert_array_equal(after, before)


def test_words_do_not_join_across_the_separator(parts):
    """The second text may begin within a word, as ##x: in BERT's own rule that goes on with the word before [SEP]."""
    vocabulary = parts.objective.vocabulary
    begins = [i for i, token in enumerate(vocabulary.tokens) if i > 4 and not token.startswith('##')]
    inside = [i for i, token in enumerate(vocabulary.tokens) if token.startswith('##')]
    text = [
        vocabulary.cls,
        begins[0],
        inside[0],
        vocabulary.sep,
        inside[1],
        inside[2],
        begins[1],
        vocabulary.sep,
    ]
    tokens = np.zeros((64, 16), np.int32)
    tokens[:, :8] = text
    batch = {
        'tokens': tokens,
        'word_starts': tokens > 0,
        'segment_lengths': np.full((64, 1), 8, np.int32),
        'first_lengths': np.full((64, 1), 4, np.int32),
        'labels': np.ones((64, 1), np.int32),
    }
    example = jax.jit(lambda batch: example_at(parts.objective, batch, parts.table, jnp.int32(0)))(batch)
    masked = jax.tree.map(np.asarray, example.rows.masked)
    alone = 0
    for slots, weights, unit_begins in zip(masked.slots_M, masked.weights_M, masked.begins_M):
        drawn = {int(slot): bool(at) for slot, weight, at in zip(slots, weights, unit_begins) if weight}
        assert (4 in drawn) == (5 in drawn)
        assert (1 in drawn) == (2 in drawn)
        assert not {0, 3, 7} & drawn.keys()
        if 4 in drawn:
            assert (drawn[4], drawn[5]) == (True, False)
            alone += 1 not in drawn
    assert alone


@pytest.fixture(scope='module')
def trained(paired, tmp_path_factory):
    """A run that nobody disturbed; beside it what a kill behind step 4 leaves."""
    folder = tmp_path_factory.mktemp('trained')
    run = Run(copy_of(paired, folder), nsp(paired, runtime__checkpoint_every_steps=4), quiet=True)
    with killed_copy(run, folder / 'killed', lambda step: step > 4):
        return pretrained(run)


def test_it_trains_is_scored_and_ends_with_the_same_bits_after_a_kill(trained, paired):
    records = trained.metrics.of('pretrain')
    told = [r for r in records if r['kind'] == 'train']
    assert all(0 <= r['nsp_accuracy'] <= 1 and r['nsp_loss'] < r['loss'] for r in told)
    scored = [r for r in records if r['kind'] == 'evaluation']
    for record in scored:
        assert 0 <= record['frozen_nsp_accuracy'] <= 1
        assert record['frozen_nsp_loss'] == pytest.approx(np.log(2), abs=0.3)
        assert record['frozen_loss'] > 4  # of masked pieces alone, of 300 tokens
    assert scored[-1]['frozen_loss'] < scored[0]['frozen_loss']
    with np.load(trained.folder('pretrain') / 'frozen_masks.npz') as masks:
        assert masks['token_types'].shape == masks['segments'].shape
    again = pretrained(Run(trained.workdir.parent / 'killed', trained.config, quiet=True))
    assert parameters(again, PHASE).keys() >= {'pooler/dense/kernel', 'cls/seq_relationship/bias'}
    assert_same_bits(trained, again, PHASE)


def test_the_export_is_the_whole_model_and_a_masked_one_and_a_source_of_both_heads(trained, paired, tmp_path):
    import transformers

    execute(trained, STAGES['export'])
    folder = trained.workdir / 'export' / PHASE
    params = flatten(load_phase(trained.folder('pretrain'), PHASE))
    gate = json.loads((folder / 'export.json').read_text())['gate']
    assert gate['logits'] == max(gate['prediction_logits'], gate['seq_relationship_logits']) < 1e-4
    whole = transformers.BertForPreTraining.from_pretrained(folder)
    head = whole.cls.seq_relationship.weight.detach().numpy()
    np.testing.assert_array_equal(head.T, params['cls/seq_relationship/kernel'])
    masked = transformers.AutoModelForMaskedLM.from_pretrained(folder)
    kernel = masked.bert.encoder.layer[0].attention.self.query.weight.detach().numpy()
    np.testing.assert_array_equal(kernel.T, params['encoder/layer/0/attention/self/query/kernel'])
    # As a source, its pooler and head go on; of a source without them they are drawn.
    parts = Parts(paired, source__path=str(folder), surgery__strategy='copy', vocab__kind='source')
    for path in ('pooler/dense/kernel', 'pooler/dense/bias', 'cls/seq_relationship/kernel'):
        np.testing.assert_array_equal(flatten(parts.state['params'])[path], params[path], err_msg=path)
    initial = trained.folder('surgery') / 'model'
    parts = Parts(paired, source__path=str(initial), surgery__strategy='copy', vocab__kind='source')
    drawn = flatten(parts.state['params'])
    assert np.std(drawn['pooler/dense/kernel']) == pytest.approx(0.02, rel=0.2)
    assert not np.any(drawn['pooler/dense/bias'])


def test_what_has_no_pairs_is_refused_in_one_line(paired):
    roberta = Roberta(300, 16, 1, 2, 16, 34)
    alone, two = (
        Run(paired / 'run', nsp(paired, rows__layout=layout), quiet=True)
        for layout in ('documents', 'two_segments')
    )
    for refused, wrong, refusal in (
        (check, (alone,), r'needs pairs .* set config\.rows\.layout=pairs or pairs_exact_half$'),
        (check, (two,), r'config\.rows\.layout=two_segments has none'),
        (check_rows, (nsp(paired).rows, roberta), r'layout: pairs needs two token types, which this RoBERTa'),
        (
            make_objective,
            (nsp(paired), roberta, None, 64, make_mesh(1), print),
            r'config\.pretrain\.objective: nsp needs a head for pairs, which RoBERTa',
        ),
    ):
        with pytest.raises(ConfigError, match=refusal):
            refused(*wrong)


def test_documents_of_one_sentence_make_no_pairs_to_tell(prepared, tmp_path):
    run = Run(copy_of(prepared, tmp_path), experiment(prepared, **{'rows.layout': 'pairs'}), quiet=True)
    with pytest.raises(
        InputError, match=r'no document has two sentences.*set config\.rows\.layout=documents'
    ) as caught:
        execute(run, STAGES['rows'], replace=True)
    assert '\n' not in str(caught.value)


def test_a_random_text_is_of_another_document_also_where_a_block_has_one(paired, tmp_path):
    is_random, own = LAYOUTS['pairs'].is_random, [list(range(0, 500, 5))]

    def made(bounds, lent=()):
        return [*make_pairs(bounds, 40, 0.1, is_random, np.random.default_rng(SEED), lent)]

    assert {p.other for p in made(own, [[0, 9, 30], [0, 4]]) if p.random} == {1, 2}
    assert not any(p.random for p in made(own))
    assert all(p.other != p.document for p in made(own * 2 + own * 40) if p.random)
    # The last block has one document, and the texts of others beside its own.
    run = Run(copy_of(paired, tmp_path), nsp(paired, rows__block_documents=1), quiet=True)
    counts = execute(run, STAGES['rows'], replace=True).counts['train']
    assert 0.5 < counts['share_random'] < 0.75
    (tmp_path / 'one.jsonl').write_text(
        json.dumps({'id': '1', 'title': '', 'abstract': 'Some words of it. ' * 40, 'n': 3.0})
    )
    # The same one three times is still one.
    changes = {'heldout_fraction': 0.0, 'content.weight': 'n', 'inputs': tmp_path / 'one.jsonl'}
    changes = {f'corpus.{key}': value for key, value in changes.items()}
    one = nsp(paired, rows__block_documents=1, **changes)
    alone = Run(copy_of(paired, tmp_path / 'alone'), one, quiet=True)
    execute(alone, STAGES['corpus'], replace=True)
    with pytest.raises(InputError, match=r'no second text is of another document.*add texts'):
        execute(alone, STAGES['rows'], replace=True)


@pytest.mark.parametrize('layout', ['two_segments', 'pairs_exact_half'])
def test_masked_lm_alone_reads_the_types_of_two_segments(layout, paired, tmp_path):
    """The arm without next sentences: rows of two segments, of which the second follows, and the plain objective."""
    workdir = copy_of(paired, tmp_path)
    shutil.rmtree(workdir / 'rows')
    run = Run(workdir, nsp(paired, rows__layout=layout, pretrain__objective='mlm'), quiet=True)
    execute(run, STAGES['rows'])
    counts = run.manifest('rows').counts['train']
    if layout == 'two_segments':
        assert counts['share_random'] == 0
        assert not Rows(run.folder('rows'), 'train').read(np.arange(counts['rows']))['labels'].any()
        execute(run, STAGES['pretrain'])
        before = flatten(load_folder(run.folder('surgery') / 'model')[1])
        after = flatten(load_phase(run.folder('pretrain'), PHASE))
        assert after.keys() == before.keys()
        types = 'embeddings/token_type_embeddings/embedding'
        assert np.abs(after[types][1] - before[types][1]).max() > 1e-4
    else:
        assert counts['share_random'] == pytest.approx(0.5, abs=0.03)
