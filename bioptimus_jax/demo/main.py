"""`bioptimus demo`: a generated world, a source trained on its general text, then the real job with the real stages."""

import shlex
import time
from collections.abc import Callable
from pathlib import Path

from ml_collections import ConfigDict

from bioptimus_jax.demo.generate import generate
from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.experiment.stages import run_all
from bioptimus_jax.progress.console import Console
from bioptimus_jax.report.ending import ending
from bioptimus_jax.run.folder import Run
from bioptimus_jax.storage.files import read_json, write_json

SEED = 0


def run_demo(workdir: Path, watch: Callable[[Console], None]) -> None:
    """Make `workdir` into a finished run, going on from whatever is there; print its table and where its page is."""
    started = time.monotonic()
    world = workdir / 'world'
    if read_json(world / 'counts.json') is None:
        print('demo: generating general text, abstracts and NER sets', flush=True)
        # Last: a world without its counts is one that a kill cut off, and is generated again.
        write_json(world / 'counts.json', generate(world, SEED))
    source = Run(workdir / 'source', _experiment('demo:source', inputs=(f'{world}/general.txt',)))
    watch(source.console)
    print('demo: a source model on general text', flush=True)
    run_all(source)
    target = config.load('demo')
    target.source.path = str(source.folder('export') / source.config.phases[-1])
    target.corpus.audit.folder = target.finetune.folder = f'{world}/ner'
    target.vocab.general = (f'{world}/general.txt',)
    run = Run(workdir, _experiment(target, inputs=(f'{world}/pubmed.jsonl.gz',)))
    run.command = shlex.join(['bioptimus', 'demo', f'--workdir={workdir}'])
    watch(run.console)
    print('demo: the source adapted to biomedical abstracts', flush=True)
    run_all(run)
    print(ending(run, time.monotonic() - started))


def _experiment(loaded: str | ConfigDict, inputs: tuple[str, ...]) -> Experiment:
    loaded = config.load(loaded) if isinstance(loaded, str) else loaded
    loaded.corpus.inputs = inputs
    return Experiment.from_config(loaded)
