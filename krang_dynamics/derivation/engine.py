"""Two symbolic engines with one interface: CasADi for large expressions, SymPy for readable ones."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

# Scalars and matrices of the engine; both engines support +, -, *, @, .T and [i, j].
Scalar = Any
Matrix = Any


class Engine(ABC):
    """The operations that the derivation needs beyond arithmetic; `library` is casadi or sympy."""

    def __init__(self, library: Any) -> None:
        self._library = library

    @abstractmethod
    def symbol(self, name: str) -> Scalar: ...

    @abstractmethod
    def matrix(self, rows: Sequence[Sequence[Scalar]]) -> Matrix: ...

    @abstractmethod
    def jacobian(self, f: Matrix, x: Matrix) -> Matrix:
        """df/dx of a column f by a column x of symbols."""

    @abstractmethod
    def simplify(self, f: Matrix) -> Matrix:
        """An equivalent expression, simplified if the engine can."""

    def sin(self, x: Scalar) -> Scalar:
        return self._library.sin(x)

    def cos(self, x: Scalar) -> Scalar:
        return self._library.cos(x)

    def sqrt(self, x: Scalar) -> Scalar:
        return self._library.sqrt(x)

    def tanh(self, x: Scalar) -> Scalar:
        return self._library.tanh(x)

    def sign(self, x: Scalar) -> Scalar:
        return self._library.sign(x)

    def column(self, entries: Sequence[Scalar]) -> Matrix:
        return self.matrix([[entry] for entry in entries])

    def directional(self, f: Matrix, x: Matrix, direction: Matrix) -> Matrix:
        """df/dx times a direction, for a column f."""
        return self.jacobian(f, x) @ direction

    def rate(self, f: Matrix, q: Matrix, dq: Matrix) -> Matrix:
        """df/dt of a matrix f(q) along q' = dq."""
        rows, columns = f.shape
        flat = self.column([f[i, j] for i in range(rows) for j in range(columns)])
        flat_rate = self.jacobian(flat, q) @ dq
        return self.matrix([[flat_rate[i * columns + j] for j in range(columns)] for i in range(rows)])

    def cross(self, x: Matrix, y: Matrix) -> Matrix:
        return self.column(
            [
                x[1] * y[2] - x[2] * y[1],
                x[2] * y[0] - x[0] * y[2],
                x[0] * y[1] - x[1] * y[0],
            ]
        )

    def rotation(self, axis: Sequence[float], angle: Scalar) -> Matrix:
        """Rotation by `angle` about the unit vector `axis`, by Rodrigues' formula."""
        c, s = self.cos(angle), self.sin(angle)
        x, y, z = axis
        return self.matrix(
            [
                [c + x * x * (1 - c), x * y * (1 - c) - z * s, x * z * (1 - c) + y * s],
                [x * y * (1 - c) + z * s, c + y * y * (1 - c), y * z * (1 - c) - x * s],
                [x * z * (1 - c) - y * s, y * z * (1 - c) + x * s, c + z * z * (1 - c)],
            ]
        )


class CasadiEngine(Engine):
    """CasADi's SX: expression graphs with shared subexpressions."""

    def __init__(self) -> None:
        import casadi

        super().__init__(casadi)

    def symbol(self, name: str) -> Scalar:
        return self._library.SX.sym(name)

    def matrix(self, rows: Sequence[Sequence[Scalar]]) -> Matrix:
        return self._library.vertcat(*[self._library.horzcat(*row) for row in rows])

    def column(self, entries: Sequence[Scalar]) -> Matrix:
        return self._library.vertcat(*entries) if entries else self._library.SX(0, 1)

    def jacobian(self, f: Matrix, x: Matrix) -> Matrix:
        return self._library.jacobian(f, x)

    def directional(self, f: Matrix, x: Matrix, direction: Matrix) -> Matrix:
        return self._library.jtimes(f, x, direction)

    def simplify(self, f: Matrix) -> Matrix:
        return f


class SympyEngine(Engine):
    """SymPy: readable expressions, for small robots."""

    def __init__(self) -> None:
        import sympy

        super().__init__(sympy)

    def symbol(self, name: str) -> Scalar:
        return self._library.Symbol(name, real=True)

    def matrix(self, rows: Sequence[Sequence[Scalar]]) -> Matrix:
        return self._library.Matrix(rows)

    def jacobian(self, f: Matrix, x: Matrix) -> Matrix:
        return f.jacobian(x)

    def simplify(self, f: Matrix) -> Matrix:
        return f.applyfunc(self._library.simplify)
