"""Campaigns on Dask: the table does not depend on the workers, nor on the death of one."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from functools import partial
from threading import Timer

import pytest
from harness import robot_named

pytest.importorskip('distributed')

from distributed import LocalCluster

from krang_dynamics.errors import KrangError
from krang_dynamics.scenarios.campaign import campaign_run
from krang_dynamics.scenarios.campaign.campaign_loop import run_once
from krang_dynamics.scenarios.campaign.campaign_plan import load_plan
from krang_dynamics.scenarios.campaign.campaign_run import run_campaign

pytestmark = [pytest.mark.processes, pytest.mark.filterwarnings('ignore')]
SEEDS = range(6)


def short_plan(robot):
    return replace(load_plan(robot), duration=3.0)


def test_the_table_does_not_depend_on_the_workers(monkeypatch, capsys):
    monkeypatch.setattr(campaign_run, 'BATCH', 2)
    robot = robot_named('planar_2r')
    plan = short_plan(robot)
    expected = [repr(run_once(robot, plan, seed)) for seed in SEEDS]
    for workers in (1, 2):
        assert [repr(result) for result in run_campaign(robot, plan, SEEDS, workers)] == expected
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if 'start' in line] == ['starting 1 process', 'starting 2 processes']
    assert sum(line.startswith('dashboard: http://127.0.0.1:') for line in lines) == 2


def test_a_scheduler_without_workers_is_named(monkeypatch):
    monkeypatch.setattr('krang_dynamics.bags.parallel.CONNECT', 1.0)
    robot = robot_named('planar_2r')
    with LocalCluster(n_workers=0, processes=False, dashboard_address=':0') as cluster:
        address = cluster.scheduler_address
        with pytest.raises(KrangError, match=f'no workers; start one: dask worker {address}'):
            run_campaign(robot, short_plan(robot), SEEDS, 1, address)


def test_an_interrupt_from_a_terminal_ends_all_processes_without_a_traceback():
    command = [sys.executable, '-c', 'from krang_dynamics.cli.main import command; command()']
    process = subprocess.Popen(
        [*command, 'campaign', 'planar_2r', '--runs', '1000'],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Where these tests run in the background, SIGINT is ignored.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    try:
        lines = [process.stderr.readline(), process.stderr.readline()]
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        lines += process.communicate(timeout=60)[1].splitlines()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert process.returncode == 130
    assert 'Traceback' not in ''.join(lines)
    assert lines[-1] == 'krang: stopped'


@pytest.mark.long
def test_a_cluster_that_loses_a_worker_gives_the_same_table():
    robot = robot_named('planar_2r')
    plan = short_plan(robot)
    expected = [repr(run_once(robot, plan, seed)) for seed in range(40)]
    with LocalCluster(n_workers=0, processes=True, dashboard_address=':0') as cluster:
        address = cluster.scheduler_address
        command = [
            sys.executable,
            '-m',
            'distributed.cli.dask_worker',
            address,
            '--nthreads',
            '1',
            '--no-nanny',
        ]
        workers = [subprocess.Popen(command, stderr=subprocess.DEVNULL) for _ in range(3)]
        timer = Timer(8.0, os.kill, (workers[0].pid, signal.SIGKILL))
        timer.start()
        try:
            results = run_campaign(robot, plan, range(40), 3, address)
        finally:
            timer.cancel()
            for worker in workers:
                worker.kill()
                worker.wait()
    assert [repr(result) for result in results] == expected
