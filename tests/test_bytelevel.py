"""Byte-level pairs: folders as transformers reads them, roles by name, words with their space, other kinds."""

import dataclasses
import itertools
import json
from pathlib import Path

import jax
import numpy as np
import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, models, normalizers, pre_tokenizers, processors, trainers
from toy_llama import LLAMA, save_like_llama
from toy_source import built

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.experiment.config import defaults
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.model import tensors
from bioptimus_jax.model.families.bert import Bert
from bioptimus_jax.model.trees import flatten
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.folder import Run
from bioptimus_jax.storage.files import write_json, write_jsonl
from bioptimus_jax.tokenizer import subwords
from bioptimus_jax.tokenizer.config import Vocab
from bioptimus_jax.tokenizer.kinds import bytelevel, wordpiece
from bioptimus_jax.tokenizer.kinds.bytelevel import KIND
from bioptimus_jax.tokenizer.subwords import Subwords
from bioptimus_jax.vocab import agreement, build

TEXTS = [
    'Naproxen inhibits the kinase (p53) in carcinoma cells.\nThe kinase inhibitor reduced tumours (p<0.05).',
    'Café patients: β-catenin, IL-2 and 2-methylpropane; carcinomatosis isn’t the tumour of the kinase.',
    'Inhibition of kinases by naproxen was dose-dependent, and tumour cells were naïve to naproxen.',
]
NEWER = [f'{text} In carcinoconstriction, inhibitors.' for text in TEXTS]
SETTINGS = Vocab(tokenizer='bytelevel', size=330, lowercase=False, min_frequency=1)
SPLIT = r"(?i:'s|'t)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
OTHER = ('[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]')
# Nothing is unknown where every byte has an entry.
OF_LLAMA = tuple(LLAMA[token] for token in bytelevel.ROLES._replace(unknown='<pad>'))


def trained(texts: list[str] = TEXTS, source: Subwords | None = None, **changes: object) -> Subwords:
    counts = KIND.count_words(texts, False, source.tokenizer if source else None)
    return KIND.train(counts, dataclasses.replace(SETTINGS, **changes), source)  # type: ignore[arg-type]


def modern(folder: Path, split: str = '') -> Path:
    """A folder as ModernBERT's: tokenizer.json alone, BERT's names, runs of spaces and unused tokens added."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    cut = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not split)
    tokenizer.pre_tokenizer = (
        pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(split), 'isolated'), cut]) if split else cut
    )
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    first = ['|||IP_ADDRESS|||', '<|padding|>']
    tokenizer.train_from_iterator(
        TEXTS,
        trainers.BpeTrainer(
            vocab_size=320, special_tokens=first, initial_alphabet=alphabet, show_progress=False
        ),
    )
    tokenizer.add_tokens([AddedToken(' ' * n) for n in range(5, 1, -1)])
    tokenizer.add_special_tokens(['[UNK]', '[CLS]', '[SEP]', '[PAD]', AddedToken('[MASK]', lstrip=True)])
    tokenizer.add_tokens([AddedToken(f'[unused{n}]') for n in range(3)])
    tokenizer.post_processor = processors.TemplateProcessing(
        single='[CLS] $A [SEP]',
        pair='[CLS] $A [SEP] $B:1 [SEP]:1',
        special_tokens=[(name, tokenizer.token_to_id(name)) for name in ('[CLS]', '[SEP]')],
    )
    folder.mkdir(parents=True)
    tokenizer.save(str(folder / 'tokenizer.json'))
    names = dict(zip(('pad_token', 'unk_token', 'cls_token', 'sep_token', 'mask_token'), OTHER, strict=True))
    write_json(folder / 'tokenizer_config.json', {'tokenizer_class': 'PreTrainedTokenizerFast', **names})
    return folder


def made_folder(name: str, folder: Path) -> Path:
    """Folders of several makes, without or with tokenizer.json, with RoBERTa's names or others."""
    match name:
        case 'modern':
            return modern(folder)
        case 'split':
            return modern(folder, SPLIT)
        case 'llama':
            folder.mkdir(parents=True)
            save_like_llama(trained(), folder, 128)
            write_json(folder / 'config.json', {'model_type': 'eurobert'})
            return folder
        case 'lowercase':
            trained(lowercase=True).save(folder, 128)
        case _:
            trained().save(folder, 128)
    said = json.loads((folder / 'tokenizer_config.json').read_text('utf-8'))
    if name in ('listed', 'prefixed'):  # what the hub has of GPT-2 and of old RoBERTas
        (folder / 'tokenizer.json').unlink()
        mask = {
            '__type': 'AddedToken',
            'content': '<mask>',
            'lstrip': True,
            'normalized': False,
            'special': True,
        }
        said = {'mask_token': mask, 'add_prefix_space': name == 'prefixed'}
    if name == 'unnamed':
        said = {'model_max_length': 128}
    write_json(folder / 'tokenizer_config.json', said)
    write_json(folder / 'config.json', {'model_type': 'roberta'})
    return folder


@pytest.mark.parametrize(
    'name', ['roberta', 'listed', 'prefixed', 'unnamed', 'lowercase', 'modern', 'split', 'llama']
)
def test_folders_are_read_and_written_as_transformers_does(tmp_path: Path, name: str) -> None:
    folder = made_folder(name, tmp_path / name)
    own = OTHER if name in ('modern', 'split') else OF_LLAMA if name == 'llama' else bytelevel.ROLES
    known = subwords.load(folder)
    assert known.kind is KIND
    assert known.roles == own
    KIND.check(known, folder)
    agreement.check_source(folder, known)
    assert known.lowercase is (name == 'lowercase')
    again, newer = tmp_path / 'again', trained(NEWER, known, size=360)
    newer.save(tmp_path / 'newer', 128)
    appended = KIND.append(known, newer)
    appended.save(tmp_path / 'appended', 128)
    known.save(again, 128)
    for made, place in ((known, again), (newer, tmp_path / 'newer'), (appended, tmp_path / 'appended')):
        loaded = agreement.check_written(place, made, [*NEWER, f'a  {own[4]} b', 'x   y\n\n z\t'])
        assert loaded.model_max_length == 128
        assert ('Roberta' in type(loaded).__name__) is (name not in ('lowercase', 'modern', 'split', 'llama'))
        ready = subwords.load(place)
        assert (ready.tokens, ready.roles) == (made.tokens, own)
        ends = [[t for t in each.tokenizer.encode('a', 'b').tokens if t in own] for each in (ready, known)]
        assert ends[0] == ends[1]
        state, source = (json.loads(each.tokenizer.to_str()) for each in (ready, known))
        assert [state[key] for key in ('normalizer', 'pre_tokenizer')] == [
            source[key] for key in ('normalizer', 'pre_tokenizer')
        ]
    # RoBERTa's order, whatever the names; the mask takes the space before it as it does in the source.
    assert [getattr(newer, role) for role in ('cls', 'pad', 'sep', 'unknown', 'mask')] == [
        *(0, 1, 2, 1 if name == 'llama' else 3, 359)
    ]
    masked = newer.tokenizer.encode(f'x {own[4]}', add_special_tokens=False).tokens
    assert masked[-1] == f' {own[4]}' or masked[-1] == own[4]
    assert appended.tokens[: len(known.tokens)] == known.tokens
    for special in own:
        assert newer.tokens.index(special) not in newer.drawn_N


def test_a_new_vocabulary_has_the_ids_of_roberta() -> None:
    known = trained()
    assert (known.cls, known.pad, known.sep, known.unknown, known.mask) == (0, 1, 2, 3, 329)
    assert len(known.tokens) == 330
    assert known.tokenizer.encode('x <mask>.').ids[-3:-1] == [329, known.tokens.index('.')], (
        'no space is left'
    )
    assert known.tokens[4:260] == sorted(pre_tokenizers.ByteLevel.alphabet())
    assert known.unknown not in known.tokenizer.encode('☃ \u0000 𠀀 \ud7ff').ids


ODDLY = {
    'no type': lambda model: model.pop('type'),
    'type null': lambda model: model.update(type=None),
    'no prefix': lambda model: model.update(continuing_subword_prefix=None, end_of_word_suffix=None),
    'an unknown token': lambda model: model.update(unk_token='<unk>', fuse_unk=True),
}


@pytest.mark.parametrize('spelled', ODDLY)
@pytest.mark.parametrize('name', ['roberta', 'modern'])
def test_one_tokenizer_may_be_spelled_in_several_ways(tmp_path: Path, name: str, spelled: str) -> None:
    """A tokenizer without the type of its model, as old libraries wrote it, or with settings that decide nothing."""
    folder = made_folder(name, tmp_path / name)
    known = subwords.load(folder)
    state = json.loads((folder / 'tokenizer.json').read_text('utf-8'))
    ODDLY[spelled](state['model'])
    for step in ('normalizer', 'pre_tokenizer'):  # with a sequence around them that changes nothing
        if state[step] and name == 'modern':
            inner = 'normalizers' if step == 'normalizer' else 'pretokenizers'
            state[step] = {'type': 'Sequence', inner: [state[step]]}
    write_json(folder / 'tokenizer.json', state)
    again = subwords.load(folder)
    assert again.kind is KIND
    assert again.tokens == known.tokens
    KIND.check(again, folder)
    agreement.check_source(folder, again)
    assert KIND.fit(known, again, folder) is known


BAD = {
    'no_merges': r'vocab\.json: lists tokens without the merges .* give a tokenizer\.json, or a vocab\.json with',
    'no_role': r'tokenizer_config\.json: mask_token is .<mask>., which the vocabulary lacks; name there',
    'other_name': r'tokenizer_config\.json: pad_token is .<none>., which the vocabulary lacks',
    'damaged': r'vocab\.json: is not a vocabulary that goes with merges\.txt',
    'dropout': r'dropout of the tokenizer is 0\.1',
    'prefix': r'tokenizer\.json: is not a tokenizer that can be read',
    'suffix': r'end_of_word_suffix of the tokenizer is .</w>.',
    'ends': r'post_processor puts nothing around a text; only <s> \.\.\. </s> is supported',
    'cut': r"an added token cuts 'a of the b' otherwise than its parts between spaces",
}


@pytest.mark.parametrize(('flaw', 'message'), BAD.items())
def test_what_cannot_be_kept_is_refused_in_one_line(tmp_path: Path, flaw: str, message: str) -> None:
    folder = made_folder('listed' if flaw in ('no_merges', 'damaged') else 'roberta', tmp_path / 'bad')
    state = (
        json.loads((folder / 'tokenizer.json').read_text('utf-8'))
        if (folder / 'tokenizer.json').is_file()
        else {}
    )
    match flaw:
        case 'no_merges':
            (folder / 'merges.txt').unlink()
        case 'damaged':
            (folder / 'merges.txt').write_text('#version: 0.2\nzz zz\n', 'utf-8')
        case 'no_role':
            del state['model']['vocab']['<mask>']
            state['added_tokens'].pop()
            write_json(folder / 'tokenizer_config.json', {})
        case 'other_name':
            write_json(folder / 'tokenizer_config.json', {'pad_token': '<none>'})
        case 'dropout':
            state['model']['dropout'] = 0.1
        case 'prefix':
            state['model']['continuing_subword_prefix'] = '##'
        case 'suffix':
            state['model']['end_of_word_suffix'] = '</w>'
        case 'ends':
            state['post_processor'] = None
        case 'cut':
            flags = dict.fromkeys(('single_word', 'lstrip', 'rstrip', 'normalized', 'special'), False)
            state['added_tokens'].append({'id': 330, 'content': 'of the', **flags})
    if state:
        write_json(folder / 'tokenizer.json', state)
    with pytest.raises(InputError, match=message) as error:
        KIND.check(subwords.load(folder), folder)
    assert '\n' not in str(error.value)


@pytest.mark.parametrize('name', ['vocab.txt', 'vocab.json'])
def test_a_vocabulary_that_lists_tokens_alone_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text('<s>\n', 'utf-8')
    config = defaults()
    config.vocab.update(tokenizer='bytelevel', kind='file', file=str(tmp_path / name), lowercase=False)
    for refuse, error, said in (
        (
            lambda: build.check(Experiment.from_config(config)),
            InputError,
            rf'{name}: lists tokens without the merges that make them',
        ),
        (
            lambda: trained(size=260),
            ConfigError,
            r'vocab\.size: 260 is less than the 261 entries that bytes',
        ),
    ):
        with pytest.raises(error, match=said):
            refuse()
    trained().save(tmp_path, 128)
    config.vocab.file = str(tmp_path / 'vocab.json')
    run = Run(tmp_path, Experiment.from_config(config), quiet=True)
    build.check(run.config)
    assert tmp_path / 'merges.txt' in build.external_inputs(run.config)


# --- words and spaces ---

CHARACTERS = st.sampled_from(
    [
        *' \n\t.(-aBé1β白😀',
        '  ',
        "'s",
        'e\u0301',
        '\u00a0',
        '\u2003',
        '\u0085',
        '\x1c',
        '\u200b',
        '\u3000',
        '\r\n',
        '[MASK]',
    ]
)


@pytest.fixture(scope='module', params=['roberta', 'prefixed', 'split'])
def known(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Subwords:
    return subwords.load(made_folder(request.param, tmp_path_factory.mktemp('known') / 'folder'))


@settings(max_examples=120)
@given(st.lists(CHARACTERS, max_size=14).map(''.join))
def test_stretches_are_tokenised_as_within_the_text(known: Subwords, text: str) -> None:
    """The trailing space of several goes with the word; line breaks and other white space are cut nowhere."""
    (whole,) = known.encode([text])
    stretches = KIND.stretches(text)
    assert ''.join(stretches) == text
    assert whole.ids == [i for each in known.encode(stretches) for i in each.ids]
    added = {t.content for t in known.tokenizer.get_added_tokens_decoder().values()}
    if not any(token in text for token in added):  # those are no words of the pre-tokenizer
        words = KIND.words(known.tokenizer)(text)
        assert ''.join(words).removeprefix(' ') == known.normalised(text).removeprefix(' ')
        assert whole.ids == [i for word in words for i in known.pieces(word)]
        sizes = [len(list(group)) for _, group in itertools.groupby(whole.word_ids)]
        assert sizes == [len(known.pieces(word)) for word in words]


def test_no_two_tokens_have_one_text_and_one_beginning(known: Subwords) -> None:
    texts = [(known.text(i), bool(known.begins_V[i])) for i in range(len(known.tokens))]
    assert len(set(texts)) == len(texts)
    assert known.text(known.tokens.index('Ġkinase')) == 'kinase'
    assert known.text(known.tokens.index('Ã')) == '\udcc3', 'half a character'
    assert known.text(known.mask) == known.roles.mask


def test_tokens_are_spelled_with_their_space(known: Subwords) -> None:
    for text, inside in (('kinase', False), ('kinase', True), ('ββ', True), ('-2', True), ('(p53)', False)):
        spelled = [known.tokens[i] for i in known.spell(text, inside)]
        assert ''.join(spelled) == KIND.written(text if inside else f' {text}')
    for token in ('Ġbronchus', 'onstr', 'Ã', 'ĊĊ'):
        assert ''.join(known.tokens[i] for i in known.spell_token(token)) == token


def test_words_of_a_list_are_spelled_as_within_a_sentence(tmp_path: Path, known: Subwords) -> None:
    words = ['kinase', '(p53)', 'naïve', 'x', '-2', 'Café']
    known.save(tmp_path / 'saved', 128)
    tokenizer = agreement.load_for_words(tmp_path / 'saved')
    given = tokenizer([words], is_split_into_words=True, add_special_tokens=False)
    assert given['input_ids'][0] == known.encode([' ' + ' '.join(words)])[0].ids
    ends = np.flatnonzero(np.diff(given.word_ids(0), append=-1))
    assert [words[given.word_ids(0)[i]] for i in ends] == words


def test_hidden_tokens_never_occur_and_their_text_stays(known: Subwords) -> None:
    hidden = sorted(KIND.respellable(known))[::2]
    without = known.without(hidden)
    assert without.tokens == known.tokens
    # Nor are they drawn in place of others, and everything else is as before.
    assert without.drawn_N.tolist() == [i for i in known.drawn_N.tolist() if i not in hidden]
    for text in NEWER:
        (before,), (after,) = known.encode([text]), without.encode([text])
        assert not set(after.ids) & set(hidden)
        assert ''.join(known.tokens[i] for i in after.ids) == ''.join(known.tokens[i] for i in before.ids)
    assert len(hidden) > 20


@settings(max_examples=40)
@given(st.lists(st.sampled_from('abcd '), min_size=20, max_size=200).map(''.join), st.integers(1, 4))
def test_a_text_can_have_every_token_that_is_appended(text: str, least: int) -> None:
    source = trained(['ab cab dab bad cad', 'abcd dcba'], size=275)
    newer = trained([text, 'a'], size=300, min_frequency=least)
    appended = KIND.append(source, newer)
    assert appended.tokens[: len(source.tokens)] == source.tokens
    assert set(appended.tokens) <= {*source.tokens, *newer.tokens}
    for token in appended.tokens[len(source.tokens) :]:
        assert appended.spell_token(token) == [appended.tokens.index(token)]
    left = set(newer.tokens) - set(appended.tokens)
    assert all(len(appended.spell_token(token)) > 1 for token in left)


def test_what_an_added_token_cuts_is_not_appended_and_is_found_in_a_given_vocabulary() -> None:
    source = trained()
    source.tokenizer.add_tokens(['brca'])
    source = KIND.of(source.tokenizer, source.roles)
    newer = trained(['a brcax nephrin (brcax)'] * 9, size=330)
    assert {'Ġnephrin', 'Ġbrcax'} <= set(newer.tokens)
    appended = KIND.append(source, newer)
    assert 'Ġnephrin' in appended.tokens
    assert not any('brca' in token for token in appended.tokens[len(source.tokens) :])
    assert appended.encode_words(['nephrin'])[0].tokens == ['Ġnephrin']
    # Without a merge, and with a capital that the normaliser lowers.
    state = json.loads(trained([text.lower() for text in TEXTS], lowercase=True).tokenizer.to_str())
    state['model']['vocab'] |= {'Ġunmerged': 330, 'Kin': 331}
    state['model']['merges'].append(['K', 'in'])
    odd = KIND.of(tokenizers.Tokenizer.from_str(json.dumps(state)), source.roles)
    assert [odd.tokens[i] for i in KIND.unreached(odd, range(len(odd.tokens)))] == ['Ġunmerged', 'Kin']


# --- two kinds ---


def test_two_kinds_share_what_stands_for_the_same() -> None:
    tokens = [*OTHER, 'kinase', '##kinase', 'ase', '##ase', ',', 'β', '##β', '##2', 'zebra']
    pieces = wordpiece.make(tokens, False)
    pairs = trained(size=400)
    wanted = {
        **dict(zip(OTHER, ('<pad>', '<unk>', '<s>', '</s>', '<mask>'), strict=True)),
        'kinase': 'Ġkinase',
        '##ase': 'ase',
        ',': ',',
        'β': 'ĠÎ²',
        '##β': 'Î²',
        '##2': '2',
    }
    shared = {
        token: pairs.tokens[i] for token, i in zip(tokens, pieces.shared_with(pairs), strict=True) if i >= 0
    }
    assert shared == {token: other for token, other in wanted.items() if other in pairs.tokens}
    assert {'kinase', '##ase', ',', '[MASK]', '##2'} <= shared.keys()
    back = {
        token: tokens[i] for token, i in zip(pairs.tokens, pairs.shared_with(pieces), strict=True) if i >= 0
    }
    assert {back[other]: other for other in shared.values()} == shared
    spelled = pairs.spell_tokens(pieces, [tokens.index('zebra'), tokens.index('##kinase')])
    assert [''.join(pairs.tokens[i] for i in each) for each in spelled] == ['Ġzebra', 'kinase']


def test_of_several_tokens_of_a_source_that_stand_for_the_same_the_first_is_taken() -> None:
    spaced = trained(['a , b , c , d'] * 9, size=275)
    commas = [i for i, token in enumerate(spaced.tokens) if token in (',', 'Ġ,')]
    assert len(commas) == 2
    new = wordpiece.make([*OTHER, ','], False)
    assert new.shared_with(spaced)[len(OTHER)] == commas[0]


@pytest.mark.parametrize('source_kind', ['bytelevel', 'wordpiece'])
def test_a_vocabulary_of_one_kind_is_grafted_onto_a_source_of_the_other(
    tmp_path: Path, source_kind: str
) -> None:
    pieces = wordpiece.make(
        wordpiece.train(TEXTS * 2, Vocab(size=160, lowercase=False, min_frequency=1)), False
    )
    old = trained() if source_kind == 'bytelevel' else pieces
    old.save(tmp_path / 'old', 64)
    shape = Bert(len(old.tokens), 16, 1, 2, 24, 64, initializer_range=0.3)
    parameters = jax.tree.map(np.asarray, shape.initial_parameters(jax.random.key(0)))
    tensors.write_folder(tmp_path / 'source', shape, parameters, tmp_path / 'old')
    records = [{'id': str(n), 'title': '', 'abstract': f'{n} {text}'} for n, text in enumerate(NEWER * 4)]
    write_jsonl(tmp_path / 'texts.jsonl', records)
    c = defaults()
    c.corpus.update(inputs=(str(tmp_path / 'texts.jsonl'),), min_words=1, heldout_fraction=0.1)
    c.corpus.near.threshold = 0.0
    c.source.path, c.runtime.workers = str(tmp_path / 'source'), 1
    other = 'wordpiece' if source_kind == 'bytelevel' else 'bytelevel'
    c.vocab.update(tokenizer=other, size=360, lowercase=False, min_frequency=1)
    c.rows.update(row_pieces=64, max_document_pieces=64)
    run = Run(tmp_path / 'run', Experiment.from_config(c), quiet=True)
    for stage in ('corpus', 'vocab', 'contexts'):
        execute(run, STAGES[stage])
    flat, report, records = built(run)
    new = subwords.load(run.folder('vocab'))
    shared = new.shared_with(old)
    table = flatten(parameters)[Bert.table]
    np.testing.assert_array_equal(
        flat[Bert.table][np.flatnonzero(shared >= 0)],
        table[shared[shared >= 0]],
        'rows are copied by meaning',
    )
    assert report['tokens'] == {
        'copied': int((shared >= 0).sum()),
        'synthesised': int((shared < 0).sum()),
        'fresh': 0,
    }
    assert min(report['tokens'][kind] for kind in ('copied', 'synthesised')) > 20
    long = next(r for r in records if r['token'] in ('carcinoconstriction', 'Ġcarcinoconstriction'))
    assert long['contexts'] > 0
    text = ''.join(map(old.kind.text, long['spelling']))
    assert text.replace('Ġ', '') == 'carcinoconstriction'
    assert old.kind.begins(long['spelling'][0])
