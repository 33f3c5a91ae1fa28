"""Distance between the links of a robot, from the collision shapes of its URDF."""

from collections.abc import Iterator
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin

from ..arrays import Array, joint_vector
from ..errors import UrdfError
from .model import Robot
from .urdf import Urdf
from .urdf_editing import UrdfDocument

SAMPLES = 200  # random poses in which the pairs that always touch are found
ALWAYS = 0.95  # share of the poses from which a pair counts as always in contact
TURN = np.pi  # range of a joint without position limits [rad]

Pair = tuple[str, str]  # names of two links


class SelfDistance:
    """The smallest distance between links that can collide; a mesh counts as its convex hull.

    Left out, and listed in `excluded` with the reason: links joined by one joint, and pairs whose shapes
    overlap at home or in nearly all poses, because the shapes are coarse there.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self._model, self._data = robot.model, robot.model.createData()
        self._geometry = _geometry(robot)
        links = [robot.model.frames[shape.parentFrame].name for shape in self._geometry.geometryObjects]
        self.excluded: dict[Pair, str] = {}
        self._add_pairs(links)
        self._geometry_data = self._geometry.createData()
        self._leave_out_overlaps(links)
        self.pairs: tuple[Pair, ...] = tuple(
            (links[pair.first], links[pair.second]) for pair in self._geometry.collisionPairs
        )

    def minimum(self, q: Array) -> tuple[float, Pair | None]:
        """The smallest distance [m] and its links; negative: depth of the overlap; no pairs: infinity."""
        if not self.pairs:
            return float('inf'), None
        distances = self._distances(joint_vector('q', q, self.robot.joint_names, (self.robot.nv,)))
        nearest = int(np.argmin(distances))
        return float(distances[nearest]), self.pairs[nearest]

    def along(self, q: Array) -> tuple[int, float, Pair | None]:
        """Of a path (K, n): the row with the smallest distance, that distance [m] and its links."""
        found = [self.minimum(row) for row in q]
        k = min(range(len(found)), key=lambda k: found[k][0])
        return k, *found[k]

    def _distances(self, q: Array) -> Array:
        q = self.robot.joint_map.position(q)
        pin.computeDistances(self._model, self._data, self._geometry, self._geometry_data, q)
        return np.array([result.min_distance for result in self._geometry_data.distanceResults])

    def _add_pairs(self, links: list[str]) -> None:
        bodies = [shape.parentJoint for shape in self._geometry.geometryObjects]
        for i, first in enumerate(bodies):
            for j, second in enumerate(bodies[:i]):
                if first == second:
                    continue
                if first in self._neighbours(second):
                    self.excluded[links[j], links[i]] = 'joined by one joint'
                else:
                    self._geometry.addCollisionPair(pin.CollisionPair(j, i))

    def _neighbours(self, body: int) -> Iterator[int]:
        """The bodies that one joint connects to `body`."""
        parents = self._model.parents
        yield parents[body]
        yield from (child for child in range(1, self._model.njoints) if parents[child] == body)

    def _leave_out_overlaps(self, links: list[str]) -> None:
        robot = self.robot
        # Copies: removing a pair moves the others in Pinocchio's list.
        pairs = [(pair.first, pair.second) for pair in self._geometry.collisionPairs]
        if not pairs:
            return
        lower, upper = (np.clip(limit, -TURN, TURN) for limit in (robot.lower, robot.upper))
        poses = np.random.default_rng(0).uniform(lower, upper, (SAMPLES, robot.nv))
        overlap = np.mean([self._distances(q) <= 0 for q in poses], axis=0)
        at_home = self._distances(robot.home) <= 0
        for (i, j), share, home in zip(pairs, overlap, at_home, strict=True):
            if home or share >= ALWAYS:
                reason = 'overlap at home' if home else 'overlap in nearly all poses'
                self.excluded[links[i], links[j]] = reason
                self._geometry.removeCollisionPair(pin.CollisionPair(i, j))
        self._geometry_data = self._geometry.createData()


def body_boxes(robot: Robot) -> dict[int, tuple[Array, Array]]:
    """By Pinocchio joint: lowest and highest corner [m] of its collision shapes, in its axes."""
    boxes: dict[int, tuple[Array, Array]] = {}
    for shape in _geometry(robot).geometryObjects:
        shape.geometry.computeLocalAABB()
        box = shape.geometry.aabb_local
        ends = np.array([box.min_, box.max_])
        corners = np.array([[x, y, z] for x in ends[:, 0] for y in ends[:, 1] for z in ends[:, 2]])
        points = corners @ shape.placement.rotation.T + shape.placement.translation
        low, high = boxes.get(shape.parentJoint, (points[0], points[0]))
        boxes[shape.parentJoint] = (
            np.minimum(low, points.min(axis=0)),
            np.maximum(high, points.max(axis=0)),
        )
    return boxes


def _geometry(robot: Robot) -> pin.GeometryModel:
    """The collision shapes of a robot; meshes as convex hulls."""
    text, urdf = _with_mesh_paths(robot.urdf), robot.urdf
    try:
        geometry = pin.buildGeomFromUrdfString(robot.model, text, pin.GeometryType.COLLISION)
    except (ValueError, RuntimeError) as error:
        raise UrdfError(f'{urdf.source}: its collision shapes cannot be read: {error}') from error
    for shape in geometry.geometryObjects:
        if hasattr(shape.geometry, 'buildConvexRepresentation'):
            shape.geometry.buildConvexRepresentation(False)
            shape.geometry = shape.geometry.convex
    return geometry


def _with_mesh_paths(urdf: Urdf) -> str:
    """The URDF with absolute paths of its collision meshes."""
    document = UrdfDocument(urdf.text)
    for collision in document.robot.iter('collision'):
        for mesh in collision.iter('mesh'):
            mesh.set('filename', str(urdf.mesh_file(mesh.get('filename', ''))))
    return ElementTree.tostring(document.robot, encoding='unicode')
