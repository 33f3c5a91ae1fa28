"""The torque controller of a real robot, and the guard between it and the drivers.

Nothing moves before `torque_controller/enable` is called. docs/drivers.md tells how drivers are attached.
"""

import json
from pathlib import Path

from launch import LaunchContext, LaunchDescription
from launch.action import Action
from launch.actions import OpaqueFunction
from launch_ros.actions import LifecycleNode, Node

from krang_dynamics.launching import PATIENCE, declared, failure, is_true, transitions

ARGUMENTS = {  # name: default, description
    'robot': ('krang', 'shipped name, or path of a robot file (YAML) or URDF; empty for robot_description'),
    'namespace': ('', 'of both nodes, and so of all topics but /diagnostics'),
    'params_file': ('', 'parameters of both nodes (YAML); arguments given here override it'),
    'terms': ('gravity', 'whose sum is the torque, separated by commas'),
    'auto_activate': ('false', 'whether to activate the controller once it is configured'),
    'guard': (
        'true',
        'whether torque_guard stands between controller and drivers, which then listen to '
        'guarded/effort_commands; without it they listen to effort_commands',
    ),
    'use_sim_time': ('false', 'whether time comes from /clock'),
    'log_level': ('info', 'debug, info, warn, error or fatal'),
}


def generate_launch_description() -> LaunchDescription:
    given: set[str] = set()
    return LaunchDescription(
        [
            OpaqueFunction(function=lambda context: given.update(context.launch_configurations)),
            *declared(ARGUMENTS),
            OpaqueFunction(function=start, args=[given]),
        ]
    )


def start(context: LaunchContext, given: set[str]) -> list[Action]:
    """Both nodes, and the transitions of the controller."""
    asked = context.launch_configurations
    values: dict[str, object] = {
        'robot': asked['robot'],
        'terms': asked['terms'].split(','),
        'use_sim_time': is_true(context, 'use_sim_time'),
    }
    # Arguments override the file, and the file overrides their defaults: ROS heeds what it is told for this
    # node after what it is told for any node, which is what -p does.
    defaults = [word for name in values for word in ('-p', f'{name}:={json.dumps(values[name])}')]
    overrides = {name: value for name, value in values.items() if name in given}
    common = {
        'package': 'krang_dynamics',
        'namespace': asked['namespace'],
        'ros_arguments': ['--log-level', asked['log_level'], *defaults],
        'parameters': [*params_file(asked['params_file']), *([overrides] if overrides else [])],
        'output': 'screen',
        **PATIENCE,
    }
    controller = LifecycleNode(executable='torque_controller', name='torque_controller', **common)
    actions = [*transitions(controller, is_true(context, 'auto_activate')), controller]
    if is_true(context, 'guard'):
        end = failure('torque_guard has ended, so no command reaches the drivers')
        actions.insert(0, Node(executable='torque_guard', name='torque_guard', on_exit=[end], **common))
    return actions


def params_file(path: str) -> list[Path]:
    """The file, if there is to be one; launch itself would go on without a file that it cannot find."""
    if path and not Path(path).is_file():
        raise FileNotFoundError(f'params_file: there is no file {path!r}')
    return [Path(path)] if path else []
