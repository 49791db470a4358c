"""A strict session: eight fake devices on the CPU, no network, rank promotion and warnings are errors."""

import atexit
import ctypes
import dataclasses
import fcntl
import functools
import gc
import importlib.util
import multiprocessing.util
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest
import warm
from toy_compiler import EIGHT_DEVICES

# Set before anybody imports jax, transformers or torch; workers started by tests inherit it.
os.environ.setdefault('JAX_PLATFORMS', 'cpu')
if EIGHT_DEVICES not in os.environ.get('XLA_FLAGS', ''):
    os.environ['XLA_FLAGS'] = (
        f'{EIGHT_DEVICES} {os.environ.get("XLA_FLAGS", "")}'.strip()
    )  # the last one holds
os.environ.setdefault('JAX_NUMPY_RANK_PROMOTION', 'raise')
os.environ.setdefault('HF_HUB_OFFLINE', '1')
os.environ.setdefault('TOKENIZERS_PARALLELISM', 'false')
os.environ.setdefault('MPLBACKEND', 'agg')
os.environ.setdefault('OMP_NUM_THREADS', '1')  # two test processes share two cores
os.environ.setdefault('OMP_WAIT_POLICY', 'PASSIVE')  # nor do threads that wait keep one busy
os.environ.setdefault('MKL_NUM_THREADS', '1')  # as dask sets it, for good: what then begins would begin cold
# Tests make and delete hundreds of thousands of files, at a millisecond or two on a disk; they hold .2 GB of them.
_memory = Path('/dev/shm')
if 'TMPDIR' not in os.environ and _memory.is_dir() and os.access(_memory, os.W_OK):
    _found = os.statvfs(_memory)
    if _found.f_bavail * _found.f_frsize >= 2 << 30 and not _found.f_flag & os.ST_NOEXEC:
        os.environ['TMPDIR'] = tempfile.tempdir = str(_memory)
# The same step is compiled by many tests and by the processes that they start: once is enough.
if 'JAX_COMPILATION_CACHE_DIR' not in os.environ:
    os.environ['JAX_COMPILATION_CACHE_DIR'] = tempfile.mkdtemp(prefix='bioptimus-tests-')
    atexit.register(shutil.rmtree, os.environ['JAX_COMPILATION_CACHE_DIR'], ignore_errors=True)
# torch makes this folder when it is imported, and would make it where a test counts what is left behind.
os.environ.setdefault(
    'TORCHINDUCTOR_CACHE_DIR', os.path.join(os.environ['JAX_COMPILATION_CACHE_DIR'], 'torch')
)
os.environ.setdefault('JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS', '0.05')

# No network: here, and in every Python that tests start (a hook cannot be taken away again).
_offline = str(Path(__file__).parent / 'offline')
os.environ['PYTHONPATH'] = os.pathsep.join(filter(None, [_offline, os.environ.get('PYTHONPATH', '')]))
sys.path.insert(0, _offline)
sys.modules.pop('sitecustomize', None)  # the system may have one of its own
import sitecustomize  # noqa: E402, F401

sys.path.remove(_offline)

# After an installation nothing is compiled, and one worker compiles the libraries for all: a dozen seconds of a core.
if 'PYTEST_XDIST_WORKER' in os.environ and not os.path.exists(
    importlib.util.find_spec('transformers').cached
):
    with open(__file__) as _lock:
        fcntl.flock(_lock, fcntl.LOCK_EX)
        for _name in warm.IMPORTED:
            importlib.import_module(_name)

# The same examples every time, and no test that fails because the machine is busy.
hypothesis.settings.register_profile(
    'steady', derandomize=True, deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile('steady')

# What a shell starts in the background ignores Ctrl-C, and under nohup hang-ups, and so would every program that tests
# start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# By CPU seconds: begun first, so that no process is left with one of them when the others have nothing more to do.
LONGEST_FIRST = """
    model docs pretrain launch plan plugin_family lab_sweep objectives first_hour remote_runs golden onnx texts rtd
    adapters kernels compiled api lab_docs lab_forecast plugin_tokenizer lab_paper_tables finetune_heads bridge fit
    lab_site mixture benchmarks house pairs signals frozen lab_results shapes start refusals report readme lab_probe
    causal adversarial finetune_stability download contrastive finetune sources plugin_objective export hub corpus_stage
    finetune_corpora settled untied cross_entropy masking_weights plugin_masking distil remote encoding doctor security
    finetune_recommended plugin_task plugin_initialisation page
""".split()


def pytest_configure(config):
    """The second worker collects from the end: each reads what the other has rewritten and compiled."""
    if config.args == config.getini('testpaths') and os.environ.get('PYTEST_XDIST_WORKER') == 'gw1':
        config.args = sorted(map(str, Path(__file__).parent.glob('test_*.py')), reverse=True)


def pytest_collection_modifyitems(items):
    order = {f'test_{name}': place for place, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: (order.get(item.path.stem, len(order)), item.path))


def pytest_collection_finish():
    """What was imported stays: to look through it for garbage again and again is a tenth of a tracing test's time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(300_000, 20, 50)


_beside = Path(__file__).resolve().parents[2] / 'shared' / 'data'
if not os.environ.get('BIOPTIMUS_DATA') and _beside.is_dir():
    os.environ['BIOPTIMUS_DATA'] = str(_beside)


@pytest.fixture(scope='session')
def data() -> Path:
    """The folder of real data; tests that ask for it are skipped without one."""
    folder = os.environ.get('BIOPTIMUS_DATA', '')
    if not folder:
        pytest.skip('no real data: BIOPTIMUS_DATA is not set')
    if not Path(folder).is_dir():
        pytest.skip(f'no real data: BIOPTIMUS_DATA={folder} is not a folder')
    return Path(folder)


@pytest.fixture(scope='session')
def served(tmp_path_factory, pytestconfig) -> Callable[[], Path]:
    """Gives the folder of `programs`; the server begins when it is first asked for."""
    from toy_programs import serve

    own = tmp_path_factory.getbasetemp()
    shared = own.parent if 'PYTEST_XDIST_WORKER' in os.environ else own
    return functools.cache(lambda: serve(shared / 'programs', pytestconfig.add_cleanup))


@pytest.fixture(scope='session')
def programs(served) -> Path:
    """A folder with `bioptimus` and `python`, which start warm: one server for all workers."""
    return served()


@pytest.fixture(scope='session', autouse=True)
def pools(served):
    """The processes of a pool start warm, too."""
    start = multiprocessing.util.spawnv_passfds

    def warm(program, words, streams):
        if words[-1] == '--multiprocessing-fork':
            program = os.fsencode(served() / 'python')
        return start(program, words, streams)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(multiprocessing.util, 'spawnv_passfds', warm)
        yield


@pytest.fixture(scope='session')
def tutorial(programs) -> Path:
    """What the tutorial leaves behind; other pages go on from it. Run once for all workers."""
    from toy_docs import tutorial_in

    return tutorial_in(programs.parent, programs)


MANY_PAGES = (3 << 30) // os.sysconf('SC_PAGE_SIZE')


@pytest.fixture(scope='module', autouse=True)
def little_is_held():
    """Compiled programs go with a file of tests, where many are held: two workers would hold 12 GB at the end."""
    yield
    held = Path('/proc/self/statm')
    if 'jax' in sys.modules and held.is_file() and int(held.read_text().split()[1]) > MANY_PAGES:
        sys.modules['jax'].clear_caches()
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)


@pytest.fixture
def cluster():
    """The address of a dask cluster of two processes, a task each; one that is killed is started again."""
    distributed = pytest.importorskip('distributed')
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=':0', silence_logs=50
    ) as running:
        yield running.scheduler_address


@pytest.fixture
def relisted():
    """Gives a stage's manifest the files that lie in its folder now, as if the stage had written them."""

    def write(run, stage):
        from bioptimus_jax.run.manifests import listed, write_manifest

        folder = run.workdir / stage
        files = listed(folder, run.checksums())
        write_manifest(folder, dataclasses.replace(run.manifest(stage), files=files))

    return write


@pytest.fixture(scope='session')
def prepared(tmp_path_factory):
    """A folder with a tiny run that has everything that pre-training reads; tests change copies of it."""
    from toy_pretraining import prepare

    return prepare(tmp_path_factory.mktemp('pretrain'))


@pytest.fixture(scope='session')
def tiny(prepared):
    """The same, with a teacher beside the run."""
    from toy_objectives import make_teacher

    make_teacher(prepared)
    return prepared


@pytest.fixture
def candidates(monkeypatch):
    """`candidates(NAME=FUNCTION, ...)`: the attentions that auto tries on a CPU, beside a plain one that is slow."""
    from toy_attention import slowly

    from bioptimus_jax.pretrain import backends

    def set_to(**kernels):
        for name, kernel in kernels.items():
            monkeypatch.setitem(backends.KERNELS, name, kernel)
        monkeypatch.setitem(backends.KERNELS_OF_PLATFORM, 'cpu', tuple(kernels))

    monkeypatch.setattr(backends, 'attend', slowly)
    return set_to
