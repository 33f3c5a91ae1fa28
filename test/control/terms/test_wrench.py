"""Wrench to torque, [krang] eq. 16: frames, points of application, signs, limits and timeouts."""

import re

import numpy as np
import pinocchio as pin
import pytest
from harness import robot_named, term_inputs
from tools import states

from krang_dynamics.control.controller import TorqueController
from krang_dynamics.control.settings import Settings
from krang_dynamics.control.terms.wrench import FADE, Wrench, WrenchSample, WrenchSettings
from krang_dynamics.errors import ConfigError, KrangError

BALANCE = 1e-9  # relative, of forces
HANDS = ('left_hand', 'right_hand')
FORCE, MOMENT = np.array([20.0, -10.0, 20.0]), np.array([1.0, 2.0, -2.0])  # 30 N, 3 N m


@pytest.fixture(scope='module')
def krang():
    return robot_named('krang')


def term(robot, **settings):
    convention = settings.pop('convention', 'applied_by_robot')
    return Wrench(robot, {hand: WrenchSettings(convention, **settings) for hand in HANDS}, timeout=0.1)


def sample(frame, frame_id, force=FORCE, moment=MOMENT, arrival=10.0):
    return WrenchSample(frame, frame_id, np.concatenate([force, moment]), arrival)


def world_wrench(robot, q, frame_id):
    """Force, moment and point of application in the world."""
    T = robot.frame_pose(q, frame_id)
    return T[:3, :3] @ FORCE, T[:3, :3] @ MOMENT, T[:3, 3]


@pytest.mark.parametrize('given_in', ['hand', 'world', 'bracket'])
def test_both_hands_balance_what_the_surroundings_exert(krang, given_in):
    """Against Pinocchio's inverse dynamics with the opposite wrench acting on the links of the hands."""
    q, v, a = states(1, 17)[:, 0]
    wrench = term(krang)
    external = pin.StdVec_Force()
    for _ in range(krang.model.njoints):
        external.append(pin.Force.Zero())
    data = krang.model.createData()
    pin.forwardKinematics(krang.model, data, q)
    for hand in HANDS:
        frame_id = hand if given_in == 'hand' else given_in
        assert wrench.take(sample(hand, frame_id), now=20.0) is None
        force, couple, point = world_wrench(krang, q, frame_id)
        about_origin = pin.Force(np.concatenate([force, couple + np.cross(point, force)]))
        joint = krang.model.getJointId(f'{hand.split("_")[0]}_7')
        external[joint] = data.oMi[joint].actInv(pin.Force(-about_origin.vector))
    loaded = pin.rnea(krang.model, data, q, v, a, external)
    torque = krang.inverse_dynamics(q, v, a) + wrench.torque(term_inputs(krang, q, v))
    assert np.abs(torque - loaded).max() <= BALANCE * np.abs(loaded).max()


@pytest.mark.parametrize('frame_id', ['left_hand', 'world', 'bracket'])
def test_torque_does_the_work_of_the_wrench(krang, frame_id):
    """Virtual work: the point of application is carried along by the hand."""
    q, v = states(1, 17, parts=2)[:, 0]
    wrench = term(krang)
    wrench.take(sample('left_hand', frame_id), now=20.0)
    force, couple, point = world_wrench(krang, q, frame_id)
    twist = krang.jacobian(q, 'left_hand') @ v
    arm = point - krang.frame_pose(q, 'left_hand')[:3, 3]
    power = force @ (twist[:3] + np.cross(twist[3:], arm)) + couple @ twist[3:]
    assert wrench.torque(term_inputs(krang, q, v)) @ v == pytest.approx(power, rel=BALANCE)


def test_the_opposite_convention_is_the_opposite_torque(krang):
    torques = []
    for convention in ('applied_by_robot', 'applied_on_robot'):
        wrench = term(krang, convention=convention)
        wrench.take(sample('left_hand', 'world'), now=20.0)
        torques.append(wrench.torque(term_inputs(krang, krang.home, np.zeros(17))))
    np.testing.assert_array_equal(torques[0], -torques[1])


def test_the_sign_has_no_default(krang):
    with pytest.raises(TypeError):
        WrenchSettings()
    with pytest.raises(KrangError, match='no default'):
        Wrench(krang, {'left_hand': WrenchSettings('whatever')}, 0.1)


def test_force_and_moment_are_limited_in_norm(krang):
    limited, small = term(krang, max_force=3.0, max_moment=0.3), term(krang)
    limited.take(sample('left_hand', 'left_hand'), now=20.0)
    small.take(sample('left_hand', 'left_hand', FORCE / 10, MOMENT / 10), now=20.0)
    now = term_inputs(krang, krang.home, np.zeros(17))
    np.testing.assert_allclose(limited.torque(now), small.torque(now), rtol=1e-12)


def test_a_wrench_that_is_not_renewed_fades_out(krang):
    wrench = term(krang)
    wrench.take(sample('left_hand', 'left_hand', arrival=10.0), now=20.0)

    def torque(time):
        return wrench.torque(term_inputs(krang, krang.home, np.zeros(17), time=time))

    full = torque(10.1)
    np.testing.assert_allclose(torque(10.1 + FADE / 2), full / 2, rtol=1e-9)
    assert not torque(10.1 + FADE + 1e-9).any()
    wrench.take(sample('left_hand', 'left_hand', arrival=11.0), now=20.0)
    np.testing.assert_array_equal(torque(11.0), full)


@pytest.mark.parametrize(
    ('bad', 'reason'),
    [
        (sample('bracket', 'world'), 'not configured'),
        (sample('left_hand', 'somewhere'), 'not a frame of the robot'),
        (sample('left_hand', 'world', force=np.array([0, np.nan, 0])), r'wrench\[1\] is nan'),
        (sample('left_hand', 'world', moment=np.zeros(2)), 'wrench has shape'),
    ],
)
def test_an_invalid_wrench_is_refused_and_the_old_one_stays(krang, bad, reason):
    wrench = term(krang)
    wrench.take(sample('left_hand', 'world'), now=20.0)
    now = term_inputs(krang, krang.home, np.zeros(17))
    before = wrench.torque(now)
    assert re.search(reason, wrench.take(bad, now=20.0))
    np.testing.assert_array_equal(wrench.torque(now), before)


# -- settings ------------------------------------------------------------------------------------------


def test_convention_and_limits_come_from_the_settings_and_each_hand_has_its_own(krang):
    settings = Settings(
        terms=('wrench',),
        wrench_left_hand_convention='applied_on_robot',
        wrench_left_hand_max_force=30.0,
        wrench_right_hand_convention='applied_by_robot',
        wrench_right_hand_max_moment=2.0,
    )
    found = Wrench.from_settings(krang, settings).settings
    assert {hand: (w.convention, w.max_force, w.max_moment) for hand, w in found.items()} == {
        'left_hand': ('applied_on_robot', 30.0, np.inf),
        'right_hand': ('applied_by_robot', np.inf, 2.0),
    }


@pytest.mark.parametrize('name', ['planar_2r', 'krang'])
def test_without_a_convention_the_term_is_refused(name):
    robot = robot_named(name)
    frame = robot.config.end_effectors[0]
    reason = rf'wrench\.{frame}\.convention must be applied_by_robot or applied_on_robot; it has no default'
    with pytest.raises(ConfigError, match=reason):
        TorqueController(robot, Settings(terms=('gravity', 'wrench')))
    with pytest.raises(ConfigError, match=reason):
        TorqueController(robot, Settings(terms=('wrench',), **{f'wrench.{frame}.max_force': 3.0}))
    TorqueController(robot, Settings(terms=('gravity',)))


@pytest.mark.parametrize('frame', ['nowhere', 'left_hnd'])
def test_a_wrench_at_an_unknown_frame_is_refused(krang, frame):
    with pytest.raises(KrangError, match=f'unknown wrench frame {frame!r}'):
        Wrench.from_settings(krang, Settings(**{f'wrench.{frame}.convention': 'applied_by_robot'}))


# -- another frame -------------------------------------------------------------------------------------


@pytest.mark.parametrize('turn', [(0, 0, 0), (0.3, -1.1, 2.2), (np.pi, 0, 0)])
@pytest.mark.parametrize('shift', [(0, 0, 0), (0.4, -0.2, 1.5)])
def test_a_wrench_that_is_moved_is_the_same_wrench(turn, shift):
    """Against Pinocchio's action of a pose on a force."""
    pose = pin.SE3(pin.rpy.rpyToMatrix(*turn), np.array(shift, dtype=float))
    given = sample('left_hand', 'sensor', arrival=7.0)
    moved = given.moved('world', pose.rotation, pose.translation)
    expected = pose.act(pin.Force(np.concatenate([FORCE, MOMENT]))).vector
    np.testing.assert_allclose(moved.wrench, expected, atol=1e-12)
    assert (moved.frame, moved.frame_id, moved.arrival) == ('left_hand', 'world', 7.0)
    assert (given.frame_id, given.wrench.tolist()) == ('sensor', [*FORCE, *MOMENT])


def test_a_moved_wrench_gives_the_same_torque(krang):
    pose = krang.frame_pose(krang.home, 'left_hand')
    at_hand = sample('left_hand', 'left_hand')
    torques = []
    for given in (at_hand, at_hand.moved('world', pose[:3, :3], pose[:3, 3])):
        wrench = term(krang)
        wrench.take(given, now=20.0)
        torques.append(wrench.torque(term_inputs(krang, krang.home, np.zeros(17))))
    np.testing.assert_allclose(torques[1], torques[0], rtol=1e-9)
