"""Records of demonstrations that never took place."""

import numpy as np

from krang_dynamics.scenarios.trace import Record, Series

STEP = 0.01  # [s]


def perfect(robot, scenario, duration=None):
    """All goes as asked: it stands at home, and where a scenario pushes or leans, sensors say so."""
    times = np.arange(0, (duration or scenario.duration) + STEP / 2, STEP)
    q = np.tile(robot.home, (len(times), 1))
    nothing = np.zeros_like(q)
    terms = dict.fromkeys(scenario.terms.split(','), nothing)
    wrenches = {frame: Series(times, np.zeros((len(times), 6))) for frame in robot.config.end_effectors}
    return Record(times, q, q.copy(), nothing, nothing, terms, wrenches)
