"""The report is one self-contained file, with the data of its charts and the script that draws them."""

import json
import re

import numpy as np
import pytest
from bags.bagging import record_model

import krang_dynamics as kd
from krang_dynamics.bags.validation.html_report import chart, validation_html
from krang_dynamics.bags.validation.validation import validate

pytest.importorskip('rosbags', reason='rosbags is not installed')


@pytest.fixture(scope='module')
def recorded(tmp_path_factory):
    robot = kd.load_robot('planar_2r')
    return robot, record_model(tmp_path_factory.mktemp('bags') / 'bag', robot, duration=6.0, noise=0.1)


def assert_self_contained(page, robot, charts):
    assert page.startswith('<!doctype html>')
    found = re.findall(r'<div class="chart".*?<script type="application/json">(.*?)</script>', page)
    assert len(found) == charts
    for data in map(json.loads, found):
        assert {len(column) for column in data['data']} == {len(data['data'][0])}
        assert len(data['data']) == 1 + len(data['names']) == 1 + len(data['colours'])
    assert not re.search(r'(src|href)=', page)
    assert all(name in page for name in robot.joint_names)


def test_a_validation_report_is_self_contained(recorded):
    robot, path = recorded
    page = validation_html(validate(path, robot))
    assert_self_contained(page, robot, 4)
    order = [page.index(f'<h2>{name}') for name in ('Verdict', 'Measured and', 'Errors', 'Recording')]
    assert order == sorted(order)
    assert page.index('<td>joint_1</td><td>good</td>') < page.index('class="chart"')
    assert page.count('<th>correlation</th>') == 1
    assert 'NaN' not in page.partition('<script>')[0]
    assert len(page) < 0.5e6
    assert 'uPlot (v1' in page
    assert 'new uPlot' in page


def test_a_chart_holds_its_curves_and_cannot_break_out_of_its_script():
    curves = {'</script>': ('#ff0000', np.array([1.0, np.nan, 123456.789]))}
    html = chart('a "title"', np.array([0.0, 0.5, 1.0]), curves, group='x" onload="y')
    data = json.loads(html.partition('json">')[2].partition('</script>')[0])
    assert data['data'] == [[0.0, 0.5, 1.0], [1.0, None, 123460.0]]
    assert data['names'] == ['</script>']
    assert html.count('</script>') == 1
