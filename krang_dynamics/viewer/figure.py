"""The projection of a robot onto a picture: shapes, sticks between joints, wheels and ground."""

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from ..arrays import Array
from ..robot.model import Robot
from ..robot.urdf import CORNERS, Shape

GREY = (0.6, 0.6, 0.65)  # of a shape without a material
ROUND = 20  # points of a circle
FLAT = 1e-3  # relative thickness below which a robot is planar
OBLIQUE = (-0.96, 0.3)  # azimuth and elevation of the camera [rad]
FROM_ABOVE = (-0.96, 0.9)  # for a mobile base
MARGIN = 0.06  # relative to the larger side
SQUARES = 8  # of the ground grid, across the picture


class Figure:
    """An orthographic view of a robot, in metres of the picture plane.

    A robot that moves in a vertical plane is viewed along its normal, any other obliquely from above.
    """

    def __init__(self, robot: Robot, motion: Array) -> None:
        self._robot = robot
        self._links = _drawn_links(robot)
        self._sticks = [
            (joint.parent, joint.child)
            for joint in robot.urdf.joints.values()
            if joint.parent in self._links and joint.child in self._links
        ]
        visuals = [(link, shape) for link in self._links for shape in robot.urdf.links[link].visuals]
        self._shapes = [(link, hull(s), s.colour or GREY) for link, s in visuals if s.kind != 'mesh']
        self._wheels = [(w.link, circle(w.radius, np.array(w.axle))) for w in robot.config.rolling]
        self._look_at(motion)

    def _look_at(self, motion: Array) -> None:
        """Choose the view, and limits that contain the whole motion."""
        some = motion[:: max(1, len(motion) // 50)]
        origins = np.vstack([[pose[:3, 3] for pose in self._poses(q).values()] for q in some])
        self.view = _view(self._robot, origins)  # rows: right, up, towards the camera
        seen = np.vstack([self._corners(self._poses(q)) for q in some])
        self.ground = float(seen[:, 2].min())  # [m]
        flat = seen @ self.view[:2].T
        low, high = flat.min(axis=0), flat.max(axis=0)
        margin = MARGIN * (high - low).max() + 1e-3
        self.low, self.high = low - margin, high + margin

    def widen(self, aspect: float) -> None:
        """Extend the limits to the ratio `aspect` of width to height."""
        middle, size = (self.low + self.high) / 2, self.high - self.low
        size = np.maximum(size, size[::-1] * (aspect, 1 / aspect))
        self.low, self.high = middle - size / 2, middle + size / 2

    def origins(self, q: Array) -> dict[str, Array]:
        """Origins of the links in the picture [m]."""
        return {link: self._flat(pose[:3, 3]) for link, pose in self._poses(q).items()}

    def sticks(self, q: Array) -> list[Array]:
        """Lines between joints, and a circle with one spoke for every wheel [m]."""
        poses = self._poses(q)
        lines = [np.array([self._flat(poses[link][:3, 3]) for link in stick]) for stick in self._sticks]
        for link, rim in self._wheels:
            rim_and_hub = np.vstack([rim, np.zeros(3)]) @ poses[link][:3, :3].T + poses[link][:3, 3]
            lines.append(self._flat(rim_and_hub))
        return lines

    def polygons(self, q: Array) -> list[tuple[Array, tuple[float, ...]]]:
        """Outlines [m] and colours of the shapes, the farthest first."""
        poses = self._poses(q)
        placed = [(_placed(points, poses[link]), colour) for link, points, colour in self._shapes]
        placed.sort(key=lambda entry: float(entry[0].mean(axis=0) @ self.view[2]))
        return [(_outline(self._flat(corners)), colour) for corners, colour in placed]

    def floor(self) -> list[Array]:
        """A grid on the ground that fills the picture; a single line in a horizontal view."""
        rise = self.view[1, :2]
        middle, half = (self.low + self.high) / 2, (self.high - self.low).max()
        if np.linalg.norm(rise) < 1e-9:
            level = self.ground * self.view[1, 2]
            return [np.array([[self.low[0], level], [self.high[0], level]])]
        # The ground point at the centre of the picture.
        across = np.vstack([self.view[0, :2], rise])
        centre = np.linalg.solve(across, middle - self.ground * self.view[:2, 2])
        step = _round(2 * half / SQUARES)
        reach = 2 * half / np.linalg.norm(rise)
        marks = np.arange(-np.ceil(reach / step), np.ceil(reach / step) + 1) * step
        start = np.round(centre / step) * step
        lines = []
        for mark in marks:
            for ends in (((mark, -reach), (mark, reach)), ((-reach, mark), (reach, mark))):
                points = np.column_stack([start + np.array(ends), [self.ground] * 2])
                lines.append(self._flat(points))
        return lines

    def trail(self, frame: str, motion: Array) -> Array:
        """Path of a frame's origin in the picture [m]."""
        return np.array([self._flat(self._robot.frame_pose(q, frame)[:3, 3]) for q in motion])

    def _poses(self, q: Array) -> dict[str, Array]:
        return {link: self._robot.frame_pose(q, link) for link in self._links}

    def _corners(self, poses: dict[str, Array]) -> Array:
        """All points that the picture must contain, in world axes [m]."""
        rims = [_placed(rim, poses[link]) for link, rim in self._wheels]
        solids = [_placed(points, poses[link]) for link, points, _ in self._shapes]
        return np.vstack([*solids, *rims, [pose[:3, 3] for pose in poses.values()]])

    def _flat(self, points: Array) -> Array:
        return np.asarray(points @ self.view[:2].T)


def hull(shape: Shape) -> Array:
    """Points (k, 3) whose convex hull is a box, a cylinder or a sphere, in the link's axes [m]."""
    radius, _, height = shape.half.tolist()
    if shape.kind == 'cylinder':
        rim, end = circle(radius, np.array([0.0, 0.0, 1.0])), np.array([0.0, 0.0, height])
        return shape.placed(np.vstack([rim - end, rim + end]))
    if shape.kind == 'sphere':
        return shape.placed(np.vstack([circle(radius, axis) for axis in (*np.eye(3), *CORNERS)]))
    return shape.placed(CORNERS * shape.half)


def circle(radius: float, axis: Array) -> Array:
    """Points (k, 3) of a circle about the origin, normal to `axis`; the last equals the first [m]."""
    angle = np.linspace(0, 2 * np.pi, ROUND + 1)
    across = np.linalg.svd(np.reshape(axis, (1, 3)))[2][1:]
    return np.asarray(radius * (np.outer(np.cos(angle), across[0]) + np.outer(np.sin(angle), across[1])))


def _drawn_links(robot: Robot) -> list[str]:
    """All links, or for a mobile base those of its subtree."""
    odom, urdf = robot.config.odom, robot.urdf
    return list(urdf.subtree(urdf.root if odom is None else urdf.joints[odom.heading].child))


def _view(robot: Robot, points: Array) -> Array:
    azimuth, elevation = FROM_ABOVE if robot.config.rolling else OBLIQUE
    centred = points - points.mean(axis=0)
    spread, axes = np.linalg.eigh(centred.T @ centred)
    thin, middle = spread[:2] < FLAT**2 * spread[2]
    normal = axes[:, 0]
    if thin and not middle and abs(normal[2]) < 1e-6:  # a vertical plane
        normal = -normal if normal[1] > 0 else normal  # x to the right
        azimuth, elevation = np.arctan2(normal[1], normal[0]), 0.0
    (sa, ca), (se, ce) = (np.sin(azimuth), np.cos(azimuth)), (np.sin(elevation), np.cos(elevation))
    return np.array([[-sa, ca, 0], [-se * ca, -se * sa, ce], [ce * ca, ce * sa, se]])


def _placed(points: Array, pose: Array) -> Array:
    return np.asarray(points @ pose[:3, :3].T + pose[:3, 3])


def _outline(points: Array) -> Array:
    try:
        return points[ConvexHull(points).vertices]
    except QhullError:  # all points on one line
        return points


def _round(length: float) -> float:
    """The largest of ..., 0.1, 0.2, 0.5, 1, 2, 5, ... that does not exceed `length`."""
    decade = 10 ** np.floor(np.log10(length))
    return float(decade * max(step for step in (1, 2, 5) if step * decade <= length))
