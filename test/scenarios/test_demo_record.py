"""Records: rows by time, contact and ~/state; and how they are built from recorded topics."""

from types import SimpleNamespace

import numpy as np
import pytest

import krang_dynamics as kd
from krang_dynamics.errors import KrangError
from krang_dynamics.scenarios.demo_record import DemoRecord, TopicLog, record_of

TIMES = np.arange(0, 1, 0.25)
Q = np.outer(TIMES, [1.0, 2.0])


def record(**changes):
    values = {'desired': Q + 0.1, 'torque': 3 * Q, 'external': 4 * Q, 'terms': {'gravity': 5 * Q}, **changes}
    return DemoRecord(TIMES, Q, **values)


def test_the_error_is_reference_minus_position():
    np.testing.assert_allclose(record().error, 0.1)


def test_rows_between_two_times_include_both():
    part = record().between(0.25, 0.5)
    np.testing.assert_array_equal(part.times, [0.25, 0.5])
    for rows, factor in ((part.q, 1), (part.torque, 3), (part.external, 4), (part.terms['gravity'], 5)):
        np.testing.assert_array_equal(rows, factor * Q[1:3])
    np.testing.assert_allclose(part.error, 0.1)


def test_a_time_after_the_end_is_an_error():
    with pytest.raises(KrangError, match='ended before 2 s'):
        record().between(2.0, 3.0)


def test_a_topic_log_has_rows_between_two_times_and_at_given_times():
    log = TopicLog(TIMES, Q)
    np.testing.assert_array_equal(log.between(0.25, 0.5), Q[1:3])
    assert log.between(2.0, 3.0).shape == (0, 2)
    np.testing.assert_array_equal(log.at(np.array([-1.0, 0.25, 0.49, 9.0])), Q[[0, 1, 1, 3]])


def test_contact_begins_with_the_first_wrench():
    push = np.where(TIMES[:, None] >= 0.5, [0, 0, -20.0], 0.0)
    pushed = record(wrenches={'hand': TopicLog(TIMES, push), 'foot': TopicLog(TIMES, 0 * push)})
    assert pushed.contact_time('hand', after=0.2) == 0.5
    assert pushed.contact_time('hand', after=0.6) == 0.75
    assert pushed.contact_time('foot', after=0.0) == np.inf


def test_the_first_time_of_a_state():
    states = (
        (0.1, {'contact': 'contact'}),
        (0.3, {'contact': 'none'}),
        (0.4, {'contact': 'contact'}),
        (0.6, {'contact': 'contact'}),
    )
    assert record(states=states).state_time('contact', 'contact', after=0.2) == 0.4
    assert record(states=states).state_time('contact', 'collision', after=0.2) == np.inf


def test_a_record_is_built_from_topics_at_the_times_of_the_reference():
    """The torques have fewer rows and another order of joints; there is no observer."""
    robot = kd.load_robot('planar_2r')
    topics = {
        'torque_controller/reference': (TIMES, Q),
        'torque_controller/torques': (TIMES[::2], Q[::2]),
        'torque_controller/external_torques': (np.zeros(0), np.zeros((0, 0))),
        'torque_controller/terms/gravity': (TIMES, 2 * Q),
        'simulator/truth': (TIMES, Q + 0.1),
    }
    states = [(0.1, {'contact': 'none'})]
    operator = SimpleNamespace(
        joint_values=lambda topic, field: topics[topic],
        joint_names=lambda topic: ('joint_2', 'joint_1'),
        wrenches=lambda frame: (TIMES, np.zeros((4, 6))),
        states=states,
    )
    built = record_of(robot, ('gravity',), operator)
    np.testing.assert_allclose(built.error, -0.1)
    np.testing.assert_array_equal(built.torque, Q[[0, 0, 2, 2]][:, ::-1])
    assert not built.external.any()
    np.testing.assert_array_equal(built.terms['gravity'], 2 * Q)
    assert set(built.wrenches) == set(robot.config.end_effectors)
    assert built.states == tuple(states)
