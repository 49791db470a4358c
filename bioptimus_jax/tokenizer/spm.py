"""SentencePiece's own file of a tokenizer, which is all that some folders have, such as DeBERTa-v3's.

It is read as SentencePiece reads it, with the normaliser that is in it. transformers 5.23 leaves that out of DeBERTa's:
its µ, ² and ½ are unknown then, although the model was trained with μ, 2 and 1⁄2.
"""

from pathlib import Path
from typing import Any

import tokenizers
from google.protobuf.message import DecodeError
from sentencepiece import sentencepiece_model_pb2
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors

from bioptimus_jax.errors import InputError
from bioptimus_jax.storage.files import read_json, refuse_pointer
from bioptimus_jax.tokenizer.subwords import READY, SETTINGS, Roles
from bioptimus_jax.tokenizer.tokenizer_files import named_by, said_roles

FILES = ('spm.model', 'spiece.model', 'sentencepiece.bpe.model', 'tokenizer.model')
UNIGRAM = 1
"""The number of that type of model in the file."""
USUAL = Roles(pad='[PAD]', unknown='[UNK]', cls='[CLS]', sep='[SEP]', mask='[MASK]')
"""The special tokens of DeBERTa."""


def file_of(folder: Path) -> Path | None:
    """SentencePiece's file in a folder that has no tokenizer.json."""
    if (folder / READY).is_file():
        return None
    return next((folder / name for name in FILES if (folder / name).is_file()), None)


def read(file: Path) -> tuple[tokenizers.Tokenizer, Roles]:
    """The tokenizer of a file that holds its special tokens but for the mask, which comes last; and their names.

    Raises InputError for a damaged file, for a model of pairs, and where special tokens have their ids from elsewhere,
    as XLM-R's and CamemBERT's: transformers can write the tokenizer.json of all these.
    """
    refuse_pointer(file)
    model: Any = sentencepiece_model_pb2.ModelProto()  # type: ignore[attr-defined]  # made when it is imported
    try:
        model.ParseFromString(file.read_bytes())
    except DecodeError as error:
        raise InputError(f'{file}: is not a model of SentencePiece ({error}); fetch it again') from error
    roles = named_by(said_roles(file.parent), USUAL)
    entries = [(piece.piece, piece.score) for piece in model.pieces]
    known = {token for token, _ in entries}
    others = [token for token in roles if token not in known and token != roles.mask]
    if others or model.trainer_spec.model_type != UNIGRAM:
        what = f'lacks the special token {others[0]}' if others else 'is a model of pairs'
        raise InputError(
            f'{file}: {what}, so a tokenizer.json is needed; write one by transformers: '
            f"AutoTokenizer.from_pretrained('{file.parent}').save_pretrained('{file.parent}')"
        )
    if roles.mask not in known:
        entries.append((roles.mask, 0.0))
    settings = read_json(file.parent / SETTINGS) or {}
    if settings.get('split_by_punct'):
        raise InputError(f'{file.parent / SETTINGS}: split_by_punct is true; only false is supported')
    return _assembled(model, entries, roles, bool(settings.get('do_lower_case'))), roles


def _assembled(
    model: Any, entries: list[tuple[str, float]], roles: Roles, lowercase: bool
) -> tokenizers.Tokenizer:
    ids = {token: i for i, (token, _) in enumerate(entries)}
    tokenizer = tokenizers.Tokenizer(
        models.Unigram(entries, ids[roles.unknown], model.trainer_spec.byte_fallback)
    )
    rules, steps = model.normalizer_spec, list[Any]()
    steps += [normalizers.Lowercase()] * lowercase
    if rules.precompiled_charsmap:
        steps.append(normalizers.Precompiled(rules.precompiled_charsmap))
    if rules.remove_extra_whitespaces:
        steps += [normalizers.Replace(Regex(' {2,}'), ' '), normalizers.Strip()]
    if steps:
        tokenizer.normalizer = normalizers.Sequence(steps)
    scheme = 'always' if rules.add_dummy_prefix else 'never'
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace('▁', scheme)
    tokenizer.decoder = decoders.Metaspace('▁', scheme)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f'{roles.cls} $A {roles.sep}',
        pair=f'{roles.cls} $A {roles.sep} $B:1 {roles.sep}:1',
        special_tokens=[(roles.cls, ids[roles.cls]), (roles.sep, ids[roles.sep])],
    )
    tokenizer.add_special_tokens(
        [tokenizers.AddedToken(token, normalized=False, special=True) for token in roles]
    )
    return tokenizer
