"""Clusters: which process of how many this one is, where the first one listens, and which GPUs each of them takes.

`auto` is jax's own detection, with what it gets wrong mended; HOST:PORT,PROCESSES,INDEX asks nobody.
"""

import dataclasses
import importlib.util
import os
import re
import warnings
from collections.abc import Callable

from bioptimus_jax.errors import ConfigError, reason_of
from bioptimus_jax.hosts.hardware import Hardware, accelerators

AUTO = 'auto'
KEY = 'config.runtime.distributed'
FORM = 'give HOST:PORT,PROCESSES,INDEX (FIRST_HOST:12355,2,0 on the first of two)'
SECONDS_FOR_ADDRESS = 300  # a host of a cluster may get its name later than its processes begin
ORTE = 'OMPI_MCA_orte_hnp_uri'  # only from mpirun of Open MPI up to 4
SLURM = ('SLURM_JOB_ID', 'SLURM_STEP_NODELIST', 'SLURM_NTASKS', 'SLURM_PROCID', 'SLURM_LOCALID')
READ = (
    'steps of srun (SLURM), Open MPI up to version 4, any MPI with mpi4py, TPUs, indexed jobs of Kubernetes'
)
MPI = {'Open MPI 5': 'OMPI_COMM_WORLD_{}', 'MPICH, Intel MPI or another MPI with PMI': 'PMI_{}'}
"""MPIs that say no address: what sets the number of processes (SIZE) and the own one (RANK)."""
PORTS = range(1, 2**16)
EPHEMERAL = (2**16 - 2**12, 2**12)  # the first port that is used by a job's number, and how many there are


@dataclasses.dataclass(frozen=True)
class Member:
    """One process of a group: `address` is HOST:PORT of the first one, `index` counts from 0."""

    address: str
    count: int
    index: int

    @property
    def host(self) -> str:
        """The first process's host."""
        return self.address.rpartition(':')[0].strip('[]')

    @property
    def port(self) -> int:
        """The port on which the processes meet."""
        return int(self.address.rpartition(':')[2])


@dataclasses.dataclass(frozen=True)
class OnHost:
    """What a launcher says of a process: the `index` among the `count` that it started on this host, and of `total`."""

    index: int
    count: int
    total: int


def member(setting: str) -> Member:
    """What this process is by `config.runtime.distributed`. Raises ConfigError with what is wrong and the remedy."""
    found = _detected() if setting == AUTO else _told(setting)
    if found.port not in PORTS:
        raise ConfigError(f'{KEY}: {setting!r}: port {found.port} is none of 1 to 65535; {FORM}')
    if not 0 <= found.index < found.count:
        raise ConfigError(
            f'{KEY}: {setting!r}: process {found.index} of {found.count}: INDEX counts from 0 to PROCESSES - 1; {FORM}'
        )
    return found


def _told(setting: str) -> Member:
    form = re.fullmatch(r'(?:\[[^\[\],]+\]|[^\[\]:,\s]+):(\d+),(\d+),(\d+)', setting)
    if not form:
        raise ConfigError(f'{KEY}: {setting!r} is not understood; give auto, or {FORM.removeprefix("give ")}')
    return Member(setting.rsplit(',', 2)[0], int(form[2]), int(form[3]))


def _detected() -> Member:
    from jax._src.clusters import ClusterEnv  # has no public name

    method = None
    if unread := _unread():
        if importlib.util.find_spec('mpi4py') is None:
            raise ConfigError(f'{KEY}: auto does not read {unread[0]}; it reads {READ}; {unread[1]}')
        method = 'mpi4py'
    address = os.environ.get('JAX_COORDINATOR_ADDRESS')
    try:
        if not address and not method and _is_slurm():
            address = _slurm_address()
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')  # a missing package of Kubernetes, several lines: ours names it
            found = ClusterEnv.auto_detect_unset_distributed_params(
                coordinator_address=address,
                num_processes=None,
                process_id=None,
                local_device_ids=(),
                cluster_detection_method=method,
                initialization_timeout=SECONDS_FOR_ADDRESS,
            )
        address, count, index, _ = found
        if address is not None and count is not None and index is not None:
            return Member(address, int(count), int(index))
        reason = 'no cluster is found here'
    except Exception as error:  # of jax, of the client of Kubernetes, of variables that hold no number
        reason = reason_of(error)
    if 'KUBERNETES_SERVICE_HOST' in os.environ and importlib.util.find_spec('kubernetes') is None:
        reason = "this is Kubernetes, and its Python client is not installed (pip install 'jax[k8s]')"
    elif 'SLURM_JOB_ID' in os.environ and not _is_slurm():
        reason = 'this is a job of SLURM, but no step of it: start the program by srun'
    raise ConfigError(f'{KEY}: auto: {reason}; it reads {READ}; elsewhere {FORM}')


def _unread() -> tuple[str, str] | None:
    """The MPI here that gives no address, and what to do; None where there is none, or jax reads it."""
    if ORTE in os.environ:
        return None
    for name, form in MPI.items():
        size, rank = form.format('SIZE'), form.format('RANK')
        # srun sets PMI's variables, too; mpirun inside of a step leaves those of the step as they are.
        own = (os.environ.get('SLURM_NTASKS'), os.environ.get('SLURM_PROCID'))
        if size in os.environ and (os.environ[size], os.environ.get(rank)) != own:
            told = f"mpirun ... sh -c 'bioptimus run ... --{KEY}=FIRST_HOST:12355,${size},${rank}'"
            return name, f'start it as {told}, or install mpi4py'
    return None


def _is_slurm() -> bool:
    return ORTE not in os.environ and all(name in os.environ for name in SLURM)


def _slurm_address() -> str:
    """The first host of a step, whose names may go on behind the brackets (gpu[01-02]-ib): jax cuts them there."""
    first = re.split(r',(?![^\[]*\])', os.environ['SLURM_STEP_NODELIST'])[0]
    host = re.sub(r'\[([^\],-]+)[^\]]*\]', r'\1', first)
    start, ports = EPHEMERAL
    port = os.environ.get('JAX_COORDINATOR_PORT') or start + int(os.environ['SLURM_JOB_ID']) % ports
    return f'{host}:{port}'


def on_host() -> OnHost | None:
    """What the innermost launcher says of this process; None where there is none, or it says too little."""
    names = [
        ('OMPI_COMM_WORLD_LOCAL_RANK', 'OMPI_COMM_WORLD_LOCAL_SIZE', 'OMPI_COMM_WORLD_SIZE'),
        ('MPI_LOCALRANKID', 'MPI_LOCALNRANKS', 'PMI_SIZE'),
    ]
    for index, count, total in names:
        if all(os.environ.get(name, '').isdecimal() for name in (index, count, total)):
            return OnHost(int(os.environ[index]), int(os.environ[count]), int(os.environ[total]))
    tasks = [  # 2(x3),1: two on each of three nodes, one on the last
        int(number)
        for number, _, times in re.findall(
            r'(\d+)(\(x(\d+)\))?', os.environ.get('SLURM_STEP_TASKS_PER_NODE', '')
        )
        for _ in range(int(times or 1))
    ]
    node, local = os.environ.get('SLURM_NODEID', ''), os.environ.get('SLURM_LOCALID', '')
    if node.isdecimal() and local.isdecimal() and int(node) < len(tasks):
        return OnHost(int(local), tasks[int(node)], sum(tasks))
    return None


def devices(
    group: Member,
    find: Callable[[], Hardware | None] = accelerators,
) -> tuple[tuple[int, ...] | None, str]:
    """GPUs of this process as jax numbers them: () all that it sees, None JAX_LOCAL_DEVICE_IDS; and a warning or ''.

    A process that is alone on its host takes all. Each of several that one launcher has started there takes one, unless
    it sees fewer than there are processes: then they are shared out already.
    """
    if os.environ.get('JAX_LOCAL_DEVICE_IDS'):
        return None, ''
    here = on_host()
    if here is None or here.count == 1 or here.total != group.count:
        return (), ''
    shown = os.environ.get('CUDA_VISIBLE_DEVICES')
    if shown is not None:
        visible = len(list(filter(None, shown.split(','))))
    else:
        machine = find()
        visible = len(machine.names) if machine and machine.platform == 'cuda' else 0
    if visible < here.count:
        return (), ''
    warning = (
        f'{here.count} processes on this host use {here.count} of its {visible} GPUs; start one process for each GPU, '
        'or one for the host, which takes all, or set JAX_LOCAL_DEVICE_IDS'
    )
    return (here.index,), warning if visible > here.count else ''
