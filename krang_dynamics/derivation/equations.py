"""From the energies to A(q) a + C(q, v) v + Q(q) + Gamma_f(v), [krang] sections 1 to 4."""

from collections.abc import Callable
from dataclasses import dataclass

from .engine import Matrix, Scalar
from .frames import FrameTree


@dataclass(frozen=True)
class Equations:
    """The matrices of one robot, as expressions in the symbols of its frame tree."""

    tree: FrameTree
    A: Matrix  # without rotors
    C: Matrix
    Q: Matrix
    E: Scalar  # kinetic energy, without rotors
    U: Scalar  # potential energy
    J: dict[str, Matrix]  # world Jacobian by end effector


def derive(tree: FrameTree, progress: Callable[[str], None] = lambda _: None) -> Equations:
    """All matrices of a robot from its frames; `progress` is called with the name of each stage."""
    q = tree.q_vector()
    progress('kinetic energy')
    E = kinetic_energy(tree)
    progress('mass matrix A')
    A = tree.engine.simplify(mass_matrix(tree, E))
    progress('Coriolis matrix C')
    C = tree.engine.simplify(coriolis_matrix(tree, A))
    progress('potential energy and gravity Q')
    U = potential_energy(tree)
    Q = tree.engine.simplify(tree.engine.jacobian(tree.engine.column([U]), q).T)
    progress('Jacobians')
    J = {name: tree.engine.simplify(jacobian(tree, key)) for name, key in tree.end_effectors.items()}
    return Equations(tree, A, C, Q, E, U, J)


def kinetic_energy(tree: FrameTree) -> Scalar:
    """E = sum of 1/2 (w' J w + M V' V + 2 MS' (V x w)), eq. 9 and 11 with J_j about the frame's origin."""
    total = 0
    for key, (w, V) in tree.velocities().items():
        if key not in tree.frames or not any(_is_present(p) for p in tree.frames[key].parameters):
            continue
        rotation = (w.T @ tree.inertia(key) @ w)[0, 0]
        translation = tree.mass(key) * (V.T @ V)[0, 0]
        coupling = 2 * (tree.first_moment(key).T @ tree.engine.cross(V, w))[0, 0]
        total = total + (rotation + translation + coupling) / 2
    return total


def potential_energy(tree: FrameTree) -> Scalar:
    """U = sum of -[0g' 0] 0T_j [MS_j; M_j], eq. 12 to 15."""
    total = 0
    g = tree.engine.column([*tree.gravity, 0])
    for key, T in tree.world_transforms().items():
        mass, *first_moment = tree.frames[key].parameters[:4]
        total = total - (g.T @ T @ tree.engine.column([*first_moment, mass]))[0, 0]
    return total


def mass_matrix(tree: FrameTree, E: Scalar) -> Matrix:
    """A_ii: coefficient of dq_i^2 / 2 in E, A_ij: of dq_i dq_j; that is d2E / dq_i dq_j. Section 1.2."""
    dq = tree.dq_vector()
    momentum = tree.engine.jacobian(tree.engine.column([E]), dq).T
    return tree.engine.jacobian(momentum, dq)


def coriolis_matrix(tree: FrameTree, A: Matrix) -> Matrix:
    """C of the Christoffel symbols of A, eq. 4.

    The three sums over k are dA/dt, d(A dq)/dq and its transpose.
    """
    q, dq = tree.q_vector(), tree.dq_vector()
    slope = tree.engine.jacobian(A @ dq, q)
    return (tree.engine.rate(A, q, dq) + slope - slope.T) / 2


def inverse_dynamics(equations: Equations, ddq: Matrix) -> Matrix:
    """Gamma = d/dt (dE/d dq) - dE/dq + dU/dq, eq. 1 with eq. 5, without rotors.

    For Krang this takes an eighth of the operations of A ddq + C dq + Q.
    """
    tree, engine, n = equations.tree, equations.tree.engine, len(equations.tree.q)
    state = engine.column([*tree.q, *tree.dq])
    rate = engine.column([*tree.dq, *(ddq[i] for i in range(n))])
    slope = engine.jacobian(engine.column([equations.E]), state).T
    # One derivative along (dq, ddq) takes fewer operations than one along each.
    momentum_rate = engine.directional(slope[n:, :], state, rate)
    return momentum_rate - slope[:n, :] + equations.Q


def jacobian(tree: FrameTree, key: str) -> Matrix:
    """6 x n, linear above angular, at the origin of `key` in world axes: columns (e x L; e). Section 3."""
    engine, world = tree.engine, tree.world_transforms()
    columns = [[0] * 6 for _ in tree.q]
    tip = world[key][:3, 3]
    for name in tree.chain(key)[1:]:
        frame = tree.frames[name]
        if frame.row is None:
            continue
        # A mimic joint moves k times as fast as its leader, whose row it has.
        k = (engine.jacobian(engine.column([frame.dq]), engine.column([tree.dq[frame.row]])))[0, 0]
        e = world[name][:3, :3] @ frame.e * k
        if frame.motion == 'revolute':
            arm = engine.cross(e, tip - world[name][:3, 3])
            column = [*(arm[i] for i in range(3)), *(e[i] for i in range(3))]
        else:
            column = [*(e[i] for i in range(3)), 0, 0, 0]
        columns[frame.row] = [a + b for a, b in zip(columns[frame.row], column, strict=True)]
    return engine.matrix(columns).T


def friction(tree: FrameTree, viscous: list[Scalar], coulomb: list[Scalar], smooth: bool) -> Matrix:
    """Gamma_f = diag(dq) F_v + diag(sign dq) F_c, eq. 17, to be added to A a + C v + Q."""
    sign = tree.engine.tanh if smooth else tree.engine.sign
    terms = zip(tree.dq, viscous, coulomb, strict=True)
    return tree.engine.column([v * dq + c * sign(dq) for dq, v, c in terms])


def with_rotors(tree: FrameTree, A: Matrix, rotor: list[Scalar]) -> Matrix:
    """A with I_a = N^2 J_m added to its diagonal, eq. 18."""
    n = len(rotor)
    return A + tree.engine.matrix([[rotor[i] if i == j else 0 for j in range(n)] for i in range(n)])


def _is_present(parameter: Scalar) -> bool:
    return not (isinstance(parameter, (int, float)) and parameter == 0)
