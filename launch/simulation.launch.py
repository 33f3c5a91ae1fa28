"""A simulated robot, with the same controller and guard as on hardware.

In lock step simulated time stands still until the controller is active, and goes on with each command.
"""

from pathlib import Path

from launch import LaunchContext, LaunchDescription
from launch.action import Action
from launch.actions import GroupAction, OpaqueFunction
from launch_ros.actions import Node, SetParameter

from krang_dynamics.launching import declared, failure, hardware_beside, is_true
from krang_dynamics.robot.library import load_robot
from krang_dynamics.simulation.simulated_robot import default_terms

ARGUMENTS = {  # name: default, description
    'robot': ('krang', 'shipped name, or path of a robot file (YAML) or URDF'),
    'engine': ('mujoco', 'what computes the motion: mujoco or pinocchio'),
    'lock_step': ('true', 'whether each state waits for its command; false: real time'),
    'namespace': ('', 'of all nodes, and so of all topics but /clock and /diagnostics'),
    'terms': ('', 'whose sum is the torque, separated by commas; default: what suits the robot'),
    'params_file': ('', 'parameters of the nodes (YAML) other than these arguments'),
    'wheels_locked': ('true', "whether Krang's base gets torque; without it the base swings freely"),
    'guard': ('true', 'whether torque_guard stands between controller and simulator'),
    'auto_activate': ('true', 'whether to activate the controller once it is configured; it enables itself'),
}


def generate_launch_description() -> LaunchDescription:
    return LaunchDescription([*declared(ARGUMENTS), OpaqueFunction(function=start)])


def start(context: LaunchContext) -> list[Action]:
    """The nodes of hardware.launch.py on simulated time, and what stands in for the robot."""
    asked = context.launch_configurations
    shared = {'auto_enable': True, 'wheels_locked': is_true(context, 'wheels_locked')}
    nodes = GroupAction(
        [
            *(SetParameter(name, value) for name, value in shared.items()),  # a params_file overrides them
            controller(asked),
            simulator(asked, is_true(context, 'lock_step'), is_true(context, 'guard')),
        ]
    )
    return [nodes]


def controller(asked: dict[str, str]) -> Action:
    arguments = {
        'terms': asked['terms'] or default_terms(load_robot(asked['robot'])),
        'use_sim_time': 'true',
        **{name: asked[name] for name in ('robot', 'namespace', 'params_file', 'guard', 'auto_activate')},
    }
    return hardware_beside(__file__, arguments)


def simulator(asked: dict[str, str], lock_step: bool, guard: bool) -> Action:
    values = {
        'robot': asked['robot'],
        'engine': asked['engine'],
        'lock_step': lock_step,
        'publish_clock': True,
    }
    return Node(
        package='krang_dynamics',
        executable='simulator',
        name='simulator',
        namespace=asked['namespace'],
        parameters=[*([Path(asked['params_file'])] if asked['params_file'] else []), values],
        remappings=[('effort_commands', 'guarded/effort_commands')] if guard else [],
        on_exit=[failure('the simulator has ended; its message above says why')],
        output='screen',
    )
