"""Costs of calls within one run; the calls alternate, as they do in a control loop."""

import gc
from time import perf_counter_ns

import numpy as np

ROUNDS = 10_000


def median_costs(*calls, rounds=ROUNDS):
    """Median cost [us] of each call; they alternate, so that machine and caches are the same for all."""
    times = np.empty((rounds, len(calls)))
    gc.collect()
    gc.disable()
    for row in times:
        for i, call in enumerate(calls):
            start = perf_counter_ns()
            call()
            row[i] = perf_counter_ns() - start
    gc.enable()
    return np.median(times, axis=0) / 1000
