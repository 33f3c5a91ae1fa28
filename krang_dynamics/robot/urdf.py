"""Links and joints of a URDF, checked before Pinocchio reads it."""

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np
import pinocchio as pin

from ..arrays import Array
from ..errors import UrdfError, suggestion
from ..reading import plain_number, regular_file

MOVING = ('revolute', 'continuous', 'prismatic')
INERTIA_KEYS = ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
CORNERS = np.array(list(product((-1.0, 1.0), repeat=3)))
# Elements and attributes of a URDF; others are ignored, with a warning.
ELEMENTS = {
    'link': ('inertial', 'visual', 'collision'),
    'inertial': ('origin', 'mass', 'inertia'),
    'joint': (
        'origin', 'parent', 'child', 'axis', 'limit', 'dynamics', 'mimic', 'calibration', 'safety_controller',
    ),
}  # fmt: skip
ATTRIBUTES = {
    'mass': ('value',),
    'inertia': INERTIA_KEYS,
    'origin': ('xyz', 'rpy'),
    'axis': ('xyz',),
    'limit': ('lower', 'upper', 'effort', 'velocity'),
    'dynamics': ('damping', 'friction'),
    'mimic': ('joint', 'multiplier', 'offset'),
}
RESERVED = 'universe'  # Pinocchio's own name for the world


@dataclass(frozen=True)
class Shape:
    """A box, cylinder, sphere or mesh on a link."""

    kind: str
    half: Array  # edges of the box around it, halved [m]; of a mesh: its scale
    file: str  # of a mesh, as the URDF names it
    rotation: Array  # to the link's axes
    place: Array  # in the link's axes [m]
    colour: tuple[float, ...] | None  # red, green, blue from 0 to 1; None without a material

    def placed(self, points: Array) -> Array:
        """Points (k, 3) of the shape's axes in the link's axes [m]."""
        return np.asarray(points @ self.rotation.T + self.place)


@dataclass(frozen=True)
class Link:
    """A rigid body: mass [kg], centre of mass [m] and inertia there [kg m2], in the link's axes."""

    name: str
    mass: float
    com: Array
    inertia: Array
    visuals: tuple[Shape, ...]
    collisions: tuple[Shape, ...]

    @property
    def corners(self) -> Array:
        """(k, 3) of boxes around its boxes, cylinders and spheres [m]; meshes are not read."""
        solid = [shape for shape in (*self.visuals, *self.collisions) if shape.kind != 'mesh']
        found = [np.zeros((0, 3)), *(shape.placed(CORNERS * shape.half) for shape in solid)]
        return np.unique(np.vstack(found), axis=0)  # most links have the same shape twice


@dataclass(frozen=True)
class Mimic:
    """Position of a mimic joint: multiplier * leader + offset."""

    leader: str
    multiplier: float
    offset: float


@dataclass(frozen=True)
class Joint:
    """A joint; limits in rad or m, rad/s or m/s, N m or N, infinite if absent."""

    name: str
    type: str
    parent: str
    child: str
    xyz: Array  # [m]
    rpy: Array  # [rad]
    axis: Array  # unit vector in the child's axes
    lower: float
    upper: float
    effort: float
    velocity: float
    viscous: float
    coulomb: float
    mimic: Mimic | None

    @property
    def moves(self) -> bool:
        return self.type in MOVING


class Urdf:
    """A checked robot description: `links` and `joints` by name in the order of the document.

    `problems` names visual shapes that cannot be shown; wrong shapes do not matter to the dynamics. `ignored`
    names what has no meaning in a URDF, such as a misspelt element or a wrong shape.
    """

    def __init__(self, text: str | bytes, source: str = 'URDF text') -> None:
        self.text = text
        self.source = source
        self._robot = _parse_xml(text, source)
        self.name = self._robot.get('name') or 'robot'
        self.problems: list[str] = []
        self.ignored = [
            f'{tag} {element.get("name")}: {what} is ignored'
            for tag in ('link', 'joint')
            for element in self._robot.iterfind(tag)
            for what in _unknown(element)
        ]
        materials = self._robot.iterfind('material')
        self._colours = {material.get('name', ''): _colour(material) for material in materials}
        self.links = {link.name: link for link in self._unique('link', self._read_link)}
        self.joints = {joint.name: joint for joint in self._unique('joint', self._read_joint)}
        self._joints_on: dict[str, list[Joint]] = {}  # by parent link
        for joint in self.joints.values():
            self._joints_on.setdefault(joint.parent, []).append(joint)
        self.root = self._check_tree()
        self._check_mimics()

    @classmethod
    def from_file(cls, path: Path) -> 'Urdf':
        try:
            text = regular_file(path).read_bytes()
        except OSError as error:
            raise UrdfError(f'{path}: cannot be read: {error.strerror}') from error
        return cls(text, str(path))

    def __reduce__(self) -> tuple[type['Urdf'], tuple[str | bytes, str]]:
        return Urdf, (self.text, self.source)

    def leader(self, name: str) -> tuple[str, float, float]:
        """The joint that moves `name`, with q_name = multiplier * q_leader + offset."""
        multiplier, offset = 1.0, 0.0
        while (mimic := self.joints[name].mimic) is not None:
            offset += multiplier * mimic.offset
            multiplier *= mimic.multiplier
            name = mimic.leader
        return name, multiplier, offset

    def motion_limits(self, name: str) -> tuple[float, float, float]:
        """Lower, upper and speed limit of a joint, with which the joints that mimic it keep theirs."""
        lower, upper, velocity = -math.inf, math.inf, math.inf
        for joint in self.joints.values():
            leader, k, offset = self.leader(joint.name)
            if leader != name or k == 0:
                continue
            ends = sorted(((joint.lower - offset) / k, (joint.upper - offset) / k))
            lower, upper = max(lower, ends[0]), min(upper, ends[1])
            velocity = min(velocity, joint.velocity / abs(k))
        if lower > upper:
            raise self._error(
                f'joint {name!r}: the limits of its mimic joints exclude every position; correct them'
            )
        return lower, upper, velocity

    def leaves(self) -> list[str]:
        """Moving links without children: the default end effectors."""
        parents = {joint.parent for joint in self.joints.values()}
        fixed = self.rigid_part(self.root)
        return [name for name in self.links if name not in parents and name not in fixed]

    def subtree(self, link: str) -> Iterator[str]:
        """`link` and all links beyond it."""
        waiting = [link]
        while waiting:
            yield (name := waiting.pop())
            waiting += [joint.child for joint in self._joints_on.get(name, ())]

    def rigid_part(self, link: str) -> list[str]:
        """`link` and all links that are fixed to it, directly or by others."""
        part = [link]
        for name in part:
            part += [joint.child for joint in self._joints_on.get(name, ()) if not joint.moves]
        return part

    def mesh_file(self, name: str) -> Path:
        """The file of a mesh: beside the URDF, in a folder above it, or in a ROS package."""
        folders = list(Path(self.source).resolve().parents)
        if name.startswith('package://'):
            path = Path(name.removeprefix('package://'))
            for variable, below in (('AMENT_PREFIX_PATH', 'share'), ('ROS_PACKAGE_PATH', '')):
                prefixes = os.environ.get(variable, '').split(os.pathsep)
                folders += [Path(prefix) / below for prefix in prefixes if prefix]
        else:
            path = Path(name.removeprefix('file://'))
            folders = folders[:1]
        for folder in folders:
            if (folder / path).is_file():
                return folder / path
        raise self._error(
            f'its mesh {name} is not found; source the workspace that has it, or set ROS_PACKAGE_PATH'
        )

    # -- reading ---------------------------------------------------------------------------

    def _error(self, message: str) -> UrdfError:
        return UrdfError(f'{self.source}: {message}')

    def _unique(self, tag: str, read):  # type: ignore[no-untyped-def]
        seen: set[str] = set()
        for element in self._robot.iterfind(tag):
            name = element.get('name')
            if not name:
                raise self._error(f'a <{tag}> has no name attribute; give it one')
            if name == RESERVED:
                raise self._error(f'a {tag} is named {name!r}, which Pinocchio reserves; rename it')
            if name in seen:
                raise self._error(f'two {tag}s are named {name!r}; names must be unique')
            seen.add(name)
            yield read(element, name)

    def _numbers(self, text: str, count: int, where: str) -> Array:
        try:
            values = np.array([plain_number(word) for word in text.split()])
        except ValueError:
            raise self._error(f'{where} is {text!r}; it must be {count} number(s)') from None
        if len(values) != count or not np.isfinite(values).all():
            raise self._error(f'{where} is {text!r}; it must be {count} finite number(s)')
        return values

    def _attribute(self, element: Element, key: str, default: float | None, where: str) -> float:
        text = element.get(key)
        if text is None:
            if default is None:
                raise self._error(f'{where} has no attribute {key!r}; add it')
            return default
        return float(self._numbers(text, 1, f'{where} {key}')[0])

    def _pose(self, element: Element, where: str) -> tuple[Array, Array]:
        """xyz [m] and rpy [rad] of the <origin> in `element`."""
        origin = element.find('origin')
        if origin is None:
            return np.zeros(3), np.zeros(3)
        if 'quat_xyzw' in origin.attrib:
            raise self._error(f'{where}: origin has quat_xyzw; write its rotation as rpy')
        xyz = self._numbers(origin.get('xyz', '0 0 0'), 3, f'{where}: origin xyz')
        return xyz, self._numbers(origin.get('rpy', '0 0 0'), 3, f'{where}: origin rpy')

    def _axis(self, element: Element, where: str) -> Array:
        axis = element.find('axis')
        text = '1 0 0' if axis is None else axis.get('xyz', '1 0 0')
        direction = self._numbers(text, 3, f'{where}: axis xyz')
        largest = np.abs(direction).max()
        if largest == 0:
            raise self._error(f'{where}: axis {text!r} has no direction; write for example 0 0 1')
        length = np.linalg.norm(direction / largest) * largest
        # A unit axis stays as written, to the last bit.
        return direction if abs(length - 1) < 1e-15 else direction / largest / (length / largest)

    def _read_link(self, element: Element, name: str) -> Link:
        inertial = element.find('inertial')
        shapes = [tuple(self._shapes(element, name, kind)) for kind in ('visual', 'collision')]
        if inertial is None:
            return Link(name, 0.0, np.zeros(3), np.zeros((3, 3)), *shapes)
        where = f'link {name!r}'
        mass_element, inertia_element = inertial.find('mass'), inertial.find('inertia')
        if mass_element is None or inertia_element is None:
            raise self._error(f'{where}: <inertial> needs both <mass> and <inertia>')
        mass = self._attribute(mass_element, 'value', None, f'{where}: mass')
        if mass < 0:
            raise self._error(f'{where}: mass {mass} kg is negative; it must be 0 or more')
        xx, xy, xz, yy, yz, zz = (
            self._attribute(inertia_element, key, None, f'{where}: inertia') for key in INERTIA_KEYS
        )
        com, rpy = self._pose(inertial, f'{where}: inertial')
        turn = pin.rpy.rpyToMatrix(rpy)
        inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        return Link(name, mass, com, turn @ inertia @ turn.T, *shapes)

    def _shapes(self, link: Element, name: str, kind: str) -> Iterator[Shape]:
        """The <visual> or <collision> shapes of a link."""
        for element in link.iterfind(kind):
            try:
                yield self._shape(element)
            except UrdfError as error:
                self.ignored.append(f'link {name}: a <{kind}> is ignored: {error}')
                self.problems += [f'{name}: {error}'] if kind == 'visual' else []

    def _shape(self, element: Element) -> Shape:
        shape = element.find('geometry/*')
        kind = 'nothing' if shape is None else shape.tag
        if shape is None or kind not in ('box', 'cylinder', 'sphere', 'mesh'):
            raise self._error(f'the shape is {kind}; it must be box, cylinder, sphere or mesh')
        if kind == 'box':
            half = self._numbers(shape.get('size', ''), 3, 'box size') / 2
        elif kind == 'mesh':
            half = self._numbers(shape.get('scale', '1 1 1'), 3, 'mesh scale')
        else:
            radius = self._attribute(shape, 'radius', None, kind)
            length = 2 * radius if kind == 'sphere' else self._attribute(shape, 'length', None, kind)
            half = np.array([radius, radius, length / 2])
        place, rpy = self._pose(element, 'shape')
        material = element.find('material')
        colour = None
        if material is not None:
            colour = _colour(material) or self._colours.get(material.get('name', ''))
        return Shape(kind, half, shape.get('filename', ''), pin.rpy.rpyToMatrix(rpy), place, colour)

    def _read_joint(self, element: Element, name: str) -> Joint:
        where = f'joint {name!r}'
        type_ = element.get('type', '')
        if type_ in ('floating', 'planar'):
            raise self._error(
                f'{where} is {type_}, which has more than one coordinate; use prismatic and revolute joints '
                'instead, as x, y and alpha of the shipped otbot, or make it fixed'
            )
        if type_ not in (*MOVING, 'fixed'):
            raise self._error(f'{where}: unknown type {type_!r}{suggestion(type_, (*MOVING, "fixed"))}')
        parent, child = (self._link_of(element, tag, where) for tag in ('parent', 'child'))
        xyz, rpy = self._pose(element, where)
        axis = self._axis(element, where) if type_ != 'fixed' else np.array([1.0, 0.0, 0.0])
        dynamics = element.find('dynamics')
        viscous, coulomb = (
            0.0 if dynamics is None else self._attribute(dynamics, key, 0.0, f'{where}: dynamics')
            for key in ('damping', 'friction')
        )
        mimic = self._mimic(element, where) if type_ != 'fixed' else None
        limits = self._limits(element, type_, where)
        return Joint(name, type_, parent, child, xyz, rpy, axis, *limits, viscous, coulomb, mimic)

    def _link_of(self, element: Element, tag: str, where: str) -> str:
        found = element.find(tag)
        name = None if found is None else found.get('link')
        if name not in self.links:
            raise self._error(f'{where}: {tag} link {name!r}{suggestion(name, self.links)}')
        return str(name)

    def _limits(self, element: Element, type_: str, where: str) -> tuple[float, float, float, float]:
        limit, infinite = element.find('limit'), math.inf
        if type_ == 'fixed':
            return 0.0, 0.0, 0.0, 0.0
        if limit is None:
            if type_ == 'continuous':
                return -infinite, infinite, infinite, infinite
            raise self._error(f'{where} is {type_} and has no <limit>; add lower, upper, effort, velocity')
        where = f'{where}: limit'
        bounded = type_ != 'continuous'
        lower = self._attribute(limit, 'lower', 0.0, where) if bounded else -infinite
        upper = self._attribute(limit, 'upper', 0.0, where) if bounded else infinite
        effort = self._attribute(limit, 'effort', None if bounded else infinite, where)
        velocity = self._attribute(limit, 'velocity', None if bounded else infinite, where)
        if lower > upper:
            raise self._error(f'{where}: lower {lower} is above upper {upper}')
        if effort < 0 or velocity < 0:
            raise self._error(f'{where}: effort {effort} and velocity {velocity} must be 0 or more')
        return lower, upper, effort, velocity

    def _mimic(self, element: Element, where: str) -> Mimic | None:
        mimic = element.find('mimic')
        if mimic is None:
            return None
        multiplier = self._attribute(mimic, 'multiplier', 1.0, f'{where}: mimic')
        offset = self._attribute(mimic, 'offset', 0.0, f'{where}: mimic')
        return Mimic(mimic.get('joint', ''), multiplier, offset)

    # -- checks of the whole robot -------------------------------------------------------------

    def _check_tree(self) -> str:
        if not self.links:
            raise self._error('has no <link>, so it is not a robot description; expand its xacro file again')
        parent_joint: dict[str, str] = {}
        for joint in self.joints.values():
            if joint.child in parent_joint:
                raise self._error(
                    f'link {joint.child!r} is the child of joints {parent_joint[joint.child]!r} and '
                    f'{joint.name!r}; a closed loop or a double parent is not a tree'
                )
            parent_joint[joint.child] = joint.name
        roots = [name for name in self.links if name not in parent_joint]
        if len(roots) != 1:
            raise self._error(
                f'needs exactly one root link, it has {len(roots)}: {", ".join(roots)}; add joints'
            )
        reached = set(self.subtree(roots[0]))
        ring = [joint.name for joint in self.joints.values() if joint.child not in reached]
        if ring:
            raise self._error(
                f'joints {", ".join(ring)} form a loop beside {roots[0]!r}; a robot is one tree'
            )
        if not any(joint.moves for joint in self.joints.values()):
            raise self._error(
                'has no joint that moves; a robot has a revolute, continuous or prismatic joint'
            )
        return roots[0]

    def _check_mimics(self) -> None:
        for name, joint in self.joints.items():
            path = [name]
            while joint.mimic is not None:
                leader = joint.mimic.leader
                movable = [j.name for j in self.joints.values() if j.moves and j.name not in path]
                if leader not in movable:
                    raise self._error(f'joint {joint.name!r} mimics {leader!r}{suggestion(leader, movable)}')
                path.append(leader)
                joint = self.joints[leader]

    def check_masses(self) -> None:
        """UrdfError for the first joint that moves no mass."""
        for joint in self.joints.values():
            if joint.moves and not any(self.links[name].mass for name in self.subtree(joint.child)):
                raise self._error(
                    f'joint {joint.name!r} moves links without mass ({joint.child!r} and beyond); '
                    'give one an <inertial>, or lock the joint in a robot file, which krang new writes'
                )


def _parse_xml(text: str | bytes, source: str) -> Element:
    try:
        root = ElementTree.fromstring(text.strip())
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        hint = '; if it is xacro, expand it first: xacro FILE > robot.urdf' if 'prefix' in str(error) else ''
        raise UrdfError(f'{source}: is not XML: {error}{hint}') from error
    if root.tag != 'robot':
        raise UrdfError(f'{source}: the root element is <{root.tag}>; in a URDF it is <robot>')
    # An expanded file still declares the xacro namespace, so look for unexpanded elements.
    for element in root.iter():
        words = ' '.join(element.attrib.values())
        if '/xacro}' in str(element.tag) or '${' in words or '$(' in words:
            raise UrdfError(f'{source}: is xacro, not URDF; expand it first: xacro FILE > robot.urdf')
    return root


def _unknown(element: Element) -> Iterator[str]:
    """Elements and attributes of a link or joint that have no meaning, or occur twice."""
    known = ELEMENTS.get(element.tag)
    tags = [child.tag for child in element]
    for child in element:
        if known is not None and child.tag not in known:
            yield f'<{child.tag}>'
        elif element.tag != 'link' and tags.index(child.tag) < list(element).index(child):
            yield f'the second <{child.tag}>'
        if child.tag in ATTRIBUTES:
            yield from (f'{key} of <{child.tag}>' for key in child.attrib if key not in ATTRIBUTES[child.tag])
        if child.tag == 'inertial':
            yield from _unknown(child)


def _colour(material: Element) -> tuple[float, ...] | None:
    """Red, green and blue from 0 to 1; None without a valid colour."""
    colour = material.find('color')
    words = [] if colour is None else colour.get('rgba', '').split()
    try:
        red, green, blue = (float(word) for word in words[:3])
    except ValueError:
        return None
    return red, green, blue
