"""`krang campaign`: one run again, files, errors."""

from dataclasses import replace

import pytest

from krang_dynamics.cli.main import main

pytest.importorskip('distributed')

from krang_dynamics.scenarios.campaign import campaign_run
from krang_dynamics.scenarios.campaign.campaign_loop import run_once
from krang_dynamics.scenarios.campaign.campaign_monitor import UNSAFE


def test_a_run_is_repeated_with_a_picture_and_a_bag(tmp_path, capsys):
    plan = tmp_path / 'plan.yaml'
    plan.write_text('scenario: hold\nduration: 3\nvary: {delay: 0.001}\n')
    picture, bag = tmp_path / 'run.png', tmp_path / 'run'
    command = ['campaign', 'planar_2r', '--plan', str(plan), '--again', '5']
    assert main([*command, '--picture', str(picture), '--record', str(bag)]) == 0
    assert 'seed 5: held' in capsys.readouterr().out
    assert picture.stat().st_size > 1000
    assert main(['validate', str(bag), '--robot', 'planar_2r', '--topic', '/joint_states']) == 0


def test_the_command_that_repeats_a_run_can_be_copied(tmp_path, monkeypatch, capsys):
    def unsafe(robot, plan, seeds, *_):
        return [replace(run_once(robot, plan, seed), outcome=UNSAFE) for seed in seeds]

    monkeypatch.setattr(campaign_run, 'run_campaign', unsafe)
    plan = tmp_path / 'my plan.yaml'
    plan.write_text('scenario: hold\nduration: 3')
    assert main(['campaign', 'planar_2r', '--plan', str(plan), '--runs', '1']) == 1
    assert f"krang campaign planar_2r --plan '{plan}' --again 0" in capsys.readouterr().out


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (['planar_2r', '--plan', 'nowhere.yaml'], 'nowhere.yaml'),
        (['planar_2r', '--runs', '0'], '--runs'),
        (['planar_2r', '--min-held', '60'], '--min-held within 0 .. 1'),
        (['planar_2r', '--max-unsafe', '-1'], '--max-unsafe must be 0 or more'),
        (['planar_2r', '--json', 'a.out', '--html', 'a.out'], 'a.out is given twice'),
        (['planar_2r', '--again', '1', '--picture', 'run.txt'], 'must end in .png'),
        (['planar_2r', '--workers', '0'], '--workers'),
        (['planar_2r', '--again', '-1'], '--again'),
        (['planar_2r', '--picture', 'run.png'], 'give its seed by --again'),
        (['planar_2r', '--record', 'run'], 'give its seed by --again'),
        (['planar_2r', '--again', '1', '--html', 'run.html'], 'with --again, give --picture or --record'),
        (['planar_2r', '--runs', '1', '--scheduler', 'tcp://127.0.0.1:9'], 'no scheduler'),
    ],
)
def test_an_error_is_one_line(refused, monkeypatch, arguments, message):
    monkeypatch.setattr('krang_dynamics.bags.parallel.CONNECT', 0.5)
    assert message in refused('campaign', *arguments)
