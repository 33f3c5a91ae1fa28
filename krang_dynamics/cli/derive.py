"""`krang derive`: the equations of motion by Lagrange's method, printed, exported or checked."""

import argparse
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..robot.library import load_robot
from ..text import table
from .arguments import FORCE, ROBOT
from .libraries import require_libraries

if TYPE_CHECKING:
    from .robot_equations import Difference

PURPOSE = "derive A, C and Q by Lagrange's method; print, export or check them"
EXAMPLES = ('krang derive planar_2r', 'krang derive krang --check')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add('robot', help=ROBOT)
    add('--latex', metavar='FILE', help='write the equations as LaTeX')
    add('--python', metavar='FILE', help='write a Python module that needs only numpy')
    add('--c', metavar='FILE', help='write C99')
    add('--check', action='store_true', help='compare with Pinocchio; exit status 1 if they differ')
    add('--force', action='store_true', help=FORCE)


def run(options: argparse.Namespace) -> int:
    require_libraries('casadi', 'sympy')
    from ..bags.io.files import refuse_existing, write
    from ..derivation.code_generation import c_source, python_module
    from ..derivation.engine import CasadiEngine
    from ..derivation.equations import derive
    from ..derivation.numeric import evaluate
    from ..derivation.robots import SYMBOLIC
    from ..robot.compiled import drive_of
    from . import robot_equations as equations_of

    files = (options.python, options.c, options.latex)
    refuse_existing(files, options.force)
    robot = load_robot(options.robot)
    symbolic = options.robot in SYMBOLIC
    progress = _progress()
    progress(f'frames of {robot.name}')
    equations = derive(equations_of.frames_of(robot, CasadiEngine(), symbolic), progress)
    progress('numbers')
    numeric = evaluate(equations, drive_of(robot))
    small = equations_of.is_readable(numeric)
    if options.python:
        write(options.python, python_module(numeric, robot.name))
    if options.c:
        write(options.c, c_source(numeric, robot.name))
    if options.latex:
        progress('LaTeX')
        write(options.latex, equations_of.latex(robot, symbolic, small))
    if options.check:
        progress('check')
        return _report(equations_of.check(robot, numeric))
    if not any(files):
        progress('readable form')
        text = (
            equations_of.print_equations(robot, symbolic)
            if small
            else equations_of.summary(equations, numeric)
        )
        print('\n'.join(text))
    return 0


def _report(differences: list['Difference']) -> int:
    """Print the differences; status 1 if one is too large."""
    from .robot_equations import STATES, TOLERANCE

    rows = [[d.matrix, f'{d.value:.1e}', 'ok' if d.value <= TOLERANCE else 'DIFFERS'] for d in differences]
    print('\n'.join(table(['matrix', f'largest difference of {STATES} states', f'<= {TOLERANCE:g}'], rows)))
    return 0 if all(d.value <= TOLERANCE for d in differences) else 1


def _progress() -> Callable[[str], None]:
    """Prints a step with the seconds since the start on standard error."""
    start = time.perf_counter()
    return lambda step: print(f'[{time.perf_counter() - start:5.2f} s] {step}', file=sys.stderr, flush=True)
