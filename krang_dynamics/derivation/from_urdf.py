"""A FrameTree from any URDF.

This parser is independent of robot/urdf.py on purpose: the derivation cross-checks the robot model, and a
common parser would hide its own errors.
"""

import math
from collections.abc import Sequence
from xml.etree import ElementTree

from ..errors import KrangError
from .engine import Engine, Scalar
from .frames import WORLD, Frame, FrameTree

Rows = list[list[float]]
MOTION = {'revolute': 'revolute', 'continuous': 'revolute', 'prismatic': 'prismatic', 'fixed': 'fixed'}


def read_urdf(
    text: str | bytes,
    engine: Engine,
    joint_names: Sequence[str],
    gravity: Sequence[float],
    end_effectors: Sequence[str],
) -> FrameTree:
    """Frames of a URDF with numerical parameters; keys are link names, rows are in `joint_names` order."""
    robot = ElementTree.fromstring(text.strip())
    q = [engine.symbol(f'q_{name}') for name in joint_names]
    dq = [engine.symbol(f'dq_{name}') for name in joint_names]
    joints = {joint.attrib['name']: joint for joint in robot.iterfind('joint')}
    links = {link.attrib['name']: link for link in robot.iterfind('link')}
    children = {_link(joint, 'child') for joint in joints.values()}
    root = next(name for name in links if name not in children)

    tree = FrameTree(engine, robot.get('name', 'robot'), joint_names, q, dq, gravity)
    still = engine.matrix(_rotation_rows((0, 0, 0)))
    tree.frames[root] = Frame(still, engine.column([0, 0, 0]), WORLD, parameters=_parameters(links[root]))
    for name, joint in joints.items():
        row, k, offset = _follow(joints, name, joint_names)
        position, speed = (0, 0) if row is None else (k * q[row] + offset, k * dq[row])
        child = _link(joint, 'child')
        tree.frames[child] = _frame(engine, joint, position, speed, row, _parameters(links[child]))
    tree.end_effectors = {name: name for name in end_effectors}
    return tree


def _frame(
    engine: Engine,
    joint: ElementTree.Element,
    q: Scalar,
    dq: Scalar,
    row: int | None,
    parameters: list[float],
) -> Frame:
    motion = MOTION.get(joint.get('type', ''))
    if motion is None:
        raise KrangError(
            f'joint {joint.get("name")!r} is {joint.get("type")}; the derivation supports {", ".join(MOTION)}'
        )
    xyz, rpy = _origin(joint)
    turn, P = engine.matrix(_rotation_rows(rpy)), engine.column(xyz)
    if motion == 'fixed':
        return Frame(turn, P, _link(joint, 'parent'), parameters=parameters)
    axis = _unit(_vector(joint.find('axis'), 'xyz', '1 0 0'))
    e = engine.column(axis)
    if motion == 'revolute':
        turn = turn @ engine.rotation(axis, q)
    else:
        P = P + turn @ e * q
    return Frame(turn, P, _link(joint, 'parent'), e, q, dq, row, motion, parameters)  # type: ignore[arg-type]


def _follow(
    joints: dict[str, ElementTree.Element], name: str, joint_names: Sequence[str]
) -> tuple[int | None, float, float]:
    """Row of the joint that moves `name`, with q_name = k q_row + offset; no row for a fixed joint."""
    k, offset = 1.0, 0.0
    while (mimic := joints[name].find('mimic')) is not None and joints[name].get('type') != 'fixed':
        offset += k * float(mimic.get('offset', 0))
        k *= float(mimic.get('multiplier', 1))
        name = mimic.attrib['joint']
    row = joint_names.index(name) if joints[name].get('type') != 'fixed' else None
    return row, _exact(k), _exact(offset)


def _parameters(link: ElementTree.Element) -> list[float]:
    """[m MX MY MZ XX XY XZ YY YZ ZZ] about the link's origin: J = I_G - M S^ S^, [krang] section 2.3."""
    inertial = link.find('inertial')
    if inertial is None:
        return [0] * 10
    m = _number(inertial.find('mass'), 'value')
    (x, y, z), rpy = _origin(inertial)
    xx, xy, xz, yy, yz, zz = (
        _number(inertial.find('inertia'), key) for key in 'ixx ixy ixz iyy iyz izz'.split()
    )
    R = _rotation_rows(rpy)
    local = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
    turned = [
        [sum(R[i][a] * local[a][b] * R[j][b] for a in range(3) for b in range(3)) for j in range(3)]
        for i in range(3)
    ]
    return [
        m,
        m * x,
        m * y,
        m * z,
        turned[0][0] + m * (y * y + z * z),
        turned[0][1] - m * x * y,
        turned[0][2] - m * x * z,
        turned[1][1] + m * (x * x + z * z),
        turned[1][2] - m * y * z,
        turned[2][2] + m * (x * x + y * y),
    ]


def _origin(element: ElementTree.Element) -> tuple[list[float], list[float]]:
    origin = element.find('origin')
    return _vector(origin, 'xyz', '0 0 0'), _vector(origin, 'rpy', '0 0 0')


def _vector(element: ElementTree.Element | None, key: str, default: str) -> list[float]:
    text = default if element is None else element.get(key, default)
    return [_exact(float(word)) for word in text.split()]


def _number(element: ElementTree.Element | None, key: str) -> float:
    assert element is not None
    return _exact(float(element.attrib[key]))


def _link(joint: ElementTree.Element, tag: str) -> str:
    element = joint.find(tag)
    assert element is not None
    return element.attrib['link']


def _unit(vector: list[float]) -> list[float]:
    length = math.hypot(*vector)
    return [_exact(x / length) for x in vector]


def _rotation_rows(rpy: Sequence[float]) -> Rows:
    """Rz(yaw) Ry(pitch) Rx(roll); quarter turns give integers."""
    (cr, cp, cy), (sr, sp, sy) = ([_exact(f(a)) for a in rpy] for f in (math.cos, math.sin))
    return [
        [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
        [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
        [-sp, cp * sr, cp * cr],
    ]


def _exact(x: float) -> float:
    """x rounded to 0, 1 or -1 if it differs only by rounding errors, so that expressions stay short."""
    nearest = round(x)
    return nearest if abs(nearest) <= 1 and abs(x - nearest) < 1e-15 else x
