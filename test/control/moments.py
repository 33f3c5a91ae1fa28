"""A Moment for testing terms one by one."""

import numpy as np

from krang_dynamics.control.dynamics import Dynamics
from krang_dynamics.control.terms.term import Moment


def moment(robot, q, v, q_d=None, v_d=None, a_d=None, effort_d=None, applied=None, time=10.0, dt=1e-3):
    """The state (q, v) and a reference that is the state itself where not given."""
    dynamics = Dynamics(robot, coriolis=True)
    dynamics.update(q, v)
    zero = np.zeros(robot.nv)
    given = [q_d, v_d, a_d, effort_d, applied]
    others = [q, v, zero, zero, zero]
    filled = [other if x is None else x for x, other in zip(given, others, strict=True)]
    return Moment(time, dt, q, v, *filled, robot.friction_torque(v), dynamics)
