"""The anthropomorphic arm of [arm]: six revolute joints, each about the z of the frame before it.

Joints 4 and 5 turn about one line, as printed, so the tool's Jacobian has rank 5 everywhere.
"""

import numpy as np

from reference.lagrange import GRAVITY, pose, rx, ry, rz

JOINTS = tuple(f'joint_{i}' for i in range(1, 7))

D = np.array([0.40, 0.35, 0.30, 0.20, 0.15, 0.10])  # m
DC = D / 2
MASS = np.array([8, 6, 4, 2, 1.5, 0.5])  # kg
INERTIA = MASS / 12 * 2 * D**2  # kg m2 at the centre of mass, about any axis of the cube

ROTOR_INERTIA = np.zeros(6)

# After Rz(q_i): the direction of T(d_i) and the fixed rotation that ends link i. [arm] section 2
_X, _Y, _Z = np.eye(3)
LINKS = (
    (_Z, rx(np.pi / 2)),
    (_X, np.eye(3)),
    (_X, ry(-np.pi / 2)),
    (_Z, rz(-np.pi / 2)),
    (_Y, rx(np.pi / 2)),
    (_Z, np.eye(3)),
)


def _walk(q):
    """Per link: axis and origin of its joint, rotation and position of its CoM; then the tool's."""
    rotation, position = np.eye(3), np.zeros(3)
    links = []
    for i, (direction, fixed) in enumerate(LINKS):
        axis, origin = rotation[..., :, 2], position
        turned = rotation @ rz(q[..., i])
        along = turned @ direction
        rotation, position = turned @ fixed, origin + D[i] * along
        links.append((axis, origin, rotation, origin + DC[i] * along))
    return links, rotation, position


def com_poses(q):
    """CoM_1 .. CoM_6, each (..., 4, 4). [arm] section 2"""
    return [pose(rotation, com) for _, _, rotation, com in _walk(q)[0]]


def tool_pose(q):
    """(..., 4, 4): CoM_6 with d_6 in place of d_c6."""
    return pose(*_walk(q)[1:])


def _jacobian(links, point):
    """(J_v, J_w) of a point on the last of the links: columns z cross (point - origin), and z."""
    shape = (*point.shape, len(LINKS))
    linear, angular = np.zeros(shape, point.dtype), np.zeros(shape, point.dtype)
    for j, (axis, origin, _, _) in enumerate(links):
        linear[..., j] = np.cross(axis, point - origin)
        angular[..., j] = axis
    return linear, angular


def tool_jacobian(q):
    """(..., 6, 6), linear above angular, world axes, at the tool."""
    links, _, position = _walk(q)
    return np.concatenate(_jacobian(links, position), axis=-2)


def mass_matrix(q):
    """M(q) = sum of m J_v^T J_v + J_w^T R I R^T J_w. [arm] eq. 1"""
    links, _, _ = _walk(q)
    total = 0.0
    for i, (_, _, rotation, com) in enumerate(links):
        jv, jw = _jacobian(links[: i + 1], com)
        jw = rotation.swapaxes(-1, -2) @ jw  # R^T J_w, in the CoM's frame
        total = total + MASS[i] * jv.swapaxes(-1, -2) @ jv + INERTIA[i] * jw.swapaxes(-1, -2) @ jw
    return total


def kinetic(q, v):
    """Kinetic energy (J), v^T M v / 2."""
    return 0.5 * np.einsum('...i,...ij,...j->...', v, mass_matrix(q), v)


def potential(q):
    """Potential energy (J); its gradient is minus the printed g(q). [arm] eq. 1"""
    links, _, _ = _walk(q)
    return sum(m * GRAVITY * com[..., 2] for m, (_, _, _, com) in zip(MASS, links, strict=True))
