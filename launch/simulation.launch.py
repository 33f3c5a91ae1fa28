"""A simulated robot, with the same controller and guard as on hardware, its description and its frames.

In lock step, simulated time starts when the controller is active and advances with each command.
"""

from pathlib import Path

from ament_index_python.packages import PackageNotFoundError, get_package_prefix
from launch import LaunchContext, LaunchDescription
from launch.action import Action
from launch.actions import GroupAction, LogInfo, OpaqueFunction
from launch_ros.actions import Node, SetParameter
from launch_ros.parameter_descriptions import ParameterValue

from krang_dynamics.launching import declared, enclave_words, failure, hardware_beside, is_true
from krang_dynamics.robot.library import load_robot, share
from krang_dynamics.robot.model import Robot
from krang_dynamics.simulation.simulated_robot import default_terms

ARGUMENTS = {  # name: default, description
    'robot': ('krang', 'shipped name, or path of a robot file (YAML) or URDF'),
    'engine': ('auto', 'physics engine: mujoco, pinocchio, or auto: mujoco if it can'),
    'lock_step': ('true', 'whether each step waits for the command to its state; false: real time'),
    'namespace': ('', 'namespace of all nodes, and so of all topics except /clock and /diagnostics'),
    'terms': ('', 'control terms, separated by commas; default: chosen for the robot'),
    'params_file': ('', 'parameter file (YAML) for all nodes, for parameters that are not launch arguments'),
    'wheels_locked': (
        'true',
        "whether Krang's base is driven; false: it swings freely",
    ),
    'guard': ('true', 'whether torque_guard runs between controller and simulator'),
    'auto_activate': (
        'true',
        'whether to activate the controller, which then enables itself',
    ),
    'rviz': ('false', 'whether to show the robot in RViz'),
    'enclave': ('', 'SROS2: parent of the enclaves of the nodes, for example /; empty: no security'),
}
INHERITED = ('robot', 'namespace', 'params_file', 'guard', 'auto_activate', 'enclave')


def generate_launch_description() -> LaunchDescription:
    return LaunchDescription([*declared(ARGUMENTS), OpaqueFunction(function=start)])


def start(context: LaunchContext) -> list[Action]:
    """The nodes of hardware.launch.py on simulated time, and the simulator."""
    config = context.launch_configurations
    robot = load_robot(config['robot'])
    wheels_locked = is_true(context, 'wheels_locked')
    shared = {'auto_enable': True, 'publish_terms': True, 'wheels_locked': wheels_locked}
    nodes = GroupAction(
        [
            *(SetParameter(name, value) for name, value in shared.items()),  # a params_file overrides them
            controller(config, robot),
            simulator(config, is_true(context, 'lock_step'), is_true(context, 'guard')),
        ]
    )
    return [nodes, *picture(config, robot, is_true(context, 'rviz'))]


def controller(config: dict[str, str], robot: Robot) -> Action:
    arguments = {
        'terms': config['terms'] or default_terms(robot),
        'use_sim_time': 'true',
        **{name: config[name] for name in INHERITED},
    }
    return hardware_beside(__file__, arguments)


def simulator(config: dict[str, str], lock_step: bool, guard: bool) -> Action:
    values = {
        'robot': config['robot'],
        'engine': config['engine'],
        'lock_step': lock_step,
        'publish_clock': True,
    }
    return Node(
        package='krang_dynamics',
        executable='simulator',
        name='simulator',
        namespace=config['namespace'],
        ros_arguments=enclave_words(config['enclave'], 'simulator'),
        parameters=[*([Path(config['params_file'])] if config['params_file'] else []), values],
        remappings=[('effort_commands', 'guarded/effort_commands')] if guard else [],
        on_exit=[failure('the simulator has ended; see its message above')],
        output='screen',
    )


def picture(config: dict[str, str], robot: Robot, rviz: bool) -> list[Action]:
    """robot_description and tf by robot_state_publisher, and RViz, where they are installed."""
    common = {'namespace': config['namespace'], 'output': 'screen'}
    description = ParameterValue(robot.urdf.text.decode(), value_type=str)
    frames = Node(
        package='robot_state_publisher',
        executable='robot_state_publisher',
        parameters=[{'robot_description': description, 'use_sim_time': True}],
        ros_arguments=enclave_words(config['enclave'], 'robot_state_publisher'),
        remappings=[('joint_states', 'simulator/truth')],  # all joints, by their names in the URDF
        **common,
    )
    view = Node(
        package='rviz2',
        executable='rviz2',
        arguments=['-d', str(share() / 'config' / 'rviz' / 'robot.rviz'), '-f', robot.urdf.root],
        parameters=[{'use_sim_time': True}],
        ros_arguments=enclave_words(config['enclave'], 'rviz'),
        **common,
    )
    return [installed(node) for node in (frames, *([view] if rviz else []))]


def installed(node: Node) -> Action:
    """The node, or one line if its package is not installed."""
    try:
        get_package_prefix(node.node_package)
    except PackageNotFoundError:
        package = str(node.node_package).replace('_', '-')
        return LogInfo(msg=f'{node.node_package} is not installed: apt install ros-jazzy-{package}')
    return node
