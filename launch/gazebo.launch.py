"""A robot in Gazebo Harmonic, with the same controller and guard as on hardware.

Gazebo holds the joints until an effort controller claims them. So the joint states start first, then
controller and guard, and the effort controller when torques flow.
"""

import shlex
from pathlib import Path

from launch import LaunchContext, LaunchDescription
from launch.action import Action
from launch.actions import (
    ExecuteProcess,
    GroupAction,
    IncludeLaunchDescription,
    LogInfo,
    OpaqueFunction,
    RegisterEventHandler,
    Shutdown,
)
from launch.event_handlers import OnProcessExit
from launch.events.process import ProcessExited
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.logging import launch_config
from launch.substitutions import PathJoinSubstitution
from launch_ros.actions import Node, SetRemap
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

from krang_dynamics.launching import declared, hardware_beside, is_true
from krang_dynamics.robot.library import load_robot
from krang_dynamics.robot.model import Robot
from krang_dynamics.simulation.gazebo.gazebo_files import GazeboSetup, write_gazebo_files
from krang_dynamics.simulation.simulated_robot import default_terms

ARGUMENTS = {  # name: default, description
    'robot': ('krang', 'shipped name, or path of a robot file (YAML) or URDF'),
    'namespace': ('', 'namespace of all nodes, and so of all topics except /clock and /diagnostics'),
    'terms': ('', 'control terms, separated by commas; default: chosen for the robot'),
    'wheels_locked': (
        'true',
        "whether Krang's base is driven; false: it swings freely",
    ),
    'headless': ('false', 'whether Gazebo runs without a window'),
    'guard': ('true', 'whether torque_guard runs between controller and Gazebo'),
    'auto_activate': ('true', 'whether to activate the controller once it is configured'),
    'enclave': ('', 'SROS2: parent of the enclaves of the nodes, for example /; empty: no security'),
}


def generate_launch_description() -> LaunchDescription:
    return LaunchDescription([*declared(ARGUMENTS), OpaqueFunction(function=start)])


def start(context: LaunchContext) -> list[Action]:
    """Gazebo with the robot, then the other processes in the order of their dependencies."""
    config = context.launch_configurations
    robot = load_robot(config['robot'])
    folder = Path(launch_config.log_dir) / 'gazebo'  # next to the logs of this run
    setup = write_gazebo_files(robot, folder, config['namespace'], is_true(context, 'wheels_locked'))
    spawn = spawned(robot, setup, config['namespace'])
    states = spawner('joint_state_broadcaster', config['namespace'])
    flowing = first_torque(config['namespace'])
    torques = spawner('effort_controller', config['namespace'])
    return [
        *warnings(robot),
        gazebo(setup, is_true(context, 'headless')),
        publisher(setup, config['namespace']),
        bridge(setup, config['namespace']),
        after(spawn, states),
        after(states, controller(robot, setup, config, is_true(context, 'guard')), flowing),
        after(flowing, torques),
        after(torques),
        spawn,
    ]


def warnings(robot: Robot) -> list[Action]:
    """Differences between Gazebo and the real robot; see docs/simulation.md."""
    texts = []
    if robot.rotor_inertia().any():
        texts.append('has no rotor inertia in Gazebo, so gains.bandwidth is lowered')
        if robot.friction.sign == 'exact' and robot.friction.coulomb.any():
            texts.append('has dry friction, which locks joints without rotor inertia in Gazebo')
    return [LogInfo(msg=f'{robot.name} {text}') for text in texts]


def gazebo(setup: GazeboSetup, headless: bool) -> Action:
    path = PathJoinSubstitution([FindPackageShare('ros_gz_sim'), 'launch', 'gz_sim.launch.py'])
    words = ['-r', *(['-s'] if headless else []), shlex.quote(str(setup.world))]
    arguments = {'gz_args': ' '.join(words), 'on_exit_shutdown': 'true'}
    return IncludeLaunchDescription(PythonLaunchDescriptionSource(path), launch_arguments=arguments.items())


def publisher(setup: GazeboSetup, namespace: str) -> Action:
    description = ParameterValue(setup.urdf, value_type=str)
    return Node(
        package='robot_state_publisher',
        executable='robot_state_publisher',
        namespace=namespace,
        parameters=[{'robot_description': description, 'use_sim_time': True}],
        output='screen',
    )


def bridge(setup: GazeboSetup, namespace: str) -> Action:
    return Node(
        package='ros_gz_bridge',
        executable='parameter_bridge',
        namespace=namespace,
        arguments=list(setup.bridges),
        output='screen',
    )


def spawned(robot: Robot, setup: GazeboSetup, namespace: str) -> Node:
    flags = ('-x', '-y', '-z', '-R', '-P', '-Y')
    place = [word for flag, value in zip(flags, setup.pose, strict=True) for word in (flag, repr(value))]
    return Node(
        package='ros_gz_sim',
        executable='create',
        namespace=namespace,
        arguments=['-world', robot.name, '-name', robot.name, '-topic', 'robot_description', *place],
        output='screen',
    )


def spawner(name: str, namespace: str) -> Node:
    """Loads and activates a controller in Gazebo's controller manager."""
    return Node(
        package='controller_manager',
        executable='spawner',
        namespace=namespace,
        arguments=[name],
        output='screen',
    )


def first_torque(namespace: str) -> ExecuteProcess:
    """Ends when the first torque is published."""
    topic = '/'.join(['', *filter(None, namespace.split('/')), 'effort_controller/commands'])
    words = ['ros2', 'topic', 'echo', '--once', topic, 'std_msgs/msg/Float64MultiArray']
    return ExecuteProcess(cmd=words, output='log')


def controller(robot: Robot, setup: GazeboSetup, config: dict[str, str], guard: bool) -> Action:
    """Controller and guard from hardware.launch.py, with their torques remapped to effort_controller."""
    arguments = {
        'robot': str(setup.robot_file),
        'params_file': str(setup.nodes),
        'terms': config['terms'] or default_terms(robot),
        'use_sim_time': 'true',
        **{name: config[name] for name in ('namespace', 'guard', 'auto_activate', 'enclave')},
    }
    return GroupAction(
        [
            SetRemap('guarded/effort_commands' if guard else 'effort_commands', 'effort_controller/commands'),
            hardware_beside(__file__, arguments),
        ]
    )


def after(process: ExecuteProcess, *actions: Action) -> Action:
    """Start actions after a process has ended; shut down if it failed."""

    def go_on(event: ProcessExited, _: LaunchContext) -> list[Action]:
        if event.returncode == 0:
            return list(actions)
        return [Shutdown(reason=f'{event.process_name} failed; see its message above')]

    return RegisterEventHandler(OnProcessExit(target_action=process, on_exit=go_on))
