"""Rolling constraints and the two problems of constrained dynamics, [otbot] sections 4 to 8."""

from collections.abc import Sequence
from dataclasses import dataclass

from .engine import Matrix
from .equations import Equations
from .frames import FrameTree


@dataclass(frozen=True)
class Constraint:
    """J(q) dq = 0 and its rate dJ/dt, both m x n."""

    J: Matrix
    J_rate: Matrix


def rolling_rows(tree: FrameTree) -> Matrix:
    """Velocity of every wheel's contact point along the wheel, then across, then up, as rows over dq.

    The contact is the lowest point of a disc that may lean. Rows may be linearly dependent.
    """
    engine, dq = tree.engine, tree.dq_vector()
    world, velocities = tree.world_transforms(), tree.velocities()
    along, across, up = [], [], []
    for wheel in tree.wheels:
        A = world[wheel.key][:3, :3]
        w, V = (A @ x for x in velocities[wheel.key])
        axle = A @ engine.column(wheel.axle)
        level = engine.sqrt(engine.simplify(engine.column([axle[0] ** 2 + axle[1] ** 2]))[0])
        x, y = axle[0] / level, axle[1] / level
        contact = engine.column([axle[2] * x, axle[2] * y, -level]) * wheel.radius
        slip = V + engine.cross(w, contact)
        along.append(y * slip[0] - x * slip[1])
        across.append(x * slip[0] + y * slip[1])
        up.append(slip[2])
    return engine.simplify(engine.jacobian(engine.column([*along, *across, *up]), dq))


def constraint(tree: FrameTree, rows: Sequence[int]) -> Constraint:
    """The chosen rows of rolling_rows(), with their rate. Section 5."""
    everything = rolling_rows(tree)
    J = tree.engine.matrix([[everything[i, j] for j in range(len(tree.q))] for i in rows])
    rate = tree.engine.rate(J, tree.q_vector(), tree.dq_vector())
    return Constraint(J, tree.engine.simplify(rate))


def actuation_matrix(tree: FrameTree, actuated: Sequence[str]) -> Matrix:
    """E of Q_a = E u. Section 4."""
    return tree.engine.matrix([[int(name == motor) for motor in actuated] for name in tree.joint_names])


def forward_system(
    equations: Equations, constraint: Constraint, E: Matrix, u: Matrix
) -> tuple[Matrix, Matrix]:
    """K, k of K (a, lambda) = k with K = [A J'; J 0], k = (E u - C v - Q, -J_rate v). Sections 6 and 7."""
    dq = equations.tree.dq_vector()
    A, J = equations.A, constraint.J
    m, n = J.shape
    rows = [[*(A[i, j] for j in range(n)), *(J[k, i] for k in range(m))] for i in range(n)]
    rows += [[*(J[k, j] for j in range(n)), *([0] * m)] for k in range(m)]
    force = E @ u - equations.C @ dq - equations.Q
    bias = constraint.J_rate @ dq
    right = [*(force[i] for i in range(n)), *(-bias[k] for k in range(m))]
    return equations.tree.engine.matrix(rows), equations.tree.engine.column(right)


def inverse_system(
    equations: Equations, constraint: Constraint, E: Matrix, a: Matrix
) -> tuple[Matrix, Matrix]:
    """K, k of K (u, lambda) = k with K = [E -J'], k = A a + C v + Q. Section 8."""
    J, dq = constraint.J, equations.tree.dq_vector()
    m, n = J.shape
    rows = [[*(E[i, j] for j in range(E.shape[1])), *(-J[k, i] for k in range(m))] for i in range(n)]
    return equations.tree.engine.matrix(rows), equations.A @ a + equations.C @ dq + equations.Q
