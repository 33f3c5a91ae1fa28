"""Straight-line code from expression graphs: a Python module that needs only numpy, or C."""

import casadi as ca

from ..errors import KrangError
from .numeric import VECTORS, Numeric

# Operations in the dynamics of rigid bodies; both languages write them in the same way.
BINARY = {ca.OP_ADD: '+', ca.OP_SUB: '-', ca.OP_MUL: '*', ca.OP_DIV: '/'}
CALLS = {ca.OP_SIN: 'sin', ca.OP_COS: 'cos', ca.OP_SQRT: 'sqrt', ca.OP_TANH: 'tanh', ca.OP_SIGN: 'sign'}


def python_module(numeric: Numeric, robot: str) -> str:
    """Source of a Python module with one function per matrix, of arrays in joint order."""
    parts = [
        f'"""Equations of motion of {robot}, generated: A ddq + C dq + Q + friction = torque.\n\n'
        f'Joints: {", ".join(numeric.joint_names)}. Units: rad or m, s, N m.\n"""\n\n'
        'from math import cos, sin, sqrt, tanh\n\nimport numpy as np\n\n\n'
        'def sign(x):\n    return (x > 0) - (x < 0)\n'
    ]
    for name, function in numeric.functions.items():
        arguments = function.name_in()
        lines = [f'def {name}({", ".join(arguments)}):']
        lines += [f'    {a} = np.asarray({a}, dtype=float).tolist()' for a in arguments]
        steps, outputs = _trace(function)
        lines += [f'    v{i} = {step}' for i, step in enumerate(steps)]
        values = ', '.join('0.0' if value is None else f'v{value}' for value in outputs)
        rows, columns = function.size_out(0)
        # CasADi stores matrices by columns.
        shaped = '' if name in VECTORS else f'.reshape({columns}, {rows}).T'
        lines.append(f'    return np.array([{values}], dtype=float){shaped}')
        parts.append('\n'.join(lines) + '\n')
    return '\n\n'.join(parts)


def c_source(numeric: Numeric, robot: str) -> str:
    """Source of C99 functions name(inputs..., result); matrices are stored by rows."""
    parts = [
        f'/* Equations of motion of {robot}, generated: A ddq + C dq + Q + friction = torque.\n'
        f'   Joints: {", ".join(numeric.joint_names)}. Units: rad or m, s, N m. Matrices are row-major. */\n'
        '#include <math.h>\n\n'
        'static inline double sign(double x) { return (x > 0) - (x < 0); }\n'
    ]
    for name, function in numeric.functions.items():
        rows, columns = function.size_out(0)
        inputs = ', '.join(f'const double *{a}' for a in function.name_in())
        lines = [f'void {name}({inputs}, double *result) /* {rows} x {columns} */', '{']
        steps, outputs = _trace(function)
        lines += [f'  const double v{i} = {step};' for i, step in enumerate(steps)]
        for place, value in enumerate(outputs):
            column, row = divmod(place, rows)
            lines.append(f'  result[{row * columns + column}] = {"0" if value is None else f"v{value}"};')
        parts.append('\n'.join([*lines, '}']) + '\n')
    return '\n'.join(parts)


def _trace(function: ca.Function) -> tuple[list[str], list[int | None]]:
    """Operations v0, v1, ... of a function, and which of them is the value of each entry of its result."""
    place: dict[int, int] = {}  # CasADi reuses its work vector; here each value has its own index
    steps: list[str] = []
    outputs: list[int | None] = [None] * function.nnz_out(0)
    names = function.name_in()
    for k in range(function.n_instructions()):
        code, inputs = function.instruction_id(k), function.instruction_input(k)
        target = function.instruction_output(k)
        if code == ca.OP_OUTPUT:
            outputs[target[1]] = place[inputs[0]]
            continue
        text = _text(function, k, code, inputs, names, place)
        place[target[0]] = len(steps)
        steps.append(text)
    return steps, outputs


def _text(
    function: ca.Function, k: int, code: int, inputs: list[int], names: list[str], place: dict[int, int]
) -> str:
    if code == ca.OP_INPUT:
        return f'{names[inputs[0]]}[{inputs[1]}]'
    if code == ca.OP_CONST:
        return repr(float(function.instruction_constant(k)))
    values = [f'v{place[i]}' for i in inputs]
    if code in BINARY:
        return f'{values[0]} {BINARY[code]} {values[1]}'
    if code in CALLS:
        return f'{CALLS[code]}({values[0]})'
    simple = {
        ca.OP_NEG: '-{0}',
        ca.OP_SQ: '{0} * {0}',
        ca.OP_TWICE: '{0} + {0}',
        ca.OP_INV: '1.0 / {0}',
        ca.OP_ASSIGN: '{0}',
    }
    if code in simple:
        return simple[code].format(*values)
    raise KrangError(f'no code can be generated for CasADi operation {code}')
