"""The torque controller of a real robot, and the guard between it and the drivers.

Nothing moves before `torque_controller/enable` is called. docs/drivers.md tells how drivers are attached.
"""

import json
from pathlib import Path

from launch import LaunchContext, LaunchDescription
from launch.action import Action
from launch.actions import (
    DeclareLaunchArgument,
    EmitEvent,
    OpaqueFunction,
    RegisterEventHandler,
    UnregisterEventHandler,
)
from launch.conditions import IfCondition
from launch.event_handlers import OnProcessExit, OnProcessStart
from launch.events import matches_action
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import LifecycleNode, Node
from launch_ros.event_handlers import OnStateTransition
from launch_ros.events.lifecycle import ChangeState
from lifecycle_msgs.msg import Transition

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

# A robot that is let down needs up to 4 s after ^C, and the guard may begin where the controller failed.
PATIENCE = {'sigterm_timeout': '6', 'sigkill_timeout': '6'}  # s, one after the other


def generate_launch_description() -> LaunchDescription:
    given: set[str] = set()
    return LaunchDescription(
        [
            OpaqueFunction(function=lambda context: given.update(context.launch_configurations)),
            *(
                DeclareLaunchArgument(name, default_value=default, description=description)
                for name, (default, description) in ARGUMENTS.items()
            ),
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


def is_true(context: LaunchContext, name: str) -> bool:
    return IfCondition(LaunchConfiguration(name)).evaluate(context)


def failure(reason: str) -> OpaqueFunction:
    """Ends the launch with status 1, unless it is ending anyway."""

    def fail(context: LaunchContext) -> None:
        if not context.is_shutdown:
            raise RuntimeError(reason)

    return OpaqueFunction(function=fail)


def transitions(controller: LifecycleNode, activate: bool) -> list[Action]:
    """Configure once the process runs, then activate; where it cannot be configured, end."""

    def change(transition: int) -> EmitEvent:
        return EmitEvent(
            event=ChangeState(lifecycle_node_matcher=matches_action(controller), transition_id=transition)
        )

    failed = failure('torque_controller could not be configured; its message above says why')
    ended_too_early = OnProcessExit(target_action=controller, on_exit=[failed])

    def configured(context: LaunchContext) -> list[Action]:
        if context.locals.event.goal_state != 'inactive':
            return [failed]
        activation = [change(Transition.TRANSITION_ACTIVATE)] if activate else []
        return [UnregisterEventHandler(ended_too_early), *activation]

    return [
        RegisterEventHandler(ended_too_early),
        RegisterEventHandler(
            OnProcessStart(target_action=controller, on_start=[change(Transition.TRANSITION_CONFIGURE)])
        ),
        RegisterEventHandler(
            OnStateTransition(
                target_lifecycle_node=controller,
                start_state='configuring',
                entities=[OpaqueFunction(function=configured)],
                handle_once=True,  # later transitions are the operator's
            )
        ),
    ]
