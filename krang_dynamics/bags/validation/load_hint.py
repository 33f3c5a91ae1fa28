"""Whether the torque residual looks like an unmodelled load, or like a load that only the model has."""

import numpy as np

from ...arrays import Array, Mask
from ...robot.model import Robot

STATES = 400  # at most so many states are used
EXPLAINS = 0.7  # a hint is given if a load reduces the RMSE below this fraction
CAUSES = (('a rotor', 'kg m2'), ('viscous friction', 'N m s/rad'), ('Coulomb friction', 'N m'))
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
            sentence = _sentence(frame, np.asarray(load, float), best)
    return sentence


def _sentence(frame: str, load: Array, share: float) -> str:
    mass = float(load[0])
    x, y, z = load[1:] / mass
    if mass > 0:
        kind = 'more than the model'
        remedy = f'try --payload {frame}={mass:.2f},{x:.3f},{y:.3f},{z:.3f}'
    else:
        kind = 'less than the model'
        remedy = 'if a tool of the URDF was not mounted, remove it with --remove-subtree LINK'
    return (
        f'the residual looks like {abs(mass):.2f} kg {kind} at {frame}, its centre at '
        f'({x:.3f}, {y:.3f}, {z:.3f}) m; with it, the RMSE would fall to {share:.0%}: {remedy}'
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


def residual_hints(robot: Robot, v: Array, a: Array, residual: Array, joints: Mask) -> list[str]:
    """A sentence on each joint whose residual follows acceleration, velocity or its sign."""
    found = []
    for j in np.flatnonzero(joints):
        left = residual[:, j] - residual[:, j].mean()
        columns = np.column_stack([a[:, j], v[:, j], np.sign(v[:, j])])
        scale = np.maximum(np.linalg.norm(columns, axis=0), 1e-12)
        if len(left) < 20 or np.abs(v[:, j]).max() < 1e-3:
            continue
        fit = np.linalg.lstsq(columns / scale, left, rcond=None)[0]
        share = np.linalg.norm(left - columns / scale @ fit) / max(float(np.linalg.norm(left)), 1e-12)
        if share > EXPLAINS:
            continue
        strongest = int(np.argmax(np.abs(fit)))
        value = float(fit[strongest] / scale[strongest])
        what, unit = CAUSES[strongest]
        excess = '' if value > 0 else ' too much in the model'
        found.append(
            f'{robot.joint_names[j]}: the residual looks like {what} of {abs(value):.2g} {unit}{excess}'
        )
    return found
