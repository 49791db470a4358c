"""Stage `vocab`: the run's tokenizer: trained on the corpus, given, or the source's, kept or with tokens appended."""

import dataclasses
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from bioptimus_jax.corpus.documents import DocumentSource, open_documents
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.model.folder import source_folder
from bioptimus_jax.progress.console import numbered
from bioptimus_jax.records.counts import CorpusCounts, StageResult, VocabCounts
from bioptimus_jax.records.vocabulary import Comparison, same_words
from bioptimus_jax.run.folder import Run
from bioptimus_jax.storage.files import atomic, digest, read_json, sha256, write_json
from bioptimus_jax.tokenizer.config import TOKENIZERS, Vocab
from bioptimus_jax.tokenizer.subwords import (
    LEGACY_FILES,
    READY,
    SETTINGS,
    Subwords,
    deciding_file,
    kind_name,
    load,
    main_files,
)
from bioptimus_jax.vocab import agreement, frequency
from bioptimus_jax.vocab.compare import compare_vocabularies, new_tokens
from bioptimus_jax.vocab.config import HasVocab
from bioptimus_jax.vocab.counting import count_corpora, general_files, share_counted

MEASURED_DOCUMENTS = 2000
SHOWN = 8
"""Tokens of a list that a line names."""
WRITTEN_AS = {'\\\\': '\\', '\\n': '\n'}
"""What a line of new_tokens.txt has -> what it stands for."""
ESCAPED = re.compile(r'\\[\\n]')


def external_inputs(experiment: HasVocab) -> list[Path]:
    """The files outside the run that decide the result: `vocab.file`, the source's tokenizer, the general corpus."""
    given = experiment.vocab.file if experiment.vocab.kind == 'file' else ''
    files = [deciding_file(Path(given))] if given else []
    together = TOKENIZERS.load(experiment.vocab.tokenizer).files
    beside = [files[0].parent / SETTINGS] if files else []
    if files and files[0].name in together:
        beside = [files[0].parent / name for name in together if name != files[0].name] + beside
    folder = source_folder(experiment.source)
    if folder is not None:
        files += [folder / name for name in (*main_files(), SETTINGS) if (folder / name).is_file()]
        beside += [folder / name for name in LEGACY_FILES]
    return files + general_files(experiment) + [file for file in beside if file.is_file()]


def build(run: Run[HasVocab], folder: Path) -> StageResult:
    """Write the tokenizer's files, new_tokens.txt (one a line, in order of ids), comparison.json and word counts.

    Raises ConfigError where `vocab.lowercase` contradicts the source or the file, InputError for bad files and for a
    source whose tokenizer cannot be kept.
    """
    source_place = source_folder(run.config.source)
    source, subwords = tokenizers_of(run.config, source_place)
    documents = open_documents(run.folder('corpus'), 'train')
    kind = TOKENIZERS.load(run.config.vocab.tokenizer)
    like = source if source is not None and source.kind is kind else None
    corpus = CorpusCounts.of(run.manifest('corpus'))
    assert corpus is not None  # `run.folder` has found it
    share = share_counted(run.config.vocab.sample_words, corpus.words['train'])
    domain, general = count_corpora(run.console, run.config, documents, share, like or subwords)
    run.console.say(
        f'vocab: {numbered(sum(domain.values()), "word")} counted, {len(domain):,} different'
        + (f', in {share:.2%} of the documents' if share < 1 else '')
    )
    if subwords is None and share < 1 and not domain:
        raise ConfigError(
            f'config.vocab.sample_words: {run.config.vocab.sample_words:,} are so few that no document is drawn; '
            'raise it, or set it to 0, which counts all'
        )
    if subwords is None:
        subwords = trained(run.config.vocab, domain, like, run.console.say)
    if source is not None and (lost := _lost(subwords, source)):
        run.console.say(lost)
    length = (
        (read_json(source_place / 'config.json') or {}).get('max_position_embeddings')
        if source_place
        else None
    )
    subwords.save(folder, int(length or run.config.model.max_positions))
    agreement.check_written(folder, subwords)
    frequency.write(folder, domain, general, share)
    unreached = unreached_tokens(subwords, source) if run.config.vocab.kind == 'file' else []
    if unreached:
        run.console.say(unreached_line('vocab', unreached))
    counts = _write_comparison(folder, subwords, source, documents, run.console.say, unreached)
    # What later stages are made from; word frequencies are a result of their own.
    deciding = (READY, *subwords.kind.files, SETTINGS, 'new_tokens.txt', 'comparison.json')
    content = digest({name: sha256(folder / name) for name in deciding})
    return StageResult(dataclasses.replace(counts, words_counted=sum(domain.values())), content)


def check(experiment: HasVocab) -> None:
    """Raise what `build` would find wrong with the source's tokenizer and with the one that is taken as it is."""
    tokenizers_of(experiment, source_folder(experiment.source))


def tokenizers_of(experiment: HasVocab, source_place: Path | None) -> tuple[Subwords | None, Subwords | None]:
    """The source's, and the one that is taken as it is; None where there is none or one is trained."""
    source = _source_tokenizer(experiment, source_place) if source_place else None
    return source, _given(experiment.vocab, source)


def _source_tokenizer(experiment: HasVocab, folder: Path) -> Subwords:
    """The source's tokenizer, if it can be kept. ConfigError for another casing, or a kind that has to be this one."""
    subwords = load(folder)
    subwords.kind.check(subwords, folder)
    agreement.check_source(folder, subwords)
    kept = experiment.vocab.kind in ('source', 'append')
    check_words(experiment.vocab, subwords, f'the source {experiment.source.path}', kept)
    rows, tokens = (read_json(folder / 'config.json') or {}).get('vocab_size'), len(subwords.tokens)
    if isinstance(rows, int) and tokens > rows and experiment.surgery.initialisation.source:
        raise InputError(
            f'{folder}: the tokenizer has {tokens:,} tokens, but config.json gives the model {rows:,} rows; '
            'these are not the weights of this tokenizer'
        )
    return subwords


def trained(
    settings: Vocab, counts: Mapping[str, int], source: Subwords | None, say: Callable[[str], None]
) -> Subwords:
    """A tokenizer trained on word counts; for kind=append the source's entries come first, then what is new to it."""
    own = TOKENIZERS.load(settings.tokenizer).train(counts, settings, source)
    if len(own.tokens) < settings.size:
        say(
            f'vocab: the text gives {numbered(len(own.tokens), "entry")}, not config.vocab.size={settings.size:,}'
        )
    if settings.kind != 'append' or source is None:
        return own
    appended = source.kind.append(source, own)
    if left := len(source.tokens) + int((own.shared_with(source) < 0).sum()) - len(appended.tokens):
        say(f'vocab: left out: {numbered(left, "token")} that no text has beside those of the source')
    return appended


def _given(settings: Vocab, source: Subwords | None) -> Subwords | None:
    """The tokenizer that is taken as it is; None where one is trained."""
    if source is None and settings.kind in ('source', 'append'):
        raise ConfigError(
            f'config.vocab.kind: {settings.kind} needs config.source.path; or take config.vocab.kind=train'
        )
    if settings.kind in ('train', 'append'):
        return None
    if settings.kind == 'source':
        return source
    if not settings.file:
        raise ConfigError('config.vocab.file: config.vocab.kind=file needs the path of a vocabulary')
    file = Path(settings.file)
    kind = TOKENIZERS.load(settings.tokenizer)
    given = kind.load(file) if file.is_file() and file.name != READY else load(file)
    check_words(settings, given, f'{settings.file}')
    if file.is_dir() or file.name == READY:
        given.kind.check(given, file)
        if ((folder := file if file.is_dir() else file.parent) / SETTINGS).is_file():
            agreement.check_source(folder, given)
    return kind.fit(given, source, file) if source is not None and source.kind is kind else given


def _lost(subwords: Subwords, source: Subwords) -> str:
    """What to say of tokens that users added to the source and that this vocabulary lacks; '' for none."""
    kept = set(subwords.shared_with(source).tolist())
    added = sorted(source.tokenizer.get_added_tokens_decoder().items())
    lost = [token.content for number, token in added if number not in kept]
    if not lost:
        return ''
    return (
        f'vocab: this vocabulary lacks {numbered(len(lost), "token")} that the source was given '
        f'({", ".join(lost[:4])}); config.vocab.kind=append keeps them'
    )


def unreached_tokens(subwords: Subwords, source: Subwords | None) -> list[str]:
    """The tokens of a given vocabulary that the source lacks and that no text has."""
    shared = np.full(len(subwords.tokens), -1) if source is None else subwords.shared_with(source)
    numbers = subwords.kind.unreached(subwords, np.flatnonzero(shared < 0).tolist())
    return [subwords.tokens[i] for i in numbers]


def unreached_line(where: str, tokens: list[str]) -> str:
    """What to say of entries that no text has."""
    shown = ', '.join(repr(token if len(token) <= 20 else f'{token[:20]}...') for token in tokens[:SHOWN])
    return (
        f'{where}: no text can have {numbered(len(tokens), "entry")} of the given vocabulary, whose rows are never '
        f'used ({shown}{", ..." * (len(tokens) > SHOWN)}); the tokenizer changes their characters or cuts them'
    )


def _write_comparison(
    folder: Path,
    subwords: Subwords,
    source: Subwords | None,
    documents: DocumentSource,
    say: Callable[[str], None],
    unreached: list[str],
) -> VocabCounts:
    write_new_tokens(folder, subwords, source)
    step = max(math.ceil(len(documents) / MEASURED_DOCUMENTS), 1)
    report = compare_vocabularies(
        subwords, source, [documents[i].text for i in range(0, len(documents), step)]
    )
    report = dataclasses.replace(report, unreached=tuple(unreached) or None)
    write_json(folder / 'comparison.json', report.json())
    if source is not None and source.kind is not subwords.kind:
        say(
            "vocab: the source's tokenizer is of another kind; the text of tokens decides which rows are kept"
        )
    say(f'vocab: {numbered(len(subwords.tokens), "entry")}, {_pieces_line(report)}')
    return VocabCounts(size=len(subwords.tokens), kept=report.kept, new=report.new, lost=report.lost)


def _pieces_line(report: Comparison) -> str:
    """Pieces a word, beside the source's; of words between spaces where the tokenizers cut texts into other words."""
    own, source = report.vocabulary, report.source
    if source is None:
        return f'{own.pieces_per_word:.2f} pieces a word'
    new = numbered(report.new or 0, 'new token')
    if same_words([own, source]):
        return f'{own.pieces_per_word:.2f} pieces a word (source: {source.pieces_per_word:.2f}), {new}'
    rate, other = (of.pieces_per_word_between_spaces or 0 for of in (own, source))
    return f'{rate:.2f} pieces a word between spaces (source: {other:.2f}), {new}'


def write_new_tokens(folder: Path, subwords: Subwords, source: Subwords | None) -> list[str]:
    """Write new_tokens.txt; returns the tokens that the source does not have, in order of ids."""
    new = new_tokens(subwords, source)
    with atomic(folder / 'new_tokens.txt', 'wb') as file:
        file.write(''.join(_as_line(token) + '\n' for token in new).encode('utf-8'))
    return new


def read_new_tokens(vocab_folder: Path) -> list[str]:
    """The tokens that the source does not have, in order of ids."""
    lines = (vocab_folder / 'new_tokens.txt').read_bytes().decode('utf-8').split('\n')[:-1]
    return [ESCAPED.sub(lambda found: WRITTEN_AS[found[0]], line) for line in lines]


def _as_line(token: str) -> str:
    """A token as one line: a line break, which tokens of Gemma have, is written \\n, and then \\ as two of them.

    So is a token in which that would be read; all others stay as they are.
    """
    if '\n' not in token and not ESCAPED.search(token):
        return token
    return token.replace('\\', '\\\\').replace('\n', '\\n')


def check_words(settings: Vocab, subwords: Subwords, owner: str, kind: bool = True) -> None:
    """Raises ConfigError where the tokenizer's casing, or where it matters its `kind`, is not the configuration's."""
    wrong: dict[str, tuple[str | bool, str]] = {}
    if kind and subwords.kind is not TOKENIZERS.load(settings.tokenizer):
        name = kind_name(subwords.kind)
        wrong['tokenizer'] = name, f'has a tokenizer of the kind {name}'
    if subwords.lowercase != settings.lowercase:
        wrong['lowercase'] = subwords.lowercase, f'is {"lower case" if subwords.lowercase else "cased"}'
    if wrong:
        keys = ', and '.join(f'config.vocab.{key}: is {getattr(settings, key)}' for key in wrong)
        found = ' and '.join(what for _, what in wrong.values())
        right = ' '.join(f'--config.vocab.{key}={value}' for key, (value, _) in wrong.items())
        raise ConfigError(f'{keys}, but {owner} {found}; set {right}')
