"""The pendubot in closed loop at 1 kHz, in volts, from hanging; the controller has the data sheet's model."""

from copy import deepcopy
from dataclasses import asdict

import numpy as np
import pytest
from harness import PERIOD, PLANTS, closed_loop

import krang_dynamics as kd
from krang_dynamics.safety.modes import Mode

MACHINES = ['pendubot', 'pendubot_station_7', 'pendubot_station_9']
UPRIGHT = 0.2  # rad


def with_supply(name, volts):
    """A shipped robot whose amplifier gives less."""
    joints = {joint: deepcopy(asdict(config)) for joint, config in kd.load_robot(name).config.joints.items()}
    joints['arm']['motor']['supply'] = volts
    return kd.load_robot(name, joints=joints)


def swing_up(machine, volts, plant, duration):
    """Times and angles from hanging at rest; the supply is checked at every step."""
    closed = closed_loop(
        plant,
        with_supply('pendubot', volts),
        plant_robot=kd.load_robot(machine),
        start=np.array([0.0, np.pi]),
        terms=('balance',),
    )
    for _ in range(round(duration / PERIOD)):
        outputs = closed.step()
        assert np.abs(outputs.command).max() <= volts
    assert closed.outputs.mode is Mode.ACTIVE, closed.outputs.fault
    return closed.path()


def check(times, path):
    leaning = np.abs(np.remainder(path[:, 1] + np.pi, 2 * np.pi) - np.pi) > UPRIGHT
    assert times[leaning].max() <= 5.0
    assert np.abs(path[:, 0]).max() <= 2.0


@pytest.mark.parametrize('volts', [15.0, 10.0])
@pytest.mark.parametrize('machine', MACHINES)
@pytest.mark.parametrize('plant', PLANTS)
@pytest.mark.long
def test_it_swings_up_and_balances(machine, volts, plant):
    check(*swing_up(machine, volts, plant, 8.0))


@pytest.mark.slow
@pytest.mark.parametrize(
    ('plant', 'duration'),
    [
        ('pinocchio', 8.0),
        ('mujoco', 8.0),
        pytest.param('pinocchio', 65.0, marks=pytest.mark.long),
        pytest.param('mujoco', 65.0, marks=pytest.mark.long),
    ],
)
def test_it_swings_up_and_stays_upright(plant, duration):
    """The most different station, at the lowest supply."""
    times, path = swing_up('pendubot_station_7', 10.0, plant, duration)
    check(times, path)
    assert np.abs(np.remainder(path[-1, 1] + np.pi, 2 * np.pi) - np.pi) < 1e-3
