"""Frames of a tree-structured robot and their velocities, [krang] sections 2.1, 2.2 and 5."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from ..errors import KrangError, UnknownNameError
from .engine import Engine, Matrix, Scalar

WORLD = '0'
IDENTITY = ((1, 0, 0), (0, 1, 0), (0, 0, 1))  # rows of a rotation


@dataclass(frozen=True)
class Frame:
    """One frame R_j, with the entries of the map container of [krang] section 5.1.

    `rotation` (columns x, y, z) and `P` place it in its antecedent; `e` is the local axis of motion;
    `parameters` are [m MX MY MZ XX XY XZ YY YZ ZZ] about its origin. A frame without a joint has
    no row; a mimic joint has its leader's row and a multiple of its symbols.
    """

    rotation: Matrix
    P: Matrix  # [m]
    antecedent: str
    e: Matrix | None = None
    q: Scalar = 0
    dq: Scalar = 0
    row: int | None = None
    motion: Literal['revolute', 'prismatic', 'fixed'] = 'fixed'
    parameters: Sequence[Scalar] = (0,) * 10


@dataclass(frozen=True)
class Wheel:
    """A wheel that rolls on the world's plane z = const: key of its frame, radius [m], local unit axle."""

    key: str
    radius: Scalar
    axle: Sequence[float]


@dataclass
class FrameTree:
    """All frames by key, the coordinates in row order, gravity, and the values of the symbols."""

    engine: Engine
    name: str
    joint_names: Sequence[str]
    q: Sequence[Scalar]
    dq: Sequence[Scalar]
    gravity: Sequence[Scalar]  # 0g [m/s2]
    frames: dict[str, Frame] = field(default_factory=dict)
    end_effectors: dict[str, str] = field(default_factory=dict)  # name: key
    wheels: Sequence[Wheel] = ()
    symbols: dict[str, Scalar] = field(default_factory=dict)
    numbers: dict[str, float] = field(default_factory=dict)

    def parameter(self, name: str, number: float) -> Scalar:
        """Add a symbolic parameter with a numerical value, and return its symbol."""
        self.symbols[name], self.numbers[name] = self.engine.symbol(name), number
        return self.symbols[name]

    # -- the functions of [krang] section 5.2 -----------------------------------------------------

    def is_before(self, first: str, second: str) -> bool:
        """Whether frame `first` is on the chain from the world to frame `second`."""
        return first != second and first in self.chain(second)

    def chain(self, key: str) -> list[str]:
        """Keys from the world to `key`, both included."""
        keys = [key]
        while keys[-1] != WORLD:
            keys.append(self._frame(keys[-1]).antecedent)
        return keys[::-1]

    def rotation(self, represented: str, reference: str) -> Matrix:
        """^jA_i: frame `represented` seen in its neighbour `reference`. Listing B.10."""
        if represented != WORLD and self._frame(represented).antecedent == reference:
            return self._frame(represented).rotation
        if reference != WORLD and self._frame(reference).antecedent == represented:
            return self._frame(reference).rotation.T
        raise KrangError(f'frames {represented!r} and {reference!r} are not neighbours; use transform()')

    def transform(self, represented: str, reference: str) -> Matrix:
        """^jT_i, 4 x 4: frame `represented` seen in `reference`, one before the other. Listing B.11."""
        if represented == reference:
            return self._homogeneous(IDENTITY, [0, 0, 0])
        if self.is_before(reference, represented):
            chain = self.chain(represented)
            T = self._step(chain[chain.index(reference) + 1])
            for key in chain[chain.index(reference) + 2 :]:
                T = T @ self._step(key)
            return T
        if self.is_before(represented, reference):
            return self._inverse(self.transform(reference, represented))
        raise KrangError(f'frame {represented!r} is neither before nor after {reference!r} in the tree')

    def q_vector(self) -> Matrix:
        return self.engine.column(list(self.q))

    def dq_vector(self) -> Matrix:
        return self.engine.column(list(self.dq))

    def mass(self, key: str) -> Scalar:
        """M_j [kg]."""
        return self._frame(key).parameters[0]

    def first_moment(self, key: str) -> Matrix:
        """MS_j [kg m], in the local frame."""
        return self.engine.column(list(self._frame(key).parameters[1:4]))

    def inertia(self, key: str) -> Matrix:
        """J_j [kg m2], about the origin of the local frame. Listing B.14."""
        xx, xy, xz, yy, yz, zz = self._frame(key).parameters[4:]
        return self.engine.matrix([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])

    def angular_velocity(self, key: str, base_angular: Matrix | None = None) -> Matrix:
        """^jw_j [rad/s], eq. 7; the base may itself turn at `base_angular`. Listing B.8."""
        return self.velocities(base_angular)[key][0]

    def linear_velocity(
        self, key: str, base_angular: Matrix | None = None, base_linear: Matrix | None = None
    ) -> Matrix:
        """^jV_j [m/s] of the frame's origin, eq. 8; the base may itself move. Listing B.9."""
        return self.velocities(base_angular, base_linear)[key][1]

    def velocities(
        self, base_angular: Matrix | None = None, base_linear: Matrix | None = None
    ) -> dict[str, tuple[Matrix, Matrix]]:
        """(^jw_j, ^jV_j) of every frame, each computed once from its antecedent's. Eq. 7 and 8."""
        zero = self.engine.column([0, 0, 0])
        w0 = zero if base_angular is None else base_angular
        known = {WORLD: (w0, zero if base_linear is None else base_linear)}
        for key in self.ordered():
            frame = self.frames[key]
            wi, Vi = known[frame.antecedent]
            jAi = frame.rotation.T
            w = jAi @ wi
            V = jAi @ (Vi + self.engine.cross(wi, frame.P))
            if frame.motion == 'revolute':
                w = w + frame.e * frame.dq
            elif frame.motion == 'prismatic':
                V = V + frame.e * frame.dq
            known[key] = (w, V)
        return known

    def world_transforms(self) -> dict[str, Matrix]:
        """^0T_j of every frame, each computed once."""
        known: dict[str, Matrix] = {}
        for key in self.ordered():
            antecedent = self.frames[key].antecedent
            step = self._step(key)
            known[key] = step if antecedent == WORLD else known[antecedent] @ step
        return known

    def ordered(self) -> list[str]:
        """All keys but the world, antecedents first."""
        done, waiting = [WORLD], list(self.frames)
        while waiting:
            ready = [key for key in waiting if self.frames[key].antecedent in done]
            if not ready:
                raise KrangError(f'frames {", ".join(waiting)} are not connected to the world {WORLD!r}')
            done += ready
            waiting = [key for key in waiting if key not in ready]
        return done[1:]

    # -- internal -------------------------------------------------------------------------------------

    def _frame(self, key: str) -> Frame:
        if key not in self.frames:
            raise UnknownNameError('frame', key, self.frames)
        return self.frames[key]

    def _step(self, key: str) -> Matrix:
        frame = self._frame(key)
        rows = [[frame.rotation[i, j] for j in range(3)] for i in range(3)]
        return self._homogeneous(rows, [frame.P[i] for i in range(3)])

    def _homogeneous(self, rows: Sequence[Sequence[Scalar]], P: Sequence[Scalar]) -> Matrix:
        return self.engine.matrix([*([*row, p] for row, p in zip(rows, P, strict=True)), [0, 0, 0, 1]])

    def _inverse(self, T: Matrix) -> Matrix:
        A, P = T[:3, :3], T[:3, 3]
        back = -(A.T @ P)
        return self._homogeneous([[A[j, i] for j in range(3)] for i in range(3)], [back[i] for i in range(3)])
