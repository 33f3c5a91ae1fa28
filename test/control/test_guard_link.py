"""A controller and its guard: enable needs a live guard, and a guard that is gone is a fault."""

import pytest
from harness import Harness

from krang_dynamics.control.guard_link import LONGEST, GuardLink, heartbeat

NOW = 100.0  # steady [s]
SIMULATED = 5.0  # simulated time of the heartbeat [s]


def link(mode='idle', obstacle='', age=0.0):
    guard = GuardLink('torque_guard')
    guard.take(heartbeat(mode, obstacle), NOW - age, SIMULATED)
    return guard


def test_without_a_heartbeat_there_is_no_guard():
    assert GuardLink('g').problem(NOW) == "no heartbeat of 'g' was received; start it first"


@pytest.mark.parametrize('mode', ['idle', 'relaying', 'stopping'])
def test_a_live_guard_is_no_problem(mode):
    assert link(mode, age=0.3).problem(NOW) == ''
    assert link(mode).mode == mode


def test_a_guard_that_is_gone_is_noticed_within_half_a_second():
    assert LONGEST <= 0.45
    assert "no heartbeat of 'torque_guard' for 0.41 s" in link(age=0.41).problem(NOW)


def test_in_simulated_time_a_guard_is_gone_only_by_both_clocks():
    guard = link(age=3.0)  # of a busy machine
    assert guard.problem(NOW, SIMULATED + 0.3) == ''
    assert 'for 0.50 s' in guard.problem(NOW, SIMULATED + 0.5)
    assert link(age=0.3).problem(NOW, SIMULATED + 9.0) == ''  # a simulation faster than real time


def test_the_reason_of_the_guard_is_passed_on():
    guard = link('fault', 'silence: no command for 0.046 s')
    assert guard.mode == 'fault'
    assert guard.problem(NOW) == "'torque_guard': silence: no command for 0.046 s"


def test_enable_is_refused_without_a_live_guard():
    harness = Harness()
    harness.session.guard_problem = 'no heartbeat'
    assert harness.step(enable=True).refused == ['enable: guard: no heartbeat']
    harness.session.guard_problem = ''
    assert harness.step(enable=True).refused == []


def test_a_running_controller_faults_with_the_reason_of_its_guard():
    harness = Harness().start()
    harness.session.guard_problem = "'torque_guard': velocity: x"
    harness.step()
    assert str(harness.outputs.fault) == "guard: 'torque_guard': velocity: x"
    assert harness.outputs.torque is not None


def test_a_stop_that_has_begun_does_not_become_a_fault():
    harness = Harness().start()
    harness.step(enable=False)
    harness.session.guard_problem = 'no heartbeat'
    harness.step()
    assert harness.fault is None


@pytest.mark.parametrize(
    ('missing', 'present'), [({'guard_problem': 'no heartbeat'}, {'guard_problem': ''}),
                             ({'is_received': False}, {'is_received': True})]
)  # fmt: skip
def test_auto_enable_waits_for_the_guard_and_for_a_subscriber(missing, present):
    harness = Harness(auto_enable=True)
    vars(harness.session).update(missing)
    harness.run(0.2)
    assert harness.session.watch(harness.time + 0.02, harness.clock + 0.02).refused == []
    assert harness.session.is_enable_pending
    vars(harness.session).update(present)
    assert harness.session.missing(0.0) == 'no /clock'
    harness.session.watch(harness.time + 0.03, 0.0)
    assert harness.session.is_enable_pending
    harness.step()
    harness.session.watch(harness.time + 1e-3, harness.clock + 1e-3)
    assert harness.safety.is_driving
