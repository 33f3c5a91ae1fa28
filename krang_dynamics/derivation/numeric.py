"""The equations of a robot with numerical parameters: functions of q, dq and ddq, to evaluate or export."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import casadi as ca
import numpy as np

from ..arrays import Array
from ..errors import KrangError
from .constraints import actuation_matrix, constraint, forward_system, inverse_system, rolling_rows
from .engine import Matrix
from .equations import Equations, friction, inverse_dynamics, with_rotors

# Functions with a vector result; all others give matrices.
VECTORS = 'gravity friction inverse_dynamics constraint_bias forward_dynamics motor_torque'.split()


@dataclass(frozen=True)
class Drive:
    """Rotor inertia [kg m2], friction and actuation, in the order of q."""

    rotor: Sequence[float]
    viscous: Sequence[float]  # [N m s/rad]
    coulomb: Sequence[float]  # [N m]
    smooth: bool
    actuated: Sequence[str]


@dataclass
class Numeric:
    """The functions of one robot by name; a call returns a numpy array."""

    joint_names: Sequence[str]
    functions: dict[str, ca.Function] = field(default_factory=dict)

    def __call__(self, name: str, *arguments: Array) -> Array:
        result = np.array(self.functions[name](*arguments))
        return result[:, 0] if name in VECTORS else result

    def operations(self, name: str) -> int:
        return int(self.functions[name].n_instructions())


def evaluate(equations: Equations, drive: Drive) -> Numeric:
    """A with rotors, C, Q, friction, inverse dynamics, Jacobians, and the functions of rolling robots."""
    tree = equations.tree
    q, dq = tree.q_vector(), tree.dq_vector()
    ddq = tree.engine.column([tree.engine.symbol(f'dd{name}') for name in tree.joint_names])
    A = with_rotors(tree, equations.A, list(drive.rotor))
    resistance = friction(tree, list(drive.viscous), list(drive.coulomb), drive.smooth)
    numeric = Numeric(tree.joint_names)

    def add(name: str, inputs: list[Any], names: list[str], expression: Matrix) -> None:
        (with_numbers,) = ca.substitute([ca.densify(ca.SX(expression))], *_substitution(equations))
        numeric.functions[name] = ca.Function(name, inputs, [ca.cse(with_numbers)], names, ['result'])

    add('mass_matrix', [q], ['q'], A)
    add('coriolis_matrix', [q, dq], ['q', 'dq'], equations.C)
    add('gravity', [q], ['q'], equations.Q)
    add('friction', [dq], ['dq'], resistance)
    rotors = tree.engine.column([rotor * ddq[i] for i, rotor in enumerate(drive.rotor)])
    add('inverse_dynamics', [q, dq, ddq], ['q', 'dq', 'ddq'], inverse_dynamics(equations, ddq) + rotors)
    for name, J in equations.J.items():
        add(jacobian_of(name), [q], ['q'], J)
    if tree.wheels:
        rolling = constraint(tree, independent_rows(equations))
        add('constraint_jacobian', [q], ['q'], rolling.J)
        add('constraint_bias', [q, dq], ['q', 'dq'], rolling.J_rate @ dq)
        E = actuation_matrix(tree, drive.actuated)
        moved = replace(equations, A=A)
        u = tree.engine.column([tree.engine.symbol(f'u_{name}') for name in drive.actuated])
        K, k = forward_system(moved, rolling, E, u)
        add('forward_dynamics', [q, dq, u], ['q', 'dq', 'u'], ca.solve(K, k)[: len(tree.q)])
        K, k = inverse_system(moved, rolling, E, ddq)
        if K.shape[0] == K.shape[1]:
            torque = ca.solve(K, k)[: len(drive.actuated)]
            add('motor_torque', [q, dq, ddq], ['q', 'dq', 'ddq'], torque)
    return numeric


def jacobian_of(frame: str) -> str:
    """Name of the function for a frame's Jacobian, a valid identifier."""
    return 'jacobian_' + '_'.join(re.findall(r'[A-Za-z0-9]+', frame))


def structure(matrix: Matrix) -> list[list[bool]]:
    """Which entries of an expression are not identically zero."""
    return [[bool(entry) for entry in row] for row in np.array(ca.DM(matrix.sparsity(), 1))]


def independent_rows(equations: Equations) -> list[int]:
    """Rows of rolling_rows() that are linearly independent of earlier ones, found at random states."""
    tree = equations.tree
    (rows,) = ca.substitute([ca.SX(rolling_rows(tree))], *_substitution(equations))
    function = ca.Function('rows', [tree.q_vector()], [ca.densify(rows)])
    states = np.random.default_rng(3).uniform(-1, 1, (8, len(tree.q)))
    table = np.hstack([np.array(function(state)) for state in states])
    kept: list[int] = []
    for index in range(len(table)):
        if np.linalg.matrix_rank(table[[*kept, index]], tol=1e-9) > len(kept):
            kept.append(index)
    if not kept:
        raise KrangError(f'the wheels of {tree.name} give no constraint; check their links and axles')
    return kept


def _substitution(equations: Equations) -> tuple[list[Any], list[Any]]:
    tree = equations.tree
    if not tree.symbols:
        return [ca.SX.sym('unused')], [ca.SX(0)]
    return [ca.vertcat(*tree.symbols.values())], [ca.SX(ca.DM(list(tree.numbers.values())))]
