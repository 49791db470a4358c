"""Tokenizers of SentencePiece's kinds as XLM-R, DeBERTa-v3 and Gemma (mmBERT) have them."""

import json
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors

from bioptimus_jax.tokenizer.config import TOKENIZERS, Vocab
from bioptimus_jax.tokenizer.metaspace import BYTES
from bioptimus_jax.tokenizer.subwords import Roles, Subwords

GEMMA = Roles(pad='<pad>', unknown='<unk>', cls='<bos>', sep='<eos>', mask='<mask>')
DEBERTA = Roles(pad='[PAD]', unknown='[UNK]', cls='[CLS]', sep='[SEP]', mask='[MASK]')
NAMES = dict(cls='cls_token', sep='sep_token', pad='pad_token', unknown='unk_token', mask='mask_token')


def trained(
    kind: str, texts: list[str], size: int, source: Subwords | None = None, **changes: Any
) -> Subwords:
    """A tokenizer of that kind, trained on texts; as XLM-R's without a source."""
    known = TOKENIZERS.load(kind)
    counts = known.count_words(texts, False, source.tokenizer if source else None)
    settings = Vocab(**{'tokenizer': kind, 'size': size, 'lowercase': False, 'min_frequency': 1, **changes})
    return known.train(counts, settings, source)


def save_like_gemma(known: Subwords, folder: Path, longest: int) -> Path:
    """Pairs with byte fallback; only the normalizer knows of spaces, and the first word of a text has none."""
    model = json.loads(known.tokenizer.to_str())['model']
    first = ['<pad>', '<eos>', '<bos>', '<unk>', '<mask>', '\n', '\t', *BYTES]
    tokens = [*first, *(token for token in known.tokens if token not in {*known.roles, *first})]
    vocabulary = {token: i for i, token in enumerate(tokens)}
    merges = [tuple(pair) for pair in model['merges']]
    pairs = models.BPE(vocabulary, merges, unk_token='<unk>', fuse_unk=True, byte_fallback=True)
    tokenizer = tokenizers.Tokenizer(pairs)
    tokenizer.normalizer = normalizers.Replace(' ', '▁')
    tokenizer.pre_tokenizer = pre_tokenizers.Split(' ', 'merged_with_previous')
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace('▁', ' '), decoders.ByteFallback(), decoders.Fuse()]
    )
    return saved(tokenizer, GEMMA, folder, longest)


def save_like_deberta(known: Subwords, folder: Path, longest: int) -> Path:
    """Unigram without a cut at white space; the mask is behind the vocabulary, and only added."""
    model = json.loads(known.tokenizer.to_str())['model']
    own = [(token, score) for token, score in model['vocab'] if token not in known.roles]
    first = [(token, 0.0) for token in (DEBERTA.pad, DEBERTA.cls, DEBERTA.sep, DEBERTA.unknown)]
    tokenizer = tokenizers.Tokenizer(models.Unigram([*first, *own], unk_id=3, byte_fallback=False))
    blanks = normalizers.Replace(Regex(r'\s{2,}|[\n\r\t]'), ' ')
    tokenizer.normalizer = normalizers.Sequence([blanks, normalizers.NFC(), normalizers.Strip(left=False)])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Metaspace('▁', 'always')])
    tokenizer.decoder = decoders.Metaspace('▁', 'always')
    return saved(tokenizer, DEBERTA, folder, longest)


def saved(tokenizer: tokenizers.Tokenizer, roles: Roles, folder: Path, longest: int) -> Path:
    """A folder with that tokenizer and the names of its special tokens."""
    tokenizer.add_special_tokens([AddedToken(t, normalized=False, lstrip=t == roles.mask) for t in roles])
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f'{roles.cls} $A {roles.sep}',
        pair=f'{roles.cls} $A {roles.sep} $B {roles.sep}',
        special_tokens=[(name, tokenizer.token_to_id(name)) for name in (roles.cls, roles.sep)],
    )
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / 'tokenizer.json'))
    named = {NAMES[role]: token for role, token in roles._asdict().items()}
    settings = {'tokenizer_class': 'PreTrainedTokenizerFast', 'model_max_length': longest, **named}
    (folder / 'tokenizer_config.json').write_text(json.dumps(settings))
    return folder
