"""Robot's calls against the bare Pinocchio calls that they wrap, on Krang, in one run."""

import numpy as np
import pinocchio as pin
from timing import median_costs, ratio

import krang_dynamics as kd

ALIGNED = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED


def run():
    robot = kd.load_robot('krang')
    model, data = robot.model, robot.model.createData()
    q, v, a = np.random.default_rng(0).uniform(-1, 1, (3, robot.nv))
    hand = model.getFrameId('left_hand', pin.FrameType.BODY)
    cases = [
        (
            'inverse_dynamics / rnea', 1.4,
            lambda: robot.inverse_dynamics(q, v, a),
            lambda: pin.rnea(model, data, q, v, a),
        ),
        (
            'gravity_torque / computeGeneralizedGravity', 1.3,
            lambda: robot.gravity_torque(q),
            lambda: pin.computeGeneralizedGravity(model, data, q),
        ),
        ('mass_matrix / crba', 1.25, lambda: robot.mass_matrix(q), lambda: pin.crba(model, data, q)),
        (
            'coriolis_matrix / computeCoriolisMatrix', 1.2,
            lambda: robot.coriolis_matrix(q, v),
            lambda: pin.computeCoriolisMatrix(model, data, q, v),
        ),
        (
            'jacobian / computeFrameJacobian', 1.4,
            lambda: robot.jacobian(q, 'left_hand'),
            lambda: pin.computeFrameJacobian(model, data, q, hand, ALIGNED),
        ),
    ]  # fmt: skip
    for name, goal, ours, bare in cases:
        yield ratio(name, *median_costs(ours, bare), goal)
