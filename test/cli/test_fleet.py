"""`krang fleet`: errors before the work begins."""

import pytest

pytest.importorskip('distributed')
pytest.importorskip('pyarrow')


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (['nowhere'], 'nowhere: there is no such file or folder'),
        (['.'], 'no bag was found'),
        (['.', '--workers', '0'], '--workers'),
        (['.', '--robots', 'machines.yaml'], 'no bag was found'),
        (['run', '--robots', 'machines.yaml'], 'machine: robot'),
        (['run', '--store', 'machines.yaml'], 'is no table of krang fleet'),
    ],
)
def test_an_error_is_one_line(tmp_path, monkeypatch, refused, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'machines.yaml').write_text('- krang\n')
    if 'run' in arguments:
        (tmp_path / 'run').mkdir()
        (tmp_path / 'run' / 'metadata.yaml').touch()
    assert message in refused('fleet', *arguments)
