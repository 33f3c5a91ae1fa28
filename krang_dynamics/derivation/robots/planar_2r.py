"""The two-link arm of [lecture] in the vertical x-z plane, with joints about -y."""

from ..engine import Engine
from ..frames import IDENTITY, WORLD, Frame, FrameTree

NUMBERS = {
    'g': 9.81, 'l_1': 1.0, 'l_2': 0.8, 'l_c1': 0.5, 'l_c2': 0.4,  # [m/s2], [m]
    'm_1': 2.0, 'm_2': 1.5, 'I_1': 0.17, 'I_2': 0.09,  # [kg], [kg m2]
}  # fmt: skip


def frames(engine: Engine) -> FrameTree:
    q, dq = ([engine.symbol(f'{d}q_{i}') for i in (1, 2)] for d in ('', 'd'))
    tree = FrameTree(engine, 'planar_2r', ['joint_1', 'joint_2'], q, dq, ())
    g, l_1, l_2, l_c1, l_c2, m_1, m_2, I_1, I_2 = (
        tree.parameter(name, number) for name, number in NUMBERS.items()
    )
    tree.gravity = (0, 0, -g)
    axis = [0, -1, 0]
    bodies = [(WORLD, [0, 0, 0], m_1, l_c1, I_1), ('link_1', [l_1, 0, 0], m_2, l_c2, I_2)]
    for i, (antecedent, P, m, l_c, inertia) in enumerate(bodies):
        parameters = [m, m * l_c, 0, 0, 0, 0, 0, inertia + m * l_c**2, 0, 0]
        tree.frames[f'link_{i + 1}'] = Frame(
            engine.rotation(axis, q[i]), engine.column(P), antecedent, engine.column(axis),
            q[i], dq[i], i, 'revolute', parameters,
        )  # fmt: skip
    tree.frames['tip'] = Frame(engine.matrix(IDENTITY), engine.column([l_2, 0, 0]), 'link_2')
    tree.end_effectors = {'tip': 'tip'}
    return tree
