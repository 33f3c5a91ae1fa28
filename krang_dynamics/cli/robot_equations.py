"""The derived equations of a robot: as text, as LaTeX, and compared with Pinocchio."""

from dataclasses import dataclass

import numpy as np

from ..arrays import Array
from ..bags.parallel import Progress
from ..derivation import readable
from ..derivation.engine import Engine, SympyEngine
from ..derivation.equations import Equations, derive
from ..derivation.frames import FrameTree
from ..derivation.numeric import Numeric, jacobian_of, structure
from ..derivation.robots import SYMBOLIC, pendubot
from ..robot.compiled import numeric_frames
from ..robot.model import Robot
from ..text import table

TOLERANCE = 1e-9  # relative difference that check() accepts
READABLE = 700  # largest number of operations in A and C that is printed
STATES = 100  # random states of a check


@dataclass(frozen=True)
class Difference:
    """Largest difference between the derivation and Pinocchio, relative to the largest entry."""

    matrix: str
    value: float


def frames_of(robot: Robot, engine: Engine, symbolic: bool) -> FrameTree:
    """The symbols of the source of a robot in SYMBOLIC, or the numbers of its URDF."""
    if symbolic:
        return SYMBOLIC[robot.name](engine)
    return numeric_frames(robot, engine)


def check(robot: Robot, numeric: Numeric) -> list[Difference]:
    """The derivation against Pinocchio at random states, matrix by matrix."""
    worst: dict[str, float] = {}
    progress = Progress('checking', STATES, ' states')
    for q, v, a in np.random.default_rng(11).uniform(-2, 2, (STATES, 3, robot.nv)):
        for name, (derived, expected) in _pairs(robot, numeric, q, v, a).items():
            scale = max(np.abs(expected).max(initial=0.0), 1e-3)
            difference = float(np.abs(derived - expected).max(initial=0.0) / scale)
            worst[name] = max(worst.get(name, 0.0), difference)
        progress.step()
    progress.end()
    return [Difference(name, value) for name, value in worst.items()]


def _pairs(robot: Robot, numeric: Numeric, q: Array, v: Array, a: Array) -> dict[str, tuple[Array, Array]]:
    """(derived, Pinocchio) by name, at one state."""
    pairs = {
        'A': (numeric('mass_matrix', q), robot.mass_matrix(q)),
        'C': (numeric('coriolis_matrix', q, v), robot.coriolis_matrix(q, v)),
        'Q': (numeric('gravity', q), robot.gravity_torque(q)),
        'inverse dynamics': (numeric('inverse_dynamics', q, v, a), robot.inverse_dynamics(q, v, a)),
    }
    friction = robot.config.friction
    if not (
        friction.width or friction.stribeck or friction.load or friction.offset
    ):  # [krang] eq. 17 has none of them
        pairs['friction'] = (numeric('friction', v), robot.friction_torque(v))
    for frame in robot.config.end_effectors:
        pairs[f'J {frame}'] = (numeric(jacobian_of(frame), q), robot.jacobian(q, frame))
    if robot.config.rolling:
        pairs |= _constrained_pairs(robot, numeric, q, v)
    return pairs


def _constrained_pairs(robot: Robot, numeric: Numeric, q: Array, v: Array) -> dict[str, tuple[Array, Array]]:
    """The basis of the constraints is arbitrary: compare the projector on their rows, and the motion."""
    J, mine = robot.constraint_jacobian(q), numeric('constraint_jacobian', q)
    allowed = v - np.linalg.pinv(J) @ (J @ v)
    u = np.linspace(-1, 1, len(robot.actuated_joint_names))
    a = robot.forward_dynamics(q, allowed, u)
    pairs = {
        'constraint rows': (np.linalg.pinv(mine) @ mine, np.linalg.pinv(J) @ J),
        'constraint rate': (
            np.linalg.pinv(mine) @ numeric('constraint_bias', q, allowed),
            np.linalg.pinv(J) @ robot.constraint_bias(q, allowed),
        ),
        'forward dynamics': (numeric('forward_dynamics', q, allowed, u), a),
    }
    if 'motor_torque' in numeric.functions:
        torque = numeric('motor_torque', q, allowed, a)
        pairs['motor torque'] = (torque, robot.motor_torque(q, allowed, a))
    return pairs


def is_readable(numeric: Numeric) -> bool:
    """Whether the equations are small enough to print."""
    return numeric.operations('mass_matrix') + numeric.operations('coriolis_matrix') <= READABLE


def summary(equations: Equations, numeric: Numeric) -> list[str]:
    """Size of the equations, and the entries of A that are not zero, of a robot too large to print."""
    tree = equations.tree
    sizes = [[name, str(numeric.operations(name))] for name in numeric.functions]
    pattern = structure(equations.A)
    lines = [
        f'{len(tree.frames)} frames, {len(tree.q)} joints, {len(tree.symbols)} symbolic parameters',
        'too large to print; --python and --c write code, --latex the frames',
        '',
        *table(['function', 'operations'], sizes),
        '',
        'A, entries that are not identically zero:',
    ]
    width = max(map(len, tree.joint_names))
    for name, row in zip(tree.joint_names, pattern, strict=True):
        lines.append(f'{name:>{width}} ' + ' '.join('x' if entry else '.' for entry in row))
    return lines


def print_equations(robot: Robot, symbolic: bool) -> list[str]:
    """Equations of a small robot; those of the pendubot also as its source prints them."""
    equations = derive(frames_of(robot, SympyEngine(), symbolic))
    lines = readable.as_text(equations)
    if symbolic and equations.tree.name == 'pendubot':
        lines = [*pendubot.source_equations(equations), '', *lines]
    return lines


def latex(robot: Robot, symbolic: bool, small: bool) -> str:
    """All equations of a small robot, only the frames of a large one."""
    tree = frames_of(robot, SympyEngine(), symbolic)
    return readable.document(tree, derive(tree) if small else None)
