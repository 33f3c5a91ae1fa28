"""Runs a campaign: batches of seeds in worker processes, one table."""

import pickle
from collections.abc import Sequence
from functools import lru_cache

from ...bags.parallel import Progress, on_cluster
from ...robot.model import Robot
from .campaign_loop import RunResult, run_once
from .campaign_plan import Plan

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
