"""The pendubot: an arm that turns about the vertical, with a pendulum about the arm, [pendubot]."""

from ..engine import Engine, Scalar
from ..equations import Equations
from ..frames import IDENTITY, WORLD, Frame, FrameTree
from ..readable import motion_line

L, LC2 = 0.2, 0.15  # l_1 + l_2' and the rod's centre of mass [m]
RA, KT, KV, KR = 2.6, 0.00767, 0.00767, 70.0  # [ohm], [N m/A], [V s/rad], gear
SCALE = RA / (KR * KT)  # volts per N m at the arm

PARAMETERS = 'L J_1 m_2 MZ_2 XX_2 XZ_2 l_2'.split()

# theta_1 .. theta_6 of eq. 2 and 3, in volts.
THETAS = {
    'nominal': [
        SCALE * (0.0044 + 0.14 * L**2), SCALE * 0.14 * 0.3**2 / 3, SCALE * 0.14 * L * 0.3 / 2,
        SCALE * 0.14 * LC2, SCALE * 0.015 + KR * KV, SCALE * 0.002,
    ],
    'station_7': [0.0786609, 0.0305672, 0.0259821, 0.1481156, 0.5449053, 0.0116749],
    'station_9': [0.0771622, 0.0251335, 0.0232942, 0.1276416, 0.5493307, 0.0223954],
}  # fmt: skip


def frames(engine: Engine, numbers: str = 'nominal') -> FrameTree:
    names = ['arm', 'pendulum']
    q, dq = ([engine.symbol(f'{d}q_{i}') for i in (1, 2)] for d in ('', 'd'))
    tree = FrameTree(engine, 'pendubot', names, q, dq, ())
    tree.gravity = (0, 0, -tree.parameter('g', 9.81))
    pairs = zip(PARAMETERS, _numbers(THETAS[numbers]), strict=True)
    length, J_1, m_2, MZ_2, XX_2, XZ_2, l_2 = (tree.parameter(name, number) for name, number in pairs)
    arm = [0, 0, 0, 0, 0, 0, 0, 0, 0, J_1]
    # A rod has XX = YY about its hinge and no ZZ; a bent rod also has XZ.
    rod = [m_2, 0, 0, MZ_2, XX_2, 0, XZ_2, XX_2, 0, 0]
    z, x = [0, 0, 1], [-1, 0, 0]
    tree.frames = {
        'arm': Frame(
            engine.rotation(z, q[0]), engine.column([0, 0, 0]), WORLD, engine.column(z), q[0], dq[0], 0,
            'revolute', arm,
        ),
        'pendulum': Frame(
            engine.rotation(x, q[1]), engine.column([length, 0, 0]), 'arm', engine.column(x), q[1], dq[1], 1,
            'revolute', rod,
        ),
        'tip': Frame(engine.matrix(IDENTITY), engine.column([0, 0, l_2]), 'pendulum'),
    }  # fmt: skip
    tree.end_effectors = {'tip': 'tip'}
    return tree


def in_thetas(tree: FrameTree) -> tuple[dict[Scalar, Scalar], list[Scalar]]:
    """Substitutions that express equations in N m by theta_1' .. theta_4', and those four symbols.

    theta_1' = J_1 + m_2 L^2, theta_2' = XX_2, theta_3' = L MZ_2 - XZ_2, theta_4' = MZ_2.
    """
    length, J_1, m_2, MZ_2, XX_2, XZ_2, _ = (tree.symbols[name] for name in PARAMETERS)
    primed = [tree.engine.symbol(f"theta_{i}'") for i in range(1, 5)]
    th1, th2, th3, th4 = primed
    return {J_1: th1 - m_2 * length**2, XX_2: th2, XZ_2: length * th4 - th3, MZ_2: th4}, primed


def source_equations(equations: Equations) -> list[str]:
    """Eq. 2 and 3, in N m with the primed thetas and in volts with theta_1 .. theta_6."""
    tree = equations.tree
    symbol = tree.engine.symbol
    to_primed, primed = in_thetas(tree)
    dq, ddq = tree.dq_vector(), tree.engine.column([symbol('ddq_1'), symbol('ddq_2')])
    beta = tree.engine.column([symbol('beta_1') * dq[0], symbol('beta_2') * dq[1]])
    torque = (equations.A @ ddq + equations.C @ dq + equations.Q + beta).subs(to_primed)

    # Volts: s times the torque, plus the back-EMF k_r k_v dq_1 on the arm only.
    s, back_emf = symbol('s'), symbol('k_r') * symbol('k_v')
    thetas = [symbol(f'theta_{i}') for i in range(1, 7)]
    to_volts = {th: theta / s for th, theta in zip(primed, thetas, strict=False)}
    to_volts |= {symbol('beta_1'): (thetas[4] - back_emf) / s, symbol('beta_2'): thetas[5] / s}
    volts = (torque * s + tree.engine.column([back_emf * dq[0], 0])).subs(to_volts)

    monomials = [ddq[0], ddq[1], dq[0] * dq[1], dq[0] ** 2, dq[1] ** 2, 1, dq[0], dq[1]]
    return [
        'In volts:',
        motion_line(volts[0], monomials, 'v'),
        motion_line(volts[1], monomials, '0'),
        'In N m:',
        motion_line(torque[0], monomials, 'tau'),
        motion_line(torque[1], monomials, '0'),
        "theta_1' = J_1 + m_2 L^2, theta_2' = XX_2, theta_3' = L MZ_2 - XZ_2, theta_4' = MZ_2;",
        "with s = R_a / (k_r k_t): theta_i = s theta_i', theta_5 = s beta_1 + k_r k_v, theta_6 = s beta_2",
    ]


def _numbers(thetas: list[float]) -> list[float]:
    th1, th2, th3, th4 = (theta / SCALE for theta in thetas[:4])
    m_2 = th4 / LC2
    return [L, th1 - m_2 * L**2, m_2, th4, th2, L * th4 - th3, 2 * LC2]
