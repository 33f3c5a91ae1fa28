"""Otbot, a platform pivoting on a differential-drive chassis: [otbot].

theta = alpha - pivot is the angle of the chassis, and (x, y) is the pivot joint.
"""

import numpy as np

from reference import lagrange
from reference.lagrange import apply, matrix

JOINTS = ('x', 'y', 'alpha', 'right_wheel', 'left_wheel', 'pivot')

L_1, L_2, R = 0.25, 0.20, 0.10  # m: axle behind the pivot, half the track, wheel radius
M_C, Y_B = 109.1428, 0.0  # chassis including wheels: a body of 105 kg and two of 2.0714 kg
X_B = (105 * -0.125 + 2 * 2.0714 * -L_1) / M_C
I_C = 1.06458 + 105 * (0.125 + X_B) ** 2 + 2 * (5.61007e-3 + 2.0714 * ((L_1 + X_B) ** 2 + L_2**2))
M_P, X_F, Y_F, I_P = 21.94795, 0.0, 0.0, 2.22223  # platform
I_A = 0.010357  # kg m2, one wheel about its axle

ROTOR_INERTIA = np.zeros(6)
VISCOUS = np.array([0, 0, 0, 0.18, 0.18, 0.24])  # N m s/rad

E = np.vstack([np.zeros((3, 3)), np.eye(3)])  # u = (right, left, pivot). [otbot] section 4


def friction(v):
    """Viscous friction (..., 6), N m, on the torque's side; only actuated joints have any."""
    return VISCOUS * v


def kin_en_trans(c, d, m, xdot, ydot, theta, thetadot):
    """Translational energy (J) of a mass at (c, d) of a body's frame. [otbot] appendix"""
    cth, sth = np.cos(theta), np.sin(theta)
    vx = xdot + (-cth * d - sth * c) * thetadot
    vy = ydot + (cth * c - sth * d) * thetadot
    return 0.5 * m * (vx**2 + vy**2)


def kinetic(q, v):
    """T (J) of the unconstrained robot. [otbot] section 2"""
    alpha, theta = q[..., 2], q[..., 2] - q[..., 5]
    xdot, ydot, alphadot, right, left, pivot = np.moveaxis(v, -1, 0)
    thetadot = alphadot - pivot
    return (
        kin_en_trans(X_B, Y_B, M_C, xdot, ydot, theta, thetadot)
        + kin_en_trans(X_F, Y_F, M_P, xdot, ydot, alpha, alphadot)
        + 0.5 * I_C * thetadot**2
        + 0.5 * I_A * right**2
        + 0.5 * I_A * left**2
        + 0.5 * I_P * alphadot**2
    )


def potential(q):
    """Zero: the ground is flat. [otbot] introduction"""
    return 0 * q[..., 0]


def mass_matrix(q):
    """M (..., 6, 6)."""
    return lagrange.mass_matrix(kinetic, q)


def constraint_jacobian(q):
    """J (..., 3, 6) with J q' = 0: the axle does not slip, sideways or forwards, nor in yaw."""
    theta = q[..., 2] - q[..., 5]
    c, s = np.cos(theta), np.sin(theta)
    return matrix(
        [
            [1, 0, L_1 * s, -R * c / 2, -R * c / 2, -L_1 * s],
            [0, 1, -L_1 * c, -R * s / 2, -R * s / 2, L_1 * c],
            [0, 0, 1, -R / (2 * L_2), R / (2 * L_2), -1],
        ]
    )


def constraint_jacobian_rate(q, v):
    """dJ/dt (..., 3, 6). [otbot] section 5"""
    return lagrange.rate(constraint_jacobian, q, v)


def project(q, v):
    """The velocity (..., 6) that v's actuated part (wheels and pivot) forces under J v = 0."""
    # J = [J_p J_u], and J_p, the columns of x, y and alpha, is always invertible.
    j = constraint_jacobian(q)
    task = -np.linalg.solve(j[..., :3], apply(j[..., 3:], v[..., 3:])[..., None])[..., 0]
    return np.concatenate([task, v[..., 3:]], axis=-1)


def forward(q, v, u):
    """(a, lambda) for torques u (..., 3); no friction (pass u - friction(v)[..., 3:]).

    M a + C v + J^T lambda = E u and J a = -dJ/dt v. [otbot] sections 6 and 7
    """
    m, j = mass_matrix(q), constraint_jacobian(q)
    c = lagrange.coriolis_matrix(mass_matrix, q, v)
    system = np.zeros((*q.shape[:-1], 9, 9))
    system[..., :6, :6] = m
    system[..., :6, 6:] = j.swapaxes(-1, -2)
    system[..., 6:, :6] = j
    right = np.concatenate([u @ E.T - apply(c, v), -apply(constraint_jacobian_rate(q, v), v)], -1)
    solution = np.linalg.solve(system, right[..., None])[..., 0]
    return solution[..., :6], solution[..., 6:]


def inverse(q, v, a):
    """(u, lambda) that produce a, which must satisfy J a = -dJ/dt v; no friction. [otbot] 8"""
    tau = lagrange.inverse_dynamics(mass_matrix, potential, q, v, a)
    j = constraint_jacobian(q)
    system = np.concatenate([np.broadcast_to(E, (*q.shape[:-1], 6, 3)), -j.swapaxes(-1, -2)], axis=-1)
    solution = np.linalg.solve(system, tau[..., None])[..., 0]
    return solution[..., :3], solution[..., 3:]
