"""Editing and writing of URDF documents; urdf.py reads and checks them."""

import math
from collections.abc import Iterable, Mapping
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement, TreeBuilder, XMLParser

import numpy as np
import pinocchio as pin

from ..arrays import Array
from ..errors import ConfigError, suggestion
from .urdf import INERTIA_KEYS, Joint, Urdf

ROUNDING = 1e-5  # tolerance of positions at a limit, which URDFs give to four or five digits [rad, m]
LARGEST = 1e12  # written for an infinite limit, which URDF parsers do not read


class UrdfDocument:
    """An editable copy of a URDF; everything else stays unchanged, comments included."""

    def __init__(self, text: str | bytes) -> None:
        parser = XMLParser(target=TreeBuilder(insert_comments=True))
        self.robot = ElementTree.fromstring(text.strip(), parser)  # the <robot> element

    @property
    def links(self) -> dict[str, Element]:
        """<link> elements by name."""
        return {element.get('name', ''): element for element in self.robot.iterfind('link')}

    @property
    def joints(self) -> dict[str, Element]:
        """<joint> elements by name."""
        return {element.get('name', ''): element for element in self.robot.iterfind('joint')}

    def text(self) -> str:
        """The indented XML text."""
        ElementTree.indent(self.robot)
        return ElementTree.tostring(self.robot, encoding='unicode') + '\n'

    def remove(self, *tags: str) -> None:
        """Remove all elements of these kinds from the top level."""
        for tag in tags:
            _remove_children(self.robot, tag)

    def remove_links(self, names: Iterable[str]) -> None:
        """Remove links, and all joints that start or end at one of them."""
        removed = set(names)
        for name, link in self.links.items():
            if name in removed:
                self.robot.remove(link)
        for joint in self.joints.values():
            ends = (joint.find('parent'), joint.find('child'))
            if any(end is not None and end.get('link') in removed for end in ends):
                self.robot.remove(joint)

    def add_link(self, name: str) -> Element:
        """Add a link without mass, and return its element."""
        return SubElement(self.robot, 'link', name=name)

    def add_fixed_joint(self, parent: str, child: str, xyz: Array) -> None:
        """Fix link `child` to link `parent`, its origin at xyz [m] in the parent's axes."""
        joint = SubElement(self.robot, 'joint', name=f'{child}_fixed', type='fixed')
        SubElement(joint, 'parent', link=parent)
        SubElement(joint, 'child', link=child)
        SubElement(joint, 'origin', xyz=_words(xyz))

    def fix_joint(self, joint: Joint, position: float) -> None:
        """Make a joint fixed at a position [rad, m]."""
        element = self.joints[joint.name]
        element.set('type', 'fixed')
        for tag in ('origin', 'axis', 'limit', 'dynamics', 'mimic', 'safety_controller', 'calibration'):
            _remove_children(element, tag)
        rotation, xyz = pin.rpy.rpyToMatrix(*joint.rpy), joint.xyz
        if joint.type == 'prismatic':
            xyz = xyz + rotation @ joint.axis * position
        else:
            rotation = rotation @ pin.AngleAxis(position, joint.axis).toRotationMatrix()
        SubElement(element, 'origin', xyz=_words(xyz), rpy=_words(pin.rpy.matrixToRpy(rotation)))

    def set_inertia(self, link: str, mass: float, com: Array, inertia: Array) -> None:
        """Mass [kg], centre of mass [m] and inertia at the centre of mass [kg m2], in the link's axes."""
        self.remove_inertia(link)
        self.links[link].insert(0, _inertial(mass, com, inertia))

    def remove_inertia(self, link: str) -> None:
        """Make a link massless."""
        _remove_children(self.links[link], 'inertial')

    def scale_masses(self, factor: float) -> None:
        """Multiply all masses and inertias by a factor."""
        for inertial in self.robot.iter('inertial'):
            for element in (*inertial.iter('mass'), *inertial.iter('inertia')):
                for key, value in element.attrib.items():
                    element.set(key, repr(float(value) * factor))

    def set_friction(self, joint: str, viscous: float, coulomb: float) -> None:
        """Friction of a joint: F_v [N m s/rad] and F_c [N m]."""
        element = self.joints[joint]
        _remove_children(element, 'dynamics')
        SubElement(element, 'dynamics', damping=repr(viscous), friction=repr(coulomb))

    def shift_zero(self, joint: Joint, angle: float) -> None:
        """Move the zero of a rotating joint to an angle [rad] of the old one."""
        element = self.joints[joint.name]
        _remove_children(element, 'origin')
        rotation = pin.rpy.rpyToMatrix(joint.rpy) @ pin.AngleAxis(angle, joint.axis).toRotationMatrix()
        rpy = pin.rpy.matrixToRpy(rotation)
        SubElement(element, 'origin', xyz=_words(joint.xyz), rpy=_words(rpy))


def lock_joints(urdf: Urdf, positions: Mapping[str, float]) -> Urdf:
    """The URDF with joints fixed at positions [rad, m], and with them the joints that mimic them."""
    leaders = [joint.name for joint in urdf.joints.values() if joint.moves and joint.mimic is None]
    document = UrdfDocument(urdf.text)
    for name, position in positions.items():
        if name not in leaders:
            raise ConfigError(
                f'locked: {name!r} is not a joint that can be locked{suggestion(name, leaders)}'
            )
        lower, upper, _ = urdf.motion_limits(name)
        if not lower - ROUNDING <= position <= upper + ROUNDING:
            raise ConfigError(f'locked.{name} is {position}, outside its limits {lower} .. {upper}')
    for joint in urdf.joints.values():
        leader, multiplier, offset = urdf.leader(joint.name)
        if leader in positions:
            document.fix_joint(joint, multiplier * positions[leader] + offset)
    return Urdf(document.text(), urdf.source)


def kinematics_xml(urdf: Urdf) -> str:
    """The URDF that Pinocchio and MuJoCo read: inertias and joints only, one coordinate per joint.

    Continuous joints become revolute, so that no cos/sin pair enters the configuration. Mimic joints become
    independent joints, which JointMap couples. All numbers are written again, because urdfdom drops
    an inertia whose number has a stray blank.
    """
    robot = Element('robot', name=urdf.name)
    for link in urdf.links.values():
        element = SubElement(robot, 'link', name=link.name)
        if link.mass or link.inertia.any():
            element.append(_inertial(link.mass, link.com, link.inertia))
    for joint in urdf.joints.values():
        robot.append(_kinematic_joint(joint))
    return ElementTree.tostring(robot, encoding='unicode')


def _kinematic_joint(joint: Joint) -> Element:
    is_continuous = joint.type == 'continuous'
    element = Element('joint', name=joint.name, type='revolute' if is_continuous else joint.type)
    SubElement(element, 'parent', link=joint.parent)
    SubElement(element, 'child', link=joint.child)
    SubElement(element, 'origin', xyz=_words(joint.xyz), rpy=_words(joint.rpy))
    if joint.moves:
        SubElement(element, 'axis', xyz=_words(joint.axis))
        # One turn is a useful range for tools that sample random configurations. MuJoCo warns of empty ones.
        is_free = is_continuous or joint.lower == joint.upper
        lower, upper = (-math.pi, math.pi) if is_free else (joint.lower, joint.upper)
        effort, velocity = min(joint.effort, LARGEST), min(joint.velocity, LARGEST)
        limits = {'lower': lower, 'upper': upper, 'effort': effort, 'velocity': velocity}
        SubElement(element, 'limit', {key: repr(value) for key, value in limits.items()})
    return element


def _inertial(mass: float, com: Array, inertia: Array) -> Element:
    element = Element('inertial')
    SubElement(element, 'origin', xyz=_words(com), rpy='0 0 0')
    SubElement(element, 'mass', value=repr(float(mass)))
    entries = zip(INERTIA_KEYS, inertia[np.triu_indices(3)].tolist(), strict=True)
    SubElement(element, 'inertia', {key: repr(value) for key, value in entries})
    return element


def _remove_children(element: Element, tag: str) -> None:
    for child in element.findall(tag):
        element.remove(child)


def _words(vector: Array) -> str:
    return ' '.join(map(repr, np.asarray(vector, dtype=float).tolist()))
