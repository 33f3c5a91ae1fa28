"""Runs a campaign on Dask: processes of this machine, or an existing cluster."""

import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from ..bags.parallel import Progress, one_thread_each
from ..errors import KrangError
from ..robot.model import Robot
from ..robot.urdf import Urdf
from .campaign_loop import RunResult, run_once
from .campaign_plan import Plan

BATCH = 4  # runs of one task: a task of a second costs little to repeat when a worker dies
CONNECT = 10.0  # longest time to reach a scheduler [s]


def run_campaign(
    robot: Robot, plan: Plan, seeds: Sequence[int], workers: int, scheduler: str | None = None
) -> list[RunResult]:
    """The results in the order of the seeds, whatever the number of workers.

    Dask repeats the runs of a worker that dies.
    """
    job = pickle.dumps((robot.config, robot.urdf.text, str(robot.urdf.source), robot.payloads, plan))
    batches = [tuple(seeds[i : i + BATCH]) for i in range(0, len(seeds), BATCH)]
    progress = Progress(f'campaign of {robot.name}', len(seeds))
    found: dict[int, RunResult] = {}
    with _client(min(workers, len(batches)), scheduler) as client:
        from distributed import as_completed

        futures = client.map(run_batch, [job] * len(batches), batches, pure=False)
        for future in as_completed(futures):
            found |= {result.seed: result for result in future.result()}
            progress.show(len(found))
            future.release()
    progress.end()
    return [found[seed] for seed in seeds]


def run_batch(job: bytes, seeds: Sequence[int]) -> list[RunResult]:
    """The runs of some seeds, in a worker."""
    robot, plan = _opened(job)
    return [run_once(robot, plan, seed) for seed in seeds]


@lru_cache(maxsize=2)
def _opened(job: bytes) -> tuple[Robot, Plan]:
    config, text, source, payloads, plan = pickle.loads(job)
    return Robot(config, Urdf(text, source), payloads), plan


@contextmanager
def _client(workers: int, scheduler: str | None) -> Iterator[Any]:
    """A client of the scheduler at an address, or of worker processes that end with it."""
    from distributed import Client, LocalCluster

    if scheduler is not None:
        try:
            client = Client(scheduler, timeout=CONNECT)
        except (OSError, ValueError) as error:
            raise KrangError(f'--scheduler {scheduler}: no scheduler answers there: {error}') from None
        with client:
            yield client
        return
    with (
        one_thread_each(),
        LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=':0', silence_logs=50
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client
