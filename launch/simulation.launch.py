"""A simulated robot, with the same controller and guard as on hardware.

In lock step, simulated time starts when the controller is active and advances with each command.
"""

from pathlib import Path

from launch import LaunchContext, LaunchDescription
from launch.action import Action
from launch.actions import GroupAction, OpaqueFunction
from launch_ros.actions import Node, SetParameter

from krang_dynamics.launching import declared, enclave_words, failure, hardware_beside, is_true
from krang_dynamics.robot.library import load_robot
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
    'enclave': ('', 'SROS2: parent of the enclaves of the nodes, for example /; empty: no security'),
}
INHERITED = ('robot', 'namespace', 'params_file', 'guard', 'auto_activate', 'enclave')


def generate_launch_description() -> LaunchDescription:
    return LaunchDescription([*declared(ARGUMENTS), OpaqueFunction(function=start)])


def start(context: LaunchContext) -> list[Action]:
    """The nodes of hardware.launch.py on simulated time, and the simulator."""
    config = context.launch_configurations
    shared = {'auto_enable': True, 'wheels_locked': is_true(context, 'wheels_locked')}
    nodes = GroupAction(
        [
            *(SetParameter(name, value) for name, value in shared.items()),  # a params_file overrides them
            controller(config),
            simulator(config, is_true(context, 'lock_step'), is_true(context, 'guard')),
        ]
    )
    return [nodes]


def controller(config: dict[str, str]) -> Action:
    arguments = {
        'terms': config['terms'] or default_terms(load_robot(config['robot'])),
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
