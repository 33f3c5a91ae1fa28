"""Costs of calls within one run, and figures with a goal."""

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


def figure(name, value, goal, at_least=False, **details):
    """A row with a goal: the value may not be above it, or with `at_least` not below it."""
    met = value >= goal if at_least else value <= goal
    bound = f'{">=" if at_least else "<="} {goal:g}'
    return {'figure': name, **details, 'value': value, 'goal': bound, 'verdict': 'met' if met else 'missed'}


def ratio(name, ours, bare, goal):
    """A figure that is our cost over the cost of the bare calls [us]."""
    return figure(name, ours / bare, goal, **{'ours us': ours, 'bare us': bare})
