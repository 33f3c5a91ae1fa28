"""URDFs of other people: each is read, derived and held, or refused in one line that names the remedy."""

from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

import krang_dynamics as kd
from krang_dynamics.cli.main import main
from krang_dynamics.control.builder import drivers_of
from krang_dynamics.robot.plausibility import gravity_problems
from krang_dynamics.simulation import choose_engine
from krang_dynamics.simulation.simulated_robot import SimulatedRobot

PERIOD = 1e-3  # [s]
RISE = 0.06  # states before enable, for the measured rate [s]


def folder():
    """The robots of example-robot-data; None if it is not installed."""
    try:
        package = metadata.distribution('example-robot-data')
    except metadata.PackageNotFoundError:
        return None
    return Path(package.locate_file('cmeel.prefix/share/example-robot-data/robots'))


def hold(source, seconds=5.0):
    """Engine, and the largest motion [rad, m] under gravity compensation from home."""
    robot = kd.load_robot(source)
    for problem in gravity_problems(robot):
        raise kd.KrangError(problem)
    engine, _ = choose_engine(robot)
    settings = kd.Settings(terms=('gravity',))
    controller = kd.TorqueController(robot, settings)
    simulated = SimulatedRobot(robot, drivers_of(settings, robot), engine, PERIOD)
    for step in range(round(seconds / PERIOD)):
        time, measured = 1 + step * PERIOD, simulated.measure()
        sample = kd.JointSamples(robot.joint_names, measured.q, measured.v, measured.effort, time, time)
        enable = True if step == round(RISE / PERIOD) else None
        outputs = controller.step(kd.Inputs(time, time, [sample], enable=enable))
        assert outputs.refused == []
        assert outputs.fault is None, outputs.fault
        if outputs.command is not None:
            simulated.receive_command(outputs.command)
        simulated.step()
    assert outputs.mode.value == 'active'
    return engine, np.abs(simulated.q - robot.home).max()


@pytest.fixture(scope='module')
def robots():
    found = folder()
    if found is None:
        pytest.skip('example-robot-data is not installed; pip install example-robot-data')
    return found


WORKING = {
    'ur_description/urdf/ur5_robot.urdf': 'mujoco',
    'panda_description/urdf/panda.urdf': 'mujoco',  # mimic joints
    'kinova_description/robots/kinova.urdf': 'mujoco',  # its home was on a limit
    'tiago_description/robots/tiago_no_hand.urdf': 'pinocchio',  # implausible links, light joints
    'bolt_description/robots/bolt.urdf': 'mujoco',  # inertia without mass
}


@pytest.mark.parametrize('name', WORKING)
def test_a_robot_is_read_derived_and_held(robots, name, capsys):
    path = str(robots / name)
    assert main(['info', path]) == 0
    assert main(['derive', path, '--check']) == 0
    assert 'DIFFERS' not in capsys.readouterr().out
    engine, motion = hold(path, seconds=1.2)
    assert engine == WORKING[name]
    assert motion < 1e-3


@pytest.mark.parametrize(
    ('name', 'words'),
    [
        ('iris_description/robots/iris_simple.urdf', 'has no joint that moves'),
        ('romeo_description/urdf/romeo.urdf', "'LHand' moves links without mass"),
        ('icub_description/robots/icub.urdf', '<inertia ixx='),
        ('alex_description/urdf/alex_psyonic_hands.urdf', "did you mean 'Left_index_q1'"),
    ],
)
def test_a_robot_is_refused_in_one_line_with_a_remedy(robots, name, words, capsys):
    assert main(['info', str(robots / name)]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count('\n') == 1


def test_a_new_robot_file_locks_the_joints_that_move_no_mass(robots, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(['new', str(robots / 'romeo_description/urdf/romeo.urdf')]) == 0
    assert 'LHand' not in kd.load_robot(tmp_path / 'romeo.yaml').joint_names
