"""Runs a campaign in worker processes, or one of its runs again, with a picture and a bag."""

import pickle
from collections.abc import Sequence
from functools import lru_cache
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from ...bags.io.files import writing
from ...bags.io.html_page import new_figure
from ...bags.io.joint_state_codec import TYPE, JointStateWriter
from ...bags.io.writer import BagWriter
from ...bags.parallel import Progress, on_cluster
from ...robot.model import Robot
from .campaign_loop import EPOCH, RunResult, Trace, run_once, run_under
from .campaign_monitor import FASTEST
from .campaign_plan import Conditions, Plan

BATCH = 4  # runs of one task, few, because they are repeated when a worker dies


def run_campaign(
    robot: Robot, plan: Plan, seeds: Sequence[int], workers: int, scheduler: str | None = None
) -> list[RunResult]:
    """The results in the order of the seeds, whatever the number of workers."""
    job = pickle.dumps((robot, plan))
    batches = [(job, tuple(seeds[i : i + BATCH])) for i in range(0, len(seeds), BATCH)]
    progress = Progress(f'campaign of {robot.name}', len(seeds))
    found: dict[int, RunResult] = {}
    for results in on_cluster(run_batch, batches, workers, scheduler):
        found |= {result.seed: result for result in results}
        progress.show(len(found))
    progress.end()
    return [found[seed] for seed in seeds]


def run_batch(batch: tuple[bytes, Sequence[int]]) -> list[RunResult]:
    """The runs of some seeds, in a worker."""
    job, seeds = batch
    robot, plan = _opened(job)
    return [run_once(robot, plan, seed) for seed in seeds]


@lru_cache(maxsize=2)
def _opened(job: bytes) -> tuple[Robot, Plan]:
    robot, plan = pickle.loads(job)
    return robot, plan


def run_nominal(robot: Robot, plan: Plan) -> RunResult:
    """The run without a disturbance; the others mean little if it fails."""
    return run_under(robot, plan, Conditions(0))


def run_again(robot: Robot, plan: Plan, seed: int, picture: str | None, bag: str | None) -> RunResult:
    """Repeat the run of a seed, and write what it looked like."""
    trace = Trace()
    result = run_once(robot, plan, seed, trace)
    if picture is not None:
        with writing(picture):
            run_figure(robot, result, trace).savefig(picture, dpi=90)
    if bag is not None:
        write_bag(robot, trace, bag)
    return result


def figures_of(robot: Robot, plan: Plan, results: Sequence[RunResult]) -> dict[int, Any]:
    """What these runs looked like, by seed."""
    traces = {result.seed: Trace() for result in results}
    return {
        seed: run_figure(robot, run_once(robot, plan, seed, trace), trace) for seed, trace in traces.items()
    }


def run_figure(robot: Robot, result: RunResult, trace: Trace) -> Any:
    """Positions, torques and the fastest point over time, with the modes of the controller."""
    from matplotlib import colormaps

    figure = new_figure(11, 9)
    values = ', '.join(f'{name} {value:.4g}' for name, value in result.values.items())
    reason = f': {result.reason}' if result.reason else ''
    figure.suptitle(f'{robot.name}, seed {result.seed}, {result.outcome}{reason}\n{values}')
    axes = figure.subplots(3, 1, sharex=True)
    above, middle, below = axes
    for part in axes:
        part.set_prop_cycle(color=colormaps['tab20'](np.arange(20)))
        if isfinite(result.time):  # of the fault, or of the broken promise
            part.axvline(result.time, color='#d62728', lw=1, ls=':')
    lines = above.plot(trace.times, np.array(trace.q), lw=1)
    above.set_prop_cycle(color=[line.get_color() for line in lines])
    above.plot(trace.times, np.array(trace.reference), lw=0.6, ls='--')
    above.set_ylabel('position, reference [rad, m]')
    middle.plot(trace.times, np.array(trace.torque), lw=1)
    middle.set_ylabel('motor torque [N m]')
    below.plot(trace.times, trace.speed, lw=1, color='#222')
    below.axhline(FASTEST, color='#999', lw=1, ls='--')
    below.set(ylabel='fastest point [m/s]', xlabel='time [s]')
    figure.legend(lines, robot.joint_names, fontsize='small', loc='outside right center')
    last = ''
    for time, mode in zip(trace.times, trace.mode, strict=True):
        if mode != last:
            below.axvline(time, lw=0.5, color='#999')
            below.annotate(mode, (time, below.get_ylim()[1]), rotation=90, fontsize='x-small', va='top')
            last = mode
    return figure


def write_bag(robot: Robot, trace: Trace, path: str | Path) -> None:
    """The true states and motor torques as joint_states, and the reference."""
    states, references = JointStateWriter(robot.joint_names), JointStateWriter(robot.joint_names)
    zero = np.zeros(robot.nv)
    with BagWriter(path) as bag:
        for row in zip(trace.times, trace.q, trace.v, trace.torque, trace.reference, strict=True):
            time, q, v, torque, reference = row
            stamp = round((EPOCH + time) * 1e9)
            bag.write('/joint_states', TYPE, states.stamped(divmod(stamp, 10**9), q, v, torque), stamp)
            bag.write(
                '/reference', TYPE, references.stamped(divmod(stamp, 10**9), reference, zero, zero), stamp
            )
