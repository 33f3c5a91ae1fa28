"""Plants by name."""

import pytest

import krang_dynamics as kd
from krang_dynamics.simulation import ContactPlant, MujocoPlant, PinocchioPlant, make_plant

pytest.importorskip('mujoco')


@pytest.mark.parametrize(
    ('robot', 'engine', 'kind'),
    [
        ('planar_2r', 'pinocchio', PinocchioPlant),
        ('planar_2r', 'mujoco', MujocoPlant),
        ('otbot', 'pinocchio', PinocchioPlant),
        ('otbot', 'mujoco', ContactPlant),
    ],
)
def test_an_engine_chooses_the_plant_that_fits_the_robot(robot, engine, kind):
    plant = make_plant(kd.load_robot(robot), engine, friction=False)
    assert type(plant) is kind
    assert plant.name == engine


def test_an_unknown_engine_is_refused_with_the_names_that_exist():
    with pytest.raises(kd.KrangError, match='pinocchio, mujoco'):
        make_plant(kd.load_robot('planar_2r'), 'gazebo')
