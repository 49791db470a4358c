"""Documents by their content: conditions on fields, density of terms, scores, preference and weights."""

import dataclasses
import json
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from toy_sets import save_encoder

from bioptimus_jax.analysis import perplexities
from bioptimus_jax.analysis.masked_lm import load
from bioptimus_jax.analysis.perplexities import losses
from bioptimus_jax.cli import main as cli
from bioptimus_jax.corpus import readers
from bioptimus_jax.corpus.config import Content, Corpus
from bioptimus_jax.corpus.content import Condition, ContentJudge, Terms, check, fields_asked, shares
from bioptimus_jax.corpus.documents import Document, document_key, open_documents
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.records.counts import CorpusCounts
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.folder import Run
from bioptimus_jax.start.texts import look_into
from bioptimus_jax.storage.files import read_jsonl
from bioptimus_jax.text.words import count_words


@pytest.mark.parametrize(
    ('text', 'values', 'holds'),
    [
        ('year>=2015', ('2015',), True),
        ('year>=2015', ('2014.5',), False),
        ('year < 2015', ('1999', '2020'), True),  # one of them
        ('mesh=asthma', ('Humans', 'Asthma'), True),
        ('mesh=Asthma, Aspirin-Induced', ('Asthma',), False),
        ('mesh!=Asthma', ('Humans', 'Asthma'), False),  # none of them
        ('type!=Editorial', ('Letter',), True),
        ('quality>0.5', ('high',), False),
        ('quality=1', ('1.0',), True),
    ],
)
def test_conditions_by_hand(text, values, holds):
    assert Condition.read(text).holds(values) is holds


@pytest.mark.parametrize('text', ['year', '>=3', 'year>', 'year>=soon', '=x'])
def test_what_is_no_condition_is_refused(text):
    with pytest.raises(ConfigError, match=r'config\.corpus\.content\.where: .* write year>=2015'):
        fields_asked(Content(where=(text,)))


def test_density_by_hand():
    """Four of nine words stand in a term; no part of a word does."""
    text = 'Acute myocardial infarction\nand MYOCARDIAL ischaemia, not infarctions again.'
    terms = Terms(['myocardial', 'myocardial infarction', 'infarction', 'ischaemia', 'again and again'])
    assert terms.density(text, 9) == pytest.approx(4 / 9)
    assert Terms(['c++', 'il-2']).density('C++ and IL-2, il-22', 4) == pytest.approx(2 / 4)
    assert Terms(['a b']).density('', 0) == 0
    # Terms that share a word cover it once.
    assert Terms(['il-2', 'il-4', 'il-6 rose']).density('IL-2/IL-4/IL-6 rose again', 3) == pytest.approx(
        2 / 3
    )
    # What overlaps counts as a whole, whichever term begins first.
    both = Terms(['acute renal', 'renal failure syndrome'])
    assert both.density('acute renal failure syndrome ensued', 5) == pytest.approx(4 / 5)
    # Scripts without blanks: each letter is a word.
    chinese = '患者有高血压。'  # "The patient has high blood pressure."
    assert Terms(['高血压']).density(chinese, count_words(chinese)) == pytest.approx(3 / 6)
    hyphenated = '吉兰-巴雷'  # Guillain-Barre
    assert Terms([hyphenated]).density(hyphenated, count_words(hyphenated)) == 1


@given(
    st.lists(st.sampled_from('abcde'), max_size=30),
    st.sets(st.sampled_from(['a', 'b c', 'c', 'c d', 'd e a']), min_size=1),
)
def test_density_is_that_of_a_plain_search(words, terms):
    """Every term at every place."""
    covered = set()
    for term in map(str.split, terms):
        for at in range(len(words)):
            covered |= set(range(at, at + len(term))) if words[at : at + len(term)] == term else set()
    found = Terms(sorted(terms)).density(' '.join(words), len(words))
    assert found == pytest.approx(len(covered) / max(len(words), 1))


def corpus(tmp_path, rows, **content):
    (tmp_path / 'in.jsonl').write_text(''.join(json.dumps(row) + '\n' for row in rows))
    c = config.defaults()
    c.corpus.update(inputs=(str(tmp_path / 'in.jsonl'),), min_words=1, heldout_fraction=0.0, shards=3)
    c.corpus.near.threshold = 0.0
    for name, value in content.items():
        config.override(c, f'corpus.{name.replace("__", ".")}', str(value))
    run = Run(tmp_path / 'run', Experiment.from_config(c), quiet=True)
    manifest = execute(run, STAGES['corpus'])
    return [d.id for d in open_documents(run.folder('corpus'), 'train')], CorpusCounts.of(manifest)


ROWS = [
    {
        'id': f'd{n}',
        'title': '',
        'abstract': f'word{n} heart heart other',
        'year': 2000 + n,
        'quality': n / 10,
    }
    for n in range(10)
]


def test_a_corpus_is_chosen_and_repeated_by_fields(tmp_path):
    ids, counts = corpus(tmp_path, ROWS, content__where='year>2001', content__weight='quality', max_words=0)
    found = Counter(id.partition('#')[0] for id in ids)
    assert set(found) <= {f'd{n}' for n in range(2, 10)}
    assert counts.left_out['condition'] == 2
    assert counts.train + counts.left_out.get('no_weight', 0) == 8
    assert all(number == 1 for number in found.values())  # below 1, so none twice
    rows = [{**row, 'quality': 2.5} for row in ROWS]
    (tmp_path / 'again').mkdir()
    ids, counts = corpus(tmp_path / 'again', rows, content__weight='quality')
    found = Counter(id.partition('#')[0] for id in ids)
    assert set(found.values()) == {2, 3}
    assert len(set(ids)) == len(ids) == counts.train == counts.copies + 10
    assert sorted(ids)[:2] == ['d0', 'd0#2']


def test_the_preferred_ones_are_chosen_first(tmp_path):
    ids, counts = corpus(tmp_path, ROWS, max_words=12, content__prefer='-quality')
    assert sorted(ids) == ['d0', 'd1', 'd2']
    assert counts.left_out == {'not_chosen': 7}
    (tmp_path / 'scores.jsonl').write_text(
        ''.join(json.dumps({'id': f'd{n}', 'ppl': abs(n - 5)}) + '\n' for n in range(9))
    )
    (tmp_path / 'terms.txt').write_text('heart\n\nWORD7\n')
    (tmp_path / 'again').mkdir()
    scores = {'content__scores': tmp_path / 'scores.jsonl', 'content__terms': tmp_path / 'terms.txt'}
    ids, counts = corpus(tmp_path / 'again', ROWS, max_words=4, content__prefer='-ppl', **scores)
    assert (ids, counts.left_out) == (['d5'], {'not_chosen': 8, 'no_field': 1})
    (tmp_path / 'third').mkdir()
    ids, _ = corpus(tmp_path / 'third', ROWS, max_words=4, content__prefer='terms', **scores)
    assert ids == ['d7'], 'the only one with three words of terms'


def test_held_out_documents_are_the_same_whatever_is_preferred(tmp_path):
    rows = [{**ROWS[0], 'id': f'd{n}', 'abstract': f'word{n} heart', 'quality': n} for n in range(200)]
    found = {}
    for prefer in ('', 'quality'):
        (tmp_path / f'p{prefer}').mkdir()
        given = {'heldout_fraction': 0.25, 'max_words': 100, 'content__prefer': prefer}
        ids, counts = corpus(tmp_path / f'p{prefer}', rows, **given)
        held = [d.id for d in open_documents(tmp_path / f'p{prefer}' / 'run' / 'corpus', 'heldout')]
        found[prefer] = held
        assert 30 <= len(ids) == counts.train <= 45
        assert (min(int(id[1:]) for id in ids) > 100) == bool(prefer)
    assert found[''] == found['quality'] != []


def test_shares_say_what_each_condition_would_keep(tmp_path):
    (tmp_path / 'in.jsonl').write_text(
        ''.join(json.dumps(row) + '\n' for row in [*ROWS, {**ROWS[0], 'year': None}])
    )
    content = Content(where=('year>=2005', 'quality<0.8', 'words>3'))
    settings = Corpus(inputs=(str(tmp_path / 'in.jsonl'),), content=content, min_words=1)
    kept = shares(content, look_into(settings).records)
    assert {name: round(11 * share) for name, share in kept.items()} == {
        'year>=2005': 5,
        'quality<0.8': 9,
        'words>3': 11,
        'without a field': 1,
        'all together': 3,
    }


def test_scores_are_compared_as_they_are_written(tmp_path):
    scores = [{'id': f'd{n}', 'quality': n / 10, 'day': 20231210 + n} for n in range(10)]
    (tmp_path / 's.jsonl').write_text(''.join(json.dumps(score) + '\n' for score in scores))
    for text, count in (('quality>=0.7', 3), ('quality=0.7', 1), ('day=20231215', 1), ('day<=20231215', 6)):
        judge = ContentJudge(Content(where=(text,), scores=(str(tmp_path / 's.jsonl'),)))
        verdicts = [judge.judge({}, document_key(score['id']), 'A text.', 2) for score in scores]
        assert sum(not verdict.reason for verdict in verdicts) == count, text


def test_every_reader_says_what_is_asked_for(tmp_path):
    article = """<PubmedArticle><MedlineCitation><PMID Version="1">7</PMID><Article><Journal><JournalIssue><PubDate>
        <MedlineDate>1998 Dec-1999 Jan</MedlineDate></PubDate></JournalIssue><Title>Heart</Title></Journal>
        <ArticleTitle>T.</ArticleTitle><Abstract><AbstractText>Some text.</AbstractText></Abstract>
        <PublicationTypeList><PublicationType>Review</PublicationType></PublicationTypeList></Article>
        <MeshHeadingList><MeshHeading><DescriptorName>Asthma</DescriptorName></MeshHeading></MeshHeadingList>
        </MedlineCitation></PubmedArticle>"""
    (tmp_path / 'a.xml').write_text(f'<PubmedArticleSet>{article}</PubmedArticleSet>')
    (tmp_path / 'b.nbib').write_text(
        'PMID- 7\nDP  - 1998 Dec\nTI  - T.\nAB  - Some text.\nMH  - Asthma\nPT  - Review\nJT  - Heart\n'
    )
    (tmp_path / 'c.csv').write_text(
        'id,abstract,year,mesh,type,journal\n7,Some text.,1998,Asthma,Review,Heart\n'
    )
    (tmp_path / 'd.nxml').write_text(
        '<article article-type="Review"><front><journal-meta><journal-title>Heart</journal-title></journal-meta>'
        '<article-meta><article-id pub-id-type="pmc">7</article-id><pub-date><year>1998</year></pub-date>'
        '<abstract><p>Some text.</p></abstract></article-meta></front></article>'
    )
    asked = Content(where=('year=1998', 'type=review', 'journal=HEART', 'mesh=Asthma'))
    for path in sorted(tmp_path.iterdir()):
        settings = Corpus(inputs=(str(path),), content=asked)
        [record] = [r for r in readers.read_file(path, 'x', settings) if r.text]
        of = {'year': ('1998',), 'type': ('Review',), 'journal': ('Heart',), 'mesh': ('Asthma',)}
        wanted = {name: value for name, value in of.items() if path.suffix != '.nxml' or name != 'mesh'}
        assert {name: record.fields.get(name) for name in wanted} == wanted, path
        judged = ContentJudge(asked).judge(record.fields, document_key(record.id), record.text, 2)
        assert judged.reason == ('no_field' if path.suffix == '.nxml' else '')
    plain = Corpus(inputs=(str(tmp_path / 'a.xml'),))
    assert not any(r.fields for r in readers.read_file(tmp_path / 'a.xml', 'x', plain)), (
        'nothing that nobody asked for'
    )


WRONG = {
    'no file': ({'terms': 'none.txt'}, InputError, r'none\.txt: cannot be read'),
    'no terms': ({'terms': 'empty.txt'}, InputError, r'empty\.txt: holds no terms; write one a line'),
    'no file of terms': (
        {'prefer': 'terms'},
        ConfigError,
        r'content\.terms: is empty, but terms are asked for',
    ),
    'no scores': ({'scores': ('none.jsonl',)}, InputError, r'none\.jsonl: no such file'),
    'no id': ({'scores': ('odd.jsonl',)}, InputError, r"odd\.jsonl:1: has no 'id'"),
}


@pytest.mark.parametrize('flaw', WRONG)
def test_wrong_content_is_refused_in_one_line(flaw, tmp_path, monkeypatch):
    given, kind, message = WRONG[flaw]
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'empty.txt').write_text('\n \n')
    (tmp_path / 'odd.jsonl').write_text('{"ppl": 3}\n')
    with pytest.raises(kind, match=message) as caught:
        check(Content(**given))
    assert '\n' not in str(caught.value)


@pytest.mark.parametrize(
    'kind',
    [
        'bert',
        'roberta',
        'modernbert',
        'distilbert',
        'electra',
        'mpnet',
        'deberta-v2',
        'longformer',
        'albert',
        'big_bird',
        'megatron-bert',
        'roberta-prelayernorm',
        'gte',
        'nomic_bert',
    ],
)
def test_a_perplexity_is_that_of_the_whole_model(kind, tmp_path):
    """The output layer sees the hidden places alone; here it sees all."""
    made = load(save_encoder(tmp_path, kind), 1)
    document = Document('a', 'the cell is a cell of the cell', 'x')
    batch = [document, Document('b', 'cell', 'x'), Document('c', '', 'x')]
    found = losses(made, batch)
    ids = made.tokenizer(document.text, return_tensors='pt')['input_ids']
    count = ids.shape[1] - 2
    drawn = (
        np.random.default_rng(document_key('a')).choice(count, max(1, round(0.15 * count)), replace=False) + 1
    )
    hidden = ids.clone()
    hidden[0, drawn] = made.tokenizer.mask_token_id
    with torch.inference_mode():
        logits = made.model(input_ids=hidden).logits[0, drawn]
    loss = torch.nn.functional.cross_entropy(logits, ids[0, drawn]).item()
    assert found[0] == pytest.approx(loss, rel=1e-4)
    assert np.isfinite(found).tolist() == [True, True, False]


def test_perplexities_go_on_after_a_kill(tmp_path, monkeypatch, capsys):
    folder = save_encoder(tmp_path / 'model')
    texts = {'a': 'alpha is a word', 'b': '', 'c': ' '.join(['cell'] * 300), 'd': 'the cell'}
    rows = [{'id': id, 'title': '', 'abstract': text} for id, text in texts.items()]
    (tmp_path / 'in.jsonl').write_text(''.join(json.dumps(row) + '\n' for row in rows))
    asked = [
        'perplexity',
        '--config=small',
        str(folder),
        f'--to={tmp_path / "out.jsonl"}',
        f'--config.corpus.inputs={tmp_path}/in.jsonl',
    ]
    assert cli.main(asked) == 0
    found = {line['id']: line['perplexity'] for line in read_jsonl(tmp_path / 'out.jsonl')}
    assert found.keys() == {'a', 'c', 'd'}
    # Cut off in a line, it goes on with what is whole; a line of another text or another document does not count.
    whole, begun = (tmp_path / 'out.jsonl').read_text(), tmp_path / 'out.jsonl.begun'
    monkeypatch.setattr(perplexities, 'BATCH_ROWS', 3)
    model = load(folder, 1)
    documents = list(readers.read_inputs(Corpus(inputs=(f'{tmp_path}/in.jsonl',))))
    other = dataclasses.replace(documents[0], text='another word')
    gone = dataclasses.replace(documents[0], id='e')

    def kill(done):
        raise KeyboardInterrupt

    for earlier in (documents, [other, gone, *documents[2:]]):
        with pytest.raises(KeyboardInterrupt):
            perplexities.write_perplexities(model, earlier, tmp_path / 'out.jsonl', kill)
        begun.write_text(begun.read_text() + '{"id": "d", "perp')
        assert cli.main(asked) == 0
        made = sorted((tmp_path / 'out.jsonl').read_text().splitlines())
        assert (made, begun.exists()) == (sorted(whole.splitlines()), False)
    begun.write_text('{"model": "another"}\n')
    capsys.readouterr()
    assert cli.main(asked) == 3
    assert 'was begun with another model; delete it' in capsys.readouterr().err
    assert sorted((tmp_path / 'out.jsonl').read_text().splitlines()) == made
