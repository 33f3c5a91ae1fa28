"""The torque controller of a real robot, and the guard between it and the drivers.

Nothing moves before `torque_controller/enable` is called. docs/drivers.md explains how to connect drivers.
"""

import json
from pathlib import Path

from launch import LaunchContext, LaunchDescription
from launch.action import Action
from launch.actions import OpaqueFunction
from launch_ros.actions import LifecycleNode, Node

from krang_dynamics.launching import STOP_TIMEOUTS, declared, enclave_words, failure, is_true, transitions

ARGUMENTS = {  # name: default, description
    'robot': ('krang', 'shipped name, or path of a robot file (YAML) or URDF; empty: use robot_description'),
    'namespace': ('', 'namespace of both nodes, and so of all topics except /diagnostics'),
    'params_file': ('', 'parameter file (YAML) for both nodes; launch arguments override it'),
    'terms': ('gravity', 'control terms, separated by commas'),
    'auto_activate': ('false', 'whether to activate the controller once it is configured'),
    'guard': (
        'true',
        'whether torque_guard runs between controller and drivers, which then subscribe to '
        'guarded/effort_commands instead of effort_commands',
    ),
    'use_sim_time': ('false', 'whether to use the time of /clock'),
    'log_level': ('info', 'debug, info, warn, error or fatal'),
    'enclave': ('', 'SROS2: parent of the enclaves of the nodes, for example /; empty: no security'),
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
    config = context.launch_configurations
    values: dict[str, object] = {
        'robot': config['robot'],
        'terms': config['terms'].split(','),
        'guard': 'torque_guard' if is_true(context, 'guard') else '',
        'use_sim_time': is_true(context, 'use_sim_time'),
    }
    # Arguments override the file, and the file overrides the arguments' defaults: in ROS a value for a named
    # node overrides a value for all nodes, and -p sets it for all nodes.
    defaults = [word for name in values for word in ('-p', f'{name}:={json.dumps(values[name])}')]
    overrides = {name: value for name, value in values.items() if name in given}
    common = {
        'package': 'krang_dynamics',
        'namespace': config['namespace'],
        'parameters': [*params_file(config['params_file']), *([overrides] if overrides else [])],
        'output': 'screen',
        **STOP_TIMEOUTS,
    }
    words = ['--log-level', config['log_level'], *defaults]

    def named(name: str) -> dict[str, object]:
        ros_arguments = [*words, *enclave_words(config['enclave'], name)]
        return {'executable': name, 'name': name, 'ros_arguments': ros_arguments, **common}

    controller = LifecycleNode(**named('torque_controller'))
    actions = [*transitions(controller, is_true(context, 'auto_activate')), controller]
    if is_true(context, 'guard'):
        end = failure('torque_guard has ended, so the drivers receive no commands')
        actions.insert(0, Node(on_exit=[end], **named('torque_guard')))
    return actions


def params_file(path: str) -> list[Path]:
    """The parameter file, if one is given. It is checked here because launch ignores a missing file."""
    if path and not Path(path).is_file():
        raise FileNotFoundError(f'params_file: there is no file {path!r}')
    return [Path(path)] if path else []
