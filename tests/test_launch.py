"""The launch scripts: what they call, how signals and exit codes travel, and two real processes through one of them."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from toy_objectives import make_notes
from toy_pretraining import copy_of, experiment, write_vowels
from toy_programs import environment

from bioptimus_jax.errors import STOPPED
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.model.trees import flatten
from bioptimus_jax.pretrain.checkpoint import load_phase
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.folder import Run

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = ['a100x8.sh', 'local.sh', 'slurm.sh', 'slurm_array.sh', 'tpu_pod.sh', 'tpu_vm.sh']
OWN_FLAGS = {'tpu_pod.sh': ['--tpu=slice', '--zone=here']}
KILLED = 128 + signal.SIGKILL

# Puts its name, arguments and some of its environment on record, and every SIGTERM. It ends with the next of its exit
# codes in `outcomes`; 'until TERM 75' waits for the signal first.
STUB = """#!{python} -SE
import fcntl, json, os, signal, sys, time
from pathlib import Path

folder, name = Path({folder!r}), Path(sys.argv[0]).name
kept = ('CUDA_VISIBLE_DEVICES', 'JAX_LOCAL_DEVICE_IDS', 'JAX_PLATFORMS', 'XLA_PYTHON_CLIENT_PREALLOCATE')
stopped = []

def record(**what):
    with open(folder / 'calls.jsonl', 'a+') as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        before = [json.loads(line) for line in file]
        file.write(json.dumps(dict(name=name, pid=os.getpid(), **what)) + '\\n')
    return sum(call['name'] == name and 'arguments' in call for call in before)

# The handler itself must not record: it may interrupt `record`, which holds the lock.
signal.signal(signal.SIGTERM, lambda *_: stopped.append('TERM'))
before = record(arguments=sys.argv[1:], environment={{k: os.environ[k] for k in kept if k in os.environ}})
print(name, 'speaks', flush=True)
if sys.argv[1:2] == ['scheduler']:  # dask's
    Path(sys.argv[2].partition('=')[2]).write_text(json.dumps({{'type': 'Scheduler', 'address': 'tcp://10.0.0.1:8786'}}))
outcomes = {outcomes!r}.get(name, ['0'])
outcome = outcomes[min(before, len(outcomes) - 1)]
while outcome.startswith('until TERM') and not stopped:
    time.sleep(0.02)
for name_of_signal in stopped:
    record(signal=name_of_signal)
sys.exit(int(outcome.split()[-1]))
"""


class Stubs:
    """Executables on PATH in place of the program and of the cluster's."""

    def __init__(self, folder, **outcomes):
        self.folder = folder
        text = STUB.format(python=sys.executable, folder=str(folder), outcomes=outcomes)
        (folder / 'bin').mkdir()
        for name in ('bioptimus', 'srun', 'scontrol', 'scancel', 'gcloud', 'dask'):
            (folder / 'bin' / name).write_text(text)
            (folder / 'bin' / name).chmod(0o755)

    def environment(self, **more):
        path = f'{self.folder / "bin"}:{os.environ["PATH"]}'
        clean = {
            k: v for k, v in os.environ.items() if not k.startswith(('SLURM', 'CUDA', 'BIOPTIMUS', 'JAX_'))
        }
        return {**clean, 'PATH': path, 'BIOPTIMUS_PAUSE': '0', **more}

    def start(self, script, *flags, **environment):
        command = ['bash', ROOT / 'launch' / script, *OWN_FLAGS.get(script, []), '--config=demo', *flags]
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.environment(**environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, script, *flags, **environment):
        """Exit code, stdout and stderr of a script that ends by itself."""
        process = self.start(script, *flags, **environment)
        out, errors = process.communicate(timeout=120)
        return process.returncode, out, errors

    @property
    def records(self):
        file = self.folder / 'calls.jsonl'
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def calls(self, name):
        return [record for record in self.records if record['name'] == name and 'arguments' in record]

    def arguments(self, name):
        return [call['arguments'] for call in self.calls(name)]

    def until(self, name, number=1):
        """Wait until so many calls of a stub are on record."""
        deadline = time.monotonic() + 120
        while len(self.calls(name)) < number:
            assert time.monotonic() < deadline, self.records
            time.sleep(0.02)


def test_the_scripts_are_clean_and_short():
    shellcheck = shutil.which('shellcheck', path=str(Path(sys.executable).parent)) or shutil.which(
        'shellcheck'
    )
    assert shellcheck, "install the extra 'dev'"
    scripts = sorted((ROOT / 'launch').glob('*.sh'))
    assert {script.name for script in scripts} == {*SCRIPTS, 'supervise.sh'}
    found = subprocess.run([shellcheck, '-x', *scripts, ROOT / '.ci' / 'run'], capture_output=True, text=True)
    assert found.returncode == 0, found.stdout
    for script in scripts:
        assert len(script.read_text().splitlines()) < 60, script


@pytest.mark.parametrize('script', SCRIPTS)
def test_a_dry_run_shows_the_command_and_does_nothing(script, tmp_path):
    stubs = Stubs(tmp_path)
    before = sorted(tmp_path.rglob('*'))
    code, out, errors = stubs.run(script, '--dry-run', '--workdir=some/run', '--config.source.path=a b')
    assert (code, errors) == (0, '')
    verb = 'finetune' if script == 'slurm_array.sh' else 'run'
    assert f'{verb} --config=demo --workdir=some/run' in out.replace('\\', '') or script == 'tpu_pod.sh'
    if script == 'tpu_pod.sh':
        assert 'gcloud compute tpus tpu-vm ssh slice --zone=here --worker=all' in out
        assert 'launch/tpu_vm.sh --config=demo --workdir=some/run' in out.replace('\\', '')
    assert not stubs.records
    assert sorted(tmp_path.rglob('*')) == before


@pytest.mark.parametrize('script', SCRIPTS)
def test_help_is_the_comment_and_a_missing_workdir_is_one_line(script, tmp_path):
    stubs = Stubs(tmp_path)
    code, out, errors = stubs.run(script, '--help')
    assert (code, errors) == (0, '')
    assert f'launch/{script}' in out
    assert '--workdir=DIR' in out
    assert '#' not in out
    code, out, errors = stubs.run(script)
    assert (code, out) == (2, '')
    assert errors == f'{script}: --workdir=DIR is missing: it is where the run and its logs go\n'
    assert not stubs.records


@pytest.mark.parametrize('script', ['a100x8.sh', 'tpu_vm.sh'])
def test_one_process_is_started_again_after_75_and_other_codes_are_passed_on(script, tmp_path):
    stubs = Stubs(tmp_path, bioptimus=['75', '75', '3'])
    code, out, errors = stubs.run(script, '--workdir=w x')
    assert code == 3
    assert stubs.arguments('bioptimus') == [['run', '--config=demo', '--workdir=w x']] * 3
    assert out == 'bioptimus speaks\n' * 3
    assert (tmp_path / 'w x' / 'logs' / 'host-0.log').read_text() == out
    assert errors.count('starting again') == 2
    assert (tmp_path / 'w x' / 'logs' / 'launch.log').read_text() == errors
    seen = stubs.calls('bioptimus')[0]['environment']
    if script == 'tpu_vm.sh':
        assert seen['JAX_PLATFORMS'] == 'tpu,cpu'
    else:
        assert seen['CUDA_VISIBLE_DEVICES'] == '0,1,2,3,4,5,6,7'
        assert seen['XLA_PYTHON_CLIENT_PREALLOCATE'] == 'false'


@pytest.mark.parametrize('script', ['a100x8.sh', 'tpu_vm.sh', 'local.sh'])
@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_to_the_script_alone_lets_the_program_save_and_ends_both(script, number, tmp_path):
    processes = 2 if script == 'local.sh' else 1
    stubs = Stubs(tmp_path, bioptimus=['until TERM 75'])
    launched = stubs.start(script, '--workdir=w')
    stubs.until('bioptimus', processes)
    launched.send_signal(number)
    launched.communicate(timeout=120)
    assert launched.returncode == STOPPED
    assert [r['signal'] for r in stubs.records if 'signal' in r] == ['TERM'] * processes
    assert len(stubs.calls('bioptimus')) == processes


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_whole_group_loses_no_last_words(number, tmp_path):
    program = (
        'trap "sleep 0.3; echo saved; exit 75" TERM HUP; echo here; for i in {1..200}; do sleep 0.1; done'
    )
    script = f"source {ROOT}/launch/supervise.sh; logs={tmp_path}; supervise 0 bash -c '{program}'"
    started = subprocess.Popen(
        ['bash', '-euo', 'pipefail', '-c', script], process_group=0, stdout=subprocess.PIPE, text=True
    )
    assert started.stdout.readline() == 'here\n'
    os.killpg(started.pid, number)
    shown = started.communicate(timeout=60)[0]  # bash says that its sleep was ended, too
    assert shown.endswith('saved\n')
    assert started.returncode == STOPPED
    assert (tmp_path / 'host-0.log').read_text() == f'here\n{shown}'


@pytest.mark.parametrize(('end', 'code'), [('exit 75', 75), ('exit 0', 0), ('kill -KILL $BASHPID', 137)])
def test_a_process_that_ends_while_a_signal_is_handled_keeps_its_exit_code(end, code):
    script = (
        f'source {ROOT}/launch/supervise.sh; trap "sleep 0.6" TERM; (sleep 0.4; {end}) & child=$!; '
        '(sleep 0.1; kill -TERM $$) & wait_for $child; exit $code'
    )
    assert subprocess.run(['bash', '-euo', 'pipefail', '-c', script], timeout=60).returncode == code


def test_a_signal_before_the_started_process_is_known_is_passed_on(tmp_path):
    """The signal is sent just before `child=$!`, so that the trap finds no process yet."""
    program = 'trap "exit 75" TERM; for i in {1..200}; do sleep 0.1; done'
    script = (
        f'source {ROOT}/launch/supervise.sh; logs={tmp_path}; set -T; '
        "trap '[[ $BASH_COMMAND != child=?! ]] || kill -TERM $$' DEBUG; "
        f"supervise 0 bash -c '{program}'"
    )
    ended = subprocess.run(
        ['bash', '-uo', 'pipefail', '-c', script], timeout=10, capture_output=True, text=True
    )
    assert ended.returncode in (75, 128 + signal.SIGTERM), ended.stderr


def test_several_hosts_without_slurm_have_a_log_each(tmp_path):
    stubs = Stubs(tmp_path)
    assert stubs.run('a100x8.sh', '--workdir=w', '--config.runtime.distributed=first:12355,4,3')[0] == 0
    assert sorted(p.name for p in (tmp_path / 'w' / 'logs').iterdir()) == ['host-3.log']


def test_a_bucket_has_its_logs_here(tmp_path):
    assert Stubs(tmp_path).run('a100x8.sh', '--workdir=gs://bucket/runs/mine')[0] == 0
    assert (tmp_path / 'logs' / 'mine' / 'host-0.log').read_text() == 'bioptimus speaks\n'


def test_local_processes_know_their_number_and_each_has_a_gpu(tmp_path):
    stubs = Stubs(tmp_path)
    code, out, errors = stubs.run('local.sh', '--processes=3', '--port=1234', '--workdir=w')
    assert (code, out, errors) == (0, 'bioptimus speaks\n', '')
    wanted = [
        ['run', '--config=demo', '--workdir=w', f'--config.runtime.distributed=localhost:1234,3,{i}']
        for i in range(3)
    ]
    calls = sorted(stubs.calls('bioptimus'), key=lambda call: call['arguments'])
    assert [call['arguments'] for call in calls] == wanted
    assert [call['environment']['CUDA_VISIBLE_DEVICES'] for call in calls] == ['0', '1', '2']
    for i in range(3):
        assert (tmp_path / 'w' / 'logs' / f'host-{i}.log').read_text() == 'bioptimus speaks\n'
    code, _, errors = stubs.run('local.sh', '--processes=0', '--workdir=w')
    assert (code, errors) == (2, 'local.sh: --processes=0: give a number\n')


def test_local_processes_are_started_again_together_after_75(tmp_path):
    stubs = Stubs(tmp_path, bioptimus=['75', '75', '0', '0'])
    code, _, errors = stubs.run('local.sh', '--workdir=w')
    assert code == 0
    assert errors == 'local.sh: stopped after saving; starting again\n'
    assert len(stubs.calls('bioptimus')) == 4


@pytest.mark.parametrize(
    ('codes', 'wanted'), [(['0', '3'], 3), (['3', '69'], 3), (['69', '3'], 3), (['75', '1'], 1)]
)
def test_the_exit_code_is_that_of_the_process_that_was_the_cause(codes, wanted, tmp_path):
    code, _, errors = Stubs(tmp_path, bioptimus=codes).run('local.sh', '--workdir=w')
    assert code == wanted
    assert len(errors.splitlines()) == 1
    assert re.search(rf'process [01] ended with exit code {wanted}, .*w/logs/host-[01]\.log', errors)


def test_slurm_runs_one_process_per_node_and_queues_the_job_again_after_75(tmp_path):
    stubs = Stubs(tmp_path, srun=['75'])
    job = {'SLURM_JOB_ID': '77', 'SLURM_NNODES': '2', 'SLURM_GPUS_ON_NODE': 'a100:4'}
    code, _, errors = stubs.run('slurm.sh', '--workdir=w', **job)
    assert code == 0
    (arguments,) = stubs.arguments('srun')
    at = arguments.index('bioptimus')
    assert {'--ntasks=2', '--ntasks-per-node=1', '--output=w/logs/host-%t.log'} <= set(arguments[:at])
    assert arguments[at:] == [
        'bioptimus',
        'run',
        '--config=demo',
        '--workdir=w',
        '--config.runtime.distributed=auto',
    ]
    assert 'JAX_LOCAL_DEVICE_IDS' not in stubs.calls('srun')[0]['environment'], 'the program takes all GPUs'
    assert stubs.arguments('scontrol') == [['requeue', '77']]
    assert errors == 'slurm.sh: stopped after saving; queued again\n'


def test_slurm_does_nothing_where_the_number_of_nodes_is_none(tmp_path):
    stubs = Stubs(tmp_path)
    code, _, errors = stubs.run('slurm.sh', '--workdir=w', SLURM_NNODES='2-4')
    assert (code, errors) == (2, 'slurm.sh: SLURM_NNODES=2-4: is no number of nodes\n')
    assert not stubs.records


@pytest.mark.parametrize('outcome', ['0', '3', '137'])
def test_slurm_passes_other_exit_codes_on(outcome, tmp_path):
    stubs = Stubs(tmp_path, srun=[outcome])
    assert stubs.run('slurm.sh', '--workdir=w', SLURM_JOB_ID='77')[0] == int(outcome)
    assert not stubs.calls('scontrol')
    assert '--config.runtime.distributed=auto' not in stubs.arguments('srun')[0], 'one node needs no meeting'


def test_slurm_signals_the_step_and_never_srun_which_would_kill_it(tmp_path):
    stubs = Stubs(tmp_path, srun=['until TERM 75'])
    launched = stubs.start('slurm.sh', '--workdir=w', SLURM_JOB_ID='77')
    stubs.until('srun')
    launched.send_signal(signal.SIGTERM)
    stubs.until('scancel')
    assert stubs.arguments('scancel') == [['--signal=TERM', '77']]
    assert not [r for r in stubs.records if 'signal' in r]
    os.kill(stubs.calls('srun')[0]['pid'], signal.SIGTERM)  # in place of the processes that SLURM signals
    launched.communicate(timeout=120)
    assert launched.returncode == 0
    assert stubs.arguments('scontrol') == [['requeue', '77']]


def test_slurm_finds_what_it_shares_when_sbatch_runs_a_copy(tmp_path):
    (tmp_path / 'spool').mkdir()
    copy = shutil.copy(ROOT / 'launch' / 'slurm.sh', tmp_path / 'spool' / 'slurm_script')
    command = ['bash', copy, '--dry-run', '--config=demo', '--workdir=w']
    for place, code in ((ROOT, 0), (tmp_path, 2)):
        shown = subprocess.run(
            command,
            env={**os.environ, 'SLURM_SUBMIT_DIR': str(place)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert shown.returncode == code
    assert shown.stderr == 'slurm.sh: submit it from the root of the repository\n'


def test_an_array_is_a_cluster_whose_first_part_gives_out_the_work(tmp_path):
    """The second part begins first, and waits; the first ends both. After a signal a part is queued again, whichever it
    is, and goes on."""
    stubs = Stubs(tmp_path, bioptimus=['until TERM 75', '0'], dask=['until TERM 0'])
    job = {'SLURM_ARRAY_JOB_ID': '70', 'SLURM_ARRAY_TASK_MIN': '0'}

    def part(number):
        own = {'SLURM_ARRAY_TASK_ID': str(number), 'SLURM_JOB_ID': f'7{number + 1}'}
        return stubs.start('slurm_array.sh', 'sweep', '--workdir=w', **job, **own)

    second = part(1)
    time.sleep(0.5)
    assert not stubs.calls('dask')
    first = part(0)
    stubs.until('bioptimus')
    stubs.until('dask', 3)
    first.send_signal(signal.SIGTERM)
    _, errors = first.communicate(timeout=60)
    assert (first.returncode, errors) == (0, 'slurm_array.sh: stopped after saving; queued again\n')
    second.send_signal(signal.SIGTERM)
    second.communicate(timeout=60)
    assert second.returncode == 0
    assert stubs.arguments('scontrol') == [['requeue', '71'], ['requeue', '72']]
    again = part(1), part(0)
    assert [(*process.communicate(timeout=60), process.returncode) for process in again] == [
        ('', '', 0),
        ('bioptimus speaks\n', '', 0),
    ]
    command = ['sweep', '--config=demo', '--workdir=w', '--config.runtime.cluster=tcp://10.0.0.1:8786']
    assert stubs.arguments('bioptimus') == [command] * 2
    begun = [arguments[0] for arguments in stubs.arguments('dask')]
    assert begun.count('scheduler') == 2
    assert begun.count('worker') >= 3
    for arguments in stubs.arguments('dask'):
        assert '--scheduler-file=w/logs/scheduler-70.json' in arguments
        assert arguments[0] == 'scheduler' or {'--nthreads=1', '--memory-limit=0'} <= set(arguments)
    left = [call['pid'] for call in stubs.calls('dask') if Path(f'/proc/{call["pid"]}').exists()]
    assert not left, 'no scheduler and no worker stays'
    assert (tmp_path / 'w' / 'logs' / 'host-0.log').read_text() == 'bioptimus speaks\n' * 2


@pytest.mark.parametrize(
    ('folder', 'on_host'),
    [('code', 'code'), ('my folder', 'my folder'), ('~/code', 'code'), ('a;touch b', 'a;touch b')],
)
def test_a_pod_runs_the_script_of_one_vm_on_every_host(folder, on_host, tmp_path):
    stubs = Stubs(tmp_path, gcloud=['7'])
    code, _, errors = stubs.run(
        'tpu_pod.sh', '--project=p', f'--folder={folder}', '--workdir=/share/w', '--config.a=b c'
    )
    assert code == 7
    assert 'goes on from the last checkpoint' in errors
    (arguments,) = stubs.arguments('gcloud')
    *shown, command = arguments
    assert shown == 'compute tpus tpu-vm ssh slice --zone=here --project=p --worker=all'.split()
    # What a host does with it: the shell of ssh runs it in the home folder.
    (tmp_path / on_host / 'launch').mkdir(parents=True)
    for name in ('tpu_vm.sh', 'supervise.sh'):
        shutil.copy(ROOT / 'launch' / name, tmp_path / on_host / 'launch')
    run_there = command.removeprefix('--command=').replace('/share/w', str(tmp_path / 'w'))
    assert subprocess.run(['bash', '-c', run_there], cwd=tmp_path, env=stubs.environment()).returncode == 0
    wanted = [
        'run',
        '--config=demo',
        f'--workdir={tmp_path}/w',
        '--config.a=b c',
        '--config.runtime.distributed=auto',
    ]
    assert stubs.arguments('bioptimus') == [wanted]
    assert (tmp_path / 'w' / 'logs' / 'host-0.log').read_text() == 'bioptimus speaks\n'
    code, _, errors = Stubs.run(stubs, 'tpu_pod.sh', '--tpu=', '--workdir=w')
    assert (code, errors) == (2, 'tpu_pod.sh: --tpu=NAME is missing: the name of the slice\n')


def test_a_signal_to_the_pods_script_stops_the_run_on_the_hosts(tmp_path):
    stubs = Stubs(tmp_path, gcloud=['until TERM 75', '0'])
    launched = stubs.start('tpu_pod.sh', '--workdir=w')
    stubs.until('gcloud')
    launched.send_signal(signal.SIGTERM)
    stubs.until('gcloud', 2)
    assert stubs.arguments('gcloud')[1][-2:] == [
        '--worker=all',
        '--command=pkill -TERM -f "^bash launch/tpu_vm[.]sh"',
    ]
    os.kill(stubs.calls('gcloud')[0]['pid'], signal.SIGTERM)  # in place of the hosts, which end by themselves
    launched.communicate(timeout=120)
    assert launched.returncode == STOPPED


STEPS = 24
TINY = {
    'phases': '0.4,',
    'phase.0.4.duration': STEPS,
    'phase.0.4.corpora': 'own=1,notes=1',
    'pretrain.learning_rate': 1e-4,
    'evaluation.per_phase': 2,
    'evaluation.entities': 'vowels,',
    'runtime.checkpoint_every_steps': 4,
}
# An objective and corpora of its own for every phase; the first ends before anything is stopped.
IN_PHASES = {
    **TINY,
    'phases': '0.1,0.4',
    'phase.0.1.duration': 2,
    'phase.0.1.objective': 'causal',
    'phase.0.1.corpora': 'own=3,notes=1',
    'phase.0.4.duration': 2 * STEPS - 2,
}
FOLDERS = "c.corpora['notes'] = type(c)({{'run': '{notes}'}}); c.finetune.folder = '{sets}'"
# The real program; it leaves its process id behind.
PROGRAM = """#!/bin/sh
for last in "$@"; do :; done
echo $$ > {folder}/process-"${{last##*,}}"
exec {python} -m bioptimus_jax "$@"
"""


def start_two(programs, folder, workdir, tiny):
    (folder / 'program').write_text(PROGRAM.format(folder=folder, python=programs / 'python'))
    (folder / 'program').chmod(0o755)
    changes = {**tiny, 'stages': 'corpus,vocab,surgery,rows,pretrain', 'runtime.devices': 0}
    flags = [f'--config.{key}={value}' for key, value in changes.items()]
    return subprocess.Popen(
        [
            'bash',
            ROOT / 'launch' / 'local.sh',
            f'--config={folder / "tiny.py"}',
            f'--workdir={workdir}',
            *flags,
        ],
        env=environment(BIOPTIMUS=str(folder / 'program')),
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def steps_of(run):
    return [record['step'] for record in run.metrics.of('pretrain') if record.get('kind') == 'train']


def wait_for_step(launched, run, enough):
    while launched.poll() is None and max(steps_of(run), default=0) < enough:
        time.sleep(0.05)


def stop_the_follower(launched, run, folder):
    """SIGTERM to one process; then wait until both have begun anew."""
    os.kill(int((folder / 'process-1').read_text()), signal.SIGTERM)
    again = run.workdir / 'logs' / 'launch.log'
    while launched.poll() is None and not (again.exists() and 'starting again' in again.read_text()):
        time.sleep(0.05)
    stopped_at = max(steps_of(run))
    assert stopped_at < 2 * STEPS, 'the signal came too late to stop anything'
    wait_for_step(launched, run, stopped_at + 4)


SHARDED = {'runtime.fsdp': 2}


# Slow: all that may happen to them, in one run. That a signal to one stops both is in test_remote_runs.py too, and that
# both are started again in tests above.
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ('killed', 'stopped', 'tiny'),
    [(0, False, TINY), pytest.param(1, True, IN_PHASES, marks=pytest.mark.slow)],
)
def test_two_processes_train_the_model_of_one_whatever_happens_to_them(
    programs, killed, stopped, tiny, prepared, tmp_path
):
    """Through launch/local.sh: SIGTERM to the follower alone saves and stops both, which are started again; SIGKILL of
    one ends both with one line; the same command goes on to the losses and weights, to rounding, of one undisturbed
    process, with one set of records. Together they have the two devices over which the model is cut."""
    config = (prepared / 'tiny.py').read_text().replace('return c', f'{FOLDERS}\n    return c')
    (tmp_path / 'tiny.py').write_text(config.format(notes=make_notes(prepared), sets=tmp_path / 'sets'))
    write_vowels(tmp_path / 'sets')
    settings = experiment(tmp_path, **tiny)
    alone = Run(copy_of(prepared, tmp_path), settings, quiet=True)
    execute(alone, STAGES['pretrain'])
    (tmp_path / 'two').mkdir()
    together = Run(copy_of(prepared, tmp_path / 'two'), settings, quiet=True)
    logs = together.workdir / 'logs'

    launched = start_two(programs, tmp_path, together.workdir, SHARDED | tiny)
    wait_for_step(launched, together, 4)
    while launched.poll() is None and not (together.workdir / 'pretrain' / 'checkpoints' / '4').exists():
        time.sleep(0.02)
    if stopped:
        stop_the_follower(launched, together, tmp_path)
    os.kill(int((tmp_path / f'process-{killed}').read_text()), signal.SIGKILL)
    out, errors = launched.communicate(timeout=300)
    assert launched.returncode == KILLED, (out, errors)
    *before, ended = errors.splitlines()
    assert before == ['local.sh: stopped after saving; starting again'] * stopped
    assert re.search(
        rf'process {killed} ended with exit code {KILLED}, and the others with it .*goes on from', ended
    )
    said = (logs / f'host-{1 - killed}.log').read_text()
    gone = rf'bioptimus: process {killed} on \S+ is gone: .*rerun the same command.*'
    assert re.fullmatch(gone, said.splitlines()[-1])
    assert said.count('stopped; everything is saved') == stopped
    assert 'stack trace' not in said
    assert together.manifest('pretrain') is None

    launched = start_two(programs, tmp_path, together.workdir, SHARDED | tiny)
    out, errors = launched.communicate(timeout=300)
    assert (launched.returncode, errors) == (0, ''), out
    assert re.search(r'resuming after step [1-9]', out)
    assert steps_of(together) == steps_of(alone)
    for two, one in zip(together.metrics.of('pretrain'), alone.metrics.of('pretrain'), strict=True):
        for key in {'loss', 'frozen_loss'} & one.keys():
            assert two[key] == pytest.approx(one[key], rel=1e-4)
        for key in {'entities/vowels'} & one.keys():  # where a word is nearly of two tags, rounding decides
            assert two[key] == pytest.approx(one[key], abs=0.02)
    for phase in settings.phases:
        weights = flatten(load_phase(together.workdir / 'pretrain', phase))
        for name, value in flatten(load_phase(alone.workdir / 'pretrain', phase)).items():
            np.testing.assert_allclose(weights[name], value, atol=1e-4, err_msg=name)
