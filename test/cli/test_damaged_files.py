"""Damaged and foreign files as inputs of the commands: one line of error, never a traceback."""

import random

import numpy as np
import pytest
from bags.bagging import motion, record_model, torques

import krang_dynamics as kd
from krang_dynamics.bags.io.motion_file import read_motion
from krang_dynamics.cli.main import main
from krang_dynamics.errors import KrangError
from krang_dynamics.robot.library import share

SAMPLE, CAMPAIGN = 40, 500
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
    'ö'.encode(),
]


def damaged(data, dice, others):
    """A good file after one to three mutations, or another file in its place."""
    for _ in range(dice.randint(1, 3)):
        n = max(1, len(data))
        a, b = sorted(dice.randrange(n) for _ in range(2))
        kind = dice.choice('truncate flip remove repeat word swap zero foreign'.split())
        if kind == 'truncate':
            data = data[:a]
        elif kind == 'flip':
            data = data[:a] + bytes([data[a] ^ 1 << dice.randrange(8)] if data else b'') + data[a + 1 :]
        elif kind == 'remove':
            data = data[:a] + data[min(b, a + 200) :]
        elif kind == 'repeat':
            data = data[:b] + data[a : min(b, a + 500)] + data[b:]
        elif kind == 'word':
            data = data[:a] + dice.choice(WORDS) + data[min(n, a + dice.randrange(8)) :]
        elif kind == 'swap':
            data = data[b:] + data[a:b] + data[:a]
        elif kind == 'zero':
            data = data[:a] + bytes(min(b, a + 300) - a) + data[min(b, a + 300) :]
        elif dice.random() < 0.2:
            data = dice.choice(others)
    return data


@pytest.fixture(scope='module')
def originals(tmp_path_factory):
    """Good files, by the arguments of a command that reads one; {} stands for its path."""
    folder = tmp_path_factory.mktemp('good')
    record_model(folder / 'bag', kd.load_robot('planar_2r'), duration=2.0)
    record_model(folder / 'old', kd.load_robot('planar_2r'), 'sqlite3', duration=2.0)
    urdf, robot = share() / 'urdf' / 'planar_2r.urdf', share() / 'config' / 'robots' / 'planar_2r.yaml'
    table, model = folder / 'table.csv', kd.load_robot('planar_2r')
    t, *qva = motion(model, duration=1.0)
    columns = np.column_stack([t, *qva[:2], torques(model, *qva)])
    names = ','.join(
        ['time', *(f'{kind}.{name}' for kind in ('q', 'v', 'tau') for name in model.joint_names)]
    )
    np.savetxt(table, columns, delimiter=',', header=names, comments='')
    plan = folder / 'plan.yaml'
    plan.write_text('duration: 3\nsettings: {ramp_time: 0.5}\nvary: {delay: [0, 0.001], mass: 0.1}\n')
    return {
        ('validate', '{}', '--robot', 'planar_2r'): next((folder / 'bag').glob('*.mcap')),
        ('validate', '{} ', '--robot', 'planar_2r'): next((folder / 'old').glob('*.db3')),
        ('identify', '{}', '--robot', 'planar_2r'): next((folder / 'bag').glob('*.mcap')),
        ('replay', '{}', '--robot', 'planar_2r', '--out', '{}.replay'): next((folder / 'bag').glob('*.mcap')),
        ('import', '{}', '--out', '{}.bag'): table,
        ('info', '{}'): urdf,
        ('excite', '{}', '--duration', '2', '--tries', '1', '--out', '{}.csv'): urdf,
        ('derive', '{}'): urdf,
        ('info', '{} '): robot,
        ('new', '{}', '--output', '{}.yaml', '--force'): urdf,
        ('campaign', 'planar_2r', '--again', '1', '--plan', '{}'): plan,
    }


@pytest.mark.parametrize('count', [SAMPLE, pytest.param(CAMPAIGN, marks=pytest.mark.long)])
def test_a_damaged_file_is_refused_in_one_line(tmp_path, capsys, originals, count):
    others = [path.read_bytes() for path in originals.values()]
    statuses = {0: 0, 1: 0, 2: 0}
    for seed in range(count):
        dice = random.Random(seed)
        command, path = dice.choice(list(originals.items()))
        file = tmp_path / f'file_{seed}{path.suffix}'
        file.write_bytes(damaged(path.read_bytes(), dice, others))
        capsys.readouterr()
        status = main([word.strip().format(file) for word in command])
        output = capsys.readouterr()
        statuses[status] += 1
        what = f'seed {seed}: krang {" ".join(command)}: {output.err}'
        assert 'Traceback' not in output.err, what
        assert 'internal error' not in output.err, what
        if status == 2:
            error = [line for line in output.err.splitlines() if line.startswith('krang: ')]
            assert len(error) == 1, what
    print(statuses)
    assert statuses[2] > count / 4


@pytest.mark.parametrize('suffix', ['.csv', '.yaml'])
def test_a_damaged_motion_is_refused_or_read(tmp_path, suffix):
    rows = ''.join(f'{0.1 * k:.1f},{0.01 * k},{0.02 * k}\n' for k in range(30))
    points = ''.join(f'- {{positions: [{k}], time_from_start: {{sec: {k}, nanosec: 0}}}}\n' for k in range(9))
    good = f'time,joint_1,joint_2\n{rows}' if suffix == '.csv' else f'joint_names: [a]\npoints:\n{points}'
    refused, file = 0, tmp_path / f'motion{suffix}'
    file.write_text(good)
    read_motion(file)
    for seed in range(300):
        dice = random.Random(seed)
        file.write_bytes(damaged(good.encode(), dice, [b'', b'\x00' * 50]))
        try:
            read_motion(file)
        except KrangError:
            refused += 1
    assert refused > 100
