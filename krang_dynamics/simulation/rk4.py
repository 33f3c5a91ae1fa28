"""The classical Runge-Kutta method of fourth order for q'' = a(q, v)."""

from collections.abc import Callable

from ..arrays import Array


def rk4_step(
    acceleration: Callable[[Array, Array], Array], q: Array, v: Array, h: float
) -> tuple[Array, Array]:
    """q and v after h [s]; the error of one step is of order h^5."""
    half = h / 2
    a1 = acceleration(q, v)
    v2 = v + half * a1
    a2 = acceleration(q + half * v, v2)
    v3 = v + half * a2
    a3 = acceleration(q + half * v2, v3)
    v4 = v + h * a3
    a4 = acceleration(q + h * v3, v4)
    # The four velocities v, v2, v3, v4 weighed 1, 2, 2, 1, with what cancels left out.
    return q + h * v + h * h / 6 * (a1 + a2 + a3), v + h / 6 * (a1 + 2 * (a2 + a3) + a4)
