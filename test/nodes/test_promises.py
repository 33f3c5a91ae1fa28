"""P1 to P9 and P12, kept by a real process on real topics; P10 and P11 have files of their own."""

import signal
import time

import numpy as np
import pytest
from nodes.fake_robot import FakeRobot
from nodes.harness import Controller
from nodes.monitor import Monitor
from std_msgs.msg import Float64MultiArray

pytestmark = pytest.mark.processes

STATE_TIMEOUT = 0.4  # more than the default, for loaded machines [s]
LONGEST_STOP = 4.0  # P8 [s]
QUICK = {'ramp_time': 0.2, 'stop__time': 0.3, 'stop__blind_time': 0.2, 'state_timeout': STATE_TIMEOUT}
INVALID = [np.nan, np.inf, -np.inf, 1e308]
SIGNALS = {'/sigint': signal.SIGINT, '/sigterm': signal.SIGTERM}
TURNS = 50  # of the robot: long enough that a node would have shown what it does


@pytest.fixture(scope='module')
def controllers(harness):
    """All controllers of this file by namespace, started together, which is faster."""
    main = Controller(harness, robot='planar_2r', terms=['gravity'], **QUICK)
    gravity, arm = 'gravity_compensation', {'robot': 'planar_2r'}
    remap = [('joint_states', '/arms/joint_states')]
    default = {'ramp_time': 0.1, 'state_timeout': STATE_TIMEOUT}
    hold = {**QUICK, 'stop__policy': 'hold', 'stop__time': 1.5}
    return {
        '': main,
        **{name: Controller(harness, gravity, name, remap, **arm, **default) for name in SIGNALS},
        **{f'/idle{name}': Controller(harness, namespace=f'/idle{name}', **arm) for name in SIGNALS},
        '/held': Controller(harness, gravity, '/held', **arm, **hold),
        '/pendubot': Controller(harness, namespace='/pendubot', robot='pendubot', **default),
    }


@pytest.fixture(scope='module')
def shared(harness, controllers):
    """One robot, and one controller that most tests use; each test finds it disabled without a fault."""
    robot, controller = FakeRobot(harness), controllers['']
    assert controller.lifecycle == 'unconfigured'
    return robot, controller.activate(), Monitor(controller, robot.model)


@pytest.fixture
def robot(shared):
    return shared[0]


@pytest.fixture
def controller(shared):
    """Active, disabled and without a fault; P1, P2, P3, P5 and P9 are checked at the end."""
    robot, controller, monitor = shared
    robot.be_honest()
    robot.says()
    controller.rest()
    begin = time.time()
    yield controller
    robot.be_honest()
    monitor.check(begin)
    assert controller.is_alive
    assert 'Traceback' not in controller.log


@pytest.fixture
def driving(controller, robot, harness):
    """Past its ramp, and sending the torque of the robot's weight."""
    controller.drive()
    until_weight(harness, controller, robot)
    return controller


def weight(robot):
    return robot.model.gravity_torque(robot.q)


def sent(controller):
    """The newest command [N m]."""
    last = controller.commands.last
    return np.array(last.message.data) if last else np.full(2, np.nan)


def until_weight(harness, controller, robot):
    harness.until(
        lambda: np.allclose(sent(controller), weight(robot), atol=1e-9), f'the torque {weight(robot)} N m'
    )


def stays_silent(controller, robot):
    """Nothing comes while the robot goes on speaking."""
    count = len(controller.commands), len(controller.torques)
    robot.says(TURNS)
    assert (len(controller.commands), len(controller.torques)) == count


def is_quiet(controller, robot):
    """Whether nothing comes for some turns of the robot."""
    count = len(controller.commands)
    robot.says(10)
    return len(controller.commands) == count


def ends_in_zero(harness, controller, robot):
    """The last command is zero torque, and then there is silence."""
    harness.until(lambda: is_quiet(controller, robot), 'the end of the stop')
    stays_silent(controller, robot)
    assert not sent(controller).any()


def is_latched(controller, robot, kind):
    """The robot is well again, and still nothing moves until somebody clears the fault."""
    robot.be_honest()
    robot.says(TURNS)
    assert controller.fault == kind
    assert controller.mode == 'fault'
    refused = controller.enable()
    assert not refused.success
    assert 'clear' in refused.message
    controller.ask('release')
    controller.until_cleared()
    controller.drive()


# -- P1 -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize('field', ['position', 'velocity', 'effort'])
def test_p1_invalid_numbers_in_joint_states_reach_no_command(driving, robot, field):
    count = len(driving.commands)
    for invalid in INVALID:
        robot.publish(robot.joint_state(**{field: [invalid, 0.0]}))
        robot.publish(robot.joint_state(**{field: [invalid, invalid]}))
        robot.says(5)
    assert len(driving.commands) > count
    assert all(np.isfinite(r.message.data).all() for r in driving.commands.since(0.0))


def test_p1_a_measured_effort_that_is_no_number_counts_as_not_measured(controller, robot):
    robot.effort = np.array([np.nan, 4.0])
    robot.says()
    count = len(controller.commands)
    controller.drive()
    assert list(controller.commands.records[count].message.data) == [0.0, 4.0]


# -- P2 -----------------------------------------------------------------------------------------------


def test_p2_the_first_command_is_the_measured_effort_within_the_limits(controller, robot):
    before = controller.get('limits__effort')
    assert controller.set(limits__effort=[10.0, 50.0]).successful
    count = len(controller.commands)
    controller.drive()
    assert list(controller.commands.records[count].message.data) == [10.0, weight(robot)[1]]
    assert controller.set(limits__effort=before).successful


def test_p2_a_measured_effort_that_contradicts_gravity_refuses_enable(controller, robot):
    robot.effort = np.array([-4000.0, 0.0])
    robot.says()
    refused = controller.enable()
    assert not refused.success
    assert "'joint_1' measures an effort of -4000 N m" in refused.message
    stays_silent(controller, robot)


def test_p2_a_limit_lowered_below_the_present_torque_is_reached_without_a_jump(driving, robot, harness):
    limit = np.array([10.0, 50.0])
    before = driving.get('limits__effort')
    begin = time.time()
    assert driving.set(limits__effort=limit.tolist()).successful
    try:
        harness.until(lambda: abs(sent(driving)[0]) <= limit[0], 'torque within the new limit')
        first = np.array(driving.commands.since(begin)[0].message.data)
        assert first[0] > limit[0]  # at stop.rate, not at once
        robot.says()
        assert np.allclose(sent(driving), np.minimum(weight(robot), limit))
    finally:
        assert driving.set(limits__effort=before).successful
    until_weight(harness, driving, robot)


def test_p2_no_parameter_allows_more_than_the_urdf(driving):
    before = driving.get('limits__effort')
    driving.set(limits__effort=[1e4, 1e4])
    assert driving.get('limits__effort') == [100.0, 50.0]  # of the URDF
    assert driving.state['parameters']['limits.effort'] == [100.0, 50.0]
    assert driving.set(limits__effort=before).successful


# -- P3 -----------------------------------------------------------------------------------------------


def test_p3_torque_changes_no_faster_than_the_rate(driving, robot, harness):
    before = driving.get('limits__effort_rate')
    rate = np.array([40.0, 20.0])
    assert driving.set(limits__effort_rate=rate.tolist()).successful
    begin = time.time()
    goal = np.array([-2.0, 1.5])  # the weight pulls the other way
    robot.move(goal)
    harness.until(lambda: np.array_equal(robot.q, goal), 'the end of the motion')
    until_weight(harness, driving, robot)
    monitor = Monitor(driving, robot.model)
    monitor.rate = rate
    monitor.check(begin)
    assert driving.torques.last.sent - begin >= 0.6  # for 26 N m
    assert driving.set(limits__effort_rate=before).successful


# -- P4 -----------------------------------------------------------------------------------------------


def test_p4_silence_ends_in_the_stop_policy_and_a_latched_fault(driving, robot, harness):
    spoke = robot.hushes()
    driving.until_fault('state')
    assert driving.faulted_at(spoke) - spoke >= STATE_TIMEOUT
    assert 'joint_' in driving.reason
    harness.until(lambda: not sent(driving).any(), 'zero torque')
    blind = driving.torques.since(spoke + STATE_TIMEOUT)
    torque = np.array([r.message.effort for r in blind])
    assert (np.diff(np.abs(torque), axis=0) <= 1e-9).all()  # let go, never taken up again
    assert blind[-1].sent - blind[0].sent <= 2 * 0.2  # stop.blind_time
    assert len(blind) > 3  # and not in one jump
    is_latched(driving, robot, 'state')


def test_p4_the_stop_begins_soon_after_the_timeout(driving, robot, harness):
    spoke = robot.hushes()
    driving.until_fault('state')
    assert driving.faulted_at(spoke) - spoke <= STATE_TIMEOUT + 0.1
    assert np.diff([r.sent for r in driving.commands.since(spoke - 0.05)]).max() <= STATE_TIMEOUT + 0.1


def test_p4_one_joint_that_falls_silent_is_named(driving, robot):
    robot.say = lambda: robot.publish(robot.joint_state(['joint_1']))
    driving.until_fault('state')
    assert 'joint_2' in driving.reason
    is_latched(driving, robot, 'state')


def test_p4_a_driver_that_repeats_its_last_message_is_stale(driving, robot):
    last = robot.joint_state()
    robot.say = lambda: robot.publish(last)
    driving.until_fault('state')
    is_latched(driving, robot, 'state')


@pytest.mark.parametrize('jump', [-10.0, -0.5, 5.0, 900.0])
def test_p4_stamps_that_jump_end_in_a_fault(driving, robot, jump):
    robot.say = lambda: robot.publish(robot.joint_state(stamp=robot.now() + jump))
    driving.until_fault('state')
    is_latched(driving, robot, 'state')


def test_p4_states_that_are_old_by_their_stamps_are_not_enough_to_enable(controller, robot):
    robot.say = lambda: robot.publish(robot.joint_state(stamp=robot.now() - 0.5))
    robot.says(2 * TURNS)
    refused = controller.enable()
    assert not refused.success
    assert 'joint_' in refused.message


def test_p4_nan_for_too_long_is_silence(driving, robot):
    robot.say = lambda: robot.publish(robot.joint_state(position=[np.nan, 0.8]))
    driving.until_fault('state')
    assert 'joint_1' in driving.reason
    is_latched(driving, robot, 'state')


def test_p4_a_driver_that_restarts_finds_a_latched_fault(driving, robot, harness):
    robot.hushes()
    driving.until_fault('state')
    robot.restart()
    ends_in_zero(harness, driving, robot)
    is_latched(driving, robot, 'state')
    until_weight(harness, driving, robot)


def test_p4_a_controller_that_was_frozen_wakes_up_into_the_stop_policy(driving, robot, harness):
    driving.send(signal.SIGSTOP)
    robot.says(2 * TURNS)  # longer than the timeout
    begin = time.time()
    driving.send(signal.SIGCONT)
    driving.until_fault('state')
    ends_in_zero(harness, driving, robot)
    torque = np.array([r.message.effort for r in driving.torques.since(begin)])
    assert (np.abs(torque) <= np.abs(weight(robot)) + 1e-9).all()
    is_latched(driving, robot, 'state')


# -- P5 -----------------------------------------------------------------------------------------------


def test_p5_nothing_is_published_before_enable(controller, robot):
    stays_silent(controller, robot)


def test_p5_the_first_command_is_the_measured_effort_and_the_ramp_is_smooth(controller, robot, harness):
    robot.effort = np.array([3.0, -2.0])
    robot.says()
    count = len(controller.torques)
    controller.drive()
    until_weight(harness, controller, robot)
    torque = np.array([r.message.effort for r in controller.torques.records[count:]])
    assert torque[0].tolist() == [3.0, -2.0]
    assert (np.diff(torque, axis=0) >= -1e-9).all()  # both weights are above the measured efforts
    ramp = [
        r.sent
        for r, t in zip(controller.torques.records[count:], torque, strict=True)
        if not np.allclose(t, weight(robot))
    ]
    assert ramp[-1] - ramp[0] >= 0.15  # ramp_time 0.2


def test_p5_disable_lowers_the_weight_and_then_is_silent(driving, robot, harness):
    begin = time.time()
    assert driving.enable(False).success
    ends_in_zero(harness, driving, robot)
    assert driving.mode == 'disabled'
    assert driving.fault is None
    torque = np.array([r.message.effort for r in driving.torques.since(begin)])
    assert (np.diff(np.abs(torque), axis=0) <= 1e-9).all()
    assert len(torque) > 10
    stays_silent(driving, robot)


# -- P6 -----------------------------------------------------------------------------------------------


def test_p6_a_missing_joint_is_refused_by_name(controller, robot):
    robot.say = lambda: robot.publish(robot.joint_state(['joint_1']))
    robot.says(2 * TURNS)
    refused = controller.enable()
    assert not refused.success
    assert 'joint_2' in refused.message
    stays_silent(controller, robot)


def test_p6_a_duplicate_joint_is_refused_by_name_and_changes_nothing(driving, robot, harness):
    def twice():
        robot.honest()
        robot.publish(robot.joint_state(['joint_1', 'joint_2', 'joint_2'], position=[1.5, 1.5, -1.5]))

    begin, expected = time.time(), weight(robot)
    robot.say = twice
    robot.says(TURNS)
    for record in driving.commands.since(begin):
        assert np.allclose(record.message.data, expected)
    assert driving.mode == 'active'
    harness.until(lambda: 'joint_2' in driving.log and 'twice' in driving.log, 'the refusal in the log')


def test_p6_extra_joints_are_ignored_and_logged_once(driving, robot):
    expected = weight(robot)
    robot.say = lambda: robot.publish(
        robot.joint_state(
            name=['gripper', 'joint_1', 'joint_2'],
            position=[9.0, *robot.q],
            velocity=[1e9, 0.0, 0.0],
            effort=[np.nan, 0.0, 0.0],
        )
    )
    robot.says(TURNS)
    assert driving.mode == 'active'
    assert np.allclose(sent(driving), expected)
    assert sum('gripper' in line for line in driving.log.splitlines()) == 1


def test_p6_joints_are_found_by_name_whatever_their_order(driving, robot):
    begin, expected = time.time(), weight(robot)
    robot.say = lambda: robot.publish(robot.joint_state(['joint_2', 'joint_1']))
    robot.says(TURNS)
    assert driving.mode == 'active'
    assert all(np.allclose(r.message.data, expected) for r in driving.commands.since(begin))


def test_p6_joints_may_come_from_two_publishers(controller, robot, harness):
    other = FakeRobot(harness)
    try:
        robot.say = lambda: robot.publish(robot.joint_state(['joint_1']))
        other.say = lambda: other.publish(other.joint_state(['joint_2']))
        robot.says()
        controller.drive()
        until_weight(harness, controller, robot)
        robot.says(TURNS)
        assert controller.mode == 'active'
        other.hushes()
        controller.until_fault('state')
        assert 'joint_2' in controller.reason
    finally:
        other.leave()


def test_p6_two_publishers_of_the_same_joints_break_no_promise_and_are_warned_of(driving, robot, harness):
    other = FakeRobot(harness)
    try:
        other.q = other.q + 0.01
        low, high = sorted((weight(robot)[0], weight(other)[0]))
        other.says(TURNS)
        assert low - 1e-9 <= sent(driving)[0] <= high + 1e-9
        harness.until(lambda: 'publisher' in driving.log, 'a warning in the log', 5.0)
    finally:
        other.leave()


def test_p6_a_missing_velocity_is_refused(controller, robot):
    robot.say = lambda: robot.publish(robot.joint_state(velocity=[np.nan, 0.0]))
    robot.says(2 * TURNS)
    refused = controller.enable()
    assert not refused.success
    assert 'joint_1' in refused.message


# -- P7 -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize('back', [0.0, 0.02, 50.0])
def test_p7_repeated_and_backward_stamps_are_ignored(driving, robot, back):
    def and_an_old_one():
        now = robot.now()
        robot.publish(robot.joint_state(stamp=now))
        robot.publish(robot.joint_state(stamp=now - back, position=[-2.0, 2.0]))

    begin, expected = time.time(), weight(robot)
    robot.say = and_an_old_one
    robot.says(TURNS)
    assert driving.mode == 'active'
    assert all(np.allclose(r.message.data, expected) for r in driving.commands.since(begin))


def test_p7_a_stamp_of_zero_means_the_time_of_arrival(controller, robot, harness):
    robot.say = lambda: robot.publish(robot.joint_state(stamp=0.0))
    robot.says()
    controller.rest()  # a cleared fault forgets the stamps of before
    controller.drive()
    until_weight(harness, controller, robot)
    robot.say = robot.silent
    controller.until_fault('state')


def test_p7_torques_carry_the_stamp_of_the_state_that_caused_them(driving, robot):
    said = set()

    def and_remember():
        message = robot.joint_state()
        said.add((message.header.stamp.sec, message.header.stamp.nanosec))
        robot.publish(message)

    robot.say = and_remember
    robot.says(2)
    begin = time.time()
    robot.says(TURNS)
    stamps = [r.message.header.stamp for r in driving.torques.since(begin)]
    assert stamps
    assert {(s.sec, s.nanosec) for s in stamps[1:]} <= said


# -- P8 -----------------------------------------------------------------------------------------------


def test_p8_deactivate_ends_in_the_stop_policy(driving, robot, harness):
    begin = time.time()
    assert driving.transition('deactivate')
    harness.until(lambda: driving.lifecycle == 'inactive', 'the inactive state')
    assert time.time() - begin <= LONGEST_STOP
    torque = np.array([r.message.effort for r in driving.torques.since(begin)])
    assert (np.diff(np.abs(torque), axis=0) <= 1e-9).all()
    assert len(torque) > 10
    ends_in_zero(harness, driving, robot)
    assert driving.mode == 'inactive'
    assert not driving.enable().success
    assert driving.transition('activate')
    driving.until_mode('disabled')
    stays_silent(driving, robot)


def test_p8_deactivate_needs_no_state(driving, robot, harness):
    robot.hushes()
    begin = time.time()
    assert driving.transition('deactivate')
    harness.until(lambda: driving.lifecycle == 'inactive', 'the inactive state')
    assert time.time() - begin <= LONGEST_STOP
    harness.until(lambda: not sent(driving).any(), 'zero torque')
    torque = np.array([r.message.effort for r in driving.torques.since(begin)])
    assert len(torque) > 3
    assert (np.abs(torque) <= weight(robot) + 1e-9).all()
    assert driving.transition('activate')


def test_p8_signals_lower_the_weight_before_the_process_ends(harness, controllers):
    """With the default times: two seconds of lowering, and an end within four."""
    robot = FakeRobot(harness, namespace='/arms')
    controllers = [controllers[name] for name in SIGNALS]
    for controller in controllers:
        controller.activate()
        controller.drive()
        until_weight(harness, controller, robot)
    begin = time.time()
    for controller, number in zip(controllers, SIGNALS.values(), strict=True):
        controller.send(number)
    for controller in controllers:
        assert controller.wait() == 0
        assert time.time() - begin <= LONGEST_STOP
    for controller in controllers:
        records = controller.torques.since(begin)
        # A command is made after the one before was sent, and before it is sent itself.
        sent = [begin, *(record.sent for record in records)]
        most, least = (np.clip(1.0 - (np.array(t) - begin) / 2.0, 0.0, 1.0) for t in (sent[:-1], sent[1:]))
        share = np.array([record.message.effort for record in records]) / weight(robot)
        assert (share <= most[:, None] + 0.1).all()
        assert (share >= least[:, None] - 0.1).all()
        assert len(records) > 100
        assert not np.any(records[-1].message.effort)
        assert 'Traceback' not in controller.log
        Monitor(controller, robot.model).check()


def test_p8_signals_to_idle_nodes_end_them_at_once(controllers):
    controllers = [controllers[f'/idle{name}'] for name in SIGNALS]
    for controller, number in zip(controllers, SIGNALS.values(), strict=True):
        assert controller.transition('configure')
        controller.send(number)
    for controller in controllers:
        assert controller.wait(LONGEST_STOP) == 0
        assert 'Traceback' not in controller.log
        assert not controller.commands.records


def test_p8_a_held_weight_is_held_until_the_process_ends(harness, controllers):
    robot = FakeRobot(harness, namespace='/held')
    controller = controllers['/held'].activate()
    controller.drive()
    controller.enable(False)
    controller.until_mode('stopping')
    begin = time.time()
    robot.says(2 * TURNS)
    assert all(np.allclose(r.message.data, weight(robot)) for r in controller.commands.since(begin))
    assert controller.mode == 'stopping'
    controller.drive()
    robot.hushes()  # a stop needs no state
    begin = time.time()
    controller.send(signal.SIGTERM)
    assert controller.wait() == 0
    assert time.time() - begin <= LONGEST_STOP
    assert not sent(controller).any()
    Monitor(controller, robot.model).check()


# -- P9 -----------------------------------------------------------------------------------------------


def test_p9_a_passive_joint_gets_no_effort_and_the_amplifier_no_more_than_its_supply(harness, controllers):
    robot = FakeRobot(harness, 'pendubot', '/pendubot')
    robot.q = np.array([0.3, 0.7])  # the free pendulum leans, and has weight
    robot.effort = np.array([0.3, 5.0])
    controller = controllers['/pendubot'].activate()
    robot.says()
    controller.drive()
    robot.v = np.array([40.0, 0.0])  # overspeed is a fault, and its back EMF beyond the supply
    controller.until_fault('velocity')
    harness.until(lambda: controller.commands.last and not any(sent(controller)), 'zero volts')
    monitor = Monitor(controller, robot.model)
    monitor.rate[:] = 310.0  # the robot's own [N m/s]
    monitor.check()
    assert monitor.joints == ('arm',)
    assert all(abs(r.message.data[0]) <= 15.0 for r in controller.commands.records)


# -- P12 ----------------------------------------------------------------------------------------------


def test_p12_a_second_publisher_on_the_command_topic_stops_a_running_node(driving, robot, harness):
    other = harness.add_node('other')
    other.create_publisher(Float64MultiArray, 'effort_commands', 1)
    try:
        driving.until_fault('publisher')
        ends_in_zero(harness, driving, robot)
        harness.until(lambda: driving.clear_fault().success, 'the fault to be cleared')
        harness.until(lambda: driving.fault is None, 'no fault')
        refused = driving.enable()
        assert not refused.success
        assert 'publisher' in refused.message
    finally:
        harness.remove_node(other)
    driving.drive()
    until_weight(harness, driving, robot)
