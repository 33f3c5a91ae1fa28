"""Otbot's figure of eight in closed loop at 1 kHz, on rolling constraints and on wheels with contact."""

import numpy as np
import pytest
from harness import PERIOD, Harness, robot_named

from krang_dynamics.safety.modes import Mode
from krang_dynamics.scenarios.motions import figure_of_eight
from krang_dynamics.simulation import ContactPlant, PinocchioPlant

PLANTS = {'pinocchio': PinocchioPlant, 'contact': ContactPlant}
# Published disturbance: forces at the pivot [N], from and until [s].
PUSHES = [((0, -150), 3.0, 4.0), ((200, 0), 8.0, 9.0), ((-350, 0), 11.0, 12.0)]


@pytest.fixture(scope='module')
def eight():
    return figure_of_eight()


def drive(plant, eight, duration, pushes=()):
    """Errors of x, y and alpha (K, 3) at every millisecond of the eight."""
    body = PLANTS[plant](robot_named('otbot'), friction=True)
    closed = Harness('otbot', ('rolling_base',), body, ramp_time=0.0)
    closed.step(enable=True)
    closed.step(trajectory=eight.trajectory)
    assert not closed.outputs.refused
    begin = len(closed.history) - 1
    start = closed.history[begin][0]
    for _ in range(round(duration / PERIOD)):
        t = closed.plant.time - start
        acting = [force for force, since, until in pushes if since <= t < until]
        force = acting[0] if acting else (0, 0)
        body.push('platform', np.array([*force, 0, 0, 0, 0.0]))
        closed.step()
    assert closed.outputs.mode is Mode.ACTIVE, closed.outputs.fault
    times, path = closed.path()
    return path[begin:, :3] - eight.at(times[begin:] - start)


@pytest.mark.slow
@pytest.mark.parametrize(
    ('plant', 'bound', 'duration'),
    [
        ('pinocchio', 5e-4, 1.5),
        ('contact', 5e-3, 3.0),
        pytest.param('pinocchio', 5e-4, None, marks=pytest.mark.long),
        pytest.param('contact', 5e-3, None, marks=pytest.mark.long),
    ],
)
def test_the_eight_is_followed(plant, bound, duration, eight):
    error = drive(plant, eight, duration or eight.times[-1])
    assert np.hypot(error[:, 0], error[:, 1]).max() <= bound
    if plant == 'pinocchio':
        assert np.abs(error[:, 2]).max() <= 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(
    ('plant', 'pushes'),
    [
        ('contact', [((0, -150), 0.2, 1.2)]),
        pytest.param('contact', PUSHES, marks=pytest.mark.long),
        pytest.param('pinocchio', PUSHES, marks=pytest.mark.long),
    ],
)
def test_it_is_back_on_its_way_within_five_seconds_of_the_last_push(plant, pushes, eight):
    end = pushes[-1][-1] + 5.0
    error = drive(plant, eight, end + 0.1, pushes)
    distance = np.hypot(error[:, 0], error[:, 1])
    assert distance.max() > 0.02  # the pushes move it
    assert distance[round(end / PERIOD) :].max() < 0.01
