"""Fixtures of the robot tests."""

import numpy as np
import pytest
from robot.bad_input import ARM

import krang_dynamics as kd


@pytest.fixture(scope='module')
def otbot():
    return kd.load_robot('otbot')


@pytest.fixture(scope='module')
def planar():
    return kd.load_robot('planar_2r')


@pytest.fixture
def rng():
    return np.random.default_rng(20)


@pytest.fixture
def robot_file(tmp_path):
    (tmp_path / 'arm.urdf').write_text(ARM)

    def write(text):
        path = tmp_path / 'mine.yaml'
        path.write_text(text)
        return path

    return write
