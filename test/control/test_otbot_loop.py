"""Otbot's figure of eight in closed loop at 1 kHz, on rolling constraints and on wheels with contact."""

import numpy as np
import pytest
from closed_loop import Loop

import krang_dynamics as kd
from krang_dynamics.control.controller import TorqueController
from krang_dynamics.control.settings import Settings
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
    robot = kd.load_robot('otbot')
    body = PLANTS[plant](robot, friction=True)
    closed = Loop(TorqueController(robot, Settings(terms=('rolling_base',), ramp_time=0.0)), body)
    closed.step(enable=True)
    closed.step(trajectory=eight.trajectory)
    assert not closed.outputs.refused
    begin = len(closed.history) - 1
    start = closed.history[begin][0]
    for _ in range(round(duration / closed.dt)):
        t = closed.plant.time - start
        acting = [force for force, since, until in pushes if since <= t < until]
        force = acting[0] if acting else (0, 0)
        body.push('platform', np.array([*force, 0, 0, 0, 0.0]))
        closed.step()
    assert closed.outputs.mode is Mode.ACTIVE, closed.outputs.fault
    times, path = closed.path()
    return path[begin:, :3] - eight.at(times[begin:] - start)


@pytest.mark.parametrize(('plant', 'bound'), [('pinocchio', 5e-4), ('contact', 5e-3)])
def test_the_eight_is_followed(plant, bound, eight):
    error = drive(plant, eight, eight.times[-1])
    assert np.hypot(error[:, 0], error[:, 1]).max() <= bound
    if plant == 'pinocchio':
        assert np.abs(error[:, 2]).max() <= 1e-3


@pytest.mark.parametrize('plant', PLANTS)
def test_it_is_back_on_its_way_within_five_seconds_of_the_last_push(plant, eight):
    error = drive(plant, eight, 17.1, PUSHES)
    distance = np.hypot(error[:, 0], error[:, 1])
    assert distance.max() > 0.02  # the pushes are felt
    assert distance[17000:].max() < 0.01
