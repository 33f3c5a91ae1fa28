"""Krang on fixed wheels: the frames of getKrangFrames(), [krang] section 2.1 and listing B.2."""

from ..engine import Engine, Scalar
from ..frames import WORLD, Frame, FrameTree

AXES = {'x': (-1, 0, 0), 'y': (0, -1, 0), 'z': (0, 0, -1)}  # every e_j points along -x, -y or -z

LENGTHS = {  # [m]
    'L1': 0.499, 'L2': 0.091, 'L3': 0.584, 'L4': 0.1088, 'L5': 0.0845,
    'L6': 0.2823, 'L7': 0.328, 'L8': 0.2765, 'L9': 0.200,
}  # fmt: skip

PARAMETER_NAMES = 'm MX MY MZ XX XY XZ YY YZ ZZ'.split()


def frames(engine: Engine) -> FrameTree:
    keys = ['1', '2', '3', *(f'{i}l' for i in range(4, 11)), *(f'{i}r' for i in range(4, 11))]
    arms = [f'{side}_{i}' for side in ('left', 'right') for i in range(1, 8)]
    names = ['base_pitch', 'waist', 'torso', *arms]
    q = [engine.symbol(f'q_{name}') for name in names]
    dq = [engine.symbol(f'dq_{name}') for name in names]
    tree = FrameTree(engine, 'krang', names, q, dq, ())
    tree.gravity = (0, 0, -tree.parameter('g', 9.81))
    L = [tree.parameter(name, length) for name, length in LENGTHS.items()]
    for row, (key, (antecedent, axis, rows, P)) in enumerate(zip(keys, _layout(engine, q, L), strict=True)):
        pairs = zip(PARAMETER_NAMES, _numbers(key), strict=True)
        symbols = [tree.parameter(f'{name}_{key}', number) for name, number in pairs]
        tree.frames[key] = Frame(
            engine.matrix(rows), engine.column(P), antecedent, engine.column(AXES[axis]),
            q[row], dq[row], row, 'revolute', symbols,
        )  # fmt: skip
    tree.end_effectors = {'left_hand': '10l', 'right_hand': '10r'}
    return tree


def _layout(engine: Engine, q: list[Scalar], L: list[Scalar]):  # type: ignore[no-untyped-def]
    """Antecedent, axis, rows of iA_j, and iP_j of every frame, in joint order."""
    L1, L2, L3, L4, L5, L6, L7, L8, L9 = L
    c, s = [engine.cos(x) for x in q], [engine.sin(x) for x in q]
    trunk = [
        (WORLD, 'x', [[0, s[0], -c[0]], [-1, 0, 0], [0, c[0], s[0]]], [0, 0, 0]),
        ('1', 'x', [[1, 0, 0], [0, c[1], s[1]], [0, -s[1], c[1]]], [0, L1, -L2]),
        ('2', 'y', [[-c[2], 0, s[2]], [0, 1, 0], [-s[2], 0, -c[2]]], [0, L3, L4]),
    ]
    left = ('3', 'y', [[0, 1, 0], [c[3], 0, -s[3]], [-s[3], 0, -c[3]]], [L6, L5, 0])
    right = ('3', 'y', [[0, -1, 0], [c[10], 0, -s[10]], [s[10], 0, c[10]]], [-L6, L5, 0])

    def arm(side: str, first: int):  # type: ignore[no-untyped-def]
        c2, c3, c4, c5, c6, c7 = c[first + 1 : first + 7]
        s2, s3, s4, s5, s6, s7 = s[first + 1 : first + 7]
        return [
            (f'4{side}', 'x', [[-1, 0, 0], [0, -c2, -s2], [0, -s2, c2]], [0, 0, 0]),
            (f'5{side}', 'y', [[-c3, 0, s3], [0, -1, 0], [s3, 0, c3]], [0, -L7, 0]),
            (f'6{side}', 'x', [[-1, 0, 0], [0, -c4, -s4], [0, -s4, c4]], [0, 0, 0]),
            (f'7{side}', 'y', [[-c5, 0, s5], [0, -1, 0], [s5, 0, c5]], [0, -L8, 0]),
            (f'8{side}', 'x', [[-1, 0, 0], [0, -c6, -s6], [0, -s6, c6]], [0, 0, 0]),
            (f'9{side}', 'z', [[-c7, -s7, 0], [0, 0, -1], [s7, -c7, 0]], [0, -L9, 0]),
        ]

    return [*trunk, left, *arm('l', 3), right, *arm('r', 10)]


# Mass [kg], centre of mass [m], and either the edges of a uniform box [m], or xx, yy, zz, xy [kg m2] at the
# centre of mass, published for a link of the mass that follows.
LINKS = {
    '1': (81.856, (-0.00336451, 0.107572, -0.00636184), (0.7165, 0.71048, 0.3286), None),
    '2': (10.302, (-0.02937, 0.285314, 0.0974926), (0.234, 0.5943, 0.24097), None),
    '3': (10.875, (-6.5e-5, 0.089675, -0.008384), (0.2815, 0.23, 0.22611), None),
    '4': (3.836, (0.0063626, -0.00725706, 0), (0.0732, 0.0222, 0.0816, -0.0006), 7.35),
    '5': (2.385, (0.0101136, -0.15332, 0), (0.0504, 0.0178, 0.0579, 0.0006), 6.1405),
    '6': (2.306, (0.0071222, -0.00803823, 0), (0.0354, 0.0100, 0.0394, -0.0003), 4.531),
    '7': (1.477, (0.0115211, -0.1255, 0), (0.0209, 0.0067, 0.0239, 0.0003), 3.2245),
    '8': (1.369, (0.00705037, -0.00747172, 0), (0.0120, 0.0035, 0.0135, -0.0002), 2.318),
    '9': (1.470, (0.0105523, -0.117163, 0), (0.0104, 0.0041, 0.0125, 0), 2.318),
    '10': (2.300, (0, 0, 0.1055), (0.0126, 0.0130, 0.0027, 0), 2.3838),
}


def _numbers(key: str) -> list[float]:
    """The ten inertial parameters of a link, about its frame's origin."""
    m, (x, y, z), shape, published_mass = LINKS[key.rstrip('lr')]
    if published_mass is None:
        a, b, c = (edge**2 for edge in shape)
        xx, yy, zz, xy = m / 12 * (b + c), m / 12 * (a + c), m / 12 * (a + b), 0.0
    else:
        xx, yy, zz, xy = (entry * m / published_mass for entry in shape)
    return [
        m, m * x, m * y, m * z,
        xx + m * (y * y + z * z), xy - m * x * y, -m * x * z,
        yy + m * (x * x + z * z), -m * y * z,
        zz + m * (x * x + y * y),
    ]  # fmt: skip
