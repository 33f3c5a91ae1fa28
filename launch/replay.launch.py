"""Replay of a bag to a running controller: the recorded inputs on their topics, with /clock.

The commands go to replay/effort_commands, to which no driver subscribes. The launch ends with the bag.
"""

from launch import LaunchContext, LaunchDescription
from launch.action import Action
from launch.actions import OpaqueFunction, RegisterEventHandler, Shutdown
from launch_ros.actions import LifecycleNode, Node

from krang_dynamics.launching import STOP_TIMEOUTS, after, declared, enclave_words, transitions

ARGUMENTS = {  # name: default, description; None: required
    'bag': (None, 'a rosbag2 folder, or a .mcap or .db3 file'),
    'robot': ('krang', 'shipped name, or path of a robot file (YAML) or URDF'),
    'rate': ('1.0', 'speed relative to real time'),
    'terms': ('gravity', 'control terms, separated by commas'),
    'namespace': ('', 'namespace of the controller; that of the recorded topics'),
    'enclave': ('', 'SROS2: parent of the enclaves of the nodes, for example /; empty: no security'),
}


def generate_launch_description() -> LaunchDescription:
    return LaunchDescription([*declared(ARGUMENTS), OpaqueFunction(function=start)])


def start(context: LaunchContext) -> list[Action]:
    """Starts the controller, and the player once the controller is active."""
    config = context.launch_configurations
    controller = LifecycleNode(
        package='krang_dynamics',
        executable='torque_controller',
        name='torque_controller',
        namespace=config['namespace'],
        parameters=[
            {
                'robot': config['robot'],
                'terms': config['terms'].split(','),
                'use_sim_time': True,
                'auto_enable': True,
                'flight_recorder': '',
            }
        ],
        ros_arguments=enclave_words(config['enclave'], 'torque_controller'),
        remappings=[('effort_commands', 'replay/effort_commands')],
        output='screen',
        on_exit=[OpaqueFunction(function=ended)],
        **STOP_TIMEOUTS,
    )
    player = Node(
        package='krang_dynamics',
        executable='krang',
        name='player',
        arguments=['replay', config['bag'], '--live', '--rate', config['rate']],
        ros_arguments=enclave_words(config['enclave'], 'player'),
        output='screen',
        on_exit=[OpaqueFunction(function=ended)],
    )
    play = RegisterEventHandler(after(controller, 'activating', player))
    return [*transitions(controller, activate=True), play, controller]


def ended(context: LaunchContext) -> list[Action]:
    """Shuts down when a process ends, with status 1 if it failed."""
    if context.is_shutdown:
        return []
    event = context.locals.event
    if event.returncode != 0:
        raise RuntimeError(f'{event.process_name} has failed; see its message above')
    return [Shutdown(reason=f'{event.process_name} has ended')]
