"""Torque as a linear function of unknown parameters: tau = Y(q, v, a) theta."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pinocchio as pin

from ...arrays import Array, Integers, Mask
from ...robot.config import Sign
from ...robot.model import Robot
from ..validation.filtering import FilteredMotion

INERTIAL = ('m', 'mx', 'my', 'mz', 'ixx', 'ixy', 'iyy', 'ixz', 'iyz', 'izz')  # Pinocchio's order
TRUST = 0.3  # relative standard deviation of the prior of a link
SHARP = 0.02  # width of the smooth sign of a joint whose description has no Coulomb friction [rad/s]
CHOSEN, UNKNOWN = 0.3, 1.0  # standard deviations of the logarithm of a width that is chosen, and unknown
FREE, OFFSET = 10.0, 0.02  # standard deviations of the priors of friction and offset [torque scales]
# Prior of a rotor on a logarithmic scale: median and standard deviation as a factor. One that the description
# does not know may be a thousand times the inertia of the links; not excited, it stays a hundredth of it.
KNOWN_ROTOR, UNKNOWN_ROTOR = (1.0, 2.0), (0.01, 100.0)


@dataclass(frozen=True)
class Unknowns:
    """Friction model to be identified; asymmetric Coulomb friction replaces the offset of the effort.

    `width` of the smooth sign and `stribeck` speed by joint [rad/s]; a joint without the latter has no
    Stribeck friction, and without the former the width of its description. `load`: joints whose Coulomb
    friction grows with their gravity torque.
    """

    sign: Sign = 'exact'
    asymmetric: bool = False
    width: Mapping[str, float] = field(default_factory=dict)
    stribeck: Mapping[str, float] = field(default_factory=dict)
    load: tuple[str, ...] = ()


class Regressor:
    """Columns of Y by name, and the prior of theta: values of the robot's description and their deviations.

    A body is all links that move with one joint: links fixed to each other cannot be distinguished.
    """

    def __init__(
        self, robot: Robot, unknowns: Unknowns, moving: Mask, measured: Mask, known: Mask | None = None
    ) -> None:
        self.robot, self.unknowns = robot, unknowns
        self.moving, self.measured = moving, measured
        # Joints whose equations are used: those that move and whose torque is known; of a rolling robot only
        # the driven ones, because the torque of the others is undetermined.
        self.rows = measured if robot.config.rolling else moving if known is None else known
        names_of = robot.joint_names
        described = np.where(robot.friction.coulomb > 0, robot.friction.width, SHARP)
        width = dict(zip(names_of, described.tolist(), strict=True)) | dict(unknowns.width)
        self.width = np.array([width[name] for name in names_of])  # [rad/s]
        self._stribeck_speed = np.array([unknowns.stribeck.get(name, 1.0) for name in names_of])
        self._model, self._data = robot.model, robot.model.createData()
        self.bodies = [i for i in range(1, self._model.njoints) if self._model.inertias[i].mass > 0]
        names: list[str] = []
        prior: list[float] = []
        spread: list[float] = []
        for i in self.bodies:
            body = self._model.inertias[i]
            names += [f'{self._model.names[i]}.{what}' for what in INERTIAL]
            prior += body.toDynamicParameters().tolist()
            spread += spread_of(body)
        self.inertial = len(names)
        self.columns: list[tuple[str, int]] = []  # kind and joint of the other columns
        rotors, limits = np.diag(robot.rotor_inertia()), _torque_scale(robot)
        friction = robot.friction
        for j, name in enumerate(robot.joint_names):
            if not moving[j]:
                continue
            for kind in self._kinds(j):
                known_value, about = {
                    'rotor': (rotors[j], rotors[j] or FREE * limits[j]),
                    'viscous': (friction.viscous[j], FREE * limits[j]),
                    'stribeck': (friction.stribeck[j], FREE * limits[j]),
                    'offset': (friction.offset[j], OFFSET * limits[j]),
                    'load': (friction.load[j], 1.0),
                }.get(kind, (friction.coulomb[j], FREE * limits[j]))
                names.append(f'{name}.{kind}')
                self.columns.append((kind, j))
                prior.append(float(known_value))
                spread.append(float(max(about, known_value)))
        self.names = tuple(names)
        self.prior, self.spread = np.array(prior), np.array(spread)
        self._loaded = self._model  # whose gravity torque is the load of friction
        # Friction and rotor inertia are positive; offsets are free, and bodies have their own constraint.
        self.positive = np.array([False] * self.inertial + [kind != 'offset' for kind, _ in self.columns])

    def rotor_prior(self) -> tuple[Array, Array]:
        """Median [kg m2] and standard deviation (of the logarithm) of each rotor; NaN elsewhere."""
        robot = self.robot
        links = np.diag(robot.mass_matrix(robot.home) - robot.rotor_inertia())
        median, deviation = np.full((2, len(self.names)), np.nan)
        for i, (kind, j) in enumerate(self.columns, self.inertial):
            if kind == 'rotor':
                about = float(self.prior[i])
                share, factor = KNOWN_ROTOR if about else UNKNOWN_ROTOR
                median[i], deviation[i] = share * (about or max(float(links[j]), 1e-6)), np.log(factor)
        return median, deviation

    @cached_property
    def active(self) -> list[Integers]:
        """Per row: the indices of the parameters that can enter its equation."""
        Y = self.matrix(random_motion(self.robot, 4))
        return [np.flatnonzero(Y[:, j].any(axis=0)).astype(np.int64) for j in np.flatnonzero(self.rows)]

    def matrix(self, motion: FilteredMotion) -> Array:
        """Y of each sample, (K, n, p)."""
        robot, joints, model = self.robot, self.robot.joint_map, self._model
        q, v, a = motion.q, motion.v, motion.a
        Y = np.zeros((len(q), robot.nv, len(self.names)))
        bodies: Integers | slice = np.concatenate([np.arange(10 * (i - 1), 10 * i) for i in self.bodies])
        if len(self.bodies) == model.njoints - 1:
            bodies = slice(None)  # faster
        for k, (x, dx, ddx) in enumerate(zip(q, v, a, strict=True)):
            full = pin.computeJointTorqueRegressor(
                model, self._data, joints.position(x), joints.velocity(dx), joints.velocity(ddx)
            )
            Y[k, :, : self.inertial] = (full if joints.is_identity else joints.G.T @ full)[:, bodies]
        loads = self.load(q) if self.unknowns.load else Y[:, :, 0]
        for i, (kind, j) in enumerate(self.columns):
            load = loads[:, j] if kind == 'load' else None
            Y[:, j, self.inertial + i] = self._column(kind, j, v[:, j], a[:, j], load)
        if robot.config.rolling:
            E = robot.actuation_matrix()
            for k, x in enumerate(q):
                to_motors = np.linalg.pinv(np.hstack([E, -robot.constraint_jacobian(x).T]))[: E.shape[1]]
                Y[k] = E @ to_motors @ Y[k]
        return Y

    def set_links(self, theta: Array) -> None:
        """Use these links for the load of friction; by default they are the described ones."""
        self._loaded = self._model.copy()
        for i, body in enumerate(self.bodies):
            inertia = pin.Inertia.FromDynamicParameters(theta[10 * i : 10 * i + 10])
            self._loaded.inertias[body] = inertia

    def load(self, q: Array) -> Array:
        """|Q| of each joint, (K, n) [N m]."""
        joints = self.robot.joint_map
        torques = [
            joints.force(pin.computeGeneralizedGravity(self._loaded, self._data, joints.position(x)))
            for x in q
        ]
        return np.abs(np.array(torques).reshape(q.shape))

    def own_columns(self, joint: int, places: Integers, motion: FilteredMotion, load: Array) -> Array:
        """The columns of rotor and friction of one joint, (K, c)."""
        v, a = motion.v[:, joint], motion.a[:, joint]
        kinds = [self.columns[place - self.inertial][0] for place in places]
        columns = [self._column(kind, joint, v, a, load) for kind in kinds]
        return np.column_stack(columns or [np.zeros((len(v), 0))])

    def _column(self, kind: str, joint: int, v: Array, a: Array, load: Array | None) -> Array:
        if kind in ('rotor', 'viscous', 'offset'):
            return {'rotor': a, 'viscous': v, 'offset': np.ones_like(v)}[kind]
        sign = np.tanh(v / self.width[joint]) if self.unknowns.sign == 'smooth' else np.sign(v)
        # Friction F_f forward and F_b backward is (F_f + F_b) / 2 sign(v) + (F_f - F_b) / 2.
        if kind == 'coulomb_forward':
            return np.asarray((sign + 1) / 2)
        if kind == 'coulomb_backward':
            return np.asarray((sign - 1) / 2)
        if kind == 'stribeck':
            return np.asarray(np.exp(-((v / self._stribeck_speed[joint]) ** 2)) * sign)
        return np.asarray(sign if kind != 'load' or load is None else load * sign)

    def width_spread(self, joint: int) -> float:
        """Standard deviation of the logarithm of the width of a joint's smooth sign; 0 if it is known."""
        if self.robot.joint_names[joint] in self.unknowns.width:
            return CHOSEN
        is_known = self.unknowns.sign == 'exact' or self.robot.friction.coulomb[joint] > 0
        return 0.0 if is_known else UNKNOWN

    def width_slope(self, joint: int, v: Array) -> Array:
        """Change of the smooth sign by one standard deviation of its width, (K,)."""
        x = v / self.width[joint]
        return np.asarray(-self.width_spread(joint) * x * (1 - np.tanh(x) ** 2))

    def value(self, theta: Array, kind: str) -> Array:
        """The parameters of one kind over joint_names, 0 where a joint has none."""
        result = np.zeros(self.robot.nv)
        for i, (own, j) in enumerate(self.columns):
            if own == kind:
                result[j] = theta[self.inertial + i]
        return result

    def _kinds(self, j: int) -> tuple[str, ...]:
        if not self.measured[j]:  # a passive joint has neither a rotor nor a torque measurement
            return ('viscous', 'coulomb') if self.rows[j] else ()
        dry = ('coulomb_forward', 'coulomb_backward') if self.unknowns.asymmetric else ('coulomb', 'offset')
        name = self.robot.joint_names[j]
        extra = {'stribeck': self.unknowns.stribeck, 'load': self.unknowns.load}
        return ('rotor', 'viscous', *dry, *(kind for kind, joints in extra.items() if name in joints))


def link_parameters(robot: Robot) -> Array:
    """Ten inertial parameters of each body with mass, as in a regressor."""
    bodies = [body for body in list(robot.model.inertias)[1:] if body.mass > 0]
    return np.concatenate([body.toDynamicParameters() for body in bodies])


def random_motion(robot: Robot, count: int, locked: Mapping[str, float] | None = None) -> FilteredMotion:
    """Random states, which excite every identifiable parameter; `locked` joints stay in place."""
    random = np.random.default_rng(5)
    q, v, a = random.uniform(-np.pi, np.pi, (3, count, robot.nv))
    for name, value in (locked or {}).items():
        j = robot.joint_names.index(name)
        q[:, j], v[:, j], a[:, j] = value, 0.0, 0.0
    if robot.config.rolling:  # only motions without slip: J v = 0, and J a = -Jdot v
        for k in range(count):
            inverse = np.linalg.pinv(robot.constraint_jacobian(q[k]))
            v[k] -= inverse @ (robot.constraint_jacobian(q[k]) @ v[k])
            a[k] -= inverse @ (robot.constraint_jacobian(q[k]) @ a[k] + robot.constraint_bias(q[k], v[k]))
    return FilteredMotion(np.arange(count, dtype=float), np.arange(count), q, v, a, np.zeros_like(q))


def spread_of(body: pin.Inertia) -> list[float]:
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
