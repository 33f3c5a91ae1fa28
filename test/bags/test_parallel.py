"""Several processes give the result of one process."""

import os

import pytest
from bags.bagging import record_model

import krang_dynamics as kd
from krang_dynamics.bags import parallel
from krang_dynamics.bags.parallel import Progress, worker_environment
from krang_dynamics.bags.validation.filtering import Filtering
from krang_dynamics.bags.validation.validation import validate

pytest.importorskip('rosbags', reason='rosbags is not installed')


@pytest.mark.slow
def test_the_result_does_not_depend_on_the_number_of_processes(tmp_path, monkeypatch):
    robot = kd.load_robot('planar_2r')
    path = record_model(tmp_path / 'bag', robot, noise=0.1)
    whole = validate(path, robot, None, Filtering(10.0))
    monkeypatch.setattr('krang_dynamics.bags.validation.recording.WINDOW', 250)
    results = []
    for cores in (1, 2):
        monkeypatch.setattr(parallel.os, 'cpu_count', lambda cores=cores: cores)
        results.append(validate(path, robot, None, Filtering(10.0)).as_json())
    assert results[0] == results[1]
    for name, levels in whole.joints.items():
        parted = results[0]['joints'][name]['friction']
        assert parted == pytest.approx(levels['friction'].as_dict(), rel=1e-6)


def test_the_environment_is_restored(monkeypatch):
    monkeypatch.setenv('OMP_NUM_THREADS', '7')
    monkeypatch.delenv('MKL_NUM_THREADS', raising=False)
    with worker_environment():
        assert os.environ['OMP_NUM_THREADS'] == '1'
    assert os.environ['OMP_NUM_THREADS'] == '7'
    assert 'MKL_NUM_THREADS' not in os.environ


def test_short_work_shows_no_progress_in_a_log(capsys):
    progress = Progress('working', 5)
    progress.step()
    progress.end()
    assert capsys.readouterr().err == ''


def test_long_work_shows_progress_also_in_a_log(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(parallel.time, 'perf_counter', lambda: now[0])
    progress = Progress('working', 10, ' s')
    for now[0] in (1.0, 3.0, 4.0, 9.0):
        progress.step()
    progress.end()
    lines = capsys.readouterr().err.splitlines()
    assert lines == ['working: 2 of 10 s, 12 s left', 'working: 4 of 10 s, 14 s left']


def test_a_terminal_shows_one_line_that_is_cleared(capsys, monkeypatch):
    monkeypatch.setattr(parallel.sys.stderr, 'isatty', lambda: True, raising=False)
    monkeypatch.setattr(parallel, 'TERMINAL_PERIOD', 0.0)
    progress = Progress('working', 5)
    progress.step()
    progress.end()
    shown = capsys.readouterr().err
    assert shown.startswith('\rworking: 1 of 5')
    assert shown.endswith('\r')
    assert '\n' not in shown
