"""`krang view`: errors in one line; the page itself is tested in test/viewer/test_page.py."""

import pytest

from krang_dynamics.cli.main import main


@pytest.mark.parametrize(
    ('words', 'message'),
    [
        ([], 'which robot?'),
        (['krangg'], 'krang'),
        (['--bag', 'nowhere'], 'nowhere: does not exist'),
        (['planar_2r', '--bag', 'nowhere', '--map', 'x'], 'nowhere: does not exist'),
    ],
)
def test_an_error_is_one_line(words, message, capsys):
    assert main(['view', *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith('krang: ')
    assert message in line


def test_the_help_has_an_example(capsys):
    with pytest.raises(SystemExit, match='0'):
        main(['view', '--help'])
    assert 'krang view krang' in capsys.readouterr().out
