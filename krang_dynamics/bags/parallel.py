"""Work in several processes: windows of recordings in their order, or independent tasks on Dask."""

import os
import pickle
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from itertools import repeat
from multiprocessing import get_context, resource_tracker
from typing import Any, TypeVar

from ..errors import KrangError

Item = TypeVar('Item')
Result = TypeVar('Result')

FEW = 3  # windows; so few are done before a second process has started
QUIET = 2.0  # work that is shorter shows no progress in a log [s]
LOG_PERIOD, TERMINAL_PERIOD = 5.0, 0.2  # between two lines of progress [s]
CONNECT = 10.0  # longest time to reach a scheduler [s]
# Processes share the cores already: each has one thread. They keep the memory of freed arrays, because
# getting it again from the system takes a tenth of their time.
WORKER_ENVIRONMENT = {
    **dict.fromkeys(('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS'), '1'),
    **dict.fromkeys(('MALLOC_MMAP_THRESHOLD_', 'MALLOC_TRIM_THRESHOLD_'), '1000000000'),
}


def run(
    prepare: Callable[[], Callable[[Item], Result]], items: Sequence[Item], what: str
) -> Iterator[Result]:
    """The results in the order of the items, for any number of processes; progress goes to stderr.

    Each process calls `prepare` once, which opens files and models; it must be small when pickled.
    """
    progress = Progress(what, len(items))
    if len(items) <= FEW or os.cpu_count() == 1:
        work = prepare()
        for item in items:
            yield work(item)
            progress.step()
    else:
        with shared_workers() as executor:
            for result in executor.map(_work, repeat(pickle.dumps(prepare)), items):
                yield result
                progress.step()
    progress.end()


@contextmanager
def shared_workers() -> Iterator[ProcessPoolExecutor]:
    """The processes of all runs in this context, which start, and import their libraries, only once."""
    global _workers
    if _workers is not None:
        yield _workers
        return
    # 'spawn', because a fork copies the locks of threads but not the threads.
    with worker_environment(), ProcessPoolExecutor(mp_context=get_context('spawn')) as _workers:
        try:
            yield _workers
        finally:
            _workers = None


def on_cluster(
    function: Callable[[Any], Any], items: Sequence[Any], workers: int, scheduler: str | None = None
) -> Iterator[Any]:
    """Results in the order in which they are ready. Dask repeats the tasks of a worker that dies."""
    with _client(min(workers, len(items)), scheduler) as client:
        from distributed import as_completed

        print(f'dashboard: {client.dashboard_link}', file=sys.stderr, flush=True)
        futures = client.map(function, items, pure=False)
        for future in as_completed(futures):
            yield future.result()
            future.release()


@contextmanager
def _client(workers: int, scheduler: str | None) -> Iterator[Any]:
    """A client of the scheduler at an address, or of worker processes that end with it."""
    if scheduler is None:
        print(f'starting {workers} process{"es" * (workers > 1)}', file=sys.stderr, flush=True)
    import dask
    from distributed import Client, LocalCluster, TimeoutError

    if scheduler is not None:
        try:
            client = Client(scheduler, timeout=CONNECT)
        except (OSError, ValueError) as error:
            raise KrangError(f'--scheduler {scheduler}: no scheduler answers there: {error}') from None
        with client:
            try:
                client.wait_for_workers(1, timeout=CONNECT)
            except TimeoutError:
                raise KrangError(
                    f'--scheduler {scheduler}: it has no workers; start one: dask worker {scheduler}'
                ) from None
            yield client
        return
    resource_tracker.ensure_running()  # its start would let ^C through
    with (
        _interrupts(signal.SIG_BLOCK),  # processes inherit it: ^C on a terminal would reach them as well
        worker_environment(),
        dask.config.set({'distributed.worker.daemon': False}),  # long recordings use processes of their own
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address='127.0.0.1:0',
            silence_logs=50,
        ) as cluster,
        Client(cluster) as client,
        _interrupts(signal.SIG_UNBLOCK),
    ):
        yield client


@contextmanager
def _interrupts(how: int) -> Iterator[None]:
    """Block or unblock ^C in this thread, and in the threads and processes that it starts."""
    before = signal.pthread_sigmask(how, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Progress:
    """Progress on standard error: one line that is overwritten on a terminal, else a line every 5 s."""

    def __init__(self, what: str, count: float, unit: str = '') -> None:
        self.what, self.count, self.unit, self.done = what, count, unit, 0.0
        self._is_terminal = sys.stderr.isatty()
        self._period = TERMINAL_PERIOD if self._is_terminal else LOG_PERIOD  # between two lines [s]
        self._start = time.perf_counter()
        self._due_at = self._start + (TERMINAL_PERIOD if self._is_terminal else QUIET)

    def step(self) -> None:
        """Count one item."""
        self.show(self.done + 1)

    def show(self, done: float) -> None:
        """Report how much of `count` is done, if a line is due."""
        self.done = done
        now = time.perf_counter()
        if now < self._due_at or not done:
            return
        self._due_at = now + self._period
        left = (now - self._start) * max(self.count / done - 1, 0.0)
        text = f'{self.what}: {done:.0f} of {self.count:.0f}{self.unit}, {left:.0f} s left'
        line = f'\r{text:<60}' if self._is_terminal else f'{text}\n'
        print(line, file=sys.stderr, end='', flush=True)

    def end(self) -> None:
        """Clear the line of a terminal."""
        if self._is_terminal:
            print(f'\r{"":<60}\r', file=sys.stderr, end='', flush=True)


@contextmanager
def worker_environment() -> Iterator[None]:
    """Processes started in this context have the WORKER_ENVIRONMENT."""
    before = {name: os.environ.get(name) for name in WORKER_ENVIRONMENT}
    os.environ.update(WORKER_ENVIRONMENT)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


_workers: ProcessPoolExecutor | None = None


@lru_cache(maxsize=1)  # each process opens the files, and builds the robot, once
def _prepared(prepare: bytes) -> Callable[[Any], Any]:
    work: Callable[[Any], Any] = pickle.loads(prepare)()
    return work


def _work(prepare: bytes, item: Any) -> Any:
    return _prepared(prepare)(item)
