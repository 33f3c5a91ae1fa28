"""Robot's calls against the bare Pinocchio calls that they wrap, on Krang, in one run."""

import numpy as np
import pinocchio as pin
from timing import median_costs

import krang_dynamics as kd


def run():
    robot = kd.load_robot('krang')
    model, data = robot.model, robot.model.createData()
    q, v, a = np.random.default_rng(0).uniform(-1, 1, (3, robot.nv))
    hand = model.getFrameId('left_hand', pin.FrameType.BODY)
    aligned = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    pairs = {
        'inverse_dynamics / rnea': (
            lambda: robot.inverse_dynamics(q, v, a),
            lambda: pin.rnea(model, data, q, v, a),
        ),
        'gravity_torque / computeGeneralizedGravity': (
            lambda: robot.gravity_torque(q),
            lambda: pin.computeGeneralizedGravity(model, data, q),
        ),
        'mass_matrix / crba': (lambda: robot.mass_matrix(q), lambda: pin.crba(model, data, q)),
        'coriolis_matrix / computeCoriolisMatrix': (
            lambda: robot.coriolis_matrix(q, v),
            lambda: pin.computeCoriolisMatrix(model, data, q, v),
        ),
        'jacobian / computeFrameJacobian': (
            lambda: robot.jacobian(q, 'left_hand'),
            lambda: pin.computeFrameJacobian(model, data, q, hand, aligned),
        ),
    }
    for name, (ours, bare) in pairs.items():
        our_time, bare_time = median_costs(ours, bare)
        yield {'call': name, 'ours us': our_time, 'bare us': bare_time, 'ratio': our_time / bare_time}
