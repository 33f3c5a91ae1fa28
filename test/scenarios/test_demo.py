"""`krang demo` as a user types it: files, exit status, and nothing left running."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='rclpy is not installed; source a ROS 2 installation')
pytest.importorskip('matplotlib', reason='matplotlib is not installed; pip install matplotlib pillow')
pytest.importorskip('rosbags', reason='rosbags is not installed; pip install rosbags')

KRANG = Path(sys.executable).parent / 'krang'
NODES = ('torque_controller', 'torque_guard', 'simulator')
LONGEST = 90.0  # a loaded machine is slow [s]
END = 15.0  # after ^C [s]


class Demo:
    """A demonstration in a process of its own; its children are known by a mark in their environment."""

    def __init__(self, folder, *arguments):
        self.mark = f'KRANG_DEMO_TEST={os.getpid()}_{time.monotonic_ns()}'
        name, _, value = self.mark.partition('=')
        self.process = subprocess.Popen(
            [KRANG, 'demo', *arguments],
            cwd=folder,
            env={**os.environ, name: value, 'ROS_HOME': str(folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def end(self, patience=LONGEST):
        """Exit status, output and complaints."""
        out, complaints = self.process.communicate(timeout=patience)
        return self.process.returncode, out, complaints

    def running(self):
        """Command lines of all that it started, and of itself."""
        found = []
        for folder in Path('/proc').glob('[0-9]*'):
            try:
                if self.mark.encode() in (folder / 'environ').read_bytes().split(b'\0'):
                    found.append((folder / 'cmdline').read_bytes().replace(b'\0', b' ').decode())
            except OSError:
                continue  # it has ended, or is somebody else's
        return found

    def until_nodes_run(self):
        deadline = time.monotonic() + LONGEST
        while not all(any(node in line for line in self.running()) for node in NODES):
            assert time.monotonic() < deadline, self.running()
            time.sleep(0.1)


@pytest.fixture
def demo(tmp_path):
    """Starts demonstrations; whatever is left of them ends with the test."""
    started = []

    def start(*arguments):
        started.append(Demo(tmp_path, *arguments))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.wait()


def test_it_plays_and_leaves_its_files_and_nothing_else(demo, tmp_path):
    from krang_dynamics.bags.io.reader import Bag

    files = {'--picture': 'p.png', '--animate': 'a.gif', '--record': 'bag'}
    arguments = ['planar_2r', '--duration', '1.5', '--engine', 'pinocchio', *sum(files.items(), ())]
    played = demo(*arguments)
    status, out, complaints = played.end()
    assert status == 0, complaints
    assert 'hold: drift' in out
    assert 'yes' in out
    assert '1 more where the scenario is played for' in out
    assert 'simulated' in complaints  # progress
    assert 'Traceback' not in complaints
    assert (tmp_path / 'p.png').read_bytes().startswith(b'\x89PNG')
    assert (tmp_path / 'a.gif').read_bytes().startswith(b'GIF')
    bag = Bag(tmp_path / 'bag')
    assert bag.damage == []
    assert {'/simulator/truth', '/torque_controller/torques'} <= set(bag.topics)
    assert played.running() == []

    again = demo(*arguments)
    status, out, complaints = again.end(patience=20)
    assert status == 2
    assert complaints.strip() == 'krang: p.png exists; --force writes over it'

    (tmp_path / 'p.png').write_bytes(b'')
    forced = demo(*arguments, '--force')
    status, _, complaints = forced.end()
    assert status == 0, complaints
    assert (tmp_path / 'p.png').stat().st_size > 1000
    assert forced.running() == []


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_control_c_ends_it_cleanly(demo, number):
    interrupted = demo('planar_2r', '--engine', 'pinocchio', '--duration', '1000')
    interrupted.until_nodes_run()
    time.sleep(1.0)
    begin = time.monotonic()
    interrupted.process.send_signal(number)
    status, _, complaints = interrupted.end(patience=END)
    assert time.monotonic() - begin < END
    assert status == 130
    assert complaints.endswith('stopped\n')
    assert 'Traceback' not in complaints
    assert interrupted.running() == []


@pytest.mark.parametrize(
    ('arguments', 'words'),
    [
        (['planar_2r', '--duration', '-1'], '--duration is -1 s; it must be positive'),
        (['planar_2r', '--duration', 'nan'], '--duration is nan s'),
        (['planar_3r'], "'planar_3r'"),
        (['planar_2r', '--record', '.', '--force'], '. exists and is no bag'),
    ],
)
def test_what_cannot_be_played_is_one_line(demo, arguments, words):
    status, out, complaints = demo(*arguments).end(patience=30)
    assert status == 2
    assert words in complaints
    assert len(complaints.strip().splitlines()) == 1
    assert out == ''
