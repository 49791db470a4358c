"""Stage `vocab`: the run's tokenizer: trained on the corpus, given, or the source's, kept or with tokens appended."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tokenizers

from bioptimus_jax.corpus.documents import DocumentSource, open_documents
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.files import atomic, digest, read_json, sha256, write_json
from bioptimus_jax.run import Run
from bioptimus_jax.schema import Experiment
from bioptimus_jax.vocab import agreement, frequency, tokenizer_files, wordpiece
from bioptimus_jax.vocab.compare import compare, new_tokens
from bioptimus_jax.vocab.counting import count_corpora, general_files, share_counted
from bioptimus_jax.vocab.training import train_from_counts

DECIDING_FILES = (*tokenizer_files.FILES, 'new_tokens.txt', 'comparison.json')
"""What later stages are made from; word frequencies are a result of their own."""

MEASURED_DOCUMENTS = 2000


def external_inputs(experiment: Experiment) -> list[Path]:
    """The files outside the run that decide the result: `vocab.file`, the source's tokenizer, the general corpus."""
    files = [Path(experiment.vocab.file)] if experiment.vocab.kind == 'file' and experiment.vocab.file else []
    beside = [_settings_beside(files[0])] if files else []
    folder = source_folder(experiment)
    if folder is not None:
        files += [folder / name for name in tokenizer_files.FILES if (folder / name).is_file()]
        beside += [folder / name for name in tokenizer_files.LEGACY_FILES]
    return files + general_files(experiment) + [file for file in beside if file.is_file()]


def _settings_beside(file: Path) -> Path:
    return file.parent / tokenizer_files.FILES[-1]


def source_folder(experiment: Experiment) -> Path | None:
    """The source's folder, or None without a source."""
    if not experiment.source.path:
        return None
    from bioptimus_jax.model import hf  # late: it brings jax along, which worker processes must not load

    return hf.source_folder(experiment.source)


def build(run: Run, folder: Path) -> dict[str, Any]:
    """Write the tokenizer's files, new_tokens.txt (one a line, in order of ids), comparison.json and word counts.

    Raises ConfigError where `vocab.lowercase` contradicts the source or the file, InputError for bad files and for a
    source whose tokenizer cannot be kept.
    """
    source_place = source_folder(run.config)
    source, tokenizer = _tokenizers(run.config, source_place)
    documents = open_documents(run.folder('corpus'), 'train')
    domain, general = count_corpora(run, documents, source if source is not None else tokenizer)
    share = share_counted(run)
    run.say(
        f'vocab: {sum(domain.values()):,} words counted, {len(domain):,} different'
        + (f', in {share:.2%} of the documents' if share < 1 else '')
    )
    if tokenizer is None:
        tokenizer = _trained(run, domain, source)
    if source is not None:
        _tell_lost(run, tokenizer, source)
    length = (
        (read_json(source_place / 'config.json') or {}).get('max_position_embeddings')
        if source_place
        else None
    )
    wordpiece.save_tokenizer(tokenizer, folder, int(length or run.config.model.max_positions))
    agreement.check_written(folder, tokenizer)
    frequency.write(folder, domain, general, share)
    counts = _write_comparison(run, folder, tokenizer, source, documents)
    content = digest({name: sha256(folder / name) for name in DECIDING_FILES})
    return {**counts, 'words_counted': sum(domain.values()), 'content': content}


def check(run: Run) -> None:
    """Raise what `build` would find wrong with the source's tokenizer and with the one that is taken as it is."""
    _tokenizers(run.config, source_folder(run.config))


def _tokenizers(
    experiment: Experiment, source_place: Path | None
) -> tuple[tokenizers.Tokenizer | None, tokenizers.Tokenizer | None]:
    """The source's, and the one that is taken as it is; None where there is none or one is trained."""
    source = _source_tokenizer(experiment, source_place) if source_place else None
    return source, _given(experiment, source)


def _source_tokenizer(experiment: Experiment, folder: Path) -> tokenizers.Tokenizer:
    """The source's tokenizer, if it can be kept. ConfigError for another casing, InputError where it cannot."""
    tokenizer = wordpiece.load_tokenizer(folder)
    wordpiece.check_supported(tokenizer, folder)
    agreement.check_source(folder, tokenizer)
    check_casing(experiment, tokenizer, f'the source {experiment.source.path}')
    rows, tokens = (read_json(folder / 'config.json') or {}).get('vocab_size'), tokenizer.get_vocab_size()
    if isinstance(rows, int) and tokens > rows and experiment.surgery.strategy != 'scratch':
        raise InputError(
            f'{folder}: the tokenizer has {tokens:,} tokens, but config.json gives the model {rows:,} rows; '
            'these are not the weights of this tokenizer'
        )
    return tokenizer


def _trained(
    run: Run, counts: Mapping[str, int], source: tokenizers.Tokenizer | None
) -> tokenizers.Tokenizer:
    """A tokenizer trained on word counts; for kind=append the source's entries come first, then what is new to it."""
    settings = run.config.vocab
    tokens = train_from_counts(counts, settings)
    if len(tokens) < settings.size:
        run.say(f'vocab: the text gives {len(tokens):,} entries, not config.vocab.size={settings.size:,}')
    if settings.kind == 'append' and source is not None:
        known = wordpiece.vocabulary(source)
        tokens = known + new_tokens(tokens, known)
    return _like_source(tokens, run.config, source)


def _given(experiment: Experiment, source: tokenizers.Tokenizer | None) -> tokenizers.Tokenizer | None:
    """The tokenizer that is taken as it is; None where one is trained."""
    settings = experiment.vocab
    if source is None and settings.kind in ('source', 'append'):
        raise ConfigError(
            f'config.vocab.kind: {settings.kind} needs config.source.path; or take config.vocab.kind=train'
        )
    if settings.kind in ('train', 'append'):
        return None
    if settings.kind == 'source':
        return source
    if not settings.file:
        raise ConfigError('config.vocab.file: config.vocab.kind=file needs the path of a vocab.txt')
    file = Path(settings.file)
    tokenizer = wordpiece.load_tokenizer(file)
    check_casing(experiment, tokenizer, f'{settings.file}')
    if source is None:
        return tokenizer
    said = tokenizer_files.normalizer_settings(file.parent)
    if said and agreement.other_words(source, said):
        listed = ', '.join(
            f'{key} {said[name]}' for key, name in tokenizer_files.SWITCHES.items() if name in said
        )
        raise ConfigError(
            f'config.vocab.file: {_settings_beside(file)} says {listed}, and the tokenizer of the source '
            f'{experiment.source.path} is another; take a vocabulary with its settings, or correct that file'
        )
    return _like_source(wordpiece.vocabulary(tokenizer), experiment, source)


def _like_source(
    tokens: list[str], experiment: Experiment, source: tokenizers.Tokenizer | None
) -> tokenizers.Tokenizer:
    """A tokenizer of these entries, with the source's normaliser, pre-tokenizer and those of its added tokens that
    are among them."""
    return wordpiece.tokenizer_from_vocabulary(tokens, experiment.vocab.lowercase, source)


def _tell_lost(run: Run, tokenizer: tokenizers.Tokenizer, source: tokenizers.Tokenizer) -> None:
    kept = tokenizer.get_vocab()
    lost = [t.content for t in source.get_added_tokens_decoder().values() if t.content not in kept]
    if lost:
        run.say(
            f'vocab: {len(lost):,} tokens that were added to the source are not in this vocabulary '
            f'({", ".join(lost[:4])}); config.vocab.kind=append keeps them'
        )


def _write_comparison(
    run: Run,
    folder: Path,
    tokenizer: tokenizers.Tokenizer,
    source: tokenizers.Tokenizer | None,
    documents: DocumentSource,
) -> dict[str, Any]:
    tokens = wordpiece.vocabulary(tokenizer)
    new = new_tokens(tokens, wordpiece.vocabulary(source) if source is not None else None)
    with atomic(folder / 'new_tokens.txt', 'wb') as file:
        file.write(''.join(token + '\n' for token in new).encode('utf-8'))
    step = max(math.ceil(len(documents) / MEASURED_DOCUMENTS), 1)
    report = compare(tokenizer, source, [documents[i].text for i in range(0, len(documents), step)])
    write_json(folder / 'comparison.json', report)
    pieces = f'{report["vocabulary"]["pieces_per_word"]:.2f} pieces a word'
    if source is not None:
        pieces += f' (source: {report["source"]["pieces_per_word"]:.2f}), {len(new):,} tokens are new'
    run.say(f'vocab: {len(tokens):,} entries, {pieces}')
    return {'size': len(tokens), **{name: report[name] for name in ('kept', 'new', 'lost') if name in report}}


def read_new_tokens(vocab_folder: Path) -> list[str]:
    """The tokens that the source does not have, in order of ids."""
    return (vocab_folder / 'new_tokens.txt').read_bytes().decode('utf-8').split('\n')[:-1]


def check_casing(experiment: Experiment, tokenizer: tokenizers.Tokenizer, owner: str) -> None:
    """Raises ConfigError where the tokenizer's casing is not that of `vocab.lowercase`."""
    lowercase = wordpiece.is_lowercase(tokenizer)
    if lowercase != experiment.vocab.lowercase:
        casing = 'lower case' if lowercase else 'cased'
        raise ConfigError(
            f'config.vocab.lowercase: is {experiment.vocab.lowercase}, but {owner} is {casing}; '
            f'set --config.vocab.lowercase={lowercase}'
        )
