"""Parameters: declared, checked, set together or not at all, live where the interface says so."""

import time
from pathlib import Path

import numpy as np
import pytest
from nodes.harness import Controller, Topic
from nodes.monitor import Monitor
from sensor_msgs.msg import JointState

import krang_dynamics as kd

pytestmark = pytest.mark.processes

TURNS = 40  # of the robot, 0.2 s
QUICK = {'ramp_time': 0.1, 'stop__time': 0.2, 'stop__blind_time': 0.2, 'state_timeout': 0.8}
LIVE = {
    'gains__bandwidth': 12.0,
    'gains__damping_ratio': 0.9,
    'damping': [0.5, 0.5],
    'limits__effort': [90.0, 45.0],
    'limits__effort_rate': [500.0, 250.0],
    'limits__velocity': [4.0, 4.0],
    'limits__position_margin': [0.05, 0.05],
    'limits__following_error': [0.5, 0.5],
    'ramp_time': 0.3,
    'state_timeout': 0.75,
    'reference_timeout': 2.0,
    'stream__velocity': [1.0, 2.0],
    'stream__acceleration': [4.0, 5.0],
    'wrench_timeout': 0.2,
    'deadman__timeout': 0.4,
    'wrench__tip__max_force': 50.0,
    'wrench__tip__max_moment': 20.0,
    'payload__tip__mass': 0.5,
    'payload__tip__com': [0.0, 0.0, 0.05],
    'payload__tip__inertia': [0.01, 0.01, 0.01, 0.0, 0.0, 0.0],
    'gravity': [0.0, 0.0, -9.7],
    'observer__gain': 20.0,
    'observer__contact': 5.0,
    'observer__collision': 50.0,
    'observer__reaction': 'none',
}
FIXED = {
    'robot': 'krang',
    'terms': ['gravity'],
    'command_joints': ['joint_2', 'joint_1'],
    'command_unit': 'current',
    'auto_enable': True,
    'stop__policy': 'zero',
    'stop__time': 1.0,
    'stop__blind_time': 1.0,
    'missing_velocity': 'zero',
    'wrench__tip__convention': 'applied_on_robot',
    'hardware_compensates_gravity': True,
    'executor': 'single_threaded',
    'busy_wait': True,
    'thread_priority': 10,
    'lock_memory': True,
    'publish_terms': True,
}
OTHERS = [
    'robot_description',
    'gains.kp',
    'gains.kd',
    'stop.rate',
    'deadman.required',
    'cpu_affinity',
    'use_sim_time',
]


@pytest.fixture(scope='module')
def nodes(harness):
    """All nodes of this file, started together; each is configured by the test that needs it."""
    hear = [('joint_states', '/joint_states')]
    every = ['gravity', 'damping', 'computed_torque', 'wrench', 'observer']
    sign = {'wrench__tip__convention': 'applied_by_robot'}
    driver = {
        'command_joints': ['joint_2', 'joint_1'],
        'auto_enable': True,
        'publish_terms': True,
        'missing_velocity': 'zero',
    }
    arm = {'robot': 'planar_2r', **QUICK}
    return {
        'main': Controller(harness, namespace='/main', remap=hear, terms=every, **sign, **arm),
        'draft': Controller(harness, namespace='/draft', remap=hear, terms=['gravity'], **arm),
        'driver': Controller(harness, namespace='/driver', remap=hear, terms=['gravity'], **driver, **arm),
        'hardware': Controller(
            harness, 'gravity_compensation', '/hardware', hear, hardware_compensates_gravity=True, **arm
        ),
    }


@pytest.fixture(scope='module')
def node(nodes):
    return nodes['main'].activate()


@pytest.fixture
def controller(node, robot):
    """Active, driving or not."""
    robot.be_honest()
    robot.says(5)
    begin = time.time()
    yield node
    Monitor(node, robot.model).check(begin)
    assert 'Traceback' not in node.log


@pytest.fixture
def driving(controller, robot, harness):
    """Past its ramp, and holding the robot's weight."""
    if controller.mode != 'active':
        controller.rest()
        controller.drive()
    until_torque(harness, controller, robot.model.gravity_torque(robot.q))
    return controller


def newest(controller):
    last = controller.commands.last
    return np.array(last.message.data) if last else np.full(2, np.nan)


def until_torque(harness, controller, expected):
    harness.until(
        lambda: np.allclose(newest(controller), expected, atol=1e-6),
        f'the torque {expected} N m',
    )


def refused(result):
    assert not result.successful
    assert result.reason
    return result.reason


# -- declared -----------------------------------------------------------------------------------------


def test_every_parameter_is_declared_with_a_description_and_numbers_with_a_range(controller):
    names = [name.replace('__', '.') for name in (*LIVE, *FIXED)] + OTHERS
    assert set(names) <= controller.parameter_names()
    for descriptor in controller.describe(set(names) - {'use_sim_time'}):
        assert descriptor.description, descriptor.name
    scalars = [
        'ramp_time',
        'stop.time',
        'stop.blind_time',
        'state_timeout',
        'wrench_timeout',
        'deadman.timeout',
    ]
    for descriptor in controller.describe(scalars):
        assert descriptor.floating_point_range, descriptor.name


def test_defaults_are_those_of_the_interface(nodes):
    node = nodes['driver']
    assert node.get('wrench_timeout') == 0.1
    assert node.get('deadman__timeout') == 0.2
    assert node.get('deadman__required') is False
    assert node.get('use_sim_time') is False
    assert node.get('hardware_compensates_gravity') is False


# -- live ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize('name', LIVE)
def test_a_live_parameter_changes_while_the_node_drives(driving, harness, robot, name):
    before = driving.get(name)
    result = driving.set(**{name: LIVE[name]})
    assert result.successful, result.reason
    value = driving.get(name)
    assert np.all(np.asarray(value) == np.asarray(LIVE[name]))
    robot.says()
    assert driving.mode == 'active'
    dotted = name.replace('__', '.')
    harness.until(
        lambda: np.all(np.asarray(driving.state['parameters'][dotted]) == np.asarray(LIVE[name])),
        f'{dotted} in ~/state',
    )
    if before is not None:
        result = driving.set(**{name: before})
        assert result.successful, result.reason


@pytest.mark.parametrize('name', FIXED)
def test_a_parameter_that_is_read_at_configure_is_refused_while_active(controller, name):
    before = controller.get(name)
    reason = refused(controller.set(**{name: FIXED[name]}))
    assert name.replace('__', '.') in reason
    assert controller.get(name) == before


@pytest.mark.parametrize(
    ('name', 'value'),
    [
        ('ramp_time', -1.0),
        ('ramp_time', np.nan),
        ('ramp_time', 'soon'),
        ('state_timeout', 0.0),
        ('state_timeout', np.inf),
        ('gains__bandwidth', -1.0),
        ('limits__effort', [-1.0, 1.0]),
        ('limits__effort', [1.0, 1.0, 1.0]),
        ('limits__effort', [np.nan, 1.0]),
        ('limits__effort_rate', [np.inf, -np.inf]),
        ('limits__velocity', [1.0, np.nan]),
        ('damping', [-1.0, 0.0]),
        ('gravity', [0.0, 0.0]),
        ('gravity', [0.0, np.nan, 0.0]),
        ('gravity', [0.0, 0.0, -500.0]),
        ('payload__tip__mass', -1.0),
        ('payload__tip__mass', np.inf),
        ('payload__tip__com', [0.0]),
        ('payload__tip__inertia', [1.0]),
        ('wrench__tip__max_force', -1.0),
        ('observer__reaction', 'dance'),
    ],
)
def test_p1_a_value_that_makes_no_sense_is_refused_with_the_reason(driving, robot, name, value):
    before, torque = driving.get(name), newest(driving)
    result = driving.set(**{name: value})
    if result.successful and before is not None:
        driving.set(**{name: before})  # the next test is not to suffer
    refused(result)
    assert np.array_equal(driving.get(name), before)
    robot.says()
    assert driving.mode == 'active'
    assert np.array_equal(newest(driving), torque)


def test_parameters_are_set_together_or_not_at_all(driving, robot):
    names = ('ramp_time', 'limits__effort', 'gravity')
    before = [driving.get(name) for name in names]
    refused(driving.set(ramp_time=0.4, gravity=[0.0, 0.0, -1.62], limits__effort=[5.0, -5.0]))
    for name, value in zip(names, before, strict=True):
        assert np.array_equal(driving.get(name), value)
    robot.says(TURNS)
    assert np.allclose(newest(driving), robot.model.gravity_torque(robot.q), atol=1e-6)
    assert driving.set(ramp_time=0.4, limits__effort=[60.0, 30.0]).successful
    assert driving.get('ramp_time') == 0.4
    assert list(driving.get('limits__effort')) == [60.0, 30.0]
    assert driving.set(ramp_time=before[0], limits__effort=before[1]).successful


def test_an_unknown_parameter_is_refused(controller):
    refused(controller.set(limits__courage=1.0))


# -- what they do -------------------------------------------------------------------------------------


def test_a_payload_adds_its_weight_and_clearing_it_restores_every_bit(driving, harness, robot):
    bare = newest(driving)
    assert driving.set(payload__tip__mass=2.0, payload__tip__com=[0.1, 0.0, 0.0]).successful
    loaded = robot.model.with_payload('tip', 2.0, [0.1, 0.0, 0.0], np.zeros((3, 3)))
    until_torque(harness, driving, loaded.gravity_torque(robot.q))
    harness.until(lambda: '2' in str(driving.state['payload']), 'the payload in ~/state')
    assert driving.set(payload__tip__mass=0.0, payload__tip__com=[0.0, 0.0, 0.0]).successful
    until_torque(harness, driving, bare)
    robot.says(TURNS)
    assert np.array_equal(newest(driving), bare)


def test_gravity_may_lean(driving, harness, robot):
    leaning = [2.0, 0.0, -9.6]
    assert driving.set(gravity=leaning).successful
    until_torque(harness, driving, kd.load_robot('planar_2r', gravity=leaning).gravity_torque(robot.q))
    assert np.allclose(driving.state['gravity'], leaning)
    assert driving.set(gravity=[0.0, 0.0, -9.81]).successful
    until_torque(harness, driving, robot.model.gravity_torque(robot.q))


def test_damping_acts_against_the_speed(driving, harness, robot):
    assert driving.set(damping=[2.0, 1.0], gains__kp=[0.0, 0.0], gains__kd=[0.0, 0.0]).successful
    robot.v = np.array([0.5, -1.0])
    model = robot.model
    free = model.inverse_dynamics(robot.q, robot.v, 0 * robot.v)
    until_torque(harness, driving, free - [1.0, -1.0])
    robot.v = np.zeros(2)
    robot.says()


# -- configure refuses --------------------------------------------------------------------------------


@pytest.fixture
def draft(nodes):
    """A node that is never activated: what configure says to its parameters."""
    return nodes['draft']


SANE = {
    'robot': 'planar_2r',
    'terms': ['gravity'],
    'command_joints': ['joint_1', 'joint_2'],
    'command_unit': 'torque',
    'stop__policy': 'lower',
    'missing_velocity': 'error',
}


@pytest.mark.parametrize(
    ('name', 'value', 'word'),
    [
        ('robot', 'crane', 'crane'),
        ('terms', ['gravity', 'magic'], 'magic'),
        ('terms', ['gravity', 'wrench'], 'convention'),
        ('command_joints', ['joint_1', 'joint_7'], 'joint_7'),
        ('command_joints', ['joint_1', 'joint_1'], 'joint_1'),
        ('command_unit', 'horsepower', 'horsepower'),
        ('stop__policy', 'panic', 'panic'),
        ('missing_velocity', 'guess', 'guess'),
    ],
)
def test_configure_refuses_what_cannot_work_and_says_why(draft, name, value, word):
    """Where the parameter itself is not refused."""
    length = len(draft.log)
    result = draft.set(**{name: value})
    if result.successful:
        assert not draft.transition('configure')
        assert draft.lifecycle == 'unconfigured'
        draft.harness.until(lambda: word in draft.log[length:], f'{word!r} in the log')
        assert draft.set(**{name: SANE[name]}).successful
    else:
        assert word in result.reason
    assert 'Traceback' not in draft.log


def test_configure_works_once_the_parameters_are_right(draft):
    assert draft.set(**SANE).successful
    assert draft.transition('configure')
    assert draft.transition('cleanup')


def test_a_urdf_will_do_for_a_robot(draft, robot):
    text = Path(robot.model.config.urdf).read_text()
    assert draft.set(**{**SANE, 'robot': '', 'robot_description': text}).successful
    assert draft.transition('configure'), draft.log[-1000:]
    assert draft.transition('cleanup')


# -- the driver's order, and starting by itself -------------------------------------------------------


def test_commands_come_in_the_drivers_order_and_auto_enable_needs_no_call(nodes, robot, harness):
    """And missing_velocity is zero: a driver without velocities will do."""
    controller = nodes['driver']
    term = Topic(harness, JointState, f'{controller.path}/terms/gravity')
    weight = robot.model.gravity_torque(robot.q)
    robot.say = lambda: robot.publish(robot.joint_state(velocity=[]))
    controller.activate()
    controller.until_mode('active')
    # Activation is the request; the state that reports it is sent at once.
    activated = next(r.sent for r in controller.states.records if '"disabled"' in r.message.data)
    controller.enabled_at.append(np.nextafter(activated, np.inf))
    until_torque(harness, controller, weight[::-1])
    message = term.next('the term').message
    assert list(message.name) == list(robot.model.joint_names)
    assert np.allclose(message.effort, weight)
    Monitor(controller, robot.model, ['joint_2', 'joint_1']).check()
    assert controller.transition('deactivate')


def test_hardware_that_compensates_gravity_is_said_aloud_and_gets_none(nodes, robot, harness):
    controller = nodes['hardware']
    robot.be_honest()
    robot.effort = np.array([1.0, 1.0])
    controller.activate()
    robot.says()
    controller.drive()
    until_torque(harness, controller, np.zeros(2))
    assert 'hardware' in controller.log.lower()
    Monitor(controller, robot.model).check()
