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

from krang_dynamics.nodes.ros.transport import PROFILES, fast_dds_version, set_up_fast_dds
from krang_dynamics.robot.library import share

FOLDER = share() / 'config' / 'fastdds'
RMW = 'rmw_fastrtps_cpp'
SHARED_MEMORY = ('/dev/shm/fastrtps', '/dev/shm/fastdds')
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


PORTS = """
import os
from krang_dynamics.nodes.ros.process import init
import rclpy
init()
node = rclpy.create_node('a')
links = [f'/proc/self/fd/{number}' for number in os.listdir('/proc/self/fd')]
sockets = [os.readlink(link) for link in links if os.path.islink(link)]
for words in map(str.split, open('/proc/net/udp').readlines()[1:]):
    if f'socket:[{words[9]}]' in sockets:
        print(int(words[1].partition(':')[2], 16))
"""


def changed(middleware=RMW, version=2, **environment):
    """The environment afterwards."""
    set_up_fast_dds(environment, middleware, version)
    return environment


def assert_no_shared_memory(maps):
    assert any(f'/{name}.so' in maps for name in ('libfastrtps', 'libfastdds'))  # no other middleware runs
    assert not [name for name in SHARED_MEMORY if name in maps]


def test_in_a_network_a_profile_replaces_the_default():
    memory = {'RMW_FASTRTPS_USE_QOS_FROM_XML': '1'}
    assert changed() == {'FASTRTPS_DEFAULT_PROFILES_FILE': str(FOLDER / '2' / 'network.xml'), **memory}
    assert changed(version=3) == {
        'FASTDDS_DEFAULT_PROFILES_FILE': str(FOLDER / '3' / 'network.xml'),
        **memory,
    }
    given = {'ROS_AUTOMATIC_DISCOVERY_RANGE': 'SUBNET'}
    assert changed(**given)['ROS_AUTOMATIC_DISCOVERY_RANGE'] == 'SUBNET'


def test_on_localhost_a_profile_replaces_the_setting_that_adds_shared_memory():
    environment = changed(ROS_AUTOMATIC_DISCOVERY_RANGE='LOCALHOST')
    assert environment['ROS_AUTOMATIC_DISCOVERY_RANGE'] == 'SYSTEM_DEFAULT'
    profile = ET.parse(environment['FASTRTPS_DEFAULT_PROFILES_FILE'])
    peers = profile.iterfind('.//{*}initialPeersList//{*}address')
    assert [peer.text for peer in peers] == ['127.0.0.1']


@pytest.mark.parametrize('version', [2, 3])
def test_a_child_process_gets_the_same(version):
    of_parent = changed(version=version, ROS_AUTOMATIC_DISCOVERY_RANGE='LOCALHOST')
    assert changed(version=version, **of_parent) == of_parent
    again = {**of_parent, 'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST'}
    assert changed(version=version, **again) == of_parent


@pytest.mark.parametrize('name', ['localhost.xml', 'network.xml'])
def test_the_profiles_differ_only_in_the_name_of_one_element(name):
    second, third = ((FOLDER / version / name).read_text() for version in '23')
    assert second.replace('nackSupressionDuration', 'nack_supression_duration') == third


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
@pytest.mark.parametrize('name', ['localhost', 'network'])
def test_fast_dds_reads_the_profile(name):
    version = fast_dds_version()
    environment = {
        **os.environ,
        PROFILES[version]: str(FOLDER / str(version) / f'{name}.xml'),
        'ROS_AUTOMATIC_DISCOVERY_RANGE': 'OFF',  # it must not reach the network
    }
    words = [sys.executable, '-c', START]
    maps = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    assert maps.stderr == ''  # where Fast DDS reports what it cannot read
    assert_no_shared_memory(maps.stdout)


@pytest.mark.processes
def test_on_localhost_no_multicast_is_received():
    environment = {name: value for name, value in os.environ.items() if name not in PROFILES.values()}
    environment |= {'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST', 'ROS_DOMAIN_ID': '77'}
    words = [sys.executable, '-c', PORTS]
    ports = subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout.split()
    multicast = 7400 + 250 * 77  # RTPS: of the domain; participants follow at 10 and above
    assert str(multicast) not in ports
    assert any(multicast < int(port) < multicast + 250 for port in ports)


@pytest.mark.processes
def test_the_buffer_holds_what_arrives_while_a_recorder_is_not_scheduled():
    environment = {**os.environ, 'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST'}
    words = [sys.executable, '-c', BUFFERS]
    sizes = subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout.split()
    most = int(Path('/proc/sys/net/core/rmem_max').read_text())
    assert max(map(int, sizes)) >= min(most, 4 * 2**20)
    profiles = [ET.parse(profile) for profile in FOLDER.glob('*/*.xml')]
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
            assert_no_shared_memory(Path(f'/proc/{process.popen.pid}/maps').read_text())
