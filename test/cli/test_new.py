"""krang new: a robot file that loads as it is and equals the bare URDF."""

import numpy as np
import pytest
import yaml
from robot.bad_input import ARM
from robot.urdf_text import BALL, joint, link, mimic, urdf

import krang_dynamics as kd
from krang_dynamics.cli.main import main


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder, text, name='arm.urdf'):
    (folder / name).write_text(text)
    return name


def test_the_file_describes_the_same_robot_as_the_urdf_alone(here, capsys):
    bare = kd.load_robot(ARM)
    (here / 'sub').mkdir()
    assert main(['new', write(here, ARM), '--output', 'sub/mine.yaml']) == 0
    assert capsys.readouterr().out.endswith('next: krang info sub/mine.yaml\n')
    robot = kd.load_robot('sub/mine.yaml')
    assert robot.joint_names == bare.joint_names
    assert robot.config.actuators == bare.config.actuators
    assert robot.config.friction == bare.config.friction
    np.testing.assert_allclose(robot.home, bare.home, atol=1e-5)
    np.testing.assert_array_equal(robot.effort_limits, bare.effort_limits)
    assert main(['info', 'sub/mine.yaml']) == 0


def test_its_examples_are_valid_entries(here):
    assert main(['new', write(here, ARM)]) == 0
    (file,) = here.glob('*.yaml')
    text = file.read_text()
    for key in ('locked', 'friction', 'actuators'):
        if f'# {key}:' in text:
            begin = text.index(f'# {key}:')
            block = text[begin:].split('\n\n')[0]
            example = '\n'.join(line.removeprefix('# ') for line in block.splitlines())
            (here / 'with_example.yaml').write_text(text + '\n' + example + '\n')
            kd.load_robot(here / 'with_example.yaml')


def test_joints_that_move_no_mass_are_locked_and_odd_names_are_quoted(here):
    text = urdf(
        link('base'), link('arm', BALL), link('tip'), link('a', BALL), link('b', BALL),
        joint('on', 'revolute', 'base', 'arm'), joint('7: odd #', 'revolute', 'arm', 'tip'),
        joint('lead', 'prismatic', 'arm', 'a'), joint('follow', 'prismatic', 'arm', 'b', mimic('lead', -1.0)),
    )  # fmt: skip
    assert main(['new', write(here, text), '--output', 'mine.yaml']) == 0
    data = yaml.safe_load((here / 'mine.yaml').read_text())
    assert data['locked'] == {'7: odd #': 0}
    assert set(kd.load_robot('mine.yaml').joint_names) == {'on', 'lead'}


def test_it_overwrites_only_by_force_and_refuses_what_is_not_a_file(here, refused):
    name = write(here, ARM)
    assert main(['new', name, '--output', 'mine.yaml']) == 0
    refused('new', name, '--output', 'mine.yaml')
    assert main(['new', name, '--output', 'mine.yaml', '--force']) == 0
    refused('new', name, '--output', 'mine.txt')
    assert 'nowhere.urdf is not a file; give the path of a URDF' in refused('new', 'nowhere.urdf')
