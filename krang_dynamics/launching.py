"""Common parts of the launch files, which alone import this module; it needs launch_ros."""

from collections.abc import Mapping
from pathlib import Path

from launch import LaunchContext
from launch.action import Action
from launch.actions import (
    DeclareLaunchArgument,
    EmitEvent,
    IncludeLaunchDescription,
    OpaqueFunction,
    RegisterEventHandler,
    UnregisterEventHandler,
)
from launch.conditions import IfCondition
from launch.event_handlers import OnProcessExit, OnProcessStart
from launch.events import matches_action
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import LifecycleNode
from launch_ros.event_handlers import OnStateTransition
from launch_ros.events.lifecycle import ChangeState
from lifecycle_msgs.msg import Transition

# After SIGINT a stop lasts until the robot is at rest, at most stop.limit (60 s) and its fading.
STOP_TIMEOUTS = {'sigterm_timeout': '70', 'sigkill_timeout': '10'}  # s, one after the other


def declared(arguments: Mapping[str, tuple[str | None, str]]) -> list[Action]:
    """Launch arguments from name: (default, description); an argument without default is required."""
    return [
        DeclareLaunchArgument(name, default_value=default, description=description)
        for name, (default, description) in arguments.items()
    ]


def is_true(context: LaunchContext, name: str) -> bool:
    """A launch argument as a boolean."""
    return bool(IfCondition(LaunchConfiguration(name)).evaluate(context))


def enclave_words(parent: str, name: str) -> list[str]:
    """Arguments that put a node into its SROS2 enclave below `parent`; none without a parent."""
    return ['--enclave', f'{parent.rstrip("/")}/{name}'] if parent else []


def failure(reason: str) -> Action:
    """Ends the launch with status 1, unless it is already shutting down."""

    def fail(context: LaunchContext) -> None:
        if not context.is_shutdown:
            raise RuntimeError(reason)

    return OpaqueFunction(function=fail)


def hardware_beside(launch_file: str, arguments: Mapping[str, str]) -> Action:
    """Includes hardware.launch.py from the same folder, which starts controller and guard."""
    path = Path(launch_file).with_name('hardware.launch.py')
    return IncludeLaunchDescription(
        PythonLaunchDescriptionSource(str(path)), launch_arguments=arguments.items()
    )


def transitions(controller: LifecycleNode, activate: bool) -> list[Action]:
    """Configure the controller once its process runs, then activate it; end the launch on failure."""

    def change(transition: int) -> Action:
        return EmitEvent(
            event=ChangeState(lifecycle_node_matcher=matches_action(controller), transition_id=transition)
        )

    failed = failure('torque_controller could not be configured; see its message above')
    ended_too_early = OnProcessExit(target_action=controller, on_exit=[failed])

    def configured(context: LaunchContext) -> list[Action]:
        if context.locals.event.goal_state != 'inactive':
            return [failed]
        activation = [change(Transition.TRANSITION_ACTIVATE)] if activate else []
        return [UnregisterEventHandler(ended_too_early), *activation]

    start = OnProcessStart(target_action=controller, on_start=[change(Transition.TRANSITION_CONFIGURE)])
    return [
        RegisterEventHandler(ended_too_early),
        RegisterEventHandler(start),
        RegisterEventHandler(after(controller, 'configuring', OpaqueFunction(function=configured))),
    ]


def after(controller: LifecycleNode, transition: str, action: Action) -> OnStateTransition:
    """Runs an action after the first 'configuring' or 'activating'; later ones are up to the operator."""
    return OnStateTransition(
        target_lifecycle_node=controller, start_state=transition, entities=[action], handle_once=True
    )
