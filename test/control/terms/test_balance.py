"""The pendubot swings up and balances, against a plant written a second time from its equations."""

import numpy as np
import pytest
from reference import pendubot

import krang_dynamics as kd
from krang_dynamics.control.terms.balance import Balance

STATIONS = ('nominal', 'station_7', 'station_9')
SUPPLIES = (15.0, 10.0)  # V
CASES = [(supply, station) for supply in SUPPLIES for station in STATIONS]
GAINS = (
    'arm_speed arm_reach arm_stiffness arm_damping energy_gain energy_surplus full_swing catch_cost fall_cost'
).split()

UPRIGHT = 0.2  # rad
TIME_TO_UPRIGHT = 5.0  # s
ARM = 2.0  # rad
STILL = 1e-3  # rad, of a pendulum that has come to rest
ROUNDING = 1e-9  # V


def pendubot_at(supply):
    """The data sheet's pendubot with another amplifier [V]."""
    constants = {'gear': 70.0, 'torque_constant': 0.00767, 'back_emf': 0.00767, 'resistance': 2.6}
    motor = {**constants, 'supply': supply}
    arm = {'driven': True, 'nominal_torque': 3.1, 'motor': motor}
    return kd.load_robot('pendubot', joints={'arm': arm, 'pendulum': {'driven': False}})


class Loops:
    """Many pendubots side by side, each with its controller, which has the model of the data sheet."""

    def __init__(self, cases, q=(0.0, np.pi), v=(0.0, 0.0), rate=500):
        count = len(cases)
        self.robots = {supply: pendubot_at(supply) for supply in SUPPLIES}
        self.supplies = np.array([supply for supply, _ in cases])
        self.thetas = np.array([pendubot.THETAS[station] for _, station in cases]).T
        self.controllers = [Balance(self.robots[supply]) for supply, _ in cases]
        self.q = np.broadcast_to(q, (count, 2)).astype(float)
        self.v = np.broadcast_to(v, (count, 2)).astype(float)
        self.period = 1 / rate
        self.noise = lambda: 0.0
        self.largest_volts = self.largest_arm = 0.0
        self.last_down = np.zeros(count)  # s, when each pendulum was last away from upright
        self.time = 0.0

    def run(self, duration, push=0.0):
        """Close the loops for a while [s], with a torque [N m] of somebody's hand on the pendulum."""
        for _ in range(round(duration / self.period)):
            volts = self._volts()
            self.largest_volts = np.maximum(self.largest_volts, np.abs(volts))
            self._step(np.clip(volts, -self.supplies, self.supplies), push)
            self.largest_arm = np.maximum(self.largest_arm, np.abs(self.q[:, 0]))
            self.last_down[np.abs(self.pendulum()) > UPRIGHT] = self.time
        return self

    def pendulum(self):
        """Angle from the nearest upright [rad]."""
        return np.remainder(self.q[:, 1] + np.pi, 2 * np.pi) - np.pi

    def _volts(self):
        volts = np.zeros(len(self.q))
        for i, controller in enumerate(self.controllers):
            q, v = self.q[i] + self.noise(), self.v[i] + self.noise()
            tau = controller.drive(q, v)
            volts[i] = controller.robot.motor_command(tau, v)[0]
        return volts

    def _step(self, volts, push):
        """One period by Runge-Kutta of fourth order, the voltage held."""
        h, q, v = self.period, self.q, self.v
        a1 = self._acceleration(q, v, volts, push)
        v2, q2 = v + h / 2 * a1, q + h / 2 * v
        a2 = self._acceleration(q2, v2, volts, push)
        v3, q3 = v + h / 2 * a2, q + h / 2 * v2
        a3 = self._acceleration(q3, v3, volts, push)
        v4, q4 = v + h * a3, q + h * v3
        a4 = self._acceleration(q4, v4, volts, push)
        self.q = q + h / 6 * (v + 2 * v2 + 2 * v3 + v4)
        self.v = v + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
        self.time += h

    def _acceleration(self, q, v, volts, push):
        """Of [pendubot] eq. 2 and 3, in volts: the motor is in theta_5."""
        force = np.stack([volts, np.full_like(volts, pendubot.VOLTS_PER_TORQUE * push)], axis=1)
        force -= pendubot.voltage_equation(q, v, np.zeros_like(v), self.thetas)
        return np.linalg.solve(pendubot.closed_mass_matrix(q, self.thetas), force[:, :, None])[:, :, 0]


def assert_swung_up(loops):
    """Upright in time and ever since, arm and volts within their bounds all the time."""
    assert loops.last_down.max() < TIME_TO_UPRIGHT
    assert loops.largest_arm.max() <= ARM
    assert (loops.largest_volts <= loops.supplies + ROUNDING).all()


def vary_gains(controller, random):
    """Every gain by up to 5 %."""
    for name in GAINS:
        setattr(controller, name, getattr(controller, name) * random.uniform(0.95, 1.05))
    controller.gain = controller.gain * random.uniform(0.95, 1.05, 4)


def balanced():
    """One pendubot that has been upright for long."""
    loops = Loops(CASES[:1], q=(0.0, 0.0))
    loops.controllers[0].mode = 'balance'
    return loops


@pytest.mark.parametrize('count', [3, pytest.param(100, marks=pytest.mark.long)])
def test_from_many_starts_and_with_gains_varied_all_come_upright(count):
    random = np.random.default_rng(1)
    q = np.array([0, np.pi]) + random.uniform(-1, 1, (count, 2)) * [0.3, 0.5]
    cases = [CASES[-1 - i % 6] for i in range(count)]
    loops = Loops(cases, q, random.uniform(-0.3, 0.3, (count, 2)), rate=250)
    for controller in loops.controllers:
        vary_gains(controller, random)
    assert_swung_up(loops.run(TIME_TO_UPRIGHT + 0.2))


@pytest.mark.parametrize(
    ('cases', 'duration'), [(CASES[-1:], 12), pytest.param(CASES, 65, marks=pytest.mark.long)]
)
def test_from_hanging_at_rest_it_comes_upright_and_stays_there(cases, duration):
    loops = Loops(cases, rate=200).run(duration)
    assert_swung_up(loops)
    assert np.abs(loops.pendulum()).max() < STILL
    assert np.abs(loops.q[:, 0]).max() < STILL


@pytest.mark.long  # the default run has the loops of test/control/loops at this rate
def test_it_swings_up_at_a_kilohertz():
    assert_swung_up(Loops(CASES, rate=1000).run(TIME_TO_UPRIGHT + 0.2))


@pytest.mark.parametrize('cases', [CASES[-1:], pytest.param(CASES, marks=pytest.mark.long)])
def test_it_swings_up_with_noise_on_positions_and_speeds(cases):
    loops = Loops(cases, rate=250)
    random = np.random.default_rng(2)
    loops.noise = lambda: random.uniform(-1e-3, 1e-3, 2)
    assert_swung_up(loops.run(TIME_TO_UPRIGHT + 0.2))


def test_a_tap_does_not_bring_it_down():
    loops = balanced().run(0.02, push=0.75)  # 0.015 N m s
    loops.run(2)
    assert loops.largest_arm.max() <= ARM
    assert loops.last_down.max() < 1
    assert loops.controllers[0].mode == 'balance'


@pytest.mark.slow
def test_knocked_down_it_swings_up_again():
    loops = balanced().run(0.02, push=2.5)  # 0.05 N m s
    loops.run(0.3)
    assert loops.controllers[0].mode == 'swing'
    loops.run(TIME_TO_UPRIGHT + 0.2)
    assert_swung_up(loops)
    assert loops.controllers[0].mode == 'balance'


@pytest.mark.parametrize('name', ['pendubot', 'pendubot_station_7', 'pendubot_station_9'])
def test_the_data_sheets_regulator_is_stable_on_every_station(name):
    plant = kd.load_robot(name)
    A, B = plant.linearize(plant.home, np.zeros(2), np.zeros(1))
    gain = Balance(kd.load_robot('pendubot')).gain
    assert np.linalg.eigvals(A - np.outer(B, gain)).real.max() < -1


@pytest.mark.parametrize('supply', SUPPLIES)
def test_torque_is_within_supply_and_effort_and_never_on_the_pendulum(supply):
    robot = pendubot_at(supply)
    balance = Balance(robot)
    for q, v in np.random.default_rng(3).uniform(-1, 1, (300, 2, 2)) * [[[2.5, 10.0], [27.0, 30.0]]]:
        tau = balance.drive(q, v)
        assert tau[1] == 0
        assert abs(robot.motor_command(tau, v)[0]) <= supply + ROUNDING
    resting = [balance.drive(np.array([arm, np.pi]), np.zeros(2))[0] for arm in np.linspace(-2, 2, 9)]
    assert np.abs(resting).max() <= robot.effort_limits[0]


@pytest.mark.parametrize('turns', [-3, 1])
@pytest.mark.parametrize('angle', [0.05, 2.0])
def test_every_upright_is_equal(turns, angle):
    balance = Balance(kd.load_robot('pendubot'))
    v = np.array([0.1, 0.2])
    expected = balance.drive(np.array([0.1, angle]), v)
    np.testing.assert_allclose(balance.drive(np.array([0.1, angle + turns * 2 * np.pi]), v), expected)


def test_between_catching_and_falling_the_mode_stays_until_reset():
    balance = Balance(kd.load_robot('pendubot'))
    between = np.array([0.0, np.sqrt(1.5 / balance.cost[1, 1])])  # x^T P x = 1.5 s
    modes = []
    for q in (between, np.zeros(2), between, np.array([0, np.pi]), between):
        balance.drive(q, np.zeros(2))
        modes.append(balance.mode)
    assert modes == ['swing', 'balance', 'balance', 'swing', 'swing']
    balance.drive(np.zeros(2), np.zeros(2))
    balance.reset()
    assert balance.mode == 'swing'


def test_an_invalid_state_is_refused_by_name():
    balance = Balance(kd.load_robot('pendubot'))
    with pytest.raises(kd.KrangError, match='q'):
        balance.drive(np.array([0.0, np.nan]), np.zeros(2))
    with pytest.raises(kd.KrangError, match='v has shape'):
        balance.drive(np.zeros(2), np.zeros(3))


@pytest.mark.parametrize('name', ['planar_2r', 'otbot', 'krang'])
def test_robots_without_a_free_pendulum_are_refused(name):
    with pytest.raises(kd.KrangError, match='passive'):
        Balance(kd.load_robot(name))


def test_a_home_that_hangs_is_refused():
    with pytest.raises(kd.KrangError, match='upright'):
        Balance(kd.load_robot('pendubot', home={'arm': 0.0, 'pendulum': np.pi}))
