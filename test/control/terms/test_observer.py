"""The momentum observer: estimate of the external torque, contact and collision."""

import numpy as np
import pytest
from harness import robot_named, term_inputs
from tools import states

from krang_dynamics.control.settings import Settings
from krang_dynamics.control.terms.observer import Observer

ROBOT = robot_named('planar_2r')
GAIN = 20.0  # [rad/s]
PUSH = np.array([-8.0, 3.0])  # external torque [N m]
DT = 1e-3  # [s]
RESTING = np.zeros(2)  # [rad/s]


def pushed(observer, duration, push=PUSH):
    """A robot at rest: the motors balance gravity and the push. Estimates (K, n)."""
    applied = ROBOT.gravity_torque(ROBOT.home) - push
    state = term_inputs(ROBOT, ROBOT.home, RESTING, applied=applied, dt=DT)
    out = []
    for _ in range(round(duration / DT)):
        assert not observer.torque(state).any()
        out.append(observer.external.copy())
    return np.array(out)


def limits(observer):
    """Thresholds of contact and collision, over the joints [N m]."""
    return [x.tolist() for x in observer.thresholds]


def test_the_estimate_approaches_the_external_torque_at_the_gain():
    path = pushed(Observer(ROBOT, GAIN), 0.4)
    decay = (1 - GAIN * DT) ** np.arange(len(path))
    np.testing.assert_allclose(path, np.outer(1 - decay, PUSH), atol=1e-9)


def test_motion_without_external_torque_is_not_mistaken_for_one():
    """Free motion of a frictional robot, integrated with small steps."""
    observer, (q, v) = Observer(ROBOT, GAIN), states(1, 2, parts=2)[:, 0]
    dt = 1e-4
    for _ in range(2000):
        torque = np.array([3.0, -1.0])
        observer.torque(term_inputs(ROBOT, q, v, applied=torque, dt=dt))
        a = ROBOT.forward_dynamics(q, v, torque, friction=True)
        half = v + 0.5 * dt * a
        q = q + dt * half
        v = v + dt * ROBOT.forward_dynamics(q - 0.5 * dt * half, half, torque, friction=True)
    assert np.abs(v).max() > 0.5
    assert np.abs(observer.external).max() <= 0.01


@pytest.mark.parametrize(
    ('contact', 'collision', 'event'),
    [
        (9.0, 30.0, 'none'),
        (5.0, 30.0, 'contact'),
        (5.0, 7.0, 'collision'),
        (9.0, 7.0, 'collision'),  # thresholds in the wrong order
        (0.0, 0.0, 'collision'),
    ],
)
def test_thresholds_apply_to_the_largest_torque_of_any_joint(contact, collision, event):
    observer = Observer(ROBOT, GAIN, contact, collision)
    pushed(observer, 0.5)
    assert observer.largest() == pytest.approx(8.0, rel=1e-3)
    assert observer.contact == event


def test_an_estimate_that_is_not_finite_is_a_collision():
    observer = Observer(ROBOT, GAIN)
    pushed(observer, 0.01, push=np.array([np.nan, 0.0]))
    assert observer.contact == 'collision'


@pytest.mark.parametrize('reaction', ['none', 'stop'])
def test_a_collision_is_a_fault_where_the_reaction_is_stop(reaction):
    observer = Observer(ROBOT, GAIN, collision=5.0, reaction=reaction)
    pushed(observer, 0.5)
    fault = observer.fault()
    assert (fault is None) == (reaction == 'none')
    assert fault is None or str(fault) == (
        "collision: joint 'joint_1': external torque 8.0 N m, observer.collision is 5 N m"
    )


def test_reset_discards_the_estimate():
    observer = Observer(ROBOT, GAIN)
    pushed(observer, 0.5)
    observer.reset()
    assert (observer.external.tolist(), observer.contact) == ([0.0, 0.0], 'none')
    np.testing.assert_allclose(pushed(observer, 0.1), pushed(Observer(ROBOT, GAIN), 0.1), atol=1e-12)


def test_adopted_settings_keep_the_estimate():
    observer = Observer(ROBOT, GAIN)
    before = pushed(observer, 0.03)[-1]
    observer.adopt(Observer(ROBOT, 2 * GAIN, 1.0, 2.0, 'stop'))
    assert (observer.gain, *limits(observer), observer.reaction) == (2 * GAIN, [1.0, 1.0], [2.0, 2.0], 'stop')
    np.testing.assert_allclose(pushed(observer, DT)[-1], before, rtol=1e-9)


def test_settings_are_those_of_the_parameters():
    settings = Settings(
        observer_gain=3.0, observer_contact=1.0, observer_collision=[2.0, 4.0], observer_reaction='none'
    )
    observer = Observer.from_settings(ROBOT, settings)
    assert (observer.gain, *limits(observer), observer.reaction) == (3.0, [1.0, 1.0], [2.0, 4.0], 'none')
    default = Observer.from_settings(ROBOT, Settings())
    assert (default.gain, *limits(default), default.reaction) == (25.0, [5.0, 5.0], [30.0, 30.0], 'stop')


def test_an_event_ends_below_its_threshold_only():
    observer = Observer(ROBOT, 1e3, contact=5.0, collision=20.0)
    events = []
    for push in (4.0, 6.0, 4.0, 3.0, 21.0, 16.0, 13.0, 3.0):
        pushed(observer, 0.05, np.array([push, 0.0]))
        events.append(observer.contact)
    assert events == ['none', 'contact', 'contact', 'none', 'collision', 'collision', 'contact', 'none']


def test_thresholds_are_those_of_each_joint():
    push = np.array([8.0, 3.0])
    first = Observer(ROBOT, GAIN, contact=[9.0, 9.0], collision=[30.0, 2.0])
    pushed(first, 0.5, push)
    assert "'joint_2'" in first.fault().reason
    other = Observer(ROBOT, GAIN, contact=[9.0, 9.0], collision=[30.0, 4.0])
    pushed(other, 0.5, push)
    assert other.contact == 'none'


def test_joints_that_are_not_commanded_do_not_count():
    observer = Observer.from_settings(ROBOT, Settings(command_joints=('joint_2',)))
    pushed(observer, 0.5, np.array([100.0, 3.0]))
    assert (observer.contact, observer.largest()) == ('none', pytest.approx(3.0, rel=1e-3))


def test_rolling_constraints_do_not_count():
    robot = robot_named('otbot')
    q = robot.home
    J = robot.constraint_jacobian(q)
    observer = Observer.from_settings(robot, Settings(observer_collision=1.0))
    state = term_inputs(robot, q, np.zeros(6), applied=-J.T @ np.full(len(J), 200.0))
    for _ in range(500):
        observer.torque(state)
    assert np.abs(observer.external).max() > 50
    assert (observer.contact, observer.fault()) == ('none', None)


@pytest.mark.parametrize('dt', [1.7e9, 0.5])
def test_the_estimate_restarts_where_time_is_not_continuous(dt):
    observer = Observer(ROBOT, GAIN)
    before = pushed(observer, 0.5)[-1]
    observer.torque(term_inputs(ROBOT, ROBOT.home, RESTING, dt=dt))
    np.testing.assert_allclose(observer.external, before)
    assert observer.contact == 'contact'
