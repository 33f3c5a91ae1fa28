"""krang send on real topics: what it waits for, what it reports; and the end of a simulated arm."""

import signal

import numpy as np
import pytest
import rclpy
from nodes.harness import Controller, Simulator
from nodes.krang_command import Command
from std_srvs.srv import Trigger

import krang_dynamics as kd
from krang_dynamics.errors import KrangError
from krang_dynamics.nodes.motion_sender import MotionSender

pytestmark = pytest.mark.processes

ROBOT = kd.load_robot('planar_2r')
NAMES = ROBOT.joint_names
ARM = '/arm'


@pytest.fixture(scope='module')
def arm(harness):
    clock = [('/clock', f'{ARM}/clock')]
    shared = {'namespace': ARM, 'remap': clock, 'robot': 'planar_2r'}
    simulator = Simulator(harness, **shared, publish_clock=True, rate=250.0, held=True)
    controller = Controller(
        harness,
        **shared,
        terms=['gravity', 'computed_torque'],
        use_sim_time=True,
        flight_recorder=str(harness.folder / 'flights'),
        **{'ramp_time': 0.2, 'stop__time': 0.3, 'stop__policy': 'zero'},
    )
    controller.activate()
    return simulator, controller


@pytest.fixture
def send(harness, monkeypatch):
    """Sends a trajectory and returns the report; there are no recorders to wait for."""
    monkeypatch.setattr('krang_dynamics.nodes.motion_sender.DISCOVERY', 0.0)
    node = rclpy.create_node('motion_sender', context=harness.context, namespace=ARM)

    def send(*points, timeout=30.0, name=None):
        times, positions = (np.array(x) for x in zip(*points, strict=True))
        sender = MotionSender(node, kd.JointTrajectory(NAMES, times, positions), name)
        sender.wait(timeout)
        return sender.play()

    yield send
    node.destroy_node()


def test_it_waits_for_a_controller_and_says_what_is_missing(arm, send, capsys):
    with pytest.raises(KrangError, match='no controller /arm/other is running'):
        send((1.0, ROBOT.home), timeout=0.3, name='other')
    with pytest.raises(KrangError, match='/arm/torque_controller is disabled; enable it: ros2 service call'):
        send((1.0, ROBOT.home), timeout=1.0)
    assert 'waiting: ' in capsys.readouterr().err


def test_it_sends_a_goal_and_reports_the_errors_of_every_joint(arm, send):
    simulator, controller = arm
    controller.drive()
    lines = send((1.0, ROBOT.home + 0.2)).splitlines()
    assert [line.split()[0] for line in lines[2:]] == list(NAMES)
    assert max(float(line.split()[1]) for line in lines[2:]) < 0.05
    np.testing.assert_allclose(simulator.q, ROBOT.home + 0.2, atol=0.02)


def test_a_refusal_is_reported_with_its_reason(arm, send):
    _, controller = arm
    controller.drive()
    with pytest.raises(KrangError, match=r"refused the motion: joint 'joint_1'.*start at the robot"):
        send((0.0, ROBOT.home + 0.9), (3.0, ROBOT.home))


def test_poses_are_taught_and_played_on_the_command_line(harness, arm, tmp_path):
    """The poses are where the robot stands: only the commands themselves are of interest."""
    _, controller = arm
    controller.drive()
    file, there = str(tmp_path / 'poses.csv'), ['--ros-args', '-r', f'__ns:={ARM}']
    teach = Command(harness, 'teach', file, '--poses', *there, stdin='\n\nq\n')
    assert teach.popen.wait(30) == 0, teach.log
    assert '2 points' in teach.log
    play = Command(harness, 'play', file, *there)
    assert play.popen.wait(30) == 0, play.log
    assert all(name in play.log for name in NAMES)


def test_brakes_hold_a_disabled_arm_and_a_reset_brings_it_home(harness, arm):
    simulator, controller = arm
    controller.drive()
    controller.enable(False)
    controller.until_mode('disabled')
    simulator.goes_on(1.0)
    place = simulator.q
    simulator.goes_on(0.3)
    assert np.array_equal(simulator.q, place)
    assert harness.call(Trigger, f'{ARM}/simulator/reset').success
    simulator.goes_on(0.1)
    assert np.array_equal(simulator.q, ROBOT.home)


def test_an_interrupt_of_all_ends_quietly(harness, arm):
    simulator, controller = arm
    controller.until_cleared()
    controller.drive()
    for process in (simulator, controller):
        process.send(signal.SIGINT)
    for process in (controller, simulator):
        assert process.wait(2.0) == 0
        harness.processes.remove(process)
        assert 'fault' not in process.log
    assert not (harness.folder / 'flights').exists()
