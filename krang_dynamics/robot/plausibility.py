"""Plausibility checks of a robot's description, before it is enabled."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import pinocchio as pin

from ..arrays import Array
from .urdf import INERTIA_KEYS, Link, Urdf

if TYPE_CHECKING:
    from .model import Robot

SLIMMEST = 0.01  # of a proposal, so that it stays plausible when it is rounded to four digits
DENSITY = 1000.0  # of the ball that is proposed for a link without inertia [kg/m3]


def warnings(robot: 'Robot') -> list[str]:
    """All suspicious properties of a robot, one sentence each."""
    links = inertia_problems(robot.urdf, robot.urdf.links)
    return [
        *robot.urdf.ignored,
        *links,
        *_limit_warnings(robot),
        *gravity_problems(robot),
        *_jacobian_warnings(robot),
    ]


def principal_inertias(link: Link) -> Array:
    """Principal moments of inertia at the centre of mass [kg m2], ascending."""
    return np.asarray(np.linalg.eigvalsh(link.inertia))


def com_motion(robot: 'Robot', joint: int) -> Array:
    """Motion of the centre of mass [m, world axes] for +0.1 [rad, m] on one joint from home."""
    q = robot.home
    q[joint] += 0.1
    return robot.center_of_mass(q) - robot.center_of_mass(robot.home)


def link_fault(link: Link) -> str | None:
    """Why no rigid body can have this mass and inertia; None if one can."""
    if link.mass == 0:
        return 'has inertia but no mass' if link.inertia.any() else None
    low, middle, high = principal_inertias(link)
    tolerance = 1e-9 * high
    if low < -tolerance:
        return f'principal inertia {low:.3g} kg m2 is negative'
    if high == 0:
        return 'has mass but no inertia, like a point mass'
    if high > low + middle + tolerance:
        return f'principal inertia {high:.3g} exceeds the sum of the others, {low + middle:.3g} kg m2'
    return None


def plausible_inertia(inertia: Array, slimmest: float = 1e-9) -> Array:
    """The inertia [kg m2] of a rigid body near a given one: the same if it is plausible.

    The second moments of mass, S = tr(I)/2 - I, of a body are at least 0 along every axis; those that are not
    become `slimmest` times the largest.
    """
    moments, axes = np.linalg.eigh(0.5 * np.trace(inertia) * np.eye(3) - inertia)
    if moments[0] >= 0:
        return inertia
    S = axes * np.maximum(moments, slimmest * moments.max()) @ axes.T
    return np.asarray(np.trace(S) * np.eye(3) - S)


def inertia_remedy(link: Link) -> str:
    """What to write into the URDF instead of the implausible inertia of a link."""
    if link.mass == 0:
        return 'give it a mass, or remove its <inertial>'
    inertia = plausible_inertia(link.inertia, SLIMMEST)
    if not inertia.any() or np.linalg.eigvalsh(inertia)[0] <= 0:
        radius = np.cbrt(3 * link.mass / (4 * np.pi * DENSITY))
        inertia = 0.4 * link.mass * radius**2 * np.eye(3)
    entries = zip(INERTIA_KEYS, inertia[np.triu_indices(3)], strict=True)
    words = ' '.join(f'{key}="{value + 0.0:.4g}"' for key, value in entries)
    return f'in the URDF, give its <inertial> rpy="0 0 0" and <inertia {words}/>'


def inertia_problems(urdf: Urdf, links: Iterable[str]) -> list[str]:
    """One sentence with a remedy for each of these links whose inertia no rigid body can have."""
    faults = ((urdf.links[name], link_fault(urdf.links[name])) for name in links)
    return [f'link {link.name}: {fault}; {inertia_remedy(link)}' for link, fault in faults if fault]


def _limit_warnings(robot: 'Robot') -> list[str]:
    found = []
    for i, name in enumerate(robot.joint_names):
        limit = robot.effort_limits[i]
        if robot.lower[i] == robot.upper[i]:
            found.append(f'joint {name}: lower and upper limit are equal, so it cannot move')
        if not robot.config.joints[name].driven:
            continue
        if limit == 0:
            found.append(f'joint {name}: driven, but its effort limit is 0; set it in the URDF')
        elif not np.isfinite(limit):
            found.append(f'joint {name}: no effort limit; give one in the URDF or a robot file')
    return found


def gravity_problems(robot: 'Robot') -> list[str]:
    """Driven joints that cannot hold the robot at home, one sentence each."""
    gravity, limits = np.abs(robot.gravity_torque(robot.home)), robot.effort_limits
    return [
        f'joint {name}: gravity at home exceeds its effort limit, {torque:.4g} > {limit:.4g} N m'
        '; give another home or limit in a robot file, which krang new writes'
        for name, torque, limit in zip(robot.joint_names, gravity, limits, strict=True)
        if name in robot.actuated_joint_names and torque > limit > 0
    ]


def _jacobian_warnings(robot: 'Robot') -> list[str]:
    states = np.random.default_rng(0).uniform(-1, 1, (4, robot.nv))
    found = []
    for frame in robot.config.end_effectors:
        jacobians = [robot.jacobian(q, frame) for q in states]
        moving = int(np.any([np.abs(J).max(axis=0) > 1e-12 for J in jacobians], axis=0).sum())
        rank = max(int(np.linalg.matrix_rank(J, tol=1e-9)) for J in jacobians)
        if rank < min(6, moving):
            found.append(
                f'frame {frame}: its Jacobian has rank {rank} in every pose, although {moving} joints '
                'move it; it cannot be inverted'
            )
    return found + _shared_axes(robot, states)


def _shared_axes(robot: 'Robot', states: Array) -> list[str]:
    """Pairs of neighbouring driven joints with the same axis in every pose."""
    found = []
    model, data = robot.model, robot.data
    for child in range(2, model.njoints):
        parent = model.parents[child]
        if not {model.names[parent], model.names[child]} <= set(robot.actuated_joint_names):
            continue
        columns = [model.joints[parent].idx_v, model.joints[child].idx_v]
        same = True
        for q in states:
            J = pin.computeJointJacobians(model, data, robot.joint_map.position(q))[:, columns]
            same &= bool(np.linalg.matrix_rank(J, tol=1e-9) < 2)
        if same:
            found.append(f'joints {model.names[parent]} and {model.names[child]} turn about the same axis')
    return found
