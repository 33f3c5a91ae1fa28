"""krang demo: files, exit status, and no process left however it ends."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from krang_dynamics.cli.main import main

pytest.importorskip('rclpy', reason='rclpy is not installed; source a ROS 2 installation')
pytest.importorskip('matplotlib', reason='matplotlib is not installed; pip install matplotlib pillow')
pytest.importorskip('mujoco', reason='mujoco is not installed; pip install mujoco')
pytest.importorskip('rosbags', reason='rosbags is not installed; pip install rosbags')

KRANG = Path(sys.executable).parent / 'krang'
NODES = ('torque_controller', 'torque_guard', 'simulator')
LONGEST = 90.0  # on a loaded machine [s]
END = 15.0  # after a signal [s]
DEATH = 5.0  # of the nodes after SIGKILL of the demonstration [s]


class Demo:
    """A demonstration in its own process; its children are known by a mark in their environment."""

    def __init__(self, folder, *arguments, prefix=()):
        self.mark = f'KRANG_DEMO_TEST={os.getpid()}_{time.monotonic_ns()}'
        name, _, value = self.mark.partition('=')
        self.process = subprocess.Popen(
            [*prefix, KRANG, 'demo', *arguments],
            cwd=folder,
            env={**os.environ, name: value, 'ROS_HOME': str(folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def end(self, timeout=LONGEST):
        """Exit status, standard output and standard error."""
        out, errors = self.process.communicate(timeout=timeout)
        return self.process.returncode, out, errors

    def running(self):
        """Command lines of all running processes with the mark, by process id."""
        found = {}
        for folder in Path('/proc').glob('[0-9]*'):
            try:
                if self.mark.encode() in (folder / 'environ').read_bytes().split(b'\0'):
                    found[int(folder.name)] = (folder / 'cmdline').read_bytes().replace(b'\0', b' ').decode()
            except OSError:
                continue  # it has ended, or belongs to another user
        return found

    def until_it_plays(self):
        """Wait until all nodes run and simulated time is shown."""
        deadline = time.monotonic() + LONGEST
        while not all(any(node in line for line in self.running().values()) for node in NODES):
            assert time.monotonic() < deadline, self.running()
            time.sleep(0.1)
        assert self.process.stderr.readline().startswith('starting')
        assert self.process.stderr.readline().startswith('simulated')

    def until_nothing_runs(self, timeout):
        deadline = time.monotonic() + timeout
        while self.running():
            assert time.monotonic() < deadline, self.running()
            time.sleep(0.05)


@pytest.fixture
def demo(tmp_path):
    """Starts demonstrations; what is left of them ends with the test."""
    started = []

    def start(*arguments, prefix=()):
        started.append(Demo(tmp_path, *arguments, prefix=prefix))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.wait()
        each.process.stdout.close()
        each.process.stderr.close()


@pytest.mark.slow
def test_it_overwrites_files_by_force_alone_and_leaves_no_process(
    demo, tmp_path, monkeypatch, capsys, refused
):
    from krang_dynamics.bags.io.reader import Bag

    files = {'--picture': 'p.png', '--animate': 'a.gif', '--record': 'bag'}
    arguments = ['planar_2r', '--duration', '1.5', '--engine', 'pinocchio', *sum(files.items(), ())]
    (tmp_path / 'p.png').write_bytes(b'')
    (tmp_path / 'bag').mkdir()
    (tmp_path / 'bag' / 'metadata.yaml').write_text('of an old bag')
    played = demo(*arguments, '--force')
    status, out, errors = played.end()
    assert status == 0, errors
    assert 'hold: drift' in out
    assert 'yes' in out
    assert '1 more in the whole scenario of' in out
    assert 'Traceback' not in errors
    assert (tmp_path / 'p.png').read_bytes().startswith(b'\x89PNG')
    assert (tmp_path / 'p.png').stat().st_size > 1000
    assert (tmp_path / 'a.gif').read_bytes().startswith(b'GIF')
    bag = Bag(tmp_path / 'bag')
    assert bag.damage == []
    topics = {'/simulator/truth', '/torque_controller/torques', '/joint_states', '/clock', '/effort_commands'}
    assert topics <= set(bag.topics)
    assert not played.running()

    monkeypatch.chdir(tmp_path)
    assert main(['replay', 'bag']) == 0
    assert 'all are identical' in capsys.readouterr().out
    assert main(['validate', 'bag', '--robot', 'planar_2r', '--max-rmse', '1']) == 0
    assert 'p.png exists already; choose another name, or add --force' in refused('demo', *arguments)
    (tmp_path / 'p.png').unlink()
    (tmp_path / 'a.gif').unlink()
    assert 'bag exists already; choose another name, or add --force' in refused('demo', *arguments)


@pytest.mark.slow
@pytest.mark.parametrize(
    ('number', 'prefix'),
    [(signal.SIGINT, ('sh', '-c', 'trap "" INT; exec "$0" "$@"')), (signal.SIGTERM, ())],
    ids=['SIGINT, ignored at start', 'SIGTERM'],
)
def test_a_signal_ends_it_cleanly(demo, number, prefix):
    interrupted = demo('planar_2r', '--engine', 'pinocchio', '--duration', '1000', prefix=prefix)
    interrupted.until_it_plays()
    interrupted.process.send_signal(number)
    status, _, errors = interrupted.end(END)
    assert status == 130
    assert errors.endswith('krang: stopped\n')
    assert 'Traceback' not in errors
    assert not interrupted.running()


@pytest.mark.processes
def test_a_failure_is_one_line_and_the_log_a_file(demo, tmp_path):
    broken = demo('planar_2r', '--engine', 'pinocchio', '--duration', '1000')
    broken.until_it_plays()
    (simulator,) = (pid for pid, line in broken.running().items() if 'processes simulator' in line)
    os.kill(simulator, signal.SIGKILL)
    status, _, errors = broken.end(END)
    assert status == 2
    reason = errors.splitlines()[-1]
    assert reason.startswith('krang: simulator ended with status -9')
    assert reason.endswith('the log of the nodes is krang_demo_planar_2r.log')
    assert '[torque_controller]: ramping' in (tmp_path / 'krang_demo_planar_2r.log').read_text()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != 'linux', reason='PR_SET_PDEATHSIG is a feature of Linux')
def test_its_nodes_end_when_it_is_killed(demo):
    killed = demo('planar_2r', '--engine', 'pinocchio', '--duration', '1000')
    killed.until_it_plays()
    killed.process.kill()
    killed.until_nothing_runs(DEATH)


@pytest.mark.parametrize(
    ('arguments', 'words'),
    [
        (['planar_2r', '--duration', '-1'], '--duration is -1 s; the first part ends at'),
        (['planar_2r', '--duration', 'nan'], "'nan' is not a finite number"),
        (['planar_2r', '--picture', 'p.xyz'], 'must end in .png'),
        (['planar_2r', '--record', 'no/folder'], 'its folder does not exist'),
        (['planar_3r'], "'planar_3r'"),
        (['planar_2r', '--record', '.', '--force'], '. is not a bag'),
    ],
)
def test_impossible_requests_are_errors_of_one_line(arguments, words, tmp_path, monkeypatch, refused):
    monkeypatch.chdir(tmp_path)
    assert words in refused('demo', *arguments)


@pytest.mark.slow
def test_a_demonstration_with_a_page_prints_its_address_and_ends_it(demo):
    pytest.importorskip('viser', reason='viser is not installed; pip install viser')
    shown = demo('planar_2r', '--view', '--engine', 'pinocchio')
    assert shown.process.stdout.readline().startswith('page of planar_2r: http://localhost:')
    shown.process.send_signal(signal.SIGINT)
    shown.end()
    shown.until_nothing_runs(DEATH)
