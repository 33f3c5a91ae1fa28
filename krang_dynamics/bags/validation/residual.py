"""What a torque residual looks like: friction, a rotor, an offset, or a load that model or robot lacks."""

from collections.abc import Sequence

import numpy as np
from scipy.optimize import nnls

from ...arrays import Array, Mask
from ...robot.model import Robot
from .window_comparison import PlotSeries

GOOD_R2, GOOD_SHARE = 0.9, 0.05  # a good model explains this variance, or misses this share of the torque
SPEED, ACCELERATION = 0.02, 0.05  # below them a joint does not move enough to judge it [rad/s], [rad/s2]
CLEAR = 0.4  # an explanation must explain this share of the squared residual
# A disturbance: above this multiple of the median, with this share of the squares in this share of the time.
LOUD, MOST, SHORT = 5.0, 0.8, 0.2
SEPARATE, SETTLING, MANY = 0.5, 0.3, 5  # between two of them, and after one [s]; more are not disturbances
STATES = 400  # at most so many states are used
EXPLAINS = 0.7  # a hint is given if a load reduces the RMSE below this fraction
CAUSES = (('a rotor', 'kg m2'), ('viscous friction', 'N m s/rad'), ('Coulomb friction', 'N m'))
LIGHT = 0.1  # smaller loads are not reported [kg]
INVERTED = 0.5  # ratio of the errors with both signs of an effort from which its sign is wrong


def verdict(series: PlotSeries, joint: int, has_load_hint: bool) -> str:
    """One line: good, or what the residual of the whole model looks like."""
    v, a, measured = series.v[:, joint], series.a[:, joint], series.measured[:, joint]
    residual = measured - series.predicted['friction'][:, joint]
    least = GOOD_SHARE * float(np.abs(measured).max())
    spans = [] if _motion_causes(v, a, residual)[1] >= CLEAR else _disturbances(series.t, residual, least)
    apart = [(series.t < begin - SETTLING) | (series.t > end + SETTLING) for begin, end in spans]
    rest = np.logical_and.reduce(apart) if spans else np.ones(len(v), bool)
    text = _verdict(v[rest], a[rest], measured[rest], residual[rest], least, has_load_hint)
    times = ', '.join(f'{begin:.1f} .. {end:.1f} s' for begin, end in spans)
    return f'{text}; except {times}: a push or a contact?' if spans else text


def _verdict(v: Array, a: Array, measured: Array, residual: Array, least: float, has_load_hint: bool) -> str:
    rmse, spread = _rms(residual), float(measured.std())
    explains = rmse**2 <= (1 - GOOD_R2) * spread**2
    if rmse <= least or (explains and not has_load_hint):
        return 'good'
    if _rms(v) < SPEED and _rms(a) < ACCELERATION:
        return 'hardly moved: gravity and offsets alone can be judged'
    cause, share = _motion_causes(v, a, residual)
    if share >= CLEAR:
        return cause
    if has_load_hint:
        return 'payload? the residual looks like a load'
    if _explained([np.ones_like(v)], residual) >= CLEAR:
        return 'offset: the residual is nearly constant'
    return 'unexplained: check masses, joint names and signs'


def _motion_causes(v: Array, a: Array, residual: Array) -> tuple[str, float]:
    """What a residual that follows the motion lacks, and the share of its square that this explains."""
    shares = {
        'friction unknown: the residual follows the velocity': _explained([v, np.sign(v)], residual),
        'rotor missing: the residual follows the acceleration': _explained([a], residual),
    }
    return max(shares.items(), key=lambda item: item[1])


def _disturbances(t: Array, residual: Array, least: float) -> list[tuple[float, float]]:
    """The few short times (begin, end) [s] that have nearly all of the squared residual; none if not so."""
    large = np.flatnonzero(np.abs(residual) > max(least, LOUD * float(np.median(np.abs(residual)))))
    is_short = 0 < len(large) <= SHORT * len(t)
    if not is_short or np.sum(residual[large] ** 2) < MOST * np.sum(residual**2):
        return []
    spans = np.split(large, np.flatnonzero(np.diff(t[large]) > SEPARATE) + 1)
    return [(float(t[k[0]]), float(t[k[-1]])) for k in spans] if len(spans) <= MANY else []


def load_hint(robot: Robot, q: Array, v: Array, residual: Array, joints: Mask) -> str | None:
    """A sentence if a load at an end effector explains `residual`, measured - predicted (K, n) [N m]."""
    step = max(1, len(q) // STATES)
    q, v, residual = q[::step], v[::step], residual[::step, joints]
    best, sentence = EXPLAINS, None
    for frame in robot.config.end_effectors:
        columns = np.array([gravity_columns(robot, x, frame)[joints] for x in q])  # (K, n, 4)
        left, columns = without_friction(v[:, joints], residual, columns)
        design = columns.reshape(-1, 4)
        load, share = _fit(design, left.ravel())
        if share < best and abs(load[0]) > LIGHT:
            best, sentence = share, _sentence(frame, load, share)
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
        fit, share = _fit(columns / scale, left)
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


def explained_effort(several: Sequence[PlotSeries], joint: int) -> float:
    """Share of the variance of a joint's effort that its model, motion or pose explains, with any gains."""
    y, gravity, rotor, q, v, a = (
        np.concatenate([x[:, joint] for x in columns])
        for columns in zip(
            *((s.measured, s.predicted['gravity'], s.predicted['rotor'], s.q, s.v, s.a) for s in several),
            strict=True,
        )
    )
    columns = [gravity, rotor, v, np.sign(v), a, np.sin(q), np.cos(q)]
    return _explained([x - x.mean() for x in columns], y - y.mean()) if np.ptp(y) else 0.0


def is_inverted(series: PlotSeries, joint: int) -> bool:
    """Whether the negative effort is a sum of the model, a rotor and friction, much more than the effort."""
    y, v = series.measured[:, joint], series.v[:, joint]
    if not np.ptp(y) or _rms(v) < SPEED:
        return False
    columns = np.column_stack([series.predicted['rotor'][:, joint], series.a[:, joint], v, np.sign(v)])
    columns, y = columns - columns.mean(axis=0), y - y.mean()
    columns = columns / np.maximum(np.linalg.norm(columns, axis=0), 1e-12)
    return bool(nnls(columns, -y)[1] < INVERTED * nnls(columns, y)[1])


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2)))


def _explained(columns: list[Array], residual: Array) -> float:
    """Share of the squared residual that a combination of the columns explains."""
    return 1.0 - _fit(np.column_stack(columns), residual)[1] ** 2


def _fit(columns: Array, residual: Array) -> tuple[Array, float]:
    """Coefficients of the columns by least squares, and the share of the residual's norm that is left."""
    fit = np.linalg.lstsq(columns, residual, rcond=None)[0]
    left = float(np.linalg.norm(residual - columns @ fit))
    return np.asarray(fit, float), left / max(float(np.linalg.norm(residual)), 1e-15)
