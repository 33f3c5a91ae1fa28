"""Compiled arithmetic over n joints (kernels/*.c), most of it of one control step; NaN never passes a check.

Arrays are contiguous float64 of n numbers each, unless stated otherwise; any other is a TypeError. One
that is read-only is not changed: ValueError.
"""

from .arrays import Array, Indices, Mask

def is_finite(x: Array) -> bool:
    """Whether all numbers of any array are finite."""

def are_vectors(n: int, /, *values: object) -> bool:
    """Whether each value is a contiguous float64 array of n finite numbers."""

def evaluated(address: int, n: int, /, *inputs: Array) -> Array | None:
    """The n numbers that a generated function `void f(const double *const *inputs, double *out)` writes.

    None if an input is not a vector as in are_vectors(). The address must be that of such a function.
    """

def joint_state(position: Array, velocity: Array, rows: Indices | None) -> Array | None:
    """(q, v), 2 n numbers, from these rows of a message, None: all of them; None if one is not finite."""

def consistent(
    state: Array, last: Array, repeated: Array, drift: Array, dt: Array | float, bounds: Array
) -> bool:
    """Whether (q, v) agrees with the last state, `dt` [s] ago: no joint has jumped, drifted or frozen.

    `bounds` (5,): hold [s], speed, way, time [s], noise. `repeated` [s] is for how long each joint has
    repeated q and v bit for bit, in place; a gap above `hold` is no repetition. A joint has frozen if it
    repeats a v above `speed` for longer than `hold`, with v `repeated` above `way`. `drift` sums the errors
    of q against v over `time`, in place, but only where the result is True: if no joint has frozen, the norm
    of the errors is within `noise`, and that of the sums within twice that.
    """

def is_within(x: Array, low: Array, high: Array) -> bool:
    """Whether low <= x <= high."""

def is_near(x: Array, y: Array, tolerance: Array) -> bool:
    """Whether |x - y| <= tolerance."""

def quintic(control: Array, s: float, out: Array) -> None:
    """Write the values at s in 0 .. 1 of curves with the control points (6, n) to n numbers of any shape."""

def feedback(
    q_d: Array,
    v_d: Array,
    a_d: Array,
    q: Array,
    v: Array,
    kp: Array,
    kd: Array,
    continuous: Mask,
    followed: Array,
) -> Array:
    """followed (a_d + kd (v_d - v) + kp (q_d - q)) [rad/s2]; errors of continuous joints by the short way."""

def complete(a: Array, unknown: Indices, rows: Indices, E: Array, bias: Array, friction: Array) -> None:
    """Solve these rows of the equations E a + bias + friction = 0 for the unknown numbers of a, in place.

    E (m, n) in any memory order, bias and friction (m,). ZeroDivisionError if the equations are singular.
    """

def release(force: Array, J: Array, rows: Indices) -> None:
    """Subtract J^T x from a force, in place, with the x that leaves 0 in these rows; J (rows, n)."""

def unconstrained(force: Array, J: Array) -> Array:
    """The part of a force orthogonal to the rows of J (m, n): force - J^T (J J^T)^-1 J force."""

def forces(A: Array, a: Array, bias: Array, effort: Array, gravity: Array, followed: Array) -> Array:
    """followed (A a + bias + effort - gravity) [N m]."""

def scaled(factor: Array | float, x: Array) -> Array:
    """factor x."""

def limited(torque: Array, last: Array, rate: Array, dt: float, bound: Array) -> tuple[Array, bool]:
    """The torque [N m] nearest to `torque` within `bound` and at most rate dt from `last`; if that differs.

    The bound comes before the rate. Numbers that are not finite become those of `last`. Read-only.
    """

def observed(
    external: Array,
    last: Array,
    A: Array,
    v: Array,
    bias: Array,
    friction: Array,
    applied: Array,
    dt: float,
    gain: float,
) -> Array:
    """r + gain (mean(A) dv + dt (mean(h) - applied - r)), the next external torque r [N m]; r if dt < 0.

    h = C v + Q + Gamma_f is bias + friction. `last` has n + 2 rows: A of the last step, then its v, then its
    h; they are replaced by the present ones.
    """

def solved(A: Array, b: Array) -> Array:
    """x of A x = b, b (n,) or (n, m), in any memory order; ZeroDivisionError if A is singular."""

def solved_part(A: Array, b: Array, part: Mask) -> Array:
    """x of A x = b over the joints of `part` alone, 0 for the others; A (n, n) in any memory order.

    ZeroDivisionError if that part of A is singular.
    """

def constrained(A: Array, J: Array, force: Array, acceleration: Array) -> Array:
    """a of A a + J^T lambda = force, J a = acceleration; A (n, n) and J (m, n) in any memory order.

    ZeroDivisionError if the rows of J depend on each other.
    """

def end_stop_torque(
    q: Array, v: Array, lower: Array, upper: Array, stiffness: Array, damping: Array
) -> Array:
    """Torque [N m] of springs and dampers beyond lower and upper [rad], which push and never pull."""

def moved(x: Array, rate: Array, h: float) -> Array:
    """x + h rate."""

def nearest_within(torque: Array, limit: Array, A: Array, driven: Array, rounding: float) -> Array:
    """The torque [N m] within +-limit whose accelerations a are nearest to the intended ones a'.

    The distance is (a - a')^T A (a - a'), A (n, n) in any memory order. Joints at a limit are exchanged
    until each would need more torque than its limit, and no other one with `driven` 1 does. `rounding` is
    relative to the effort. ZeroDivisionError if A is singular.
    """

def decay_in_time(
    momentum: Array, driven: Array, effort: Array, rate: Array, decay: float, delay: float
) -> float:
    """Largest decay rate d [1/s], up to `decay`, with d delay + d^2 momentum / rate <= 1 for every joint.

    The damping torque d momentum needs the time d momentum / rate to change by as much, rate [N m/s]. The
    momentum [N m s] counts up to effort / decay: more is beyond the effort limits. Only joints with `driven`
    1 count.
    """

def follow(
    motion: Array,
    q: Array,
    v: Array,
    times: Array | float,
    now: float,
    continuous: Mask,
    highest: float,
    filter: float,
    slack: float,
    jump: float,
    gap: float,
) -> None:
    """Filter measured velocities v, up to `highest` [rad/s], and add what the positions q show besides.

    In place. The rows of `motion` (4, n): time of the last sample [s], NaN: none yet; when it was first used
    [s]; filtered velocity; and the integral of the velocities [rad], near the positions. A sample of the same
    time changes nothing. `filter` is a time constant [s]. Errors of a position up to `slack` are noise. After
    an error above `jump` [rad], or more than `gap` [s], positions are followed anew.
    """

def between(x: Array, a: Array, b: Array) -> Array:
    """The numbers between a and b, whichever is the larger one, that are nearest to x."""

def in_proportion(torque: Array, last: Array, limit: Array, rate: Array, dt: float) -> Array:
    """`last` changed towards the torque within +-limit, all joints in proportion, none faster than rate.

    The torque itself if it is in reach; joints of rate 0 do not count.
    """

def fastest_point(
    placements: tuple[Array, ...], parents: Indices, axes: Array, links: Indices, points: Array, v: Array
) -> float:
    """Speed [m/s] of the fastest of m points, (m, 3) in the frames of their links, at joint velocities v.

    `placements` has the rotation and translation from the frame of each joint to that of the link before it,
    and `axes` (n, 6) the joint's unit velocity in its own frame, linear above angular. Link i + 1 is behind
    joint i; `parents` and `links` have such numbers, of which 0 is the root.
    """

def contacts(
    wheels: tuple[tuple[Array, Array, Array, Array], ...], J: Array, v: Array
) -> tuple[Array, Array]:
    """Rows (3 w, n) of the velocities of w contact points, and their accelerations (3 w,) for a = 0.

    First all of them forwards, then sideways, then up. A contact is the lowest point of a disc whose axle
    may lean. A wheel is a rotation, a translation, `wheel` and `moving`: `wheel` (7,) has its axle, a unit
    vector, its centre [m] and radius [m], in the frame of a joint with this pose in the world; `moving` is 1
    for joints that move the wheel. J (6, n) is about the world's origin; joints come after those that carry
    them. ValueError if an axle is vertical.
    """

def friction(v: Array, table: Array, is_smooth: bool) -> Array:
    """Gamma_f [N m] for v [rad/s], (n,) or (m, n), in any memory order; the result has the same order.

    The rows of the table (6, n): viscous, Coulomb, width, Stribeck, its speed, offset. `is_smooth`: tanh in
    place of the sign.
    """

def add(total: Array, x: object) -> bool:
    """Add x to `total` in place; False, and nothing added, if x is not an array of the same kind."""

def unfolded(leaders: Indices, multipliers: Array, x: Array, offset: Array) -> Array:
    """multipliers x[leaders] + offset: of joints that follow other joints, their leaders."""

def folded(
    leaders: Indices, multipliers: Array, M: Array, nle: Array, g: Array, A: Array, bias: Array
) -> Array:
    """Write G^T M G to A and G^T nle to bias, and return G^T g, with G x = unfolded(x) without offset.

    M (m, m) and A (n, n) are symmetric, in any memory order; nle and g are over the m followers.
    """

def command(
    torque: Array, v: Array, rows: Indices, per_torque: Array, per_speed: Array, limit: Array
) -> Array:
    """Drivers' commands per_torque torque + per_speed v of these rows, within +-limit; 0 where not finite."""

def add_wrench(
    torque: Array, rotation: Array, translation: Array, place: Array, f: Array, J: Array, moving: Array
) -> None:
    """Add J^T f [N m] of a wrench f (6,) in the axes and at the origin of a frame to `torque`, in place.

    `place` (12,) has the rotation and translation of the frame in a joint with this pose in the world. J
    (6, n) is about the world's origin; `moving` is 1 for joints that move the link to which f applies.
    """

def rigid_torques(
    q: Array, v: Array, a: Array, parents: Indices, slides: Mask, bodies: Array, gravity: Array
) -> Array:
    """(2, n, K): Q and A a + C v + Q [N m] of K states, each given as (n, K), of rigid bodies without rotors.

    Joint i moves along z, or about it, in the frame of link i + 1; `parents` has links, of which 0 is the
    root. A row of `bodies` (n, 22): rotation from the parent's frame at q = 0, origin in that frame, mass,
    mass moment, and upper triangle of the inertia about the origin.
    """
