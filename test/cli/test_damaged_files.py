"""Damaged and foreign files as inputs of the commands: no traceback, and no success that is wrong."""

import os
import random
import re
import shutil

import numpy as np
import pytest
from cli.damaged_files import Run, damaged_copy, originals

pytest.importorskip('rosbags', reason='rosbags is not installed')
pytest.importorskip('pyarrow', reason='pyarrow is not installed')
pytest.importorskip('distributed', reason='dask.distributed is not installed')

from krang_dynamics.bags.fleet import fleet_table
from krang_dynamics.cli import view
from krang_dynamics.cli.main import main
from krang_dynamics.errors import KrangError
from krang_dynamics.nodes import motion_sender

SAMPLE, CAMPAIGN = 42, 500
READ = 'the motion was read'


def no_controller(*_):
    raise KrangError(READ)


@pytest.fixture(scope='module')
def cases(tmp_path_factory):
    folder = tmp_path_factory.mktemp('originals') / 'good'  # as a fleet names the machine of the copies
    folder.mkdir()
    return originals(folder)


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs a command in this process, up to where it would serve a page or look for a controller."""
    monkeypatch.setattr(fleet_table, 'on_cluster', lambda function, items, *_: map(function, items))
    monkeypatch.setattr(view, '_serve', lambda *_: None)
    monkeypatch.setattr(motion_sender, 'init', no_controller)

    def run_words(command, path, out):
        capsys.readouterr()
        status = main([word.format(path, out=out) for word in command.split()])
        output = capsys.readouterr()
        if READ in output.err:
            return Run(path, 0, output.out, output.err.replace(f'krang: {READ}\n', ''))
        return Run(path, status, output.out, output.err)

    return run_words


@pytest.mark.slow
@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('count', [SAMPLE, pytest.param(CAMPAIGN, marks=pytest.mark.long)])
def test_a_damaged_file_is_refused_in_one_line_or_its_content_is_used(tmp_path, run, cases, count):
    names, statuses, wrong = list(cases), {0: 0, 1: 0, 2: 0}, []
    others = [case.path.read_bytes() for case in cases.values() if case.path.is_file()]
    good = {}
    for seed in range(count):
        name, dice = names[seed % len(names)], random.Random(seed)
        case, folder = cases[name], tmp_path / str(seed)
        path = damaged_copy(case, folder, dice, others)
        for k, command in enumerate(case.commands):
            if (name, k) not in good:
                good[name, k] = run(command, case.path, tmp_path / f'{name}_{k}{case.is_written}')
                assert good[name, k].status < 2, good[name, k].err
            result = run(command, path, folder / f'out_{k}{case.is_written}')
            statuses[result.status] += 1
            problem = judged(case, path, result, good[name, k])
            if problem:
                wrong.append(f'seed {seed}, {name}: krang {command}: {problem}')
    print(statuses)
    assert not wrong, '\n'.join(wrong)
    assert statuses[2] > count / 4


def judged(case, path, result, good):
    """What is wrong with a result; empty if nothing is."""
    if 'Traceback' in result.err or 'internal error' in result.err:
        return result.err
    errors = [line for line in result.err.splitlines() if line.startswith('krang: ')]
    if result.status == 2:
        return '' if len(errors) == 1 else f'{len(errors)} lines of errors: {result.err}'
    if result.status == 1:
        return ''
    try:
        return case.judge(path, result, good)
    except Exception as error:  # the file cannot be read otherwise
        return f'success, but {type(error).__name__}: {error}'


def pipe(path):
    os.mkfifo(path)


def endless(path):
    path.symlink_to('/dev/zero')


def written(content):
    return lambda path: path.write_bytes(content.encode())


def saved(numbers):
    return lambda path: np.save(path, numbers)


MOTION, TABLE = 'send {}', 'import {} --rate 100 --columns q=1-2 --out {out}'
DEEP, HUGE = '[' * 50_000, '1' * 200_000
POINT = 'joint_names: [joint_1]\npoints: [{{positions: [{}], time_from_start: 1}}]\n'
STRANGE = [  # name, what makes the file, command
    *((f'm.{suffix}', make, MOTION) for suffix in ('csv', 'yaml') for make in (pipe, endless)),
    *(
        (f't.{suffix}', make, TABLE)
        for suffix in ('csv', 'txt', 'npy', 'npz', 'mat')
        for make in (pipe, endless)
    ),
    *((f'u.{suffix}', make, 'info {}') for suffix in ('urdf', 'yaml') for make in (pipe, endless)),
    *(('m.csv', written(f'time,joint_1\n0,{word}\n'), MOTION) for word in ('1_0', '٣', '1e400', HUGE)),
    *(('m.yaml', written(POINT.format(word)), MOTION) for word in ('1_0', '1:30', '0x10', 'yes', DEEP)),
    *(('t.csv', written(f'time,q.a\n0,1\n{row}\n'), 'import {} --out {out}') for row in ('0,1', '1e12,1')),
    *(('t.csv', written(f'1,2\n3,{word}\n'), TABLE) for word in ('1_0', '٣', '1e400', 'inf', HUGE)),
    *(('t.npy', saved(np.ones((9, 2)).astype(kind)), TABLE) for kind in ('complex', 'bool', 'datetime64[s]')),
    *(('t.npy', saved(np.ones(shape)), TABLE) for shape in ((), (9,), (9, 2, 2))),
]


@pytest.mark.parametrize(('name', 'make', 'command'), STRANGE)
def test_what_is_no_data_is_refused_in_one_line(tmp_path, run, name, make, command):
    make(tmp_path / name)
    result = run(command, tmp_path / name, tmp_path / 'bag')
    assert result.status == 2, result.out
    assert re.fullmatch(r'krang: (?!internal error)[^\n]+\n', result.err)
    assert len(result.err) < 1000
    assert not (tmp_path / 'bag').exists()


@pytest.mark.parametrize('command', ['validate', 'identify', 'replay', 'view --bag'])
@pytest.mark.parametrize('file', ['metadata.yaml', 'data'])
def test_a_recording_with_pipes_or_deep_lists_is_damaged(tmp_path, run, bag, command, file):
    copy = shutil.copytree(bag, tmp_path / 'bag')
    metadata = copy / 'metadata.yaml'
    if file == 'data':
        (data,) = (path for path in copy.iterdir() if path != metadata)
        data.unlink()
        pipe(data)
    metadata.write_text(DEEP)
    words = 'view planar_2r --bag {}' if 'view' in command else f'{command} {{}} --robot planar_2r'
    result = run(words, copy, tmp_path / 'out')
    assert 'internal error' not in result.err
    assert 'metadata.yaml is missing or damaged' in result.out + result.err
    assert (result.status == 2) == (file == 'data')
