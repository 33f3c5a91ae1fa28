"""Krang on fixed wheels, a tree of 17 revolute joints: [krang] sections 2 and 3."""

import numpy as np

from reference import lagrange
from reference.lagrange import GRAVITY, matrix, skew

JOINTS = (
    'base_pitch',
    'waist',
    'torso',
    *(f'left_{i}' for i in range(1, 8)),
    *(f'right_{i}' for i in range(1, 8)),
)

# Index of the antecedent frame, -1 for the world R_0: both arms branch from frame 3.
ANTECEDENT = (-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 2, 10, 11, 12, 13, 14, 15)

CHAIN = {'left': (0, 1, 2, *range(3, 10)), 'right': (0, 1, 2, *range(10, 17))}

L1, L2, L3, L4, L5, L6, L7, L8, L9 = (  # m
    0.499, 0.091, 0.584, 0.1088, 0.0845, 0.2823, 0.328, 0.2765, 0.200,
)  # fmt: skip

_X, _Y, _Z = -np.eye(3)
_ARM_AXES = (_Y, _X, _Y, _X, _Y, _X, _Z)
# ^j e_j, direction of positive rotation in the joint's own frame. [krang] section 2.2
AXES = np.array([_X, _X, _Y, *_ARM_AXES, *_ARM_AXES])


def transforms(q):
    """The seventeen iT_j (..., 4, 4), j in the order of JOINTS. [krang] section 2.1"""
    c, s = np.cos(q), np.sin(q)
    trunk = (_t1, _t2, _t3)
    arm = (_t5, _t6, _t7, _t8, _t9, _t10)
    functions = (*trunk, _t4l, *arm, _t4r, *arm)
    last = [0, 0, 0, 1]
    return [matrix([*t(c[..., j], s[..., j]), last]) for j, t in enumerate(functions)]


def _t1(c, s):
    return [0, s, -c, 0], [-1, 0, 0, 0], [0, c, s, 0]


def _t2(c, s):
    return [1, 0, 0, 0], [0, c, s, L1], [0, -s, c, -L2]


def _t3(c, s):
    return [-c, 0, s, 0], [0, 1, 0, L3], [-s, 0, -c, L4]


def _t4l(c, s):
    return [0, 1, 0, L6], [c, 0, -s, L5], [-s, 0, -c, 0]


def _t4r(c, s):
    return [0, -1, 0, -L6], [c, 0, -s, L5], [s, 0, c, 0]


def _t5(c, s):
    return [-1, 0, 0, 0], [0, -c, -s, 0], [0, -s, c, 0]


def _t6(c, s):
    return [-c, 0, s, 0], [0, -1, 0, -L7], [s, 0, c, 0]


_t7 = _t5


def _t8(c, s):
    return [-c, 0, s, 0], [0, -1, 0, -L8], [s, 0, c, 0]


_t9 = _t5


def _t10(c, s):
    return [-c, -s, 0, 0], [0, 0, -1, -L9], [s, -c, 0, 0]


def _box(mass, x, y, z):
    """Inertia at the centre of a uniform box of edges x, y, z."""
    return mass / 12 * np.diag([y * y + z * z, x * x + z * z, x * x + y * y])


def _scaled(factor, xx, yy, zz, xy=0.0):
    return factor * np.array([[xx, xy, 0], [xy, yy, 0], [0, 0, zz]])


# Mass (kg), centre of mass (m) in the link frame, inertia (kg m2) at the centre of mass.
_TRUNK = (
    (81.856, (-0.00336451, 0.107572, -0.00636184), _box(81.856, 0.7165, 0.71048, 0.3286)),
    (10.302, (-0.02937, 0.285314, 0.0974926), _box(10.302, 0.234, 0.5943, 0.24097)),
    (10.875, (-6.5e-5, 0.089675, -0.008384), _box(10.875, 0.2815, 0.23, 0.22611)),
)
_ARM = (
    (3.836, (0.0063626, -0.00725706, 0), _scaled(3.836 / 7.35, 0.0732, 0.0222, 0.0816, -0.0006)),
    (2.385, (0.0101136, -0.15332, 0), _scaled(2.385 / 6.1405, 0.0504, 0.0178, 0.0579, 0.0006)),
    (2.306, (0.0071222, -0.00803823, 0), _scaled(2.306 / 4.531, 0.0354, 0.0100, 0.0394, -0.0003)),
    (1.477, (0.0115211, -0.1255, 0), _scaled(1.477 / 3.2245, 0.0209, 0.0067, 0.0239, 0.0003)),
    (1.369, (0.00705037, -0.00747172, 0), _scaled(1.369 / 2.318, 0.0120, 0.0035, 0.0135, -0.0002)),
    (1.470, (0.0105523, -0.117163, 0), _scaled(1.470 / 2.318, 0.0104, 0.0041, 0.0125)),
    (2.300, (0, 0, 0.1055), _scaled(2.3 / 2.3838, 0.0126, 0.0130, 0.0027)),
)
LINKS = (*_TRUNK, *_ARM, *_ARM)


def inertial_parameters(mass, com, inertia):
    """[m MX MY MZ XX XY XZ YY YZ ZZ] about the frame origin, in the order of [krang] B.14.

    J = I_G - M S^ S^, with S^ the cross product matrix of the centre of mass. [krang] section 2.3
    """
    s = skew(np.array(com, dtype=float))
    j = inertia - mass * s @ s
    return np.array([mass, *(mass * np.array(com)), *j[np.triu_indices(3)]])


PARAMETERS = np.array([inertial_parameters(*link) for link in LINKS])
MASS, MS = PARAMETERS[:, 0], PARAMETERS[:, 1:4]
J = PARAMETERS[:, [[4, 5, 6], [5, 7, 8], [6, 8, 9]]]

_GEAR = np.array([15, 596, 596, *(2 * [596, 596, 625, 625, 552, 552, 552])])
_ARM_ROTOR = [2.207e-5, 4.266e-5, 2.048e-5, 3.735e-5, 1.193e-5, 1.913e-5, 1.635e-5]
_ROTOR = np.array([2 * 1.60e-4, 2 * 2.2e-5, 2.207e-5, *(2 * _ARM_ROTOR)])
ROTOR_INERTIA = _GEAR**2 * _ROTOR  # kg m2 at the joint, to add to the diagonal of A. [krang] eq. 18

# Viscous (N m s/rad) and Coulomb (N m) friction. Two runs on one arm, each with its own sign.
_TRUNK_VISCOUS, _TRUNK_COULOMB = [0.5, 19, 9.8], [0, 17, 8.5]
VISCOUS_SMOOTH = np.array([*_TRUNK_VISCOUS, *(2 * [98.86, 88.60, 107.72, 92.16, 34.49, 34.46, 37.93])])
COULOMB_SMOOTH = np.array([*_TRUNK_COULOMB, *(2 * [85.60, 73.12, 90.22, 83.27, 32.09, 28.97, 35.93])])
VISCOUS_EXACT = np.array([*_TRUNK_VISCOUS, *(2 * [164.84, 133.64, 150.61, 137.86, 41.88, 53.40, 57.26])])
COULOMB_EXACT = np.array([*_TRUNK_COULOMB, *(2 * [6.01, 7.28, 20.49, 12.35, 9.09, 4.38, 5.55])])


def friction_smooth(v):
    """Gamma_f (N m) of the default set, on the torque's side of eq. 3. [krang] eq. 17"""
    return VISCOUS_SMOOTH * v + COULOMB_SMOOTH * (2 / (1 + np.exp(-2 * v)) - 1)


def friction_exact(v):
    """Gamma_f (N m) of the earlier set, with the exact sign; real v only. [krang] eq. 17"""
    return VISCOUS_EXACT * v + COULOMB_EXACT * np.sign(v)


def kinetic(q, v):
    """Kinetic energy (J) of the links, without rotors. [krang] eq. 7, 8, 9 and 11"""
    energy = 0.0
    omega, velocity = [], []
    for j, t in enumerate(transforms(q)):
        i = ANTECEDENT[j]
        spin = AXES[j] * v[..., j, None]
        if i < 0:  # R_0 is at rest
            w, u = spin, np.zeros(3)
        else:
            rotation, p = t[..., :3, :3], t[..., :3, 3]
            w = _to_child(rotation, omega[i]) + spin
            u = _to_child(rotation, velocity[i] + np.cross(omega[i], p))
        omega.append(w)
        velocity.append(u)
        energy = energy + 0.5 * (_dot(w @ J[j], w) + MASS[j] * _dot(u, u) + 2 * _dot(np.cross(u, w), MS[j]))
    return energy


def _to_child(rotation, x):
    """^jA_i x, where rotation is ^iA_j = (^jA_i)^T."""
    return np.einsum('...ij,...i->...j', rotation, x)


def _dot(x, y):
    return np.einsum('...i,...i->...', x, y)


def mass_matrix(q):
    """A (..., 17, 17) of the links, without rotors."""
    return lagrange.mass_matrix(kinetic, q)


def world_frames(q):
    """The seventeen 0T_j (..., 4, 4)."""
    frames = []
    for i, t in zip(ANTECEDENT, transforms(q), strict=True):
        frames.append(t if i < 0 else frames[i] @ t)
    return frames


def potential(q):
    """Potential energy (J), zero with all mass at the wheels' axle. [krang] eq. 15"""
    gravity = np.array([0, 0, -GRAVITY, 0])
    return sum(
        -(t @ np.array([*ms, m])) @ gravity for t, ms, m in zip(world_frames(q), MS, MASS, strict=True)
    )


def hand_pose(q, side):
    """0T_10 (..., 4, 4) of the 'left' or 'right' hand."""
    return world_frames(q)[CHAIN[side][-1]]


def jacobian(q, side):
    """(..., 6, 17), linear above angular, world axes, at the hand's origin. [krang] section 3.1"""
    frames = world_frames(q)
    hand = frames[CHAIN[side][-1]][..., :3, 3]
    result = np.zeros((*q.shape[:-1], 6, 17), dtype=hand.dtype)
    for j in CHAIN[side]:
        axis = frames[j][..., :3, :3] @ AXES[j]
        result[..., :3, j] = np.cross(axis, hand - frames[j][..., :3, 3])
        result[..., 3:, j] = axis
    return result
