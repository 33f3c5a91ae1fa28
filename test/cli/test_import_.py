"""krang import: tables become bags that validate and identify read."""

import numpy as np
import pytest
from bags.bagging import motion, torques
from scipy.io import savemat

import krang_dynamics as kd
from krang_dynamics.bags.io.reader import Bag
from krang_dynamics.bags.validation.recording import Reading, Recording
from krang_dynamics.cli.main import main

pytest.importorskip('rosbags', reason='rosbags is not installed')


@pytest.fixture
def states():
    robot = kd.load_robot('planar_2r')
    t, q, v, a = motion(robot, 2.0, 100.0)
    return robot, t, q, v, torques(robot, q, v, a)


def samples(path, robot):
    recording = Recording(Bag(path), robot, Reading())
    return recording.samples(recording.bag.start, recording.bag.stop + 1)


def assert_same(path, states):
    robot, t, q, v, tau = states
    found = samples(path, robot)
    for got, expected in ((found.t - found.t[0], t), (found.q, q), (found.v, v), (found.effort, tau)):
        np.testing.assert_allclose(got, expected, atol=1e-6)


def test_a_csv_file_with_usual_names_needs_no_options(states, tmp_path, capsys):
    robot, t, *values = states
    header = ['time', *(f'{kind}.{name}' for kind in ('q', 'v', 'tau') for name in robot.joint_names)]
    table = np.column_stack([t, *values])
    np.savetxt(tmp_path / 'a.csv', table, delimiter=',', header=','.join(header), comments='')
    assert main(['import', str(tmp_path / 'a.csv'), '--out', str(tmp_path / 'bag')]) == 0
    assert '200 samples, 100 Hz' in capsys.readouterr().out
    assert_same(tmp_path / 'bag', states)


def test_columns_units_names_and_rate_can_be_given(states, tmp_path):
    _, _, q, v, tau = states
    np.savetxt(tmp_path / 'a.csv', np.column_stack([np.degrees(q), np.degrees(v), 1e3 * tau]), delimiter=';')
    command = ['import', str(tmp_path / 'a.csv'), '--out', str(tmp_path / 'bag'), '--joints', 'joint_*']
    command += ['--rate', '100', '--columns', 'q=1-2', 'v=3-4', 'tau=5-6']
    assert main([*command, '--units', 'q=deg', 'v=deg/s', 'tau=mNm']) == 0
    assert_same(tmp_path / 'bag', states)


@pytest.mark.parametrize('suffix', ['mat', 'npz'])
def test_arrays_by_name_are_read(suffix, states, tmp_path):
    robot, t, q, v, tau = states
    path = tmp_path / f'a.{suffix}'
    arrays = {'t': t, 'q': q, 'dq': v.T, 'torque_': tau}
    savemat(path, arrays) if suffix == 'mat' else np.savez(path, **arrays)
    command = ['import', str(path), str(path), '--out', str(tmp_path / 'bag'), '--joints', 'joint_*']
    assert main(command) == 0
    found = samples(tmp_path / 'bag', robot)
    assert len(found.t) == 400  # both files, a pause between them
    np.testing.assert_allclose(found.effort, np.vstack([tau, tau]), atol=1e-6)
    assert found.t[200] - found.t[199] > 5


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (['nowhere.csv'], 'cannot be read'),
        (['a.csv', '--columns', 'q=elbow*'], 'no column matches'),
        (['a.csv', '--columns', 'x=1'], 'KIND=VALUE'),
        (['a.csv', '--columns', 'q=1-9'], 'it has 2 columns'),
        (['a.csv', '--units', 'q=furlong'], 'use a number or one of'),
        (['a.csv'], '--rate'),
        (['words.csv'], 'column q.a has no numbers'),
        (['cut.csv'], 'row 2 of the numbers has 1 columns instead of 2'),
        (['longer.csv'], 'row 1 of the numbers has 3 columns instead of 2'),
        (['back.csv'], 'row 3 of the numbers has the time 0.1 s after 0.2 s'),
        (['timeless.csv'], 'row 2 of the numbers has the time nan s after 0 s'),
        (['again.csv'], 'row 2 of the numbers has the time 0.1 s after 0.1 s'),
        (['nanoseconds.csv'], 'it lasts 1e+12 s; give the unit of time'),
        (['huge.csv'], 'row 2 of the numbers has an infinite q of a'),
        (['python.csv'], "row 2 of the numbers has '1_0' in column q.a"),
        (['arabic.csv'], "row 2 of the numbers has '٣' in column q.a"),
    ],
)
def test_errors_are_one_line(arguments, message, tmp_path, monkeypatch, refused):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'a.csv').write_text('q.a,q.b\n1,2\n')
    (tmp_path / 'words.csv').write_text('time,q.a\n0,zero\n')
    (tmp_path / 'cut.csv').write_text('time,q.a\n0,1\n0.')
    (tmp_path / 'longer.csv').write_text('time,q.a\n0,1,2\n')
    (tmp_path / 'back.csv').write_text('time,q.a\n0,1\n0.2,1\n0.1,1\n')
    (tmp_path / 'timeless.csv').write_text('time,q.a\n0,1\n,1\n')
    (tmp_path / 'again.csv').write_text('time,q.a\n0.1,1\n0.1,1\n')
    (tmp_path / 'nanoseconds.csv').write_text('time,q.a\n0,1\n1e12,1\n')
    for name, word in (('huge', '1e400'), ('python', '1_0'), ('arabic', '٣')):
        (tmp_path / f'{name}.csv').write_text(f'time,q.a\n0,1\n1,{word}\n')
    assert message in refused('import', *arguments, '--out', 'bag')


@pytest.mark.parametrize(
    ('numbers', 'message'),
    [
        (np.ones((9, 2)) + 1j, 'complex128'),
        (np.ones((9, 2), bool), 'bool'),
        (np.ones((9, 2), 'datetime64[s]'), 'datetime64'),
        (np.ones((9, 2, 2)), '3 dimensions'),
        (np.ones(9), '1 dimensions'),
        (np.ones(9, [('time', float), ('q.a', complex)]), 'q.a is complex'),
    ],
)
def test_an_array_that_is_no_table_of_real_numbers_is_refused(numbers, message, tmp_path, refused):
    np.save(tmp_path / 'a.npy', numbers)
    words = ['--rate', '100', '--columns', 'q=1-2', '--out', str(tmp_path / 'bag')]
    assert message in refused('import', str(tmp_path / 'a.npy'), *words)


def test_columns_that_are_not_used_are_named(tmp_path, capsys):
    (tmp_path / 'a.csv').write_text('time,q.a,tua.a,\n0,1,2,\n0.1,1,2,\n')
    assert main(['import', str(tmp_path / 'a.csv'), '--out', str(tmp_path / 'bag')]) == 0
    assert 'columns that are not used: tua.a' in capsys.readouterr().out


def test_a_cell_that_is_no_number_is_refused_and_a_missing_one_is_counted(tmp_path, capsys, refused):
    (tmp_path / 'a.csv').write_text('time,q.a,note\n0,1,go\n0.1,1x,stop\n')
    assert "row 2 of the numbers has '1x' in column q.a" in refused(
        'import', str(tmp_path / 'a.csv'), '--out', str(tmp_path / 'bag')
    )
    (tmp_path / 'a.csv').write_text('time,q.a,note\n0,1,go\n0.1,,stop\n')
    assert main(['import', str(tmp_path / 'a.csv'), '--out', str(tmp_path / 'bag')]) == 0
    assert '1 numbers of q are missing' in capsys.readouterr().out


def test_two_columns_of_the_same_name_are_refused(tmp_path, refused):
    (tmp_path / 'a.csv').write_text('time,q.a,q.a\n0,1,2\n0.1,1,2\n')
    assert 'same name' in refused('import', str(tmp_path / 'a.csv'), '--out', str(tmp_path / 'bag'))
