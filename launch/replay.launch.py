"""A recording for a running controller: its inputs on their topics, with /clock, as fast as asked for.

The commands go to replay/effort_commands, where no driver listens. The launch ends with the recording.
"""

from launch import LaunchContext, LaunchDescription
from launch.action import Action
from launch.actions import OpaqueFunction, RegisterEventHandler, Shutdown
from launch_ros.actions import LifecycleNode, Node

from krang_dynamics.launching import PATIENCE, after, declared, transitions

ARGUMENTS = {  # name: default, description; None: must be given
    'bag': (None, 'a rosbag2 folder, or a .mcap or .db3 file'),
    'robot': ('krang', 'shipped name, or path of a robot file (YAML) or URDF'),
    'rate': ('1.0', 'times real time'),
    'terms': ('gravity', 'whose sum is the torque, separated by commas'),
    'namespace': ('', 'of the controller: that of the recorded topics'),
}


def generate_launch_description() -> LaunchDescription:
    return LaunchDescription([*declared(ARGUMENTS), OpaqueFunction(function=start)])


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
        on_exit=[OpaqueFunction(function=ended)],
        **PATIENCE,
    )
    player = Node(
        package='krang_dynamics',
        executable='krang',
        name='player',
        arguments=['replay', asked['bag'], '--live', '--rate', asked['rate']],
        output='screen',
        on_exit=[OpaqueFunction(function=ended)],
    )
    play = RegisterEventHandler(after(controller, 'activating', player))
    return [*transitions(controller, activate=True), play, controller]


def ended(context: LaunchContext) -> list[Action]:
    """The end of one is the end of all, with status 1 where it failed."""
    if context.is_shutdown:
        return []
    event = context.locals.event
    if event.returncode != 0:
        raise RuntimeError(f'{event.process_name} has failed; its message above says why')
    return [Shutdown(reason=f'{event.process_name} has ended')]
