"""Costs of calls within one run, each between the others as in a control loop, not in a loop of its own."""

import gc
from time import perf_counter_ns

import numpy as np

ROUNDS = 10_000


def median_costs(*calls, rounds=ROUNDS):
    """Median cost [us] of each call; they take turns, so that all find the same machine and caches."""
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
