"""Readable equations: one line per entry, in the symbols of the source, as text or LaTeX."""

from collections.abc import Callable

import sympy as sp

from .constraints import rolling_rows
from .engine import Matrix
from .equations import Equations
from .frames import FrameTree

Write = Callable[[sp.Expr], str]


def text_of(expression: sp.Expr) -> str:
    """Text such as 2 theta_2 sin(q_2) cos(q_2), with products as blanks and powers as ^."""
    terms = sp.Add.make_args(expression)
    words = [_term(term) for term in sorted(terms, key=_term_order)]
    line = words[0]
    for word in words[1:]:
        line += f' - {word[1:]}' if word.startswith('-') else f' + {word}'
    return line


def entries(name: str, matrix: Matrix, write: Write = text_of) -> list[str]:
    """One line per nonzero entry; only the upper half of a symmetric matrix."""
    rows, columns = matrix.shape
    symmetric = rows == columns > 1 and matrix == matrix.T
    lines = []
    for i in range(rows):
        for j in range(i if symmetric else 0, columns):
            if matrix[i, j] != 0:
                index = f'{i + 1}' if columns == 1 else f'{i + 1},{j + 1}'
                lines.append(f'{name}[{index}] = {write(sp.sympify(matrix[i, j]))}')
    return lines or [f'{name} = 0']


def as_text(equations: Equations) -> list[str]:
    """A, C, Q, the Jacobians and the rolling constraints."""
    tree = equations.tree
    coordinates = zip(tree.joint_names, tree.q, strict=True)
    lines = ['q = (' + ', '.join(f'{symbol}: {name}' for name, symbol in coordinates) + ')', '']
    lines += ['A, symmetric:', *entries('A', equations.A), '']
    lines += ['C, by Christoffel symbols:', *entries('C', _plain(equations.C)), '']
    lines += ['Q:', *entries('Q', _plain(equations.Q)), '', 'U:', f'U = {text_of(_shortest(equations.U))}']
    for name, J in equations.J.items():
        lines += ['', f'Jacobian of {name}:', *entries('J', J)]
    if tree.wheels:
        lines += ['', 'Rolling constraints J dq = 0 (contact velocity along, across and up):']
        lines += entries('J', rolling_rows(tree))
    return lines


def document(tree: FrameTree, equations: Equations | None) -> str:
    """A LaTeX document with the transforms of all frames and, if given, A, C, Q and the Jacobians."""
    head = r'\documentclass{article}\usepackage{amsmath}\begin{document}'
    title = rf'\section*{{Equations of motion of {_word(tree.name)}}}'
    body = [r'\subsection*{Frames}']
    for key, frame in tree.frames.items():
        pose = frame.rotation.row_join(frame.P)
        before, after = (rf'\mathrm{{{_word(name)}}}' for name in (frame.antecedent, key))
        body.append(rf'\[ {{}}^{{{before}}}T_{{{after}}} = {sp.latex(pose)} \]')
    if equations is not None:
        body += _latex_equations(equations)
    return '\n'.join([head, title, *body, r'\end{document}', ''])


def _latex_equations(equations: Equations) -> list[str]:
    matrices = {'A': equations.A, 'C': _plain(equations.C), 'Q': _plain(equations.Q)}
    matrices |= {rf'J^{{\mathrm{{{_word(name)}}}}}': J for name, J in equations.J.items()}
    if equations.tree.wheels:
        matrices[r'J^{\mathrm{wheels}}'] = rolling_rows(equations.tree)
    body = [r'\subsection*{$A \ddot q + C \dot q + Q = \Gamma$}']
    for name, matrix in matrices.items():
        for i in range(matrix.shape[0]):
            for j in range(matrix.shape[1]):
                if matrix[i, j] != 0:
                    body.append(rf'\[ {name}_{{{i + 1},{j + 1}}} = {sp.latex(matrix[i, j])} \]')
    return body


def motion_line(expression: sp.Expr, monomials: list[sp.Expr], right: str) -> str:
    """Sum of [coefficient] monomial = right, in the order of `monomials`; 1 is the constant term."""
    expanded, line = sp.expand(sp.expand_trig(expression)), ''
    for monomial in monomials:
        coefficient = _coefficient(expanded, monomial)
        if coefficient == 0:
            continue
        word, several = text_of(coefficient), isinstance(coefficient, sp.Add)
        negative = word.startswith('-') and not several
        word = f'[{word}]' if several else word.removeprefix('-')
        line += (' - ' if negative else ' + ') + (word if monomial == 1 else f'{word} {_term(monomial)}')
    return f'{line.removeprefix(" + ").strip()} = {right}'


def _coefficient(expression: sp.Expr, monomial: sp.Expr) -> sp.Expr:
    """The coefficient of exactly this monomial in speeds and accelerations, in an expanded expression."""
    moving = {symbol for symbol in expression.free_symbols if _is_speed(symbol)}
    kept = [t for t in sp.Add.make_args(expression) if _moving_part(t, moving) == monomial]
    return sp.Add(*[term / monomial for term in kept])


def _moving_part(term: sp.Expr, moving: set[sp.Symbol]) -> sp.Expr:
    return sp.Mul(*[f for f in sp.Mul.make_args(term) if f.free_symbols and f.free_symbols <= moving])


def _shortest(expression: sp.Expr) -> sp.Expr:
    return sp.expand(sp.simplify(expression))


def _plain(matrix: Matrix) -> Matrix:
    """Expanded, with sin(2 q) as 2 sin(q) cos(q), as the sources write it."""
    return matrix.applyfunc(lambda entry: sp.expand(_half_angles(entry)))


def _half_angles(expression: sp.Expr) -> sp.Expr:
    doubled = [
        f for f in expression.atoms(sp.sin, sp.cos) if f.args[0].could_extract_minus_sign() or _is_double(f)
    ]
    return expression.subs({f: sp.expand_trig(f) for f in doubled})


def _is_double(function: sp.Expr) -> bool:
    return bool(function.args[0].as_coeff_Mul()[0] == 2)


def _word(name: str) -> str:
    return name.replace('_', r'\_')


def _term(term: sp.Expr) -> str:
    """One product as text."""
    number, factors = term.as_coeff_mul()
    words = [_factor(factor) for factor in sorted(factors, key=_factor_order)]
    if number == -1 and words:
        return '-' + ' '.join(words)
    if number != 1 or not words:
        value = str(number) if number.is_Rational else f'{float(number):.15g}'
        words = [f'({value})' if '/' in value and words else value, *words]
    return ' '.join(words)


def _factor(factor: sp.Expr) -> str:
    base, exponent = factor.as_base_exp()
    word = f'({text_of(base)})' if isinstance(base, sp.Add) else _atom(base)
    return word if exponent == 1 else f'{word}^{exponent}'


def _atom(base: sp.Expr) -> str:
    if isinstance(base, sp.Function):
        return f'{base.func.__name__}({text_of(base.args[0])})'
    return f'{float(base):.15g}' if base.is_Float else str(base)


def _factor_order(factor: sp.Expr) -> tuple[int, str]:
    """The order of the sources: numbers, parameters, g, sines, cosines, speeds."""
    base, _ = factor.as_base_exp()
    name = str(base)
    if base.is_number:
        return 0, name
    if isinstance(base, (sp.sin, sp.cos)):
        return (3 if isinstance(base, sp.sin) else 4), name
    if name == 'g':
        return 2, name
    return (5 if _is_speed(base) else 1), name


def _is_speed(symbol: sp.Expr) -> bool:
    """Whether a symbol is a speed or an acceleration: dq_1, ddq_1, dalpha."""
    name = str(symbol)
    return bool(symbol.is_Symbol) and name.startswith('d') and not name.startswith('d_')


def _term_order(term: sp.Expr) -> tuple[int, str]:
    return int(bool(term.atoms(sp.sin, sp.cos))), _term(term).lstrip('-')
