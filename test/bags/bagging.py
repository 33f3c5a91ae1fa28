"""Helpers of the bag tests: motions, and recordings of them with the torques of the model."""

import numpy as np

from krang_dynamics.bags.io.joint_state_codec import TYPE, encode
from krang_dynamics.bags.io.writer import BagWriter

START = 1_700_000_000_000_000_000  # [ns]


def motion(robot, duration=10.0, rate=200.0, reach=0.4, frequency=0.3):
    """t, q, v, a of sines that differ from joint to joint, about home."""
    t = np.arange(0, duration, 1 / rate)
    omega = 2 * np.pi * frequency * (1 + 0.37 * np.arange(robot.nv))
    phase = omega * t[:, None] + np.arange(robot.nv)
    q = robot.home + reach * np.sin(phase)
    return t, q, reach * omega * np.cos(phase), -reach * omega**2 * np.sin(phase)


def torques(robot, q, v, a):
    """Motor torques, including friction; 0 at passive joints."""
    tau = np.array([robot.inverse_dynamics(*state, friction=True) for state in zip(q, v, a, strict=True)])
    return tau * np.isin(robot.joint_names, robot.actuated_joint_names)


def record(path, names, t, q, v, tau, storage='mcap', topic='/joint_states', stamps=None):
    """A recording of joint states; fields may be None, `stamps` [ns] replace those of t."""
    arrivals = START + np.round(1e9 * np.asarray(t)).astype(np.int64)
    stamps = arrivals if stamps is None else stamps
    with BagWriter(path, storage) as writer:
        for k, arrival in enumerate(arrivals.tolist()):
            fields = [np.zeros(0) if x is None else x[k] for x in (q, v, tau)]
            writer.write(topic, TYPE, encode(names, int(stamps[k]), *fields), arrival)
    return path


def record_model(path, robot, storage='mcap', noise=0.0, **options):
    """A recording with the torques of the robot's model plus noise [N m]."""
    t, q, v, a = motion(robot, **options)
    tau = torques(robot, q, v, a)
    tau = tau + noise * np.random.default_rng(8).normal(size=tau.shape)
    return record(path, robot.joint_names, t, q, v, tau, storage)
