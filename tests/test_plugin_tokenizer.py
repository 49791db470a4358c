"""The kind of tokenizer of the how-to, from a folder of its own, through the stages: nobody else knows its name."""

import dataclasses
from pathlib import Path

import jax
import numpy as np
import pytest
from toy_plugins import plugged, shown

from bioptimus_jax.analysis import cloze, contexts, entities
from bioptimus_jax.corpus.documents import document_key, open_documents
from bioptimus_jax.errors import ConfigError
from bioptimus_jax.experiment.config import defaults
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.finetuning.summary import token_statistics
from bioptimus_jax.model import tensors
from bioptimus_jax.model.families.bert import Bert
from bioptimus_jax.pretrain import curriculum
from bioptimus_jax.pretrain.objective import make_objective
from bioptimus_jax.pretrain.shape import RowCounts
from bioptimus_jax.pretrain.sharding import make_mesh
from bioptimus_jax.pretrain.step import example_at
from bioptimus_jax.rows.stored import Rows
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.folder import Run
from bioptimus_jax.storage.files import read_json, write_jsonl
from bioptimus_jax.surgery import distil, reading
from bioptimus_jax.surgery import source as sources
from bioptimus_jax.tokenizer import subwords
from bioptimus_jax.tokenizer.config import TOKENIZERS, Vocab
from bioptimus_jax.tokenizer.kinds.wordpiece import SPECIAL_TOKENS, make
from bioptimus_jax.vocab import frequency
from bioptimus_jax.vocab.agreement import load_in_transformers
from bioptimus_jax.vocab.build import check
from bioptimus_jax.vocab.contexts import load_contexts

WORDS = ('aspirin', 'naïve', 'kinase', '(p53)', 'drug-dose', 'of', 'the', 'and', 'cell', 'tumor')
TEXTS = [' '.join(f'{WORDS[(n * k + k) % 10]}{"." * (k % 5 == 4)}' for k in range(24)) for n in range(40)]
TEXTS = [
    f'{text} {WORDS[n % 10]}{WORDS[(n * 3 + 1) % 10]}' for n, text in enumerate(TEXTS)
]  # rare words at the end
OLD = [' '.join(text.split(' ')[:3]) for text in TEXTS]
PHASE = '0.2'
NEW = {
    'digits': ('tumor', '##umor'),
    'bytelevel': ('Ġtumor', 'umor'),
    'unigram': ('▁aspirin', 'aspirin'),
    'sentencepiece_bpe': ('▁tumor', 'umor'),
}
SENTENCEPIECE = ('unigram', 'sentencepiece_bpe')
SIZES = {'digits': (60, 100), 'bytelevel': (300, 330), 'unigram': (50, 100), 'sentencepiece_bpe': (60, 110)}


@pytest.fixture(scope='module')
def digits(tmp_path_factory):
    """The kind of the how-to's page, in a file of a user's own."""
    file = tmp_path_factory.mktemp('kinds') / 'digits.py'
    file.write_text(shown('add-tokenizer.md', 'mine/digits.py'))
    assert 'digits' not in TOKENIZERS
    with plugged(file):
        yield 'digits'


@pytest.fixture(scope='module', params=NEW)
def name(request, digits):
    return request.param


@pytest.fixture(scope='module')
def kind(name):
    return TOKENIZERS.load(name)


@pytest.fixture(scope='module')
def run(name, kind, tmp_path_factory):
    """A run whose source has a tokenizer of that kind, after all stages up to the rows."""
    folder = tmp_path_factory.mktemp('run')
    small, large = SIZES[name]
    settings = Vocab(tokenizer=name, size=100, lowercase=False, min_frequency=1)
    old = kind.train(kind.count_words(OLD, False), dataclasses.replace(settings, size=small), None)
    old.save(folder / 'old', 128)
    shape = Bert(len(old.tokens), 16, 1, 2, 24, 128, initializer_range=0.3)
    parameters = jax.tree.map(np.asarray, shape.initial_parameters(jax.random.key(0)))
    tensors.write_folder(folder / 'source', shape, parameters, folder / 'old')
    records = [{'id': str(n), 'title': '', 'abstract': text} for n, text in enumerate(TEXTS)]
    write_jsonl(folder / 'texts.jsonl', records)
    c = defaults()
    c.corpus.update(inputs=(str(folder / 'texts.jsonl'),), min_words=1, heldout_fraction=0.2)
    c.corpus.near.threshold = 0.0
    c.source.path, c.runtime.workers, c.phases = str(folder / 'source'), 1, (PHASE,)
    c.vocab.update(tokenizer=name, size=large, lowercase=False, min_frequency=6)
    c.surgery.update(strategy='contextualized', map='none' if name in ('digits', 'unigram') else 'respelled')
    c.rows.update(row_pieces=128, max_document_pieces=128)
    c.pretrain.batch_rows = 8
    c.phase[PHASE].update(duration=2, duration_unit='steps')
    made = Run(folder / 'run', Experiment.from_config(c), quiet=True)
    for stage in ('corpus', 'vocab', 'contexts', 'surgery', 'rows'):
        execute(made, STAGES[stage])
    return made


def test_the_kind_is_listed_without_being_imported(digits):
    assert list(TOKENIZERS) == sorted([*TOKENIZERS.own, 'digits'])
    config = defaults()
    config.vocab.tokenizer = digits
    assert Experiment.from_config(config).vocab.tokenizer == digits


@pytest.mark.parametrize('kept', ['source', 'append'])
def test_a_vocabulary_of_another_kind_cannot_be_kept(run, name, kept):
    config = defaults()
    config.source.path, config.vocab.kind = run.config.source.path, kept
    with pytest.raises(
        ConfigError, match=rf'vocab\.tokenizer: is wordpiece, .* set --config\.vocab\.tokenizer={name}'
    ):
        check(Experiment.from_config(config))


def test_contexts_are_found_where_whole_sentences_have_the_token(run, name, kind):
    """A new token that begins a word may hold its space; then it occurs nowhere if stretches lack theirs."""
    known, found = subwords.load(run.workdir / 'vocab'), load_contexts(run.workdir / 'contexts')
    assert set(NEW[name]) & set(found.tokens)
    for token, sentence, start, end in zip(found.tokens, found.sentence, found.start, found.end, strict=True):
        text = found.sentences[sentence]
        assert text[start:end] == kind.text(token)
        (encoding,) = known.encode([text])
        spans = {name: [] for name in encoding.tokens}
        for name, (begin, stop) in zip(encoding.tokens, encoding.offsets, strict=True):
            spans[name].append((begin + (text[begin] == ' '), stop))
        assert (start, end) == spans[token][0]


def test_new_rows_come_from_contexts_and_the_rest_is_copied(run, name, kind):
    report = read_json(run.workdir / 'surgery' / 'report.json')
    assert report['tokens']['synthesised'] > 5
    assert report['tokens']['copied'] > 20
    loaded = sources.load_source(run.config.source, run.config.seed, run.workdir / 'merged')
    assert loaded is not None
    for token, inside in zip(NEW[name], (False, True), strict=True):
        assert kind.text(token) == token.lstrip('Ġ▁#')
        spelled = loaded.subwords.spell_token(token)
        assert ''.join(map(kind.text, (loaded.vocabulary[i] for i in spelled))) == kind.text(token)
        assert kind.begins(loaded.vocabulary[spelled[0]]) == (not inside)
        assert spelled == loaded.subwords.spell(kind.text(token), inside)


def test_lessons_take_the_pieces_with_their_space_for_the_token(run, name):
    loaded, found = (
        sources.load_source(run.config.source, run.config.seed, run.workdir / 'merged'),
        load_contexts(run.workdir / 'contexts'),
    )
    assert loaded is not None
    targets = {token: number for number, token in enumerate(dict.fromkeys(found.tokens))}
    chosen = reading.choose_occurrences(found, targets, 'all', 0)
    taught = distil.lessons(loaded, found.sentences, chosen)
    new = next(token for token in NEW[name] if token in targets)
    assert targets[new] in taught.target
    (row, *_) = np.flatnonzero(taught.target == targets[new])
    gone = taught.source_length[row] - taught.own_length[row] + 1
    at = taught.slot[row]
    assert taught.source[row][at : at + gone].tolist() == loaded.subwords.spell_token(new)


def test_whole_words_are_masked_as_the_tokenizer_cuts(run, name):
    """Against the words of whole documents: "(p53)." is four words or more, but for kinds that cut at spaces alone."""
    known, rows = subwords.load(run.workdir / 'vocab'), Rows(run.folder('rows'), 'train')
    batch = rows.read(np.arange(8) % len(rows))
    texts = {document_key(d.id): d.text for d in open_documents(run.folder('corpus'), 'train')}
    words = np.zeros_like(batch['tokens'])  # 0: no word; else a number that no other word of the row has
    for row, (lengths, keys) in enumerate(zip(batch['segment_lengths'], batch['documents'], strict=True)):
        ends = np.cumsum(lengths)
        for end, length, key in zip(ends, lengths, keys, strict=True):
            if length:
                (encoding,) = known.encode([texts[int(key)]])
                words[row, end - length + 1 : end - 1] = np.array(encoding.word_ids) + 1 + 1000 * end
    by_space = name in SENTENCEPIECE
    assert (len(known.kind.words(known.tokenizer)(' (p53).')) == 1) is by_space
    objective = make_objective(
        run.config,
        tensors.read_architecture(run.workdir / 'surgery' / 'model'),
        known,
        rows.pieces,
        make_mesh(1),
        print,
    )
    schedule = curriculum.make_schedule(run.config, RowCounts(8, 1, 1))
    table = curriculum.table(schedule, run.config)
    several = alone = 0
    for step in range(6):
        masked = example_at(objective, batch, table, np.int32(step)).rows.masked
        for row, words_L in enumerate(words):
            taken = np.zeros(len(words_L), bool)
            taken[np.asarray(masked.slots_M[row])[np.asarray(masked.weights_M[row]) > 0]] = True
            assert not taken[words_L == 0].any()
            for word in np.unique(words_L[taken]):
                assert taken[words_L == word].all()
                several += (words_L == word).sum() > 1
                next_to = np.flatnonzero(words_L == word)[-1] + 1
                joined = words_L[next_to] > 0 and not known.begins_V[batch['tokens'][row, next_to]]
                alone += joined and not taken[next_to]
        assert (np.asarray(masked.inputs_L) == known.mask).any()
    assert several
    assert name == 'digits' or by_space or alone, 'a word that begins without a space is drawn by itself'


@pytest.mark.parametrize(
    'name',
    # Slow: an ALBERT and a ModernBERT go from a source to an export with such vocabularies in test_plugin_family.
    ['bytelevel', *(pytest.param(each, marks=pytest.mark.slow) for each in SENTENCEPIECE)],
    indirect=True,
    scope='module',
)
def test_the_export_is_what_transformers_reads(run):
    """The gate compares ids, tokens and settings; the kind of the how-to goes through it on its page."""
    for stage in ('pretrain', 'export'):
        execute(run, STAGES[stage])
    found = load_in_transformers(run.workdir / 'export' / PHASE)
    specials = found.cls_token_id, found.pad_token_id, found.sep_token_id, found.unk_token_id
    assert specials == (0, 1, 2, 3)
    rows = read_json(run.workdir / 'export' / PHASE / 'config.json')['vocab_size']
    assert found.mask_token_id + 1 == len(found) == rows


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
    assert rows.counts.words == sum(len(d.text.split()) for d in documents)


@pytest.mark.parametrize('name', ['bytelevel', 'unigram'], indirect=True, scope='module')
def test_words_of_the_analysis_are_spelled_as_in_their_sentence(run, name):
    """Hidden words, rare and frequent ones, entities and counted words: each with its space, or none would be found."""
    known = subwords.load(run.workdir / 'vocab')
    spellers = [cloze.Speller(each) for each in (known, subwords.load(Path(run.config.source.path)))]
    documents = list(open_documents(run.folder('corpus'), 'train'))
    chosen = cloze.passages(documents, spellers, fraction=0.3, seed=0, max_pieces=128)
    texts = {d.id: d.text for d in documents}
    assert len(chosen) > 5
    for passage, row in zip(chosen, cloze.rows_of(chosen, spellers[0], masked=False), strict=True):
        text = ''.join(passage.words)
        # A tokenizer that begins every text with a space has one there.
        assert texts[passage.id].startswith(text.removeprefix(' '))
        assert row.tokens.tolist() == [known.cls, *known.encode([text])[0].ids, known.sep]
        assert all(passage.words[at].strip() for at in passage.hidden)
    words, counts = frequency.read(run.workdir / 'vocab')
    distinct = [5 + n for n in range(len(words))]  # so that no word is left out for an equal count
    thirds = contexts.frequency_thirds(words, distinct, spellers[0])
    assert len(thirds) >= 2
    assert all(word[0] == ' ' and word[1:].isalpha() and len(spellers[0](word)) == 1 for word in thirds)
    assert not contexts.frequency_thirds([word.strip() for word in words], distinct, spellers[0])
    word = known.text(known.tokens.index(NEW[name][0]))
    measured = entities.measure(known, {word: 3, f'{word} {word}': 1})
    assert (measured.pieces_per_word, measured.one_piece_mentions) == (1.0, 0.75)
    slices = token_statistics(run.workdir / 'surgery', run.workdir / 'vocab', 1)
    assert NEW[name][0] in slices.contexts_of
    assert slices.count_of(word) == counts[words.index(f' {word}')] > 0


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
    assert len(hidden) > 10
    assert {word.strip(' .') for word in hidden} <= set(WORDS)
