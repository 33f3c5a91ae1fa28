"""Artificial records of demonstrations."""

import numpy as np

from krang_dynamics.scenarios.demo_record import DemoRecord, TopicLog

STEP = 0.01  # [s]


def ideal(robot, scenario, duration=None):
    """The robot rests at home without error, torque or contact."""
    times = np.arange(0, (duration or scenario.duration) + STEP / 2, STEP)
    q = np.tile(robot.home, (len(times), 1))
    zeros = np.zeros_like(q)
    terms = dict.fromkeys(scenario.terms, zeros)
    wrenches = {frame: TopicLog(times, np.zeros((len(times), 6))) for frame in robot.config.end_effectors}
    return DemoRecord(times, q, q.copy(), zeros, zeros, terms, wrenches)
