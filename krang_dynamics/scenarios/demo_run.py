"""`krang demo`: simulator, controller and guard as processes, a scenario, a table, a picture."""

import signal
import sys
from dataclasses import dataclass
from math import inf
from pathlib import Path
from shutil import rmtree
from time import monotonic

from ..errors import InputError, KrangError
from ..robot.library import load_robot
from ..robot.model import Robot
from ..text import number, table
from ..viewer.animation import animate
from .demo_picture import paint
from .processes import Processes, private_domain
from .scenarios import Row, Scenario, scenario_of
from .trace import Record

INTERRUPTED = 128 + signal.SIGINT  # exit status, as shells have it


@dataclass(frozen=True)
class Options:
    """What was asked for on the command line."""

    robot: str
    engine: str = 'mujoco'
    duration: float | None = None  # [s]
    picture: str | None = None  # file of the PNG
    animation: str | None = None  # file of the GIF
    bag: str | None = None
    force: bool = False


def run(options: Options) -> int:
    """Play it; 0 if every bound held, 1 if not, 130 after ^C."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as ^C does
    try:
        return _run(options)
    except KeyboardInterrupt:
        print('\nstopped', file=sys.stderr)
        return INTERRUPTED


def _run(options: Options) -> int:
    robot = load_robot(options.robot)
    scenario = scenario_of(robot)
    picture = options.picture or f'krang_demo_{robot.name}.png'
    _refuse_impossible(options)
    began = monotonic()
    record, heard = _play(robot, scenario, options)
    rows = scenario.judge(record)
    if not rows:
        raise KrangError(f'no part of the scenario ends within {record.times[-1]:.1f} s; give it more time')
    print('\n'.join(_table(rows)))
    if len(rows) < len(scenario.checks):
        print(
            f'{len(scenario.checks) - len(rows)} more where the scenario is played for {scenario.duration:g} s'
        )
    print(f'{record.times[-1]:.1f} s simulated by {options.engine} in {monotonic() - began:.0f} s')
    paint(robot, record, scenario.error(record), picture)
    print(f'picture: {picture}')
    if options.animation is not None:
        animate(robot, record.times, record.q, options.animation)
        print(f'animation: {options.animation}')
    if options.bag is not None:
        _write(options.bag, heard)
        print(f'bag: {options.bag}')
    return 0 if all(row.held for row in rows) else 1


def _refuse_impossible(options: Options) -> None:
    if options.duration is not None and not 0 < options.duration < inf:
        raise InputError(f'--duration is {options.duration:g} s; it must be positive')
    for file in (options.picture, options.animation, options.bag):
        if file is not None and Path(file).exists() and not options.force:
            raise InputError(f'{file} exists; --force writes over it')
    if options.bag is not None and Path(options.bag).exists() and not _is_bag(Path(options.bag)):
        raise InputError(f'{options.bag} exists and is no bag; choose another name')


def _is_bag(folder: Path) -> bool:
    return (folder / 'metadata.yaml').is_file()


def _play(
    robot: Robot, scenario: Scenario, options: Options
) -> tuple[Record, list[tuple[str, str, int, bytes]]]:
    private_domain()
    from .scenario_player import ScenarioPlayer  # needs rclpy, and the domain set

    # Once the scenario is told nobody is hurt by a robot that falls: no need to wait for it to be let down.
    shared = {'robot': options.robot, 'stop.policy': 'zero', **scenario.shared}
    controller = {'terms': scenario.terms, 'auto_enable': True, 'publish_terms': True, 'use_sim_time': True}
    simulator = {'engine': options.engine, 'publish_clock': True, **scenario.simulator}
    with Processes() as processes:
        processes.start('torque_controller', {**shared, **controller, **scenario.controller})
        processes.start('torque_guard', {**shared, 'use_sim_time': True})
        guarded = ('-r', 'effort_commands:=guarded/effort_commands')
        processes.start('simulator', {**shared, **simulator}, *guarded)
        player = ScenarioPlayer(robot, scenario, processes.dead)
        try:
            player.begin()
            player.play(
                options.duration or scenario.duration, _Progress(options.duration or scenario.duration)
            )
            return player.record(), list(player.heard())
        except KrangError as error:
            raise KrangError(f'{error}\n{processes.log("torque_controller")}') from None
        finally:
            player.close()


class _Progress:
    """One line that is written over where there is a terminal, now and then where there is none."""

    def __init__(self, duration: float) -> None:
        self._duration = duration
        self._said_at = -10.0

    def __call__(self, now: float) -> None:
        pause = 0.2 if sys.stderr.isatty() else 5.0
        if monotonic() - self._said_at > pause:
            self._said_at = monotonic()
            start, end = ('\r', '') if sys.stderr.isatty() else ('', '\n')
            print(
                f'{start}simulated {now:5.1f} of {self._duration:.1f} s', end=end, file=sys.stderr, flush=True
            )


def _table(rows: list[Row]) -> list[str]:
    cells = [
        (row.what, number(row.measured), number(row.bound), row.unit, 'yes' if row.held else 'NO')
        for row in rows
    ]
    return table(('what', 'measured', 'at most', 'unit', 'held'), cells)


def _write(path: str, messages: list[tuple[str, str, int, bytes]]) -> None:
    from ..bags.io.writer import BagWriter

    if _is_bag(Path(path)):
        rmtree(path)
    with BagWriter(path) as bag:
        for topic, kind, arrival, data in messages:
            bag.write(topic, kind, data, arrival)
