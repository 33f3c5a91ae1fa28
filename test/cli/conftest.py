"""What all commands share: an error is one line and status 2."""

import pytest
from bags.bagging import record_model

import krang_dynamics as kd
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


@pytest.fixture(scope='session')
def bag(tmp_path_factory):
    """A recording of planar_2r with noise."""
    pytest.importorskip('rosbags', reason='rosbags is not installed')
    return str(record_model(tmp_path_factory.mktemp('bags') / 'bag', kd.load_robot('planar_2r'), noise=0.1))
