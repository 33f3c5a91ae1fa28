"""The three-dimensional scene: robot, reference, centre of mass, arrows and trails."""

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin

from .. import colours
from ..arrays import Array
from ..bags.observed_robot import Snapshot
from ..colours import rgb
from ..control.node_state import NodeState
from ..errors import KrangError
from ..robot.model import Robot
from .solids import Solid, solids

SAME = 1e-4  # smallest change of a coordinate that is sent to the browsers [m, 1]
TINTS = 20  # steps of the colour between an unloaded and a fully loaded link
GHOST = 0.25  # opacity of the reference
LARGER = 0.003  # margin of the reference around the robot, relative to its size: surfaces do not coincide
APART = 0.01  # from the robot, where the reference is shown [rad, m]
TRAIL = 400  # points of a trail
STEP = 0.01  # between two points of a trail [m]
PER_NEWTON = 0.004  # length of an arrow [m/N]
LONGEST = 0.8  # arrow [m]
SMALLEST = 1.0  # force with an arrow [N]
WELL_CONDITIONED = 0.02  # smallest singular value of the hands' Jacobian from which forces are estimated


class RobotScene:
    """Everything that moves, below the node /robot of viser's scene."""

    _ball: Any
    _shadow: Any
    _plumb: Any

    def __init__(self, scene: Any, robot: Robot) -> None:
        self._scene, self._robot, self._loaded = scene, robot, robot
        self._state: NodeState | None = None
        self._turn = False
        found, self.problems = solids(robot)
        self._body = _Body(scene, '/robot', robot, found)
        self._child = [robot.urdf.joints[name].child for name in robot.joint_names]
        low, high = self._body.extent(robot.home)
        self.size = float(np.linalg.norm(high - low)) or 1.0  # [m]
        larger = [_larger(solid, LARGER * self.size) for solid in found]
        self._ghost = _Body(scene, '/reference', robot, larger, rgb(colours.REFERENCE), GHOST)
        self._ghost.show(False)
        self.middle = (low + high) / 2
        self.ground = min(float(low[2]), 0.0)
        self._shown_centre = np.full(3, np.inf)
        self._down = np.zeros(3)  # arrow of the weight, once the controller has published its direction [m]
        self._add_ground()
        self._add_mass_centre()
        odom = robot.config.odom
        ends = robot.config.end_effectors if odom is None else (robot.urdf.joints[odom.heading].child,)
        self._trails = [
            _Trail(scene, f'/trail/{end}', colour) for end, colour in zip(ends, colours.TRAILS, strict=False)
        ]
        self.ends = ends[: len(self._trails)]  # links with a trail
        self._planned = [
            _Trail(scene, f'/planned/{end}', colours.REFERENCE) for end in (self.ends if odom else ())
        ]
        self._arrows = {
            name: _Arrows(scene, f'/arrows/{name}', colour, self.size)
            for name, colour in (
                ('gravity', colours.GRAVITY), ('commanded', colours.REFERENCE),
                ('external', colours.EXTERNAL),
            )
        }  # fmt: skip
        self.place(robot.home)
        self.clear_trails()

    def show(self, snapshot: Snapshot) -> None:
        """Draw a snapshot."""
        if not np.isfinite(snapshot.q).any():
            return
        q = np.where(np.isfinite(snapshot.q), snapshot.q, self._robot.home)
        self.place(q)
        self._show_reference(snapshot.reference, q)
        self._carry(snapshot.controller)
        self._arrows['gravity'].show([(self._centre, self._down)])
        commanded = [(self._body.origin(frame), _arrow(force)) for frame, force in snapshot.forces.items()]
        self._arrows['commanded'].show(commanded)
        self._arrows['external'].show(self._external(q, snapshot.external))

    def tint(self, use: Array) -> None:
        """Colour the links by the torque of their joints, as a share of the limit."""
        self._body.tint(dict(zip(self._child, np.nan_to_num(use), strict=True)))

    def place(self, q: Array) -> None:
        """Move the robot, its centre of mass and its trails to the pose q."""
        self._body.place(q)
        self._centre = self._loaded.center_of_mass(q)
        below = np.array([*self._centre[:2], self.ground])
        if np.abs(self._centre - self._shown_centre).max() > SAME:
            self._shown_centre = self._centre
            self._ball.position = self._centre
            self._shadow.position = below
            self._plumb.points = np.array([[self._centre, below]], np.float32)
        for trail, end in zip(self._trails, self.ends, strict=True):
            trail.add(self._body.origin(end))

    def clear_trails(self) -> None:
        """Remove the trails, after a jump in time."""
        for trail in (*self._trails, *self._planned):
            trail.clear()

    def _carry(self, state: NodeState | None) -> None:
        """Payload and direction of gravity that the controller uses."""
        if state is self._state or state is None:
            return
        self._state = state
        with suppress(KrangError):  # the controller of another robot
            self._loaded = self._robot.carrying(state.payloads(self._robot.name))
            gravity = np.array(state.gravity)
            self._down = gravity * (self.size / 4 / (np.linalg.norm(gravity) or 1.0))

    def _show_reference(self, reference: Array | None, q: Array) -> None:
        self._turn = not self._turn
        if self._turn and reference is not None:
            return  # every second frame is enough for it
        is_known = reference is not None and bool(np.isfinite(reference).any())
        goal = q if reference is None else np.where(np.isfinite(reference), reference, q)
        self._ghost.show(bool(np.abs(goal - q).max() > APART))
        if is_known:
            self._ghost.place(goal)
            for trail, end in zip(self._planned, self.ends, strict=False):
                trail.add(self._ghost.origin(end))

    def _external(self, q: Array, torque: Array | None) -> list[tuple[Array, Array]]:
        """Forces at the end effectors that explain the external torque; none where the pose is singular."""
        frames = self._robot.config.end_effectors
        if torque is None or not frames or not np.isfinite(torque).all():
            return []
        J = np.vstack([self._robot.jacobian(q, frame) for frame in frames])
        if len(J) > self._robot.nv or np.linalg.svd(J, compute_uv=False)[-1] < WELL_CONDITIONED:
            return []
        wrench = np.linalg.lstsq(J.T, torque, rcond=None)[0].reshape(-1, 6)
        return [(self._body.origin(frame), _arrow(f[:3])) for frame, f in zip(frames, wrench, strict=True)]

    def _add_ground(self) -> None:
        width = 4 * np.ceil(self.size)
        self._scene.add_grid(
            '/ground', width, width, position=(0, 0, self.ground), cell_size=0.5, section_size=1.0,
            cell_color=(222, 226, 230), section_color=(173, 181, 189), infinite_grid=True,
        )  # fmt: skip

    def _add_mass_centre(self) -> None:
        radius = 0.02 * self.size
        colour = rgb(colours.GRAVITY)
        self._ball = self._scene.add_icosphere('/centre_of_mass', radius, color=(240, 180, 20))
        self._shadow = self._scene.add_cylinder(
            '/centre_of_mass_on_ground', radius, 2e-3, color=(240, 180, 20)
        )
        ends = np.zeros((1, 2, 3), np.float32)
        self._plumb = self._scene.add_line_segments(
            '/plumb_line', ends, colors=colour, thickness=1.5, thickness_units='screen'
        )


class _Body:
    """The links of one robot, each in the axes of its parent, so that most motions change one rotation."""

    def __init__(
        self,
        scene: Any,
        root: str,
        robot: Robot,
        found: list[Solid],
        colour: tuple[int, int, int] | None = None,
        opacity: float | None = None,
    ) -> None:
        self._robot, self._data = robot, robot.model.createData()
        self._ids = {link: robot.model.getFrameId(link, pin.FrameType.BODY) for link in robot.frames}
        self._found = found
        self._root = scene.add_frame(root, show_axes=False)
        paths = {robot.urdf.root: f'{root}/{robot.urdf.root}'}
        self._links: list[tuple[int, int, Any]] = []  # parent's and own index in Pinocchio, and the frame
        for link in robot.urdf.subtree(robot.urdf.root):
            for joint in robot.urdf.joints.values():
                if joint.parent == link:
                    paths[joint.child] = f'{paths[link]}/{joint.child}'
                    frame = scene.add_frame(paths[joint.child], show_axes=False)
                    self._links.append((self._ids[link], self._ids[joint.child], frame))
        self._shown = np.full((len(self._links), 7), np.inf)
        self._meshes: dict[str, list[tuple[Any, Array]]] = {}
        for number, solid in enumerate(found):
            mesh = scene.add_mesh_simple(
                f'{paths[solid.link]}/shape_{number}', solid.vertices.astype(np.float32),
                solid.faces.astype(np.uint32), color=colour or solid.colour, opacity=opacity,
                flat_shading=len(solid.faces) < 500, cast_shadow=opacity is None,
            )  # fmt: skip
            self._meshes.setdefault(solid.link, []).append((mesh, np.array(solid.colour, float)))
        self._tints: dict[str, int] = {}

    def show(self, visible: bool) -> None:
        if self._root.visible != visible:
            self._root.visible = visible

    def place(self, q: Array) -> None:
        self._compute(q)
        places = self._data.oMf
        poses = np.array(
            [pin.SE3ToXYZQUAT(places[parent].actInv(places[link])) for parent, link, _ in self._links]
        )
        change = np.abs(poses - self._shown)
        for row in np.flatnonzero((change > SAME).any(axis=1)):
            frame = self._links[row][2]
            if change[row, :3].max() > SAME:
                frame.position = poses[row, :3]
            if change[row, 3:].max() > SAME:
                frame.wxyz = poses[row, [6, 3, 4, 5]]
            self._shown[row] = poses[row]

    def origin(self, link: str) -> Array:
        """Origin of a link in the pose that was placed last [m]."""
        return np.array(self._data.oMf[self._ids[link]].translation)

    def extent(self, q: Array) -> tuple[Array, Array]:
        """Lowest and highest coordinates of all solids in the pose q [m]."""
        self._compute(q)
        poses = [(self._data.oMf[self._ids[solid.link]], solid) for solid in self._found]
        corners = np.vstack([s.vertices @ pose.rotation.T + pose.translation for pose, s in poses])
        return corners.min(axis=0), corners.max(axis=0)

    def tint(self, use: dict[str, float]) -> None:
        """Colour links from their own colour to red by the used share of a limit."""
        for link, share in use.items():
            step = round(TINTS * min(abs(share), 1.0))
            if step == self._tints.get(link, 0):
                continue
            self._tints[link] = step
            for mesh, own in self._meshes.get(link, ()):
                mixed = own + (np.array(rgb(colours.BAD)) - own) * step / TINTS
                mesh.color = tuple(int(x) for x in mixed)

    def _compute(self, q: Array) -> None:
        position = self._robot.joint_map.position(np.ascontiguousarray(q, float))
        pin.framesForwardKinematics(self._robot.model, self._data, position)


class _Trail:
    """The path of a point."""

    def __init__(self, scene: Any, name: str, colour: str) -> None:
        self._points = np.zeros((0, 3), np.float32)
        self._lines = scene.add_line_segments(
            name, np.zeros((1, 2, 3), np.float32), colors=rgb(colour), thickness=2.0, thickness_units='screen'
        )

    def add(self, point: Array) -> None:
        if len(self._points) and np.abs(point - self._points[-1]).max() < STEP:
            return
        self._points = path = np.vstack([self._points[-TRAIL:], point], dtype=np.float32)
        if len(path) > 1:
            self._lines.points = np.stack([path[:-1], path[1:]], axis=1)

    def clear(self) -> None:
        self._points = self._points[:0]
        self._lines.points = np.zeros((1, 2, 3), np.float32)


class _Arrows:
    """Forces as arrows from their points of application."""

    def __init__(self, scene: Any, name: str, colour: str, size: float) -> None:
        self._arrows = scene.add_arrows(
            name, np.zeros((1, 2, 3), np.float32), colors=rgb(colour), shaft_radius=0.006 * size,
            head_radius=0.015 * size, head_length=0.04 * size, visible=False,
        )  # fmt: skip
        self._shown: Array = np.zeros((1, 2, 3))

    def show(self, arrows: list[tuple[Array, Array]]) -> None:
        """Starts and vectors, in world axes [m]."""
        ends = np.array([[start, start + arrow] for start, arrow in arrows if arrow.any()])
        if self._arrows.visible != bool(len(ends)):
            self._arrows.visible = bool(len(ends))
        if len(ends) and (ends.shape != self._shown.shape or np.abs(ends - self._shown).max() > SAME):
            self._shown = ends
            self._arrows.points = ends.astype(np.float32)


def _larger(solid: Solid, margin: float) -> Solid:
    """A solid with a margin on all sides [m]."""
    low, high = solid.vertices.min(axis=0), solid.vertices.max(axis=0)
    scale = 1 + margin / np.maximum((high - low) / 2, margin)
    return replace(solid, vertices=(low + high) / 2 + scale * (solid.vertices - (low + high) / 2))


def _arrow(force: Any) -> Array:
    """The arrow of a force [m]; zero for a small one."""
    newtons = float(np.linalg.norm(force))
    return force * (min(PER_NEWTON * newtons, LONGEST) / newtons) if newtons >= SMALLEST else np.zeros(3)
