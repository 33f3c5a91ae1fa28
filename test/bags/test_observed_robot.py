"""Public topics to one snapshot: joints by name, what is stale, what is invalid."""

import numpy as np
import pytest

from krang_dynamics.bags.io.joint_state_codec import JointStateWriter
from krang_dynamics.bags.observed_robot import LOST, STALE, ObservedRobot
from krang_dynamics.robot.library import load_robot

ARM = load_robot('planar_2r')


def joint_state(names, field, values):
    return JointStateWriter(names, (field,)).stamped((1, 0), np.array(values, float))


def test_joints_are_placed_by_name_and_parts_are_merged():
    observed = ObservedRobot(ARM)
    observed.take_joint_states(joint_state(('joint_2', 'gripper'), 'position', [0.2, 9.0]), 1.0)
    snapshot = observed.snapshot(1.0)
    np.testing.assert_array_equal(snapshot.q, [np.nan, 0.2])
    observed.take_joint_states(joint_state(('joint_1',), 'position', [0.1]), 1.5)
    np.testing.assert_array_equal(observed.snapshot(1.75).q, [0.1, 0.2])
    assert observed.snapshot(1.75).age == 0.25
    np.testing.assert_array_equal(snapshot.q, [np.nan, 0.2])  # a snapshot does not change


def test_recorded_names_are_mapped():
    observed = ObservedRobot(ARM, ['j*=joint_*'])
    observed.take_joint_states(joint_state(('j2', 'j1'), 'position', [0.2, 0.1]), 0.0)
    np.testing.assert_array_equal(observed.snapshot(0.0).q, [0.1, 0.2])


def test_a_torque_that_is_not_renewed_is_not_shown():
    observed = ObservedRobot(ARM)
    for topic in ('torques', 'terms/gravity', 'external_torques'):
        observed.take_values(topic, joint_state(ARM.joint_names, 'effort', [3.0, 4.0]), 1.0)
    observed.take_values('reference', joint_state(ARM.joint_names, 'position', [0.3, 0.4]), 1.0)
    fresh, stale = observed.snapshot(1.0), observed.snapshot(1.0 + STALE)
    assert fresh.torque.tolist() == fresh.terms['gravity'].tolist() == [3.0, 4.0]
    assert fresh.reference.tolist() == [0.3, 0.4]
    assert np.isnan(stale.torque).all()
    assert not stale.terms
    assert stale.reference is stale.external is None


@pytest.mark.parametrize(('name', 'followed'), [('pendubot', {'arm'}), ('otbot', {'x', 'y', 'alpha'})])
def test_joints_that_follow_no_reference_have_none(name, followed):
    robot = load_robot(name)
    observed = ObservedRobot(robot)
    observed.take_values('reference', joint_state(robot.joint_names, 'position', [0.5] * robot.nv), 1.0)
    known = np.isfinite(observed.snapshot(1.0).reference)
    assert {joint for joint, is_known in zip(robot.joint_names, known, strict=True) if is_known} == followed


def test_invalid_bytes_are_ignored():
    observed = ObservedRobot(ARM)
    for data in (b'', b'\x00\x01', b'\xff' * 100):
        observed.take_joint_states(data, 1.0)
        observed.take_values('torques', data, 1.0)
    assert np.isnan(observed.snapshot(1.0).q).all()


def test_a_node_without_reports_is_lost():
    diagnostic_msgs = pytest.importorskip('diagnostic_msgs.msg')
    status = diagnostic_msgs.DiagnosticStatus(
        name='/torque_controller', level=b'\x01', message='slow',
        values=[diagnostic_msgs.KeyValue(key='refused', value='2')],
    )  # fmt: skip
    observed = ObservedRobot(ARM)
    observed.take_report(diagnostic_msgs.DiagnosticArray(status=[status]), 5.0)
    report = observed.snapshot(5.0).reports['/torque_controller']
    assert (report.level, report.message, report.values) == (1, 'slow', {'refused': '2'})
    assert not observed.snapshot(5.0 + LOST).reports
