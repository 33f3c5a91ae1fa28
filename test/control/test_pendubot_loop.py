"""The pendubot in closed loop at 1 kHz, in volts, from hanging; the controller believes the data sheet."""

from copy import deepcopy
from dataclasses import asdict

import numpy as np
import pytest
from closed_loop import Loop

import krang_dynamics as kd
from krang_dynamics.control.controller import TorqueController
from krang_dynamics.control.settings import Settings
from krang_dynamics.safety.modes import Mode
from krang_dynamics.simulation import MujocoPlant, PinocchioPlant

PLANTS = {'pinocchio': PinocchioPlant, 'mujoco': MujocoPlant}
MACHINES = ['pendubot', 'pendubot_station_7', 'pendubot_station_9']
UPRIGHT = 0.2  # rad


def with_supply(name, volts):
    """A shipped robot whose amplifier gives less."""
    joints = {joint: deepcopy(asdict(config)) for joint, config in kd.load_robot(name).config.joints.items()}
    joints['arm']['motor']['supply'] = volts
    return kd.load_robot(name, joints=joints)


def swing_up(machine, volts, plant, duration):
    """Times and angles from hanging at rest; the supply is checked at every step."""
    body = PLANTS[plant](kd.load_robot(machine), friction=True)
    body.reset(np.array([0.0, np.pi]), np.zeros(2))
    settings = Settings(terms=('balance',), ramp_time=0.0)
    closed = Loop(TorqueController(with_supply('pendubot', volts), settings), body)
    closed.step(enable=True)
    for _ in range(round(duration / closed.dt)):
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
def test_it_swings_up_and_balances(machine, volts, plant):
    check(*swing_up(machine, volts, plant, 8.0))


@pytest.mark.parametrize('plant', PLANTS)
def test_it_holds_a_minute(plant):
    times, path = swing_up('pendubot_station_7', 10.0, plant, 65.0)
    check(times, path)
    assert np.abs(np.remainder(path[-1, 1] + np.pi, 2 * np.pi) - np.pi) < 1e-3
