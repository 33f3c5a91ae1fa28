"""From energies to equations of motion, A(q) q'' + C(q, q') q' + Q(q) = Gamma ([krang] eq. 3).

Every function takes q and v of shape (..., n), usually (N, n). The energies must broadcast over the
leading axes and accept complex numbers: derivatives are complex steps, exact to rounding.
"""

import numpy as np

GRAVITY = 9.81  # m/s2

# The complex step has no cancellation, so h can be so small that its error h^2 is below rounding.
STEP = 1e-30


def derivative(function, q):
    """df/dq_k of a function (..., n) -> (..., *shape), as (..., n, *shape): k comes first."""
    return function(q[..., None, :] + 1j * STEP * np.eye(q.shape[-1])).imag / STEP


def rate(function, q, v):
    """df/dt along q' = v, of the shape of f(q)."""
    return function(q + 1j * STEP * v).imag / STEP


def mass_matrix(kinetic, q):
    """A (..., n, n) of E = v^T A v / 2, by polarisation; no derivatives. [krang] section 1.2"""
    n = q.shape[-1]
    unit = np.eye(n)
    i, j = np.triu_indices(n, 1)
    energy = kinetic(q[..., None, :], np.concatenate([unit, unit[i] + unit[j]]))
    single, pair = energy[..., :n], energy[..., n:]
    a = np.zeros((*q.shape, n), dtype=energy.dtype)
    a[..., np.arange(n), np.arange(n)] = 2 * single
    a[..., i, j] = a[..., j, i] = pair - single[..., i] - single[..., j]
    return a


def coriolis_matrix(mass_matrix, q, v):
    """C (..., n, n) by Christoffel symbols, of a function mass_matrix(q). [krang] eq. 4"""
    da = derivative(mass_matrix, q)  # da[..., k, i, j] = dA_ij / dq_k
    return 0.5 * (
        np.einsum('...kij,...k->...ij', da, v)
        + np.einsum('...jik,...k->...ij', da, v)
        - np.einsum('...ijk,...k->...ij', da, v)
    )


def gravity(potential, q):
    """Q = dU/dq (..., n), the torque that holds the robot still. [krang] eq. 5"""
    return derivative(potential, q)


def inverse_dynamics(mass_matrix, potential, q, v, a):
    """Gamma (..., n) without friction and rotors. [krang] eq. 3"""
    c = coriolis_matrix(mass_matrix, q, v)
    return apply(mass_matrix(q), a) + apply(c, v) + gravity(potential, q)


def apply(matrix, vector):
    """Matrix times vector, both batched."""
    return np.einsum('...ij,...j->...i', matrix, vector)


def matrix(rows):
    """Matrix (..., r, c) of entries that are numbers or arrays of the batch's shape."""
    entries = np.broadcast_arrays(*[entry for row in rows for entry in row])
    return np.stack(entries, axis=-1).reshape(*entries[0].shape, len(rows), len(rows[0]))


def skew(x):
    """S(x) with S(x) y = x cross y."""
    x, y, z = x[..., 0], x[..., 1], x[..., 2]
    return matrix([[0, -z, y], [z, 0, -x], [-y, x, 0]])


def rx(angle):
    """Rotation about x (rad)."""
    c, s = np.cos(angle), np.sin(angle)
    return matrix([[1, 0, 0], [0, c, -s], [0, s, c]])


def ry(angle):
    """Rotation about y (rad)."""
    c, s = np.cos(angle), np.sin(angle)
    return matrix([[c, 0, s], [0, 1, 0], [-s, 0, c]])


def rz(angle):
    """Rotation about z (rad)."""
    c, s = np.cos(angle), np.sin(angle)
    return matrix([[c, -s, 0], [s, c, 0], [0, 0, 1]])


def pose(rotation, position):
    """Homogeneous transform (..., 4, 4)."""
    t = np.zeros((*rotation.shape[:-2], 4, 4), dtype=np.result_type(rotation, position))
    t[..., :3, :3] = rotation
    t[..., :3, 3] = position
    t[..., 3, 3] = 1
    return t
