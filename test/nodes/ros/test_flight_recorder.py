"""The flight recorder: the last seconds as a bag, read back with rosbags message by message."""

import subprocess
import sys
import warnings
from functools import cache
from pathlib import Path

import pytest

with warnings.catch_warnings():
    warnings.simplefilter('ignore')  # the message generator's parser imports a deprecated module
    import rosidl_generator_py  # noqa: F401

from rclpy.serialization import serialize_message
from rosbags.rosbag2 import Reader
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, Float64MultiArray, String

from krang_dynamics.bags.io.writer import prepare
from krang_dynamics.errors import KrangError
from krang_dynamics.nodes.ros import flight_recorder as module
from krang_dynamics.nodes.ros.flight_recorder import FlightRecorder

SECOND = 1_000_000_000  # [ns]
START = 1_700_000_000 * SECOND
TYPES = {
    '/joint_states': JointState,
    '/effort_commands': Float64MultiArray,
    '/state': String,
    '/deadman': Bool,
}


@pytest.fixture
def folder(tmp_path):
    return tmp_path / 'flights'


@pytest.fixture
def recorder(folder):
    return ready(folder)


def ready(folder):
    recorder = FlightRecorder(folder, 'torque_controller')
    for topic, kind in TYPES.items():
        recorder.add_topic(topic, kind)
    return recorder


@cache  # padding is whatever memory held, so that the same message may come out in other bytes
def state(k):
    return serialize_message(JointState(name=['a', 'b'], position=[float(k), 0.5], effort=[1.0, 2.0]))


def written(recorder, in_slices=False):
    """The bag of what is kept."""
    assert recorder.begin() is None
    while recorder.is_writing:
        recorder.write_some(whole=not in_slices)
    return read(recorder.path)


def read(path):
    """(topic, time, bytes) in the order of the bag."""
    with Reader(path) as reader:
        assert {c.topic: c.msgtype for c in reader.connections} == {
            c.topic: f'{TYPES[c.topic].__module__.split(".")[0]}/msg/{TYPES[c.topic].__name__}'
            for c in reader.connections
        }
        return [(connection.topic, time, bytes(data)) for connection, time, data in reader.messages()]


# -- what is kept --------------------------------------------------------------------------------------


def test_the_bag_holds_every_message_with_its_topic_type_and_time(recorder):
    sent = []
    for k in range(30):
        moment = START + k * 1_000_000
        sent.append(('/joint_states', moment, state(k)))
        sent.append(('/effort_commands', moment + 7, serialize_message(Float64MultiArray(data=[float(k)]))))
    for entry in sent:
        recorder.keep(*entry)
    assert written(recorder) == sent


def test_messages_come_in_the_order_of_their_times(recorder):
    for offset in (5, 3, 4, 1, 2):
        recorder.keep('/joint_states', START + offset, state(offset))
    assert [time - START for _, time, _ in written(recorder)] == [1, 2, 3, 4, 5]


def test_the_last_ten_seconds_are_kept(recorder):
    for k in range(301):  # half a minute, ten times per second
        recorder.keep('/joint_states', START + k * SECOND // 10, state(k))
    times = [time for _, time, _ in written(recorder)]
    assert times == [START + k * SECOND // 10 for k in range(200, 301)]


def test_a_clock_that_is_set_back_loses_nothing_that_is_new(recorder):
    recorder.keep('/joint_states', START + 3600 * SECOND, state(0))
    for k in range(5):
        recorder.keep('/joint_states', START + k, state(k))
    assert [time - START for _, time, _ in written(recorder)][:5] == [0, 1, 2, 3, 4]


def test_bytes_have_a_bound_whoever_floods_a_topic(recorder, monkeypatch):
    monkeypatch.setattr(module, 'LARGEST', 50_000)
    size = len(state(0))
    for k in range(2000):
        recorder.keep('/joint_states', START + k, state(k))
    bag = written(recorder)
    assert len(bag) == 50_000 // size
    assert bag[-1] == ('/joint_states', START + 1999, state(1999))


def test_one_message_that_is_larger_than_all_is_let_go(recorder, monkeypatch):
    monkeypatch.setattr(module, 'LARGEST', 1_000)
    recorder.keep('/joint_states', START, b'\0\1\0\0' + bytes(2_000))
    recorder.keep('/joint_states', START + 1, state(1))
    assert [time for _, time, _ in written(recorder)] == [START + 1]


def test_the_bounds_are_what_a_disk_can_bear():
    assert (module.WINDOW, module.LARGEST, module.MOST_BAGS) == (10 * SECOND, 64_000_000, 50)


def test_without_a_folder_nothing_is_kept(tmp_path):
    recorder = FlightRecorder(None, 'torque_controller')
    recorder.add_topic('/joint_states', JointState)
    recorder.keep('/joint_states', START, state(0))
    assert recorder.begin() is None
    assert not recorder.is_writing
    recorder.write_some(whole=True)
    assert recorder.path is None
    assert not recorder._kept


# -- bags ----------------------------------------------------------------------------------------------


def test_the_folder_is_made_and_the_bag_has_the_name_of_the_node(recorder, folder):
    recorder.keep('/joint_states', START, state(0))
    written(recorder)
    assert [path.name for path in folder.iterdir()] == [recorder.path.name]
    assert recorder.path.name.startswith('torque_controller_')
    assert (recorder.path / 'metadata.yaml').is_file()


def test_nothing_is_on_the_disk_before_a_fault(recorder, folder):
    recorder.keep('/joint_states', START, state(0))
    assert not folder.exists()


def test_a_bag_without_messages_is_a_bag(recorder):
    assert written(recorder) == []


def test_every_fault_has_its_own_bag(recorder, folder):
    recorder.keep('/joint_states', START, state(0))
    first = written(recorder)
    recorder.keep('/joint_states', START + 1, state(1))
    second = written(recorder)
    assert second == [*first, ('/joint_states', START + 1, state(1))]
    assert len(list(folder.iterdir())) == 2


def test_a_folder_of_large_bags_gets_no_more(recorder, folder, monkeypatch):
    monkeypatch.setattr(module, 'LARGEST_FOLDER', 5_000_000)
    (folder / 'bag').mkdir(parents=True)
    (folder / 'bag' / 'bag_0.mcap').write_bytes(bytes(6_000_000))
    recorder.keep('/joint_states', START, state(0))
    assert recorder.begin().endswith('has 6 MB of bags; move them away to get new ones')
    assert not recorder.is_writing


def test_a_full_folder_gets_no_more_bags_and_the_reason_says_what_to_do(recorder, folder):
    for k in range(module.MOST_BAGS - 1):
        (folder / f'bag_{k}').mkdir(parents=True)
    (folder / 'notes.txt').write_text('not a bag')
    recorder.keep('/joint_states', START, state(0))
    assert len(written(recorder)) == 1
    reason = recorder.begin()
    assert '50 bags' in reason
    assert 'move them away' in reason
    assert not recorder.is_writing
    assert len([path for path in folder.iterdir() if path.is_dir()]) == module.MOST_BAGS


def test_a_folder_that_cannot_be_made_is_a_reason_and_no_exception(tmp_path):
    (tmp_path / 'file').write_text('in the way')
    recorder = ready(tmp_path / 'file' / 'flights')
    recorder.keep('/joint_states', START, state(0))
    assert 'flights' in recorder.begin()
    assert not recorder.is_writing


def test_a_bag_that_cannot_be_written_is_an_error_once_and_the_next_one_works(recorder, folder):
    recorder.keep('/joint_states', START, state(0))
    recorder.begin()
    folder.rmdir()
    folder.write_text('in the way')
    with pytest.raises((KrangError, OSError)):
        recorder.write_some(whole=True)
    recorder.write_some(whole=True)
    assert not recorder.is_writing
    folder.unlink()
    assert len(written(recorder)) == 1


def test_without_the_library_there_is_no_bag_and_a_reason_that_a_node_survives(folder, monkeypatch):
    prepare.cache_clear()
    for name in ('rosbags', 'rosbags.rosbag2', 'rosbags.typesys'):
        monkeypatch.setitem(sys.modules, name, None)
    recorder = FlightRecorder(folder, 'x')
    assert 'rosbags' in recorder.problem
    recorder.add_topic('/joint_states', JointState)
    recorder.keep('/joint_states', START, state(0))
    assert recorder.begin() is None
    recorder.write_some(whole=True)
    assert not recorder.is_writing


# -- while torque is on --------------------------------------------------------------------------------


def test_in_slices_the_bag_is_the_same(recorder):
    for k in range(333):
        recorder.keep('/joint_states', START + k, state(k))
    whole = written(recorder)
    assert written(recorder, in_slices=True) == whole
    assert len(whole) == 333


def test_a_slice_is_a_few_messages(recorder):
    for k in range(400):
        recorder.keep('/joint_states', START + k, state(k))
    recorder.begin()
    calls = 0
    while recorder.is_writing:
        recorder.write_some(whole=False)
        calls += 1
    assert 400 // (module.AT_ONCE + 1) <= calls <= 400 // module.AT_ONCE + 1


@pytest.mark.parametrize('count', [0, 1, 39, 40, 41, 42, 80, 81, 82])
def test_any_number_of_messages_comes_to_its_end(folder, count):
    recorder = ready(folder)
    for k in range(count):
        recorder.keep('/joint_states', START + k, state(k))
    assert len(written(recorder, in_slices=True)) == count


def test_what_comes_while_a_bag_is_written_is_for_the_next_one(recorder):
    for k in range(100):
        recorder.keep('/joint_states', START + k, state(k))
    recorder.begin()
    recorder.write_some(whole=False)
    path = recorder.path
    for k in range(100, 120):
        recorder.keep('/joint_states', START + k, state(k))
    assert recorder.begin() is None  # another fault does not begin another bag
    assert recorder.path == path
    recorder.write_some(whole=True)
    assert [time - START for _, time, _ in read(path)] == list(range(100))
    assert [time - START for _, time, _ in written(recorder)] == list(range(120))


def test_the_rest_may_be_written_at_once(recorder):
    for k in range(500):
        recorder.keep('/joint_states', START + k, state(k))
    recorder.begin()
    recorder.write_some(whole=False)
    assert recorder.is_writing
    recorder.write_some(whole=True)
    assert not recorder.is_writing
    assert len(read(recorder.path)) == 500


SLICES = """
import sys, warnings
warnings.simplefilter('ignore')
from pathlib import Path
from time import thread_time
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from krang_dynamics.nodes.ros.flight_recorder import FlightRecorder

recorder = FlightRecorder(Path(sys.argv[1]), 'x')
recorder.add_topic('/joint_states', JointState)
message = serialize_message(JointState(name=['a'], position=[0.0]))
for k in range(2000):
    recorder.keep('/joint_states', k, message)
times = [thread_time()]
recorder.begin()
while recorder.is_writing:
    recorder.write_some(whole=False)
    times.append(thread_time())
print(max(b - a for a, b in zip(times, times[1:])))
"""


def test_no_slice_keeps_the_robot_waiting_not_even_the_first_of_a_process(folder):
    """A guard takes over after 50 ms, and a stop must not be blind."""
    answer = subprocess.run(
        [sys.executable, '-c', SLICES, str(folder)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert float(answer.stdout) < 0.05
