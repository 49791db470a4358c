"""Which process of how many, and on which GPUs, under launchers that are stood in for by what they put into the
environment; and the roll call, by real processes."""

import importlib.util
import os
import re
import socket
import subprocess
import sys
import types
from pathlib import Path

import pytest
from toy_programs import environment

from bioptimus_jax.errors import LOST, USAGE, ConfigError
from bioptimus_jax.hosts import clusters
from bioptimus_jax.hosts.clusters import Member
from bioptimus_jax.hosts.hardware import Hardware

ROOT = Path(__file__).resolve().parents[1]
EXPLICIT = 'first:12355,2,1'
OPEN_MPI = {
    'OMPI_COMM_WORLD_SIZE': '2',
    'OMPI_COMM_WORLD_RANK': '1',
    'OMPI_COMM_WORLD_LOCAL_RANK': '0',
    'OMPI_COMM_WORLD_LOCAL_SIZE': '1',
}
OPEN_MPI_4 = {**OPEN_MPI, 'OMPI_MCA_orte_hnp_uri': '1531576320.0;tcp://10.96.0.1,10.148.0.1:34911'}
PMI = {'PMI_SIZE': '2', 'PMI_RANK': '1', 'MPI_LOCALRANKID': '0', 'MPI_LOCALNRANKS': '1'}
SLURM = {
    'SLURM_JOB_ID': '77',
    'SLURM_STEP_NODELIST': 'node[01-02]',
    'SLURM_NTASKS': '2',
    'SLURM_PROCID': '1',
    'SLURM_LOCALID': '0',
    'SLURM_NODEID': '1',
    'SLURM_STEP_TASKS_PER_NODE': '1(x2)',
}
LAUNCHERS = (
    'SLURM',
    'OMPI',
    'PMI',
    'MPI_',
    'KUBERNETES',
    'TPU',
    'MEGASCALE',
    'JAX_CO',
    'JAX_LOCAL',
    'JOB_COM',
)


@pytest.fixture
def launcher(monkeypatch):
    """Sets the environment of a launcher, and no other's."""
    for name in [name for name in os.environ if name.startswith((*LAUNCHERS, 'CUDA_VISIBLE'))]:
        monkeypatch.delenv(name)

    def launch(variables, **more):
        for name, value in {**variables, **more}.items():
            monkeypatch.setenv(name, value)

    return launch


def gpus(number):
    return lambda: Hardware('cuda', ('H100',) * number)


@pytest.mark.parametrize('variables', [OPEN_MPI_4, SLURM, {**SLURM, **OPEN_MPI_4}])
@pytest.mark.parametrize('setting', ['auto', EXPLICIT])
def test_a_process_alone_on_its_host_takes_all_gpus(variables, setting, launcher):
    """jax itself takes the first one alone."""
    launcher(variables)
    group = clusters.member(setting)
    assert (group.count, group.index) == (2, 1)
    assert clusters.devices(group, gpus(8)) == ((), '')


@pytest.mark.parametrize('variables', [OPEN_MPI, PMI])
def test_told_where_to_meet_any_launcher_will_do(variables, launcher):
    launcher(variables)
    assert clusters.member(EXPLICIT) == Member('first:12355', 2, 1)
    assert clusters.devices(clusters.member(EXPLICIT), gpus(8)) == ((), '')


FOUR_HERE = [
    {
        'OMPI_COMM_WORLD_SIZE': '8',
        'OMPI_COMM_WORLD_LOCAL_RANK': '3',
        'OMPI_COMM_WORLD_LOCAL_SIZE': '4',
    },
    {'PMI_SIZE': '8', 'MPI_LOCALRANKID': '3', 'MPI_LOCALNRANKS': '4'},
    {'SLURM_STEP_TASKS_PER_NODE': '4(x2)', 'SLURM_NODEID': '1', 'SLURM_LOCALID': '3'},
    {'SLURM_STEP_TASKS_PER_NODE': '2(x2),4', 'SLURM_NODEID': '2', 'SLURM_LOCALID': '3'},
]


@pytest.mark.parametrize('variables', FOUR_HERE)
def test_several_on_a_host_take_a_gpu_each_and_those_left_over_are_named(variables, launcher):
    launcher(variables)
    group = Member('first:1', 8, 7)
    assert clusters.devices(group, gpus(4)) == ((3,), '')
    taken, warning = clusters.devices(group, gpus(8))
    assert taken == (3,)
    assert warning.startswith('4 processes on this host use 4 of its 8 GPUs; ')
    assert clusters.devices(Member('first:1', 2, 1), gpus(8))[0] == (), (
        'another group than the launcher has started'
    )
    launcher({'CUDA_VISIBLE_DEVICES': '6'})
    assert clusters.devices(group, gpus(8)) == ((), ''), 'the launcher has given each its own'
    launcher({'JAX_LOCAL_DEVICE_IDS': '0,1'})
    assert clusters.devices(group, gpus(8)) == (None, '')


@pytest.mark.parametrize(
    ('nodes', 'host'),
    [
        ('gpu[01-02]-ib', 'gpu01-ib'),
        ('gpu[01,07-09]-ib,other', 'gpu01-ib'),
        ('rack[3-4]n[08,11]', 'rack3n08'),
        ('node001', 'node001'),
        ('node001,host2', 'node001'),
        ('node[001-0015],host2', 'node001'),
    ],
)
def test_the_first_host_of_slurm_is_named_in_full(nodes, host, launcher):
    launcher(SLURM, SLURM_STEP_NODELIST=nodes)
    assert clusters.member('auto') == Member(f'{host}:{61440 + 77}', 2, 1)
    launcher({'JAX_COORDINATOR_PORT': '999'})
    assert clusters.member('auto').address == f'{host}:999'
    launcher({'JAX_COORDINATOR_ADDRESS': 'chosen:1000'})
    assert clusters.member('auto').address == 'chosen:1000'


def test_a_slice_of_tpus_is_read(launcher, monkeypatch):
    from jax._src.clusters import cloud_tpu_cluster

    monkeypatch.setattr(cloud_tpu_cluster, 'running_in_cloud_tpu_vm', True)
    launcher({'TPU_WORKER_HOSTNAMES': 'localhost,other', 'TPU_WORKER_ID': '1', 'MEGASCALE_NUM_SLICES': '1'})
    launcher(
        {'MEGASCALE_COORDINATOR_ADDRESS': 'localhost', 'MEGASCALE_SLICE_ID': '0', 'TPU_SKIP_MDS_QUERY': '1'}
    )
    group = clusters.member('auto')
    assert group == Member('localhost:8482', 2, 1)
    assert clusters.devices(group, lambda: None) == ((), '')


def test_srun_with_pmi_is_slurm(launcher):
    launcher({**SLURM, **PMI})
    assert clusters.member('auto') == Member('node01:61517', 2, 1)


def test_any_mpi_is_read_where_mpi4py_is(launcher, monkeypatch):
    world = types.SimpleNamespace(
        Get_rank=lambda: 1, Get_size=lambda: 2, bcast=lambda value, root: 'first:62000', Split_type=None
    )
    mpi = types.SimpleNamespace(COMM_WORLD=world)
    stand_in(monkeypatch, 'mpi4py', MPI=mpi)
    launcher(OPEN_MPI)
    assert clusters.member('auto') == Member('first:62000', 2, 1)


def stand_in(monkeypatch, name, **attributes):
    """A package that is not installed."""
    module = types.ModuleType(name)
    module.__spec__ = importlib.util.spec_from_loader(name, None)
    for key, value in attributes.items():
        setattr(module, key, value)
    monkeypatch.setitem(sys.modules, name, module)


def test_a_pod_without_a_token_and_one_without_the_client_are_lines(launcher, monkeypatch):
    class ConfigException(Exception):
        pass

    def load():
        raise ConfigException('Service token file does not exist.')

    launcher({'KUBERNETES_SERVICE_HOST': '10.0.0.1'})
    client = types.SimpleNamespace(load_incluster_config=load)
    for given, message in (
        ({}, r"auto: this is Kubernetes, .*pip install 'jax\[k8s\]'.*; elsewhere give HOST"),
        ({'config': client}, r'auto: Service token file does not exist\.; it reads'),
    ):
        if given:
            stand_in(monkeypatch, 'kubernetes', **given)
        with pytest.raises(ConfigError, match=message):
            clusters.member('auto')
    assert clusters.member(EXPLICIT) == Member('first:12355', 2, 1)


@pytest.mark.parametrize(
    ('setting', 'said'),
    [
        ('localhost,2,0', "'localhost,2,0' is not understood; give auto, or HOST:PORT,PROCESSES,INDEX"),
        ('localhost:1,2', 'is not understood'),
        ('localhost:x,2,0', 'is not understood'),
        ('localhost:1,2,I', 'is not understood'),
        ('a b:1,2,0', 'is not understood'),
        ('::1:12355,2,0', 'is not understood'),
        (':12355,2,0', 'is not understood'),
        ('on', 'is not understood'),
        ('localhost:0,2,0', 'port 0 is none of 1 to 65535'),
        ('localhost:65536,2,0', 'port 65536 is none of 1 to 65535'),
        ('localhost:1,2,2', 'process 2 of 2: INDEX counts from 0 to PROCESSES - 1'),
        ('localhost:1,0,0', 'process 0 of 0'),
        ('auto', 'auto: no cluster is found here; it reads steps of srun'),
        ({'SLURM_JOB_ID': '77'}, 'a job of SLURM, but no step of it: start the program by srun'),
        ({**SLURM, 'SLURM_NTASKS': 'many'}, "auto: invalid literal for int() with base 10: 'many'"),
        ({**OPEN_MPI_4, 'OMPI_MCA_orte_hnp_uri': '4096.0;x'}, 'Could not parse coordinator IP address'),
        # An MPI that names no address is named inside of a job too, whose step would be taken for the group.
        *(
            (
                {**around, **mpi, f'{names}_SIZE': '4'},
                f'auto does not read {name}...Open MPI up to version 4...FIRST_HOST:12355,${names}_SIZE,'
                f'${names}_RANK...or install mpi4py',
            )
            for around in ({}, SLURM, {'SLURM_JOB_ID': '77'})
            for name, mpi, names in (
                ('Open MPI 5; ', OPEN_MPI, 'OMPI_COMM_WORLD'),
                ('MPICH, Intel MPI ', PMI, 'PMI'),
            )
        ),
    ],
)
def test_a_group_that_cannot_be_is_one_line(setting, said, launcher):
    """What is given as the group, or what a launcher says to a group that is found by itself."""
    setting, variables = (setting, {}) if isinstance(setting, str) else ('auto', setting)
    launcher(variables)
    with pytest.raises(ConfigError, match=re.escape(said).replace(r'\.\.\.', '.*')):
        clusters.member(setting)


def test_an_address_of_six_groups(launcher):
    group = clusters.member('[fe80::1]:12355,2,0')
    assert (group.host, group.port) == ('fe80::1', 12355)


# Answers the roll call, and then what is asked for in place of jax.
PROCESS = """
import sys
from bioptimus_jax.errors import ConfigError
from bioptimus_jax.hosts import clusters, rollcall
rollcall.SECONDS, rollcall.QUIET_SECONDS, rollcall.RETRY_SECONDS = float(sys.argv[2]), 0.3, 0.1
try:
    rollcall.meet(clusters.member(sys.argv[1]))
except ConfigError as error:
    print(error, file=sys.stderr)
    sys.exit(2)
"""
# As the program does, with a jax that aborts.
ABORTED = """
import os, sys
import jax
from bioptimus_jax.hosts import rollcall
from bioptimus_jax.run import processes
from bioptimus_jax.experiment.schema import Runtime
jax.distributed.initialize = lambda *_, **__: (os.write(2, b'a trace of C++'), os.abort())
processes.join(Runtime(distributed=sys.argv[1]))
"""
# The first one computes, as in surgery, while the others wait for it.
LEADS = """
import sys
from bioptimus_jax.hosts.config import Runtime
from bioptimus_jax.hosts.devices import look
from bioptimus_jax.run import processes
processes.join(Runtime(distributed=sys.argv[1]))
if sys.argv[1].endswith(',0'):
    import jax.numpy as jnp
    print(look().count, jnp.arange(4).sum())
else:
    sys.stdin.read()
sys.exit(processes.leave(0))
"""
# As the program does, where the first one cannot compute on what its JAX_PLATFORMS names.
LACKS = """
import os, sys
os.environ['JAX_PLATFORMS'] = 'tpu' if sys.argv[1].endswith(',0') else 'cpu'
from bioptimus_jax.errors import ConfigError
from bioptimus_jax.hosts import lifelines
from bioptimus_jax.hosts.config import Runtime
from bioptimus_jax.run import processes
lifelines.GRACE_SECONDS = 2
try:
    processes.join(Runtime(distributed=sys.argv[1]))
except ConfigError as error:
    print(error, file=sys.stderr, flush=True)
    processes.leave(2)
"""


def free_port():
    with socket.create_server(('127.0.0.1', 0)) as server:
        return server.getsockname()[1]


def together(*settings, seconds='60', script=PROCESS):
    """Exit code, stdout and stderr of processes that begin at once."""
    started = [
        subprocess.Popen(
            [sys.executable, '-c', script, setting, seconds],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for setting in settings
    ]
    said = [process.communicate(timeout=120) for process in started]
    return [(process.returncode, *words) for process, words in zip(started, said, strict=True)]


def test_all_answer_the_roll_call():
    place = f'localhost:{free_port()}'
    assert [code for code, _, _ in together(*(f'{place},3,{index}' for index in (2, 0, 1)))] == [0, 0, 0]


def test_who_has_no_devices_ends_all_and_is_named():
    place = f'127.0.0.1:{free_port()}'
    (code, _, lacking), (other, _, waiting) = together(f'{place},2,0', f'{place},2,1', script=LACKS)
    assert (code, other) == (2, 2)
    assert lacking.startswith('JAX_PLATFORMS=tpu: jax cannot compute on it here')
    assert waiting == 'bioptimus: process 0 on 127.0.0.1 ended with exit code 2; its own last line says why\n'


def test_who_never_comes_is_named_by_all_that_are_there():
    port = free_port()
    first, second, alone = together(
        f'localhost:{port},4,0', f'localhost:{port},4,2', f'localhost:{free_port()},4,2', seconds='3'
    )
    missing = (
        f'processes 1, 3 of 4 did not come to localhost:{port} within 3 seconds; start the same command on'
    )
    for code, _, errors in (first, second):
        assert code == LOST
        assert errors.startswith(f'bioptimus: config.runtime.distributed: {missing}')
        assert errors.count('\n') == 1
    assert first[1].startswith(f'waiting at localhost:{port} for processes 1,')
    assert alone[0] == LOST
    assert 'waiting for process 0 at localhost:' in alone[1]
    assert re.search(r'process 0 .*refused.* of 4 did not come to localhost:', alone[2])


@pytest.mark.parametrize(
    ('others', 'said'),
    [
        (['2,1'], 'was started as one of 2, the first one as one of 3'),
        (['3,1', '3,1'], 'two processes have number 1, on '),
    ],
)
def test_groups_that_differ_are_one_line_each(others, said):
    place = f'localhost:{free_port()}'
    for code, _, errors in together(f'{place},3,0', *(f'{place},{other}' for other in others)):
        assert code == USAGE
        assert said in errors


def test_a_port_that_is_taken_is_named():
    with socket.create_server(('', 0)) as server:
        port = server.getsockname()[1]
        [(code, _, errors)] = together(f'localhost:{port},2,0')
    assert code == USAGE
    assert f'port {port} of this host is taken by another program; give another one' in errors


def test_the_first_of_a_group_computes_while_others_wait_for_it():
    """It knows the devices of all of them, too."""
    place, flags = f'127.0.0.1:{free_port()}', '--xla_force_host_platform_device_count=2'
    waiting, first = (
        subprocess.Popen(
            [sys.executable, '-c', LEADS, f'{place},2,{index}'],
            env=environment(JAX_PLATFORMS='cpu', XLA_FLAGS=flags),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for index in (1, 0)
    )
    try:
        assert first.stdout.readline() == '4 6\n'
        waiting.communicate(timeout=60)
        first.communicate(timeout=60)
        assert (first.returncode, waiting.returncode) == (0, 0)
    finally:
        waiting.kill()
        first.kill()


def test_an_abort_of_jax_while_processes_meet_is_one_line():
    place = f'localhost:{free_port()}'
    for code, _, errors in together(f'{place},2,0', f'{place},2,1', script=ABORTED):
        assert code == LOST
        assert errors.startswith(
            f'bioptimus: config.runtime.distributed: jax gave up while the processes met at {place}'
        )
        details = Path(re.search(r'the details are in (\S+)\n', errors)[1])
        assert details.read_text() == 'a trace of C++'
        details.unlink()
        assert errors.count('\n') == 1
