"""Plausibility checks of a robot's description, before it is enabled."""

import numpy as np
import pinocchio as pin

from ..arrays import Array
from .model import Robot
from .urdf import Link


def warnings(robot: Robot) -> list[str]:
    """All suspicious properties of a robot, one sentence each."""
    return [*_link_warnings(robot), *_limit_warnings(robot), *_jacobian_warnings(robot)]


def principal_inertias(link: Link) -> Array:
    """Principal moments of inertia at the centre of mass [kg m2], ascending."""
    return np.asarray(np.linalg.eigvalsh(link.inertia))


def com_motion(robot: Robot, joint: int, step: float = 0.1) -> Array:
    """Motion of the centre of mass [m, world axes] for +step [rad, m] on one joint from home."""
    q = robot.home.copy()
    q[joint] += step
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


def _link_warnings(robot: Robot) -> list[str]:
    faults = ((name, link_fault(link)) for name, link in robot.urdf.links.items())
    return [f'link {name}: {fault}' for name, fault in faults if fault is not None]


def _limit_warnings(robot: Robot) -> list[str]:
    found = []
    gravity = np.abs(robot.gravity_torque(robot.home))
    for i, name in enumerate(robot.joint_names):
        limit = robot.effort_limits[i]
        if robot.lower[i] == robot.upper[i]:
            found.append(f'joint {name}: lower and upper limit are equal, so it cannot move')
        if not robot.config.joints[name].driven:
            continue
        if limit == 0:
            found.append(f'joint {name}: driven, but its effort limit is 0')
        elif not np.isfinite(limit):
            found.append(f'joint {name}: no effort limit; give one in the URDF or a robot file')
        elif gravity[i] > limit:
            found.append(f'joint {name}: gravity at home exceeds its effort limit')
    return found


def _jacobian_warnings(robot: Robot) -> list[str]:
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


def _shared_axes(robot: Robot, states: Array) -> list[str]:
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
