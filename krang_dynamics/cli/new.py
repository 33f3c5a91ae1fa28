"""`krang new`: a commented robot file to fill in, from a bare URDF."""

import argparse
import os
from math import isfinite
from pathlib import Path
from shlex import quote
from typing import Any

import yaml

from ..bags.io.files import refuse_existing, require_suffix, write
from ..errors import InputError
from ..robot.library import ROBOT_FILES, default_entries
from ..robot.urdf import Urdf
from .arguments import FORCE

HEAD = """\
# Robot file of {name}: what its URDF does not describe. Angles in rad, lengths in m, torques in N m.
# `krang info {file}` checks it. Entries after "# " are optional; the values there are examples.
name: {name}
urdf: {urdf}    # relative to this file
gravity: [0.0, 0.0, -9.81]    # m/s2, in the axes of link {root}; change it for a robot on a wall or a slope
command_unit: torque    # of the drivers: torque [N m], current [A] or voltage [V]

# One line per joint, in the order of q. nominal_torque is the default effort limit; the URDF's effort is
# never exceeded. A joint without a motor has only driven: false. A geared motor adds its rotor's inertia:
#   joint: {{driven: true, nominal_torque: 40.0, motor: {{gear: 100, rotor_inertia: 2e-5}}}}
joints:
"""
FRICTION = """
# Friction: viscous [N m s/rad] and Coulomb [N m]. krang identify estimates both from a recording.
"""
ACTUATORS = """
# Motor drivers, if their names, signs, zeros or gears differ from the joints'. Default: one per driven
# joint, with its name. q_joint = sign * q_driver / ratio + offset.
# actuators:
"""
STOP = """
# At a stop: hold (stay), lower (sink slowly, then release) or zero (release; for robots that cannot fall).
stop: {policy: lower, time: 2.0, blind_time: 0.5}    # s
"""
MASSLESS = 'it moves no mass'
PURPOSE = 'write a robot file to fill in, from a bare URDF'
EXAMPLES = ('krang new ur5.urdf',)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('urdf', metavar='URDF', help='the path of a URDF')
    parser.add_argument('--output', metavar='FILE', help='robot file; default: like the URDF, in this folder')
    parser.add_argument('--force', action='store_true', help=FORCE)


def run(options: argparse.Namespace) -> int:
    path = Path(options.urdf)
    if not path.is_file():
        raise InputError(f'{path} is not a file; give the path of a URDF')
    urdf = Urdf.from_file(path)
    file = options.output or f'{path.stem}.yaml'
    require_suffix(file, *ROBOT_FILES)
    refuse_existing([file], options.force)
    write(file, robot_file(urdf, file))
    print(f'next: krang info {quote(file)}')
    return 0


def robot_file(urdf: Urdf, file: str) -> str:
    """The text of a robot file at `file` for a URDF."""
    entries = default_entries(urdf)
    home = entries['home']
    locked = {name: home[name] for name in home if _moves_no_mass(urdf, name)}
    joints = [name for name in home if name not in locked]
    if not joints:
        urdf.check_masses()
    source = os.path.relpath(Path(urdf.source).resolve(), Path(file).resolve().parent)
    text = HEAD.format(name=_word(urdf.name), file=file, urdf=_word(source), root=urdf.root)
    text += ''.join(_joint_line(urdf, name) for name in joints)
    text += '\n# The home pose, in which a simulation starts.\nhome:\n'
    text += ''.join(f'  {_word(name)}: {home[name]:.6g}\n' for name in joints)
    text += _locked(locked, joints[-1], home)
    frames = ', '.join(map(_word, entries['end_effectors']))
    text += f'\n# Links that are pushed, or follow Cartesian targets.\nend_effectors: [{frames}]\n'
    text += STOP + _friction(entries['friction'], joints)
    drivers = (
        f'{{name: {name}, joint: {name}, sign: 1, offset: 0.0, ratio: 1.0}}' for name in map(_word, joints)
    )
    return text + ACTUATORS + ''.join(f'#   - {driver}\n' for driver in drivers)


def _joint_line(urdf: Urdf, name: str) -> str:
    lower, upper, velocity = urdf.motion_limits(name)
    effort = urdf.joints[name].effort
    entry, note = '{driven: true}', ''
    if effort == 0:
        note = 'the effort of the URDF is 0: correct it there, lock the joint, or write driven: false'
    elif isfinite(effort):
        entry = f'{{driven: true, nominal_torque: {effort:.6g}}}'
    else:
        note = 'the URDF gives no effort: add nominal_torque'
    limits = f'{lower:.6g} .. {upper:.6g}, at most {velocity:.6g}/s'
    return f'  {_word(name)}: {entry}    # {limits}{"; " + note if note else ""}\n'


def _locked(locked: dict[str, float], example: str, home: dict[str, float]) -> str:
    text = '\n# Joints that never move, such as those of a gripper; they need no other entry.\n'
    if not locked:
        return f'{text}# locked: {{{_word(example)}: {home[example]:.6g}}}\n'
    lines = [f'  {_word(name)}: {value:.6g}    # {MASSLESS}\n' for name, value in locked.items()]
    return f'{text}locked:\n{"".join(lines)}'


def _friction(friction: dict[str, Any], joints: list[str]) -> str:
    """The friction of the URDF, or an example."""
    parts = {
        kind: {j: v for j, v in friction[kind].items() if j in joints} for kind in ('viscous', 'coulomb')
    }
    if not any(parts.values()):
        return f'{FRICTION}# friction: {{viscous: {{{_word(joints[0])}: 0.5}}}}\n'
    lines = [f'{FRICTION}friction:\n']
    for kind, values in parts.items():
        words = ', '.join(f'{_word(name)}: {value:.6g}' for name, value in values.items())
        lines += [f'  {kind}: {{{words}}}\n'] if values else []
    if parts['coulomb']:
        lines += ['  sign: exact    # or smooth, as the coefficients were fitted\n  fitted_with: exact\n']
    return ''.join(lines)


def _moves_no_mass(urdf: Urdf, leader: str) -> bool:
    """Whether no link beyond a joint, or beyond one that mimics it, has mass."""
    moved = [j.child for j in urdf.joints.values() if j.moves and urdf.leader(j.name)[0] == leader]
    return not any(urdf.links[name].mass for child in moved for name in urdf.subtree(child))


def _word(text: str) -> str:
    """A name as a YAML scalar."""
    return yaml.safe_dump([text], default_flow_style=True, allow_unicode=True, width=10**6).strip()[1:-1]
