"""Coulomb friction with the exact sign: a joint at rest stays at rest until the load exceeds F_c."""

import numpy as np

from ..arrays import Array

BLOCK_PIVOTS = 20  # how often all wrong guesses change at once, which is fast but might cycle
MOST_PIVOTS = 10_000  # many more than needed: rounding must not be able to hang a simulation


def held_torque(v: Array, a: Array, response: Array, limit: Array, h: float) -> Array:
    """Dry friction f [N m] to hold over a step of h [s], |f| <= limit.

    With w = v + h (a - response f) the speed after the step, f = limit sign(w) where w is not 0: friction
    brakes with all it has, or with less to rest. `a` is without f, `response` the inverse mass matrix.
    """
    f = np.zeros(len(v))
    dry = np.flatnonzero(limit)
    B = response[np.ix_(dry, dry)]
    # Rolling couples joints, so that friction of one could stand for another's: keep B invertible.
    B = B + 1e-12 * np.diag(np.diag(B))
    f[dry] = _complementary(B, (v / h + a)[dry], limit[dry], np.sign(v[dry]))
    return f


def _complementary(B: Array, w: Array, limit: Array, slides: Array) -> Array:
    """f of w - B f = slip, f = limit sign(slip), from a guess of sign(slip) called `slides`.

    Principal pivoting: solve for the joints that stick, correct the wrong guesses, again. Correcting
    only the first ends always, as B is positive definite.
    """
    for attempt in range(MOST_PIVOTS):
        stuck = slides == 0
        f = limit * slides
        f[stuck] = np.linalg.solve(B[np.ix_(stuck, stuck)], (w - B @ f)[stuck])
        breaks_away = stuck & (np.abs(f) > limit)
        stops = ~stuck & (slides * (w - B @ f) < 0)
        wrong = np.flatnonzero(breaks_away | stops)
        if not len(wrong):
            break
        if attempt >= BLOCK_PIVOTS:
            wrong = wrong[:1]
        slides = slides.copy()
        slides[wrong] = np.where(breaks_away[wrong], np.sign(f[wrong]), 0)
    return np.clip(f, -limit, limit)
