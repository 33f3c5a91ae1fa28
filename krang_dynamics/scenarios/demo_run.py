"""Runs a demonstration: simulator, controller and guard as processes, a scenario, a table, a plot."""

import re
import signal
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from pathlib import Path
from time import monotonic

from ..bags.io.files import make_way, refuse_bag, refuse_existing, require_suffix
from ..bags.parallel import Progress
from ..errors import InputError, KrangError
from ..robot.library import load_robot
from ..robot.model import Robot
from ..text import number, table
from ..viewer.animation import animate
from .demo_picture import paint
from .demo_record import DemoRecord, record_of
from .demonstrations import scenario_of
from .processes import Processes, private_domain, signals_as
from .scenario import Result, Scenario

PICTURES = ('.png', '.pdf', '.svg')

Message = tuple[str, str, int, bytes]  # topic, type, arrival [ns], bytes


@dataclass(frozen=True)
class DemoOptions:
    """The robot, the engine and the files to write."""

    robot: str
    engine: str = 'mujoco'
    duration: float | None = None  # [s]; None: the whole scenario
    picture: str | None = None  # PNG
    animation: str | None = None  # GIF
    bag: str | None = None
    force: bool = False  # overwrite files


def run_demo(options: DemoOptions) -> int:
    """Exit status: 0 if all criteria are met, else 1. SIGINT and SIGTERM raise KeyboardInterrupt."""
    _check_files(options)
    robot = load_robot(options.robot)
    scenario = scenario_of(robot)
    shortest = min(criterion.end for criterion in scenario.criteria)
    if options.duration is not None and not shortest <= options.duration < inf:
        raise InputError(f'--duration is {options.duration:g} s; the first part ends at {shortest:g} s')
    with signals_as(signal.default_int_handler):
        start = monotonic()
        record, messages = _play(robot, scenario, options)
        results = scenario.evaluate(record)
        if not results:
            raise KrangError(f'no part of the scenario ends within {record.times[-1]:.1f} s; allow more time')
        print('\n'.join(_table(results)))
        skipped = len(scenario.criteria) - len(results)
        if skipped:
            print(f'{skipped} more in the whole scenario of {scenario.duration:g} s')
        print(f'{record.times[-1]:.1f} s simulated by {options.engine} in {monotonic() - start:.0f} s')
        _write_files(robot, scenario, record, results, messages, options)
    return 0 if all(result.passed for result in results) else 1


def _check_files(options: DemoOptions) -> None:
    """Refuse files that cannot be written before the work begins."""
    for path, kinds in ((options.picture, PICTURES), (options.animation, ('.gif',))):
        require_suffix(path, *kinds)
    refuse_existing((options.picture, options.animation), options.force)
    if options.bag is not None:
        refuse_bag(options.bag, options.force)


def _play(robot: Robot, scenario: Scenario, options: DemoOptions) -> tuple[DemoRecord, list[Message]]:
    private_domain()
    from ..nodes.robot_operator import RobotOperator  # needs ROS, and the domain in the environment

    duration = options.duration or scenario.duration
    # At the end the simulated robot may fall: there is no need to wait until it is lowered. It also waits for
    # processes that a busy machine does not run for a while.
    shared = {'robot': options.robot, 'stop.policy': 'zero', 'state_timeout': 1.0, **scenario.shared}
    controller = {
        'terms': list(scenario.terms), 'auto_enable': True, 'publish_terms': True, 'use_sim_time': True,
        'guard': 'torque_guard', 'flight_recorder': '',
    }  # fmt: skip
    simulator = {'engine': options.engine, 'publish_clock': True}
    with Processes() as processes:
        processes.start('torque_controller', {**shared, **controller, **scenario.controller})
        processes.start('torque_guard', {**shared, 'use_sim_time': True})
        guarded = ('-r', 'effort_commands:=guarded/effort_commands')
        processes.start('simulator', {**shared, **simulator, **scenario.simulator}, *guarded)
        operator = RobotOperator(scenario.terms, robot.config.end_effectors, processes.dead)
        if options.bag is not None:
            operator.record_inputs()
        try:
            print('starting simulator, controller and guard', file=sys.stderr, flush=True)
            operator.start()
            progress = Progress('simulated', duration, ' s')
            scenario.play(operator, duration, progress.show)
            progress.end()
            return record_of(robot, scenario.terms, operator), list(operator.messages())
        except KrangError as error:
            log = Path(_picture(robot, options)).with_suffix('.log')
            processes.write_logs(log)
            waiting = re.findall(r'waiting to enable: .*', processes.log('torque_controller'))
            why = f' ({waiting[-1]})' if waiting and not operator.now else ''
            raise KrangError(f'{error}{why}; the log of the nodes is {log}') from None
        finally:
            operator.close()


def _write_files(
    robot: Robot,
    scenario: Scenario,
    record: DemoRecord,
    results: list[Result],
    messages: Iterable[Message],
    options: DemoOptions,
) -> None:
    picture = _picture(robot, options)
    paint(robot, scenario, record, results, picture)
    print(f'picture: {picture}')
    if options.animation is not None:
        print('writing the animation', file=sys.stderr, flush=True)
        animate(robot, record.times, record.q, options.animation)
        print(f'animation: {options.animation}')
    if options.bag is not None:
        _write_bag(options.bag, messages, options.force)
        print(f'bag: {options.bag}')


def _picture(robot: Robot, options: DemoOptions) -> str:
    name = re.sub(r'[^\w.-]', '_', robot.name)  # it may have a slash
    return options.picture or f'krang_demo_{name}.png'


def _table(results: list[Result]) -> list[str]:
    rows = [
        (r.name, number(r.measured), number(r.bound), r.unit, 'yes' if r.passed else 'NO') for r in results
    ]
    return table(('criterion', 'measured', 'at most', 'unit', 'met'), rows)


def _write_bag(path: str, messages: Iterable[Message], force: bool) -> None:
    from ..bags.io.writer import BagWriter

    make_way(path, force)
    with BagWriter(path) as bag:
        for topic, kind, arrival, data in messages:
            bag.write(topic, kind, data, arrival)
