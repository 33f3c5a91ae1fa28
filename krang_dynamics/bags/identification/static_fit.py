"""`krang identify --static`: masses and centres of mass from poses at rest, also from partial evidence."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from ...arrays import Array, Mask
from ...errors import KrangError, UnknownNameError
from ...robot.model import Robot
from ...robot.urdf import Urdf
from ...text import number, table
from .model_files import with_inertias
from .regressor import spread_of

TOTAL, HEIGHT = 0.005, 0.005  # relative standard deviations of total mass and height, if no torque shows them
OFFSET = np.radians(3.0)  # standard deviation of an unknown offset of a joint angle, and of gravity [rad]
BALANCED = 0.002  # error of a pose that balances by hand or by a controller [rad]
NOISE, LEAST_NOISE = 0.02, 1e-4  # of a measured torque, at first and at least [effort limits]
ROUNDS = 15


@dataclass(frozen=True)
class Poses:
    """Poses at rest: q (K, n), and tau (K, n) [N m], NaN where it was not measured."""

    q: Array
    tau: Array

    def part(self, rows: Mask) -> 'Poses':
        return Poses(self.q[rows], self.tau[rows])


@dataclass(frozen=True)
class StaticUnknowns:
    """Joints whose angle has an offset, and whether the direction of gravity is unknown."""

    offsets: tuple[str, ...] = ()
    gravity: bool = False


@dataclass(frozen=True)
class StaticIdentification:
    """The robot with new masses, offsets of joint angles [rad], gravity, and errors on held-out poses."""

    before: Robot
    robot: Robot
    offsets: dict[str, tuple[float, float]]  # value and standard deviation [rad]
    masses: Array  # standard deviations [kg], by body
    torque: dict[str, tuple[float, float]]  # RMSE before and after, by joint [N m]
    angle: tuple[float, float] | None  # RMS balance angle before and after [rad]
    held_out: int  # poses

    def text(self) -> str:
        """The report for a terminal."""
        rows = []
        for i, deviation in enumerate(self.masses.tolist()):
            old, new = (robot.model.inertias[i + 1] for robot in (self.before, self.robot))
            com = ' '.join(number(x, 3) for x in new.lever)
            rows.append(
                [self.robot.model.names[i + 1], number(old.mass), number(new.mass), number(deviation, 2), com]
            )
        header = ['moved by', 'mass before [kg]', 'after', 'deviation', 'centre of mass [m]']
        lines = [
            *table(header, rows),
            f'Total {self.before.total_mass:.4g} kg before, {self.robot.total_mass:.4g} kg after',
        ]
        lines += [
            f'Offset of {name}: {np.degrees(x):.2f} deg, deviation {np.degrees(d):.2g} deg'
            for name, (x, d) in self.offsets.items()
        ]
        if self.before.config.gravity != self.robot.config.gravity:
            lines.append('Gravity: ' + ' '.join(f'{x:.3f}' for x in self.robot.config.gravity) + ' m/s2')
        lines.append(f'On {self.held_out} held-out poses')
        lines += [
            f'  {name}: RMSE {a:.4g} N m before, {b:.4g} N m after' for name, (a, b) in self.torque.items()
        ]
        if self.angle:
            before, after = np.degrees(self.angle)
            lines.append(
                f'  balance angle of the centre of mass: {before:.3g} deg before, {after:.3g} deg after'
            )
        return '\n'.join(lines)

    def is_worse(self) -> bool:
        """Whether the balance angle, or the torque of a joint, is worse on the held-out poses."""
        pairs = [self.angle] if self.angle else list(self.torque.values())
        return any(after > 1.1 * before for before, after in pairs)


def identify_static(
    robot: Robot,
    poses: Poses,
    unknowns: StaticUnknowns,
    axle: str | None = None,
    total_mass: float | None = None,
    share: float = 0.5,
) -> StaticIdentification:
    """Fit to a `share` of the poses, in all of which the robot balances over the joint `axle`, if given."""
    for name in (*unknowns.offsets, *([axle] if axle else [])):
        if name not in robot.joint_names:
            raise UnknownNameError('joint', name, robot.joint_names)
    count = np.arange(1, len(poses.q) + 1)
    used = np.floor(count * share) > np.floor((count - 1) * share)
    fit = _Fit(robot, poses.part(used), unknowns, axle, total_mass)
    found, offsets, deviations = fit.run()
    held = poses.part(~used) if (~used).any() else poses
    shift = np.zeros(robot.nv)
    for name, (x, _) in offsets.items():
        shift[robot.joint_names.index(name)] = x
    torque = {
        name: (_rmse(robot, held, j, 0 * shift), _rmse(found, held, j, shift))
        for j, name in enumerate(robot.joint_names)
        if np.isfinite(held.tau[:, j]).any()
    }
    angle = None
    if axle:
        angle = (
            _rms([balance_angle(robot, axle, q) for q in held.q]),
            _rms([balance_angle(found, axle, q + shift) for q in held.q]),
        )
    return StaticIdentification(robot, found, offsets, deviations, torque, angle, len(held.q))


def balance_angle(robot: Robot, axle: str, q: Array) -> float:
    """Angle of the centre of mass from the vertical through an axle [rad]; all links must be beyond it."""
    g = np.linalg.norm(robot.config.gravity)
    torque = robot.gravity_torque(q)[robot.joint_names.index(axle)]
    up = -np.array(robot.config.gravity) / g
    origin = robot.frame_pose(q, robot.urdf.joints[axle].child)[:3, 3]
    return float(np.arctan2(torque / (robot.total_mass * g), (robot.center_of_mass(q) - origin) @ up))


class _Fit:
    """theta is (m, m c) of every body; p has offsets of joints, then two tilts of gravity [rad]."""

    def __init__(
        self, robot: Robot, poses: Poses, unknowns: StaticUnknowns, axle: str | None, total_mass: float | None
    ) -> None:
        self.robot, self.poses, self.unknowns = robot, poses, unknowns
        self.tau = poses.tau.copy()
        self.limits = np.where(np.isfinite(robot.effort_limits), robot.effort_limits, 1.0)
        self.balanced = robot.joint_names.index(axle) if axle else None
        if self.balanced is not None:
            self.tau[:, self.balanced] = 0.0
        self.noise = self._noise(NOISE * self.limits)
        self.rows = np.isfinite(self.tau)
        if not self.rows.any():
            raise KrangError('no pose has a torque; give tau.JOINT, or --balanced JOINT')
        self.has_torque = bool(np.isfinite(poses.tau).any())
        self.total, self.pinned = total_mass or robot.total_mass, total_mass is not None
        self.bodies = list(range(1, robot.model.njoints))
        prior = [robot.model.inertias[i].toDynamicParameters()[:4] for i in self.bodies]
        self.prior = np.concatenate(prior)
        bodies = [robot.model.inertias[i] for i in self.bodies]
        self.spread = np.concatenate([spread_of(b)[:4] if b.mass else np.full(4, 1e-9) for b in bodies])

    def run(self) -> tuple[Robot, dict[str, tuple[float, float]], Array]:
        """The robot, offsets with deviations, and standard deviations of the masses."""
        count, p = len(self.prior), np.zeros(len(self.unknowns.offsets) + 2 * self.unknowns.gravity)
        theta = self.prior.copy()
        for _ in range(ROUNDS):
            design, target = self._system(theta, p)
            scale = np.append(self.spread, np.full(len(p), OFFSET))
            solution = scale * np.linalg.lstsq(design * scale, target, rcond=None)[0]
            theta, p = solution[:count], solution[count:]
            theta[::4] = np.maximum(theta[::4], 0.05 * self.prior[::4])  # a body keeps some mass
            left = np.full(self.tau.shape, np.nan)
            left[self.rows] = self.tau[self.rows] - self._regressor(p) @ theta
            measured, level = self.rows.any(axis=0), NOISE * self.limits
            rms = np.sqrt(np.nanmean(left[:, measured] ** 2, axis=0))
            level[measured] = np.clip(rms, LEAST_NOISE * self.limits[measured], level[measured])
            self.noise = self._noise(level)
        deviation = scale * np.linalg.norm(np.linalg.pinv(design * scale), axis=1)
        names = self.unknowns.offsets
        offsets = {n: (float(x), float(d)) for n, x, d in zip(names, p, deviation[count:], strict=False)}
        return self._as_robot(theta, p), offsets, deviation[:count:4]

    def _noise(self, level: Array) -> Array:
        """Standard deviations of torques [N m]: at rest, dry friction carries any torque up to its limit."""
        noise = np.hypot(level, self.robot.friction.coulomb / np.sqrt(3))
        if self.balanced is not None:
            height = abs(float(self.robot.center_of_mass(self.robot.home)[2])) or 1.0
            noise[self.balanced] = BALANCED * self.robot.total_mass * 9.81 * height
        return np.asarray(noise)

    def _system(self, theta: Array, p: Array) -> tuple[Array, Array]:
        """Linear least squares about (theta, p): torques, prior, total mass and height of the centre."""
        Y = self._regressor(p)
        torque = Y @ theta
        slopes = [
            (self._regressor(p + step) - self._regressor(p - step)) @ theta / 2e-5
            for step in 1e-5 * np.eye(len(p))
        ]
        design = np.column_stack([Y, *slopes]) if slopes else Y
        target = self.tau[self.rows] - torque + design @ np.append(theta, p)
        weight = 1 / np.broadcast_to(self.noise, self.tau.shape)[self.rows]
        mass, height = self._totals()
        free = np.zeros(len(p))
        described = float(height @ self.prior)  # total m z [kg m]
        scales = TOTAL * self.total, HEIGHT * abs(described) + 1e-9
        known = [np.append(row, free) / size for row, size in zip((mass, height), scales, strict=True)]
        values = [self.total / scales[0], described * self.total / self.robot.total_mass / scales[1]]
        # Balance shows neither mass nor height; torque shows both.
        kept = slice(0, 2 if not self.has_torque else 1 if self.pinned else 0)
        known, values = known[kept], values[kept]
        scale = np.append(self.spread, np.full(len(p), OFFSET))
        return (
            np.vstack([design * weight[:, None], np.diag(1 / scale), *known]),
            np.concatenate([target * weight, np.append(self.prior, free) / scale, values]),
        )

    def _regressor(self, p: Array) -> Array:
        """d torque / d theta of the measured torques, (rows, 4 bodies)."""
        robot, joints = self.robot, self.robot.joint_map
        shift = np.zeros(robot.nv)
        for name, x in zip(self.unknowns.offsets, p, strict=False):
            shift[robot.joint_names.index(name)] = x
        model = robot.model.copy()
        model.gravity.linear = self._gravity(p)
        data, zero = model.createData(), np.zeros(model.nv)
        columns = np.concatenate([np.arange(10 * (i - 1), 10 * (i - 1) + 4) for i in self.bodies])
        rows = []
        for q, known in zip(self.poses.q + shift, self.rows, strict=True):
            Y = pin.computeJointTorqueRegressor(model, data, joints.position(q), zero, zero)
            rows.append((Y if joints.is_identity else joints.G.T @ Y)[known][:, columns])
        return np.vstack(rows)

    def _gravity(self, p: Array) -> Array:
        g = np.array(self.robot.config.gravity)
        if not self.unknowns.gravity:
            return g
        across = np.linalg.svd(g.reshape(1, 3))[2][1:]
        return np.asarray(pin.exp3(p[-2:] @ across) @ g)

    def _totals(self) -> tuple[Array, Array]:
        """Total mass and total m z at home as functions of theta."""
        robot = self.robot
        pin.forwardKinematics(robot.model, robot.data, robot.joint_map.position(robot.home))
        up = -np.array(robot.config.gravity) / np.linalg.norm(robot.config.gravity)
        mass, height = np.zeros((2, len(self.prior)))
        for k, i in enumerate(self.bodies):
            place = robot.data.oMi[i]
            mass[4 * k] = 1.0
            height[4 * k : 4 * k + 4] = [up @ place.translation, *(up @ place.rotation)]
        return mass, height

    def _as_robot(self, theta: Array, p: Array) -> Robot:
        """The inertia of a body about its centre of mass follows its mass."""
        bodies = {}
        for k, i in enumerate(self.bodies):
            old, (m, *moment) = self.robot.model.inertias[i], theta[4 * k : 4 * k + 4].tolist()
            if old.mass > 0:
                new = pin.Inertia(m, np.array(moment) / m, old.inertia * m / old.mass)
                bodies[self.robot.model.names[i]] = new.toDynamicParameters()
        found = Robot(self.robot.config, Urdf(with_inertias(self.robot, bodies).text, self.robot.urdf.source))
        return found.with_gravity(self._gravity(p)) if self.unknowns.gravity else found


def _rmse(robot: Robot, poses: Poses, j: int, shift: Array) -> float:
    known = np.isfinite(poses.tau[:, j])
    return _rms(
        [
            tau - robot.gravity_torque(q + shift)[j]
            for q, tau in zip(poses.q[known], poses.tau[known, j], strict=True)
        ]
    )


def _rms(values: Sequence[float]) -> float:
    return float(np.sqrt(np.mean(np.square(values))))
