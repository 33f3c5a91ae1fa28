"""The controller's inputs beyond states: payloads, gravity, limits, references."""

import numpy as np
import pytest

import krang_dynamics as kd
from krang_dynamics.control.controller import Inputs, TorqueController
from krang_dynamics.control.reference.trajectory import JointTrajectory
from krang_dynamics.control.settings import Settings
from krang_dynamics.robot.payload import Payload
from krang_dynamics.safety.joint_buffer import JointSamples
from krang_dynamics.safety.modes import Mode

DUMBBELL = Payload('tip', 2.0, np.array([0.0, 0.0, 0.1]), np.eye(3) * 0.01)


class Bench:
    """A robot that stands still in its home, and a clock that goes on by a millisecond a step."""

    def __init__(self, name='planar_2r', **settings):
        self.robot = kd.load_robot(name)
        self.controller = TorqueController(
            self.robot, Settings(**{'terms': ('gravity',), 'ramp_time': 0.0} | settings)
        )
        self.time = 50.0
        self.step(enable=True)

    def step(self, q=None, **inputs):
        self.time += 1e-3
        q = self.robot.home if q is None else q
        sample = JointSamples(
            self.robot.joint_names, q, np.zeros(self.robot.nv), np.zeros(self.robot.nv), self.time, self.time
        )
        return self.controller.step(Inputs(self.time, self.time, [sample], **inputs))

    def settled(self, **inputs):
        """The torque once the rate limit has let it through."""
        self.step(**inputs)
        for _ in range(300):
            outputs = self.step()
        return outputs.torque


def test_a_payload_is_carried_and_taken_off_without_a_trace():
    bench = Bench()
    empty = bench.settled()
    loaded = bench.settled(payloads=[DUMBBELL])
    expected = bench.robot.with_payload('tip', 2.0, (0, 0, 0.1), np.eye(3) * 0.01)
    np.testing.assert_allclose(loaded, expected.gravity_torque(bench.robot.home), rtol=1e-12)
    np.testing.assert_array_equal(bench.settled(payloads=[]), empty)


def test_a_payload_that_nobody_can_carry_is_refused_and_nothing_changes():
    bench = Bench()
    before = bench.settled()
    unknown = Payload('nowhere', 1.0, np.zeros(3), np.zeros((3, 3)))
    assert 'nowhere' in bench.step(payloads=[unknown]).refused[0]
    np.testing.assert_array_equal(bench.settled(), before)


def test_measured_gravity_turns_the_torque_and_outlives_a_payload():
    bench = Bench()
    sideways = np.array([-9.81, 0.0, 0.0])
    tilted = bench.settled(gravity=sideways)
    np.testing.assert_allclose(
        tilted, bench.robot.with_gravity(sideways).gravity_torque(bench.robot.home), rtol=1e-12
    )
    bench.settled(payloads=[DUMBBELL])
    np.testing.assert_array_equal(bench.settled(payloads=[]), tilted)


def test_limits_change_together_or_not_at_all():
    bench = Bench()
    refused = bench.step(
        limits={'effort': np.array([10.0, 10.0]), 'velocity': np.array([1.0, np.nan])}
    ).refused
    assert 'velocity' in refused[0]
    assert bench.settled()[0] > 10
    assert bench.settled(limits={'effort': np.array([10.0, 10.0])})[0] == 10.0


def test_a_trajectory_is_refused_with_its_reason_and_the_robot_goes_on_holding():
    bench = Bench(terms=('computed_torque',))
    far = JointTrajectory(('joint_1',), np.array([0.0, 1.0]), np.array([[3.0], [2.0]]))
    outputs = bench.step(trajectory=far)
    assert 'farther than' in outputs.refused[0]
    assert outputs.mode is Mode.ACTIVE


def test_each_term_is_reported_by_itself_and_they_add_up():
    bench = Bench(terms=('gravity', 'damping', 'computed_torque'), damping=2.0)
    bench.settled()
    outputs = bench.step()
    assert list(outputs.terms) == ['gravity', 'damping', 'computed_torque']
    np.testing.assert_allclose(sum(outputs.terms.values()), outputs.torque, atol=1e-12)


@pytest.mark.parametrize(
    ('name', 'unit'), [('krang', 'current'), ('pendubot', 'voltage'), ('otbot', 'torque')]
)
def test_the_drivers_get_their_own_unit_and_order(name, unit):
    joints = tuple(reversed(TorqueController(kd.load_robot(name), Settings(('gravity',))).command_joints))
    bench = Bench(name, command_joints=joints)
    bench.settled()
    outputs = bench.step()
    assert bench.robot.config.command_unit == unit
    expected = bench.robot.motor_command(outputs.torque, np.zeros(bench.robot.nv))
    rows = [bench.robot.joint_names.index(joint) for joint in joints]
    np.testing.assert_allclose(outputs.command, expected[rows])
