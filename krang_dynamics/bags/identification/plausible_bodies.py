"""Bounds of identified bodies: centres of mass within the described shapes, and a known total mass."""

import numpy as np

from ...errors import UrdfError
from ...robot.self_distance import body_boxes
from .consistent_fit import ParameterBounds
from .regressor import Regressor

ROOM = 0.1  # by which a centre of mass may leave the shape [sizes of the shape]
SOFT = 0.02  # standard deviation beyond a bound [sizes of the shape]
PINNED = 1e-3  # standard deviation of a known total mass [total mass]


def body_bounds(regressor: Regressor, total_mass: float | None = None) -> ParameterBounds:
    """Bounds of theta; a body whose description already violates one has none."""
    robot, count = regressor.robot, len(regressor.names)
    median, deviation = regressor.rotor_prior()
    try:
        boxes = body_boxes(robot)
    except UrdfError:  # meshes that are not installed
        boxes = {}
    rows = []
    for i, body in enumerate(regressor.bodies):
        if body not in boxes:
            continue
        low, high = boxes[body]
        size, described = high - low, regressor.prior[10 * i : 10 * i + 4]
        candidates = []
        for axis in range(3):
            for sign, edge in ((1.0, high[axis]), (-1.0, -low[axis])):
                row = np.zeros(count)  # sign * m c - m (edge + room) <= 0
                row[10 * i], row[10 * i + 1 + axis] = -(edge + ROOM * size[axis]), sign
                candidates.append(row / (SOFT * max(size[axis], 1e-2) * described[0]))
        rows += [row for row in candidates if row @ regressor.prior <= 0]
    masses = [10 * i for i in range(len(regressor.bodies))]
    pin, pinned = np.zeros((0, count)), np.zeros(0)
    if total_mass is not None:
        pin, pinned = np.zeros((1, count)), np.array([1 / PINNED])
        pin[0, masses] = 1 / (PINNED * total_mass)
    return ParameterBounds(median, deviation, np.array(rows).reshape(-1, count), pin, pinned)
