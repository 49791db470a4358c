"""Documents for queries: measures by hand and by trec_eval, the order of equals, BM25, files, and a whole stage."""

import contextlib
import dataclasses
import io
import json
import math
import re
import shutil
import unicodedata
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from toy_sets import save_encoder

import bioptimus_jax as bx
from bioptimus_jax.errors import InputError
from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.finetuning import finished, search
from bioptimus_jax.finetuning.task import task_for
from bioptimus_jax.finetuning.texts.usage import EXAMPLE
from bioptimus_jax.model.pooling import files_for_sentence_transformers
from bioptimus_jax.report.drawing import shown
from bioptimus_jax.report.gain import _finished, best_on_devel, gain, overall
from bioptimus_jax.report.measures import read_measures
from bioptimus_jax.report.sections import entities
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.folder import Run
from bioptimus_jax.scoring.ranking import (
    METRICS,
    Bm25,
    mean_average_precision,
    ndcg,
    ranked,
    recall,
    words_in,
)
from bioptimus_jax.sets import beir
from bioptimus_jax.sets.corpora import read_split, set_at, sets_in
from bioptimus_jax.storage.files import write_json
from bioptimus_jax.vocab.agreement import load_for_words

GOLD = [(('a', 2), ('b', 1), ('c', 0)), (('x', 1),), (('m', 1), ('n', 1), ('o', 3))]
RANKED = [('c', 'b', 'z', 'a'), ('y',), ('o', 'p', 'm')]


def test_measures_by_hand():
    """Gains 0, 1, 0, 2 of an ideal 2, 1; nothing; 3, 0, 1 of an ideal 3, 1, 1."""
    second, third, fourth = (1 / math.log2(rank) for rank in (3, 4, 5))
    first = (second + 2 * fourth) / (2 + second)
    last = (3 + third) / (3 + second + third)
    assert ndcg(10).scores(GOLD, RANKED) == {'ndcg': pytest.approx((first + last) / 3)}
    assert ndcg(2).counts(GOLD, RANKED)[:, 0] == pytest.approx([second / (2 + second), 0, 3 / (3 + second)])
    assert recall(2).counts(GOLD, RANKED)[:, 0] == pytest.approx([1 / 2, 0, 1 / 3])
    of_each = mean_average_precision().counts(GOLD, RANKED)[:, 0]
    assert of_each == pytest.approx([(1 / 2 + 2 / 4) / 2, 0, (1 + 2 / 3) / 3])


def test_measures_are_those_of_trec_eval():
    """And so is the order of equal scores."""
    library = pytest.importorskip('pytrec_eval')
    rng = np.random.default_rng(0)
    ids, queries = [f'd{n}' for n in range(40)], [f'q{n}' for n in range(20)]
    scores = rng.integers(0, 6, (len(queries), len(ids))).astype(float)
    judged = {q: {d: int(g) for d, g in zip(ids, rng.integers(-1, 4, 40)) if g >= 0} for q in queries}
    run = {q: dict(zip(ids, row.tolist())) for q, row in zip(queries, scores)}
    names = {'default': 'ndcg_cut_10', 'recall@10': 'recall_10', 'recall@100': 'recall_100', 'map': 'map'}
    theirs = library.RelevanceEvaluator(judged, {'ndcg_cut.10', 'recall.10,100', 'map'}).evaluate(run)
    found = ranked(lambda begin, end: scores[begin:end], queries, ids)
    for name, metric in METRICS.items():
        ours = metric.counts([tuple(judged[q].items()) for q in queries], found)[:, 0]
        assert ours == pytest.approx([theirs[q][names[name]] for q in queries], abs=1e-6), name


def test_equal_scores_are_in_the_order_of_trec_eval_and_a_query_does_not_find_itself():
    scores = np.array([[0.5, 0.9, 0.5 + 1e-8, 0.1], [0.0, 0.2, 0.0, 0.0]])
    ids = ['d10', 'q', 'd9', 'e']
    assert ranked(lambda begin, end: scores[begin:end], ['q', 'r'], ids) == [
        ('d9', 'd10', 'e'),
        ('q', 'e', 'd9', 'd10'),
    ]
    assert ranked(lambda begin, end: scores[begin:end], ['q', 'r'], ids, least=0)[1] == ('q',)


def test_bm25_by_hand():
    texts = ['aspirin helps', 'aspirin aspirin and more words', 'nothing']
    scores = Bm25(texts).scores(['Aspirin, nothing!', 'helps helps', 'unknown'])
    mean = 8 / 3

    def score(count, length, documents):
        idf = math.log(1 + (3 - documents + 0.5) / (documents + 0.5))
        return idf * count / (count + 0.9 * (1 - 0.4 + 0.4 * length / mean))

    assert scores[0] == pytest.approx([score(1, 2, 2), score(2, 5, 2), score(1, 1, 1)])
    assert scores[1] == pytest.approx([2 * score(1, 2, 1), 0, 0])
    assert not scores[2].any()


def test_words_keep_their_marks():
    apart = unicodedata.normalize('NFD', 'Größe über 5-HT2A')
    assert words_in(apart) == words_in('Größe über 5-HT2A') == ['größe', 'über', '5', 'ht2a']
    assert words_in('हिन्दी में') == ['हिन्दी', 'में']


def test_bm25_is_that_of_bm25s():
    library = pytest.importorskip('bm25s')
    rng = np.random.default_rng(0)
    texts = [' '.join(rng.choice(list('abcdefgh'), rng.integers(1, 12))) for _ in range(30)]
    index = library.BM25(method='lucene', k1=0.9, b=0.4)
    index.index([text.split() for text in texts], show_progress=False)
    ours = Bm25(texts).scores(['a b b', 'h'])
    theirs = [index.get_scores(query.split()) for query in ('a b b', 'h')]
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


CORPUS = [
    ('d1', 'Aspirin', 'the drug helps'),
    ('d2', '', 'mice were given a dose of it'),
    ('d3', 'No effect', 'of the dose was seen in mice'),
    ('d4', '', 'the drug helps mice'),
]
QUERIES = [('q1', 'aspirin helps'), ('q2', 'dose in mice'), ('q3', 'the effect'), ('q4', 'left out')]
JUDGED = [
    'query-id\tcorpus-id\tscore',
    'q1\td1\t2',
    'q1\td4\t1',
    'q2\td3\t1',
    'q2\td2\t0',
    'q3\td3\t1',
    'q4\td1\t0',
]


def save_beir(folder, corpus=CORPUS, queries=QUERIES, judged=JUDGED):
    (folder / 'qrels').mkdir(parents=True)
    records = [{'_id': name, 'title': title, 'text': text} for name, title, text in corpus]
    asked = [{'_id': name, 'text': text} for name, text in queries]
    for file, rows in (('corpus.jsonl', records), ('queries.jsonl', asked)):
        (folder / file).write_text(''.join(json.dumps(row) + '\n' for row in rows))
    (folder / 'qrels' / 'test.tsv').write_text('\n'.join(judged) + '\n')
    return folder


def test_a_set_is_read_and_knows_its_task(tmp_path):
    save_beir(tmp_path / 'sets' / 'mice', judged=[*JUDGED, 'q3\tgone\t1'])
    [chosen] = sets_in(tmp_path / 'sets', ())
    assert (chosen.name, chosen.task) == ('mice', 'retrieval')
    dataset = task_for(chosen).read(chosen)
    assert [(q.id, q.answers) for q in dataset.test] == [
        ('q1', (('d1', 2), ('d4', 1))),
        ('q2', (('d2', 0), ('d3', 1))),
        ('q3', (('d3', 1), ('gone', 1))),
    ]
    assert dataset.documents.texts[:2] == ('Aspirin the drug helps', 'mice were given a dose of it')
    assert dataset.notes == (
        '4 documents, 3 queries of test, 6 judgements',
        '1 query without a relevant document are left out',
        '1 relevant document not in corpus.jsonl; they count as not found, as in trec_eval',
    )


WRONG = {
    'no id': (dict(corpus=[('', 'a', 'b')]), r'corpus\.jsonl, line 1: needs an "_id" and a "text"'),
    'no string': (dict(queries=[('q1', 5)]), r'queries\.jsonl, line 1: needs an "_id"'),
    'twice': (dict(corpus=[*CORPUS, CORPUS[1]]), r'corpus\.jsonl, line 5: the "_id" \'d2\' is there twice'),
    'no text': (dict(corpus=[('d9', '', ' ')]), r'corpus\.jsonl: \'d9\' has neither'),
    'empty': (dict(corpus=[]), r'corpus\.jsonl: is empty'),
    'columns': (dict(judged=['q1 d1 1']), r'test\.tsv, line 1: needs query-id TAB corpus-id TAB score'),
    'grade': (dict(judged=['q1\td1\t1.5']), r'test\.tsv, line 1: needs .* a whole number'),
    'unknown query': (
        dict(judged=[JUDGED[0], 'q9\td1\t1']),
        r"line 2: the query 'q9' is not in queries\.jsonl",
    ),
    'judged twice': (dict(judged=['q1\td1\t1', 'q1\td1\t2']), r"line 2: 'q1' and 'd1' are judged twice"),
    'nothing relevant': (dict(judged=['q1\td1\t0']), r'test\.tsv: no document is relevant'),
}


@pytest.mark.parametrize('name', WRONG)
def test_a_damaged_set_is_refused_in_one_line(name, tmp_path):
    changes, message = WRONG[name]
    save_beir(tmp_path / 'x', **changes)
    with pytest.raises(InputError, match=message) as caught:
        beir.read('x', tmp_path / 'x')
    assert '\n' not in str(caught.value)
    assert str(caught.value).count('; ') == 1


def test_without_judgements_and_without_a_set(tmp_path):
    folder = save_beir(tmp_path / 'x')
    (folder / 'qrels' / 'test.tsv').unlink()
    (tmp_path / 'y').mkdir()
    (tmp_path / 'y' / 'train.tsv').write_text('a\tb\n')
    chosen = set_at(tmp_path / 'y', 'retrieval')
    whole = save_beir(tmp_path / 'z')
    for read, given, message in (
        (read_split, (whole, 'test'), r'is a set for retrieval \(corpus\.jsonl\), which has no entities'),
        (
            beir.read,
            ('x', folder),
            r'test\.tsv: cannot be read .*; a set in this layout has judgements there$',
        ),
        (
            task_for(chosen).read,
            (chosen,),
            r'is no set for retrieval; it needs corpus\.jsonl, queries\.jsonl and',
        ),
    ):
        with pytest.raises(InputError, match=message):
            read(*given)


@pytest.fixture(scope='module')
def scored(tmp_path_factory):
    """A run that scores a model on a set for retrieval, the model, and what was said."""
    tmp = tmp_path_factory.mktemp('retrieval')
    (tmp / 'model').mkdir()
    # So that first pieces differ.
    model = save_encoder(tmp / 'model', initializer_range=0.5)
    save_beir(tmp / 'sets' / 'mice')
    wanted = config.defaults()
    wanted.stages = ('finetune',)
    for path, values in files_for_sentence_transformers('cls', 32).items():
        (model / path).parent.mkdir(exist_ok=True)
        write_json(model / path, values)
    wanted.finetune.update(
        folder=str(tmp / 'sets'), models=(f'tiny={model}',), max_pieces=32, seeds=(0, 1), keep='ensemble'
    )
    run, said = Run(tmp / 'run', Experiment.from_config(wanted)), io.StringIO()
    with contextlib.redirect_stdout(said):
        execute(run, STAGES['finetune'])
    return run, model, said.getvalue()


def test_a_stage_scores_the_model_as_it_is(scored, monkeypatch):
    """The score is that of the vectors of `embed`, with an interval over queries, and BM25 beside it."""
    run, model, said = scored
    assert 'epochs' not in said
    assert 'cut:' not in said
    chosen = set_at(run.workdir.parent / 'sets' / 'mice')
    [line] = (
        task_for(chosen).look(task_for(chosen).read(chosen), {'tiny': load_for_words(model)}, 4).lines[-1:]
    )
    assert line.startswith('mice: cut: 7 texts of more than 4 pieces of tiny; config.finetune.max_pieces')
    assert re.search(r'^tiny +\d+\.\d\d +\d+\.\d\d to \d+\.\d\d +2$', said, re.M)  # no score on devel
    [code] = re.findall(r'^finetune: use it for mice: python -c "(.*)"$', said, re.M)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, {})  # predict would refuse it
    assert printed.getvalue().startswith('[[')
    folder = run.folder('finetune')
    record, again = [json.loads(line) for line in (folder / 'results.jsonl').read_text().splitlines()]
    assert record['test'] == again['test']
    # What is kept of a model that learned nothing gives the same vectors; answers it has none.
    [place, _] = sorted(folder.glob('tiny/mice/standard/*/model'))
    np.testing.assert_allclose(bx.embed(place, ['a dose']), bx.embed(model, ['a dose']), atol=1e-6)
    assert np.abs(bx.embed(model, ['a dose'], pooling='mean') - bx.embed(place, ['a dose'])).max() > 0.01
    long, pieces = ['a dose ' + 'of it ' * 200], run.config.finetune.max_pieces
    np.testing.assert_allclose(bx.embed(place, long), bx.embed(model, long, max_pieces=pieces), atol=1e-6)
    assert np.abs(bx.embed(model, long) - bx.embed(place, long)).max() > 1e-4
    with pytest.raises(
        InputError, match=r'names BertModel; .*; vectors of texts are given by bx\.embed in Python'
    ):
        bx.predict(place, ['a dose'])
    card = (place / 'README.md').read_text()
    assert not re.search(r'epoch|seed|devel|labels|fine-tuned', card, re.I), 'nothing was learned'
    assert '(3 queries).\nOf a text at most 32 pieces are read' in card
    assert f'| recall@10 | {100 * record["test"]["recall@10"]["recall"]:.2f} |' in card
    monkeypatch.chdir(place)
    known = {}
    exec(re.search(r'```python\n(.*?)```', card, re.S)[1], known)
    np.testing.assert_array_equal(known['vector'], bx.embed(model, [EXAMPLE], max_pieces=32)[0])
    assert set(record['test']) == {'default', 'recall@10', 'recall@100', 'map'}
    assert record['history'] == []
    queries, documents = (
        bx.embed(model, [q for _, q in QUERIES[:3]]),
        bx.embed(model, [f'{title} {text}'.strip() for _, title, text in CORPUS]),
    )
    names = [name for name, *_ in CORPUS]
    best = [[names[at] for at in np.argsort(-row)] for row in queries @ documents.T]
    gold = [(('d1', 2), ('d4', 1)), (('d2', 0), ('d3', 1)), (('d3', 1),)]
    for name, metric in METRICS.items():
        assert record['test'][name] == pytest.approx(metric.scores(gold, best)), name
    words = [('d1', 'd4'), ('d3', 'd2', 'd4'), ('d3', 'd4', 'd1')]
    assert record['bm25'] == pytest.approx(METRICS['default'].scores(gold, words)['ndcg'])
    [of_model] = json.loads((folder / 'statistics.json').read_text())
    assert of_model['unit'] == 'queries'
    low, high = of_model['interval']
    assert low <= record['test']['default']['ndcg'] <= high
    assert of_model['failures'] == {}


def test_devel_chooses_nothing_where_nothing_is_learned(scored):
    """A score of 0 on an empty devel would choose the first setting and the first model."""
    m = read_measures(scored[0])
    assert m.scores('tiny', 'mice', 'devel') == []
    assert len(m.scores('tiny', 'mice')) == 2
    assert best_on_devel(m, 'mice', ['absent', 'tiny']) == 'tiny'
    tried = [dataclasses.replace(m.finetuned[0], setting=setting) for setting in ('long', 'short')]
    with pytest.raises(
        InputError, match='RUN: mice has no score on devel that chooses one of long, short; name'
    ):
        finished._chosen(Path('RUN'), tried)
    two = dataclasses.replace(m, finetuned=tried)
    table = entities.scores(two)
    assert 'Devel chooses nothing on mice: the other tables show the first setting.' in table.note
    assert 'highest mean' not in table.note
    assert 'chosen' not in str(table.rows)
    assert _finished(two, 'tiny').endswith(':long')
    names = [f'model {i}' for i in range(8)]
    many = dataclasses.replace(m, finetuned=[dataclasses.replace(tried[0], model=name) for name in names])
    assert shown(many) == (names[1:], 'The last 7 of 8 models: devel chooses none.')
    cells = [
        SimpleNamespace(
            name=name,
            model=name,
            setting=one.setting,
            dataset=set_at(scored[0].workdir.parent / 'sets' / 'mice'),
        )
        for one in tried
        for name in ('tiny', 'other')
    ]
    found = search.following(cells, [cell for cell in cells if cell.name == 'tiny'], {'tiny': tried[0]})
    assert [(cell.name, cell.setting) for cell in found] == [('other', 'long'), ('other', 'short')]


def test_no_seed_is_missed_where_nothing_is_learned(scored, tmp_path):
    """The page asked for more seeds, which all say the same."""
    shutil.copytree(scored[0].workdir, tmp_path / 'run')
    names, cells = ('source', 'words'), tmp_path / 'run' / 'finetune'
    for name in names:
        shutil.copytree(cells / 'tiny', cells / name)
    run = Run(tmp_path / 'run', Experiment(phases=('words',)), quiet=True)
    m = read_measures(scored[0])
    m = dataclasses.replace(
        m, run=run, finetuned=[dataclasses.replace(r, model=name) for name in names for r in m.finetuned]
    )
    said = overall(m)
    assert said.word == 'not tested'
    assert said.sentence.endswith('Nothing is learned of a set, so every seed says the same.')
    [row] = gain(m).rows
    assert 'nothing is learned' in [cell.text for cell in row]
    assert 'one seed' not in [cell.text for cell in row]
