"""P4 on simulated time: timeouts go by /clock, and two seconds of a real clock are the backstop."""

import time

import numpy as np
import pytest
from nodes.fake_robot import FakeRobot, time_message
from nodes.harness import Controller
from nodes.monitor import Monitor
from rosgraph_msgs.msg import Clock

pytestmark = pytest.mark.processes

BACKSTOP = 2.0  # [s]
SLOW = 0.5  # simulated seconds per second


class SimulatedRobot(FakeRobot):
    """Its time goes by /clock, which it publishes itself."""

    def __init__(self, harness):
        self.simulated = 50.0  # [s]
        self.speed = SLOW
        super().__init__(harness)

    def now(self):
        return self.simulated

    def honest(self):
        self.tick()
        super().honest()

    def tick(self):
        self.simulated += self.speed * self.period
        self.publish(Clock(clock=time_message(self.simulated)), '/clock')


@pytest.fixture(scope='module')
def robot(harness):
    return SimulatedRobot(harness)


@pytest.fixture(scope='module')
def controller(harness):
    controller = Controller(
        harness,
        robot='planar_2r',
        terms=['gravity'],
        use_sim_time=True,
        ramp_time=0.4,
        stop__time=0.3,
        stop__blind_time=0.1,
    )
    return controller.activate()


@pytest.fixture
def driving(controller, robot):
    robot.be_honest()
    robot.says()
    controller.rest()
    begin = time.time()
    controller.drive()
    yield controller
    Monitor(controller, robot.model).check(begin)
    assert 'Traceback' not in controller.log


def test_p4_a_simulation_slower_than_real_time_drives(driving, robot):
    robot.says(60)
    assert np.allclose(driving.commands.last.message.data, robot.model.gravity_torque(robot.q))
    assert driving.mode == 'active'


def test_p4_a_paused_simulation_is_no_fault(driving, harness, robot):
    spoke = robot.hushes()
    harness.until(lambda: time.time() > spoke + 0.5 * BACKSTOP, 'half of the backstop')
    assert driving.fault is None
    robot.be_honest()
    robot.says(60)
    assert driving.mode == 'active'


def test_p4_a_simulation_that_never_comes_back_meets_the_backstop(driving, robot):
    spoke = robot.hushes()
    driving.until_fault()
    assert BACKSTOP <= driving.faulted_at(spoke) - spoke <= BACKSTOP + 0.5
    robot.be_honest()
    robot.says(60)
    assert driving.fault is not None


def test_p4_states_that_stall_while_the_clock_goes_on_are_a_fault(driving, harness, robot):
    robot.hushes()
    begin, spoke = robot.simulated, time.time()
    robot.say = robot.tick
    driving.until_fault('state')
    assert driving.faulted_at(spoke) - spoke < BACKSTOP
    assert robot.simulated - begin >= 0.09  # state_timeout, less the tick under way
    harness.until(lambda: not any(driving.commands.last.message.data), 'zero torque')


def test_p4_a_clock_that_jumps_back_does_not_drive_on(driving, robot):
    robot.simulated -= 30.0
    driving.until_fault()
    driving.until_cleared()
    driving.drive()
