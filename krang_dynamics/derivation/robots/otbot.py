"""Otbot: platform, pivot, chassis and two rolling wheels, [otbot] section 2."""

from ..engine import Engine
from ..frames import IDENTITY, WORLD, Frame, FrameTree, Wheel

NUMBERS = {
    'l_1': 0.25, 'l_2': 0.20, 'r': 0.10,  # [m]
    # Chassis with its wheels; the source rounds x_B and I_c to nine decimals.
    'm_c': 109.1428, 'x_B': -0.12974470143701647, 'y_B': 0.0, 'I_c': 1.3037863463608412,
    'm_p': 21.94795, 'x_F': 0.0, 'y_F': 0.0, 'I_p': 2.22223,
    'I_a': 0.010357,  # one wheel about its axle [kg m2]
}  # fmt: skip


def frames(engine: Engine) -> FrameTree:
    names = ['x', 'y', 'alpha', 'right_wheel', 'left_wheel', 'pivot']
    q = [engine.symbol(name) for name in ('x', 'y', 'alpha', 'varphi_r', 'varphi_l', 'varphi_p')]
    dq = [engine.symbol(f'd{name}') for name in ('x', 'y', 'alpha', 'varphi_r', 'varphi_l', 'varphi_p')]
    tree = FrameTree(engine, 'otbot', names, q, dq, (0, 0, 0))
    l_1, l_2, r, m_c, x_B, y_B, I_c, m_p, x_F, y_F, I_p, I_a = (
        tree.parameter(name, number) for name, number in NUMBERS.items()
    )

    def slide(row: int, antecedent: str, P: list[object], axis: list[int]) -> Frame:
        still, place, direction = engine.matrix(IDENTITY), engine.column(P), engine.column(axis)
        return Frame(still, place, antecedent, direction, q[row], dq[row], row, 'prismatic')

    def turn(row: int, antecedent: str, P: list[object], axis: list[int], parameters: list[object]) -> Frame:
        return Frame(
            engine.rotation(axis, q[row]), engine.column(P), antecedent, engine.column(axis),
            q[row], dq[row], row, 'revolute', parameters,
        )  # fmt: skip

    def planar(m: object, x: object, y: object, I: object) -> list[object]:  # noqa: E741
        """Ten parameters of a body that moves in the plane, I at its centre of mass."""
        return [m, m * x, m * y, 0, 0, 0, 0, 0, 0, I + m * (x * x + y * y)]  # type: ignore[operator]

    wheel = [0, 0, 0, 0, 0, 0, 0, I_a, 0, 0]  # its mass and yaw inertia are part of the chassis
    tree.frames = {
        'x': slide(0, WORLD, [q[0], 0, r], [1, 0, 0]),
        'y': slide(1, 'x', [0, q[1], 0], [0, 1, 0]),
        'platform': turn(2, 'y', [0, 0, 0], [0, 0, 1], planar(m_p, x_F, y_F, I_p)),
        'chassis': turn(5, 'platform', [0, 0, 0], [0, 0, -1], planar(m_c, x_B, y_B, I_c)),
        'right_wheel': turn(3, 'chassis', [-l_1, -l_2, 0], [0, 1, 0], wheel),
        'left_wheel': turn(4, 'chassis', [-l_1, l_2, 0], [0, 1, 0], wheel),
    }
    tree.end_effectors = {'platform': 'platform'}
    tree.wheels = [Wheel('right_wheel', r, (0, 1, 0)), Wheel('left_wheel', r, (0, 1, 0))]
    return tree
