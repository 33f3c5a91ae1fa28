"""The visual boxes, cylinders and spheres of a URDF, as points."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from xml.etree.ElementTree import Element

import numpy as np
import pinocchio as pin

from ..arrays import Array
from ..robot.model import Robot
from ..robot.urdf_editing import UrdfDocument

GREY = (0.6, 0.6, 0.65)  # of a shape without a material
ROUND = 20  # points of a circle

Colour = tuple[float, ...]  # red, green, blue from 0 to 1


@dataclass(frozen=True)
class Shape:
    """A convex body on a link: its corners in the link's axes [m], and its colour."""

    link: str
    corners: Array  # (k, 3)
    colour: tuple[float, ...]


def shapes(robot: Robot) -> list[Shape]:
    """The visual shapes of all links, except meshes."""
    document = UrdfDocument(robot.urdf.text).robot
    known, found = materials(document), []
    for link in document.iterfind('link'):
        for visual in link.iterfind('visual'):
            corners = _corners(visual.find('geometry'))
            if corners is None:
                continue
            rotation, place = pose_of(visual)
            corners = corners @ rotation.T + place
            found.append(Shape(link.get('name', ''), corners, material_of(visual, known) or GREY))
    return found


def materials(document: Element) -> dict[str, Colour | None]:
    """Colours of the materials that a URDF defines for all links."""
    return {material.get('name', ''): _colour(material) for material in document.iterfind('material')}


def material_of(visual: Element, known: Mapping[str, Colour | None]) -> Colour | None:
    """The colour of a <visual>; None without a material."""
    material = visual.find('material')
    return None if material is None else _colour(material) or known.get(material.get('name', ''))


def pose_of(visual: Element) -> tuple[Array, Array]:
    """Rotation and place [m] of a <visual> in its link's axes."""
    return np.asarray(pin.rpy.rpyToMatrix(_vector(visual, 'rpy'))), _vector(visual, 'xyz')


def circle(radius: float, axis: Array) -> Array:
    """Points (k, 3) of a circle about the origin, normal to `axis`; the last equals the first [m]."""
    angle = np.linspace(0, 2 * np.pi, ROUND + 1)
    across = np.linalg.svd(np.reshape(axis, (1, 3)))[2][1:]
    return np.asarray(radius * (np.outer(np.cos(angle), across[0]) + np.outer(np.sin(angle), across[1])))


def _corners(geometry: Element | None) -> Array | None:
    if geometry is None:
        return None
    if (box := geometry.find('box')) is not None:
        size = np.array([float(word) for word in box.get('size', '').split()])
        return np.array(list(product((-0.5, 0.5), repeat=3))) * size
    if (cylinder := geometry.find('cylinder')) is not None:
        rim = circle(float(cylinder.get('radius', 0)), np.array([0.0, 0.0, 1.0]))
        end = np.array([0, 0, float(cylinder.get('length', 0)) / 2])
        return np.vstack([rim - end, rim + end])
    if (sphere := geometry.find('sphere')) is not None:
        radius = float(sphere.get('radius', 0))
        return np.vstack(
            [circle(radius, axis) for axis in (*np.eye(3), *np.array(list(product((-1, 1), repeat=3))))]
        )
    return None


def _colour(material: Element) -> Colour | None:
    colour = material.find('color')
    return None if colour is None else tuple(float(word) for word in colour.get('rgba', '').split()[:3])


def _vector(visual: Element, key: str) -> Array:
    origin = visual.find('origin')
    return np.array(
        [float(word) for word in ('0 0 0' if origin is None else origin.get(key, '0 0 0')).split()]
    )
