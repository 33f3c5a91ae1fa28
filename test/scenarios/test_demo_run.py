"""A demonstration, given its record: table, exit status and files; test/cli/test_demo.py runs the nodes."""

import pytest
from scenarios.ideal_record import ideal

from krang_dynamics.errors import KrangError
from krang_dynamics.scenarios import demo_run
from krang_dynamics.scenarios.demo_run import DemoOptions, run_demo

pytest.importorskip('matplotlib', reason='matplotlib is not installed; pip install matplotlib pillow')


@pytest.fixture
def play(monkeypatch, tmp_path):
    """Replaces the nodes by an ideal record, shifted by a control error [rad]."""
    monkeypatch.chdir(tmp_path)

    def replace(duration=None, error=0.0):
        def played(robot, scenario, options):
            record = ideal(robot, scenario, duration)
            record.q[:] += error
            return record, [('/topic', 'std_msgs/msg/Bool', 1, b'\0\1\0\0\1')]

        monkeypatch.setattr(demo_run, '_play', played)

    return replace


@pytest.mark.slow
def test_all_criteria_met_is_status_zero_with_all_files(play, tmp_path, capsys):
    pytest.importorskip('rosbags', reason='rosbags is not installed')
    play()
    assert run_demo(DemoOptions('planar_2r', animation='a.gif', bag='bag')) == 0
    out = capsys.readouterr().out
    assert out.count('yes') == 2
    assert 'more in the whole scenario' not in out
    assert {path.name for path in tmp_path.iterdir()} == {'krang_demo_planar_2r.png', 'a.gif', 'bag'}


def test_a_missed_criterion_is_status_one(play, capsys):
    play(error=0.1)
    assert run_demo(DemoOptions('planar_2r', picture='p.png')) == 1
    assert capsys.readouterr().out.count('NO') == 2


def test_a_demonstration_without_a_completed_part_is_an_error(play):
    play(duration=0.5)
    with pytest.raises(KrangError, match=r'no part of the scenario ends within 0\.5 s'):
        run_demo(DemoOptions('planar_2r'))
