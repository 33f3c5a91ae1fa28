"""krang bench, on benchmarks of the test."""

import json
import pickle

import pytest

from krang_dynamics.cli import bench
from krang_dynamics.cli.main import main


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / 'bench').mkdir()
    (tmp_path / 'bench' / 'timing.py').write_text('COST = 1.5\n')
    (tmp_path / 'bench' / 'tiny.py').write_text(
        "from timing import COST\n\ndef run():\n    yield {'what': 'nothing', 'us': COST}\n"
    )
    monkeypatch.setattr(bench, 'share', lambda: tmp_path)
    return tmp_path


def test_a_benchmark_prints_and_writes_its_rows(folder, capsys):
    out = folder / 'tiny.json'
    assert main(['bench', 'tiny', '--json', str(out)]) == 0
    assert 'nothing  1.5' in capsys.readouterr().out
    figures = json.loads(out.read_text())
    assert figures['tiny'] == [{'what': 'nothing', 'us': 1.5}]
    assert 'load' in figures['machine']


def test_a_ratio_that_is_worse_than_the_recorded_one_is_an_error(folder, capsys):
    (folder / 'bench' / 'ratio.py').write_text(
        "def run():\n    yield {'figure': 'step / bare', 'value': 4.0, 'goal': '<= 3', 'verdict': 'missed'}\n"
    )
    for recorded, status in ((3.9, 0), (2.0, 1)):
        earlier = folder / 'recorded.json'
        earlier.write_text(json.dumps({'ratio': [{'figure': 'step / bare', 'value': recorded}]}))
        assert main(['bench', 'ratio', '--compare', str(earlier)]) == status
        assert ('regressions' in capsys.readouterr().out) == bool(status)


def test_processes_that_a_benchmark_starts_find_its_functions(folder):
    assert pickle.loads(pickle.dumps(bench._module('tiny').run)).__module__ == 'tiny'


def test_a_benchmark_without_a_plot_is_an_error(folder, capsys):
    assert main(['bench', 'tiny', '--plot', str(folder / 'x.png')]) == 2
    assert capsys.readouterr().err.endswith('krang: benchmark tiny has no plot; leave --plot out\n')


def test_an_unknown_benchmark_is_an_error_that_lists_the_others(folder, capsys):
    assert main(['bench', 'timing']) == 2
    assert capsys.readouterr().err.endswith('Valid: tiny\n')


def test_the_shipped_benchmarks_are_found():
    assert {'figures', 'tick', 'node', 'model', 'peers', 'growth'} <= set(bench.names())
