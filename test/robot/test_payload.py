"""Payloads: an extra link in effect, and checked like every input."""

import numpy as np
import pytest
from robot.bad_input import ANYTHING, campaign, outcome, refusal
from robot.urdf_text import NO_INERTIA, TWO_ARMS, assert_robots_agree, inertia_of, inertial, joint, link, urdf

import krang_dynamics as kd

PAYLOAD = (1.0, (0.0, 0.0, 0.1), np.diag([0.01, 0.01, 0.01]))
PLANAR = kd.load_robot('planar_2r')


@pytest.mark.parametrize('frame', ['left hand', 'right hand', 'left upper', 'torso'])
def test_payload_is_an_extra_link_and_leaves_the_old_robot_alone(rng, frame):
    robot = kd.load_robot(urdf(*TWO_ARMS))
    q, v, a = rng.uniform(-1, 1, (3, robot.nv))
    before = robot.inverse_dynamics(q, v, a).tobytes(), robot.mass_matrix(q).tobytes()
    points = rng.normal(size=(4, 3)) * 0.1
    com, inertia = rng.normal(size=3), inertia_of((1.0, 0.5, 0.7, 0.8), points)
    loaded = robot.with_payload(frame, 3.0, com, inertia)
    extra = link('load', inertial(3.0, com, inertia)), joint('weld', 'fixed', frame, 'load')
    welded = kd.load_robot(urdf(*TWO_ARMS, *extra))
    assert_robots_agree(loaded, welded, rng)
    after = robot.inverse_dynamics(q, v, a).tobytes(), robot.mass_matrix(q).tobytes()
    assert after == before


def test_payload_of_no_mass_is_no_payload(rng):
    robot = kd.load_robot(urdf(*TWO_ARMS))
    q = rng.uniform(-1, 1, robot.nv)
    empty = robot.with_payload('left hand', 0.0, (0, 0, 0), NO_INERTIA)
    np.testing.assert_array_equal(empty.gravity_torque(q), robot.gravity_torque(q))


@pytest.mark.parametrize('bad', [-1.0, np.nan, np.inf, None, '1', [1.0], 1j, {}], ids=repr)
def test_mass_of_a_payload_is_a_finite_number_from_zero_up(planar, bad):
    assert 'mass' in refusal(planar.with_payload, 'tip', bad, *PAYLOAD[1:])


@pytest.mark.parametrize('bad', [None, 0.0, 'abc', (0, 0), (0, 0, np.nan), [[0, 0, 0]], (0, 0, 1j)], ids=repr)
def test_centre_of_mass_of_a_payload_is_three_finite_numbers(planar, bad):
    message = refusal(planar.with_payload, 'tip', 1.0, bad, PAYLOAD[2])
    assert 'com' in message
    assert '3' in message or 'finite' in message


IMPOSSIBLE_INERTIAS = {
    'none': None,
    'text': 'abc',
    'vector': np.ones(3),
    'six numbers': np.ones(6),
    'too small': np.eye(2),
    'not finite': np.diag([1.0, np.nan, 1.0]),
    'negative': -np.eye(3),
    'negative principal moment': np.array([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
    'triangle broken': np.diag([1.0, 1.0, 3.0]),
    'not symmetric': np.eye(3) + np.triu(np.full((3, 3), 0.1), 1),
}


@pytest.mark.parametrize('bad', IMPOSSIBLE_INERTIAS.values(), ids=IMPOSSIBLE_INERTIAS)
def test_inertia_that_no_body_has_is_refused(planar, bad):
    assert 'inertia' in refusal(planar.with_payload, 'tip', 1.0, (0, 0, 0), bad)


def test_payload_at_an_unknown_frame_is_refused(planar):
    message = refusal(planar.with_payload, 'tipp', *PAYLOAD)
    assert "'tipp'" in message
    assert 'world, link_1, link_2, tip' in message


def test_payload_keeps_its_own_copy_of_what_it_was_given(planar):
    com, inertia = np.array([0.0, 0.0, 0.1]), np.eye(3) * 0.01
    loaded = planar.with_payload('tip', 1.0, com, inertia)
    before = loaded.inverse_dynamics([0.1, 0.2], [1.0, 1.0], [1.0, 1.0])
    com[:], inertia[:] = 9.0, 9.0
    np.testing.assert_array_equal(loaded.inverse_dynamics([0.1, 0.2], [1.0, 1.0], [1.0, 1.0]), before)


@pytest.mark.parametrize('change', [{'mass': 1e308}, {'com': (1e200, 0, 0)}, {'inertia': np.eye(3) * 1e308}])
def test_absurd_payload_is_refused_by_name_and_gives_no_nan(planar, change):
    payload = {'mass': 1.0, 'com': (0, 0, 0), 'inertia': PAYLOAD[2]} | change
    assert next(iter(change)) in refusal(planar.with_payload, 'tip', **payload)


@campaign(ANYTHING)
def test_random_object_is_a_payload_or_is_refused(value):
    for change in ({'mass': value}, {'com': value}, {'inertia': value}, {'frame': value}):
        payload = {'frame': 'tip', 'mass': 1.0, 'com': (0, 0, 0), 'inertia': PAYLOAD[2]} | change
        robot, reason = outcome(PLANAR.with_payload, **payload)
        assert robot or next(iter(change)) in reason
