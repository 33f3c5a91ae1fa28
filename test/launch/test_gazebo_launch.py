"""gazebo.launch.py: which processes it starts, in which order and with which parameters."""

from pathlib import Path

import pytest
import yaml
from launching import Loaded, defaults, import_launch, launch_file, needs_launch

import krang_dynamics as kd

GAZEBO = launch_file('gazebo')


def test_it_declares_its_arguments_with_defaults_and_descriptions():
    assert defaults(GAZEBO) == {
        'robot': 'krang',
        'namespace': '',
        'terms': '',
        'wheels_locked': 'true',
        'headless': 'false',
        'guard': 'true',
        'auto_activate': 'true',
        'enclave': '',
    }


# -- loaded --------------------------------------------------------------------------------------------


class LoadedGazebo(Loaded):
    """The launch file with arguments, as far as it can be unfolded where there is no Gazebo."""

    def __init__(self, **arguments):
        super().__init__(GAZEBO, leave=is_gazebo, **arguments)

    def after(self, process, returncode=0):
        """What the end of a process leads to."""
        event = self.launch.events.process.ProcessExited(
            action=process, name='it', cmd=[], cwd=None, env=None, pid=1, returncode=returncode
        )
        for entity in self.entities:
            handler = getattr(entity, 'event_handler', None)
            if handler is not None and handler.matches(event):
                return list(self.unfold(handler.handle(event, self.context) or ()))
        return []

    def waiting(self, entities):
        """The process among entities that waits for the first torque."""
        kind = self.launch.actions.ExecuteProcess
        (process,) = (entity for entity in entities if type(entity) is kind)
        return process


def is_gazebo(entity):
    return 'gz_args' in dict(getattr(entity, 'launch_arguments', ()))


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """Where launch puts its logs, and the launch file what it generates."""
    config = import_launch()[0].logging.launch_config
    config.log_dir = str(tmp_path_factory.mktemp('log'))
    return Path(config.log_dir) / 'gazebo'


@pytest.fixture
def load(folder):
    return LoadedGazebo


@pytest.fixture
def told():
    """A real node with a command line: its name, its parameters, and its way of naming topics."""
    import rclpy

    context, nodes = rclpy.Context(), []
    context.init()

    def node_told(words):
        node = rclpy.create_node(
            'unnamed',
            context=context,
            cli_args=words[words.index('--ros-args') :],
            use_global_arguments=False,
            automatically_declare_parameters_from_overrides=True,
        )
        nodes.append(node)
        return node

    yield node_told
    for node in nodes:
        node.destroy_node()
    context.try_shutdown()


def value(node, name):
    return node.get_parameter(name).value


@needs_launch
def test_gazebo_gets_the_robot_s_world_and_runs_at_once(load, folder):
    loaded = load(headless='true')
    (gazebo,) = filter(is_gazebo, loaded.entities)
    world = folder / 'world.sdf'
    assert dict(gazebo.launch_arguments) == {'gz_args': f'-r -s {world}', 'on_exit_shutdown': 'true'}
    assert world.is_file()


@needs_launch
def test_the_description_is_the_generated_urdf_on_simulated_time(load, told, folder):
    publisher = load().nodes()['robot_state_publisher']
    node = told(publisher.words)
    assert value(node, 'robot_description') == (folder / 'gazebo.urdf').read_text()
    assert value(node, 'use_sim_time') is True


@needs_launch
@pytest.mark.parametrize(
    ('robot', 'topics'), [('krang', ['/clock', '/lab/imu']), ('otbot', ['/clock', '/lab/odom'])]
)
def test_clock_and_sensors_are_bridged_into_ros(load, robot, topics):
    bridge = load(robot=robot, namespace='lab').nodes()['parameter_bridge']
    words = bridge.words[: bridge.words.index('--ros-args')]
    assert [word.split('@')[0] for word in words] == topics
    assert all('[gz.msgs.' in word for word in words)  # from Gazebo to ROS, never back


@needs_launch
def test_otbot_is_put_on_its_wheels(load):
    words = load(robot='otbot').nodes()['create'].words
    assert words[words.index('-world') + 1] == words[words.index('-name') + 1] == 'otbot'
    assert float(words[words.index('-z') + 1]) == pytest.approx(0.1)


@needs_launch
def test_each_step_waits_for_the_one_before(load):
    loaded = load()
    assert set(loaded.nodes()) == {'robot_state_publisher', 'parameter_bridge', 'create'}
    states = loaded.nodes(loaded.after(loaded.nodes()['create']))['spawner']
    assert states.words[0] == 'joint_state_broadcaster'
    started = loaded.after(states)
    assert set(loaded.nodes(started)) == {'torque_controller', 'torque_guard'}
    waiting = loaded.waiting(started)
    words = [loaded.launch.utilities.perform_substitutions(loaded.context, w) for w in waiting.cmd]
    assert words[-2:] == ['/effort_controller/commands', 'std_msgs/msg/Float64MultiArray']
    torques = loaded.nodes(loaded.after(waiting))['spawner']
    assert torques.words[0] == 'effort_controller'
    assert loaded.after(torques) == []


@needs_launch
def test_where_a_step_fails_all_ends(load):
    loaded = load()
    (end,) = loaded.after(loaded.nodes()['create'], returncode=1)
    assert isinstance(end, loaded.launch.actions.Shutdown)


def controllers(loaded):
    """The nodes that start after the joint states."""
    states = loaded.nodes(loaded.after(loaded.nodes()['create']))['spawner']
    return loaded.nodes(loaded.after(states))


@needs_launch
def test_controller_and_guard_take_gazebo_s_robot_in_newton_metres(load, told, folder):
    nodes = controllers(load(namespace='lab', terms='gravity,damping'))
    joints = yaml.safe_load((folder / 'controllers.yaml').read_text())
    joints = joints['/**/effort_controller']['ros__parameters']['joints']
    for name, action in nodes.items():
        assert action.node_package == 'krang_dynamics'
        node = told(action.words)
        assert node.get_fully_qualified_name() == f'/lab/{name}'
        assert kd.load_robot(value(node, 'robot')).name == 'krang'
        assert value(node, 'command_unit') == 'torque'
        assert value(node, 'command_joints') == joints
        assert value(node, 'use_sim_time') is True
        assert value(node, 'wheels_locked') is True
    controller = told(nodes['torque_controller'].words)
    assert value(controller, 'terms') == ['gravity', 'damping']
    assert value(controller, 'auto_enable') is True


@needs_launch
def test_torques_reach_gazebo_through_the_guard(load, told):
    nodes = controllers(load(namespace='lab'))
    controller, guard = (told(nodes[name].words) for name in ('torque_controller', 'torque_guard'))
    assert controller.resolve_topic_name('effort_commands') == '/lab/effort_commands'
    assert guard.resolve_topic_name('effort_commands') == '/lab/effort_commands'
    assert guard.resolve_topic_name('guarded/effort_commands') == '/lab/effort_controller/commands'


@needs_launch
def test_without_the_guard_they_go_straight_there(load, told):
    nodes = controllers(load(guard='false'))
    assert set(nodes) == {'torque_controller'}
    node = told(nodes['torque_controller'].words)
    assert node.resolve_topic_name('effort_commands') == '/effort_controller/commands'


@needs_launch
@pytest.mark.parametrize(
    ('robot', 'terms'),
    [
        ('krang', ['gravity', 'friction', 'computed_torque']),
        ('otbot', ['rolling_base']),
        ('pendubot', ['balance']),
    ],
)
def test_terms_suit_the_robot_unless_given(load, told, robot, terms):
    node = told(controllers(load(robot=robot))['torque_controller'].words)
    assert value(node, 'terms') == terms
