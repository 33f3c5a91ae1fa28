"""`krang fleet`: errors before the work begins."""

import pytest

pytest.importorskip('distributed')
pytest.importorskip('pyarrow')

from krang_dynamics.bags.fleet import fleet_table
from krang_dynamics.cli.main import main


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (['nowhere'], 'nowhere: there is no such file or folder'),
        (['.'], 'no bag was found'),
        (['.', '--workers', '0'], '--workers'),
        (['.', '--robots', 'machines.yaml'], 'no bag was found'),
        (['run', '--robots', 'machines.yaml'], 'machine: robot'),
        (['run', '--store', 'machines.yaml'], 'is no table of krang fleet'),
        (['run', '--html', 'f.out', '--json', 'f.out'], 'f.out is given twice'),
    ],
)
def test_an_error_is_one_line(tmp_path, monkeypatch, refused, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'machines.yaml').write_text('- krang\n')
    if 'run' in arguments:
        (tmp_path / 'run').mkdir()
        (tmp_path / 'run' / 'metadata.yaml').touch()
    assert message in refused('fleet', *arguments)


def test_it_is_an_error_if_no_bag_can_be_used(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(fleet_table, 'on_cluster', lambda function, items, *_: map(function, items))
    (tmp_path / 'krang-1').mkdir()
    (tmp_path / 'krang-1' / 'metadata.yaml').touch()
    assert main(['fleet', 'krang-1']) == 2
    printed = capsys.readouterr()
    assert 'krang-1' in printed.out
    assert 'no bag could be used' in printed.err
