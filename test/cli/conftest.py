"""What all commands share: an error is one line and status 2."""

import pytest

from krang_dynamics.cli.main import main


@pytest.fixture
def refused(capsys):
    """Runs a command that must fail, with words in place of main(); the line that it prints."""

    def run(*words):
        capsys.readouterr()
        assert main(list(words)) == 2
        out, error = capsys.readouterr()
        assert out == ''
        assert error.startswith('krang: ')
        assert 'internal error' not in error
        assert error.count('\n') == 1
        return error

    return run
