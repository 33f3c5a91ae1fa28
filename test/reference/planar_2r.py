"""The planar arm of two links of [lecture], in the vertical plane x-z, joint axes -y."""

import numpy as np

from reference.lagrange import GRAVITY, matrix

JOINTS = ('joint_1', 'joint_2')

M1, M2 = 2.0, 1.5  # kg
L1, L2, LC1, LC2 = 1.0, 0.8, 0.5, 0.4  # m
I1, I2 = 0.17, 0.09  # kg m2 at the centre of mass

ROTOR_INERTIA = np.zeros(2)


def _angles(q):
    return q[..., 0], q[..., 0] + q[..., 1]


def mass_matrix(q):
    """D(q) (..., 2, 2), of J_vc1 and J_vc2. [lecture] "Example Robot Kinetic Energy" """
    q1, q12 = _angles(q)
    j1 = matrix([[-LC1 * np.sin(q1), 0], [LC1 * np.cos(q1), 0], [0, 0]])
    j2 = matrix(
        [
            [-L1 * np.sin(q1) - LC2 * np.sin(q12), -LC2 * np.sin(q12)],
            [L1 * np.cos(q1) + LC2 * np.cos(q12), LC2 * np.cos(q12)],
            [0, 0],
        ]
    )
    rotational = np.array([[I1 + I2, I2], [I2, I2]])
    return M1 * j1.swapaxes(-1, -2) @ j1 + M2 * j2.swapaxes(-1, -2) @ j2 + rotational


def kinetic(q, v):
    """Kinetic energy (J), v^T D v / 2."""
    return 0.5 * np.einsum('...i,...ij,...j->...', v, mass_matrix(q), v)


def potential(q):
    """Potential energy (J), zero when stretched horizontally. [lecture] last page"""
    q1, q12 = _angles(q)
    return (M1 * LC1 + M2 * L1) * GRAVITY * np.sin(q1) + M2 * LC2 * GRAVITY * np.sin(q12)


def tip_position(q):
    """World position (..., 3) of the tip (m)."""
    q1, q12 = _angles(q)
    x = L1 * np.cos(q1) + L2 * np.cos(q12)
    z = L1 * np.sin(q1) + L2 * np.sin(q12)
    return np.stack([x, 0 * x, z], axis=-1)


def tip_jacobian(q):
    """(..., 6, 2), linear above angular, world axes, at the tip."""
    q1, q12 = _angles(q)
    x2, z2 = L2 * np.cos(q12), L2 * np.sin(q12)
    x1, z1 = L1 * np.cos(q1) + x2, L1 * np.sin(q1) + z2
    return matrix([[-z1, -z2], [0, 0], [x1, x2], [0, 0], [-1, -1], [0, 0]])
