"""Whether the torque residual looks like an unmodelled load, or like a load that only the model has."""

import numpy as np

from ...arrays import Array, Mask
from ...robot.model import Robot

STATES = 400  # at most so many states are used
EXPLAINS = 0.7  # a hint is given if a load reduces the RMSE below this fraction
LIGHT = 0.1  # smaller loads are not reported [kg]


def load_hint(robot: Robot, q: Array, v: Array, residual: Array, joints: Mask) -> str | None:
    """A sentence if a load at an end effector explains `residual`, measured - predicted (K, n) [N m]."""
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
            sentence = _sentence(frame, float(load[0]), best)
    return sentence


def _sentence(frame: str, mass: float, share: float) -> str:
    if mass > 0:
        kind, remedy = 'more than the model', 'add a payload'
    else:
        kind = 'less than the model'
        remedy = 'if a tool of the URDF was not mounted, remove it with --remove-subtree LINK'
    return (
        f'the residual looks like {abs(mass):.2f} kg {kind} at {frame}; with it, the RMSE would fall to '
        f'{share:.0%}: {remedy}'
    )


def gravity_columns(robot: Robot, q: Array, frame: str) -> Array:
    """d(torque) / d(m, m c) of a point mass at `frame`, (n, 4); c in the axes of the frame [m]."""
    J, R = robot.jacobian(q, frame), robot.frame_pose(q, frame)[:3, :3]
    lift = -np.array(robot.config.gravity)  # force per kg that carries the mass
    # Moment of m c about the origin of the frame: (R m c) x lift.
    moments = np.cross(R.T, lift).T
    return np.column_stack([J[:3].T @ lift, J[3:].T @ moments])


def without_friction(v: Array, residual: Array, columns: Array) -> tuple[Array, Array]:
    """Residual and columns without the parts that v and sign(v) explain, joint by joint."""
    residual, columns = residual.copy(), columns.copy()
    for j in range(v.shape[1]):
        basis = np.column_stack([v[:, j], np.sign(v[:, j])])
        both = np.column_stack([residual[:, j], columns[:, j]])
        both -= basis @ np.linalg.lstsq(basis, both, rcond=None)[0]
        residual[:, j], columns[:, j] = both[:, 0], both[:, 1:]
    return residual, columns
