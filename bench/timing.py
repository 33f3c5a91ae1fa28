"""Costs of calls, measured in turns within one run so that all see the same machine."""

import gc
import time

import numpy as np

ROUNDS, CALLS = 200, 100


def median_costs(*calls):
    """Median cost [us] of each call."""
    return np.median([[cost(call) for call in calls] for _ in range(ROUNDS)], axis=0)


def cost(call):
    gc.disable()
    start = time.perf_counter()
    for _ in range(CALLS):
        call()
    elapsed = time.perf_counter() - start
    gc.enable()
    return elapsed / CALLS * 1e6
