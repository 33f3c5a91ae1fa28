"""Buttons and sliders, clicked through the real server; the robot behind them notes what it is asked."""

import time
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from viewer.protocol_browser import ProtocolBrowser

from krang_dynamics.bags.observed_robot import ObservedRobot
from krang_dynamics.control.node_state import NodeState
from krang_dynamics.robot.library import load_robot
from krang_dynamics.safety.modes import Fault
from krang_dynamics.viewer.controls import gravity_at, tilt_of
from krang_dynamics.viewer.page import Page

ARM = load_robot('planar_2r')
ACTIVE = NodeState(
    'mode', 0.0, '', 'active', None, 'planar_2r', (), {'gains.bandwidth': 10.0}, gravity=[0.0, 0.0, -9.81]
)


class NotedRobot:
    """Notes requests and answers them at once."""

    controller, problem, is_live = '/torque_controller', '', True

    def __init__(self):
        self.asked = []
        self.snapshot = replace(ObservedRobot(ARM).snapshot(0.0), q=ARM.home, controller=ACTIVE)

    hands = ()

    def operate(self):
        pass

    def press_emergency_stop(self):
        self.asked.append('press')

    def release_emergency_stop(self, then):
        self.asked.append('unpress')
        then(True, 'released')

    def move_hand(self, frame, position, quaternion):
        self.asked.append((frame, *position, *quaternion))

    def enable(self, on, then):
        self.asked.append(('enable', on))
        then(True, 'ramping')

    def clear_fault(self, then):
        self.asked.append('clear_fault')
        then(False, 'the emergency stop is still pressed')

    def release(self, then):
        self.asked.append('release')

    def set_parameters(self, values, then):
        self.asked.append(values)


@pytest.fixture(scope='module')
def page(tmp_path_factory):
    robot = NotedRobot()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv('XDG_STATE_HOME', str(tmp_path_factory.mktemp('state')))
        page = Page(ARM, robot, 'localhost', 8490, allow=False)
    page.show(robot.snapshot)
    yield page, robot
    page.close()


@pytest.mark.parametrize(('allow', 'parts'), [(False, 4), (True, 5)])
def test_beyond_localhost_the_address_has_a_token_only_if_control_is_allowed(
    monkeypatch, tmp_path, allow, parts
):
    monkeypatch.setenv('XDG_STATE_HOME', str(tmp_path))
    page = Page(ARM, NotedRobot(), '0.0.0.0', 8495, allow)
    page.close()
    assert len(page.url.split('/')) == parts


@pytest.fixture
def browser(page):
    page, robot = page
    robot.asked.clear()
    with ProtocolBrowser(page.url) as browser:
        browser.until(lambda: 'EMERGENCY STOP' in browser.buttons, 'the controls')
        yield browser


@pytest.mark.parametrize(
    ('button', 'request_'),
    [
        ('enable', ('enable', True)),
        ('disable', ('enable', False)),
        ('clear fault', 'clear_fault'),
        ('release', 'release'),
    ],
)
def test_a_button_asks_first_and_acts_after(page, browser, button, request_):
    asked = page[1].asked
    browser.click(button.capitalize())
    browser.until(lambda: f'{button.capitalize()}?' in browser.titles, 'the question')
    time.sleep(0.1)
    assert asked == []
    browser.click(f'Yes, {button}')
    browser.until(lambda: asked == [request_], 'the request')


def test_the_emergency_stop_acts_at_once_and_can_be_released_after(page, browser):
    page, robot = page
    browser.click('EMERGENCY STOP')
    browser.until(lambda: robot.asked == ['press'], 'the stop', patience=1.0)
    assert browser.titles == []
    fault = Fault('emergency_stop', 'the emergency stop is pressed')
    page.show(replace(robot.snapshot, controller=replace(ACTIVE, mode='fault', fault=fault)))
    browser.click('Release emergency stop')
    browser.click('Yes, release emergency stop')
    browser.until(lambda: robot.asked[-1] == 'unpress', 'the release')
    page.show(robot.snapshot)


def test_the_buttons_are_above_the_table_however_late_a_browser_is(page, browser):
    with page[0].server.atomic():
        for _ in range(30):  # such as charts that were made anew
            page[0].server.gui.add_html('').remove()
    with ProtocolBrowser(page[0].url) as late:
        late.until(lambda: 'EMERGENCY STOP' in late.buttons, 'the controls')
        late.until(lambda: 'torque chart' in late.orders, 'the list of joints')
        table = page[0]._joints.order
        assert late.orders['Operate'] < late.orders['Adjust'] < late.orders['torque chart'] < table


def test_a_refusal_is_shown_with_its_reason(page, browser):
    browser.click('Clear fault')
    browser.click('Yes, clear fault')
    refusal = ('Clear fault was refused', 'the emergency stop is still pressed')
    browser.until(lambda: refusal in browser.answers, 'the answer')


def test_a_slider_sets_its_parameter_and_following_the_controller_sets_nothing(page, browser):
    page, robot = page
    page.show(robot.snapshot)
    sliders = {}

    def found():
        for message in list(browser.messages):
            if message['type'] == 'GuiSliderMessage':
                sliders[message['props']['label']] = message['uuid']
        return 'base tilt about x [deg]' in sliders

    browser.until(found, 'the sliders')
    page.show(replace(robot.snapshot, controller=replace(ACTIVE, parameters={'gains.bandwidth': 20.0})))
    time.sleep(0.3)
    assert robot.asked == []
    change = {'type': 'GuiUpdateMessage', 'uuid': sliders['bandwidth [rad/s]'], 'updates': {'value': 12.5}}
    browser.send(change)
    browser.until(lambda: robot.asked == [{'gains.bandwidth': 12.5}], 'the parameter')
    page.show(robot.snapshot)


def test_a_hand_gets_its_target_when_its_handle_is_released(page, browser):
    page, robot = page
    follows = replace(ACTIVE, parameters={'terms': ['cartesian_impedance']})
    snapshot = replace(robot.snapshot, controller=follows)
    robot.hands = ('tip',)
    page.show(snapshot)

    def found(kind):
        browser.until(lambda: kind in [m['type'] for m in list(browser.messages)], kind)
        return next(m for m in list(browser.messages) if m['type'] == kind)

    switch = found('GuiCheckboxMessage')
    assert 'TransformControlsMessage' not in {m['type'] for m in list(browser.messages)}
    browser.send({'type': 'GuiUpdateMessage', 'uuid': switch['uuid'], 'updates': {'value': True}})
    time.sleep(0.2)
    page.show(snapshot)
    handle = found('TransformControlsMessage')
    name = {'name': handle['name'], 'owner': handle.get('owner', '')}
    browser.send({'type': 'TransformControlsDragStartMessage', **name})
    place = {'wxyz': [1.0, 0.0, 0.0, 0.0], 'position': [0.5, 0.0, 0.25]}
    browser.send({'type': 'TransformControlsUpdateMessage', **name, **place})
    time.sleep(0.1)
    assert robot.asked == []
    browser.send({'type': 'TransformControlsDragEndMessage', **name})
    browser.until(lambda: robot.asked == [('tip', 0.5, 0.0, 0.25, 0.0, 0.0, 0.0, 1.0)], 'the target')
    robot.hands = ()
    page.show(snapshot)
    browser.until(lambda: 'RemoveSceneNodeMessage' in [m['type'] for m in list(browser.messages)], 'the end')


def test_an_observer_has_no_controls_and_a_forged_click_of_the_operators_button_does_nothing(page, browser):
    page, robot = page
    forged = {
        'type': 'GuiUpdateMessage',
        'uuid': browser.buttons['EMERGENCY STOP'],
        'updates': {'value': True},
    }
    with ProtocolBrowser(page.url.rpartition('/')[0].rpartition('/')[0] + '/') as observer:
        observer.until(lambda: any(m['type'] == 'GuiHtmlMessage' for m in observer.messages), 'the state')
        observer.send(forged)
        time.sleep(0.3)
        kinds = {message['type'] for message in observer.messages}
        assert 'MeshMessage' in kinds
        assert not {'GuiButtonMessage', 'GuiSliderMessage', 'GuiDropdownMessage'} & kinds
    assert robot.asked == []


@pytest.mark.parametrize('tilt', [(0, 0), (10, 0), (0, -20), (25, 15), (-5, 30)])
def test_gravity_in_the_axes_of_a_base_that_is_turned_about_y_then_x(tilt):
    about_x, about_y = np.radians(tilt)
    base = pin.utils.rotate('y', about_y) @ pin.utils.rotate('x', about_x)
    gravity = gravity_at(*tilt, 9.81)
    np.testing.assert_allclose(gravity, base.T @ (0, 0, -9.81), atol=1e-12)
    assert tilt_of(gravity) == pytest.approx(tilt)
