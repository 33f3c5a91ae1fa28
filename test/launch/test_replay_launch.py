"""replay.launch.py: what it starts, what it tells the nodes, and how it ends."""

import ast
import os
import subprocess
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

import pytest
from bags.bagging import record_model
from nodes.bench import BIN, Bench, Topic
from std_msgs.msg import Float64MultiArray

from krang_dynamics.robot.library import load_robot

REPLAY = Path(__file__).resolve().parents[2] / 'launch' / 'replay.launch.py'
RUNNER = Path(__file__).with_name('run_launch_file.py')
PATIENCE = 60.0  # a loaded machine is slow [s]

needs_launch = pytest.mark.skipif(
    find_spec('launch_ros') is None,
    reason='launch_ros is not installed; it comes with ROS 2 (ros-jazzy-launch-ros) and is not on PyPI',
)


def test_it_declares_its_arguments_with_defaults_and_descriptions():
    arguments = next(
        ast.literal_eval(node.value)
        for node in ast.parse(REPLAY.read_text()).body
        if isinstance(node, ast.Assign) and node.targets[0].id == 'ARGUMENTS'
    )
    assert {name: default for name, (default, _) in arguments.items()} == {
        'bag': None,
        'robot': 'krang',
        'rate': '1.0',
        'terms': 'gravity',
        'namespace': '',
    }
    assert all(description for _, description in arguments.values())


@needs_launch
def test_it_loads_with_a_bag_and_not_without():
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        from launch import LaunchContext
        from launch.actions import DeclareLaunchArgument, OpaqueFunction
        from launch.launch_description_sources import AnyLaunchDescriptionSource
        from launch_ros.actions import LifecycleNode

    def made(**arguments):
        context = LaunchContext()
        context.launch_configurations.update(arguments)
        entities = AnyLaunchDescriptionSource(str(REPLAY)).get_launch_description(context).entities
        kinds = (DeclareLaunchArgument, OpaqueFunction)
        return [a for e in entities if isinstance(e, kinds) for a in e.visit(context) or ()]

    (controller,) = [action for action in made(bag='my_bag') if isinstance(action, LifecycleNode)]
    assert controller.node_executable == 'torque_controller'
    with pytest.raises(RuntimeError, match='bag'):
        made()


@pytest.fixture(scope='module')
def environment(tmp_path_factory):
    """Where launch finds the package: installed, or the executables of this virtual environment."""
    if not (BIN / 'torque_controller').exists():
        return dict(os.environ)
    prefix = tmp_path_factory.mktemp('prefix')
    index, executables = prefix / 'share/ament_index/resource_index/packages', prefix / 'lib/krang_dynamics'
    for folder in (index, executables):
        folder.mkdir(parents=True)
    (index / 'krang_dynamics').touch()
    for name in ('torque_controller', 'krang'):
        (executables / name).symlink_to(BIN / name)
    return {**os.environ, 'AMENT_PREFIX_PATH': f'{prefix}:{os.environ.get("AMENT_PREFIX_PATH", "")}'}


def launched(ros, environment, *arguments):
    """The launch file run to its end; its status and what it printed."""
    done = subprocess.run(
        [sys.executable, str(RUNNER), str(REPLAY), *arguments],
        env={
            **environment,
            'ROS_DOMAIN_ID': str(ros.domain),
            'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST',
            'ROS_LOG_DIR': str(ros.folder),
            'PYTHONUNBUFFERED': '1',
        },
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    return done.returncode, done.stdout + done.stderr


@needs_launch
def test_a_controller_answers_a_recording_where_no_driver_listens(environment, tmp_path):
    path = record_model(tmp_path / 'bag', load_robot('planar_2r'), duration=2.0)
    with Bench() as ros:
        commands = Topic(ros, Float64MultiArray, '/replay/effort_commands')
        for_drivers = Topic(ros, Float64MultiArray, '/effort_commands')
        status, log = launched(ros, environment, f'bag:={path}', 'robot:=planar_2r')
        assert status == 0, log
        assert 'played 400 messages' in log
        assert len(commands) > 200, log
        assert not len(for_drivers)


@needs_launch
def test_a_bag_that_is_none_ends_it_with_the_reason(environment):
    with Bench() as ros:
        status, log = launched(ros, environment, 'bag:=nowhere', 'robot:=planar_2r')
        assert status == 1
        assert 'nowhere: does not exist' in log
