"""Parameters that a real machine can have: positive masses and pseudo-inertias, friction that brakes.

The pseudo-inertia of a body is written J = U V V^T U^T, with U U^T the described one and V upper triangular
of positive diagonal: log-Cholesky coordinates (Rucker and Wensing, 2022) relative to the description.
Every point is a body, and 0 is the described one, so that a plain least-squares solver does.
"""

import numpy as np
from scipy.optimize import least_squares

from ...arrays import Array, Mask

SMALLEST = 1e-7  # eigenvalue of a pseudo-inertia relative to its largest, to begin from
EVALUATIONS = 150  # of one round, enough for bodies at the edge of what can be
LOG_SPREAD = 1.5  # how far, in powers of e, a body may shrink or grow along an axis: keeps it off nothing
ROUNDS = 20  # in which the parameters that would turn negative are found
ROWS, COLUMNS = np.triu_indices(4, 1)
BASIS = np.zeros((10, 4, 4))  # of V: its diagonal, then what is above
BASIS[range(4), range(4), range(4)] = BASIS[range(4, 10), ROWS, COLUMNS] = 1.0


def fit(R: Array, z: Array, prior: Array, spread: Array, bodies: int, positive: Mask) -> tuple[Array, Array]:
    """theta that makes |R theta - z|^2 + |(theta - prior) / spread|^2 least, and its standard deviations.

    The first 10 * bodies entries are Pinocchio's ten parameters of each body; `positive` ones stay >= 0.
    """
    blocks = [slice(10 * i, 10 * i + 10) for i in range(bodies)]
    factors = [factor(prior[block]) for block in blocks]
    logs = np.array([block.start + i for block in blocks for i in range(4)], dtype=int)
    design = np.vstack([R, np.diag(1 / spread)])
    target = np.concatenate([z, prior / spread])
    held = np.zeros(len(prior), dtype=bool)  # at zero, where they would turn negative
    x = np.concatenate([np.zeros(10 * bodies), (prior / spread)[10 * bodies :]])

    def theta_of(x: Array) -> Array:
        theta = np.where(held, 0.0, x * spread)
        for block, U in zip(blocks, factors, strict=True):
            theta[block] = parameters(x[block], U)
        return theta

    def residual(x: Array) -> Array:
        return np.concatenate([design @ theta_of(x) - target, x[logs] / LOG_SPREAD])

    def slope(x: Array) -> Array:
        J = design * np.where(held, 0.0, spread)
        for block, U in zip(blocks, factors, strict=True):
            J[:, block] = design[:, block] @ jacobian(x[block], U)
        return np.vstack([J, np.eye(len(x))[logs] / LOG_SPREAD])

    for _ in range(ROUNDS):
        # A step too far is not finite, and the solver takes it back.
        with np.errstate(over='ignore', invalid='ignore'):
            x = least_squares(residual, x, slope, ftol=1e-7, max_nfev=EVALUATIONS).x
        theta = theta_of(x)
        gradient = design.T @ (design @ theta - target)
        below, released = positive & ~held & (theta < 0), held & (gradient < 0)
        if not below.any() and not released.any():
            break
        held = (held | below) & ~released
    inverse = np.linalg.pinv(design * spread)  # of the scaled problem, whose numbers are of one size
    return theta, spread * np.linalg.norm(inverse, axis=1)


def pseudo_inertia(parameters: Array) -> Array:
    """J = [Sigma, h; h^T, m] of (m, h, ixx, ixy, iyy, ixz, iyz, izz), inertia about the frame's origin."""
    m, hx, hy, hz, xx, xy, yy, xz, yz, zz = parameters
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    J = np.empty((4, 4))
    J[:3, :3] = np.trace(inertia) / 2 * np.eye(3) - inertia
    J[:3, 3] = J[3, :3] = hx, hy, hz
    J[3, 3] = m
    return J


def of_pseudo_inertia(J: Array) -> Array:
    """The ten parameters, of one J or of many (..., 4, 4); linear in J."""
    x, y, z = J[..., 0, 0], J[..., 1, 1], J[..., 2, 2]
    entries = (J[..., 3, 3], J[..., 0, 3], J[..., 1, 3], J[..., 2, 3])
    inertia = (y + z, -J[..., 0, 1], x + z, -J[..., 0, 2], -J[..., 1, 2], x + y)
    return np.stack([*entries, *inertia], axis=-1)


def is_consistent(parameters: Array) -> bool:
    """Whether a rigid body can have these ten parameters."""
    return bool(np.linalg.eigvalsh(pseudo_inertia(parameters))[0] > 0)


def factor(parameters: Array) -> Array:
    """Upper triangular U with U U^T the pseudo-inertia of the nearest body."""
    values, vectors = np.linalg.eigh(pseudo_inertia(parameters))
    values = np.maximum(values, SMALLEST * max(float(values[-1]), 1e-12))
    J = vectors * values @ vectors.T
    # U U^T with U upper triangular is the Cholesky decomposition read backwards.
    return np.linalg.cholesky(J[::-1, ::-1])[::-1, ::-1]


def parameters(x: Array, U: Array) -> Array:
    """The ten parameters of coordinates x relative to U."""
    W = U @ _relative(x)
    return of_pseudo_inertia(W @ W.T)


def jacobian(x: Array, U: Array) -> Array:
    """d(parameters) / d(x), 10 x 10."""
    W = U @ _relative(x)
    rates = np.concatenate([np.exp(x[:4]), np.ones(6)])
    change = (U @ (rates[:, None, None] * BASIS)) @ W.T
    return of_pseudo_inertia(change + change.transpose(0, 2, 1)).T


def _relative(x: Array) -> Array:
    V = np.diag(np.exp(x[:4]))
    V[ROWS, COLUMNS] = x[4:]
    return V
