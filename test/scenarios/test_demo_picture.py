"""The plot of a demonstration."""

import numpy as np
import pytest
from scenarios.ideal_record import ideal

import krang_dynamics as kd
from krang_dynamics.errors import InputError
from krang_dynamics.scenarios.demo_picture import joint_groups, paint, unwrapped
from krang_dynamics.scenarios.demonstrations import scenario_of

pytest.importorskip('matplotlib', reason='matplotlib is not installed; pip install matplotlib')
Image = pytest.importorskip('PIL.Image', reason='pillow is not installed')


@pytest.mark.parametrize('name', ['krang', 'otbot', 'pendubot', 'planar_2r', 'anthropomorphic'])
def test_every_quarter_of_the_png_has_content(name, tmp_path):
    robot = kd.load_robot(name)
    scenario = scenario_of(robot)
    record = ideal(robot, scenario, 2.0)
    record.q[:] += 0.2 * np.sin(record.times)[:, None]
    path = tmp_path / 'picture.png'
    paint(robot, scenario, record, scenario.evaluate(record), path)
    with Image.open(path) as picture:
        assert picture.format == 'PNG'
        assert picture.size == (1260, 900)
        quarters = np.asarray(picture.convert('L'))
    for half in np.array_split(quarters, 2):
        for quarter in np.array_split(half, 2, axis=1):
            assert (quarter < 200).sum() > 500  # ink


def test_a_picture_that_cannot_be_written_is_an_error(tmp_path):
    robot = kd.load_robot('planar_2r')
    scenario = scenario_of(robot)
    record = ideal(robot, scenario, 2.0)
    with pytest.raises(InputError, match='cannot be written'):
        paint(robot, scenario, record, [], tmp_path / 'no such folder' / 'x.png')


@pytest.mark.parametrize(
    ('name', 'groups'),
    [
        ('krang', {'trunk': 3, 'left': 7, 'right': 7}),
        ('otbot', {'body': 3, 'motors': 3}),
        ('planar_2r', {'': 2}),
    ],
)
def test_joints_are_shown_by_limb(name, groups):
    assert {kind: len(rows) for kind, rows in joint_groups(kd.load_robot(name)).items()} == groups


def test_angles_have_no_jumps_and_end_near_zero():
    robot = kd.load_robot('pendubot')
    turning = np.linspace(-np.pi, 4 * np.pi - 0.1, 200)  # ends after two turns, 0.1 rad short
    wrapped = np.remainder(turning + np.pi, 2 * np.pi) - np.pi
    shown = unwrapped(robot, np.column_stack([np.zeros(200), wrapped]))
    np.testing.assert_allclose(shown[:, 1], turning - 4 * np.pi, atol=1e-12)
    assert not shown[:, 0].any()
