"""The plot of a demonstration."""

import numpy as np
import pytest
from scenarios.ideal_record import ideal

import krang_dynamics as kd
from krang_dynamics.errors import InputError
from krang_dynamics.scenarios.demo_picture import paint
from krang_dynamics.scenarios.demonstrations import scenario_of

pytest.importorskip('matplotlib', reason='matplotlib is not installed; pip install matplotlib')
Image = pytest.importorskip('PIL.Image', reason='pillow is not installed')


@pytest.mark.parametrize('name', ['krang', 'otbot', 'pendubot', 'planar_2r', 'anthropomorphic'])
def test_every_quarter_of_the_png_has_content(name, tmp_path):
    robot = kd.load_robot(name)
    record = ideal(robot, scenario_of(robot), 2.0)
    record.q[:] += 0.2 * np.sin(record.times)[:, None]
    path = tmp_path / 'picture.png'
    paint(robot, record, record.error, path)
    with Image.open(path) as picture:
        assert picture.format == 'PNG'
        assert picture.size == (1260, 900)
        quarters = np.asarray(picture.convert('L'))
    for half in np.array_split(quarters, 2):
        for quarter in np.array_split(half, 2, axis=1):
            assert (quarter < 200).sum() > 500  # ink


def test_a_picture_that_cannot_be_written_is_an_error(tmp_path):
    robot = kd.load_robot('planar_2r')
    record = ideal(robot, scenario_of(robot), 2.0)
    with pytest.raises(InputError, match='cannot be written'):
        paint(robot, record, record.error, tmp_path / 'no such folder' / 'x.png')
