"""Lifecycle, services, switches and reports of a controller, as a user at the command line meets them."""

import json
import time

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray
from nodes.harness import LATCHED, Controller, Topic
from nodes.monitor import Monitor
from std_msgs.msg import Bool, String

pytestmark = pytest.mark.processes

TURNS = 40  # of the robot, 0.2 s
QUICK = {'ramp_time': 0.1, 'stop__time': 0.2, 'stop__blind_time': 0.2, 'state_timeout': 0.8}


@pytest.fixture(scope='module')
def node(harness):
    """Started, and nothing more."""
    return Controller(
        harness, robot='planar_2r', terms=['gravity'], deadman__required=True, deadman__timeout=0.4, **QUICK
    )


@pytest.fixture
def controller(node, robot):
    """Active, disabled, and with a finger on the deadman."""
    robot.be_honest()
    robot.say = pressing(robot)
    if node.lifecycle == 'unconfigured':
        node.transition('configure')
    if node.lifecycle == 'inactive':
        node.transition('activate')
    robot.publish(Bool(data=False), 'emergency_stop')
    robot.says()
    node.rest()
    begin = time.time()
    yield node
    Monitor(node, robot.model).check(begin)
    assert node.is_alive
    assert 'Traceback' not in node.log


def pressing(robot, held=True):
    """Honest turns with a heartbeat of the deadman."""

    def turn():
        robot.publish(Bool(data=held), 'deadman')
        robot.honest()

    return turn


# -- lifecycle ----------------------------------------------------------------------------------------


def test_p5_a_node_goes_through_its_whole_life_without_a_command_before_enable(node, robot):
    robot.say = pressing(robot)
    assert node.lifecycle == 'unconfigured'
    for transition, state in [
        ('configure', 'inactive'),
        ('activate', 'active'),
        ('deactivate', 'inactive'),
        ('cleanup', 'unconfigured'),
        ('configure', 'inactive'),
    ]:
        assert node.transition(transition)
        assert node.lifecycle == state
        robot.says(TURNS)
    refused = node.enable()
    assert not refused.success
    assert refused.message
    assert node.mode == 'inactive'
    assert not node.commands.records
    assert not node.torques.records


def test_the_start_up_report_says_what_a_bring_up_engineer_asks(controller):
    log = controller.log.lower()
    for word in ('joint_1', 'joint_2', '100', '50', 'gravity', 'lower'):
        assert word in log, word


def test_the_state_is_latched_and_complete(controller, harness):
    late = Topic(harness, String, f'{controller.path}/state', LATCHED)
    harness.until(lambda: late.records, 'the latched state')
    assert {'mode', 'fault', 'payload', 'gravity', 'parameters'} <= set(controller.state)
    assert controller.state['mode'] == 'disabled'
    assert controller.state['fault'] is None
    assert np.allclose(controller.state['gravity'], [0.0, 0.0, -9.81])
    assert controller.state['parameters']['ramp_time'] == QUICK['ramp_time']


def test_modes_follow_one_another(controller):
    begin = time.time()
    controller.drive()
    controller.enable(False)
    controller.until_mode('disabled')
    modes = [json.loads(r.message.data)['mode'] for r in controller.states.since(begin)]
    changes = [mode for before, mode in zip([None, *modes], modes, strict=False) if mode != before]
    assert changes[-4:] == ['ramping', 'active', 'stopping', 'disabled']


def test_diagnostics_come_once_a_second(controller, harness):
    topic = Topic(harness, DiagnosticArray, '/diagnostics')
    harness.until(lambda: len(topic) >= 3, 'three diagnostics', 8.0)
    assert 0.7 <= np.diff([r.sent for r in topic.records[:3]]).mean() <= 1.5
    status = topic.last.message.status
    assert any('torque_controller' in s.name for s in status)
    assert any(s.values for s in status)


# -- enable and clear_fault ---------------------------------------------------------------------------


def test_enabling_twice_is_no_error_and_no_jump(controller, robot):
    controller.drive()
    assert controller.enable().success
    robot.says(TURNS)
    assert controller.mode == 'active'


def test_disabling_what_is_disabled_is_no_error(controller, robot):
    assert controller.enable(False).success
    assert controller.clear_fault().success
    robot.says()
    assert controller.mode == 'disabled'


def test_enable_without_states_is_refused_with_the_reason(controller, robot):
    robot.say = lambda: robot.publish(Bool(data=True), 'deadman')
    robot.says(5 * TURNS)
    refused = controller.enable()
    assert not refused.success
    assert 'joint_' in refused.message


def test_enable_is_refused_to_a_robot_that_is_out_of_bounds(controller, robot):
    robot.v = np.array([50.0, 0.0])
    robot.says()
    refused = controller.enable()
    assert not refused.success
    assert 'joint_1' in refused.message


def test_overspeed_is_a_fault_that_names_the_joint(controller, robot):
    controller.drive()
    robot.v = np.array([0.0, 50.0])
    controller.until_fault('velocity')
    assert 'joint_2' in controller.reason
    robot.v = np.zeros(2)
    controller.until_cleared()
    controller.drive()


# -- switches -----------------------------------------------------------------------------------------


def test_the_emergency_stop_stops_and_latches(controller, harness, robot):
    controller.drive()
    robot.publish(Bool(data=True), 'emergency_stop')
    controller.until_fault('emergency_stop')
    harness.until(lambda: not any(controller.commands.last.message.data), 'zero torque')
    robot.says(TURNS)
    assert not controller.enable().success
    assert not controller.clear_fault().success  # still pressed
    robot.publish(Bool(data=False), 'emergency_stop')
    robot.says()
    assert controller.fault == 'emergency_stop'  # let go, but latched
    controller.until_cleared()
    controller.drive()


def test_a_short_press_of_the_emergency_stop_latches_and_is_over_when_it_is_over(controller, robot):
    controller.drive()
    robot.publish(Bool(data=True), 'emergency_stop')
    robot.publish(Bool(data=False), 'emergency_stop')
    controller.until_fault('emergency_stop')
    robot.says(TURNS)
    controller.until_cleared()
    controller.drive()


@pytest.mark.parametrize('how', ['silent', 'released'])
def test_a_deadman_that_is_let_go_stops_and_latches(controller, robot, how):
    controller.drive()
    robot.say = robot.honest if how == 'silent' else pressing(robot, held=False)
    controller.until_fault('deadman')
    robot.says(TURNS)
    controller.until_cleared()
    refused = controller.enable()
    assert not refused.success
    assert 'deadman' in refused.message
    robot.say = pressing(robot)
    controller.drive()


# -- robots -------------------------------------------------------------------------------------------


def test_the_nodes_of_one_term_are_the_same_node(harness, robot):
    robot.be_honest()
    executables = ('gravity_compensation', 'computed_torque', 'wrench_to_torque')
    sign = {'wrench__tip__convention': 'applied_by_robot'}
    hear = [('joint_states', '/joint_states')]
    controllers = [
        Controller(harness, e, f'/{e}', hear, robot='planar_2r', **sign, **QUICK) for e in executables
    ]
    weight = robot.model.gravity_torque(robot.q)
    for controller, torque in zip(controllers, (weight, weight, 0.0 * weight), strict=True):
        controller.activate()
        controller.drive()
        harness.until(
            lambda c=controller, t=torque: np.allclose(c.commands.last.message.data, t, atol=1e-9),
            f'the torque {torque} N m of {controller.path}',
        )
        Monitor(controller, robot.model).check()
