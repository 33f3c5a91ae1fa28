"""Robot: the equations of motion of one robot, evaluated by Pinocchio."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pinocchio as pin
from pinocchio import computeFrameJacobian

from ..arrays import Array, array, joint_vector
from ..errors import InputError, KrangError, UnknownNameError, UrdfError
from ..kernels import are_vectors
from .config import RobotConfig
from .consistency import effort_limit
from .friction import Friction
from .joint_map import JointMap
from .motor import Motors
from .payload import Payload
from .plausibility import inertia_problems
from .rolling import Rolling
from .urdf import Urdf
from .urdf_editing import kinematics_xml

if TYPE_CHECKING:
    from .compiled import CompiledDynamics

ALIGNED = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
AXES = {'world': ALIGNED, 'local': pin.ReferenceFrame.LOCAL}  # of a Jacobian
MOST_JOINTS = 200  # that move: Pinocchio's data then take 0.5 GB, and grow with the cube
MOST_LINKS = 1000  # Pinocchio reads them by recursion, and crashes at several thousand


class Robot:
    """A torque-controlled robot: A(q) a + C(q, v) v + Q(q) + Gamma_f(v) + J^T lambda = E u.

    q, v, a and tau are float arrays in the order of `joint_names`, one number per joint, in rad or
    m. Returned arrays are copies. A Robot has internal buffers, so it must not be shared between threads.
    """

    def __init__(self, config: RobotConfig, urdf: Urdf, payloads: tuple[Payload, ...] = ()) -> None:
        urdf.check_masses()
        self.config = config
        self.urdf = urdf
        self.payloads = payloads
        self.name = config.name
        self.joint_names = tuple(config.joints)
        self.actuated_joint_names = tuple(n for n, j in config.joints.items() if j.driven)
        self.nv = len(self.joint_names)
        self._home = np.array([config.home[name] for name in self.joint_names])
        self._set_limits()

        self.model = _build_model(config, urdf)
        self._frame_ids = {name: self.model.getFrameId(name, pin.FrameType.BODY) for name in urdf.links}
        self.frames = tuple(urdf.links)
        for payload in payloads:
            self._attach(payload)
        self.data = self.model.createData()
        self.total_mass = float(pin.computeTotalMass(self.model))  # of the moving links [kg]

        self.joint_map = JointMap(urdf, self.joint_names, list(self.model.names)[1:])
        self.friction = Friction(config.friction, self.joint_names)
        self.motors = Motors(config.joints, config.command_unit)
        # Its data are its own: another thread may ask for other quantities.
        wheels = config.rolling
        self._rolling = Rolling(self.model, self.model.createData(), wheels) if wheels else None
        self._driven = np.array([j.driven for j in config.joints.values()])
        self._E = np.eye(self.nv)[:, self._driven]
        self._shape = (self.nv,)
        self._is_in_order = self.joint_map.is_identity
        self._has_plain_jacobian = self._is_in_order and self.nv > 1  # of one joint Pinocchio's is a vector
        self._zero = np.zeros(self.nv)
        self._check_mass_matrix()

    @property
    def home(self) -> Array:
        """The configured resting pose [rad, m]."""
        return self._home.copy()

    # -- equations of motion ----------------------------------------------------------------

    def mass_matrix(self, q: Array) -> Array:
        """A(q) [kg m2], with rotors on the diagonal unless rotor_inertia is false; [krang] eq. 2, 18."""
        A = pin.crba(self.model, self.data, self._q(q))
        return A if self._is_in_order else self.joint_map.matrix(A)

    def coriolis_matrix(self, q: Array, v: Array) -> Array:
        """C(q, v) of Christoffel symbols, so that dA/dt - 2 C is skew; [krang] eq. 4."""
        q, v, _ = self._checked(q, v, v)
        C = pin.computeCoriolisMatrix(self.model, self.data, q, v)
        return C if self._is_in_order else self.joint_map.matrix(C)

    def gravity_torque(self, q: Array) -> Array:
        """Q(q) [N m], the torque that holds the robot at rest; [krang] eq. 5."""
        Q = pin.computeGeneralizedGravity(self.model, self.data, self._q(q))
        return Q if self._is_in_order else self.joint_map.force(Q)

    def friction_torque(self, v: Array, q: Array | None = None) -> Array:
        """Gamma_f [N m], on the side of A a + C v + Q; [krang] eq. 17. Without q, of joints without load."""
        return self.friction.torque(self._vector('v', v), None if q is None else self.friction_load(q))

    def friction_load(self, q: Array) -> Array | None:
        """Q(q) [N m] if friction grows with it."""
        return self.gravity_torque(q) if self.friction.has_load else None

    def inverse_dynamics(self, q: Array, v: Array, a: Array, friction: bool = False) -> Array:
        """A a + C v + Q (+ Gamma_f) [N m], the generalised force of every joint; [krang] eq. 3."""
        tau = pin.rnea(self.model, self.data, *self._checked(q, v, a))
        if not self._is_in_order:
            tau = self.joint_map.force(tau)
        return tau + self.friction_torque(v, q) if friction else tau

    def forward_dynamics(self, q: Array, v: Array, u: Array, friction: bool = False) -> Array:
        """Acceleration under motor torques u [N m], with constraints; [otbot] section 7."""
        return self._solve_motion(q, v, self._u(u), friction)[0]

    def constraint_force(self, q: Array, v: Array, u: Array, friction: bool = False) -> Array:
        """J^T lambda [N m] of A a + C v + Q + J^T lambda = E u; [otbot] section 6."""
        multipliers = self._solve_motion(q, v, self._u(u), friction)[1]
        return self.constraint_jacobian(q).T @ multipliers

    def motor_torque(self, q: Array, v: Array, a: Array, friction: bool = False) -> Array:
        """u [N m] over the actuated joints that gives a, by [E -J^T] (u, lambda) = tau; [otbot] section 8.

        If a is infeasible: the least-squares solution in the generalised force.
        """
        tau = self.inverse_dynamics(q, v, a, friction)
        if self._rolling is None:
            return tau[self._driven]
        J, driven, passive = self.constraint_jacobian(q), self._driven, ~self._driven
        try:  # the rows of the passive joints give lambda
            return np.asarray(tau[driven] - np.linalg.solve(J[:, passive].T, tau[passive]) @ J[:, driven])
        except np.linalg.LinAlgError:  # not as many constraints as passive joints, or dependent ones
            columns = np.hstack([self._E, -J.T])
            return np.asarray(np.linalg.lstsq(columns, tau, rcond=None)[0][: self._E.shape[1]])

    def actuation_matrix(self) -> Array:
        """E, which maps motor torques to generalised forces; [otbot] section 4."""
        return self._E.copy()

    def constraint_jacobian(self, q: Array) -> Array:
        """J(q) of the rolling constraints J v = 0, of full row rank; no rows without wheels."""
        q = self._q(q)
        if self._rolling is None:
            return np.zeros((0, self.nv))
        self._rolling.update(q)
        return self.joint_map.columns(self._rolling.jacobian())

    def constraint_bias(self, q: Array, v: Array) -> Array:
        """Jdot v, with J a + Jdot v = 0; [otbot] section 5."""
        q, v, _ = self._checked(q, v, v)
        if self._rolling is None:
            return np.zeros(0)
        self._rolling.update(q)
        return self._rolling.constraint(v)[1]

    def saddle_matrix(self, q: Array) -> Array:
        """[A J^T; J 0], or A for a robot without wheels; [otbot] section 6."""
        A = self.mass_matrix(q)
        if self._rolling is None:
            return A
        J, n = self.constraint_jacobian(q), self.nv
        K = np.zeros((n + len(J), n + len(J)))
        K[:n, :n], K[:n, n:], K[n:, :n] = A, J.T, J
        return K

    def linearize(self, q: Array, v: Array, u: Array) -> tuple[Array, Array]:
        """A, B of x' = A x + B u about a state, x = (q, v), friction included, u in motor units.

        From the derivatives of A a + h + Gamma_f + J^T lambda = E tau(u, v) and J a + Jdot v = 0.
        """
        command = self._E @ self._u(u)
        v = self._vector('v', v)
        a, multipliers = self._solve_motion(q, v, self.motors.torque(command, v)[self._driven], True)
        slope_q, slope_v, _ = pin.computeRNEADerivatives(self.model, self.data, *self._checked(q, v, a))
        force_q, force_v = self.joint_map.matrix(slope_q), self.joint_map.matrix(slope_v)
        load = self.friction_load(q)
        force_v = force_v + np.diag(self.friction.slope(v, load) + self.motors.drag)
        if load is not None:
            stiffness = pin.computeGeneralizedGravityDerivatives(self.model, self.data, self._q(q))
            slope = self.friction.load_slope(v, load)[:, None]
            force_q = force_q + slope * self.joint_map.matrix(stiffness)
        bias_q = bias_v = np.zeros((0, self.nv))
        if self._rolling is not None:
            force_q = force_q + _slope(lambda x: self.constraint_jacobian(x).T @ multipliers, q)
            bias_q = _slope(lambda x: self.constraint_jacobian(x) @ a + self.constraint_bias(x, v), q)
            bias_v = _slope(lambda x: self.constraint_bias(q, x), v)
        A = np.zeros((2 * self.nv, 2 * self.nv))
        A[: self.nv, self.nv :] = np.eye(self.nv)
        A[self.nv :, : self.nv] = self._solve_saddle(q, -force_q, -bias_q)[: self.nv]
        A[self.nv :, self.nv :] = self._solve_saddle(q, -force_v, -bias_v)[: self.nv]
        B = np.zeros((2 * self.nv, self._E.shape[1]))
        gain = self._E * self.motors.gain[:, None]
        B[self.nv :] = self._solve_saddle(q, gain, np.zeros((len(multipliers), B.shape[1])))[: self.nv]
        return A, B

    # -- kinematics and energy ---------------------------------------------------------------

    def jacobian(self, q: Array, frame: str, reference: str = 'world') -> Array:
        """6 x nv, linear above angular velocity of the frame's origin; [krang] section 3.

        In world axes, in the frame's own axes ('local'), or in the axes of another frame.
        """
        try:
            axes, index = AXES[reference], self._frame_ids[frame]
        except (KeyError, TypeError):  # the axes of another frame, or an unknown name
            self._frame(frame)
            turn = self.frame_pose(q, self._reference(reference))[:3, :3].T
            J = self.jacobian(q, frame)
            return np.vstack([turn @ J[:3], turn @ J[3:]])
        J = computeFrameJacobian(self.model, self.data, self._q(q), index, axes)
        return J if self._has_plain_jacobian else self.joint_map.columns(J.reshape(6, -1))

    def frame_pose(self, q: Array, frame: str) -> Array:
        """4 x 4 homogeneous transform from the frame to the world [m]."""
        index, q = self._frame(frame), self._q(q)
        pin.forwardKinematics(self.model, self.data, q)
        return np.array(pin.updateFramePlacement(self.model, self.data, index).homogeneous)

    def wrench_to_torque(self, q: Array, wrenches: Mapping[str, Array], reference: str = 'world') -> Array:
        """Sum of J^T f [N m], f = (force, moment) that the ROBOT applies; [krang] eq. 16.

        The moment is about the frame's origin, the axes are those of `reference` as in jacobian().
        """
        if not isinstance(wrenches, Mapping):
            raise InputError(f'wrenches is {wrenches!r}; it must map frames to wrenches')
        self._reference(reference)
        tau = np.zeros(self.nv)
        for frame, wrench in wrenches.items():
            f = array(f'wrench of {frame!r}', wrench, (6,))
            tau += self.jacobian(q, frame, reference).T @ f
        return tau

    def center_of_mass(self, q: Array) -> Array:
        """Centre of mass of all moving links in the world [m]."""
        return np.array(pin.centerOfMass(self.model, self.data, self._q(q)))

    def kinetic_energy(self, q: Array, v: Array) -> float:
        """E = 1/2 v^T A v [J], rotors included as in A; [krang] eq. 2."""
        # Pinocchio's computeKineticEnergy ignores the armature of joints with an oblique axis.
        v = self._vector('v', v)
        return float(0.5 * v @ self.mass_matrix(q) @ v)

    def potential_energy(self, q: Array) -> float:
        """U [J], zero for masses at the height of the world's origin; [krang] eq. 12."""
        return float(pin.computePotentialEnergy(self.model, self.data, self._q(q)))

    def rotor_inertia(self) -> Array:
        """Rotor inertia as it enters A [kg m2]: N^2 J_m on the diagonal, zero if rotor_inertia is false."""
        return self.joint_map.matrix(np.diag(self.model.armature))

    # -- motors and variants -------------------------------------------------------------------

    def motor_command(self, tau: Array, v: Array) -> Array:
        """Driver commands in command_unit for joint torques tau [N m] at speed v; 0 for passive joints.

        tau and the result are over joint_names, or over actuated_joint_names like motor_torque().
        """
        v = self._vector('v', v)
        try:
            return self.motors.command(self._vector('tau', tau), v)
        except InputError as error:
            if self._driven.all():
                raise
            try:
                u = self._u(tau, 'tau')
            except InputError as other:
                raise InputError(f'{error}; or {other}') from None
            return self.motors.command(self._E @ u, v)[self._driven]

    def with_payload(
        self, frame: str, mass: float, com: object = (0, 0, 0), inertia: object = np.zeros((3, 3))
    ) -> 'Robot':
        """A new robot with a payload at `frame`: kg, m, and kg m2 at its centre of mass, in frame axes."""
        return self.carrying((*self.payloads, Payload.checked(frame, mass, com, inertia)))

    def carrying(self, payloads: Sequence[Payload]) -> 'Robot':
        """A new robot with these payloads and no others."""
        for payload in payloads:
            self._frame(payload.frame)
        try:
            return Robot(self.config, self.urdf, tuple(payloads))
        except UrdfError:
            raise InputError(f'payload {list(payloads)} is too large for floating-point numbers') from None

    def with_gravity(self, gravity: object) -> 'Robot':
        """A new robot with another gravity [m/s2] in the root link's axes, for example on a tilted base."""
        x, y, z = array('gravity', gravity, (3,)).tolist()
        return Robot(replace(self.config, gravity=(x, y, z)), self.urdf, self.payloads)

    def compiled(self) -> 'CompiledDynamics':
        """The robot's dynamics as machine code; needs casadi and a C compiler, and takes some seconds."""
        try:
            from .compiled import CompiledDynamics
        except ModuleNotFoundError as error:
            raise KrangError(f'compiled() needs {error.name}; pip install {error.name}') from error
        return CompiledDynamics(self)

    def __reduce__(self) -> tuple[type['Robot'], tuple[object, ...]]:
        """Pickled as its description, which is smaller than Pinocchio's model."""
        return Robot, (self.config, self.urdf, self.payloads)

    def __repr__(self) -> str:
        return f'Robot({self.name!r}, {self.nv} joints, {len(self.actuated_joint_names)} actuated)'

    # -- internal -------------------------------------------------------------------------------

    def _vector(self, what: str, value: Array) -> Array:
        return joint_vector(what, value, self.joint_names, self._shape)

    def _q(self, q: Array) -> Array:
        """q, checked, in the order of Pinocchio's joints."""
        if not are_vectors(self.nv, q):
            q = self._vector('q', q)
        return q if self._is_in_order else self.joint_map.position(q)

    def _checked(self, q: Array, v: Array, a: Array) -> tuple[Array, Array, Array]:
        """q, v and a, checked, in the order of Pinocchio's joints."""
        if not are_vectors(self.nv, q, v, a):
            q, v, a = self._vector('q', q), self._vector('v', v), self._vector('a', a)
        if self._is_in_order:
            return q, v, a
        joints = self.joint_map
        return joints.position(q), joints.velocity(v), joints.velocity(a)

    def _u(self, u: Array, what: str = 'u') -> Array:
        names = self.actuated_joint_names
        return joint_vector(what, u, names, (len(names),))

    def _frame(self, name: str) -> int:
        try:
            return self._frame_ids[name]
        except (KeyError, TypeError):
            raise UnknownNameError('frame', name, self.frames) from None

    def _reference(self, name: str) -> str:
        if name not in AXES and name not in self._frame_ids:
            raise UnknownNameError('reference', name, (*AXES, *self.frames))
        return name

    def _solve_motion(self, q: Array, v: Array, u: Array, friction: bool) -> tuple[Array, Array]:
        """Acceleration and multipliers; [otbot] section 6."""
        bias = self.inverse_dynamics(q, v, self._zero, friction)
        solution = self._solve_saddle(q, self._E @ u - bias, -self.constraint_bias(q, v))
        return solution[: self.nv], solution[self.nv :]

    def _solve_saddle(self, q: Array, force: Array, acceleration: Array) -> Array:
        """[A J^T; J 0]^-1 (force, acceleration)."""
        right = force if self._rolling is None else np.concatenate([force, acceleration])
        try:
            return np.asarray(np.linalg.solve(self.saddle_matrix(q), right))
        except np.linalg.LinAlgError:
            raise InputError(f'the equations of motion of {self.name} are singular at q = {q}') from None

    def _set_limits(self) -> None:
        limits = [self.urdf.motion_limits(name) for name in self.joint_names]
        self.lower, self.upper, self.velocity_limits = np.array(limits).T  # [rad, rad/s or m, m/s]
        self.continuous = np.array([self.urdf.joints[n].type == 'continuous' for n in self.joint_names])
        efforts = [effort_limit(self.config.joints[n], self.urdf.joints[n].effort) for n in self.joint_names]
        self.effort_limits = np.array([effort for effort, _ in efforts])  # [N m]
        self.effort_sources = tuple(source for _, source in efforts)
        for limit in (self.lower, self.upper, self.velocity_limits, self.effort_limits, self.continuous):
            limit.flags.writeable = False

    def _attach(self, payload: Payload) -> None:
        frame = self.model.frames[self._frame(payload.frame)]
        body = pin.Inertia(payload.mass, payload.com, payload.inertia)
        joint = frame.parentJoint
        self.model.inertias[joint] = self.model.inertias[joint] + frame.placement.act(body)

    def _check_mass_matrix(self) -> None:
        """Refuse a robot whose A is not positive definite."""
        random = np.random.default_rng(0)
        for q in (self._home, *random.uniform(-1, 1, (3, self.nv))):
            A = self.mass_matrix(q)
            diagonal = np.diag(A)
            joint = self.joint_names[int(np.argmin(diagonal))]
            if np.isfinite([*A.flat, *self.gravity_torque(q)]).all() and (diagonal > 0).all():
                scale = np.sqrt(diagonal)
                if np.linalg.eigvalsh(A / np.outer(scale, scale))[0] > 1e-14:
                    continue
            moved = self.urdf.subtree(self.urdf.joints[joint].child)
            problems = inertia_problems(self.urdf, moved) or ['check the inertias of the links that it moves']
            raise UrdfError(
                f'{self.urdf.source}: the mass matrix is not positive definite at joint {joint!r}; '
                f'{problems[0]}; or give the joint a motor.rotor_inertia in a robot file'
            )


def kinematic_model(urdf: Urdf) -> pin.Model:
    """Pinocchio's model of a URDF, one coordinate per moving joint, mimic joints included."""
    moving = sum(joint.moves for joint in urdf.joints.values())
    for count, most, what in ((moving, MOST_JOINTS, 'moving joints'), (len(urdf.links), MOST_LINKS, 'links')):
        if count > most:
            raise UrdfError(f'{urdf.source}: has {count} {what}; at most {most} are supported')
    try:
        return pin.buildModelFromXML(kinematics_xml(urdf))
    except (ValueError, RuntimeError) as error:
        raise UrdfError(f'{urdf.source}: Pinocchio cannot build it: {error}') from error


def _build_model(config: RobotConfig, urdf: Urdf) -> pin.Model:
    """The model with the configured gravity, and rotor inertia as its armature."""
    model = kinematic_model(urdf)
    model.name = config.name
    model.gravity.linear = np.array(config.gravity)
    armature = np.zeros(model.nv)
    if config.rotor_inertia:
        for name, joint in config.joints.items():
            row = model.joints[model.getJointId(name)].idx_v
            armature[row] = joint.motor.gear**2 * joint.motor.rotor_inertia  # [krang] eq. 18
    model.armature = armature
    return model


def _slope(f: Callable[[Array], Array], x: Array) -> Array:
    """df/dx by central differences of sixth order, accurate to about 1e-12 for smooth f."""
    h, stencil = 1e-2, ((1, 45), (2, -9), (3, 1))
    columns = []
    for step in h * np.eye(len(x)):
        columns.append(sum(w * (f(x + k * step) - f(x - k * step)) for k, w in stencil) / (60 * h))
    return np.array(columns).T
