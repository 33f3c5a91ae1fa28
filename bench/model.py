"""Cost of Robot's calls against the bare Pinocchio calls that they wrap, on Krang, in one run.

python bench/model.py
"""

import numpy as np
import pinocchio as pin
from timing import median_costs

import krang_dynamics as kd


def main():
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
    print(f'{"call":44} {"ours us":>8} {"bare us":>8} {"ratio":>6}')
    for name, (ours, bare) in pairs.items():
        our_time, bare_time = median_costs(ours, bare)
        print(f'{name:44} {our_time:8.2f} {bare_time:8.2f} {our_time / bare_time:6.2f}')


if __name__ == '__main__':
    main()
