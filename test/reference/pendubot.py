"""The rotary inverted pendulum of [pendubot]: q1 about the vertical, q2 = 0 upright."""

import numpy as np

from reference import lagrange
from reference.lagrange import GRAVITY, matrix

JOINTS = ('arm', 'pendulum')

J1, M2 = 0.0044, 0.14  # kg m2, kg
L, L2, LC2 = 0.2, 0.3, 0.15  # m: l1 + l2', the rod, its centre of mass
BETA1, BETA2 = 0.015, 0.002  # N m s/rad
KT, KV, KR, RA = 0.00767, 0.00767, 70, 2.6  # N m/A, V s/rad, gear, ohm

ROTOR_INERTIA = np.zeros(2)

# theta = VOLTS_PER_TORQUE theta' + BACK_EMF, theta' = (theta_1' .. theta_4', beta_1, beta_2).
VOLTS_PER_TORQUE = RA / (KR * KT)
BACK_EMF = np.array([0, 0, 0, 0, KR * KV, 0])

_NOMINAL = np.array([J1 + M2 * L**2, M2 * L2**2 / 3, M2 * L * L2 / 2, M2 * LC2, BETA1, BETA2])

THETAS = {  # volts
    'nominal': VOLTS_PER_TORQUE * _NOMINAL + BACK_EMF,
    'station_7': np.array([0.0786609, 0.0305672, 0.0259821, 0.1481156, 0.5449053, 0.0116749]),
    'station_9': np.array([0.0771622, 0.0251335, 0.0232942, 0.1276416, 0.5493307, 0.0223954]),
}
PRIMED = {name: (thetas - BACK_EMF) / VOLTS_PER_TORQUE for name, thetas in THETAS.items()}  # N m


def friction(v, name='nominal'):
    """Viscous friction (..., 2), N m, on the torque's side."""
    return PRIMED[name][4:] * v


def volts(torque, v):
    """Motor voltage (...) for a torque on the arm before its friction; v (..., 2)."""
    return VOLTS_PER_TORQUE * torque + KV * KR * v[..., 0]


def rod_position(q, r):
    """World position (..., 3) of the rod's point at distance r (m) from its hinge."""
    c1, s1, c2, s2 = np.cos(q[..., 0]), np.sin(q[..., 0]), np.cos(q[..., 1]), np.sin(q[..., 1])
    x = L * c1 - r * s2 * s1
    y = L * s1 + r * s2 * c1
    return np.stack([x, y, r * c2 + 0 * x], axis=-1)


def tip_position(q):
    """World position (..., 3) of the rod's end (m); z = 0 is the hinge's height."""
    return rod_position(q, L2)


def _rod_speed_squared(q, v, r):
    c1, s1, c2, s2 = np.cos(q[..., 0]), np.sin(q[..., 0]), np.cos(q[..., 1]), np.sin(q[..., 1])
    v1, v2 = v[..., 0], v[..., 1]
    vx = -L * s1 * v1 - r * (s2 * c1 * v1 + c2 * s1 * v2)
    vy = L * c1 * v1 + r * (-s2 * s1 * v1 + c2 * c1 * v2)
    vz = -r * s2 * v2
    return vx**2 + vy**2 + vz**2


def kinetic(q, v):
    """Kinetic energy (J): the arm, and the integral of dm speed^2 / 2 along the slender rod."""
    # Simpson's rule is exact here, as speed^2 is quadratic in r.
    ends_and_middle = (
        _rod_speed_squared(q, v, 0) + 4 * _rod_speed_squared(q, v, L2 / 2) + _rod_speed_squared(q, v, L2)
    )
    return 0.5 * J1 * v[..., 0] ** 2 + 0.5 * M2 * ends_and_middle / 6


def potential(q):
    """Potential energy (J) of the rod, zero when horizontal. [pendubot] V_2"""
    return M2 * GRAVITY * LC2 * np.cos(q[..., 1])


def mass_matrix(q):
    """M (..., 2, 2) of the nominal set, kg m2."""
    return lagrange.mass_matrix(kinetic, q)


# Closed forms: in N m with PRIMED[name], in volts with THETAS[name].


def closed_mass_matrix(q, thetas):
    """M (..., 2, 2). [pendubot] eq. 4"""
    th1, th2, th3 = thetas[:3]
    c, s = np.cos(q[..., 1]), np.sin(q[..., 1])
    return matrix([[th1 + th2 * s**2, th3 * c], [th3 * c, th2]])


def closed_coriolis_matrix(q, v, thetas):
    """C (..., 2, 2) in its Christoffel form. [pendubot] eq. 5, corrected"""
    _, th2, th3 = thetas[:3]
    c, s = np.cos(q[..., 1]), np.sin(q[..., 1])
    v1, v2 = v[..., 0], v[..., 1]
    return matrix([[th2 * s * c * v2, th2 * s * c * v1 - th3 * s * v2], [-th2 * s * c * v1, 0]])


def closed_gravity(q, thetas):
    """G (..., 2), with the sign of eq. 3: upright is unstable. [pendubot] eq. 7, corrected"""
    return np.stack([0 * q[..., 1], -thetas[3] * GRAVITY * np.sin(q[..., 1])], axis=-1)


def voltage_equation(q, v, a, thetas):
    """Left-hand sides (..., 2) in volts: they equal (v, 0). [pendubot] eq. 2 and 3, corrected"""
    th1, th2, th3, th4, th5, th6 = thetas
    c, s = np.cos(q[..., 1]), np.sin(q[..., 1])
    v1, v2, a1, a2 = v[..., 0], v[..., 1], a[..., 0], a[..., 1]
    arm = (th1 + th2 * s**2) * a1 + th3 * c * a2 + 2 * th2 * s * c * v1 * v2 - th3 * s * v2**2 + th5 * v1
    pendulum = th3 * c * a1 + th2 * a2 - th2 * s * c * v1**2 - th4 * GRAVITY * s + th6 * v2
    return np.stack([arm, pendulum], axis=-1)
