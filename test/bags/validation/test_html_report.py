"""Each report is one self-contained file."""

import re

import pytest
from bags.bagging import record_model

import krang_dynamics as kd
from krang_dynamics.bags.identification.identification import identify
from krang_dynamics.bags.validation.html_report import identification_html, validation_html
from krang_dynamics.bags.validation.validation import validate

pytest.importorskip('rosbags', reason='rosbags is not installed')
pytest.importorskip('matplotlib', reason='matplotlib is not installed')


@pytest.fixture(scope='module')
def recorded(tmp_path_factory):
    robot = kd.load_robot('planar_2r')
    return robot, record_model(tmp_path_factory.mktemp('bags') / 'bag', robot, duration=6.0, noise=0.1)


def assert_self_contained(page, robot, images):
    assert page.startswith('<!doctype html>')
    assert len(re.findall(r'src="data:image/png;base64,[A-Za-z0-9+/=]{1000,}"', page)) == images
    assert not re.search(r'(src|href)="(?!data:)', page)
    assert all(name in page for name in robot.joint_names)


def test_a_validation_report_is_self_contained(recorded):
    robot, path = recorded
    page = validation_html(validate(path, robot))
    assert_self_contained(page, robot, 2)
    order = [page.index(f'<h2>{name}') for name in ('Verdict', 'Measured and', 'Errors', 'Recording')]
    assert order == sorted(order)
    assert page.index('<td>joint_1</td><td>good</td>') < page.index('<img')
    assert page.count('<th>correlation</th>') == 1
    assert 'nan' not in re.sub(r'base64,[^"]*', '', page)


def test_an_identification_shows_before_and_after(recorded):
    robot, path = recorded
    page = identification_html(identify([path], robot))
    assert_self_contained(page, robot, 2)
    assert 'joint_1.viscous' in page
    assert 'condition number' in page
