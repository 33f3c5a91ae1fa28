"""The visual shapes and mesh files of a robot, as triangles."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import trimesh

from ..arrays import Array, Indices
from ..robot.model import Robot
from ..robot.urdf import Shape, Urdf

PLAIN = (0.62, 0.64, 0.68)  # of a body without a material
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
    """The visual solids of all links, and the reasons why some shapes are not shown."""
    found, problems = [], list(robot.urdf.problems)
    for link in robot.urdf.links.values():
        for shape in link.visuals:
            try:
                parts = [
                    (mesh, shape.colour or _own_colour(mesh) or PLAIN) for mesh in _parts(shape, robot.urdf)
                ]
            except Exception as error:  # of any kind: mesh files may contain anything
                problems.append(f'{link.name}: {error}')
                continue
            for mesh, colour in parts:
                r, g, b = (round(255 * x) for x in colour)
                vertices = shape.placed(np.asarray(mesh.vertices))
                found.append(Solid(link.name, vertices, np.asarray(mesh.faces), (r, g, b)))
    return found or list(_sticks(robot)), problems


def _parts(shape: Shape, urdf: Urdf) -> list[Any]:
    """trimesh's meshes of a shape, in its own axes."""
    radius, _, height = shape.half.tolist()
    if shape.kind == 'box':
        return [trimesh.creation.box(2 * shape.half)]
    if shape.kind == 'cylinder':
        return [trimesh.creation.cylinder(radius, 2 * height, sections=SECTIONS)]
    if shape.kind == 'sphere':
        return [trimesh.creation.icosphere(3, radius)]
    parts: Any = trimesh.load_scene(urdf.mesh_file(shape.file)).dump()
    for part in parts:
        part.apply_scale(shape.half)
    return list(parts)


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
