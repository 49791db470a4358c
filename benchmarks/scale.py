"""Published recipes on 8, 64 and 512 devices, on paper: memory, what devices send, hours, rows of input.

    python benchmarks/scale.py [--compile]

A recipe keeps its batch, in the fewest micro-batches that fit by the estimate of `bioptimus plan`; attention has a
kernel, so without dropout there. Estimates go to results/scale.json, from which docs/howto/scale.md has its tables.
With `--compile` (pip install libtpu) the step of each slice of TPUs is compiled, and the record has the compiler's
memory and bytes; a step that is there already is not compiled again.
"""

import argparse
import dataclasses
import json
import re
from typing import Any

from protocol import RESULTS, publish

from bioptimus_jax.errors import ConfigError
from bioptimus_jax.experiment.config import experiment
from bioptimus_jax.hosts.devices import GIB
from bioptimus_jax.pretrain.compiled import compile_programs
from bioptimus_jax.pretrain.memory import parts_that_fit, rows_of_a_device, step_memory
from bioptimus_jax.pretrain.plan import Assumptions, make_plan
from bioptimus_jax.pretrain.traffic import beside_products
from bioptimus_jax.start.machine import Machine, compiled_for, machine
from bioptimus_jax.storage.files import write_json

NAME = 'scale'
RECIPES = {
    'BIOptimus': ('bioptimus', 1.8e9, '0.4'),
    'PubMedBERT': ('pubmedbert', 3.2e9, '0.2'),
    'ModernBERT': ('modernbert:replace', 3.2e9, 'stable'),
}
"""Name -> config, words of the corpus, and the phase whose steps are described."""
MACHINES = (('a100-80', 8), ('h100', 8), ('tpu-v5e', 64), ('h100', 64), ('tpu-v5p', 512), ('h100', 512))
GOAL = 0.48
"""Share of the peak that is aimed at; plans count on 0.35."""
SOLD_AS = {'a100-80': 'A100', 'h100': 'H100', 'tpu-v5e': 'TPU v5e', 'tpu-v5p': 'TPU v5p'}
CHIPS_OF_A_HOST = 4
"""TPUs of a host, in slices of several hosts."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--compile', action='store_true', help='compile the steps for slices of TPUs as well')
    options = parser.parse_args()
    file, steps = RESULTS / f'{NAME}.json', dict[str, dict[str, Any]]()
    before = json.loads(file.read_text())['steps'] if file.is_file() else {}
    for recipe in RECIPES:
        for device, count in MACHINES:
            name, case = f'{recipe}, {device}, {count}', Case(recipe, machine(device, count))
            steps[name] = case.estimated()
            step = before.get(name, {}).get('compiled')
            if options.compile and case.parts and case.on.device.platform == 'tpu':
                step = step or case.compiled()
            if step:
                steps[name]['compiled'] = step
            print(name, steps[name], flush=True)
            # After each, as a step takes minutes to compile.
            write_json(file, {'steps': {**before, **steps}})
    print(table(steps))
    publish(NAME, {'steps': steps}, quick=False, steps=len(steps))


def table(steps: dict[str, dict[str, Any]]) -> str:
    """The table of docs/howto/scale.md."""
    titles = ('recipe', 'devices', 'rows', 'GiB', 'compiler', 'ms computing', 'updating', 'sending', 'hours')
    titles += ('at 48 %', 'at most', 'rows/s a host')
    lines = [' | '.join(titles), ' | '.join(['---', '---', *('--:' for _ in titles[2:])])]
    for name, step in steps.items():
        recipe, device, count = name.split(', ')
        cells = [recipe, f'{count} x {SOLD_AS[device]}']
        if 'left_out' in step:
            cells += [f'none: {step["left_out"]}', *('' for _ in titles[3:])]
        else:
            parts = f' x {step["parts"]}' if step['parts'] > 1 else ''
            made = step.get('compiled')
            cells += [f'{step["rows"]}{parts}', f'{step["GiB"]:.1f}', f'{made["GiB"]:.1f}' if made else '']
            cells += [f'{1e3 * step[key]:.1f}' for key in ('computing', 'updating', 'sending')]
            cells += [f'{step[key]:.2f}' for key in ('hours', 'hours at goal', 'hours at most')]
            cells += [f'{step["rows a host"]:,.0f}']
        lines.append(' | '.join(cells))
    return '\n'.join(re.sub(' +', ' ', f'| {line} |') for line in lines)


class Case:
    """A recipe on devices: its plan, with its batch in the fewest micro-batches that fit (`parts`; 0: none do)."""

    def __init__(self, recipe: str, on: Machine) -> None:
        name, words, self.phase = RECIPES[recipe]
        given = [('model.attention_dropout', '0'), ('pretrain.micro_batches', '1')]
        whole = experiment(name, given, paths=False)
        self.plan, self.on = make_plan(whole, Assumptions(words=words)), on
        self.batch, fits = whole.pretrain.batch_rows, None
        if self.batch % on.count == 0:
            fits = parts_that_fit(whole, self.plan.architecture, on.here, on.count)
        self.parts = fits or 0
        settings = dataclasses.replace(whole.pretrain, micro_batches=self.parts or 1)
        self.config = dataclasses.replace(whole, pretrain=settings, phases=(self.phase,))

    def estimated(self) -> dict[str, Any]:
        """Rows of a device in each part, GiB, seconds and bytes of a step, hours of all steps, and the rows that each
        host reads in a second; or why there is no step."""
        if not self.parts:
            return {'left_out': f'{self.batch} rows for {self.on.count} devices'}
        plan, device, count = self.plan, self.on.device, self.on.count
        beside = beside_products(self.config, plan.architecture, device, count)
        [phase] = [phase for phase in plan.phases if phase.name == self.phase]
        computing, hours = plan.step_seconds(phase, device, count), plan.steps / 3600
        return {
            'parts': self.parts,
            'rows': rows_of_a_device(self.config, count),
            'GiB': step_memory(self.config, plan.architecture, device.platform, count).peak / GIB,
            'computing': computing,
            'updating': beside.updating,
            'sending': beside.sending,
            'MB sent': sum(beside.sent) / 1e6,
            'hours': hours * computing,
            'hours at goal': hours * computing * plan.assumed.mfu / GOAL,
            'hours at most': hours * (computing + beside.seconds),
            'rows a host': self.batch / computing / (count // (device.of_a_host or CHIPS_OF_A_HOST)),
        }

    def compiled(self) -> dict[str, Any]:
        """What the compiler says: GiB, GB moved, and MB of the results of what devices send, by kind.

        Raises ConfigError for a step that does not fit.
        """
        [step] = compile_programs(self.config, self.plan.architecture, compiled_for(self.on))
        if step.left_out:
            raise ConfigError(f'{self.on.name}: {step.left_out}')
        return {
            'GiB': step.memory / GIB,
            'GB': step.moved / 1e9,
            'MB': {kind: of.moved / 1e6 for kind, of in step.collectives.items()},
            'seconds': step.seconds,
        }


if __name__ == '__main__':
    main()
