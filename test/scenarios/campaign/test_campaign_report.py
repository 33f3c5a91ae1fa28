"""Reports of campaigns, from results that are known."""

from dataclasses import replace
from math import isnan, nan

import pytest
from harness import robot_named

from krang_dynamics.bags.io.html_page import new_figure
from krang_dynamics.scenarios.campaign.campaign_loop import RunResult
from krang_dynamics.scenarios.campaign.campaign_plan import DISTURBANCES, load_plan
from krang_dynamics.scenarios.campaign.campaign_report import Campaign

pytest.importorskip('matplotlib')


def result(seed, outcome, **values):
    return RunResult(seed, outcome, 'P13' if outcome == 'unsafe' else '', nan, 0.1, 0.0, 0.0, values)


@pytest.fixture
def campaign():
    plan = load_plan(robot_named('planar_2r'))
    results = [
        result(0, 'held', delay=0.004),
        result(1, 'stopped safely', delay=0.012),
        result(2, 'held', delay=0.009),
        result(3, 'unsafe', push=20.0),
        result(4, 'beyond control', dead_driver=0.0),
        result(5, 'held', delay=0.001, mass=0.1),
        result(6, 'held', weak_driver=0.9),
        result(7, 'stopped safely', weak_driver=0.3),
    ]
    return Campaign('planar_2r', 'krang campaign planar_2r', plan, result(0, 'held'), results)


def row(name):
    return next(row for row in DISTURBANCES if row.name == name)


def test_it_names_the_largest_disturbance_that_is_survived(campaign):
    assert campaign.survived(row('delay')) == (0.009, 0.012)
    assert campaign.survived(row('weak_driver')) == pytest.approx((0.1, 0.7))
    assert isnan(campaign.survived(row('loss'))[0])


def test_the_share_of_held_runs_leaves_out_what_is_beyond_control(campaign):
    assert campaign.held == pytest.approx(4 / 7)
    assert campaign.scores()['time delay'] == pytest.approx(200 / 3)


def test_text_and_html_name_the_unsafe_run(campaign):
    page = campaign.html({3: new_figure(1, 1)})
    for report in (campaign.text(), page):
        assert 'krang campaign planar_2r --again 3' in report
    assert page.count('data:image/png') == 3
    assert '<a href="#run-3">3</a>' in page
    assert 'id="run-3"' in page
    assert campaign.as_json()['outcomes']['unsafe'] == 1


def test_a_set_up_that_fails_without_a_disturbance_is_named_first(campaign):
    assert 'without any disturbance' not in campaign.text()
    failing = replace(campaign, nominal=replace(result(0, 'stopped safely'), reason='following_error'))
    for report in (failing.text(), failing.html({})):
        assert 'without any disturbance the robot is stopped safely (following_error)' in report
    assert failing.as_json()['nominal'] == 'stopped safely following_error'


def test_the_worst_runs_are_unsafe_then_fast(campaign):
    assert [result.outcome for result in campaign.worst()] == [
        'unsafe', 'stopped safely', 'stopped safely', 'beyond control'
    ]  # fmt: skip


def test_a_campaign_without_runs_of_a_kind_has_a_report(campaign):
    assert 'held: 0' in replace(campaign, results=[]).text()
