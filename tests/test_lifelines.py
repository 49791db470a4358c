"""How processes of a run learn of each other's end: real processes and sockets, without jax."""

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from bioptimus_jax.errors import BAD_INPUT, DONE, INTERRUPTED, LOST, STOPPED, ConfigError
from bioptimus_jax.hosts import lifelines

ROOT = Path(__file__).resolve().parents[1]
# Joins, says that it is there, and does what it reads on stdin.
PROCESS = """
import sys, time
from bioptimus_jax.hosts import lifelines
lifelines.GRACE_SECONDS = lifelines.STOP_SECONDS = 0.2
index, told = int(sys.argv[1]), sys.argv[2:]
if index:
    mine = lifelines.connect('127.0.0.1', ' '.join(told), index, 60)
else:
    server, told = lifelines.listen()
    print(told, flush=True)
    mine = lifelines.accept(server, told.split()[1], 2, 60)
print('joined', flush=True)
for line in sys.stdin:
    match line.split():
        case ['leave', code]:
            mine.tell(f'end {code}')
            sys.exit(int(code))
        case ['see', 'stopping']:
            assert mine.stopping.wait(60)
            print('stopping', flush=True)
        case ['see', 'end']:
            mine.wait()
            print('ended', flush=True)
        case _:
            mine.tell(line.strip())
time.sleep(60)
"""


class Process:
    def __init__(self, *arguments):
        self.popen = subprocess.Popen(
            [sys.executable, '-c', PROCESS, *map(str, arguments)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def hears(self):
        return self.popen.stdout.readline().strip()

    def does(self, what):
        self.popen.stdin.write(what + '\n')
        self.popen.stdin.flush()

    def end(self):
        """Exit code and last words."""
        self.popen.wait(timeout=60)
        return self.popen.returncode, self.popen.stderr.read()


@pytest.fixture
def three():
    leader = Process(0)
    told = leader.hears().split()
    processes = [leader, Process(1, *told), Process(2, *told)]
    assert [process.hears() for process in processes] == ['joined'] * 3
    yield processes
    for process in processes:
        process.popen.kill()
        process.popen.communicate()


@pytest.mark.parametrize('killed', [0, 1])
def test_who_is_killed_ends_all_others_who_say_its_name(killed, three):
    three[killed].popen.send_signal(signal.SIGKILL)
    for process in three:
        if process is three[killed]:
            continue
        code, said = process.end()
        assert code == LOST
        assert said.startswith(f'bioptimus: process {killed} on ')
        assert 'rerun the same command' in said
        assert len(said.splitlines()) == 1


def test_an_exit_code_is_passed_on_to_all(three):
    three[2].does(f'leave {BAD_INPUT}')
    assert three[2].end() == (BAD_INPUT, '')
    code, said = three[0].end()
    assert code == BAD_INPUT
    assert said.startswith('bioptimus: process 2 on ')
    assert said.endswith(f'ended with exit code {BAD_INPUT}; its own last line says why\n')
    code, said = three[1].end()
    assert code == BAD_INPUT
    assert said.startswith('bioptimus: process 0 on 127.0.0.1 ended with exit code')


def test_who_leaves_in_order_ends_nobody_and_is_waited_for(three):
    three[1].does(f'leave {DONE}')
    assert three[1].end() == (DONE, '')
    three[0].does('see end')
    three[2].does(f'leave {DONE}')
    assert three[0].hears() == 'ended'
    assert three[0].popen.poll() is None


@pytest.mark.parametrize('code', [STOPPED, INTERRUPTED])
def test_a_follower_asks_the_leader_to_stop_and_its_stopping_ends_them(code, three):
    three[1].does('stop')
    three[0].does('see stopping')
    assert three[0].hears() == 'stopping'
    assert three[2].popen.poll() is None
    three[2].does('see stopping')
    three[0].does(f'leave {code}')
    assert three[2].hears() == 'stopping'
    assert [process.end()[0] for process in three] == [code] * 3


def test_strangers_are_sent_away_and_who_is_missing_is_an_error(monkeypatch):
    monkeypatch.setattr(lifelines, 'CONNECT_SECONDS', 0.5)
    server, told = lifelines.listen()
    with socket.create_connection(('127.0.0.1', int(told.split()[0]))) as stranger:
        stranger.sendall(b'wrong process 1 on here\n')
        for said, attempt in (
            ('1 of 1 processes do', lambda: lifelines.accept(server, told.split()[1], 1, 60)),
            ('process 1 does', lambda: lifelines.connect('127.0.0.1', told, 1, 60)),
        ):
            with pytest.raises(ConfigError, match=rf'{said} not reach the leader( at 127\.0\.0\.1:|[^:]*$)'):
                attempt()
        assert stranger.recv(10) == b''


@pytest.mark.skipif(not hasattr(socket, 'TCP_KEEPIDLE'), reason='the names of Linux')
def test_a_silent_host_is_noticed_by_the_kernel_in_the_time_given():
    with socket.socket() as connection:
        lifelines._notice_silence(connection, 60)
        idle, every, times = (
            connection.getsockopt(socket.IPPROTO_TCP, getattr(socket, f'TCP_KEEP{name}'))
            for name in ('IDLE', 'INTVL', 'CNT')
        )
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    assert idle + every * times == 60
