"""Special tokens that texts quote are text, wherever texts are read; held against transformers' own tokenizers."""

import functools
import pickle
import re

import numpy as np
import pytest
import tokenizers
import transformers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, models, normalizers, pre_tokenizers, processors
from toy_sets import save_byte_level, save_wordpiece

from bioptimus_jax.analysis.cloze import Speller
from bioptimus_jax.analysis.masked_lm import ForeignModel
from bioptimus_jax.api.masking import Collator
from bioptimus_jax.api.words import is_one_piece
from bioptimus_jax.corpus.documents import Document, write_documents
from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.finetuning.entities.align import align
from bioptimus_jax.finetuning.look import look_through
from bioptimus_jax.finetuning.texts.windows import windows
from bioptimus_jax.rows import build as rows
from bioptimus_jax.rows.parts import document_parts
from bioptimus_jax.rows.stored import Rows
from bioptimus_jax.run.folder import Run
from bioptimus_jax.sets.sentences import Sentence
from bioptimus_jax.sets.texts import Text
from bioptimus_jax.storage.files import write_json
from bioptimus_jax.tokenizer import subwords
from bioptimus_jax.tokenizer.config import Vocab
from bioptimus_jax.tokenizer.kinds import bytelevel, wordpiece
from bioptimus_jax.tokenizer.quoted import quotations
from bioptimus_jax.tokenizer.tokenizer_files import named_roles
from bioptimus_jax.vocab import agreement
from bioptimus_jax.vocab.occurrences import TokenFinder

MARKS = ('[E1]', '[/E1]', 'IL-2')
QUOTED = {
    'wordpiece': wordpiece.SPECIAL_TOKENS,
    'white space': wordpiece.SPECIAL_TOKENS,
    'bytelevel': bytelevel.ROLES,
    'modern': wordpiece.SPECIAL_TOKENS,
    'unigram': ('<s>', '<pad>', '</s>', '<unk>', '<mask>'),
}
PIECES = ('aspirin ', ' no', ' ', 'x', '(', '.', 'é', ' [e1]', '[pad]', '[MASK', '<s', 'PAD', *MARKS[:2])


def at_white_space(folder):
    """A cased WordPiece tokenizer that looks "[PAD]" up, as tokenizer.json has it."""
    save_wordpiece(folder)
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / 'tokenizer.json'))
    tokenizer.normalizer, tokenizer.pre_tokenizer = None, pre_tokenizers.WhitespaceSplit()
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, **named_roles(wordpiece.SPECIAL_TOKENS)
    ).save_pretrained(folder)


def unigram(folder, rename=str):
    """A tokenizer such as XLM-R's: special tokens are entries of the model, with the best of all scores."""
    letters = '▁<>[]()./-abcdefghijklmnopqrstuvwxyzé12ILPADMASKE'
    entries = [(rename(token), 0.0) for token in QUOTED['unigram']]
    entries += [(letter, -5.0 - at / 10) for at, letter in enumerate(dict.fromkeys(letters))]
    tokenizer = tokenizers.Tokenizer(models.Unigram([*entries, ('▁aspirin', -6.0)], unk_id=3))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.NFKC(), pre_tokenizers.Metaspace()
    begin, _, end, *_ = (name for name, _ in entries)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f'{begin} $A {end}', pair=f'{begin} $A {end} $B {end}', special_tokens=[(begin, 0), (end, 2)]
    )
    roles = ('bos', 'pad', 'eos', 'unk', 'mask')
    named_roles = {f'{role}_token': name for role, (name, _) in zip(roles, entries, strict=False)}
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, cls_token=begin, sep_token=end, **named_roles
    ).save_pretrained(folder)


def modern(folder):
    """A tokenizer such as ModernBERT's: byte-level, and special tokens are added to the model, no entries of it."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = tokenizers.Tokenizer(models.BPE({letter: at for at, letter in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.add_special_tokens(list(wordpiece.SPECIAL_TOKENS))
    ends = [(token, tokenizer.token_to_id(token)) for token in ('[CLS]', '[SEP]')]
    tokenizer.post_processor = processors.TemplateProcessing(
        single='[CLS] $A [SEP]', pair='[CLS] $A [SEP] $B:1 [SEP]:1', special_tokens=ends
    )
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, **named_roles(wordpiece.SPECIAL_TOKENS)
    ).save_pretrained(folder)


MAKERS = {
    'wordpiece': save_wordpiece,
    'white space': at_white_space,
    'bytelevel': lambda folder: save_byte_level(folder, 'RobertaTokenizer'),
    'modern': modern,
    'unigram': unigram,
}


@pytest.fixture(scope='module')
def marked(tmp_path_factory):
    """Kind -> a folder whose user added [E1] and [/E1] as special tokens, and a word."""

    @functools.cache
    def folder(kind, special=True):
        made = tmp_path_factory.mktemp('marked')
        MAKERS[kind](made)
        tokenizer = transformers.AutoTokenizer.from_pretrained(made)
        if special:
            tokenizer.add_special_tokens({'additional_special_tokens': list(MARKS[:2])})
        else:  # what transformers leaves whole, with `split_special_tokens`
            tokenizer.add_tokens([AddedToken(mark, normalized=False) for mark in MARKS[:2]])
        tokenizer.add_tokens([AddedToken(MARKS[2], normalized=False)])
        tokenizer.save_pretrained(made)
        return made

    return folder


@pytest.mark.parametrize('kind', QUOTED)
def test_what_texts_quote_is_text_and_marks_are_tokens(kind, marked, tmp_path):
    """Texts are read as in transformers with `split_special_tokens`, where marks are ordinary tokens and no model knows
    [PAD]."""
    ours, plain = agreement.for_texts(by_auto(marked(kind))), by_auto(marked(kind, special=False))
    known = subwords.load(marked(kind)) if kind != 'unigram' else None
    special, marks = (set(ours.convert_tokens_to_ids(list(names))) for names in (QUOTED[kind], MARKS))
    if kind == 'unigram':  # does not heed `split_special_tokens`, so its entries have names that no text has
        unigram(tmp_path, lambda token: f'entry-{token}')
        plain = by_auto(tmp_path)
        plain.add_tokens([AddedToken(mark, normalized=False) for mark in MARKS])

    if known:
        agreement.check_source(marked(kind), known)  # as it stands, it is compared with transformers
        assert known.encode(['a'])[0].ids
        again = pickle.loads(pickle.dumps(known))

    @given(st.lists(st.sampled_from([*PIECES, *QUOTED[kind], MARKS[2]]), max_size=12).map(''.join))
    def check(text):
        found = ours(text, add_special_tokens=False)
        ids = found['input_ids']
        assert special.isdisjoint({*ids} - {ours.unk_token_id})
        expected = re.findall('|'.join(map(re.escape, MARKS)), text)
        assert ours.convert_ids_to_tokens([i for i in ids if i in marks]) == expected
        quoted = sum(text.count(token) for token in QUOTED[kind])
        assert quotations([text], ours.quoted) == quoted
        if kind != 'white space' or not quoted:  # there transformers looks [PAD] up
            assert ids == plain(text, add_special_tokens=False, split_special_tokens=True)['input_ids']
        assert (ours.unk_token_id in ids) <= (kind not in ('bytelevel', 'modern'))
        assert all(0 <= start <= end <= len(text) for start, end in found.encodings[0].offsets)
        if known:
            around = [known.cls, *ids, known.sep]
            assert known.reader.encode(text).ids == ours(text)['input_ids'] == around
            assert known.encode([text])[0].ids == again.encode([text])[0].ids == ids

    check()


@pytest.mark.parametrize('kind', QUOTED)
def test_the_tokenizer_is_saved_as_it_was(kind, marked, tmp_path):
    given, ours = by_auto(marked(kind)), agreement.for_texts(by_auto(marked(kind)))
    for name, each in (('given', given), ('ours', ours)):
        each.save_pretrained(tmp_path / name)
    for file in (tmp_path / 'given').iterdir():
        assert (tmp_path / 'ours' / file.name).read_bytes() == file.read_bytes()
    mask = by_auto(tmp_path / 'ours')('no [MASK]<mask>')['input_ids'].count(given.mask_token_id)
    assert mask == 1
    ours('a', split_special_tokens=True)
    assert given('no [MASK]<mask>')['input_ids'].count(given.mask_token_id) == 1


def test_an_added_token_within_a_special_one_is_found():
    """The text [PAD] quotes the word PAD that a user added."""
    known = wordpiece.make(['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', '[', ']', 'in'], True)
    known.tokenizer.add_tokens([AddedToken('PAD', normalized=False)])
    known = wordpiece.KIND.of(known.tokenizer)
    expected = ['in', '[', 'PAD', ']', '[', '[UNK]', ']']
    assert [known.tokens[i] for i in known.encode(['in [PAD] [MASK]'])[0].ids] == expected


def by_auto(folder):
    return transformers.AutoTokenizer.from_pretrained(folder)


def run_of(folder, texts):
    """A run with a corpus of these texts and the vocabulary of `save_wordpiece`."""
    c = config.defaults()
    c.rows.max_document_pieces, c.rows.row_pieces, c.runtime.workers = 64, 128, 1
    documents = [Document(f'd{n}', text) for n, text in enumerate(texts)]
    for split, chosen in (('train', documents), ('heldout', documents[:1])):
        write_documents(folder / 'corpus', split, chosen, 2)
    save_wordpiece(folder / 'vocab')
    for stage in ('corpus', 'vocab'):
        write_json(folder / stage / 'manifest.json', {'counts': {}, 'content': ''})
    return Run(folder, Experiment.from_config(c))


def test_rows_hold_no_special_token_of_a_text_and_say_how_many_are_text(tmp_path, capsys):
    """147 [MASK] in 345 documents, of which one ends in [PAD]."""
    texts = ['no mask in it', 'in it, [MASK] [mask]', 'peripheral arterial disease [PAD]']
    run = run_of(tmp_path, [texts[n < 147] for n in range(344)] + texts[2:])
    (tmp_path / 'rows').mkdir()
    counts = rows.build(run, tmp_path / 'rows').counts
    assert counts.train.special_tokens_quoted == 148
    assert ', 148 special tokens written in texts, read as text' in capsys.readouterr().out
    known, read = subwords.load(tmp_path / 'vocab'), Rows(tmp_path / 'rows', 'train')
    batch = read.read(np.arange(len(read)))
    within = np.arange(128) < batch['segment_lengths'].sum(1)[:, None]
    found = batch['tokens'][within]
    assert not np.isin(found, [known.mask, known.pad]).any()
    assert (np.bincount(found)[[known.cls, known.sep]] == 345).all()
    assert counts.train.tokens == len(found)
    last, _ = document_parts([[Document('d', texts[2])]], known, 64)
    assert [known.tokens[i] for i in last[0].tokens[-6:]] == ['[UNK]', 'p', '##a', '##d', '[UNK]', '[SEP]']


def test_surgery_and_measures_read_them_as_text(marked):
    """Contexts, spellings, words of the tokenizer, hidden words: nowhere is there an id of a special token."""
    for kind in ('wordpiece', 'white space', 'bytelevel', 'modern'):
        known = subwords.load(marked(kind))
        special = set(range(len(known.tokens))) & {
            getattr(known, role) for role in ('pad', 'mask', 'cls', 'sep')
        }
        for token in known.roles:
            assert special.isdisjoint(known.spell(token)), kind
            assert special.isdisjoint(known.encode_words([token])[0].ids)
            assert not is_one_piece(known, token)
            speller = Speller(known)
            assert special.isdisjoint(i for word in speller.words(f'no {token}') for i in speller(word))
        words = TokenFinder(known, [known.roles.mask, known.roles.pad])
        assert not len(words.find([f'no {" ".join(known.roles)} no'])[0])


def test_sets_are_read_so_and_it_is_said_once(marked, tmp_path):
    tokenizer = agreement.load_for_words(marked('wordpiece'))
    plain = by_auto(marked('wordpiece'))
    words = ('disease', '[PAD]', '[E1]', 'no', '[/E1]')
    [window] = align(tokenizer, [Sentence(words, ('O',) * 5)], 30, 0).windows
    ids = plain.convert_tokens_to_ids(['[PAD]', '[E1]', '[/E1]'])
    assert [i in window.pieces for i in ids] == [False, True, True]
    assert window.pieces.count(plain.cls_token_id) == window.pieces.count(plain.sep_token_id) == 1
    pair = Text(('disease [SEP] [E1] no', 'no [MASK]' + ' no' * 20), ())
    [window] = windows(tokenizer, [pair], 25).windows
    assert len(window.pieces) == 25  # cut
    assert window.pieces.count(plain.sep_token_id) == 2
    assert plain.mask_token_id not in window.pieces
    for split in ('train', 'devel', 'test'):
        (tmp_path / f'{split}.tsv').write_text('aspirin\tB-Drug\n[PAD]\tO\n[MASK]\tO\n\nno\tO\n\n')
    [lines] = look_through(tmp_path, {'tiny': tokenizer}).lines
    assert [line for line in lines if 'special' in line] == [
        f'{tmp_path.name}: 6 special tokens written in texts, read as text (tiny)'
    ]


def test_rows_for_models_of_transformers_and_batches_of_a_trainer_hold_none(marked):
    text = 'disease [PAD] [E1] [MASK] no [/E1] [CLS]'
    for kind in ('wordpiece', 'unigram'):
        given, text = by_auto(marked(kind)), f'disease [E1] {" ".join(QUOTED[kind])} no [/E1]'
        model = ForeignModel(marked(kind), agreement.for_texts(given), None, 64)
        expected = agreement.for_texts(given)(text)['input_ids']
        tokens = model.rows([Document('d', text)], 64, 'tokenizer')['tokens'][0]
        assert tokens[: len(expected)].tolist() == expected
        assert expected.count(given.cls_token_id) == expected.count(given.sep_token_id) == 1
        collator = Collator(given, rate=0.3, corruption=(0.0, 0.0, 1.0))
        for each in (collator, pickle.loads(pickle.dumps(collator))):
            assert each.masked([text], 0)['input_ids'][0].tolist() == expected


@pytest.mark.parametrize('kind', ['wordpiece', 'modern'])
def test_begin_and_end_of_their_own_are_kept_and_are_text(kind, tmp_path):
    """What transformers calls bos_token and eos_token, where it is not cls_token and sep_token."""
    MAKERS[kind](tmp_path / 'given')
    tokenizer = by_auto(tmp_path / 'given')
    tokenizer.add_special_tokens({'bos_token': '[BOS]', 'additional_special_tokens': ['[E1]']})
    tokenizer.save_pretrained(tmp_path / 'given')
    known = subwords.load(tmp_path / 'given')
    settings = Vocab(tokenizer='bytelevel' if kind == 'modern' else kind, size=330, min_frequency=1)
    trained = known.kind.train({'aspirin': 9, 'no': 9}, settings, known)
    for each in (known, trained, known.kind.with_words(known, ['zebra']), known.kind.append(known, trained)):
        each.save(tmp_path / 'saved', 64)
        loaded = agreement.check_written(tmp_path / 'saved', each)
        assert loaded.bos_token == '[BOS]'
        assert '[E1]' in loaded.extra_special_tokens
        assert '[BOS]' not in loaded.extra_special_tokens
        again, text = subwords.load(tmp_path / 'saved'), 'no [BOS] [E1]'
        ids = again.encode([text])[0].ids
        assert ids == agreement.for_texts(loaded)(text, add_special_tokens=False)['input_ids']
        assert [each.tokens.index(token) in ids for token in ('[BOS]', '[E1]')] == [False, True]
