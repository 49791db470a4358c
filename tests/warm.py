"""Python programs that start warm: a server has imported the libraries, and forks for each program.

A program takes seconds to import what it needs, and tests start hundreds. What a program sees is what it would see
anyhow: its words, folder, environment, parent, standard streams, signals and exit code, and the package that PYTHONPATH
names. Programs that it starts as `sys.executable` begin warm as well, and so do the processes of its pools.
A program begins cold where a variable differs that libraries read while they are imported, and so does pytest.

    warm.py SOCKET WORDS...     a program: `-m MODULE ...`, `-c CODE ...`, `FILE ...`, as Python takes them
"""

import json
import os
import select
import signal
import socket
import sys

READ_AT_IMPORT = ('JAX_', 'HF_', 'TRANSFORMERS_', 'OMP_', 'MKL_', 'KMP_', 'TF_', 'MPL')
APPLIED = 'JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS'
"""The only one of them that a program may have otherwise and yet begin warm."""
OPTIONS = ('-B', '-W')
FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
FREE = 200
"""Streams with smaller numbers are not taken by the libraries: those of a process of a pool keep their numbers."""
COLD = b'cold\n'
IMPORTED = """
    bioptimus_jax.cli.main bioptimus_jax.pretrain.loop bioptimus_jax.finetuning.training bioptimus_jax.export.build
    matplotlib.pyplot matplotlib.backends.backend_svg orbax.checkpoint pyarrow.dataset seqeval.metrics
    tensorflow_datasets torch transformers
    transformers.models.auto.modeling_auto transformers.models.bert.modeling_bert
""".split()


def read_at_import(environment):
    return {n: value for n, value in environment.items() if n.startswith(READ_AT_IMPORT) and n != APPLIED}


def python_path(environment):
    return [
        os.path.abspath(folder) for folder in environment.get('PYTHONPATH', '').split(os.pathsep) if folder
    ]


BEGAN_WITH = read_at_import(os.environ)
SET_BY_IMPORTS = {}
INSTALLED = sys.path[1 + len(python_path(os.environ)) :]


def client(address, words):
    """Have the server start a program, pass signals on to it, and end as it ends."""
    streams = inherited()
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(address)
        ignored = [number for number in FORWARDED if signal.getsignal(number) is signal.SIG_IGN]
        blocked = [int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, ())]
        asked = [words, os.getcwd(), dict(os.environ), ignored, blocked, os.getppid(), streams]
        request = json.dumps(asked).encode()
        socket.send_fds(server, [len(request).to_bytes(8, 'big')], streams)
        server.sendall(request)
        for number in {*FORWARDED} - {*ignored}:
            signal.signal(number, lambda number, _: server.sendall(bytes([number])))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
        with server.makefile('rb') as answers:
            answer = answers.readline()
    if answer == COLD:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        os.execv(sys.executable, [sys.executable, *words])
    code = int(answer or 1)
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def inherited():
    """The streams that this process was given: the standard ones, and those of a process of a pool."""
    numbers = map(int, os.listdir('/proc/self/fd'))
    return sorted(number for number in numbers if os.path.exists(f'/proc/self/fd/{number}'))


def server(address):
    """Import the libraries, say so in a line, and start programs until standard input ends."""
    import gc
    import importlib

    kept_free = [os.open(os.devnull, os.O_RDONLY) for _ in range(FREE)]
    for name in IMPORTED:
        importlib.import_module(name)
    for number in kept_free:
        os.close(number)
    SET_BY_IMPORTS.update(read_at_import(os.environ))
    # What was imported stays, and no program looks through it for garbage, which would copy all of it.
    gc.collect()
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen(64)
        print('warm', flush=True)
        while sys.stdin not in select.select([listening, sys.stdin], [], [])[0]:
            asked, _ = listening.accept()
            if not os.fork():
                listening.close()
                keep(asked)
            asked.close()
            reap(os.WNOHANG)
    reap()


def reap(options=0):
    """Wait for keepers that have ended, or for all: their seconds count among those of the tests."""
    try:
        while os.waitpid(-1, options)[0]:
            pass
    except ChildProcessError:  # there is none
        pass


def begins_warm(words, environment):
    """Whether a program is as if it had imported the libraries itself.

    pytest rewrites what it imports, and warns of what was imported before it.
    """
    asked = read_at_import(environment)
    as_here = {**SET_BY_IMPORTS, **asked} == SET_BY_IMPORTS and BEGAN_WITH.items() <= asked.items()
    words, _ = without_options(words)
    return as_here and words[:2] != ['-m', 'pytest'] and (words[0] in ('-m', '-c') or words[0][0] != '-')


def without_options(words):
    """The words of a program after the options of Python that a process of a pool is started with, and these."""
    count = next((i for i, word in enumerate(words) if not word.startswith(OPTIONS)), 0)
    return words[count:], words[:count]


def keep(asked):
    """Start one program and tell the client how it ends; a client that is gone takes it along."""
    size, streams, _, _ = socket.recv_fds(asked, 8, FREE)
    size = int.from_bytes(size, 'big')
    request = b''
    while len(request) < size:
        request += asked.recv(size - len(request)) or os._exit(1)
    words, folder, environment, ignored, blocked, parent, numbers = json.loads(request)
    if not begins_warm(words, environment):
        asked.sendall(COLD)
        os._exit(0)
    pid = os.fork()
    if not pid:
        asked.close()
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
        os.getppid = lambda: parent
        program(words, folder, environment, dict(zip(numbers, streams)))
    for stream in streams:
        os.close(stream)
    ended = os.pidfd_open(pid)
    while ended not in (ready := select.select([ended, asked], [], [])[0]):
        for number in (asked.recv(16) if ready else b'') or bytes([signal.SIGKILL]):
            os.kill(pid, number)
            if number == signal.SIGKILL:
                reap()
                os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    asked.sendall(b'%d\n' % code)
    os._exit(0)


def program(words, folder, environment, streams):
    """Become the program."""
    import atexit
    import multiprocessing.spawn
    import runpy
    import threading
    import traceback
    import warnings

    take(streams)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.orig_argv[:] = [sys.executable, *words]
    if words[-1] != '--multiprocessing-fork':  # what that starts is to learn of its death
        sys.executable = os.path.join(
            os.path.dirname(sys.argv[1]), 'python'
        )  # what it starts begins warm, too
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, 'w', closefd=False)
    sys.stderr = os.fdopen(2, 'w', 1, errors='backslashreplace', closefd=False)
    multiprocessing.set_executable(sys.executable)
    if APPLIED in environment:
        import jax

        jax.config.update(APPLIED.lower(), float(environment[APPLIED]))
    (how, *rest), options = without_options(words)
    words = [how, *rest]
    sys.warnoptions[:] = [option[2:] for option in options if option.startswith('-W')]
    for option in sys.warnoptions:
        warnings._setoption(option)
    sys.argv[:] = [how, *rest[1:]] if how in ('-m', '-c') else words
    first = folder if how in ('-m', '-c') else os.path.dirname(os.path.abspath(how))
    look_for_packages(first, python_path(environment))
    code = 0
    try:
        if how == '-m':
            runpy.run_module(rest[0], run_name='__main__', alter_sys=True)
        elif how == '-c':
            exec(compile(rest[0], '<string>', 'exec'), {'__name__': '__main__'})
        else:
            runpy.run_path(how, run_name='__main__')
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        code = 1
    # As Python ends, but without a second of taking all modules apart.
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(code)


def take(streams):
    """Give this process streams under the numbers that the program knows them by."""
    import fcntl

    held = {number: fcntl.fcntl(stream, fcntl.F_DUPFD, FREE) for number, stream in streams.items()}
    for stream in streams.values():
        os.close(stream)
    for number, stream in held.items():
        os.dup2(stream, number)
        os.close(stream)


def look_for_packages(first, named):
    """Where the program would: in its own folder, those of PYTHONPATH, what is installed."""
    import importlib.machinery

    sys.path[:] = [first, *named, *INSTALLED]
    [package] = {name.partition('.')[0] for name in IMPORTED if name.startswith('bioptimus')}
    found = importlib.machinery.PathFinder.find_spec(package, sys.path)
    if found.origin != sys.modules[package].__file__:  # another checkout's: it is imported anew
        for name in [*sys.modules]:
            if name.partition('.')[0] == package:
                del sys.modules[name]
    if importlib.machinery.PathFinder.find_spec('sitecustomize', named):
        sys.modules.pop('sitecustomize', None)
        importlib.import_module('sitecustomize')


if __name__ == '__main__':
    if sys.argv[2:]:
        client(sys.argv[1], sys.argv[2:])
    else:
        server(sys.argv[1])
