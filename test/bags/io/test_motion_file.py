"""Motions in files: what krang excite writes is read back, and errors name the line or point."""

import numpy as np
import pytest

import krang_dynamics as kd
from krang_dynamics.bags.identification.excitation import Design, excite
from krang_dynamics.bags.io.motion_file import motion_text, read_motion
from krang_dynamics.errors import InputError


@pytest.fixture(scope='module')
def excitation():
    design = Design(duration=4.0, frequency=0.3, harmonics=2, tries=2)
    return excite(kd.load_robot('planar_2r'), design, {})[0]


@pytest.mark.parametrize('suffix', ['csv', 'yaml'])
def test_what_excite_writes_is_read_back(excitation, suffix, tmp_path):
    (tmp_path / f'm.{suffix}').write_text(motion_text(excitation.trajectory(), f'.{suffix}'))
    read = read_motion(tmp_path / f'm.{suffix}')
    assert read.joint_names == ('joint_1', 'joint_2')
    for found, written in ((read.times, excitation.t), (read.positions, excitation.q)):
        np.testing.assert_allclose(found, written, atol=1e-8)
    np.testing.assert_allclose(read.velocities, excitation.v, atol=1e-8)
    np.testing.assert_allclose(read.accelerations, excitation.a, atol=1e-7)


def test_no_number_of_a_written_message_is_text(excitation):
    """YAML 1.1, which `ros2 topic pub` uses, reads 7e-08 as text."""
    assert 'e-' not in motion_text(excitation.trajectory(), '.yaml').replace('time_from_start', '')


def test_numbers_with_an_exponent_are_numbers(tmp_path):
    (tmp_path / 'm.yaml').write_text(
        'joint_names: [a]\npoints:\n- positions: [7e-08]\n  time_from_start: {sec: 1, nanosec: 500000000}\n'
    )
    read = read_motion(tmp_path / 'm.yaml')
    assert read.positions.tolist() == [[7e-08]]
    assert read.times.tolist() == [1.5]
    assert read.velocities is None


def test_columns_without_a_prefix_are_positions_in_any_order(tmp_path):
    (tmp_path / 'm.csv').write_text('time, b, a, v.a, v.b\n0, 1, 2, 3, 4\n\n1, 1, 2, 0, 0\n')
    read = read_motion(tmp_path / 'm.csv')
    assert read.joint_names == ('b', 'a')
    assert read.positions[0].tolist() == [1, 2]
    assert read.velocities[0].tolist() == [4, 3]


@pytest.mark.parametrize(
    ('name', 'text', 'words'),
    [
        ('m.txt', '', 'must end in .csv or .yaml'),
        ('m.csv', '', 'must name the columns'),
        ('m.csv', 'time,a\n', 'no points'),
        ('m.csv', 'time,a\n0,1\n1,x\n', "line 3: 'x' is not a finite number"),
        ('m.csv', 'time,a\n0,1e400\n', "line 2: '1e400' is not a finite number"),
        ('m.csv', 'time,a\n0,1_0\n', "line 2: '1_0' is not a finite number"),
        ('m.csv', 'time,a\n0,٣\n', "line 2: '٣' is not a finite number"),
        pytest.param('m.csv', f'time,a\n0,{"1" * 200_000}\n', 'is no table', id='a huge cell'),
        ('m.csv', 'time,a\n0,1,2\n', 'line 2 has 3 numbers'),
        ('m.csv', 'time,a,a\n0,1,2\n', "column 3, 'a'"),
        ('m.csv', 'time,q.a,v.b\n0,1,2\n', 'velocities are given for b, positions for a'),
        ('m.csv', 'time,a\n1,1\n0,1\n', 'increase'),
        ('m.yaml', '[1, 2', 'is not YAML'),
        pytest.param('m.yaml', '[' * 50_000, 'nested too deep', id='deep lists'),
        pytest.param('m.yaml', '- ' * 50_000, 'nested too deep', id='deep items'),
        ('m.yaml', '- a', 'must have joint_names and points'),
        ('m.yaml', 'joint_names: [[a]]\npoints: []', 'must be names'),
        ('m.yaml', 'joint_names: [a]\npoints: [5]', "points[0] is '5'"),
        ('m.yaml', 'joint_names: [a]\npoints: [{positions: [1]}]', 'points[0].time_from_start'),
        ('m.yaml', 'joint_names: [a]\npoints: [{positions: [1, 2], time_from_start: 1}]', '1 numbers'),
        ('m.yaml', 'joint_names: [a]\npoints: [{positions: [1_0], time_from_start: 1}]', "'1_0' is not"),
        ('m.yaml', 'joint_names: [a]\npoints: [{positions: [[1]], time_from_start: 1}]', 'a list or mapping'),
        ('m.yaml', 'joint_names: [a]\npoints: [{time_from_start: 1}]', 'has no positions'),
        ('m.yaml', 'joint_names: [a]\npoints: []\n---\npoints: [1]', '2 documents'),
        ('m.yaml', 'joint_names: [a]\npoints: []\npoints: []', 'occurs twice'),
        ('m.yaml', 'joint_names: [a]\npoints: [{position: [1]}]', "did you mean 'positions'"),
        ('m.yaml', 'joint_names: [a]\npoints: [{positions: [1], time_from_start: {sek: 1}}]', "'sek'"),
    ],
)
def test_errors_name_file_and_place(name, text, words, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError) as raised:
        read_motion(tmp_path / name)
    assert str(raised.value).startswith(str(tmp_path / name))
    assert words in str(raised.value)


def test_binary_and_missing_files_are_refused(tmp_path):
    (tmp_path / 'm.csv').write_bytes(b'\0\xff')
    with pytest.raises(InputError, match='not a text file'):
        read_motion(tmp_path / 'm.csv')
    with pytest.raises(InputError, match='cannot be read: No such file'):
        read_motion(tmp_path / 'n.csv')
