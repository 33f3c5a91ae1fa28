"""Many independent tasks on Dask: processes of this machine, or an existing cluster."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..errors import KrangError
from .parallel import worker_environment

CONNECT = 10.0  # longest time to reach a scheduler [s]


def on_cluster(
    function: Callable[[Any], Any], items: Sequence[Any], workers: int, scheduler: str | None = None
) -> Iterator[Any]:
    """Results in the order in which they are ready. Dask repeats the tasks of a worker that dies."""
    with _client(min(workers, len(items)), scheduler) as client:
        from distributed import as_completed

        futures = client.map(function, items, pure=False)
        for future in as_completed(futures):
            yield future.result()
            future.release()


@contextmanager
def _client(workers: int, scheduler: str | None) -> Iterator[Any]:
    """A client of the scheduler at an address, or of worker processes that end with it."""
    import dask
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
        worker_environment(),
        dask.config.set({'distributed.worker.daemon': False}),  # long recordings use processes of their own
        LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=':0', silence_logs=50
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client
