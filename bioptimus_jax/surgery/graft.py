"""Stage `surgery`: the weights at step 0, the source's grafted onto the run's vocabulary (paper, section 3).

V: source tokens, W: the run's vocabulary, N: its new tokens, D: hidden size.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.hosts.devices import present
from bioptimus_jax.model.architecture import Architecture
from bioptimus_jax.model.config import SOURCE
from bioptimus_jax.model.folder import deciding_files, source_folder
from bioptimus_jax.model.loaded import Loaded
from bioptimus_jax.model.loaded import check_folder as check_tokenizer
from bioptimus_jax.model.peft import adapter_files, check_adapter
from bioptimus_jax.model.tensors import (
    has_head,
    own_architecture,
    padding_flaw,
    read_architecture,
    write_folder,
)
from bioptimus_jax.model.trees import Params, flatten, unflatten
from bioptimus_jax.model.untouched import enumerated, untouched_in
from bioptimus_jax.progress.console import Console
from bioptimus_jax.records.counts import StageResult, SurgeryCounts
from bioptimus_jax.records.surgery import COPIED, FittedBias
from bioptimus_jax.rows.config import Rows
from bioptimus_jax.rows.layouts import layout_of
from bioptimus_jax.run.folder import Run
from bioptimus_jax.storage.files import read_json, whole_folder, write_json, write_jsonl
from bioptimus_jax.surgery import account, bias, donor, fit, rows
from bioptimus_jax.surgery.config import HasSurgery, Surgery
from bioptimus_jax.surgery.initialisations import Inputs, Spellings, averaged_input
from bioptimus_jax.surgery.longer import lengthened, stretched
from bioptimus_jax.surgery.material import layers_read
from bioptimus_jax.surgery.source import computing, load_source
from bioptimus_jax.surgery.spelling import with_borders
from bioptimus_jax.surgery.synthesis import synthesise
from bioptimus_jax.tokenizer import subwords
from bioptimus_jax.tokenizer.config import TOKENIZERS
from bioptimus_jax.vocab import agreement, lists
from bioptimus_jax.vocab.build import check_words, read_new_tokens, tokenizers_of

WORDS = ('the', 'dose', 'of', 'a', 'drug')
"""Words enough to train a tokenizer of which only the special tokens are looked at."""
OUTPUT_STREAM = 2**32
"""Added to the seed where rows of an output table are drawn: beyond every seed, so that they are not the input rows."""


def build(run: Run[HasSurgery], folder: Path) -> StageResult:
    """Write `folder`/model (a Hugging Face folder with the run's tokenizer), tokens.jsonl and report.json.

    Raises ConfigError for settings that contradict the source or each other, InputError for a bad source.
    """
    check(run.config)
    experiment, initialisation = run.config, run.config.surgery.initialisation
    run.computes('surgery', str(present()), **computing())
    vocab = run.folder('vocab')
    known = subwords.load(vocab)
    vocabulary = known.tokens
    untouched: dict[str, np.ndarray] = {}
    if not initialisation.source:
        architecture, parameters, ledger = _scratch(experiment, known)
    else:
        source = load_source(experiment.source, experiment.seed, folder / SOURCE)
        assert source is not None  # by `check`
        if source.fresh:
            run.console.say(
                f'surgery: {source.folder} has no masked-LM head: {len(source.fresh)} parameters of a fresh one are '
                'random or zero, and losses at step 0 say nothing about the source '
                '(config.pretrain.head_steps fits it first)'
            )
        entries = source.architecture.vocab_size if initialisation.keeps_vocabulary else len(vocabulary)
        architecture = _fitted(experiment, source.architecture, entries)
        if initialisation.keeps_vocabulary:
            parameters, ledger = _copied(source, vocabulary)
        else:
            new_W = _new_tokens(experiment, source, known, vocab)
            spellings, written = source.subwords.spell_tokens(known, new_W), with_borders(known, new_W)
            new = synthesise(run, source, [vocabulary[i] for i in new_W], spellings, written)
            parameters, ledger = graft(experiment, source, known, architecture, new, vocab)
        parameters, longer = stretched(experiment.surgery.longer, architecture, parameters)
        ledger.parameters.update(dict.fromkeys(longer, account.SYNTHESISED))
        untouched = _untouched(run.console, source)
    _write_model(folder / 'model', architecture, parameters, vocab, untouched)
    table_WxD = np.asarray(flatten(parameters)[architecture.table])[: len(vocabulary)]
    records = account.token_records(vocabulary, table_WxD, ledger)
    write_jsonl(folder / account.TOKENS_FILE, (record.json() for record in records))
    made = account.report(experiment.surgery, records, parameters, ledger)
    write_json(folder / account.REPORT, made.json())
    counts = {**made.tokens, **vars(made.encoded)}
    return StageResult(SurgeryCounts(strategy=made.strategy, **counts, fallbacks=made.fallbacks))


def _untouched(console: Console, source: Loaded) -> dict[str, np.ndarray]:
    """What the source has beside the parameters; a line says what becomes of it."""
    found, lost = untouched_in(source.folder, source.architecture)
    if found:
        console.say(
            f'surgery: {source.folder} also has {enumerated([*found])}: every export has that too, unchanged where the '
            'objective does not train it'
        )
    if lost:
        console.say(
            f'surgery: {source.folder} also has {enumerated(lost)}: in no model of this run, being a head for labels, '
            'of another shape, or read by nothing'
        )
    return found


def check(experiment: HasSurgery) -> None:
    """Raise what `build` would find wrong with the settings and the source's config.json."""
    surgery, folder = experiment.surgery, source_folder(experiment.source)
    if surgery.initialisation.source and folder is None:
        raise ConfigError(
            f'config.source.path: is empty, but config.surgery.strategy={surgery.strategy!r} needs a source'
        )
    if surgery.initialisation.keeps_vocabulary and experiment.vocab.kind != 'source':
        raise ConfigError(
            f'config.surgery.strategy: {surgery.strategy} keeps the source vocabulary, but '
            f'config.vocab.kind={experiment.vocab.kind!r}; set config.vocab.kind=source'
        )
    # Stage vocab may not have run yet, and nothing that is checked here depends on the size.
    shape = _shape(experiment, experiment.vocab.size)
    if shape.only_pad is not None and (flaw := padding_flaw(_tokenizer_like(experiment, folder), shape)):
        raise ConfigError(f'config.vocab.tokenizer: {flaw}')
    if folder and surgery.initialisation.source:
        check_tokenizer(folder)
        check_adapter(experiment.source, folder)
        fit.check(surgery, shape, not surgery.fit_cross_entropy or has_head(folder), str(folder))
        if not rows_fit(surgery, shape):
            raise ConfigError(
                f'config.surgery.map: rows of {folder} have {shape.width} columns, its states {shape.hidden}; '
                f'{surgery.strategy} needs a map, set config.surgery.map=spelled, or choose another strategy'
            )
    if surgery.initialisation.donor:
        donor.check(surgery)
    _fitted(experiment, shape, shape.vocab_size)
    layers_read([surgery], shape.layers, str(folder))


def _tokenizer_like(experiment: HasSurgery, folder: Path | None) -> subwords.Subwords:
    """A tokenizer with the special tokens, at their ids, that the run's will have."""
    source, given = tokenizers_of(experiment, folder)
    if experiment.vocab.kind == 'append' and source is not None:
        return source
    settings = dataclasses.replace(experiment.vocab, min_frequency=1)
    kind = TOKENIZERS.load(settings.tokenizer)
    like = source if source is not None and source.kind is kind else None
    return given or kind.train(dict.fromkeys(WORDS, 1), settings, like)


def rows_fit(surgery: Surgery, shape: Architecture) -> bool:
    """Whether rows made this way are as wide as the table: states of a narrow ELECTRA are not, without a map."""
    mapped = bool(surgery.fitted_map.anchors)
    return shape.width == shape.hidden or mapped or not surgery.initialisation.states


def external_inputs(experiment: HasSurgery) -> list[Path]:
    """The files that decide the result: of the source and of a donor config.json, weights, tokenizer; the list of the
    tokens that are fitted alone. Raises ConfigError."""
    folder, settings = source_folder(experiment.source), experiment.surgery
    if folder is None:
        return []
    if not settings.initialisation.source:
        return [folder / 'config.json']
    donor_folder = donor.folder_of(settings) if settings.initialisation.donor else None
    listed = lists.file_of(settings.fit_only, 'config.surgery.fit_only')
    adapter = adapter_files(experiment.source)
    return [
        *deciding_files(folder),
        *adapter,
        *(deciding_files(donor_folder) if donor_folder else ()),
        *listed,
    ]


def _shape(experiment: HasSurgery, entries: int) -> Architecture:
    """The architecture of the source or, without one, that of config.model with so many entries."""
    folder = source_folder(experiment.source)
    return read_architecture(folder) if folder else own_architecture(experiment.model, entries)


def _fitted(experiment: HasSurgery, architecture: Architecture, vocab_size: int) -> Architecture:
    """`adapted`, where documents and pairs have what they need. Raises ConfigError."""
    made = adapted(experiment, architecture, vocab_size)
    check_rows(experiment.rows, made)
    return made


def adapted(experiment: HasSurgery, architecture: Architecture, vocab_size: int) -> Architecture:
    """The source's architecture with the run's vocabulary, positions and dropout. Raises ConfigError."""
    model = experiment.model
    return dataclasses.replace(
        lengthened(experiment.surgery.longer, architecture).masked_lm(),
        vocab_size=vocab_size,
        dropout=model.dropout,
        attention_dropout=model.attention_dropout,
    )


def check_rows(rows: Rows, architecture: Architecture, section: str = 'config.rows') -> None:
    """Raise ConfigError where documents may be longer than the model's positions, or pairs have no two token types.

    `section`: the one that says how long they are.
    """
    layout = rows.layout
    if layout_of(layout).is_random and architecture.segment_types < 2:
        raise ConfigError(
            f'config.rows.layout: {layout} needs two token types, which this {architecture.title} does not have; set '
            'config.rows.layout=documents, or take a model of a family with both, as bert'
        )
    positions, wanted = architecture.positions, rows.max_document_pieces
    if wanted > positions:
        raise ConfigError(
            f'{section}.max_document_pieces: {wanted} pieces, but this {architecture.title} has {positions} '
            f'positions; set it to {positions} or less, or config.surgery.longer.positions={wanted}'
        )


def _scratch(experiment: HasSurgery, known: subwords.Subwords) -> tuple[Architecture, Params, account.Ledger]:
    """Every weight random, in the source's shape or, without a source, in that of config.model."""
    entries = len(known.tokens)
    # The id of padding is that of the run's vocabulary: a RoBERTa counts its positions from it.
    architecture = _fitted(experiment, _shape(experiment, entries), entries).padded_with(known.pad)
    # The generator is named, so that a jax that is set to another one draws the same weights.
    key = jax.random.key(experiment.seed, impl='threefry2x32')
    parameters = jax.tree.map(np.asarray, architecture.initial_parameters(key))
    return architecture, parameters, account.Ledger(dict.fromkeys(flatten(parameters), account.FRESH))


def _copied(source: Loaded, vocabulary: list[str]) -> tuple[Params, account.Ledger]:
    """The source as it is: vocabulary, rows (unused ones too) and every other weight."""
    if vocabulary != source.vocabulary:
        raise InputError(
            f'{source.folder}: its vocabulary is not the one of stage vocab; run `bioptimus vocab` again'
        )
    return source.parameters, account.Ledger(_origins(source), source.table(), source.vocabulary)


def output_rows(settings: Surgery, table_VxD: np.ndarray, spellings: Spellings, seed: int) -> np.ndarray:
    """New rows of an output layer's own table: float64 [N, D].

    Drawn by chance where input rows are; otherwise the mean of the output rows of a token's pieces, or of all rows
    where there are none: states and donors tell how a token is read, not how it is predicted.
    """
    initialisation = settings.initialisation
    if initialisation.drawn and initialisation.rows:
        given = Inputs(
            table_VxD, spellings, np.zeros(len(spellings), np.int64), settings, seed + OUTPUT_STREAM
        )
        return initialisation.rows(given)
    made_NxD = averaged_input(table_VxD, spellings)
    made_NxD = np.where(np.isnan(made_NxD), table_VxD.mean(axis=0, dtype=np.float64), made_NxD)
    return rows.shuffled(made_NxD, seed) if settings.dealt else made_NxD


def _new_tokens(experiment: HasSurgery, source: Loaded, known: subwords.Subwords, vocab: Path) -> np.ndarray:
    """Ids of the run's tokens that the source lacks, [N]. Raises InputError where stage vocab has found others."""
    new_W = np.flatnonzero(known.shared_with(source.subwords) < 0)
    check_words(experiment.vocab, source.subwords, f'the source {experiment.source.path}', kind=False)
    if [known.tokens[i] for i in new_W] != read_new_tokens(vocab):
        raise InputError(
            f'{vocab / "new_tokens.txt"}: lists other tokens than {source.folder} lacks; '
            'run `bioptimus vocab` and `bioptimus contexts` again with this source'
        )
    return new_W


def graft(
    experiment: HasSurgery,
    source: Loaded,
    known: subwords.Subwords,
    architecture: Architecture,
    new: account.NewRows,
    vocab: Path,
) -> tuple[Params, account.Ledger]:
    """The source's parameters with table and output layer for the run's vocabulary, and where each row came from.

    Shared rows and biases are copied (`Subwords.shared_with`), the others are `new`; the rows that pad the table are 0.
    So it is with an output table of its own, whose new rows are `output_rows`. `vocab`: the folder of that stage.
    """
    shared_W, vocabulary = known.shared_with(source.subwords), known.tokens
    new_W = np.flatnonzero(shared_W < 0)
    flat, origins, fitted_bias = dict(flatten(source.parameters)), _origins(source), None
    padding = (0, architecture.padded_vocab_size - len(vocabulary))
    table, output_bias = architecture.table, architecture.output_bias
    filled_WxD = rows.filled_table(shared_W, source.table(), new_W, new.rows)
    # Behind the vocabulary come rows of 0, up to a size that matrix units and meshes divide.
    flat[table] = np.pad(filled_WxD, (padding, (0, 0)))
    if len(new_W):
        origins[table] = new.kind
    if architecture.untied:
        own = architecture.output_table
        output_VxD = np.asarray(flat[own])[: len(source.vocabulary)]
        of_new_NxD = output_rows(experiment.surgery, output_VxD, new.spellings, experiment.seed)
        flat[own] = np.pad(rows.filled_table(shared_W, output_VxD, new_W, of_new_NxD), (padding, (0, 0)))
        if len(new_W):
            origins[own] = account.FRESH if own in source.fresh else account.SYNTHESISED
    if output_bias:
        bias_V = np.asarray(flat[output_bias])[: len(source.vocabulary)]
        rule = experiment.surgery.bias
        new_bias_N, fitted_bias = _bias(rule, vocab, bias_V, shared_W, new_W, new.spellings)
        # Taken as a table with one column, so that every entry is checked as rows are.
        filled_Wx1 = rows.filled_table(shared_W, bias_V[:, None], new_W, new_bias_N[:, None])
        flat[output_bias] = np.pad(filled_Wx1[:, 0], padding)
        if len(new_W):
            origins[output_bias] = account.FRESH if output_bias in source.fresh else account.SYNTHESISED
    ledger = account.Ledger(origins, source.table(), source.vocabulary, new_W, new, fitted_bias)
    return unflatten(flat), ledger


def _bias(
    rule: str,
    vocab_folder: Path,
    bias_V: np.ndarray,
    shared_W: np.ndarray,
    new_W: np.ndarray,
    spellings: Spellings,
) -> tuple[np.ndarray, FittedBias | None]:
    """MLM bias of the new tokens, [N], by the rule of `surgery.bias`; and what that rule fitted."""
    match rule:
        case 'mean':
            return bias.mean_bias(bias_V, spellings), None
        case 'log_count':
            counts_W = bias.token_counts(vocab_folder, subwords.load(vocab_folder))
            made_N, slope, level = bias.log_count_bias(bias_V, shared_W, counts_W, new_W)
            return made_N, FittedBias(slope, level)
    return np.zeros(len(new_W)), None


def _origins(source: Loaded) -> dict[str, str]:
    return {p: account.FRESH if p in source.fresh else COPIED for p in flatten(source.parameters)}


def _write_model(
    folder: Path,
    architecture: Architecture,
    parameters: Any,
    tokenizer_folder: Path,
    untouched: Mapping[str, np.ndarray],
) -> None:
    with whole_folder(folder) as hidden:
        write_folder(hidden, architecture, parameters, tokenizer_folder, untouched)
        settings = read_json(hidden / subwords.SETTINGS) or {}
        positions = architecture.positions
        # Without a source, config.model may have changed since stage vocab wrote its tokenizer.
        if settings.get('model_max_length', positions) != positions:
            write_json(hidden / subwords.SETTINGS, {**settings, 'model_max_length': positions})
        # Here, since exports and fine-tuning take the tokenizer as transformers reads it: pieces must be those of the
        # rows.
        agreement.check_written(hidden, subwords.load(tokenizer_folder))
