"""`krang derive`: the derivation of one robot, printed, exported, and compared with Pinocchio."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..arrays import Array
from ..derivation import readable
from ..derivation.code_generation import c_source, python_module
from ..derivation.engine import CasadiEngine, Engine, SympyEngine
from ..derivation.equations import Equations, derive
from ..derivation.frames import FrameTree, Wheel
from ..derivation.from_urdf import read_urdf
from ..derivation.numeric import Drive, Numeric, evaluate, jacobian_of, structure
from ..derivation.robots import SYMBOLIC, pendubot
from ..errors import KrangError
from ..robot.model import Robot
from ..text import table

TOLERANCE = 1e-9  # relative, what --check demands
READABLE = 700  # operations of A and C beyond which nobody reads them
STATES = 100

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Difference:
    """Largest difference between the derivation and Pinocchio, relative to the largest entry."""

    matrix: str
    value: float


def frames_of(robot: Robot, engine: Engine, shipped: bool) -> FrameTree:
    """The source's own symbols for a shipped robot, the numbers of its URDF for any other."""
    if shipped and robot.name in SYMBOLIC:
        return SYMBOLIC[robot.name](engine)
    config = robot.config
    tree = read_urdf(robot.urdf.text, engine, robot.joint_names, config.gravity, config.end_effectors)
    tree.wheels = [Wheel(wheel.link, wheel.radius, wheel.axle) for wheel in config.rolling]
    return tree


def drive_of(robot: Robot) -> Drive:
    friction = robot.friction
    return Drive(
        np.diag(robot.rotor_inertia()).tolist(),
        friction.viscous.tolist(),
        friction.coulomb.tolist(),
        friction.sign == 'smooth',
        robot.actuated_joint_names,
    )


def check(robot: Robot, numeric: Numeric, progress: Progress) -> list[Difference]:
    """The derivation against Pinocchio at random states, matrix by matrix."""
    random = np.random.default_rng(11)
    worst: dict[str, float] = {}
    for count in range(STATES):
        progress(f'checking state {count + 1} of {STATES}')
        q, v, a = random.uniform(-2, 2, (3, robot.nv))
        for name, (derived, expected) in _pairs(robot, numeric, q, v, a).items():
            scale = max(np.abs(expected).max(initial=0.0), 1e-3)
            difference = float(np.abs(derived - expected).max(initial=0.0) / scale)
            worst[name] = max(worst.get(name, 0.0), difference)
    return [Difference(name, value) for name, value in worst.items()]


def _pairs(robot: Robot, numeric: Numeric, q: Array, v: Array, a: Array) -> dict[str, tuple[Array, Array]]:
    """What the derivation and Pinocchio say of one state, by name."""
    pairs = {
        'A': (numeric('mass_matrix', q), robot.mass_matrix(q)),
        'C': (numeric('coriolis_matrix', q, v), robot.coriolis_matrix(q, v)),
        'Q': (numeric('gravity', q), robot.gravity_torque(q)),
        'friction': (numeric('friction', v), robot.friction_torque(v)),
        'inverse dynamics': (numeric('inverse_dynamics', q, v, a), robot.inverse_dynamics(q, v, a)),
    }
    for frame in robot.config.end_effectors:
        pairs[f'J {frame}'] = (numeric(jacobian_of(frame), q), robot.jacobian(q, frame))
    if robot.config.rolling:
        pairs |= _constrained_pairs(robot, numeric, q, v)
    return pairs


def _constrained_pairs(robot: Robot, numeric: Numeric, q: Array, v: Array) -> dict[str, tuple[Array, Array]]:
    """Constraints may be written in any basis: compare the projector on their rows and the motion."""
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
    return numeric.operations('mass_matrix') + numeric.operations('coriolis_matrix') <= READABLE


def summary(equations: Equations, numeric: Numeric) -> list[str]:
    """Structure of a robot too large to print: sizes, and which entries of A exist."""
    tree = equations.tree
    sizes = [[name, str(numeric.operations(name))] for name in numeric.functions]
    pattern = structure(equations.A)
    lines = [
        f'{len(tree.frames)} frames, {len(tree.q)} joints, {len(tree.symbols)} symbolic parameters',
        'too large to read; --python or --c writes it as code, --latex its frames',
        '',
        *table(['function', 'operations'], sizes),
        '',
        'A, entries that are not always zero:',
    ]
    width = max(map(len, tree.joint_names))
    for name, row in zip(tree.joint_names, pattern, strict=True):
        lines.append(f'{name:>{width}} ' + ' '.join('x' if entry else '.' for entry in row))
    return lines


def print_equations(robot: Robot, shipped: bool) -> list[str]:
    """Readable equations of a small robot; the pendubot's also as its source prints them."""
    equations = derive(frames_of(robot, SympyEngine(), shipped))
    lines = readable.as_text(equations)
    if shipped and equations.tree.name == 'pendubot':
        lines = [*pendubot.source_equations(equations), '', *lines]
    return lines


def latex(robot: Robot, shipped: bool, small: bool) -> str:
    """All equations of a small robot; the frames alone of a large one."""
    tree = frames_of(robot, SympyEngine(), shipped)
    return readable.document(tree, derive(tree) if small else None)


def write(path: str, text: str, force: bool) -> None:
    """Write a generated file, never over an existing one unless told to."""
    if Path(path).exists() and not force:
        raise KrangError(f'{path} exists already; choose another name, or add --force')
    try:
        Path(path).write_text(text, encoding='utf-8')
    except OSError as error:
        raise KrangError(f'{path}: cannot be written: {error.strerror}') from error


def stages() -> Progress:
    """Progress on standard error: a line per stage with the seconds since the start."""
    start = time.perf_counter()
    interactive = sys.stderr.isatty()

    def show(stage: str) -> None:
        if interactive or not stage.startswith('checking state') or stage.startswith('checking state 1 '):
            end = '\r' if interactive and stage.startswith('checking') else '\n'
            print(f'[{time.perf_counter() - start:5.2f} s] {stage}', file=sys.stderr, end=end, flush=True)

    return show


@dataclass(frozen=True)
class Outputs:
    """Files to write, and whether to compare with Pinocchio; with none of them, print."""

    latex: str | None = None
    python: str | None = None
    c: str | None = None
    check: bool = False
    force: bool = False


def run(robot: Robot, shipped: bool, outputs: Outputs) -> int:
    """The whole command; returns the exit status."""
    progress = stages()
    progress(f'frames of {robot.name}')
    equations = derive(frames_of(robot, CasadiEngine(), shipped), progress)
    progress('numbers')
    numeric = evaluate(equations, drive_of(robot))
    small = is_readable(numeric)
    if outputs.python:
        write(outputs.python, python_module(numeric, robot.name), outputs.force)
    if outputs.c:
        write(outputs.c, c_source(numeric, robot.name), outputs.force)
    if outputs.latex:
        progress('LaTeX')
        write(outputs.latex, latex(robot, shipped, small), outputs.force)
    if outputs.check:
        return report(check(robot, numeric, progress))
    if not (outputs.latex or outputs.python or outputs.c):
        progress('readable form')
        print('\n'.join(print_equations(robot, shipped) if small else summary(equations, numeric)))
    return 0


def report(differences: list[Difference]) -> int:
    rows = [[d.matrix, f'{d.value:.1e}', 'ok' if d.value <= TOLERANCE else 'DIFFERS'] for d in differences]
    print('\n'.join(table(['matrix', f'largest difference of {STATES} states', f'<= {TOLERANCE:g}'], rows)))
    return 0 if all(d.value <= TOLERANCE for d in differences) else 1
