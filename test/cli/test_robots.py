"""krang robots."""

import krang_dynamics as kd
from krang_dynamics.cli.main import main


def test_all_shipped_robots_are_listed(capsys):
    assert main(['robots']) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in kd.robots())
