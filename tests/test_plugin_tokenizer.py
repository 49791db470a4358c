"""The kind of tokenizer of the how-to, from a folder of its own, through the stages: nobody else knows its name."""

import re
from pathlib import Path

import jax
import numpy as np
import pytest

from bioptimus_jax.analysis import cloze, contexts, entities
from bioptimus_jax.config import defaults
from bioptimus_jax.corpus.documents import open_documents
from bioptimus_jax.errors import ConfigError
from bioptimus_jax.files import read_json, write_jsonl
from bioptimus_jax.finetune.summary import known_of
from bioptimus_jax.model import tensors
from bioptimus_jax.model.families.bert import Bert
from bioptimus_jax.pretrain import curriculum
from bioptimus_jax.pretrain.objective import make_objective
from bioptimus_jax.pretrain.rows import Rows
from bioptimus_jax.pretrain.sharding import make_mesh
from bioptimus_jax.pretrain.step import example_at
from bioptimus_jax.run import Run, execute
from bioptimus_jax.schema import TOKENIZERS, Experiment, Vocab
from bioptimus_jax.stages import STAGES
from bioptimus_jax.surgery import distil, reading
from bioptimus_jax.surgery import source as sources
from bioptimus_jax.vocab import frequency, kinds, subwords
from bioptimus_jax.vocab.build import check
from bioptimus_jax.vocab.contexts import load_contexts
from bioptimus_jax.vocab.kinds.wordpiece import SPECIAL_TOKENS, make

PAGE = Path(__file__).resolve().parents[1] / 'docs' / 'howto' / 'add-tokenizer.md'
WORDS = ('aspirin', 'naïve', 'kinase', 'drug', 'dose', 'of', 'the', 'and', 'cell', 'tumor')
TEXTS = [' '.join(f'{WORDS[(n * k + k) % 10]}{"." * (k % 5 == 4)}' for k in range(24)) for n in range(40)]
OLD = [' '.join(text.split(' ')[:3]) for text in TEXTS]
PHASE, NEW = '0.2', 'Ġtumor'


@pytest.fixture(scope='module')
def kind(tmp_path_factory):
    """The kind of the how-to's page, in a file of a temporary folder."""
    folder = tmp_path_factory.mktemp('kinds')
    (code,) = re.findall(
        r'```python title="[\w/]*/kinds/spaced.py"\n(.*?)\n```', PAGE.read_text('utf-8'), re.S
    )
    assert 'spaced' not in TOKENIZERS
    (folder / 'spaced.py').write_text(code, 'utf-8')
    kinds.__path__.append(str(folder))
    yield TOKENIZERS.load('spaced')
    kinds.__path__.remove(str(folder))


@pytest.fixture(scope='module')
def run(kind, tmp_path_factory):
    """A run whose source has a tokenizer of that kind, after all stages up to the rows."""
    folder = tmp_path_factory.mktemp('run')
    settings = Vocab(tokenizer='spaced', size=285, lowercase=False)
    old = kind.train(kind.count_words(OLD, False), settings, None)
    old.save(folder / 'old', 128)
    shape = Bert(len(old.tokens), 16, 1, 2, 24, 128, initializer_range=0.3)
    parameters = jax.tree.map(np.asarray, shape.initial_parameters(jax.random.key(0)))
    tensors.write_folder(folder / 'source', shape, parameters, folder / 'old')
    records = [{'id': str(n), 'title': '', 'abstract': text} for n, text in enumerate(TEXTS)]
    write_jsonl(folder / 'texts.jsonl', records)
    c = defaults()
    c.corpus.update(inputs=(str(folder / 'texts.jsonl'),), min_words=1, heldout_fraction=0.1)
    c.corpus.near.threshold = 0.0
    c.source.path, c.runtime.workers, c.phases = str(folder / 'source'), 1, (PHASE,)
    c.vocab.update(tokenizer='spaced', size=320, lowercase=False)
    c.surgery.update(strategy='contextualized', map='respelled')
    c.rows.update(row_pieces=128, max_document_pieces=128)
    c.pretrain.batch_rows = 8
    made = Run(folder / 'run', Experiment.from_config(c), quiet=True)
    for stage in ('corpus', 'vocab', 'contexts', 'surgery', 'rows'):
        execute(made, STAGES[stage])
    return made


def test_the_kind_is_listed_without_being_imported(kind):
    assert list(TOKENIZERS) == ['spaced', 'wordpiece']
    config = defaults()
    config.vocab.tokenizer = 'spaced'
    assert Experiment.from_config(config).vocab.tokenizer == 'spaced'


def test_a_source_of_another_kind_is_refused_in_one_line(run):
    config = defaults()
    config.source.path = run.config.source.path
    with pytest.raises(
        ConfigError, match=r'vocab\.tokenizer: is wordpiece, .* set --config\.vocab\.tokenizer=spaced'
    ):
        check(Run(run.workdir / 'other', Experiment.from_config(config), quiet=True))


def test_contexts_are_found_where_whole_sentences_have_the_token(run, kind):
    """A new token that begins a word holds its space, so it stands nowhere if stretches lack theirs."""
    known, found = subwords.load(run.workdir / 'vocab'), load_contexts(run.workdir / 'contexts')
    spaced = {token for token in found.tokens if kind.begins(token)}
    assert NEW in spaced
    for token, sentence, start, end in zip(found.tokens, found.sentence, found.start, found.end, strict=True):
        text = found.sentences[sentence]
        assert text[start:end] == kind.text(token)
        (encoding,) = known.encode([text])
        spans = {name: [] for name in encoding.tokens}
        for name, (begin, stop) in zip(encoding.tokens, encoding.offsets, strict=True):
            spans[name].append((begin + (text[begin] == ' '), stop))
        assert (start, end) == spans[token][0]


def test_new_rows_come_from_contexts_and_the_rest_is_copied(run, kind):
    report = read_json(run.workdir / 'surgery' / 'report.json')
    assert report['tokens']['synthesised'] > 10
    assert report['tokens']['copied'] > 256
    assert report['map']['tokens'] > 2  # tokens of the source that other pieces spell
    loaded = sources.load_source(run.config)
    assert loaded is not None
    assert kind.text(NEW) == 'tumor'
    spelled = loaded.subwords.spell_token(NEW)
    assert ''.join(loaded.vocabulary[i] for i in spelled) == NEW
    inside = loaded.subwords.spell('tumor', inside=True)
    assert ''.join(loaded.vocabulary[i] for i in inside) == 'tumor'


def test_lessons_take_the_pieces_with_their_space_for_the_token(run):
    loaded, found = sources.load_source(run.config), load_contexts(run.workdir / 'contexts')
    assert loaded is not None
    targets = {token: number for number, token in enumerate(dict.fromkeys(found.tokens))}
    chosen = reading.choose_occurrences(found, targets, 'all', 0)
    taught = distil.lessons(loaded, found.sentences, chosen)
    assert targets[NEW] in taught.target
    (row, *_) = np.flatnonzero(taught.target == targets[NEW])
    gone = taught.source_length[row] - taught.own_length[row] + 1
    at = taught.slot[row]
    assert ''.join(loaded.vocabulary[i] for i in taught.source[row][at : at + gone]) == NEW


def test_whole_words_are_masked_as_the_tokens_say(run, kind):
    known, rows = subwords.load(run.workdir / 'vocab'), Rows(run.folder('rows'), 'train')
    batch = rows.read(np.arange(8) % len(rows))
    mesh = make_mesh(1)
    architecture = tensors.read_architecture(run.workdir / 'surgery' / 'model')
    objective = make_objective(run.config, architecture, known, rows.pieces, mesh, print)
    schedule = curriculum.make_schedule(run.config, curriculum.RowCounts(8, 1, 1))
    table = curriculum.table(schedule, run.config)
    several = 0
    for step in range(6):
        masked = example_at(objective, batch, table, np.int32(step)).rows.masked
        for row, tokens in enumerate(batch['tokens']):
            taken = np.zeros(len(tokens), bool)
            taken[np.asarray(masked.slots_M[row])[np.asarray(masked.weights_M[row]) > 0]] = True
            specials = {known.pad, known.cls, known.sep, known.mask}
            assert not {int(t) for t in tokens[taken]} & specials
            for place in np.flatnonzero(taken):  # a piece inside a word is masked with the one before it
                if known.tokens[tokens[place]][0] != 'Ġ' and tokens[place - 1] not in specials:
                    assert taken[place - 1]
                    several += 1
        hidden = np.asarray(masked.inputs_L) == known.mask
        assert hidden.any()
    assert several


def test_documents_are_spelled_as_the_library_spells_them(run):
    known, documents = subwords.load(run.workdir / 'vocab'), open_documents(run.folder('corpus'), 'train')
    rows = Rows(run.folder('rows'), 'train')
    pieces = rows.read(np.arange(len(rows)))
    spelled = {
        tuple(part.tolist())
        for row, lengths in zip(pieces['tokens'], pieces['segment_lengths'], strict=True)
        for part in np.split(row, np.cumsum(lengths))[: int((lengths > 0).sum())]
    }
    expected = {(known.cls, *e.ids, known.sep) for e in known.encode(d.text for d in documents)}
    assert spelled == expected
    assert rows.counts['words'] == sum(len(d.text.split()) for d in documents)


def test_words_of_the_analysis_are_spelled_as_in_their_sentence(run, kind):
    """Hidden words, rare and frequent ones, entities and counted words: each with its space, or none would be found."""
    known = subwords.load(run.workdir / 'vocab')
    spellers = [cloze.Speller(each) for each in (known, subwords.load(Path(run.config.source.path)))]
    documents = list(open_documents(run.folder('corpus'), 'train'))
    chosen = cloze.passages(documents, spellers, fraction=0.3, seed=0, max_pieces=128)
    texts = {d.id: d.text for d in documents}
    assert len(chosen) > 5
    for passage, row in zip(chosen, cloze.rows_of(chosen, spellers[0], masked=False), strict=True):
        text = ''.join(passage.words)
        assert texts[passage.id].startswith(text)
        assert row.tokens.tolist() == [known.cls, *known.encode([text])[0].ids, known.sep]
        assert all(passage.words[at].strip() for at in passage.hidden)
    words, counts = frequency.read(run.workdir / 'vocab')
    thirds = contexts.frequency_thirds(words, counts.tolist(), spellers[0])
    assert len(thirds) >= 4
    assert all(word[0] == ' ' and word[1:] in WORDS for word in thirds)
    measured = entities.measure(known, {'tumor': 3, 'tumor dose': 1})
    assert (measured['pieces_per_word'], measured['one_piece_mentions']) == (1.0, 0.75)
    slices = known_of(run.workdir / 'surgery', run.workdir / 'vocab', 1)
    assert NEW in slices.contexts_of
    assert slices.count_of('tumor') == sum(text.count(' tumor') for text in texts.values()) > 0


def test_tokenizers_of_two_kinds_are_compared_on_what_is_between_spaces(run):
    other = make([*SPECIAL_TOKENS, *(letter for letter in 'abcdefghijklmnopqrstuvwxyzï.'), *WORDS], False)
    spellers = [cloze.Speller(each, True) for each in (other, subwords.load(run.workdir / 'vocab'))]
    documents = list(open_documents(run.folder('corpus'), 'train'))
    chosen = cloze.passages(documents, spellers, fraction=0.3, seed=0, max_pieces=128)
    texts = {d.id: d.text for d in documents}
    for speller in spellers:
        for passage, row in zip(chosen, cloze.rows_of(chosen, speller, masked=False), strict=True):
            text = ''.join(passage.words)
            assert ' '.join(texts[passage.id].split()).startswith(text)
            assert row.tokens[1:-1].tolist() == speller.subwords.encode([text])[0].ids
    hidden = [passage.words[at] for passage in chosen for at in passage.hidden]
    assert {word.strip(' .') for word in hidden} <= set(WORDS)
    words, counts = frequency.read(run.workdir / 'vocab')
    assert contexts.frequency_thirds(words, counts.tolist(), spellers[0]).keys() <= set(hidden)
