"""One of several processes that do runs together: python toy_together.py RUNS.json HOST:PORT,PROCESSES,INDEX

RUNS.json: a list of `folder` (of the tiny configuration), `workdir`, `changes` and `stages`.
"""

import json
import sys
import traceback
from pathlib import Path

from toy_pretraining import experiment

from bioptimus_jax.errors import DONE, FAILED
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.hosts.config import Runtime
from bioptimus_jax.pretrain.checkpoint import load_phase
from bioptimus_jax.run import processes
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.folder import Run


def main(file, told):
    processes.join(Runtime(distributed=told))
    leads = told.endswith(',0')
    for wanted in json.loads(Path(file).read_text()):
        made = experiment(Path(wanted['folder']), **wanted['changes'])
        run = Run(wanted['workdir'], made, quiet=True, leads=leads)
        stages = [STAGES[name] for name in wanted['stages']]
        if not leads:
            processes.follow(run, stages)
            continue
        for stage in stages:
            execute(run, stage)
        for phase in made.phases:  # as the stages after it do, in which the others have no part
            load_phase(run.folder('pretrain'), phase)


if __name__ == '__main__':
    code = FAILED
    try:
        main(*sys.argv[1:])
        code = DONE
    except Exception:
        traceback.print_exc()
        sys.stderr.flush()
    sys.exit(processes.leave(code))
