"""krang bench, on benchmarks of the test."""

import json

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
    assert json.loads(out.read_text()) == {'tiny': [{'what': 'nothing', 'us': 1.5}]}


def test_an_unknown_benchmark_is_an_error_that_lists_the_others(folder, capsys):
    assert main(['bench', 'timing']) == 2
    assert capsys.readouterr().err.endswith('Valid: tiny\n')


def test_the_shipped_benchmarks_are_found():
    assert {'tick', 'node', 'model'} <= set(bench.names())
