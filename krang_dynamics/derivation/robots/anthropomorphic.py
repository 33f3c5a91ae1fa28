"""The six-joint arm of [arm]: the chain of transforms as printed; every link is a cube."""

from ..engine import Engine
from ..frames import IDENTITY, WORLD, Frame, FrameTree

LENGTHS = (0.40, 0.35, 0.30, 0.20, 0.15, 0.10)  # d_i [m]; d_ci = d_i / 2
MASSES = (8.0, 6.0, 4.0, 2.0, 1.5, 0.5)  # [kg]

RX = [[1, 0, 0], [0, 0, -1], [0, 1, 0]]  # Rx(pi / 2)
RY = [[0, 0, -1], [0, 1, 0], [1, 0, 0]]  # Ry(-pi / 2)
RZ = [[0, 1, 0], [-1, 0, 0], [0, 0, 1]]  # Rz(-pi / 2)

# Rotation before Rz(q_i) in the chain, and the axis along which the link extends.
TURNS = (IDENTITY, RX, IDENTITY, RY, RZ, RX)
REACH = ((0, 0, 1), (1, 0, 0), (1, 0, 0), (0, 0, 1), (0, 1, 0), (0, 0, 1))


def frames(engine: Engine) -> FrameTree:
    names = [f'joint_{i}' for i in range(1, 7)]
    q, dq = ([engine.symbol(f'{d}q_{i}') for i in range(1, 7)] for d in ('', 'd'))
    tree = FrameTree(engine, 'anthropomorphic', names, q, dq, ())
    tree.gravity = (0, 0, -tree.parameter('g', 9.81))
    d = [tree.parameter(f'd_{i}', number) for i, number in enumerate(LENGTHS, 1)]
    m = [tree.parameter(f'm_{i}', number) for i, number in enumerate(MASSES, 1)]
    antecedent, P = WORLD, [0, 0, 0]
    z = [0, 0, 1]
    for i, (turn, reach) in enumerate(zip(TURNS, REACH, strict=True)):
        x, y, zz = com = [direction * d[i] / 2 for direction in reach]
        cube = m[i] * d[i] ** 2 / 6
        inertia = [
            cube + m[i] * (y * y + zz * zz), -m[i] * x * y, -m[i] * x * zz,
            cube + m[i] * (x * x + zz * zz), -m[i] * y * zz,
            cube + m[i] * (x * x + y * y),
        ]  # fmt: skip
        tree.frames[f'link_{i + 1}'] = Frame(
            engine.matrix(turn) @ engine.rotation(z, q[i]), engine.column(P), antecedent, engine.column(z),
            q[i], dq[i], i, 'revolute', [m[i], *(m[i] * c for c in com), *inertia],
        )  # fmt: skip
        antecedent, P = f'link_{i + 1}', [direction * d[i] for direction in reach]
    tree.frames['tool'] = Frame(engine.matrix(IDENTITY), engine.column(P), antecedent)
    tree.end_effectors = {'tool': 'tool'}
    return tree
