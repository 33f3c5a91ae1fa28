"""A recording for a running controller: its inputs on their topics, with /clock, as fast as asked for.

The commands go to replay/effort_commands, where no driver listens. The launch ends with the recording.
"""

from launch import LaunchContext, LaunchDescription
from launch.action import Action
from launch.actions import DeclareLaunchArgument, EmitEvent, OpaqueFunction, RegisterEventHandler, Shutdown
from launch.event_handlers import OnProcessStart
from launch.events import matches_action
from launch_ros.actions import LifecycleNode, Node
from launch_ros.event_handlers import OnStateTransition
from launch_ros.events.lifecycle import ChangeState
from lifecycle_msgs.msg import Transition

ARGUMENTS = {  # name: default, description; None: must be given
    'bag': (None, 'a rosbag2 folder, or a .mcap or .db3 file'),
    'robot': ('krang', 'shipped name, or path of a robot file (YAML) or URDF'),
    'rate': ('1.0', 'times real time'),
    'terms': ('gravity', 'whose sum is the torque, separated by commas'),
    'namespace': ('', 'of the controller: that of the recorded topics'),
}


def generate_launch_description() -> LaunchDescription:
    return LaunchDescription(
        [
            *(
                DeclareLaunchArgument(name, default_value=default, description=description)
                for name, (default, description) in ARGUMENTS.items()
            ),
            OpaqueFunction(function=start),
        ]
    )


def start(context: LaunchContext) -> list[Action]:
    """The controller, and the player once it is active."""
    asked = context.launch_configurations
    controller = LifecycleNode(
        package='krang_dynamics',
        executable='torque_controller',
        name='torque_controller',
        namespace=asked['namespace'],
        parameters=[
            {
                'robot': asked['robot'],
                'terms': asked['terms'].split(','),
                'use_sim_time': True,
                'auto_enable': True,
                'flight_recorder': '',
            }
        ],
        remappings=[('effort_commands', 'replay/effort_commands')],
        output='screen',
        sigterm_timeout='6',  # a stop takes up to 4 s
        sigkill_timeout='6',
        on_exit=[OpaqueFunction(function=ended)],
    )
    player = Node(
        package='krang_dynamics',
        executable='krang',
        name='player',
        arguments=['replay', asked['bag'], '--live', '--rate', asked['rate']],
        output='screen',
        on_exit=[OpaqueFunction(function=ended)],
    )
    return [*transitions(controller, player), controller]


def ended(context: LaunchContext) -> list[Action]:
    """The end of one is the end of all, with status 1 where it failed."""
    if context.is_shutdown:
        return []
    event = context.locals.event
    if event.returncode != 0:
        raise RuntimeError(f'{event.process_name} has failed; its message above says why')
    return [Shutdown(reason=f'{event.process_name} has ended')]


def transitions(controller: LifecycleNode, player: Node) -> list[Action]:
    """Configure, activate, play; where the controller cannot be configured, end."""

    def change(transition: int) -> EmitEvent:
        return EmitEvent(
            event=ChangeState(lifecycle_node_matcher=matches_action(controller), transition_id=transition)
        )

    def configured(context: LaunchContext) -> list[Action]:
        if context.locals.event.goal_state != 'inactive':
            raise RuntimeError('torque_controller could not be configured; its message above says why')
        return [change(Transition.TRANSITION_ACTIVATE)]

    def after(state: str, entities: list[Action]) -> RegisterEventHandler:
        return RegisterEventHandler(
            OnStateTransition(
                target_lifecycle_node=controller, start_state=state, entities=entities, handle_once=True
            )
        )

    return [
        RegisterEventHandler(
            OnProcessStart(target_action=controller, on_start=[change(Transition.TRANSITION_CONFIGURE)])
        ),
        after('configuring', [OpaqueFunction(function=configured)]),
        after('activating', [player]),
    ]
