"""Fixtures of the tests of Gazebo's files."""

import pytest
from simulation.gazebo.robots import MAKERS

from krang_dynamics.simulation.gazebo.gazebo_files import write_gazebo_files


@pytest.fixture(params=MAKERS, scope='module')
def robot(request):
    return MAKERS[request.param]()


@pytest.fixture(scope='module')
def files(robot, tmp_path_factory):
    return write_gazebo_files(robot, tmp_path_factory.mktemp(robot.name), 'lab', wheels_locked=True)
