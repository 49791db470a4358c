"""The report on fabricated run folders: finished, unfinished and empty ones."""

import copy
import csv
import dataclasses
import html
import html.parser
import itertools
import json
import re
import shlex
import statistics

import pytest
from toy_families import SMALL
from toy_measures import CLASSES, PHASES, fabricate, manifest, ner_cell, row_of, write_scores

from bioptimus_jax.cli import main as cli
from bioptimus_jax.cli.status import status_of
from bioptimus_jax.errors import InputError, Stopped
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.finetuning.chosen import model_for_use
from bioptimus_jax.finetuning.kept import Reads
from bioptimus_jax.model.pooling import files_for_sentence_transformers
from bioptimus_jax.records.analysis import SentenceVectors, SimilarityOfPairs
from bioptimus_jax.records.export import ABOUT, Export
from bioptimus_jax.records.metrics import Encoded
from bioptimus_jax.records.record import plain
from bioptimus_jax.records.statistics import Ensemble, ModelStatistics, OverSeeds, Together
from bioptimus_jax.report import drawing, gain, layout, live, page, use
from bioptimus_jax.report.cells import cell_folder
from bioptimus_jax.report.ending import ending
from bioptimus_jax.report.layout import Table, count, fixed, missing, percent, spread, words
from bioptimus_jax.report.measures import read_measures
from bioptimus_jax.report.resolved import experiment_of
from bioptimus_jax.report.sections import (
    corpus,
    efficiency,
    entities,
    new_tokens,
    phases,
    sentences,
    training,
    vocabulary,
)
from bioptimus_jax.run.folder import Run
from bioptimus_jax.run.manifests import STARTED, listed, write_manifest
from bioptimus_jax.storage.files import digest, read_jsonl, write_json, write_jsonl


@pytest.fixture(scope='module')
def run(tmp_path_factory):
    return fabricate(tmp_path_factory.mktemp('runs') / 'demo')


@pytest.fixture(scope='module')
def built(run):
    folder = run.workdir / 'report'
    folder.mkdir()
    return folder, page.build(run, folder).counts


@pytest.fixture(scope='module')
def made(run):
    """What the page has, made a second time: to draw all figures takes three seconds."""
    return page.Made.of(read_measures(run))


def test_cells_show_what_they_hold():
    assert count(1234567).text == '1,234,567'
    assert percent(0.1234).text == '12.3 %'
    assert fixed(None) == missing()
    assert spread([]) == missing()
    assert spread([88.0]).text == '88.00'
    assert spread([1.0, 2.0, 3.0]).text == '2.00 ± 1.00'


def test_best_and_second_are_marked_within_their_group():
    values = [('a', 1.0), ('a', 3.0), ('a', 2.0), ('b', 9.0), ('b', None)]
    rows = [[words(group), fixed(value, 1)] for group, value in values]
    table = Table('t', ['group', 'x'], rows, {'x': 'high'}, rank_within='group')
    assert [m[1] for m in table.marks()] == ['', 'best', 'second', '', '']
    lowest = dataclasses.replace(table, better={'x': 'low'}, rank_within='')
    assert [m[1] for m in lowest.marks()] == ['best', '', 'second', '', '']
    assert '**1.0**' in lowest.markdown()
    assert '<u>2.0</u>' in lowest.markdown()


def test_cells_that_look_equal_share_their_mark():
    table = Table('t', ['x'], [[fixed(v, 1)] for v in (2.01, 2.02, 1.0, 0.5)], {'x': 'high'})
    assert [m[0] for m in table.marks()] == ['best', 'best', 'second', '']


def test_a_table_refuses_a_row_of_another_length():
    with pytest.raises(ValueError, match='2 cells under 1'):
        Table('t', ['x'], [[words('a'), words('b')]])


def test_markdown_keeps_what_it_shows_in_its_cell():
    cells = [words('a | <b>\n# c & d'), fixed(1.0, 1)], [words('e'), fixed(2.0, 1)]
    lines = Table('t <u>', ['x|y', 'n'], cells, {'n': 'high'}, note='p < .05').markdown().splitlines()
    assert lines[0] == '### t &lt;u&gt;'
    assert lines[2] == '| x\\|y | n |'
    assert lines[4:6] == ['| a \\| &lt;b&gt; # c &amp; d | <u>1.0</u> |', '| e | **2.0** |']
    assert lines[-1] == 'p &lt; .05'


def test_csv_has_what_is_shown_where_it_is_more_than_the_number():
    rows = [
        [words('a'), spread([1.0, 2.0, 3.0]), percent(0.314), count(1200)],
        [words('b'), *[missing()] * 3],
    ]
    table = Table('t', ['name', 'F1', 'share', 'steps'], rows, note='Said, here.')
    assert list(csv.reader(table.csv().splitlines())) == [
        ['name', 'F1', 'F1, as shown', 'share', 'share, as shown', 'steps'],
        ['a', '2.0', '2.00 ± 1.00', '0.314', '31.4 %', '1200.0'],
        ['b', '', '', '', '', ''],
    ]


def test_csv_holds_no_formulas():
    texts = ('=1+1', '@x', '+1 [0, 2]', '-y', '-1.5', 'a=b')
    table = Table('t', ['=c'], [[words(text)] for text in texts])
    shown = ["'=c", "'=1+1", "'@x", "'+1 [0, 2]", "'-y", '-1.5', 'a=b']
    assert [row[0] for row in csv.reader(table.csv().splitlines())] == shown


def test_text_rendering_is_aligned():
    lines = (
        Table('t', ['name', 'x'], [[words('a'), count(1)], [words('long name'), count(1000)]])
        .text()
        .splitlines()
    )
    assert lines == ['t', 'name           x', '---------  -----', 'a              1', 'long name  1,000']


def test_html_escapes_what_it_shows():
    text = Table('<t>', ['a&b'], [[words('<script>')]]).html()
    assert '<script>' not in text
    assert '&lt;script&gt;' in text
    assert 'a&amp;b' in text


def test_long_tables_scroll_and_wide_ones_are_printed_small():
    def box(rows, columns):
        table = Table('t', [f'c{i}' for i in range(columns)], [[count(i)] * columns for i in range(rows)])
        return re.search('<div class="(.*?)">', table.html())[1]

    assert box(24, 9) == 'scroll'
    assert box(25, 9) == 'scroll tall'
    assert box(24, 10) == 'scroll wide'
    assert box(25, 10) == 'scroll tall wide'
    assert box(24, 17) == 'scroll wide widest'


def test_phase_table_has_the_numbers_of_the_records(run):
    table = phases.phases(read_measures(run))
    end = row_of(table, '0.2')
    assert end['steps'].value == 200
    assert end['tokens'].value == 200 * 4096
    assert end['held-out loss'].value == pytest.approx(6.2 - 200 / 140)
    assert end['loss 0.4'].value == pytest.approx(6.1 - 200 / 140 + 3 / 20)
    assert end['F1 drugs'].text == '71.00 ± 1.00'  # 70, 71, 72
    assert row_of(table, 'initial (step 0)')['steps'].value == 0
    best = table.marks()[-1]
    assert best[table.columns.index('held-out loss')] == 'best'
    assert best[table.columns.index('F1 drugs')] == 'best'


def test_losses_of_the_source_compare_where_its_vocabulary_is_kept(run):
    m = read_measures(run)
    m.finetuned.append(ner_cell('source', 'drugs', 0, 0))
    source = Experiment(vocab=dataclasses.replace(Experiment().vocab, kind='source'))
    kept = dataclasses.replace(m, run=Run(run.workdir, source, quiet=True))
    nothing_new = dataclasses.replace(m, comparison=dataclasses.replace(m.comparison, new=0, lost=0))
    notes = [phases.phases(one).note for one in (m, kept, nothing_new)]
    assert ['another vocabulary' in note for note in notes] == [True, False, False]


def test_entity_table_keeps_the_three_modes_apart(run):
    row = next(
        r for r in entities.scores(read_measures(run)).rows if r[0].text == 'drugs' and r[1].text == '0.4'
    )
    cells = dict(zip(entities.scores(read_measures(run)).columns, row, strict=True))
    assert (cells['F1'].value, cells['strict F1'].value, cells['relaxed F1'].value) == pytest.approx(
        (81, 79, 85)
    )
    assert cells['seeds'].value == 3
    assert cells['mentions scored'].text == '960 / 960'


def test_of_several_settings_devel_chooses_and_every_one_is_shown(run):
    m = read_measures(run)
    names = ('standard', 'frozen')
    cells = []
    for name, seed in itertools.product(names, (0, 1)):
        cell, better = ner_cell('0.1', 'drugs', seed, 0), 0.2 if name == 'frozen' else 0.1
        devel = {mode: {**scores, 'f1': better} for mode, scores in cell.devel.items()}
        test = {mode: {**scores, 'f1': 1 - better} for mode, scores in cell.test.items()}
        cells.append(dataclasses.replace(cell, setting=name, devel=devel, test=test))
    m = dataclasses.replace(m, finetuned=cells)
    assert m.chosen('0.1', 'drugs') == 'frozen'  # which is worse on test
    assert m.scores('0.1', 'drugs') == pytest.approx([80, 80])
    assert m.scores('0.1', 'drugs', setting='standard') == pytest.approx([90, 90])
    assert m.scores('0.2', 'drugs') == []
    shown = [row[2].text for row in entities.scores(m).rows if row[1].text == '0.1']
    assert shown == ['standard', 'frozen, chosen']
    assert 'setting' not in entities.scores(read_measures(run)).columns


def test_surgery_tables_count_the_contexts(run):
    m = read_measures(run)
    assert [r[1].value for r in new_tokens.contexts(m).rows] == [20, 20, 20]
    examples = new_tokens.surgery_examples(m)
    assert len(examples.rows) == 10
    assert examples.rows[0][1].text == 'im ##muno ##assay'


def test_vocabulary_tables_have_the_numbers_of_the_records(run):
    m = read_measures(run)
    row = row_of(vocabulary.frequency(m), '1 to 10')
    assert row["different words, this run's corpus"].value == 100
    assert row['of running words, general corpus'].text == '8.0 %'
    cross = row_of(vocabulary.frequency_cross(m), '10 to 100')
    assert [cross[f'{d} here'].value for d in (*CLASSES, 'absent')] == [10, 11, 12, 13, 14]
    assert row_of(vocabulary.frequency_cross(m), 'absent')['absent here'] == missing()
    assert 'kinase (1,234)' in vocabulary.frequency_cross(m).note
    pieces = vocabulary.pieces(m)
    assert [r[0].text for r in pieces.rows[::2]] == ['corpus', 'drugs, entities', 'ncbi-disease, entities']
    assert [r[1].text for r in pieces.rows[:2]] == ['source', "this run's"]
    at = list(pieces.columns).index('pieces / word')
    assert [marks[at] for marks in pieces.marks()] == ['second', 'best'] * 3
    assert '18,522' in pieces.note
    assert vocabulary.whole_entities(m).rows[0][2].text == 'l ##ym ##ph ##oma'


def test_vocabularies_of_other_words_are_compared_by_those_between_spaces(tmp_path):
    """Punctuation is a word of WordPiece and a part of one of SentencePiece, so 1.25 is more pieces than 1.3 here."""
    run = fabricate(tmp_path / 'r')
    file = run.workdir / 'vocab' / 'comparison.json'
    comparison = json.loads(file.read_text())
    comparison['source'] |= {'words': 450, 'pieces_per_word': 1.3, 'pieces_per_word_between_spaces': 1.3}
    comparison['vocabulary'] |= {'pieces_per_word_between_spaces': 2.5}
    write_json(file, comparison)
    pieces = vocabulary.pieces(read_measures(run))
    marks = {
        name: [marks[at] for marks in pieces.marks()[:2]]
        for at, name in enumerate(pieces.columns)
        if 'word' in name
    }
    assert marks.pop('pieces / word between spaces') == ['best', 'second']
    assert len(marks) == 4
    assert not any(map(any, marks.values()))
    assert 'not the same' in pieces.note


def test_vocabulary_without_general_text_source_or_sets(tmp_path):
    run = fabricate(tmp_path / 'r')
    frequency = json.loads((run.workdir / 'vocab' / 'frequency.json').read_text())
    write_json(run.workdir / 'vocab' / 'frequency.json', {k: frequency[k] for k in ('per_million', 'domain')})
    write_json(
        run.workdir / 'vocab' / 'comparison.json',
        {
            'size': 9,
            'documents_measured': 1,
            'vocabulary': {'words': 9, 'pieces_per_word': 1, 'unknown_words': 0, 'one_piece_words': 1},
        },
    )
    (run.workdir / 'analyze' / 'entities.json').unlink()
    m = read_measures(run)
    assert len(vocabulary.frequency(m).columns) == 3
    assert not vocabulary.frequency_cross(m).rows
    assert len(vocabulary.pieces(m).rows) == 1
    assert 'config.vocab.general' in vocabulary.frequency_cross(m).absent


class Links(html.parser.HTMLParser):
    """Collects what a browser would fetch, every id, and checks that tags close."""

    VOID = ('meta', 'link', 'br', 'path', 'use', 'rect')

    def __init__(self):
        super().__init__()
        self.fetched, self.ids, self.open = [], [], []

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.fetched += [found[k] for k in ('src', 'href', 'xlink:href', 'action', 'data') if found.get(k)]
        if 'id' in found:
            self.ids.append(found['id'])
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag


def test_page_is_self_contained_and_well_formed(built):
    folder, counts = built
    text = (folder / 'index.html').read_text()
    links = Links()
    links.feed(text)
    links.close()
    assert links.open == []
    outside = [
        x
        for x in links.fetched
        if not x.startswith(('#', 'data:')) and x not in ('tables.md', 'csv/', 'figures/')
    ]
    assert outside == []
    assert not re.search(r'@import|url\((?!#)', text)
    assert len(links.ids) == len(set(links.ids))
    references = {x[1:] for x in links.fetched if x.startswith('#') and len(x) > 1}
    assert references <= set(links.ids)
    assert counts.figures == text.count('role="img"') == len(page.drawn())
    assert counts.tables == text.count('<figure class="table">') >= 25  # of the tool alone
    for label in re.findall(r'role="img" aria-label="([^"]*)"', text):
        assert len(label) > 40


def test_names_are_drawn_as_they_are(run):
    """Neither as mathematics nor, since they begin with _, left out of a legend."""
    names = {'drugs': 'a$^b$', 'ncbi-disease': '_x'}
    m = read_measures(run)
    m = dataclasses.replace(
        m, finetuned=[dataclasses.replace(r, dataset=names[r.dataset]) for r in m.finetuned]
    )
    drawn = page.drawn()['entity_f1'](m).svg
    assert '>a$^b$<' in drawn
    assert '> _x<' in drawn
    assert page.drawn()['epoch_f1'](m).svg


def test_a_run_ends_with_its_table_what_it_brought_and_where_models_and_page_are(tmp_path):
    run = fabricate(tmp_path / 'demo')
    write_json(run.workdir / 'export' / '0.4' / 'config.json', {})
    m = read_measures(run)
    kept = cell_folder(m, m.cells('0.4', m.datasets[0])[0]) / 'model'
    # That of a set which an earlier configuration had is left in the folder.
    for folder in (kept, run.workdir / 'finetune' / '0.4' / 'x' / 'standard' / 'seed-0' / 'model'):
        write_json(folder / 'config.json', {})
    lines = ending(run, 3725).splitlines()
    assert lines[: lines.index('', 1)] == ['', *phases.phases(m).text().splitlines()]
    models = [str(p.parent) for p in sorted(run.workdir.glob('export/*/config.json'))]
    assert lines[lines.index('', 1) + 1 :] == [
        gain.overall(m).sentence,
        f'models: {", ".join(models)}',
        f'fine-tuned models: {kept}',
        f'done in 1 h 2 min; the report: {run.workdir}/report/index.html',
    ]
    assert f'{run.workdir}/export/0.4' in models
    run.config = dataclasses.replace(run.config, stages=('corpus', 'export'))
    assert ending(run, 5) == f'models: {", ".join(models)}'  # no tables of a part
    run.config = dataclasses.replace(run.config, stages=('corpus',))
    assert ending(run, 5) == ''


def test_what_the_page_says_makes_it_again(tmp_path, capsys):
    config = tmp_path / 'a config.py'
    config.write_text('from bioptimus_jax.ext import defaults as get_config\n')
    fabricate(tmp_path / 'demo', finished=False)
    given = ['report', f'--config={config}', f'--workdir={tmp_path}/demo', '--config.runtime.devices=1']
    assert cli.main([*given, '--replace']) == 0
    page_file = tmp_path / 'demo' / 'report' / 'index.html'
    text = page_file.read_text()
    command = html.unescape(re.search('Rebuilt by <code>(.*?)</code>', text)[1])
    assert shlex.split(command) == ['bioptimus', *given]
    page_file.unlink()
    assert cli.main(shlex.split(command)[1:]) == 0
    assert page_file.read_text() == text
    assert f'report: {page_file}' in capsys.readouterr().out


def test_the_page_begins_with_large_numbers(built):
    text = (built[0] / 'index.html').read_text()
    assert re.search('<dl class="headlines">\n<div><dt>.*</dt><dd>.*</dd></div>', text)


def vectors(model, cosine, r, **more):
    of_set = SimilarityOfPairs(pairs=100, pearson=r, cosine=0.5)
    return SentenceVectors(model=model, sentences=100, cosine=cosine, sets={'biosses': of_set}, **more)


def test_what_adapting_costs_vectors_of_sentences_is_on_the_page_and_among_what_to_do(tmp_path):
    m = read_measures(fabricate(tmp_path / 'demo'))
    assert sentences.sentence_vectors(m).empty
    plain = dataclasses.replace(m, similarity=[vectors('source', 0.1, 0.841), vectors('0.4', 0.97, 0.554)])
    rows = [[c.text for c in row] for row in sentences.sentence_vectors(plain).rows]
    assert rows == [['source', '100', '0.100', '0.841'], ['0.4', '100', '0.970', '0.554']]
    assert 'biosses 100 pairs' in sentences.sentence_vectors(plain).note
    assert not any(
        sentences.KEEP in step for step in use.use(plain, None).next
    )  # nobody has made it for sentences
    of_source = vectors('source', 0.1, 0.841, for_sentences=True)
    lost = dataclasses.replace(plain, similarity=[of_source, plain.similarity[1]])
    said = 'Adapting for words has cost vectors of sentences: r on biosses falls from 0.841 to 0.554 and the mean '
    said += 'cosine of unlike sentences rises from 0.100 to 0.970; keep the source for vectors of sentences, or train '
    said += 'them again (`bioptimus run --config=embed`).'
    assert sentences.sentence_vectors(lost).note.startswith(said)
    assert said in use.use(lost, gain.overall(lost)).next
    better = dataclasses.replace(lost, similarity=[of_source, vectors('0.4', 0.05, 0.9)])
    assert sentences.lost_similarity(better) == ''


def test_the_page_says_how_to_use_the_model_and_what_to_try(made, tmp_path):
    run = fabricate(tmp_path / 'demo')
    m = read_measures(run)
    exported = run.workdir / 'export' / '0.4'
    write_json(exported / 'config.json', SMALL['bert'].to_config() | {'model_type': 'bert'})
    assert use.use(m, gain.overall(m)).model == ''  # as in the mirror of a bucket, which has no weights
    (exported / 'model.safetensors').write_bytes(b'')
    best = gain.best_on_devel(m, m.datasets[0], m.models)
    write_json(cell_folder(m, m.cells(best, m.datasets[0])[-1]) / 'model' / 'config.json', {})
    found = use.use(m, gain.overall(m))
    assert found.model == f'{run.workdir}/export/0.4'
    assert f"AutoModelForMaskedLM.from_pretrained('{run.workdir}/export/0.4')" in found.code
    assert len(found.code.splitlines()) == 4
    [command] = found.commands
    assert command.startswith(f'bioptimus predict {run.workdir}/finetune/{best}/{m.datasets[0]}/')
    assert command.endswith(f" --text='...'  # {m.datasets[0]}")
    Reads(texts=2).write(cell_folder(m, m.cells(best, m.datasets[0])[-1]) / 'model')
    assert use.use(m, gain.overall(m)).commands == (command.replace("'...'", r"$'...\t...'"),)
    assert any('config.finetune.keep=best' in step for step in found.next)
    text = dataclasses.replace(made, measures=m).page()
    assert text.index('class="verdict') < text.index('class="use"') < text.index('<nav')
    assert html.escape(found.code, quote=True).replace('&#x27;', '&#39;') in text
    alone = dataclasses.replace(m, finetuned=[])
    assert use.use(alone, None).next[0].startswith('Score the model: name sets in config.finetune.folder')
    one_seed = dataclasses.replace(
        m, finetuned=[r for r in m.finetuned if r.seed == 0 and r.model != 'source']
    )
    said = use.use(one_seed, gain.overall(one_seed)).next
    assert said[0] == 'Score the source too: add it to config.finetune.models, as source.'
    assert said[1].endswith('--config.finetune.seeds=0,1,2')
    judge = {'model_type': 'electra', 'architectures': ['ElectraForPreTraining']}
    write_json(exported / 'config.json', SMALL['electra'].to_config() | judge)
    code = use.use(m, gain.overall(m)).code
    assert f"folder = '{exported}'\n" in code
    assert 'AutoModelForPreTraining.from_pretrained(folder)' in code
    for path, values in files_for_sentence_transformers('mean', 16).items():
        (exported / path).parent.mkdir(exist_ok=True)
        write_json(exported / path, values)
    assert (
        use.use(m, gain.overall(m)).code.splitlines()[3].startswith('vectors = SentenceTransformer(folder)')
    )


def test_the_curve_of_an_objective_that_masks_nothing_says_what_its_loss_is(tmp_path):
    m = read_measures(fabricate(tmp_path / 'demo'))
    assert phases.heldout_loss(m).caption.endswith('[MASK]ed positions only.')
    run, config = copy.copy(m.run), m.run.config
    run.config = dataclasses.replace(
        config, pretrain=dataclasses.replace(config.pretrain, objective='causal')
    )
    shown = phases.heldout_loss(dataclasses.replace(m, run=run))
    assert shown.caption.endswith('nats per piece of a document, told from those before it.')
    assert 'MASK' not in shown.svg


def test_seeds_together_that_pay_are_among_what_to_try(tmp_path, monkeypatch):
    """The gain is of what their folder would answer: the vote, or the mean of logits where the task averages these."""
    m = read_measures(fabricate(tmp_path / 'demo'))
    last, [dataset, *_] = m.phases[-1], m.datasets
    mean = statistics.fmean(m.scores(last, dataset)) / 100
    place = {'model': last, 'dataset': dataset, 'setting': 'standard'}
    over = {'default': OverSeeds(seeds=3, failed=0, mean=mean)}

    def steps(ahead, **changes):
        by_mean = Together(test={'default': {'f1': mean + 0.05}}, interval=None)
        vote = Ensemble(
            seeds=3, test={'default': {'f1': mean + ahead / 100}}, interval=None, mean_logits=by_mean
        )
        of_model = ModelStatistics(
            **place, devel=over, test=over, ensemble=vote, interval=None, unit='texts', units=20, failures={}
        )
        settings = dataclasses.replace(m.run.config.finetune, **changes)
        m.run.config = dataclasses.replace(m.run.config, finetune=settings)
        found = use.use(dataclasses.replace(m, statistics=[of_model]), None).next
        return [step for step in found if 'together' in step]

    assert steps(0.9) == []
    [said] = steps(3.25)
    assert said.endswith('3.2 points ahead of one on the mean of the sets: --config.finetune.keep=ensemble')
    assert steps(3.25, keep='ensemble') == []
    monkeypatch.setattr(type(m.task(dataset)), 'averages', True)
    [said] = steps(0.9, keep='best')
    assert '5.0 points ahead' in said


def test_what_only_a_researcher_reads_is_folded_below_what_everybody_does(built):
    """First the verdict, how to use the model, what to try; then what it found; all else opens on a click, and by a
    link of the navigation."""
    text = (built[0] / 'index.html').read_text()
    headings = re.findall(r'<section id="([^"]+)">\n(<details)?', text)
    folded = [bool(details) for _, details in headings]
    assert folded == sorted(folded)
    assert [name for name, details in headings if not details] == ['phases', 'fine-tuning']
    assert sum(folded) > 5
    first = text.partition('<nav')[0]
    assert first.index('class="verdict') < first.index('class="use"')
    assert '<details' not in first
    assert text.count('<summary class="heading"><h2>') == sum(folded)
    assert "addEventListener('hashchange', reveal)" in text


def test_the_model_for_use_is_the_best_on_devel_of_those_that_are_kept(tmp_path):
    """The one rule of the page and of the end of stage finetune."""

    def cell(model, seed, devel, kept=True, **more):
        folder = tmp_path / model / f'seed-{seed}'
        (folder / 'model' if kept else folder).mkdir(parents=True)
        scores = {'default': {'f1': devel}}
        return dataclasses.replace(ner_cell(model, 'd', seed, 0), devel=scores, **more), folder

    cells = [
        cell('a', 0, 0.5),
        cell('a', 1, 0.7),
        cell('b', 0, 0.65, kept=False),
        cell('c', 0, 0.9, learned_devel=True),
    ]
    assert model_for_use(cells) == tmp_path / 'a' / 'seed-1' / 'model'  # b is better on average, and not kept
    better = [*cells, cell('e', 0, 0.4), cell('e', 1, 0.95, kept=False)]
    assert model_for_use(better) == tmp_path / 'e' / 'seed-0' / 'model'  # by the mean over seeds
    assert model_for_use(cells[2:3]) is None
    assert model_for_use([]) is None


def test_figures_follow_the_page_s_colours(built):
    text = (built[0] / 'index.html').read_text()
    assert 'var(--ink' in text
    for colour in (drawing.INK, drawing.GRID):
        assert colour not in text
    for svg in re.findall(r'<svg.*?</svg>', text, flags=re.DOTALL):
        assert '#000000' not in svg
        assert 'fill: #ffffff' not in svg


def test_the_same_run_gives_the_same_page(made, built):
    assert made.page() == (built[0] / 'index.html').read_text('utf-8')


def test_unfinished_run_says_what_is_missing(tmp_path):
    """What an earlier attempt wrote is left out while another one goes on."""
    run = fabricate(tmp_path / 'half', finished=False)
    write_json(run.workdir / 'analyze' / 'cloze.json', [{'model': '0.1'}])
    write_json(run.workdir / 'analyze' / STARTED, {'config': {}, 'inputs': {}})
    folder = run.workdir / 'report'
    of_before = folder / 'csv' / 'entities.csv'  # of other scores
    (folder / 'csv').mkdir(parents=True)
    of_before.write_text('# old')
    page.build(run, folder)
    assert not of_before.exists()
    assert (folder / 'csv' / 'phases.csv').is_file()
    text = (folder / 'index.html').read_text()
    assert 'stage finetune has not been run' in text
    assert 'stage analyze has not been run to its end' in text
    table = phases.phases(read_measures(run))
    assert row_of(table, '0.1')['held-out loss'].value is not None
    assert row_of(table, '0.2')['held-out loss'] == missing()  # begun, not ended


def test_unfinished_scoring_shows_the_cells_that_are_done(tmp_path):
    """The cells that it asks for, once it has said which, and none before; without a claim all, or the results."""
    run = Run(tmp_path / 'r', Experiment(), quiet=True)
    stage = run.workdir / 'finetune'
    cells = {seed: ner_cell('0.1', 'drugs', seed, 1) for seed in (4, 5, 6)}
    for seed, cell in cells.items():
        record = dataclasses.replace(cell, print=f'of {seed}')
        write_json(stage / f'0.1/drugs/standard/seed-{seed}/scores.json', record.json())
    of = {seed: pytest.approx(65 + seed) for seed in cells}
    assert read_measures(run).scores('0.1', 'drugs') == [of[4], of[5], of[6]]
    write_jsonl(stage / 'results.jsonl', [cells[6].json()])
    write_scores(stage, ['0.1'], ['drugs'])
    assert read_measures(run).scores('0.1', 'drugs') == [of[6]]
    assert read_measures(run).statistics_of('0.1', 'drugs')
    write_json(stage / STARTED, {'config': {}, 'inputs': {}})
    assert read_measures(run).finetuned == [], 'they may be of other settings'
    names = {seed: f'0.1/drugs/standard/seed-{seed}' for seed in (4, 5, 7)}
    # Seed 5 was made with other settings, 6 is not asked for, 7 is not done.
    asked = {names[4]: 'of 4', names[5]: 'of another', names[7]: 'of 7'}
    write_json(stage / STARTED, {'config': {}, 'inputs': {}, 'cells': asked})
    m = read_measures(run)
    assert m.scores('0.1', 'drugs') == [of[4]]
    assert (m.statistics_of('0.1', 'drugs'), m.slices, len(m.lint)) == (None, [], 1), 'they are of seed 6'


def test_empty_run_has_a_page_too(tmp_path):
    run = Run(tmp_path / 'empty', Experiment(), quiet=True)
    card = run.workdir / 'report' / 'cards' / '0.1.md'
    write_json(card, 'scores of an earlier configuration')
    counts = page.build(run, run.workdir / 'report').counts
    assert counts.figures == 0
    assert not card.exists(), 'the model is not scored any more'
    assert (run.workdir / 'report' / 'tables.md').read_text().count('has not been run') >= 4


def test_a_run_that_goes_on_is_followed_until_its_last_stage_is_done(tmp_path, capsys):
    experiment = dataclasses.replace(Experiment(), stages=('corpus', 'vocab', 'report'))
    run = Run(tmp_path / 'run', experiment, quiet=True)
    text = run.workdir / 'live' / 'index.html'
    write_json(run.workdir / 'vocab' / STARTED, {'config': {}, 'inputs': {}})
    run.metrics.write('vocab', 1200, words=1)
    for done, now in (((), 'vocab, step 1,200'), (('vocab',), 'before corpus')):
        for stage in done:
            write_json(run.workdir / stage / 'manifest.json', manifest(stage, {}))
        run.console.stopping.set()  # as Ctrl-C does: after a page
        with pytest.raises(Stopped):
            live.follow(run, 45)
        assert f'In progress: {now}. As of ' in text.read_text()
        assert '<meta http-equiv="refresh" content="45">' in text.read_text()
        assert 'location.reload()' in text.read_text()
    write_json(run.workdir / 'corpus' / 'manifest.json', manifest('corpus', {}))
    assert live.follow(run, 45) == text
    for word in ('In progress', 'refresh', 'reload'):
        assert word not in text.read_text()
    assert not (run.workdir / 'report').exists()  # which is the stage's
    for given, code, line in (
        (['report', '--live'], 2, 'report --live takes the --config and --workdir'),
        (
            ['report', '--live', '--replace'],
            2,
            'report --live makes the page again all the time; leave --replace out',
        ),
        (
            ['report', '--config=demo', f'--workdir={tmp_path}/none', '--live=5'],
            3,
            'no such run folder; start the',
        ),
    ):
        assert cli.main(given) == code
        assert line in capsys.readouterr().err
    # No path of the config is read, so none need be there.
    (tmp_path / 'unset.py').write_text(
        'from bioptimus_jax.ext import defaults\n\n\ndef get_config(argument=""):\n    loaded = defaults()\n'
        '    loaded.stages = ("corpus",)\n    loaded.corpus.inputs = ("$UNSET/*.txt",)\n    return loaded\n'
    )
    assert (
        cli.main(['report', f'--config={tmp_path / "unset.py"}', f'--workdir={run.workdir}', '--live']) == 0
    )
    assert cli.main(['report', f'--config={tmp_path / "unset.py"}', f'--workdir={tmp_path / "none"}']) == 0
    staging = '--config.runtime.staging=$UNSET/here'  # but of what says where it works
    assert cli.main(['report', f'--config={tmp_path / "unset.py"}', f'--workdir={run.workdir}', staging]) == 2
    assert 'config.runtime.staging: $UNSET is not set' in capsys.readouterr().err


def test_metrics_of_a_stage_taken_from_a_base_run_are_found(run, tmp_path):
    later = Run(tmp_path / 'later', Experiment(), quiet=True)
    write_json(
        later.workdir / 'pretrain' / 'manifest.json', {'folder': str(run.workdir / 'pretrain'), 'counts': {}}
    )
    assert len(read_measures(later).training) == 40


@pytest.mark.parametrize('damage', [b'{"model": ', b'\xff'])
def test_damaged_record_is_named(damage, tmp_path):
    run = fabricate(tmp_path / 'r')
    with open(run.workdir / 'finetune' / 'results.jsonl', 'ab') as file:
        file.write(damage)
    with pytest.raises(InputError, match=r'results\.jsonl, line 31'):
        read_measures(run)


def test_a_record_goes_on_behind_what_other_programs_take_for_the_end_of_a_line(tmp_path):
    run = fabricate(tmp_path / 'r')
    file = run.workdir / 'surgery' / 'tokens.jsonl'
    tokens = read_jsonl(file)
    tokens[0]['token'] = 'a\u2028b\u0085c'
    write_jsonl(file, tokens)
    assert plain(read_measures(run).tokens) == tokens


def test_what_finished_stages_have_lost_is_said_and_what_is_damaged_refused(tmp_path):
    run = fabricate(tmp_path / 'r')
    for stage, name in (
        ('finetune', 'results.jsonl'),
        ('analyze', 'points.json'),
        ('pretrain', 'phases.json'),
    ):
        write_json(run.workdir / 'pretrain' / 'phases.json', {})
        manifest = run.manifest(stage)
        files = listed(run.workdir / stage, run.checksums())
        lines = digest(run.metrics.of(stage))
        write_manifest(run.workdir / stage, dataclasses.replace(manifest, files=files, metrics=lines))
        assert not read_measures(run).gaps
        path = run.workdir / stage / name
        content = path.read_bytes()
        for damage in (b'', content[:-9], b'[1]', b'{"a": 1}', b'\xff' + content):
            path.write_bytes(damage)
            with pytest.raises(InputError, match=f'{stage}/{name}: is not what was written'):
                read_measures(run)
        path.unlink()
        assert f'{stage} has lost {name}, which `bioptimus {stage}` rebuilds' in read_measures(run).gaps
        path.write_bytes(content)
        kept = (path.parent / 'manifest.json').rename(tmp_path / 'kept')
        assert f'{stage} has lost manifest.json: restore it' in read_measures(run).gaps
        kept.rename(path.parent / 'manifest.json')
    run.metrics.write('pretrain', 1000, kind='evaluation', phase='0.4', frozen_loss=0.1, losses={})
    said = 'metrics.jsonl does not hold the lines that pretrain wrote'
    assert said in read_measures(run).gaps
    (run.workdir / 'report').mkdir()
    page.build(run, run.workdir / 'report')
    assert html.escape(said) in (run.workdir / 'report' / 'index.html').read_text()


def test_a_stage_that_was_made_anew_is_said_and_no_card_mixes_two_models(tmp_path, monkeypatch):
    """The page would have the losses of the new training beside the scores of the old one."""
    run = fabricate(tmp_path / 'r')
    write_json(run.workdir / 'export' / '0.4' / ABOUT, Export(phase='0.4').json())
    monkeypatch.setattr(page, 'read_architecture', lambda folder: None)
    monkeypatch.setattr(page.card, 'model_card', lambda *given: 'the scores')
    trained, exported = run.manifest('pretrain'), run.manifest('export')
    read = dataclasses.replace(exported, inputs={'pretrain': trained.content})
    write_manifest(run.workdir / 'export', read)
    m = read_measures(run)
    assert 'earlier' not in m.gaps
    assert page.write_cards(m, tmp_path / 'cards') == 1
    write_manifest(run.workdir / 'pretrain', dataclasses.replace(trained, content='of another rate'))
    m = read_measures(run)
    assert m.gaps == (
        'Not of one making: export is of an earlier pretrain. Run these again: their numbers may be of another model.'
    )
    assert page.write_cards(m, tmp_path / 'cards') == 0
    assert older_stages(run) == {'export': ('pretrain',)}
    assert 'done, of an earlier pretrain' in status_of(run.workdir).text()


def older_stages(run):
    return {s.stage: s.outdated for s in status_of(run.workdir).stages if s.outdated}


@pytest.mark.parametrize('claim', [True, False])
def test_what_was_made_through_another_stage_is_of_an_earlier_one_too(tmp_path, claim):
    """Fine-tuning reads the export alone; while pre-training is made again, or after it, both are of an earlier one."""
    run = fabricate(tmp_path / 'r')
    trained, exported, tuned = (run.manifest(s) for s in ('pretrain', 'export', 'finetune'))
    write_manifest(
        run.workdir / 'export',
        dataclasses.replace(exported, inputs={'pretrain': trained.content}, content='of the first'),
    )
    write_manifest(
        run.workdir / 'finetune', dataclasses.replace(tuned, inputs={'export': 'of the first', 'file': 'a'})
    )
    assert older_stages(run) == {}
    if claim:
        (run.workdir / 'pretrain' / 'manifest.json').unlink()
        write_json(run.workdir / 'pretrain' / STARTED, {'config': {}, 'inputs': {}})
    else:
        write_manifest(run.workdir / 'pretrain', dataclasses.replace(trained, content='of another rate'))
    assert older_stages(run) == {'export': ('pretrain',), 'finetune': ('pretrain',)}
    gaps = read_measures(run).gaps
    assert 'export is of an earlier pretrain; finetune is of an earlier pretrain. Run these again' in gaps


@pytest.mark.parametrize(
    'name', ['probe.json', 'difficulty.json', 'finetune/lint.json', 'pretrain/curriculum.json']
)
@pytest.mark.parametrize('text', ['3', '[1]', '{"a": 1}', '"a"'])
def test_other_json_is_one_line(tmp_path, name, text):
    run = Run(tmp_path, Experiment(), quiet=True)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=f'{name}: is damaged'):
        assert read_measures(run).phases


def test_every_figure_is_a_file_too(built):
    for name in page.drawn():
        text = (built[0] / 'figures' / f'{name}.svg').read_text()
        assert text.startswith('<svg')
        assert text.strip() in (built[0] / 'index.html').read_text()


def test_the_phases_of_a_run_are_known_from_its_folder(tmp_path):
    run = Run(tmp_path / 'r', Experiment(), quiet=True)
    config = {'phases': ['easy', 'hard'], 'phase.easy.rate': 0.1, 'phase.hard.rate': 0.3}
    write_json(run.workdir / 'pretrain' / '.started.json', {'config': config, 'inputs': {}})
    experiment = experiment_of(run.workdir)
    assert experiment.phases == ('easy', 'hard')
    assert experiment.phase['hard'].rate == 0.3


def test_the_page_says_the_settings_of_the_stages_and_not_those_of_the_command(tmp_path, capsys):
    """Whoever makes the page again need not give what the run was given; a stage that goes on counts as well."""
    run = Run(tmp_path / 'r', Experiment(stages=('corpus', 'surgery', 'pretrain', 'finetune')))
    for stage, file, config in (
        ('corpus', 'manifest.json', {'corpus.heldout_fraction': 0.03}),
        ('surgery', 'manifest.json', {'surgery.strategy': 'averaged_input'}),
        ('pretrain', STARTED, {'phases': ['0.2'], 'phase.0.2.rate': 0.25}),
        ('finetune', 'manifest.json', {'finetune.seeds': [0, 1], 'finetune.keep': 'best'}),
    ):
        write_json(run.workdir / stage / file, {'config': config, 'inputs': {}})
    page.build(run, run.workdir / 'report')
    text = html.unescape((run.workdir / 'report' / 'index.html').read_text())
    assert 'rows averaged_input; curriculum 0.2 (words, 25%, 80-10-10)' in text
    for name, value in {
        'corpus.heldout_fraction': 0.03,
        'phase.0.2.rate': 0.25,
        'finetune.seeds': '[0, 1]',
        'finetune.keep': '"best"',
    }.items():
        assert f'<td>{name}</td><td class="long"><code>{value}</code>' in text
    (said,) = [line for line in capsys.readouterr().out.splitlines() if 'this command has others' in line]
    assert 'config.corpus.heldout_fraction: 0.03 -> 0.01; config.finetune.keep: best -> none; ' in said
    assert said.endswith(' -> contextualized')


def test_every_table_is_a_csv_that_programs_read(made, built):
    filled = {name: t for name, t in made.tables.items() if t.rows}
    assert {file.name for file in (built[0] / 'csv').iterdir()} == {f'{name}.csv' for name in filled}
    assert len(filled) == built[1].tables
    for name, table in filled.items():
        file = built[0] / 'csv' / f'{name}.csv'
        assert file.read_bytes()[:3] == b'\xef\xbb\xbf'  # how a spreadsheet knows UTF-8
        head, *rows = csv.reader(file.read_text('utf-8-sig').splitlines())
        assert len(rows) == len(table.rows)
        assert {len(row) for row in rows} == {len(head)} == {len(set(head))}
        assert not any(value == layout.NOT_RUN or value.startswith('#') for row in rows for value in row)
    losses = csv.DictReader((built[0] / 'csv' / 'phases.csv').read_text('utf-8-sig').splitlines())
    assert [float(r['held-out loss']) for r in losses] == [6.2 - step / 140 for step in range(0, 401, 100)]


def test_the_corpus_is_accounted_for(run):
    m = read_measures(run)
    cells = [[cell.text for cell in row] for row in corpus.documents(m).rows]
    assert cells == [
        ['read', '1,000', '100.0 %', '—'],
        ['left out: duplicate text', '4', '0.4 %', '—'],
        ['left out: benchmark', '3', '0.3 %', '—'],
        ['for training', '983', '98.3 %', '98,300'],
        ['held out', '10', '1.0 %', '1,000'],
        ['of both: retracted articles', '2', '0.2 %', '—'],
    ]
    assert [[cell.text for cell in row] for row in corpus.leaks(m).rows] == [
        ['drugs', 'devel', '1', '1'],
        ['ncbi-disease', 'test', '2', '3'],
    ]
    sentences = [row[2].text for row in corpus.leaked_sentences(m).rows]
    assert sentences == ['A <leaked> sentence .', 'Another one .', 'A <leaked> sentence .', 'A third .']
    assert '&lt;leaked&gt;' in corpus.leaked_sentences(m).html()


def test_effort_is_summed_from_the_records_with_contexts_and_surgery(run):
    m = read_measures(run)
    table = efficiency.efficiency(m)
    end = row_of(table, '0.2')
    assert (end['steps'].value, end['tokens'].value, end['words'].value) == (200, 819_200, 614_400)
    assert end['FLOPs'].text == '2e+14'
    assert end['hours'].value == pytest.approx((65 + 65 + 180) / 3600)  # two stages, then steps
    assert end['kWh'].value == pytest.approx(0.02)  # 72 kJ
    start = row_of(table, 'initial (step 0)')
    assert (start['steps'].value, start['tokens'].value, start['FLOPs'].value) == (0, 0, 0)
    assert start['hours'].value == pytest.approx(130 / 3600)
    assert start['kWh'] == missing()
    assert 'first process' in table.note


def test_contexts_are_charged_to_the_surgery_that_read_them(run):
    m = read_measures(run)
    without = {**m.manifests, 'surgery': dataclasses.replace(m.manifests['surgery'], inputs={'vocab': 'x'})}
    start = row_of(efficiency.efficiency(dataclasses.replace(m, manifests=without)), 'initial (step 0)')
    assert start['hours'].value == pytest.approx(65 / 3600)


def test_levels_are_round_and_reached_where_the_records_say(run):
    assert efficiency.levels([1.2, 5.7, 3.0]) == [2, 4]
    assert efficiency.levels([0.1, 0.5]) == [0.2, 0.3, 0.4, 0.5]
    assert efficiency.levels([3.0, 2.0]) == []
    assert efficiency.first_at([(20, 3.0, 'b'), (10, 2.0, 'a'), (30, 9.0, 'c')], 3) == (20, 3.0, 'b')
    table = efficiency.to_reach(read_measures(run))
    # 6.2 - step / 140, seen every 50 steps, down to 3.34: below 5 at step 200, below 4 at 350.
    assert row_of(table, 'held-out loss 5')['first at'].text == 'step 200'
    assert row_of(table, 'held-out loss 4')['steps'].value == 350
    # 61 in devel F1 at step 0, then 66, 71 ...: 65 is first had after 0.1.
    assert row_of(table, 'devel F1 on drugs, 65')['first at'].text == '0.1'
    assert row_of(table, 'devel F1 on drugs, 80')['steps'].value == 400


def test_flops_of_surgery_are_those_of_the_plan_and_what_is_not_on_record_is_left_empty(run, params_shape):
    m = read_measures(run)
    older = [dataclasses.replace(r, flops=None, seconds=None, joules=None) for r in m.spent]
    m = dataclasses.replace(m, spent=older)
    row = row_of(efficiency.efficiency(m), '0.1')
    assert (row['FLOPs'], row['hours'], row['kWh'].text) == (missing(), missing(), 'not reported')
    write_json(run.workdir / 'surgery' / 'model' / 'config.json', params_shape)
    found = efficiency.effort_at(
        dataclasses.replace(m, encoded=[Encoded(step=0, name='new', pieces=1000, attended=40.0)]), 0
    )
    (run.workdir / 'surgery' / 'model' / 'config.json').unlink()
    assert found.flops == pytest.approx(1000 * (8 * 16 * 16 + 4 * 16 * 32 + 4 * 40 * 16))


@pytest.fixture
def params_shape():
    shape = dict(vocab_size=100, hidden_size=16, num_hidden_layers=1, num_attention_heads=2)
    return dict(model_type='bert', intermediate_size=32, max_position_embeddings=64, **shape)


def test_a_run_of_a_few_steps_with_one_line_has_its_curve(run):
    m = read_measures(run)
    one = dataclasses.replace(m.training[0], step=3)
    figure = training.training_loss(dataclasses.replace(m, training=[one], evaluations=[]))
    assert 'at step 3' in figure.alt
    assert figure.svg.count('>0.1<') == 1, 'the phase has its name'


def test_curves_count_steps_and_tokens_and_mark_the_phases(run):
    m = read_measures(run)
    curves = (
        phases.heldout_loss,
        phases.entities_while_training,
        training.training_loss,
        page.drawn()['checkpoint_f1'],
    )
    for figure in (curve(m) for curve in curves):
        assert '>million tokens<' in figure.svg
        assert '>step<' in figure.svg
        for phase in PHASES:
            assert f'>{phase}<' in figure.svg


def test_entities_from_frozen_states_are_beside_the_losses_of_phases(run):
    m = read_measures(run)
    table = phases.phases(m)
    at = list(table.columns).index('ncbi-disease, frozen')
    of_model = {row[0].text: row[at].text for row in table.rows}
    assert [of_model[name] for name in PHASES] == ['32.00', '34.00', '36.00', '38.00']
    assert 'F1 from frozen states' in table.note
    bare = [dataclasses.replace(e, scores={}) for e in m.evaluations]
    without = dataclasses.replace(m, evaluations=bare)
    assert 'ncbi-disease, frozen' not in phases.phases(without).columns
    assert 'config.evaluation.entities' in phases.entities_while_training(without).absent


def test_entities_are_counted_in_pieces(run):
    m = read_measures(run)
    measured = m.entities.datasets['drugs']['source']
    assert measured.pieces_per_mention == pytest.approx(2.0 * 900 / 500)
    assert dataclasses.replace(measured, mentions=0).pieces_per_mention is None
    both = vocabulary.frequency_classes(m)
    assert re.search(r'different words, %: .* 90.01 \(below 1\)', both.alt)  # 1,000 of 1,111 words
    assert '>general corpus<' in both.svg
