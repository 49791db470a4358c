"""Sources whose tokenizers or weights are not BERT's usual ones: kept to the end as transformers reads them, or refused
in one line by the first stage that reads them."""

import functools
import json
import shutil

import jax
import numpy as np
import pytest
import tokenizers
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import normalizers, pre_tokenizers

from bioptimus_jax.analysis import masked_lm
from bioptimus_jax.corpus.documents import Document, write_documents
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.export import build as export
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.loading import load_head
from bioptimus_jax.finetuning.tasks.entities import TASK as ENTITIES
from bioptimus_jax.model import tensors
from bioptimus_jax.model.families.bert import Bert
from bioptimus_jax.model.trees import flatten
from bioptimus_jax.records.export import Export
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.folder import Run
from bioptimus_jax.storage.files import read_json, read_jsonl, write_json
from bioptimus_jax.tokenizer import subwords
from bioptimus_jax.tokenizer.kinds import wordpiece
from bioptimus_jax.tokenizer.probes import PROBES
from bioptimus_jax.tokenizer.tokenizer_files import NAMES_OF_ROLES

LOWER, CAPITALS = 'abcdefghijklmnopqrstuvwxyzéïßø', 'ABCDEFGHIJKLMNOPQRSTUVWXYZÉ'
WORDS = [
    'naive',
    'naïve',
    'café',
    'cafe',
    '白血',
    '白',
    '##血',
    '病',
    'tumor',
    '##tumor',
    'µg',
    '.',
    ',',
    '-',
    '<',
    '>',
    '[',
    ']',
    '1',
    '9',
]
UNCASED = [*wordpiece.SPECIAL_TOKENS, *LOWER, *('##' + c for c in LOWER), *WORDS]
CASED = [*UNCASED, *CAPITALS, *('##' + c for c in CAPITALS), 'Naïve', 'Naive']
TEXTS = (
    'Naïveté of the café: naïveté, Naïveté and the CAFÉ café.',
    'The tumor白血病 and 白血病 of a Tumor; naïveté again, 5-FU and <e1> in covid-19.',
    'A bronchoconstriction, the bronchoconstriction and Bronchoconstriction of the ﬁbre Ｆｕｌｌ.',
)
SPARE = 3  # rows of the table beyond the vocabulary


def write_source(folder, vocabulary, tokens):
    """A tiny random BERT whose table has rows for `tokens` tokens and SPARE more; vocab.txt alone for a tokenizer."""
    wordpiece.make(vocabulary, True).save(folder / 'default', 32)
    architecture, parameters = random_model(tokens + SPARE)
    tensors.write_folder(folder, architecture, parameters, folder / 'default')
    shutil.rmtree(folder / 'default')
    for name in ('tokenizer.json', 'tokenizer_config.json'):
        (folder / name).unlink()
    return folder


@functools.cache
def random_model(rows):
    architecture = Bert(
        rows, hidden=16, layers=1, heads=2, intermediate=24, max_positions=32, initializer_range=0.3
    )
    return architecture, jax.tree.map(np.asarray, architecture.initial_parameters(jax.random.key(3)))


def by_transformers(folder, vocabulary, added=(), special=(), **settings):
    """A folder as transformers saves it."""
    tokenizer = transformers.BertTokenizer(vocab={t: i for i, t in enumerate(vocabulary)}, **settings)
    tokenizer.add_tokens(list(added))
    if special:
        tokenizer.add_special_tokens({'additional_special_tokens': list(special)})
    write_source(folder, vocabulary, len(tokenizer))
    tokenizer.save_pretrained(folder)


def by_files(folder, vocabulary, more=0, **files):
    """vocab.txt, and JSON files by their names."""
    write_source(folder, vocabulary, len(vocabulary) + more)
    for name, value in files.items():
        write_json(folder / f'{name}.json', value)


def by_library(folder, vocabulary, change, **settings):
    """tokenizer.json as the library `tokenizers` saves it, for the class that takes all of it."""
    tokenizer = wordpiece.make(vocabulary, True).tokenizer
    change(tokenizer)
    write_source(folder, vocabulary, tokenizer.get_vocab_size())
    tokenizer.save(str(folder / 'tokenizer.json'))
    named = dict(zip(NAMES_OF_ROLES.values(), wordpiece.SPECIAL_TOKENS, strict=True))
    write_json(
        folder / 'tokenizer_config.json', {'tokenizer_class': 'PreTrainedTokenizerFast', **named, **settings}
    )


def compose(tokenizer):
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])


def at_white_space(tokenizer):
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFD(), normalizers.Lowercase(), normalizers.StripAccents()]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Digits(individual_digits=True)]
    )


def cut_and_filled(tokenizer):
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=8)


N = len(UNCASED)
WHOLE_WORD = tokenizers.AddedToken('tumor', single_word=True, normalized=False)
ODD = {
    'vocabulary alone': lambda f: by_files(f, UNCASED),
    'accents kept': lambda f: by_transformers(f, UNCASED, strip_accents=False),
    'ideographs together': lambda f: by_transformers(f, UNCASED, tokenize_chinese_chars=False),
    'cased, stripped': lambda f: by_transformers(f, CASED, do_lower_case=False, strip_accents=True),
    'cased': lambda f: by_transformers(f, CASED, do_lower_case=False),
    'accents kept, by config': lambda f: by_files(f, UNCASED, tokenizer_config={'strip_accents': False}),
    'everything by config': lambda f: by_files(
        f,
        CASED,
        tokenizer_config={'do_lower_case': False, 'strip_accents': True, 'tokenize_chinese_chars': False},
    ),
    'added': lambda f: by_transformers(f, UNCASED, added=['<e1>', 'Covid-19', 'naïveté', WHOLE_WORD]),
    'added, special': lambda f: by_transformers(f, UNCASED, special=['<e1>', '[DRUG]'], strip_accents=False),
    'added_tokens.json': lambda f: by_files(f, UNCASED, 2, added_tokens={'<e1>': N, 'covid-19': N + 1}),
    'old files': lambda f: by_files(
        f,
        UNCASED,
        2,
        tokenizer_config={'do_lower_case': True, 'strip_accents': False},
        added_tokens={'[DRUG]': N, '<e1>': N + 1},
        special_tokens_map={
            'mask_token': dict(content='[MASK]', lstrip=True, rstrip=False, normalized=False, single_word=False),
            'additional_special_tokens': ['<e1>'],
        },
    ),
    'added in the config': lambda f: by_files(
        f, UNCASED, 1, tokenizer_config={'additional_special_tokens': ['<e1>']}
    ),
    'another normaliser': lambda f: by_library(f, UNCASED, compose),
    'another pre-tokenizer': lambda f: by_library(f, UNCASED, at_white_space),
    'cut and filled': lambda f: by_library(f, UNCASED, cut_and_filled, tokenizer_class='BertTokenizer'),
}  # fmt: skip
PARTS = (
    'naïveté ',
    'É',
    '\u0301',
    '白血病',
    'ﬁ',
    'Ｆ',
    '<e1>',
    '[DRUG]',
    'covid-19',
    'Covid-19',
    'tumor',
    ' Tumor',
    '[MASK]',
    ' [MASK]',
)
KINDS = ('train', 'append', 'source')


def make_run(folder, source, kind='train', **changes):
    """A run of that source whose corpus is there."""
    count = write_documents(
        folder / 'run' / 'corpus', 'train', [Document(f'd{n}', TEXTS[n % 3]) for n in range(9)], 2
    )
    counts = {'read': count, 'left_out': {}, 'train': count, 'heldout': 0, 'words': {'train': 100}}
    write_json(folder / 'run' / 'corpus' / 'manifest.json', {'counts': counts, 'content': ''})
    c = config.defaults()
    c.source.path, c.rows.max_document_pieces, c.runtime.workers = str(source), 32, 1
    lowercase = subwords.load(source).lowercase
    c.vocab.update(kind=kind, size=220, lowercase=lowercase, min_frequency=2)
    c.surgery.strategy = 'random_rows'
    for name, value in changes.items():
        config.override(c, name.replace('__', '.'), str(value))
    return Run(folder / 'run', Experiment.from_config(c), quiet=True)


@pytest.fixture(scope='module')
def made(tmp_path_factory):
    """(source, kind) -> the source's folder, the run after stage surgery; each made once."""

    @functools.cache
    def source(name):
        folder = tmp_path_factory.mktemp('source')
        ODD[name](folder)
        return folder

    @functools.cache
    def make(name, kind):
        run = make_run(tmp_path_factory.mktemp('run'), source(name), kind)
        for stage in ('vocab', 'surgery'):
            execute(run, STAGES[stage])
        return source(name), run

    return make


def by_auto(folder):
    return transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)


def words(tokenizer, text):
    """What a tokenizer of transformers makes of a text before there are pieces."""
    normalizer, cut = tokenizer.backend_tokenizer.normalizer, tokenizer.backend_tokenizer.pre_tokenizer
    return [word for word, _ in cut.pre_tokenize_str(normalizer.normalize_str(text))]


def table_of(folder):
    return np.asarray(flatten(tensors.load_folder(folder)[1])['embeddings/word_embeddings/embedding'])


@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize('name', ODD)
def test_an_odd_source_is_kept_to_the_end(name, kind, made, tmp_path):
    source, run = made(name, kind)
    model = run.workdir / 'surgery' / 'model'
    theirs, ours, first = by_auto(model), subwords.load(run.workdir / 'vocab'), by_auto(source)
    assert theirs.model_max_length == 32
    for text in (*TEXTS, *PROBES, ' '.join(PARTS), ''.join(PARTS)):
        assert ours.tokenizer.encode(text).ids == theirs(text, verbose=False)['input_ids'], text
        assert words(theirs, text) == words(first, text), text
    if kind == 'source':
        assert theirs.get_vocab() == first.get_vocab()
        lost = set(first.all_special_tokens) - set(theirs.all_special_tokens)
        # Here transformers lists a token as special that it has added as an ordinary one.
        assert lost == ({'<e1>'} if name == 'old files' else set())
    if kind == 'append':  # with the same ids, and what was added to the source is an added token still
        assert first.get_vocab().items() <= theirs.get_vocab().items()
        assert {str(t) for t in first.added_tokens_decoder.values()} == {
            str(t) for t in theirs.added_tokens_decoder.values()
        }
    # A row of the source is the row of the same token, those of added tokens too.
    before, after, ids = table_of(source), table_of(model), theirs.get_vocab()
    for token, number in first.get_vocab().items():
        if token in ids:
            np.testing.assert_array_equal(after[ids[token]], before[number], err_msg=token)
    # Every new word can be reached, unless the source has added one that comes before it.
    new = (run.workdir / 'vocab' / 'new_tokens.txt').read_text('utf-8').split('\n')[:-1]
    assert bool(new) is (kind != 'source')
    accented = [t for t in new if t.startswith('naïve')]
    if kind != 'source' and first.backend_tokenizer.normalizer.normalize_str('ï') == 'ï':
        assert accented
    added = set(ours.tokenizer.get_added_tokens_decoder()) - {0, 1, 2, 3, 4}
    for token in new:
        pieces = ours.tokenizer.encode(token, add_special_tokens=False).ids
        assert token.startswith('##') or pieces == [ids[token]] or added & set(pieces), token
    if kind == 'append':
        architecture, parameters, _ = tensors.load_folder(model)
        export.export(tmp_path / '0.1', architecture, parameters, model, TEXTS, Export(phase='0.1'))
        assert by_auto(tmp_path / '0.1').get_vocab() == ids


@given(st.lists(st.one_of(st.sampled_from(PARTS), st.text(max_size=6)), max_size=8).map(''.join))
@settings(max_examples=40)
def test_any_text_has_the_pieces_that_transformers_gives_it(made, tokenizers_of, text):
    for first, kind, theirs, ours in tokenizers_of():
        expected = theirs(text, verbose=False)['input_ids']
        assert ours.tokenizer.encode(text).ids == expected, (kind, text)
        assert words(theirs, text) == words(first, text), (kind, text)
        if kind == 'source':
            assert first(text, verbose=False)['input_ids'] == expected, text


@pytest.fixture(scope='module')
def tokenizers_of(made):
    """The source's tokenizer, the kind, and what transformers and we read of surgery/model, for all of them."""

    @functools.cache
    def read():
        found = []
        for name in ODD:
            for kind in KINDS:
                source, run = made(name, kind)
                model = run.workdir / 'surgery' / 'model'
                found.append((by_auto(source), kind, by_auto(model), subwords.load(model)))
        return found

    return read


def edit(file, **values):
    write_json(file, (read_json(file) or {}) | values)


def by_json(folder, change, **settings):
    """A source whose tokenizer.json is changed as JSON, and its configuration by `settings`."""
    by_transformers(folder, UNCASED)
    described = read_json(folder / 'tokenizer.json')
    change(described)
    write_json(folder / 'tokenizer.json', described)
    edit(folder / 'tokenizer_config.json', **settings)


def named(folder, file='tokenizer_config', vocabulary=UNCASED, **values):
    by_files(folder, vocabulary, **{file: values})


WHOLE = {'tokenizer_class': 'PreTrainedTokenizerFast'}
REFUSED = {
    'accents in one file': (
        lambda f: by_json(f, lambda d: d['normalizer'].update(strip_accents=False)),
        'strip_accents is True in transformers, False here',
    ),
    'ideographs in one file': (
        lambda f: by_json(f, lambda d: d['normalizer'].update(handle_chinese_chars=False)),
        'tokenize_chinese_chars is True in transformers, False here',
    ),
    'casing that nothing gives': (
        lambda f: by_files(f, CASED),
        'than vocab.txt has it (do_lower_case is True in transformers, False here)',
    ),
    'a normaliser that is not read': (
        lambda f: by_json(f, lambda d: d.update(normalizer={'type': 'NFKC'})),
        'normalizer is BertNormalizer in transformers, NFKC here); write into tokenizer_config.json',
    ),
    'a pre-tokenizer that is not read': (
        lambda f: by_json(f, lambda d: d.update(pre_tokenizer={'type': 'Whitespace'})),
        'pre_tokenizer is {"type": "BertPreTokenizer"} in transformers, {"type": "Whitespace"} here',
    ),
    'added tokens in one file': (
        lambda f: by_json(
            f,
            lambda d: d['added_tokens'].append(
                dict(
                    id=N,
                    content='<e1>',
                    single_word=False,
                    lstrip=False,
                    rstrip=False,
                    normalized=True,
                    special=False,
                )
            ),
            added_tokens_decoder={'0': {'content': '[PAD]', 'special': True}},
        ),
        f'number of tokens is {N} in transformers, {N + 1} here',
    ),
    'another class': (
        lambda f: named(f, tokenizer_class='RobertaTokenizer'),
        'transformers reads it as RobertaTokenizer',
    ),
    'a class without a fast version': (
        lambda f: named(f, tokenizer_class='BertJapaneseTokenizer'),
        'BertJapaneseTokenizer',
    ),
    'special tokens without names': (
        lambda f: by_library(f, UNCASED, lambda t: None, mask_token=None),
        "mask_token is None in transformers, '[MASK]' here",
    ),
    'another [CLS]': (
        lambda f: named(f, cls_token='<s>'),
        "cls_token is '<s>', which the vocabulary lacks; name there what the model has",
    ),
    'another [CLS], old': (
        lambda f: named(f, 'special_tokens_map', cls_token={'content': '<s>'}),
        "cls_token is '<s>', which the vocabulary lacks; name there what the model has",
    ),
    'an id with a gap': (
        lambda f: named(f, 'added_tokens', **{'<e1>': N + 5}),
        f"the added token '<e1>' has the id {N + 5}, but every reader gives it {N}",
    ),
    'an id with a gap in tokenizer.json': (
        lambda f: by_json(
            f, lambda d: d['added_tokens'].append({**d['added_tokens'][0], 'id': N + 5, 'content': '<e1>'})
        ),
        f"tokenizer.json: the added token '<e1>' has the id {N + 5}",
    ),
    'a type that is not told': (
        lambda f: by_json(
            f, lambda d: [d['model'].pop(k) for k in ('type', 'max_input_chars_per_word')], **WHOLE
        ),
        'type of the tokenizer is None, with settings that no kind of tokenizer here has',
    ),
    'added tokens that differ in case': (
        lambda f: by_library(f, UNCASED, lambda t: t.add_tokens(['WAS', 'was', 'Was'])),
        "the added tokens 'WAS' and 'was' are both 'was' for the normalizer",
    ),
    'a token of two lines': (
        lambda f: by_files(f, UNCASED, 1, added_tokens={'a\n': N}),
        "the added token 'a\\n' has a line break",
    ),
    'short words': (
        lambda f: by_json(f, lambda d: d['model'].update(max_input_chars_per_word=50), **WHOLE),
        'max_input_chars_per_word of the tokenizer is 50; only 100 is supported',
    ),
    'another prefix': (
        lambda f: by_json(f, lambda d: d['model'].update(continuing_subword_prefix='@@'), **WHOLE),
        "continuing_subword_prefix of the tokenizer is '@@'",
    ),
    'no WordPiece': (
        lambda f: by_json(
            f,
            lambda d: d.update(
                model={'type': 'WordLevel', 'vocab': d['model']['vocab'], 'unk_token': '[UNK]'}
            ),
            **WHOLE,
        ),
        "type of the tokenizer is 'WordLevel', with settings that no kind of tokenizer here has",
    ),
    'nothing around a text': (
        lambda f: by_json(f, lambda d: d.update(post_processor=None), **WHOLE),
        'post_processor puts nothing around',
    ),
    'words that end elsewhere': (
        lambda f: by_json(f, lambda d: d.update(pre_tokenizer=None), **WHOLE),
        'only tokenizers whose words end at a space are supported',
    ),
    'more tokens than rows': (
        lambda f: by_files(f, UNCASED, 0, added_tokens={f'<e{i}>': N + i for i in range(SPARE + 1)}),
        f'the tokenizer has {N + SPARE + 1} tokens, but config.json gives the model {N + SPARE} rows',
    ),
    'a word for a switch': (lambda f: named(f, do_lower_case='yes'), "do_lower_case is 'yes'; true or false"),
    'settings of another shape': (
        lambda f: by_files(f, UNCASED, tokenizer_config=['a']),
        'tokenizer_config.json: "[\'a\']" is where an object is expected',
    ),
    'added tokens of another shape': (
        lambda f: named(f, added_tokens_decoder={'5': 7}),
        "tokenizer_config.json: '7' is not an added token",
    ),
    'ids that are none': (
        lambda f: named(f, 'added_tokens', **{'<e1>': 'x'}),
        "added_tokens.json: 'x' is not an id of an added token",
    ),
}


@pytest.mark.parametrize('name', REFUSED)
def test_what_cannot_be_kept_is_refused_by_stage_vocab_in_one_line(name, tmp_path, capsys):
    prepare, expected = REFUSED[name]
    prepare(tmp_path / 'source')
    by_files(tmp_path / 'plain', UNCASED)
    run = make_run(tmp_path, tmp_path / 'plain', kind='source', source__path=tmp_path / 'source')
    with pytest.raises(InputError) as caught:
        execute(run, STAGES['vocab'])
    message = str(caught.value)
    assert expected in message
    assert str(tmp_path / 'source') in message
    assert '\n' not in message
    assert not (run.workdir / 'vocab').exists()


def test_a_vocabulary_of_its_own_takes_the_settings_of_the_source(tmp_path):
    ODD['accents kept'](tmp_path / 'source')
    (tmp_path / 'own').mkdir()
    file = tmp_path / 'own' / 'vocab.txt'
    file.write_text('\n'.join([*UNCASED, 'naïveté', 'naivete']) + '\n', 'utf-8')
    run = make_run(tmp_path, tmp_path / 'source', kind='file', vocab__file=file)
    for stage in ('vocab', 'surgery'):
        execute(run, STAGES[stage])
    theirs = by_auto(run.workdir / 'surgery' / 'model')
    assert theirs.tokenize('Naïveté naivete') == ['naïveté', 'naivete']
    assert read_json(run.workdir / 'vocab' / 'tokenizer_config.json')['strip_accents'] is False
    # What lies beside the file may not say otherwise, and is an input of the stage.
    write_json(tmp_path / 'own' / 'tokenizer_config.json', {'strip_accents': True})
    for replace, said in (
        (False, r'belongs to another configuration or other inputs .*tokenizer_config'),
        (True, r'vocab\.file: .*own/tokenizer_config\.json says strip_accents True, and'),
    ):
        with pytest.raises(ConfigError, match=said):
            execute(run, STAGES['vocab'], replace)
    write_json(tmp_path / 'own' / 'tokenizer_config.json', {'strip_accents': False})
    execute(run, STAGES['vocab'], replace=True)
    # Without a source the file speaks for itself.
    alone = make_run(tmp_path / 'alone', tmp_path / 'source', kind='file', vocab__file=file, source__path='')
    execute(alone, STAGES['vocab'])
    assert by_auto(alone.workdir / 'vocab').tokenize('Naïveté') == ['naïveté']


def test_a_model_that_does_not_read_its_tokenizer_is_not_left_behind(made, tmp_path, relisted):
    """The gate of stage surgery: what transformers makes of the folder is what the run was made with."""
    _, run = made('accents kept', 'append')
    workdir = tmp_path / 'run'
    shutil.copytree(run.workdir, workdir)
    shutil.rmtree(workdir / 'surgery')
    edit(workdir / 'vocab' / 'tokenizer_config.json', strip_accents=None)
    copied = Run(workdir, run.config, quiet=True)
    relisted(copied, 'vocab')
    with pytest.raises(InputError, match='strip_accents is True in transformers, False here'):
        execute(copied, STAGES['surgery'])
    assert not (workdir / 'surgery' / 'model').exists()


@pytest.mark.parametrize(
    ('name', 'token'), [('accents kept', 'naïveté'), ('another pre-tokenizer', 'bronchoconstriction')]
)
def test_a_new_row_comes_from_the_contexts_that_the_source_reads(name, token, tmp_path):
    ODD[name](tmp_path / 'source')
    run = make_run(
        tmp_path, tmp_path / 'source', kind='append', surgery__strategy='contextualized', surgery__map='none'
    )
    for stage in ('vocab', 'contexts', 'surgery'):
        execute(run, STAGES[stage])
    (record,) = (r for r in read_jsonl(run.workdir / 'surgery' / 'tokens.jsonl') if r['token'] == token)
    assert (record['kind'], record['contexts'] > 0, record.get('fallback')) == ('synthesised', True, None)


def test_an_added_token_is_never_hidden_from_its_tokenizer(tmp_path):
    """It would come back with another id, one that has no row."""
    ODD['added'](tmp_path)
    tokenizer = subwords.load(tmp_path)
    can = tokenizer.kind.respellable(tokenizer)
    added = tokenizer.tokenizer.get_added_tokens_decoder()
    assert can
    assert not can & added.keys()
    less = tokenizer.without(sorted(can))
    assert {less.tokenizer.token_to_id(token.content) for token in added.values()} == added.keys()
    assert less.tokenizer.get_vocab_size() == tokenizer.tokenizer.get_vocab_size()


def test_a_model_whose_tokenizer_knows_more_than_its_table_is_not_fine_tuned_or_scored(tmp_path):
    by_files(tmp_path, UNCASED, 0, added_tokens={f'<e{i}>': N + i for i in range(SPARE + 1)})
    for load in (
        lambda: load_head(ENTITIES, tmp_path, ['O', 'B-X'], Finetune(), 0),
        lambda: masked_lm.load(tmp_path, 1),
    ):
        with pytest.raises(
            InputError, match=f'the tokenizer has ids up to {N + SPARE}, but the model has {N + SPARE} rows'
        ):
            load()


def test_a_default_tokenizer_is_written_as_before(tmp_path):
    tokenizer = wordpiece.make(UNCASED, True)
    tokenizer.save(tmp_path, 32)
    expected = (
        '{"tokenizer_class": "BertTokenizer", "do_lower_case": true, "tokenize_chinese_chars": true, '
        '"strip_accents": null, "model_max_length": 32, "pad_token": "[PAD]", "unk_token": "[UNK]", '
        '"cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}'
    )
    assert json.dumps(read_json(tmp_path / 'tokenizer_config.json')) == expected
    like = wordpiece.make(UNCASED, True, subwords.load(tmp_path))
    assert like.tokenizer.to_str() == tokenizer.tokenizer.to_str()
