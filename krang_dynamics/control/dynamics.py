"""One Pinocchio pass per step; all terms use its results."""

from collections.abc import Iterable

import numpy as np
import pinocchio as pin

from ..arrays import Array, Indices
from ..kernels import add_wrench, fastest_point
from ..robot.model import Robot
from ..robot.rolling import Rolling, supporting_joints

ALIGNED = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED


class Dynamics:
    """A, C v + Q, Q and frames of the present state, in the robot's joint order.

    The next update overwrites the arrays, except gravity, which is a new array every time.
    """

    def __init__(self, robot: Robot, coriolis: bool = False) -> None:
        self.robot = robot
        self.gravity = np.zeros(robot.nv)  # Q [N m]
        self._map = robot.joint_map
        self._model = robot.model.copy()
        self._data = self._model.createData()
        self.A = self._data.M  # [kg m2]
        self.bias = self._data.nle  # C v + Q [N m]
        self.C = self._data.C  # only with `coriolis`
        self._M, self._nle, self._g = self._data.M, self._data.nle, self._data.g  # views
        self._is_in_order = robot.joint_map.is_identity  # then these are views of Pinocchio's own arrays
        self._point_data = self._model.createData()  # for what is not part of the pass
        self._q, self._v = np.zeros(self._model.nq), np.zeros(self._model.nv)
        self._coriolis = coriolis
        self._state: tuple[Array, Array] | None = None  # q and v of the last pass, if it still holds
        wheels = robot.config.rolling
        self._rolling = Rolling(self._model, self._data, wheels) if wheels else None
        self._constraint: tuple[Array, Array] | None = None  # J and Jdot v of the last pass, if computed
        if not self._is_in_order:
            self.A, self.bias = np.zeros((robot.nv, robot.nv)), np.zeros(robot.nv)
            self._fold()
        self._frames = {name: self._model.getFrameId(name, pin.FrameType.BODY) for name in robot.frames}
        self._J = self._data.J.reshape(6, -1)  # of all joints in the world, 6 x joints
        frames = self._model.frames
        self._supports = {
            name: supporting_joints(self._model, frames[index]) for name, index in self._frames.items()
        }
        self._places = {name: self._place(frames[index]) for name, index in self._frames.items()}
        self._placements, self._parents, self._axes = self._joints()
        self._links, self._points = self._far_points()
        self._reach = self._reaches()

    def _joints(self) -> tuple[tuple[Array, ...], Indices, Array]:
        """Views of the joints' placements relative to their parents, the parents, and unit velocities."""
        model, data = self._model, self._data
        pin.computeJointJacobians(model, data, pin.neutral(model))
        placements = [view for T in list(data.liMi)[1:] for view in (T.rotation, T.translation)]
        axes = [data.oMi[i + 1].actInv(pin.Motion(J)).vector for i, J in enumerate(data.J.reshape(6, -1).T)]
        return tuple(placements), np.array(model.parents, dtype=np.intp)[1:], np.array(axes)

    def _far_points(self) -> tuple[Indices, Array]:
        """Points that show how fast a robot moves, by joint and in its frame [m].

        Origins of all frames, corners of boxes around the shapes, and the far ends of uniform links, twice
        as far as the centres of mass.
        """
        model, links = self._model, self.robot.urdf.links
        frames = [model.frames[i] for i in self._frames.values()]
        bodies = range(1, model.njoints)
        joints = [frame.parentJoint for frame in frames] + list(bodies)
        points = [frame.placement.translation for frame in frames]
        points += [2 * model.inertias[i].lever if model.inertias[i].mass > 0 else np.zeros(3) for i in bodies]
        for name, frame in zip(self._frames, frames, strict=True):
            corners = [frame.placement.act(corner) for corner in links[name].corners]
            joints += [frame.parentJoint] * len(corners)
            points += corners
        return np.array(joints, dtype=np.intp), np.array(points)

    def _reaches(self) -> Array:
        """How far any point can be from each joint that turns it [m]; 1 for joints that slide."""
        model = self._model
        limits = np.abs([model.lowerPositionLimit, model.upperPositionLimit])
        travel = np.where(np.isfinite(limits), limits, 0.0).max(axis=0)
        slides = np.linalg.norm(self._axes[:, :3], axis=1) > 0.5
        reach = np.zeros(model.njoints)  # from the origin of each link
        np.maximum.at(reach, self._links, np.linalg.norm(self._points, axis=1))
        for i in reversed(range(1, model.njoints)):
            way = np.linalg.norm(model.jointPlacements[i].translation) + slides[i - 1] * travel[i - 1]
            parent = model.parents[i]
            reach[parent] = max(reach[parent], way + reach[i])
        return np.where(slides, 1.0, reach[1:])

    def _place(self, frame: pin.Frame) -> tuple[Array, Array, Array]:
        """Views of rotation and translation of the joint that carries a frame; those of the frame there."""
        joint, place = self._data.oMi[frame.parentJoint], frame.placement
        return joint.rotation, joint.translation, np.concatenate([*place.rotation, place.translation])

    def set_gravity(self, gravity: Array) -> None:
        """Set gravity [m/s2] in the root link's axes."""
        self._model.gravity.linear = gravity
        self._state = None

    def model_gravity(self) -> Array:
        """The gravity in force [m/s2]."""
        return np.array(self._model.gravity.linear)

    def update(self, q: Array, v: Array) -> None:
        """Compute everything for q [rad] and v [rad/s], which must not be changed later.

        The same two arrays again need no pass: a step without a new state, or a guard's with a command.
        """
        if self._state is not None and self._state[0] is q and self._state[1] is v:
            return
        state = q, v
        model, data = self._model, self._data
        if not self._is_in_order:
            q, v = self._map.state(q, v)
        self._q, self._v = q, v
        if self._coriolis:
            pin.computeCoriolisMatrix(model, data, q, v)
        pin.computeAllTerms(model, data, q, v)
        if self._is_in_order:
            self.gravity = self._g.copy()
        else:
            self._fold()
        self._state, self._constraint = state, None

    def _fold(self) -> None:
        """From Pinocchio's joints to the robot's."""
        fold, data = self._map, self._data
        self.gravity = fold.equations(self._M, self._nle, self._g, self.A, self.bias)
        if self._coriolis:
            self.C = fold.matrix(data.C)

    def constraint(self) -> tuple[Array, Array]:
        """J and Jdot v of the rolling wheels, with J v = 0; [otbot] section 5."""
        assert self._rolling is not None
        if self._constraint is None:
            J, bias = self._rolling.constraint(self._v)
            self._constraint = self._map.columns(J), bias
        return self._constraint

    def point_speed(self, v: Array) -> float:
        """Largest speed [m/s] of any point if the joints moved at v [rad/s] in the present pose."""
        v = self._map.velocity(v)
        return fastest_point(self._placements, self._parents, self._axes, self._links, self._points, v)

    def point_speed_in_any_pose(self, v: Array) -> float:
        """A bound [m/s] of that speed for every pose: each joint moves its farthest point the same way."""
        speeds = np.zeros(len(self._parents) + 1)  # behind each link, relative to it
        for i, speed in reversed(list(enumerate(np.abs(self._map.velocity(v)) * self._reach))):
            speeds[self._parents[i]] = max(speeds[self._parents[i]], speeds[i + 1] + speed)
        return float(speeds[0])

    def gravity_stiffness(self) -> Array:
        """dQ/dq [N m/rad] in the present pose: positive where gravity pulls a displaced joint back."""
        slope = pin.computeGeneralizedGravityDerivatives(self._model, self._point_data, self._q)
        return self._map.matrix(slope)

    def jacobian(self, frame: str) -> Array:
        """6 x nv at the frame's origin, world axes, linear above angular."""
        J = pin.getFrameJacobian(self._model, self._data, self._frames[frame], ALIGNED)
        return self._map.columns(J if J.ndim == 2 else J[:, None])

    def add_wrench(self, torque: Array, frame: str, f: Array, frame_id: str) -> None:
        """Add J^T f of a wrench of `frame` in the axes and at the origin of frame_id; [krang] eq. 16."""
        moving = self._supports[frame]
        if self._is_in_order:
            add_wrench(torque, *self._places[frame_id], f, self._J, moving)
            return
        of_model = np.zeros(self._model.nv)
        add_wrench(of_model, *self._places[frame_id], f, self._J, moving)
        torque += self._map.force(of_model)

    def pose(self, frame: str) -> tuple[Array, Array]:
        """Rotation to, and position in, the world [m]."""
        placement = pin.updateFramePlacement(self._model, self._data, self._frames[frame])
        return placement.rotation, placement.translation

    def poses_at(self, q: Array, frames: Iterable[str]) -> list[tuple[Array, Array]]:
        """Rotations and positions of frames in another pose q [rad]; the present pose stays."""
        model, data = self._model, self._point_data
        pin.forwardKinematics(model, data, self._map.position(q))
        placements = [pin.updateFramePlacement(model, data, self._frames[name]) for name in frames]
        return [(T.rotation, T.translation) for T in placements]
