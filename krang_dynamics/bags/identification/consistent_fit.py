"""Least squares over parameters that a real robot can have: rigid bodies with mass, friction that dissipates.

The pseudo-inertia of a body is positive definite. Pinocchio's log-Cholesky parameters (Rucker and Wensing,
2022) cover exactly those bodies, so an unconstrained least-squares solver is enough.
"""

import numpy as np
import pinocchio as pin
from scipy.optimize import least_squares

from ...arrays import Array, Mask

SMALLEST = 1e-7  # smallest eigenvalue of an initial pseudo-inertia, relative to its largest
EVALUATIONS = 150  # per solution, enough for bodies that are nearly a rod or a point
LOG_SPREAD = 1.5  # prior on the logarithms of the Cholesky diagonal; keeps bodies from shrinking to nothing
ROUNDS = 20  # of the search for the parameters that are zero
# Logarithms of the Cholesky diagonal as a linear function of the log-Cholesky parameters.
LOG_DIAGONAL = np.zeros((4, 10))
LOG_DIAGONAL[:, 0] = LOG_DIAGONAL[range(3), range(1, 4)] = 1.0


def fit_consistent(
    R: Array, z: Array, prior: Array, spread: Array, bodies: int, positive: Mask
) -> tuple[Array, Array]:
    """theta that minimises |R theta - z|^2 + |(theta - prior) / spread|^2, and its standard deviations.

    The first 10 * bodies entries are Pinocchio's dynamic parameters of each body; `positive` ones stay >= 0.
    """
    blocks = [slice(10 * i, 10 * i + 10) for i in range(bodies)]
    design = np.vstack([R, np.diag(1 / spread)])
    target = np.concatenate([z, prior / spread])
    start = prior / spread
    shrinkage = np.zeros((4 * bodies, len(prior)))
    for i, block in enumerate(blocks):
        start[block] = log_cholesky(prior[block])
        shrinkage[4 * i : 4 * i + 4, block] = LOG_DIAGONAL / LOG_SPREAD
    # An active set for theta >= 0: scipy's bounds take ten times as long and end short of the minimum.
    held = np.zeros(len(prior), dtype=bool)  # at zero

    def theta_of(x: Array) -> Array:
        theta = np.where(held, 0.0, x * spread)
        for block in blocks:
            theta[block] = pin.LogCholeskyParameters(x[block]).toDynamicParameters()
        return theta

    def residual(x: Array) -> Array:
        return np.concatenate([design @ theta_of(x) - target, shrinkage @ (x - start)])

    def jacobian(x: Array) -> Array:
        J = design * np.where(held, 0.0, spread)
        for block in blocks:
            J[:, block] = design[:, block] @ pin.LogCholeskyParameters(x[block]).calculateJacobian()
        return np.vstack([J, shrinkage])

    x = start
    for _ in range(ROUNDS):
        # A step that is too long gives infinite values, and the solver rejects it.
        with np.errstate(over='ignore', invalid='ignore'):
            x = least_squares(residual, x, jacobian, ftol=1e-7, x_scale='jac', max_nfev=EVALUATIONS).x
        theta = theta_of(x)
        gradient = design.T @ (design @ theta - target)
        below, released = positive & ~held & (theta < 0), held & (gradient < 0)
        if not below.any() and not released.any():
            break
        held = (held | below) & ~released
    inverse = np.linalg.pinv(design * spread)  # scaled, so that its entries are of similar size
    return theta, spread * np.linalg.norm(inverse, axis=1)


def is_consistent(parameters: Array) -> bool:
    """Whether a rigid body can have these ten dynamic parameters."""
    J = pin.PseudoInertia.FromDynamicParameters(parameters).toMatrix()
    return bool(np.linalg.eigvalsh(J)[0] > 0)


def log_cholesky(parameters: Array) -> Array:
    """Log-Cholesky parameters of the nearest rigid body; Pinocchio has only the way back.

    They are (log s, d_1..3, s_12, s_23, s_13, t_1..3) of the upper triangular
    U = s [exp d_1, s_12, s_13, t_1; 0, exp d_2, s_23, t_2; 0, 0, exp d_3, t_3; 0, 0, 0, 1] with U U^T = J.
    """
    values, vectors = np.linalg.eigh(pin.PseudoInertia.FromDynamicParameters(parameters).toMatrix())
    values = np.maximum(values, SMALLEST * max(float(values[-1]), 1e-12))
    J = vectors * values @ vectors.T
    # With rows and columns reversed, numpy's lower triangle becomes the upper one.
    U = np.linalg.cholesky(J[::-1, ::-1])[::-1, ::-1]
    V = U / U[3, 3]
    return np.array([np.log(U[3, 3]), *np.log(np.diag(V)[:3]), V[0, 1], V[1, 2], V[0, 2], *V[:3, 3]])
