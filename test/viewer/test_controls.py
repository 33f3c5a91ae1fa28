"""The tilt sliders, against rotation matrices."""

import numpy as np
import pinocchio as pin
import pytest

from krang_dynamics.viewer.controls import gravity_at, tilt_of


@pytest.mark.parametrize('tilt', [(0, 0), (10, 0), (0, -20), (25, 15), (-5, 30)])
def test_gravity_in_the_axes_of_a_base_that_is_turned_about_y_then_x(tilt):
    about_x, about_y = np.radians(tilt)
    base = pin.utils.rotate('y', about_y) @ pin.utils.rotate('x', about_x)
    gravity = gravity_at(*tilt, 9.81)
    np.testing.assert_allclose(gravity, base.T @ (0, 0, -9.81), atol=1e-12)
    assert tilt_of(gravity) == pytest.approx(tilt)
