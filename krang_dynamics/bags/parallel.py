"""Work on windows of recordings, in several processes if there are many."""

import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any, Generic, TypeVar

Item = TypeVar('Item')
Result = TypeVar('Result')

FEW = 3  # windows; so few are done before a second process has started
THREADS = ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS')


class ParallelJob(ABC, Generic[Item, Result]):
    """The inputs of a worker process, small enough to be pickled."""

    @abstractmethod
    def open(self) -> Callable[[Item], Result]:
        """Open files and models once per process; returns the function that processes one item."""


def run(job: ParallelJob[Item, Result], items: Sequence[Item], what: str) -> Iterator[Result]:
    """The results in the order of the items, for any number of processes; progress goes to stderr."""
    progress = Progress(what, len(items))
    workers = min(os.cpu_count() or 1, len(items))
    if len(items) <= FEW or workers == 1:
        work = job.open()
        for item in items:
            yield work(item)
            progress.step()
    else:
        # 'spawn', because a fork copies the locks of threads but not the threads.
        with (
            one_thread_each(),
            ProcessPoolExecutor(workers, get_context('spawn'), _open, (job,)) as executor,
        ):
            for result in executor.map(_work, items):
                yield result
                progress.step()
    progress.end()


class Progress:
    """A progress line on standard error, only if that is a terminal."""

    def __init__(self, what: str, count: int) -> None:
        self.what, self.count, self.done = what, count, 0
        self._shown = sys.stderr.isatty() and count > 1
        self._start = time.perf_counter()

    def step(self) -> None:
        """Count one item."""
        self.done += 1
        if self._shown:
            spent = time.perf_counter() - self._start
            left = spent / self.done * (self.count - self.done)
            text = f'{self.what}: {self.done} of {self.count}, {left:.0f} s left '
            print(f'\r{text:<60}', file=sys.stderr, end='', flush=True)

    def end(self) -> None:
        """Clear the line."""
        if self._shown:
            print(f'\r{"":<60}\r', file=sys.stderr, end='', flush=True)


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Processes started in this context use one thread each: they share the cores already."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, '1'))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


_opened: Callable[[Any], Any] | None = None


def _open(job: ParallelJob[Any, Any]) -> None:
    global _opened
    _opened = job.open()


def _work(item: Any) -> Any:
    assert _opened is not None
    return _opened(item)
