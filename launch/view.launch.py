"""The web page of a running robot; its address is printed."""

from launch import LaunchContext, LaunchDescription
from launch.action import Action
from launch.actions import OpaqueFunction
from launch_ros.actions import Node

from krang_dynamics.launching import declared, enclave_words, failure, is_true
from krang_dynamics.viewer.access import is_local

ARGUMENTS = {  # name: default, description
    'robot': ('krang', 'shipped name, or path of a robot file (YAML) or URDF'),
    'node': ('', 'the controller, if several are running; default: the only one'),
    'host': ('localhost', 'address to listen on; beyond localhost the page is read-only'),
    'port': ('8080', 'first port to try'),
    'allow_control': ('false', 'whether operators may control the robot also beyond localhost'),
    'enclave': ('', 'SROS2: parent of the enclaves operator and observer, for example /; empty: no security'),
}


def generate_launch_description() -> LaunchDescription:
    return LaunchDescription([*declared(ARGUMENTS), OpaqueFunction(function=start)])


def start(context: LaunchContext) -> list[Action]:
    """Starts `krang view`, as an observer where its page is read-only."""
    config = context.launch_configurations
    arguments = ['view', config['robot'], '--host', config['host'], '--port', config['port']]
    arguments += ['--node', config['node']] if config['node'] else []
    arguments += ['--allow-control'] if is_true(context, 'allow_control') else []
    may_command = is_local(config['host']) or is_true(context, 'allow_control')
    page = Node(
        package='krang_dynamics',
        executable='krang',
        arguments=arguments,
        ros_arguments=enclave_words(config['enclave'], 'operator' if may_command else 'observer'),
        output='screen',
        on_exit=[failure('the page has ended; see its message above')],
    )
    return [page]
