"""A config for a source, texts, a machine and so many hours: what `recommended` leaves open, each choice with its why.

Evidence is named in configs/recommended.py.
"""

import dataclasses
import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bioptimus_jax.corpus.config import enough_held_out
from bioptimus_jax.errors import ConfigError
from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.hosts.remote.models import at_commit
from bioptimus_jax.model.architecture import Architecture
from bioptimus_jax.model.config import Source
from bioptimus_jax.model.folder import config_values, has_sentence_vectors, source_folder
from bioptimus_jax.model.tensors import lacks_head, read_architecture
from bioptimus_jax.pretrain.memory import parts_that_fit, rows_of_a_device
from bioptimus_jax.pretrain.plan import (
    PIECES_PER_WORD_OF_SOURCE,
    Assumptions,
    Plan,
    fill_of,
    make_plan,
    planned_architecture,
)
from bioptimus_jax.pretrain.throughput import training_flops_per_token
from bioptimus_jax.progress.console import numbered
from bioptimus_jax.sets.corpora import sets_in
from bioptimus_jax.start.budget import LITTLE, budget, minutes
from bioptimus_jax.start.hours import Costs, lengths_of_sets
from bioptimus_jax.start.machine import CPU, Machine, machine
from bioptimus_jax.start.speeds import speeds_of
from bioptimus_jax.start.texts import TextSample, look_into
from bioptimus_jax.start.ways import (
    KEEP,
    REPLACE,
    SMALLEST,
    VOCABULARIES,
    Way,
    decide,
    plans,
    text_per_flop,
    ways,
)
from bioptimus_jax.tokenizer.subwords import Subwords, kind_name
from bioptimus_jax.tokenizer.subwords import load as load_subwords
from bioptimus_jax.vocab.build import tokenizers_of

PHASE = 'words'
"""The one that `recommended` has."""
COPY = 'copy'
"""What surgery does where the vocabulary is kept."""
FILE = 'file'
"""The kind of a vocabulary that is taken as it is."""
DURATION = (f'phase.{PHASE}.duration', f'phase.{PHASE}.duration_unit')
"""Keys that say how long it is."""
SMALL_HIDDEN, BASE_HIDDEN = 256, 768
MOST_PASSES = 34
"""Most passes over the corpus: as many as the paper makes."""
TRAINING = 0.8
"""Share of the hours for pre-training where the other stages, which have the rest, cannot be measured."""
FOR_LATER = 0.1
"""Share of the hours for the stages after training, where these cannot be measured."""
SENTENCES = (
    'the source is one of sentence-transformers: adapting for words spoils its vectors of sentences (MiniLM: r on '
    'BIOSSES fell from 0.84 to 0.37); keep the source for these, or train them again with --config=embed'
)
"""Measured without training, on means of states; the page of a run with stage analyze has it for every model."""
FEWEST_STEPS, FEWEST_ROWS = 2000, 8
OF_HEAD = 0.1
"""Share of the steps that a head which the source lacks has to itself."""
FEWEST = 2
"""Steps that there are in any case."""


@dataclasses.dataclass(frozen=True)
class UserWishes:
    """What the user says.

    `device` '': what is here; `devices` 0: all of them; `vocabulary` '': as the texts say; `keys`: those of the
    configuration, with their values as on the command line.
    """

    source: str
    texts: tuple[str, ...]
    hours: float
    sets: str = ''
    task: str = Finetune.task
    device: str = ''
    devices: int = 0
    vocabulary: str = ''
    keys: Sequence[tuple[str, str]] = ()

    def says(self, *names: str) -> bool:
        """Whether the user has given one of these keys a value."""
        return not {name for name, _ in self.keys}.isdisjoint(names)


@dataclasses.dataclass(frozen=True)
class Choice:
    """A line of the config, and what it follows from; a remark alone has no line."""

    line: str
    why: str

    def __str__(self) -> str:
        said = f'# {self.why}' if self.why else ''
        return '  '.join(filter(None, (self.line, said)))


def recommend(asked: UserWishes) -> tuple[str, list[Choice]]:
    """The name of the config to build on, and the choices on top of it. Raises ConfigError, InputError."""
    folder = folder_of(asked.source)
    asked = dataclasses.replace(asked, vocabulary=_wanted(asked))
    if asked.sets:
        sets_in(Path(asked.sets), ())
    shape, subwords = read_architecture(folder), load_subwords(folder)
    base, loaded = based_on(folder, shape, asked.texts, asked.keys)
    _check_keys(asked, tuple(loaded.phases))
    if not asked.says('pretrain.micro_batches'):
        loaded.pretrain.micro_batches = 1  # until it is known how many fit
    if not asked.says('pretrain.batch_rows'):
        loaded.pretrain.batch_rows = _whole(loaded.pretrain.batch_rows, loaded.pretrain.micro_batches)
    texts, on = look_into(Experiment.from_config(loaded).corpus), machine(asked.device, asked.devices)
    taken = min(texts.in_corpus, loaded.corpus.max_words or texts.in_corpus)
    documents = texts.documents * taken / texts.in_corpus
    texts_of_corpus = dataclasses.replace(texts, in_corpus=taken, documents=documents)
    computed = _computed(asked, loaded, shape, subwords, texts_of_corpus, on)
    said = (Choice(f'override(config, {key!r}, {value!r})', 'as you asked') for key, value in asked.keys)
    return base, [*_data(asked, folder, shape, texts), *computed, *said]


def _check_keys(asked: UserWishes, phases: tuple[str, ...]) -> None:
    """Raise ConfigError for other phases than the one that is written, and for half of what says how long it is."""
    if phases != (PHASE,):
        raise ConfigError(
            f'--config.phases={dict(asked.keys)["phases"]}: init writes one phase, {PHASE}; leave the key out, and '
            'change the phases in the file afterwards'
        )
    said = [key for key in DURATION if asked.says(key)]
    if len(said) == 1:
        [lacking] = {*DURATION} - {*said}
        raise ConfigError(
            f'--config.{said[0]}: give --config.{lacking}, too; else nobody knows how long it is'
        )


def _wanted(asked: UserWishes) -> str:
    """What the user wants to be done with the vocabulary, by the flag or by the key; '' for nothing."""
    if asked.vocabulary not in ('', *VOCABULARIES):
        raise ConfigError(f'--vocabulary={asked.vocabulary}: is not one of {", ".join(VOCABULARIES)}')
    by_key, said = _wanted_by_key(dict(asked.keys))
    if asked.vocabulary and by_key not in ('', asked.vocabulary):
        raise ConfigError(
            f'--vocabulary={asked.vocabulary}: contradicts --config.{said}; leave one of them out'
        )
    return asked.vocabulary or by_key


def _wanted_by_key(keys: Mapping[str, str]) -> tuple[str, str]:
    """What a key says about the vocabulary, and that key with its value; '' twice where none does."""
    if kind := keys.get('vocab.kind'):
        return next(
            (name for name, one in VOCABULARIES.items() if one == kind), REPLACE
        ), f'vocab.kind={kind}'
    if keys.get('surgery.strategy') == COPY:
        return KEEP, f'surgery.strategy={COPY}'
    return '', ''


def folder_of(source: str) -> Path:
    """The folder of the source; a hub id is downloaded. Raises ConfigError, InputError."""
    if folder := source_folder(Source(source), '--source'):
        return folder
    raise ConfigError('--source is empty; name a Hugging Face folder or a hub id')


def based_on(
    folder: Path, shape: Architecture, texts: tuple[str, ...], keys: Sequence[tuple[str, str]]
) -> tuple[str, Any]:
    """The name of the config for a source of that kind, and its ConfigDict with source, texts and the user's keys."""
    base = f'recommended:{config_values(folder)["model_type"]}{"-laptop" * (shape.hidden <= SMALL_HIDDEN)}'
    loaded = config.load(base)
    for key, value in keys:
        config.override(loaded, key, value)
    loaded.source.path, loaded.corpus.inputs = str(folder), texts
    return base, loaded


def _data(asked: UserWishes, folder: Path, shape: Architecture, texts: TextSample) -> Iterator[Choice]:
    """The choices that say where source and texts are."""
    shaped = f'{shape.title}, {shape.layers} x {shape.hidden}'
    yield Choice(f'config.source.path = {at_commit(asked.source)!r}', shaped)
    if has_sentence_vectors(folder):
        yield Choice('', SENTENCES)
    counted = 'words' if texts.counted else 'words, by the size of the files'
    if texts.in_corpus != texts.words:
        counted += f', {_rounded(texts.in_corpus):,} in the corpus of them'
    yield Choice(f'config.corpus.inputs = {asked.texts!r}', f'{_rounded(texts.words):,} {counted}')
    if asked.sets:
        yield Choice(
            f'config.corpus.audit.folder = {asked.sets!r}', 'texts of devel and test stay out of the corpus'
        )
        more = f', task={asked.task!r}' if asked.task != UserWishes.task else ''
        yield Choice(f'config.finetune.update(folder={asked.sets!r}{more})', 'every set in it is scored')


def _computed(
    asked: UserWishes,
    loaded: Any,
    shape: Architecture,
    subwords: Subwords,
    texts: TextSample,
    machine: Machine,
) -> Iterator[Choice]:
    """What is held out, vocabulary, length, batch, learning rate, in the order in which one follows from the other."""
    yield from _held_out(asked, loaded, texts.documents)
    if shape.positions < loaded.rows.max_document_pieces and not asked.says('rows.max_document_pieces'):
        loaded.rows.max_document_pieces = shape.positions
        yield Choice(
            f'config.rows.max_document_pieces = {shape.positions}', 'the source has no more positions'
        )
    yield from wide_rows(loaded, shape, machine, asked.keys)
    vocabulary, way, line = _vocabulary(asked, loaded, subwords, texts, machine)
    each, new = way.pieces_per_word, way.new
    yield line
    if not asked.says('vocab.kind'):
        loaded.vocab.kind = VOCABULARIES[vocabulary]
    if vocabulary == KEEP and not asked.says('surgery.strategy'):
        loaded.surgery.strategy = COPY
        yield Choice(f'config.surgery.strategy = {COPY!r}', 'every row stays')
    if not asked.sets and not asked.says('stages'):
        loaded.stages = tuple(stage for stage in loaded.stages if stage != 'finetune')
        yield Choice(f'config.stages = {loaded.stages!r}', 'add sets (--sets) to score the gain')
    if asked.sets:
        loaded.finetune.update(folder=asked.sets, task=asked.task)
    limit = _within_hours(asked, loaded, shape, texts, new, machine)
    if limit:
        yield from (Choice(*line) for line in limit.lines)
    yield from _length(asked, loaded, texts.in_corpus, each, machine, limit)


def _held_out(asked: UserWishes, loaded: Any, documents: float) -> Iterator[Choice]:
    """The share that is held out, where the usual one is of a few documents, or of none."""
    share, usual = float(f'{enough_held_out(documents):.2g}'), loaded.corpus.heldout_fraction
    if share <= usual or asked.says('corpus.heldout_fraction'):
        return
    loaded.corpus.heldout_fraction = share
    why = f'about {share * documents:,.0f} of {_rounded(documents):,.0f} documents; {usual:g} of so few is hardly one'
    yield Choice(f'config.corpus.heldout_fraction = {share:g}', why)


def wide_rows(
    loaded: Any, shape: Architecture, machine: Machine, keys: Sequence[tuple[str, str]]
) -> Iterator[Choice]:
    """Rows of twice the length, half as many, where attention between documents costs nothing."""
    rows, apart = loaded.rows, any(shape.windows) or shape.biased_scores or loaded.model.attention_dropout
    given = dict(keys)
    if not machine.device.packs or apart or 'rows.row_pieces' in given:
        return
    if rows.row_pieces > rows.max_document_pieces:
        return
    before = fill_of(rows)
    rows.row_pieces *= 2
    if 'pretrain.batch_rows' not in given:
        loaded.pretrain.batch_rows = _whole(loaded.pretrain.batch_rows / 2, loaded.pretrain.micro_batches)
    why = f'documents fill {fill_of(rows):.0%} of such rows, {before:.0%} of shorter ones; here attention skips others'
    yield Choice(f'config.rows.row_pieces = {rows.row_pieces}', why)


def _vocabulary(
    asked: UserWishes, loaded: Any, subwords: Subwords, texts: TextSample, machine: Machine
) -> tuple[str, Way, Choice]:
    """What is done with the source's vocabulary, what that does to texts, and the line that says so."""
    size = loaded.vocab.size if asked.says('vocab.size') else max(len(subwords.tokens), SMALLEST)
    experiment = Experiment.from_config(loaded, paths=False)
    given = tokenizers_of(experiment, Path(loaded.source.path))[1] if loaded.vocab.kind == FILE else None
    found = ways(subwords, texts.sample, size, given)
    text = text_per_flop(found, plans(experiment, found))
    chosen, why = decide(found, text, _pieces(asked, loaded, machine), asked.vocabulary)
    own = {'tokenizer': kind_name(subwords.kind), 'lowercase': subwords.lowercase, 'size': size}
    loaded.vocab.update({key: value for key, value in own.items() if not asked.says(f'vocab.{key}')})
    if chosen == KEEP or given:
        del own['size']
    lines = {'kind': VOCABULARIES[chosen], **own}
    listed = ', '.join(f'{k}={value!r}' for k, value in lines.items() if not asked.says(f'vocab.{k}'))
    line = Choice(f'config.vocab.update({listed})', f'{chosen}: {why}')
    return chosen, found[chosen], line


@dataclasses.dataclass(frozen=True)
class Limit:
    """What fits the hours: lines of a config, the pieces that are trained on, and where the hours go, in words.

    `later`: seconds of the stages after training.
    """

    lines: tuple[tuple[str, str], ...]
    pieces: float
    said: str
    later: float


def _within_hours(
    asked: UserWishes,
    loaded: Any,
    shape: Architecture,
    texts: TextSample,
    new: float,
    machine: Machine,
) -> Limit | None:
    """What fits the hours of this machine's CPU, where all stages can be measured; None elsewhere."""
    if machine.device.platform != CPU:
        return None
    rows, runtime = loaded.rows, loaded.runtime
    speeds = speeds_of(machine, shape, FEWEST_ROWS, rows.row_pieces, runtime.torch_threads)
    lengths = lengths_of_sets(Experiment.from_config(loaded, paths=False).finetune, PIECES_PER_WORD_OF_SOURCE)

    def costs(wanted: Any) -> Costs:
        tried = wanted.copy_and_resolve_references()
        pieces = (
            asked.hours * 3600 * TRAINING * speeds.train / training_flops_per_token(shape, rows.row_pieces, 0)
        )
        if not asked.says(*DURATION):
            tried.phase[PHASE].update(duration=float(max(pieces, 1)), duration_unit='tokens')
        tried.pretrain.update(batch_rows=_rows(asked, pieces, tried, machine.count), micro_batches=1)
        experiment = Experiment.from_config(tried, paths=False)
        return Costs(
            experiment,
            make_plan(experiment, Assumptions(words=texts.in_corpus, input_words=texts.words)),
            speeds,
            texts.in_corpus,
            new,
            lengths,
        )

    fits = budget(loaded, asked.hours, costs, {key for key, _ in asked.keys})
    fitted = costs(loaded)
    [phase] = fitted.plan.phases
    in_batch = FEWEST_ROWS * rows.row_pieces * fill_of(rows)
    pieces = max(fits.steps * speeds.train * fill_of(rows) / phase.flops_per_piece, FEWEST * in_batch)
    said = f'{minutes(fits.steps)} of {asked.hours:g} h on {machine.name}, {minutes(fits.beside)} for the other stages'
    if fits.too_few:
        said += ': more than the hours, as no less will do'
    return Limit(fits.lines, pieces, said, fitted.later())


def _rows(asked: UserWishes, pieces: float, loaded: Any, count: int) -> int:
    """Rows of a batch: those asked for; else fewer where there would be too few steps, and so many for every device."""
    if asked.says('pretrain.batch_rows'):
        return int(loaded.pretrain.batch_rows)
    rows, in_row = loaded.pretrain.batch_rows, loaded.rows.row_pieces * fill_of(loaded.rows)
    in_steps = asked.says(*DURATION) and loaded.phase[PHASE].duration_unit == 'steps'
    while rows > FEWEST_ROWS and pieces / (rows * in_row) < FEWEST_STEPS and not in_steps:
        rows = max(rows // 2, FEWEST_ROWS)
    return _whole(rows, count * loaded.pretrain.micro_batches)


def _whole(number: float, parts: int) -> int:
    """The smallest multiple of `parts` that is at least `number`."""
    return math.ceil(number / parts) * parts


def _length(
    asked: UserWishes, loaded: Any, words: float, each: float, machine: Machine, limit: Limit | None
) -> Iterator[Choice]:
    """How long, in which batches, how fast. `each`: pieces of a word."""
    assumed = Assumptions(words=words, pieces_per_word=each)
    trained_on = words * each * (1 - loaded.corpus.heldout_fraction)
    if not asked.says(*DURATION):
        yield _duration(asked, loaded, trained_on, machine, limit)
    phase = loaded.phase[PHASE]
    in_tokens = phase.duration_unit == 'tokens'
    pieces = phase.duration if in_tokens else _planned(loaded, assumed).pieces
    later = limit.later / 3600 if limit else FOR_LATER * asked.hours
    ends = max(asked.hours - later, LITTLE * asked.hours)
    why = f'training gives up steps to end by then; the later stages need {minutes(later * 3600)}'
    if not asked.says('runtime.train_hours'):
        yield Choice(f'config.runtime.train_hours = {ends:.3g}', why)
    if loaded.model.dropout and pieces <= trained_on and not asked.says('model.dropout'):
        loaded.model.dropout = 0.0
        yield Choice('config.model.dropout = 0.0', 'no text is seen twice')
    yield _batch(asked, loaded, pieces, machine, assumed)
    if lacks_head(Path(loaded.source.path)) and not asked.says('pretrain.head_steps'):
        steps = _steps(asked, loaded, assumed)
        if first := min(max(round(steps * OF_HEAD), 1), steps // 2):  # a run of one step has none to give
            why = 'the source has no masked-LM head; these steps train it alone'
            yield Choice(f'config.pretrain.head_steps = {first}', why)
    yield from _learning_rate(asked, loaded)


def _duration(
    asked: UserWishes, loaded: Any, corpus_pieces: float, machine: Machine, limit: Limit | None
) -> Choice:
    """How long the phase is: what the hours allow, and no more passes than the paper makes."""
    affordable = limit.pieces if limit else _pieces(asked, loaded, machine)
    pieces = _rounded(min(affordable, MOST_PASSES * corpus_pieces))
    rate = limit.said if limit else f'{TRAINING:.0%} of {asked.hours:g} h on {machine.name}'
    enough = 'as many as the paper makes; the hours allow more' if affordable > pieces * 1.1 else rate
    loaded.phase[PHASE].update(duration=float(pieces), duration_unit='tokens')
    return Choice(
        f"config.phase['{PHASE}'].update(duration={float(pieces):g}, duration_unit='tokens')",
        f'{pieces / corpus_pieces:.2g} passes: {enough}',
    )


def _planned(loaded: Any, assumed: Assumptions) -> Plan:
    return make_plan(Experiment.from_config(loaded, paths=False), assumed)


def _steps(asked: UserWishes, loaded: Any, assumed: Assumptions) -> int:
    """The optimiser steps, about: the run counts rows where this assumes how full they are."""
    if asked.says(*DURATION):
        return _planned(loaded, assumed).steps
    in_row = loaded.rows.row_pieces * fill_of(loaded.rows)
    return round(loaded.phase[PHASE].duration / (loaded.pretrain.batch_rows * in_row))


def _batch(asked: UserWishes, loaded: Any, pieces: float, machine: Machine, assumed: Assumptions) -> Choice:
    """Rows of a batch, and the parts of it that fit the memory; which of them are not asked for is in the line."""
    settings = loaded.pretrain
    settings.batch_rows = _rows(asked, pieces, loaded, machine.count)
    experiment = Experiment.from_config(loaded, paths=False)
    rows_of_a_device(experiment, machine.count)  # raises where what is asked for does not come out even
    planned, _ = planned_architecture(experiment)
    parts = parts_that_fit(experiment, planned, machine.here, machine.count)
    if parts is None:
        raise ConfigError(
            f'--device: {machine.name} has no memory for one row of {loaded.rows.row_pieces} pieces of this source; '
            'take another device or a smaller source'
        )
    memory = ''
    if not asked.says('pretrain.micro_batches'):
        settings.micro_batches = parts
        memory = f', in parts that fit {machine.here.memory_bytes / 2**30:.0f} GiB' * (parts > 1)
    chosen = [key for key in ('batch_rows', 'micro_batches') if not asked.says(f'pretrain.{key}')]
    listed = ', '.join(f'{key}={settings[key]}' for key in chosen)
    said = f'{numbered(_steps(asked, loaded, assumed), "step")}{memory}'
    return Choice(f'config.pretrain.update({listed})' * bool(listed), said)


def _learning_rate(asked: UserWishes, loaded: Any) -> Iterator[Choice]:
    """The peak of the learning rate, where it is another than that of the config it builds on."""
    if asked.says('pretrain.learning_rate'):
        return
    hidden = planned_architecture(Experiment.from_config(loaded, paths=False))[0].hidden
    if SMALL_HIDDEN < hidden < BASE_HIDDEN:
        yield Choice('config.pretrain.learning_rate = 5e-4', 'between those of small and of base models')
    if hidden > BASE_HIDDEN:
        half = loaded.pretrain.learning_rate / 2
        yield Choice(f'config.pretrain.learning_rate = {half:g}', 'half of that of base models')


def _pieces(asked: UserWishes, loaded: Any, machine: Machine) -> float:
    """Pieces that are trained on in the hours."""
    experiment = Experiment.from_config(loaded, paths=False)
    # FLOPs of a piece do not depend on the length of the corpus, so any length will do.
    [phase] = make_plan(experiment, Assumptions(words=1e9)).phases
    return asked.hours * 3600 * TRAINING * machine.rate / phase.flops_per_piece


def _rounded(number: float) -> int:
    """Two digits, for what is an estimate."""
    return int(float(f'{number:.2g}'))


def config_text(base: str, choices: Sequence[Choice], command: str, name: str) -> str:
    """The config file: fewer than 25 lines of code, each choice with its why."""
    config = shlex.quote(f'--config={name}')
    lines = [
        f'"""Written by `{command}`.',
        '',
        f'Run it: bioptimus run {config} --workdir=DIR. What each setting means: bioptimus run --help.',
        '"""',
        '',
        f'from bioptimus_jax.ext import load{", override" * any("override(" in c.line for c in choices)}',
        '',
        '',
        'def get_config():',
        f'    config = load({base!r})  # what our measurements recommend; see configs/recommended.py',
    ]
    return '\n'.join([*lines, *(f'    {choice}' for choice in choices), '    return config', ''])
