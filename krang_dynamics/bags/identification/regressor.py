"""Torque as a linear function of unknown parameters: tau = Y(q, v, a) theta."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from ...arrays import Array, Mask
from ...robot.config import Sign
from ...robot.model import Robot
from ..validation.filtering import FilteredMotion

INERTIAL = ('m', 'mx', 'my', 'mz', 'ixx', 'ixy', 'iyy', 'ixz', 'iyz', 'izz')  # Pinocchio's order
TRUST = 0.3  # relative standard deviation of the prior of a link
FREE, OFFSET = 10.0, 0.02  # standard deviations of the priors of friction and offset [torque scales]


@dataclass(frozen=True)
class Unknowns:
    """Friction model to be identified; asymmetric Coulomb friction replaces the offset of the effort."""

    sign: Sign = 'exact'
    asymmetric: bool = False


class Regressor:
    """Columns of Y by name, and the prior of theta: values of the robot's description and their deviations.

    A body is all links that move with one joint: links fixed to each other cannot be distinguished.
    """

    def __init__(self, robot: Robot, unknowns: Unknowns, moving: Mask, measured: Mask) -> None:
        self.robot, self.unknowns = robot, unknowns
        self.moving, self.measured = moving, measured
        self._model, self._data = robot.model, robot.model.createData()
        self.bodies = [i for i in range(1, self._model.njoints) if self._model.inertias[i].mass > 0]
        names: list[str] = []
        prior: list[float] = []
        spread: list[float] = []
        for i in self.bodies:
            body = self._model.inertias[i]
            names += [f'{self._model.names[i]}.{what}' for what in INERTIAL]
            prior += body.toDynamicParameters().tolist()
            spread += _spread(body)
        self.inertial = len(names)
        self.columns: list[tuple[str, int]] = []  # kind and joint of the other columns
        inertia = np.diag(robot.mass_matrix(robot.home))
        rotors, limits = np.diag(robot.rotor_inertia()), _torque_scale(robot)
        for j, name in enumerate(robot.joint_names):
            if not moving[j]:
                continue
            for kind in self._kinds(j):
                known, about = {
                    'rotor': (rotors[j], rotors[j] or inertia[j]),
                    'viscous': (robot.friction.viscous[j], FREE * limits[j]),
                    'offset': (0.0, OFFSET * limits[j]),
                }.get(kind, (robot.friction.coulomb[j], FREE * limits[j]))
                names.append(f'{name}.{kind}')
                self.columns.append((kind, j))
                prior.append(float(known))
                spread.append(float(max(about, known)))
        self.names = tuple(names)
        self.prior, self.spread = np.array(prior), np.array(spread)
        # Friction and rotor inertia are positive; offsets are free, and bodies have their own constraint.
        self.positive = np.array([False] * self.inertial + [kind != 'offset' for kind, _ in self.columns])

    @property
    def rows(self) -> Mask:
        """Joints whose equations are used: all that move; of a rolling robot only the driven ones."""
        return self.measured if self.robot.config.rolling else self.moving

    def matrix(self, motion: FilteredMotion) -> Array:
        """Y of each sample, (K, n, p)."""
        robot, joints, model = self.robot, self.robot.joint_map, self._model
        q, v, a = motion.q, motion.v, motion.a
        Y = np.zeros((len(q), robot.nv, len(self.names)))
        bodies = np.concatenate([np.arange(10 * (i - 1), 10 * i) for i in self.bodies])
        for k, (x, dx, ddx) in enumerate(zip(q, v, a, strict=True)):
            full = pin.computeJointTorqueRegressor(
                model, self._data, joints.position(x), joints.velocity(dx), joints.velocity(ddx)
            )
            Y[k, :, : self.inertial] = (full if joints.is_identity else joints.G.T @ full)[:, bodies]
        sign = np.tanh(v) if self.unknowns.sign == 'smooth' else np.sign(v)
        values = {
            'rotor': a,
            'viscous': v,
            'coulomb': sign,
            'coulomb_forward': np.maximum(sign, 0),
            'coulomb_backward': np.minimum(sign, 0),
            'offset': np.ones_like(v),
        }
        for i, (kind, j) in enumerate(self.columns):
            Y[:, j, self.inertial + i] = values[kind][:, j]
        if robot.config.rolling:
            E = robot.actuation_matrix()
            for k, x in enumerate(q):
                to_motors = np.linalg.pinv(np.hstack([E, -robot.constraint_jacobian(x).T]))[: E.shape[1]]
                Y[k] = E @ to_motors @ Y[k]
        return Y

    def value(self, theta: Array, kind: str) -> Array:
        """The parameters of one kind over joint_names, 0 where a joint has none."""
        result = np.zeros(self.robot.nv)
        for i, (own, j) in enumerate(self.columns):
            if own == kind:
                result[j] = theta[self.inertial + i]
        return result

    def _kinds(self, j: int) -> tuple[str, ...]:
        if not self.measured[j]:  # a passive joint has neither a rotor nor a torque measurement
            return ('viscous', 'coulomb')
        if self.unknowns.asymmetric:
            return ('rotor', 'viscous', 'coulomb_forward', 'coulomb_backward')
        return ('rotor', 'viscous', 'coulomb', 'offset')


def random_motion(robot: Robot, count: int, locked: Mapping[str, float] | None = None) -> FilteredMotion:
    """Random states, which excite every identifiable parameter; `locked` joints stay in place."""
    random = np.random.default_rng(5)
    q, v, a = random.uniform(-np.pi, np.pi, (3, count, robot.nv))
    for name, value in (locked or {}).items():
        j = robot.joint_names.index(name)
        q[:, j], v[:, j], a[:, j] = value, 0.0, 0.0
    return FilteredMotion(np.arange(count, dtype=float), np.arange(count), q, v, a, np.zeros_like(q))


def _spread(body: pin.Inertia) -> list[float]:
    """Standard deviations of the ten parameters: TRUST times the mass, at the radius of gyration."""
    m = body.mass
    size = float(np.trace(body.inertia)) / 2 / m + float(body.lever @ body.lever)  # squared [m2]
    size = max(size, 1e-6)
    return [TRUST * x for x in (m, *[m * np.sqrt(size)] * 3, *[m * size] * 6)]


def _torque_scale(robot: Robot) -> Array:
    """A typical torque of each joint [N m]."""
    gravity = np.abs(robot.gravity_torque(robot.home)).max(initial=1e-3)
    limits = np.where(np.isfinite(robot.effort_limits), robot.effort_limits, gravity)
    return np.asarray(np.maximum(0.1 * limits, 1e-3 * max(gravity, 1e-3)))
