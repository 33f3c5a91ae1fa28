"""No shared memory of Fast DDS: a process that dies with one of its locks would block the guard.

And no space is kept for large messages after they were taken.
"""

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from nodes.harness import Controller, Guard, Harness

from krang_dynamics.nodes.ros.transport import set_up_fast_dds
from krang_dynamics.robot.library import share

FOLDER = share() / 'config' / 'fastdds'
START = "import rclpy; rclpy.init(); rclpy.create_node('a'); print(open('/proc/self/maps').read())"
BUFFERS = """
import os, socket, rclpy
from krang_dynamics.nodes.ros.process import init
init()
node = rclpy.create_node('a')
for number in map(int, os.listdir('/proc/self/fd')):
    try:
        with socket.socket(fileno=os.dup(number)) as port:
            print(port.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF))
    except OSError:
        pass  # it is no socket
"""
LARGE_MESSAGES = """
import rclpy
from std_msgs.msg import String
from krang_dynamics.nodes.ros.process import init

def memory():
    return int(open('/proc/self/statm').read().split()[1]) * 4096 / 1e6

init()
node, taken = rclpy.create_node('a'), []
node.create_subscription(String, 'b', lambda message: taken.append(len(message.data)), 10)
publisher = node.create_publisher(String, 'b', 10)
while publisher.get_subscription_count() == 0:
    pass
begin = memory()
for _ in range(10):
    publisher.publish(String(data=5_000_000 * 'x'))
while len(taken) < 10:
    rclpy.spin_once(node)
print(memory() - begin)
"""


def changed(middleware='rmw_fastrtps_cpp', **environment):
    """The environment afterwards."""
    set_up_fast_dds(environment, middleware)
    return environment


def test_in_a_network_a_profile_replaces_the_default():
    assert changed() == {
        'FASTRTPS_DEFAULT_PROFILES_FILE': str(FOLDER / 'network.xml'),
        'RMW_FASTRTPS_USE_QOS_FROM_XML': '1',
    }
    given = {'ROS_AUTOMATIC_DISCOVERY_RANGE': 'SUBNET'}
    assert changed(**given)['ROS_AUTOMATIC_DISCOVERY_RANGE'] == 'SUBNET'


def test_on_localhost_a_profile_replaces_the_setting_that_adds_shared_memory():
    environment = changed(ROS_AUTOMATIC_DISCOVERY_RANGE='LOCALHOST')
    assert environment['ROS_AUTOMATIC_DISCOVERY_RANGE'] == 'SYSTEM_DEFAULT'
    profile = ET.parse(environment['FASTRTPS_DEFAULT_PROFILES_FILE'])
    peers = profile.iterfind('.//{*}initialPeersList//{*}address')
    assert [peer.text for peer in peers] == ['127.0.0.1']


def test_a_child_process_gets_the_same():
    of_parent = changed(ROS_AUTOMATIC_DISCOVERY_RANGE='LOCALHOST')
    assert changed(**of_parent) == of_parent
    assert changed(**{**of_parent, 'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST'}) == of_parent


@pytest.mark.parametrize(
    'choice',
    [
        'FASTDDS_BUILTIN_TRANSPORTS',
        'FASTRTPS_DEFAULT_PROFILES_FILE',
        'FASTDDS_DEFAULT_PROFILES_FILE',
        'ROS_STATIC_PEERS',
    ],
)
def test_a_user_s_own_choice_stays(choice):
    given = {choice: 'mine', 'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST'}
    assert changed(**given) == given


def test_another_middleware_is_left_alone():
    given = {'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST'}
    assert changed('rmw_cyclonedds_cpp', **given) == given


@pytest.mark.processes
@pytest.mark.parametrize('profile', sorted(FOLDER.glob('*.xml')), ids=lambda path: path.stem)
def test_fast_dds_reads_the_profile(profile):
    environment = {
        **os.environ,
        'FASTRTPS_DEFAULT_PROFILES_FILE': str(profile),
        'ROS_AUTOMATIC_DISCOVERY_RANGE': 'OFF',  # it must not reach the network
    }
    words = [sys.executable, '-c', START]
    maps = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    assert maps.stderr == ''  # where Fast DDS reports what it cannot read
    assert 'libfastrtps' in maps.stdout
    assert '/dev/shm/fastrtps' not in maps.stdout


@pytest.mark.processes
def test_the_buffer_holds_what_arrives_while_a_recorder_is_not_scheduled():
    environment = {**os.environ, 'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST'}
    words = [sys.executable, '-c', BUFFERS]
    sizes = subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout.split()
    most = int(Path('/proc/sys/net/core/rmem_max').read_text())
    assert max(map(int, sizes)) >= min(most, 4 * 2**20)
    profiles = [ET.parse(profile) for profile in FOLDER.glob('*.xml')]
    assert {profile.findtext('.//{*}receiveBufferSize') for profile in profiles} == {str(4 * 2**20)}


@pytest.mark.processes
@pytest.mark.parametrize('reach', ['LOCALHOST', 'OFF'])
def test_no_space_is_kept_for_large_messages(reach):
    environment = {**os.environ, 'ROS_AUTOMATIC_DISCOVERY_RANGE': reach}
    words = [sys.executable, '-c', LARGE_MESSAGES]
    growth = subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout
    assert float(growth) < 10.0  # MB, after 50


@pytest.mark.processes
def test_controller_and_guard_map_no_shared_memory():
    with Harness() as harness:
        controller, guard = Controller(harness, robot='planar_2r'), Guard(harness, robot='planar_2r')
        controller.activate()
        harness.until(lambda: guard.states.last, 'the guard')
        for process in (controller, guard):
            maps = Path(f'/proc/{process.popen.pid}/maps').read_text()
            assert 'libfastrtps' in maps  # else another middleware runs, and this test says nothing
            assert '/dev/shm/fastrtps' not in maps
