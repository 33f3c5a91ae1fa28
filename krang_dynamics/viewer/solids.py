"""The visual shapes and mesh files of a URDF, as triangles."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np
import trimesh

from ..arrays import Array, Indices
from ..robot.model import Robot
from ..robot.urdf_editing import UrdfDocument
from .shapes import material_of, materials, pose_of

PLAIN = (0.62, 0.64, 0.68)  # of a body without a material
PACKAGE = 'package://'
SECTIONS = 32  # of a round body
STICK, BALL = 0.012, 0.025  # radii of a robot without shapes [m]


@dataclass(frozen=True)
class Solid:
    """Triangles of one colour in a link's axes [m]."""

    link: str
    vertices: Array  # (k, 3)
    faces: Indices  # (m, 3)
    colour: tuple[int, int, int]  # 0 to 255


def solids(robot: Robot) -> tuple[list[Solid], list[str]]:
    """The visual solids of all links, and the reasons why some files are not shown."""
    document = UrdfDocument(robot.urdf.text).robot
    known, found, problems = materials(document), [], []
    for link in document.iterfind('link'):
        for visual in link.iterfind('visual'):
            try:
                parts = list(_parts(visual.find('geometry'), robot.urdf.source))
            except Exception as error:  # of any kind: mesh files may contain anything
                problems.append(f'{link.get("name")}: {error}')
                continue
            given = material_of(visual, known)
            rotation, place = pose_of(visual)
            for mesh, own in parts:
                colour = given or own or PLAIN
                found.append(
                    Solid(
                        link.get('name', ''),
                        np.asarray(mesh.vertices @ rotation.T + place),
                        np.asarray(mesh.faces),
                        (round(255 * colour[0]), round(255 * colour[1]), round(255 * colour[2])),
                    )
                )
    return found or list(_sticks(robot)), problems


def mesh_file(name: str, source: str) -> Path:
    """The file of a mesh; package:// is looked up in ROS, then in the folders above the URDF."""
    if not name.startswith(PACKAGE):
        return Path(source).parent / name.removeprefix('file://')
    package, _, rest = name.removeprefix(PACKAGE).partition('/')
    above = [*Path(source).resolve().parents]
    folders = [parent for parent in above if parent.name == package]
    folders += [parent / package for parent in above]
    for variable, below in (('AMENT_PREFIX_PATH', 'share'), ('ROS_PACKAGE_PATH', '')):
        prefixes = os.environ.get(variable, '').split(os.pathsep)
        folders = [*(Path(prefix) / below / package for prefix in prefixes if prefix), *folders]
    for folder in folders:
        if (folder / rest).is_file():
            return folder / rest
    raise FileNotFoundError(f'{name} was not found in ROS packages or above {source}')


def _parts(geometry: Element | None, source: str) -> Iterator[tuple[Any, tuple[float, ...] | None]]:
    """Meshes of a geometry, with their own colour if they have one."""
    if geometry is None:
        return
    if (box := geometry.find('box')) is not None:
        yield trimesh.creation.box(_numbers(box, 'size')), None
    elif (cylinder := geometry.find('cylinder')) is not None:
        radius, length = _numbers(cylinder, 'radius')[0], _numbers(cylinder, 'length')[0]
        yield trimesh.creation.cylinder(radius, length, sections=SECTIONS), None
    elif (sphere := geometry.find('sphere')) is not None:
        yield trimesh.creation.icosphere(3, _numbers(sphere, 'radius')[0]), None
    elif (mesh := geometry.find('mesh')) is not None:
        scale = _numbers(mesh, 'scale') if mesh.get('scale') else np.ones(3)
        scene = trimesh.load_scene(mesh_file(mesh.get('filename', ''), source))
        parts: Any = scene.dump()
        for part in parts:
            part.apply_scale(scale)
            yield part, _own_colour(part)


def _own_colour(mesh: Any) -> tuple[float, ...] | None:
    """The colour in a mesh file; None if it has none, or a texture."""
    material = getattr(mesh.visual, 'material', None)
    if material is None and mesh.visual.kind is None:
        return None
    colour = mesh.visual.main_color if material is None else material.main_color
    return tuple(float(x) / 255 for x in colour[:3])


def _sticks(robot: Robot) -> Iterator[Solid]:
    """Balls and sticks between the joints of a URDF without shapes."""
    colour = tuple(round(255 * x) for x in PLAIN)
    for joint in robot.urdf.joints.values():
        ball = trimesh.creation.icosphere(2, BALL)
        parts = [(joint.child, ball)]
        if np.linalg.norm(joint.xyz) > BALL:
            ends = np.vstack([np.zeros(3), joint.xyz])
            parts.append((joint.parent, trimesh.creation.cylinder(STICK, segment=ends, sections=12)))
        for link, mesh in parts:
            yield Solid(link, np.asarray(mesh.vertices), np.asarray(mesh.faces), colour)  # type: ignore[arg-type]


def _numbers(element: Element, key: str) -> Array:
    return np.array([float(word) for word in element.get(key, '').split()])
