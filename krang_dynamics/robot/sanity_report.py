"""The report of `krang info`: what to check before the first enable."""

import numpy as np

from ..arrays import Array
from ..text import number, table
from .model import Robot
from .plausibility import com_motion, link_fault, principal_inertias, warnings

DIRECTIONS = (('forward (+x)', 'back (-x)'), ('left (+y)', 'right (-y)'), ('up (+z)', 'down (-z)'))


def report(robot: Robot) -> str:
    """Tree, joints, links, mass, gravity torque relative to limits, sign test and warnings, as plain text."""
    sections = [
        ('Tree', _tree(robot)),
        ('Joints', _joints(robot)),
        ('Links', _links(robot)),
        ('Whole robot at home', _whole(robot)),
        ('Gravity at home', _gravity(robot)),
        ('Sign test: motion of the centre of mass for +0.1 rad (or m) on one joint', _signs(robot)),
        ('Warnings', [f'! {line}' for line in warnings(robot)] or ['none']),
    ]
    lines = [f'{robot.name}: {robot.config.description or "from " + robot.urdf.source}']
    for title, body in sections:
        lines += ['', title, *(f'  {line}' for line in body)]
    return '\n'.join(lines)


def _tree(robot: Robot) -> list[str]:
    lines: list[str] = []
    waiting = [(robot.urdf.root, 0, '')]
    while waiting:
        link, depth, by = waiting.pop()
        lines.append('  ' * depth + link + by)
        hanging = [j for j in robot.urdf.joints.values() if j.parent == link]
        waiting += [(j.child, depth + 1, f'  ({j.name}, {_type(robot, j.name)})') for j in reversed(hanging)]
    return lines


def _type(robot: Robot, name: str) -> str:
    joint = robot.urdf.joints[name]
    if joint.mimic is not None:
        leader, multiplier, offset = robot.urdf.leader(name)
        return f'{joint.type}, follows {leader} x {multiplier:g} + {offset:g}'
    return joint.type


def _joints(robot: Robot) -> list[str]:
    header = ('joint type driven state lower upper speed effort from peak rotor viscous coulomb').split()
    rotor = np.diag(robot.rotor_inertia())
    rows = []
    for i, name in enumerate(robot.joint_names):
        joint, config = robot.urdf.joints[name], robot.config.joints[name]
        rows.append(
            [
                name,
                joint.type,
                'yes' if config.driven else 'PASSIVE',
                config.state,
                *map(
                    number, (robot.lower[i], robot.upper[i], robot.velocity_limits[i], robot.effort_limits[i])
                ),
                robot.effort_sources[i],
                *map(number, (joint.effort, rotor[i])),
                *map(number, (robot.friction.viscous[i], robot.friction.coulomb[i])),
            ]
        )
    notes = [
        'units: rad or m, rad/s, N m; rotor kg m2 at the joint; viscous N m s/rad; - is none',
        f'friction sign: {robot.friction.sign or "not needed"};'
        f' driver commands: {robot.motors.unit.name} [{robot.motors.unit.symbol}];'
        f' stop policy: {robot.config.stop.policy}',
    ]
    return [*table(header, rows), *notes]


def _links(robot: Robot) -> list[str]:
    header = ['link', 'mass kg', 'CoM x m', 'y', 'z', 'I1 kg m2', 'I2', 'I3', '']
    rows = []
    for name, link in robot.urdf.links.items():
        values = (link.mass, *link.com, *principal_inertias(link))
        fault = link_fault(link)
        rows.append([name, *map(number, values), f'! {fault}' if fault else ''])
    return table(header, rows)


def _whole(robot: Robot) -> list[str]:
    com = robot.center_of_mass(robot.home)
    fixed = sum(link.mass for link in robot.urdf.links.values()) - robot.total_mass
    lines = [
        f'moving mass {number(robot.total_mass, 6)} kg'
        + (f', and {number(fixed, 6)} kg that does not move' if abs(fixed) > 1e-9 else ''),
        f'centre of mass {_vector(com)} m',
        f'gravity {_vector(np.array(robot.config.gravity))} m/s2',
    ]
    for frame in robot.config.end_effectors:
        lines.append(f'{frame} at {_vector(robot.frame_pose(robot.home, frame)[:3, 3])} m')
    if robot.config.rolling:
        rows = len(robot.constraint_jacobian(robot.home))
        wheels = ', '.join(wheel.link for wheel in robot.config.rolling)
        lines.append(f'rolls on {wheels}: {rows} constraints')
    return lines


def _gravity(robot: Robot) -> list[str]:
    rows = []
    for i, (name, tau) in enumerate(zip(robot.joint_names, robot.gravity_torque(robot.home), strict=True)):
        limit = robot.effort_limits[i]
        share = f'{100 * abs(tau) / limit:.1f}%' if 0 < limit < np.inf else '-'
        rows.append([name, f'{robot.home[i]:.4f}', f'{tau:.3f}', number(limit), share])
    return table(['joint', 'home', 'gravity N m', 'limit', 'of limit'], rows)


def _signs(robot: Robot) -> list[str]:
    rows = []
    for i, name in enumerate(robot.joint_names):
        motion = com_motion(robot, i)
        rows.append([name, *(f'{1000 * x:.3f}' for x in motion), _direction(motion)])
    return table(['joint', 'dx mm', 'dy mm', 'dz mm', 'direction'], rows)


def _direction(motion: Array) -> str:
    axis = int(np.argmax(np.abs(motion)))
    if abs(motion[axis]) < 1e-9:
        return 'none: the joint does not move the centre of mass'
    return DIRECTIONS[axis][0 if motion[axis] > 0 else 1]


def _vector(x: Array) -> str:
    return '(' + ', '.join(f'{value + 0.0:.6f}' for value in np.round(x, 9)) + ')'
