"""Rolling base: task-space error dynamics, [otbot] section 8."""

import numpy as np
import pytest
from harness import robot_named, term_inputs
from tools import states

from krang_dynamics import KrangError
from krang_dynamics.control.terms.rolling_base import RollingBase


def test_rolling_base_makes_the_task_error_obey_the_published_gains():
    robot = robot_named('otbot')
    q, v = states(1, 6, parts=2)[:, 0]
    J = robot.constraint_jacobian(q)
    v = v - np.linalg.pinv(J) @ (J @ v)
    q_d, v_d, a_d = q + 0.1, v - 0.2, np.full(6, 0.3)
    torque = RollingBase(robot).torque(term_inputs(robot, q, v, q_d, v_d, a_d))
    assert not torque[:3].any()
    a = robot.forward_dynamics(q, v, torque[3:], friction=True)
    np.testing.assert_allclose(a[:3], a_d[:3] + 8.8 * (v_d - v)[:3] + 6.4 * (q_d - q)[:3], rtol=1e-9)


def test_rolling_base_is_refused_where_nothing_rolls():
    with pytest.raises(KrangError, match='not a rolling base'):
        RollingBase(robot_named('planar_2r'))
