"""Torque as a linear function of unknowns: tau = Y(q, v, a) theta, links, rotors, friction and offsets."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from ...arrays import Array, Mask
from ...robot.config import Sign
from ...robot.model import Robot
from ..validation.filtering import Motion

INERTIAL = ('m', 'mx', 'my', 'mz', 'ixx', 'ixy', 'iyy', 'ixz', 'iyz', 'izz')  # Pinocchio's order
TRUST = 0.3  # how far a link may be from its description, relative
FREE, OFFSET = 10.0, 0.02  # how far friction and offsets may be from what is known, in torques that matter


@dataclass(frozen=True)
class Unknowns:
    """What is looked for beside the links; asymmetric friction takes the place of the offset."""

    sign: Sign = 'exact'
    asymmetric: bool = False


class Regressor:
    """Columns of Y by name, with the values that the robot's description has and how far to trust them.

    A body is what moves with one joint: links that are fixed to each other cannot be told apart.
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
        self.columns: list[tuple[str, int]] = []  # of the rest: kind and joint
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
        # Friction and rotors take energy or hold it; offsets and links have bounds of their own.
        self.positive = np.array([False] * self.inertial + [kind != 'offset' for kind, _ in self.columns])

    @property
    def rows(self) -> Mask:
        """Joints whose equations are used: those that move; of a rolling robot those that are driven."""
        return self.measured if self.robot.config.rolling else self.moving

    def matrix(self, motion: Motion) -> Array:
        """Y of every sample, (K, n, p)."""
        robot, joints, model = self.robot, self.robot.joint_map, self._model
        q, v, a = motion.q, motion.v, motion.a
        Y = np.zeros((len(q), robot.nv, len(self.names)))
        bodies = np.concatenate([np.arange(10 * (i - 1), 10 * i) for i in self.bodies])
        for k, (x, dx, ddx) in enumerate(zip(q, v, a, strict=True)):
            whole = pin.computeJointTorqueRegressor(
                model, self._data, joints.position(x), joints.velocity(dx), joints.velocity(ddx)
            )
            Y[k, :, : self.inertial] = (whole if joints.is_identity else joints.G.T @ whole)[:, bodies]
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
        """The unknowns of one kind over joint_names, 0 where there is none."""
        result = np.zeros(self.robot.nv)
        for i, (own, j) in enumerate(self.columns):
            if own == kind:
                result[j] = theta[self.inertial + i]
        return result

    def _kinds(self, j: int) -> tuple[str, ...]:
        if not self.measured[j]:  # without a motor there is neither rotor nor a sensor of torque
            return ('viscous', 'coulomb')
        if self.unknowns.asymmetric:
            return ('rotor', 'viscous', 'coulomb_forward', 'coulomb_backward')
        return ('rotor', 'viscous', 'coulomb', 'offset')


def random_motion(robot: Robot, count: int, locked: Mapping[str, float] | None = None) -> Motion:
    """States all over the joints' range, which excite whatever can be excited; `locked` joints stand."""
    random = np.random.default_rng(5)
    q, v, a = random.uniform(-np.pi, np.pi, (3, count, robot.nv))
    for name, value in (locked or {}).items():
        j = robot.joint_names.index(name)
        q[:, j], v[:, j], a[:, j] = value, 0.0, 0.0
    return Motion(np.arange(count, dtype=float), np.arange(count), q, v, a, np.zeros_like(q))


def _spread(body: pin.Inertia) -> list[float]:
    """How far the ten parameters of a body may be off: 30 % of its mass, at its size."""
    m = body.mass
    size = float(np.trace(body.inertia)) / 2 / m + float(body.lever @ body.lever)  # radius squared [m2]
    size = max(size, 1e-6)
    return [TRUST * x for x in (m, *[m * np.sqrt(size)] * 3, *[m * size] * 6)]


def _torque_scale(robot: Robot) -> Array:
    """A torque that matters to each joint [N m]."""
    gravity = np.abs(robot.gravity_torque(robot.home)).max(initial=1e-3)
    limits = np.where(np.isfinite(robot.effort_limits), robot.effort_limits, gravity)
    return np.asarray(np.maximum(0.1 * limits, 1e-3 * max(gravity, 1e-3)))
