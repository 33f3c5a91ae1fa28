"""What the torques that are left over look like: a load at a hand, or one that only the model has."""

import numpy as np

from ...arrays import Array, Mask
from ...robot.model import Robot

STATES = 400
EXPLAINS = 0.7  # a load is worth a hint when it leaves less than this share of the RMSE
LIGHT = 0.1  # [kg]


def load_hint(robot: Robot, q: Array, v: Array, residual: Array, joints: Mask) -> str | None:
    """A sentence where a load at an end effector explains `residual`, measured - predicted (K, n) [N m]."""
    step = max(1, len(q) // STATES)
    q, v, residual = q[::step], v[::step], residual[::step, joints]
    best, sentence = EXPLAINS, None
    for frame in robot.config.end_effectors:
        columns = np.array([gravity_columns(robot, x, frame)[joints] for x in q])  # (K, n, 4)
        left, columns = without_friction(v[:, joints], residual, columns)
        design = columns.reshape(-1, 4)
        load, *_ = np.linalg.lstsq(design, left.ravel(), rcond=None)
        share = np.linalg.norm(left.ravel() - design @ load) / max(float(np.linalg.norm(left)), 1e-12)
        if share < best and abs(load[0]) > LIGHT:
            best = float(share)
            direction = 'more than the model' if load[0] > 0 else 'less than the model'
            remedy = 'add a payload' if load[0] > 0 else 'is a tool in the URDF that was not mounted?'
            remedy = remedy if load[0] > 0 else f'{remedy} --remove-subtree LINK takes it off'
            sentence = (
                f'what is left looks like {abs(load[0]):.2f} kg {direction} at {frame}, and would fall to '
                f'{share:.0%}: {remedy}'
            )
    return sentence


def gravity_columns(robot: Robot, q: Array, frame: str) -> Array:
    """d(torque) / d(m, m c) of a point mass at `frame`: (n, 4), c in the frame's axes [m]."""
    J, R = robot.jacobian(q, frame), robot.frame_pose(q, frame)[:3, :3]
    lift = -np.array(robot.config.gravity)  # force per kg that holds it
    # The moment of m c about the frame's origin: (R m c) x lift.
    moments = np.cross(R.T, lift).T
    return np.column_stack([J[:3].T @ lift, J[3:].T @ moments])


def without_friction(v: Array, residual: Array, columns: Array) -> tuple[Array, Array]:
    """Residual and columns less what speed and its sign explain, joint by joint."""
    residual, columns = residual.copy(), columns.copy()
    for j in range(v.shape[1]):
        basis = np.column_stack([v[:, j], np.sign(v[:, j])])
        both = np.column_stack([residual[:, j], columns[:, j]])
        both -= basis @ np.linalg.lstsq(basis, both, rcond=None)[0]
        residual[:, j], columns[:, j] = both[:, 0], both[:, 1:]
    return residual, columns
