"""State and faults in words; text of others is escaped."""

from dataclasses import replace

import numpy as np

from krang_dynamics.bags.observed_robot import ObservedRobot, Report
from krang_dynamics.control.node_state import NodeState
from krang_dynamics.robot.library import load_robot
from krang_dynamics.safety.modes import Fault
from krang_dynamics.viewer.words import charts_html, joints_html, parameters_html, state_html

ARM = load_robot('planar_2r')
NAME = '/torque_controller'
ACTIVE = NodeState('mode', 0.0, '', 'active', None, 'planar_2r', (), {'terms': ['gravity'], 'damping': None})
STOPPING = replace(ACTIVE, mode='stopping')
RUNNING = replace(
    ObservedRobot(ARM).snapshot(0.0), age=0.0, controller=ACTIVE, reports={NAME: Report(0, 'active', {})}
)


def test_a_fault_has_its_reason_and_the_next_step():
    state = replace(ACTIVE, mode='fault', fault=Fault('following_error', 'joint_1: <0.3> rad & more'))
    html = state_html(replace(RUNNING, controller=state), NAME, '')
    assert 'following_error: joint_1: &lt;0.3&gt; rad &amp; more' in html
    assert 'Look for an obstacle' in html
    assert 'clear the fault' in html


def test_a_robot_that_is_silent_and_a_node_that_has_ended_are_faults():
    assert 'class="fault"' not in state_html(RUNNING, NAME, '')
    assert 'No joint states for 2 s.' in state_html(replace(RUNNING, age=2.0), NAME, '')
    assert 'no diagnostics any more' in state_html(replace(RUNNING, reports={}), NAME, '')
    assert 'class="fault"' not in state_html(replace(RUNNING, age=2.0, reports={}), NAME, '', is_live=False)


def test_diagnostics_are_sentences():
    values = {'state rate [Hz]': '999.7', 'command rate [Hz]': '998.2', 'step time mean [us]': '180'}
    html = state_html(replace(RUNNING, reports={NAME: Report(0, '', values)}), NAME, '')
    assert '999 states and 998 commands per second, 180 µs per step.' in html


def test_the_table_shows_the_used_share_of_the_limit():
    v, torque = np.array([-1e-5, 0.0]), np.array([-95.0, 5.0])
    snapshot = replace(RUNNING, q=np.array([0.1, np.nan]), v=v, torque=torque)
    html = joints_html(ARM, snapshot, np.array([100.0, 50.0]))
    assert '>95</td>' in html
    assert '>10</td>' in html
    assert '<td>0.100</td><td>0.000</td>' in html
    assert '<td>–</td>' in html  # noqa: RUF001


def test_missing_terms_are_explained_while_torque_is_sent():
    driven = replace(RUNNING, torque=np.ones(2))
    assert 'while the controller is enabled' in charts_html(RUNNING)
    assert 'publish_terms' in charts_html(driven)
    assert 'term observer' in charts_html(driven)
    for shown in (replace(driven, terms={'gravity': np.ones(2)}), replace(driven, controller=STOPPING)):
        assert 'publish_terms' not in charts_html(shown)


def test_parameters_in_force_without_those_that_are_not_set():
    state = replace(ACTIVE, payload=[{'frame': 'tip', 'mass': 1.5}], gravity=[0.0, 0.0, -9.81])
    html = parameters_html(state)
    assert '1.5 kg at tip' in html
    assert '0.00, 0.00, -9.81' in html
    assert 'gravity</td>' in html
    assert 'damping' not in html
