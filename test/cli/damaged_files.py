"""Good files, their mutations, and what a mutated file says, read without the package."""

import csv
import io
import math
import re
import shutil
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree
from zlib import crc32

import numpy as np
import yaml
from bags.bagging import motion, record_model, torques
from bags.replay.test_replayer import faulted
from scipy.io import loadmat, savemat

import krang_dynamics as kd
from krang_dynamics.bags.io.joint_state_codec import TYPE
from krang_dynamics.bags.io.motion_file import read_motion
from krang_dynamics.bags.io.reader import Bag
from krang_dynamics.robot.library import share
from krang_dynamics.scenarios.campaign.campaign_plan import load_plan

ROBOT = 'planar_2r'
WORDS = [
    b'nan',
    b'inf',
    b'1e400',
    b'-1',
    b'0',
    b'',
    b'\xff\xfe',
    b'<',
    b'{',
    b'[',
    b'"',
    b'\x00',
    b'\xc3\xb6',
]
WARNING = re.compile('!|^refused: |are not recorded|is not recorded|not reproduced|^gap in')
NUMBER = re.compile(rb'-?\d+\.?\d*(?:e-?\d+)?')
KINDS = 'truncate flip remove repeat word swap zero number line letter foreign'.split()


@dataclass(frozen=True)
class Run:
    """What a command did."""

    path: Path
    status: int
    out: str
    err: str

    @property
    def warnings(self):
        return {line.strip() for line in (self.out + self.err).splitlines() if WARNING.search(line)}

    @property
    def masked(self):
        """The output without the name of the file."""
        return self.out.replace(str(self.path), 'FILE')


@dataclass(frozen=True)
class Case:
    """A good file or bag, the commands that read it, and a judge of their success.

    In the commands {} stands for the path, and {out} for a file to write. The judge gives the reason why a
    success of the first argument, on a damaged file, is wrong, given the run on the good one.
    """

    path: Path
    commands: list[str]
    judge: Callable[[Path, Run, Run], str]
    is_written: str = ''  # suffix of {out}


# -- mutations ---------------------------------------------------------------------------------------------


def damaged(data, dice, others):
    """A good file after one to three mutations, or another file in its place."""
    for _ in range(dice.randint(1, 3)):
        data = _mutated(data, dice.choice(KINDS), dice, others)
    return data


def _mutated(data, kind, dice, others):
    n = max(1, len(data))
    a, b = sorted(dice.randrange(n) for _ in range(2))
    if kind == 'truncate':
        return data[:a]
    if kind == 'flip':
        return data[:a] + bytes([data[a] ^ 1 << dice.randrange(8)] if data else b'') + data[a + 1 :]
    if kind == 'remove':
        return data[:a] + data[min(b, a + 200) :]
    if kind == 'repeat':
        return data[:b] + data[a : min(b, a + 500)] + data[b:]
    if kind == 'word':
        return data[:a] + dice.choice(WORDS) + data[min(n, a + dice.randrange(8)) :]
    if kind == 'swap':
        return data[b:] + data[a:b] + data[:a]
    if kind == 'zero':
        return data[:a] + bytes(min(b, a + 300) - a) + data[min(b, a + 300) :]
    if kind == 'number' and (found := list(NUMBER.finditer(data))):
        one, other = dice.choice(found), dice.choice(found)
        new = dice.choice([b'nan', b'.nan', b'.inf', b'-' + one[0], b'0', b'1e400', b'', other[0]])
        return data[: one.start()] + new + data[one.end() :]
    if kind == 'line':
        lines = data.splitlines(keepends=True) or [b'']
        i, j = (dice.randrange(len(lines)) for _ in range(2))
        lines[i : i + 1] = dice.choice([[], [lines[i]] * 2, [lines[j]]])
        return b''.join(lines)
    if kind == 'letter':
        return data[:a] + bytes([dice.choice(b'abcxyz_ .,:-0')]) + data[a + 1 :]
    if kind == 'foreign' and dice.random() < 0.2:
        return dice.choice(others)
    return data


def damaged_copy(case, folder, dice, others):
    """A copy of the file or bag, damaged in one file."""
    target = folder / 'good' / case.path.name  # the folder names the machine of a fleet
    target.parent.mkdir(parents=True)
    if case.path.is_file():
        target.write_bytes(damaged(case.path.read_bytes(), dice, others))
        return target
    shutil.copytree(case.path, target)
    *files, metadata = sorted(target.iterdir(), key=lambda file: file.suffix == '.yaml')
    file = metadata if dice.random() < 0.15 else dice.choice(files)
    file.write_bytes(damaged(file.read_bytes(), dice, others))
    return target


# -- good files --------------------------------------------------------------------------------------------


def originals(folder):
    """The cases by name; their files are written into a folder."""
    model = kd.load_robot(ROBOT)
    bag = f'validate {{}} --robot {ROBOT}'
    readers = [
        bag,
        f'identify {{}} --robot {ROBOT}',
        f'replay {{}} --robot {ROBOT} --out {{out}}',
        f'view {ROBOT} --bag {{}}',
        f'fleet {{}} --robots {folder}/machines.yaml --store {{out}}.parquet --workers 1',
    ]
    (folder / 'machines.yaml').write_text(f'"*": {ROBOT}\n')
    found = {
        'mcap': Case(record_model(folder / 'mcap', model, duration=5.0), readers, unchecked_bag),
        'sqlite3': Case(
            record_model(folder / 'sqlite3', model, 'sqlite3', duration=5.0), readers, unchecked_bag
        ),
        'checked': Case(chunked(folder / 'checked', model), readers, checked_bag),
        'zstd': Case(chunked(folder / 'zstd', model, 'zstd'), readers, checked_bag),
        'flight': Case(
            Path(faulted('velocity').write(folder / 'flight', window=1.5)),
            [f'replay {{}} --robot {ROBOT}', f'view {ROBOT} --bag {{}}'],
            unchecked_bag,
        ),
    }
    for name in (ROBOT, 'krang', 'otbot', 'pendubot'):
        commands = ['info {}', 'new {} --output {out}']
        commands += ['derive {}', 'excite {} --duration 2 --tries 1 --out {out}.csv'] if name == ROBOT else []
        found[f'{name}.urdf'] = Case(share() / 'urdf' / f'{name}.urdf', commands, urdf, '.yaml')
        file = folder / f'{name}.yaml'
        text = (share() / 'config' / 'robots' / f'{name}.yaml').read_text()
        file.write_text(text.replace('../../urdf', str(share() / 'urdf')))
        found[f'{name}.yaml'] = Case(file, ['info {}'], robot_file)
    plan = folder / 'plan.yaml'
    plan.write_text(
        'scenario: hold\nduration: 3\nrate: 250\naccuracy: 0.1\n'
        'settings: {ramp_time: 0.5, gains.bandwidth: 20.0}\n'
        'guard: {silence: 0.045}\nvary: {delay: [0, 0.001], mass: 0.1}\n'
    )
    found['plan'] = Case(plan, [f'campaign {ROBOT} --again 1 --plan {{}}'], campaign_plan)
    found['machines'] = Case(
        folder / 'machines.yaml', [f'fleet {folder}/mcap --robots {{}} --store {{out}} --workers 1'], machines
    )
    t, q, v, a = motion(model, duration=1.0)
    tau = torques(model, q, v, a)
    header = ['time', *(f'{kind}.{name}' for kind in ('q', 'v', 'tau') for name in model.joint_names)]
    rows = np.column_stack([t, q, v, tau])
    write_csv(folder / 'table.csv', header, rows)
    np.save(folder / 'table.npy', rows)
    np.savez(folder / 'table.npz', time=t, q=q, v=v, tau=tau)
    savemat(folder / 'table.mat', {'time': t, 'q': q, 'v': v, 'tau': tau})
    numbered = '--columns time=1 q=2-3 v=4-5 tau=6-7'
    for suffix in ('csv', 'npy', 'npz', 'mat'):
        words = f'import {{}} --out {{out}} {numbered if suffix == "npy" else ""}'
        found[f'table.{suffix}'] = Case(folder / f'table.{suffix}', [words], table)
    write_csv(folder / 'motion.csv', [header[0], *header[1:5]], rows[:40, :5])
    points = ''.join(
        f'- {{positions: [{x:.4f}, {y:.4f}], time_from_start: {{sec: {k}, nanosec: 0}}}}\n'
        for k, (x, y) in enumerate(q[:9])
    )
    (folder / 'motion.yaml').write_text(f'joint_names: [joint_1, joint_2]\npoints:\n{points}')
    for suffix in ('csv', 'yaml'):
        found[f'motion.{suffix}'] = Case(folder / f'motion.{suffix}', ['send {}'], joint_motion)
    return found


def chunked(path, model, compression=''):
    """A bag of many chunks with checksums, as rosbag2 writes it."""
    from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    source = Bag(record_model(path.with_name(f'{path.name}_source'), model, duration=5.0))
    writer = Writer(path, version=9, storage_plugin=StoragePlugin.MCAP)
    if compression:
        writer.set_compression(CompressionMode.STORAGE, CompressionFormat.ZSTD)
    places = []
    with writer:
        topic = writer.add_connection('/joint_states', TYPE, typestore=get_typestore(Stores.ROS2_JAZZY))
        for k, (_, time, data) in enumerate(source.messages(['/joint_states']), 1):
            writer.write(topic, time, data)
            if k % 50 == 0:
                content = writer.storage.chunk.bio.getvalue()
                places.append((writer.storage.bio.tell(), crc32(content)))
                writer.storage.close_chunk()
    file = path / f'{path.name}.mcap'
    data = bytearray(file.read_bytes())
    for place, checksum in places:
        struct.pack_into('<I', data, place + 9 + 24, checksum)
    file.write_bytes(data)
    return path


def write_csv(path, header, rows):
    np.savetxt(path, rows, delimiter=',', header=','.join(header), comments='')


# -- judges ------------------------------------------------------------------------------------------------


def checked_bag(path, run, good):
    """Each byte is covered by a checksum or an index: the same result, or a warning."""
    is_same = run.masked == good.masked or run.warnings - good.warnings
    return '' if is_same else 'another result without a warning'


def unchecked_bag(path, run, good):
    """Numbers are what the file says; without a warning none is missing."""

    def counts(some):
        return re.findall(
            r'(\d+) (?:samples,|steps|complete|commands|bags)|/joint_states, ([\d.]+) s', some.out
        )

    return checked_bag(path, run, good) if counts(run) != counts(good) else ''


KNOWN = {
    'link': {'inertial', 'visual', 'collision'},
    'inertial': {'origin', 'mass', 'inertia'},
    'joint': {
        'origin',
        'parent',
        'child',
        'axis',
        'limit',
        'dynamics',
        'mimic',
        'calibration',
        'safety_controller',
    },
    'visual': {'origin', 'geometry', 'material'},
    'collision': {'origin', 'geometry'},
}
ATTRIBUTES = {
    'link': {'name', 'type'},
    'joint': {'name', 'type'},
    'mass': {'value'},
    'inertia': {'ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz'},
    'origin': {'xyz', 'rpy'},
    'axis': {'xyz'},
    'limit': {'lower', 'upper', 'effort', 'velocity'},
    'dynamics': {'damping', 'friction'},
    'mimic': {'joint', 'multiplier', 'offset'},
    'parent': {'link'},
    'child': {'link'},
}


def urdf(path, run, good):
    """Masses and limits are those of the file, and what is ignored is named."""
    root = ElementTree.fromstring(path.read_bytes().strip())
    robot = kd.load_robot(str(path)) if 'Joints' in run.out else None
    for link in root.iterfind('link'):
        mass = link.find('inertial/mass')
        value = 0.0 if mass is None else float(mass.get('value'))
        if not math.isfinite(value) or value < 0:
            return f'mass {value}'
        if robot is not None and robot.urdf.links[link.get('name')].mass != value:
            return f'mass of {link.get("name")}'
    for joint in root.iterfind('joint'):
        limit, name = joint.find('limit'), joint.get('name')
        if limit is None or joint.get('type') in ('fixed', 'continuous'):
            continue
        values = {key: float(limit.get(key, 0)) for key in ATTRIBUTES['limit']}
        if values['lower'] > values['upper'] or not all(map(math.isfinite, values.values())):
            return f'limits {values}'
        if robot is not None and any(getattr(robot.urdf.joints[name], k) != x for k, x in values.items()):
            return f'limits of {name}'
    if robot is None or run.warnings - good.warnings:
        return ''
    for element in root.iter():
        names = [child.tag for child in element]
        unknown = set(names) - KNOWN[element.tag] if element.tag in KNOWN else ()
        ignored = set(element.attrib) - ATTRIBUTES[element.tag] if element.tag in ATTRIBUTES else ()
        twice = [n for n in names if names.count(n) > 1 and element.tag in ('inertial', 'joint')]
        if unknown or ignored or twice:
            return f'<{element.tag}>: {unknown or ignored or twice} is ignored without a warning'
    return ''


def leaves(data, key=()):
    """(path, value) of all scalars of YAML data."""
    entries = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    if isinstance(data, (dict, list)):
        for name, value in entries:
            yield from leaves(value, (*key, str(name) if isinstance(data, dict) else name))
    elif data is not None:
        yield key, data


class Strict(yaml.SafeLoader):
    """A loader that refuses a key that occurs twice."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        assert len(set(map(str, keys))) == len(keys), f'{keys}: twice'
        return super().construct_mapping(node, deep)


def at(value, key):
    """The entry of a configuration at a path."""
    for name in key:
        value = value[name] if isinstance(value, (dict, tuple, list)) else getattr(value, name)
    return value


def is_same(a, b):
    if isinstance(b, (int, float)) and not isinstance(b, bool):
        return math.isfinite(float(a)) and float(a) == float(b)
    return str(a) == str(b)


def robot_file(path, run, good):
    """Each entry of the file is in force."""
    config = kd.load_robot(str(path)).config
    for key, value in leaves(yaml.load(path.read_text(), Strict)):
        if key[0] in ('extends', 'locked', 'urdf'):
            continue
        if not is_same(value, at(config, key)):
            return f'{key} is {value!r} in the file, {at(config, key)!r} in force'
    return ''


def campaign_plan(path, run, good):
    """Each entry of the file is in force."""
    data = yaml.load(path.read_text(), Strict)
    plan = load_plan(kd.load_robot(ROBOT), str(path))
    for key, value in leaves(data):
        if key[0] in ('settings', 'guard'):
            found = at(getattr(plan, key[0]).values, ['.'.join(map(str, key[1:2]))])
        elif key[0] == 'vary':
            found = plan.vary[key[1]][key[2] if len(key) > 2 else 0]
        elif key[0] == 'terms':
            continue
        else:
            found = getattr(plan, key[0])
        if not is_same(value, found):
            return f'{key} is {value!r} in the file, {found!r} in force'
    return ''


def machines(path, run, good):
    """Lines `machine: robot`."""
    data = yaml.load(path.read_text(), Strict)
    return '' if all(isinstance(value, str) for value in data.values()) else f'{data}'


def table(path, run, good):
    """The bag has each number of the file, and what is left out is named."""
    out = re.search(r'^(\S+): \d+ messages', run.out, re.M)[1]
    times, rows = [], []
    for time, message in Bag(out).read('/joint_states'):
        times.append(time)
        rows.append([*message.position, *message.velocity, *message.effort])
    t, values = says(path)
    if len(t) != len(times) or not np.isfinite(t).all():
        return f'{len(t)} rows became {len(times)} messages'
    if run.warnings - good.warnings or 'not used' in run.out:
        return ''
    rows = np.array(rows)
    if rows.shape != values.shape or not np.array_equal(rows, values):
        return f'other numbers in the bag: {rows.shape} and {values.shape}'
    return '' if np.isfinite(values).all() else 'a number that is not finite'


def says(path):
    """Times and other numbers of a table."""
    if path.suffix == '.csv':
        header, *rows = csv.reader(io.StringIO(path.read_text(encoding='utf-8-sig')))
        rows = [row for row in rows if row and any(row) and not row[0].lstrip().startswith(('#', '%'))]
        assert len(set(header)) == len(header), 'a column occurs twice'
        data = np.array([[float(cell) for cell in row[: len(header)]] for row in rows])
        return data[:, 0], data[:, 1:]
    if path.suffix == '.npy':
        data = np.load(path)
        return data[:, 0], data[:, 1:]
    data = dict(np.load(path)) if path.suffix == '.npz' else loadmat(path)
    t = np.ravel(data['time'])
    return t, np.column_stack([data[name] for name in ('q', 'v', 'tau')])


def joint_motion(path, run, good):
    """The points are those of the file."""
    read = read_motion(path)
    if path.suffix == '.csv':
        t, values = says(path)
        found = np.column_stack([x for x in (read.positions, read.velocities) if x is not None])
        return '' if np.array_equal(found, values) and np.array_equal(t, read.times) else 'other numbers'
    documents = [d for d in yaml.load_all(path.read_text(), Strict) if d]
    if len(documents) != 1:
        return f'{len(documents)} documents'
    (data,) = documents
    if set(data) - {'header', 'joint_names', 'points'}:
        return f'ignored: {list(data)}'
    for k, point in enumerate(data['points']):
        if set(point) - {'positions', 'velocities', 'accelerations', 'effort', 'time_from_start'}:
            return f'ignored: {list(point)}'
        time = point['time_from_start']
        seconds = (
            float(time.get('sec', 0)) + 1e-9 * float(time.get('nanosec', 0))
            if isinstance(time, dict)
            else time
        )
        if isinstance(time, dict) and set(time) - {'sec', 'nanosec'}:
            return f'ignored: {list(time)}'
        if not np.array_equal(read.positions[k], np.array(point['positions'], float)):
            return f'point {k}'
        if read.times[k] != seconds:
            return f'time of point {k}'
    return ''
