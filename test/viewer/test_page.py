"""The page in Chromium, with a controller, a guard and a robot on real topics."""

import re
import time

import numpy as np
import pytest
from bags.bagging import record_model
from nodes.fake_robot import FakeRobot
from nodes.harness import Controller, Guard
from nodes.krang_command import Command
from viewer.browser import changed, needs_browser

from krang_dynamics.colours import BAD, rgb
from krang_dynamics.robot.library import load_robot

pytestmark = [pytest.mark.processes, needs_browser]

PORT = '8470'
MOVED = 0.003  # share of changed pixels when an arm moves; the picture of a resting one hardly changes


def view(harness, *arguments):
    """`krang view` and its address."""
    command = Command(harness, 'view', *arguments, '--port', PORT)
    harness.until(lambda: 'http' in command.log, 'the address of the page')
    return command, re.search(r'http\S+', command.log)[0]


@pytest.fixture(scope='module')
def robot(harness):
    return FakeRobot(harness)


@pytest.fixture(scope='module')
def controller(harness, robot):
    # Software rendering leaves little time to the nodes, whose timeouts are not tested here.
    Guard(harness, robot='planar_2r', state_timeout=2.0, silence=1.0)
    return Controller(
        harness,
        robot='planar_2r',
        terms=['gravity'],
        publish_terms=True,
        state_timeout=2.0,
        limits__state_rate=1.0,
    ).activate()


@pytest.fixture(scope='module')
def page(harness, controller, browser):
    """The servers that were started one after the other, and their address."""
    command, url = view(harness, 'planar_2r')
    browser.open(url)
    browser.until_text('disabled')
    return [command], url


@pytest.fixture
def operator(page, robot, controller, browser):
    """The first tab without an open question and without a fault, also where a test is repeated."""
    browser.switch(0)
    browser.open(page[1])
    if controller.fault:
        browser.click('Release emergency stop')
        browser.click('Yes, release emergency stop')
        controller.rest()
        robot.move(robot.model.home)  # whose weight its efforts fit


def test_enable_asks_first_and_acts_after(operator, controller, browser):
    if controller.mode != 'disabled':
        controller.rest()
    browser.click('Enable')
    browser.until_text('Is everyone out of reach')
    assert controller.mode == 'disabled'
    browser.click('Yes, enable')
    controller.until_mode('active')
    browser.until_text('Torque follows')
    browser.until_text('by term')


def test_the_robot_is_visible_and_moves(page, robot, browser):
    browser.until(lambda: browser.scene().std() > 5, 'a picture')
    time.sleep(2.0)  # the scene fades in
    before = browser.scene()
    robot.move(robot.q + np.array([0.5, -0.8]))
    browser.until(lambda: changed(before, browser.scene()) > MOVED, 'the robot to move')


def test_three_browsers_see_the_same_and_a_page_without_token_has_no_controls(page, controller, browser):
    _, url = page
    browser.open_tab(url)
    browser.until_text('EMERGENCY STOP')
    browser.open_tab(url.rpartition('/')[0].rpartition('/')[0] + '/')  # without the token
    browser.until_text('Controller')
    assert not {'EMERGENCY STOP', 'Enable', 'Disable', 'Clear fault', 'Release'} & set(browser.buttons)


def test_the_emergency_stop_acts_at_once_and_the_fault_is_red(operator, controller, browser):
    if controller.mode != 'active':
        controller.drive()
    browser.click('EMERGENCY STOP')
    clicked = time.time()
    controller.until_fault('emergency_stop')
    assert controller.faulted_at(clicked - 1.0) - clicked < 0.5
    browser.until_text('the emergency stop is pressed', patience=1.0)
    assert browser.colour_of('the emergency stop is pressed') == rgb(BAD)
    browser.until_text('release the emergency stop')  # what to do next
    browser.switch(2)
    browser.until_text('the emergency stop is pressed')


def test_a_refused_request_is_answered_with_its_reason(page, controller, browser):
    browser.switch(0)
    browser.click('Clear fault')
    browser.click('Yes, clear fault')
    browser.until_text('Clear fault was refused')


def test_the_page_comes_back_after_its_server_was_restarted(harness, page, browser):
    servers, url = page
    assert servers[-1].control_c() == 0
    time.sleep(1.0)
    server, again = view(harness, 'planar_2r')
    servers.append(server)
    assert again == url  # same port and token, so an open page can reconnect
    browser.until_text('EMERGENCY STOP')
    browser.until_text('emergency_stop')


def test_nothing_went_wrong_in_browser_and_server(page, browser):
    assert not any('cannot show' in server.log for server in page[0])
    errors = [text for text in browser.errors() if 'WebSocket' not in text]  # while the server was away
    assert errors == []


def test_the_slider_of_a_recording_moves_the_robot(harness, browser, tmp_path):
    arm = load_robot('planar_2r')
    bag = record_model(tmp_path / 'bag', arm, duration=4.0)
    command, url = view(harness, 'planar_2r', '--bag', str(bag))
    browser.open(url)
    browser.until_text('Recording')
    browser.until(lambda: 'Play' in browser.buttons or 'Pause' in browser.buttons, 'the recording')
    browser.until(lambda: 'Play' in browser.buttons, 'the end of the recording')
    time.sleep(2.0)
    before = browser.scene()
    browser.enter('time [s]', 1.3)
    browser.until(lambda: changed(before, browser.scene()) > MOVED, 'the robot to move')
    assert 'error of' in browser.text or 'jump to' in browser.text
    assert command.control_c() == 0
