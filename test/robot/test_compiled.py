"""The compiled equations against Pinocchio."""

import shutil

import numpy as np
import pytest
from tools import states

import krang_dynamics as kd

needs_compiler = pytest.mark.skipif(shutil.which('cc') is None, reason='no C compiler')


@needs_compiler
@pytest.mark.parametrize(
    'name', ['anthropomorphic', 'pendubot', pytest.param('krang', marks=pytest.mark.long)]
)
def test_it_computes_what_the_robot_computes(name):
    robot = kd.load_robot(name)
    frame = robot.config.end_effectors[0]
    robot = robot.with_payload(frame, 2.0, (0.1, -0.2, 0.3), np.diag([0.02, 0.03, 0.04]))
    robot = robot.with_gravity((1.0, -2.0, -9.0))
    compiled = robot.compiled()
    for q, v, a in zip(*states(5, robot.nv, parts=3), strict=True):
        tau = robot.inverse_dynamics(q, v, a)
        np.testing.assert_allclose(compiled.inverse_dynamics(q, v, a), tau, atol=1e-10)
        np.testing.assert_allclose(compiled.gravity_torque(q), robot.gravity_torque(q), atol=1e-10)


@needs_compiler
def test_what_is_wrong_is_named():
    compiled, good = kd.load_robot('planar_2r').compiled(), np.zeros(2)
    for bad in (np.nan, np.inf, -np.inf):
        for place, name in enumerate('qva'):
            state = [good, good, good]
            state[place] = np.array([0.0, bad])
            with pytest.raises(kd.KrangError, match=rf'{name}\[1\] is'):
                compiled.inverse_dynamics(*state)
        with pytest.raises(kd.KrangError, match=r'q\[1\] is'):
            compiled.gravity_torque(np.array([0.0, bad]))
    with pytest.raises(kd.KrangError, match='v has shape'):
        compiled.inverse_dynamics(good, np.zeros(3), good)
    np.testing.assert_allclose(compiled.gravity_torque([0, 0]), compiled.gravity_torque(good), rtol=1e-12)


def test_without_a_compiler_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setenv('PATH', '')
    with pytest.raises(kd.KrangError, match='build-essential'):
        kd.load_robot('planar_2r').compiled()
