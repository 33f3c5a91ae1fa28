"""Self-collision: links that would touch are named with time and distance."""

import numpy as np
import pytest
from harness import Harness, robot_named

from krang_dynamics.control.reference.joint_reference import Reference
from krang_dynamics.control.reference.trajectory import JointTrajectory
from krang_dynamics.control.self_collision import path_problem, pose_problem
from krang_dynamics.errors import InputError
from krang_dynamics.robot.self_distance import SelfDistance
from krang_dynamics.safety.modes import Mode
from krang_dynamics.simulation.mujoco_model import MujocoModel, mujoco_spec

KRANG = robot_named('krang')


@pytest.fixture(scope='module')
def distance():
    return SelfDistance(KRANG)


def touching(distance):
    """A pose in which the arms touch, from random ones."""
    random = np.random.default_rng(0)
    while True:
        q = KRANG.home
        q[3:] = random.uniform(KRANG.lower[3:] + 0.1, KRANG.upper[3:] - 0.1)
        if distance.minimum(q)[0] < 0:
            return q


def prepared(q, time=4.0):
    reference = Reference(KRANG)
    return reference.prepare(JointTrajectory(KRANG.joint_names, np.array([time]), q[None]))


def test_a_trajectory_that_would_touch_is_named_with_links_time_and_distance(distance):
    q = touching(distance)
    text = path_problem(distance, prepared(q, 60.0), KRANG.home, 0.01)
    first, second = distance.minimum(q)[1]
    assert text.startswith('links ')
    assert 'limits.self_distance is 0.01 m at' in text
    assert pose_problem(distance, q, 0.01).startswith(f'links {first!r} and {second!r}: distance -')


def test_a_free_trajectory_and_a_stop_are_no_problem(distance):
    assert path_problem(distance, prepared(KRANG.home + 0.02), KRANG.home, 0.01) == ''
    stop = Reference(KRANG).prepare(JointTrajectory((), np.zeros(0), np.zeros((0, 0))))
    assert path_problem(distance, stop, KRANG.home, 0.01) == ''
    assert pose_problem(distance, KRANG.home, 0.01) == ''


def test_a_robot_that_is_too_near_may_move_out(distance):
    near = distance.minimum(KRANG.home)[0]
    out = KRANG.home
    out[6] -= np.sign(out[6]) * 0.2
    if distance.minimum(out)[0] > near:
        assert path_problem(distance, prepared(out), KRANG.home, near + 0.01) == ''


def test_a_distance_below_the_limit_is_a_fault_and_prevents_enable():
    loop = Harness('planar_2r', terms=('gravity',)).start()
    loop.session.self_problem = "links 'a' and 'b': distance 0.001 m"
    loop.step()
    assert (loop.outputs.mode, loop.fault) == (Mode.FAULT, 'self_distance')
    other = Harness('planar_2r', terms=('gravity',))
    other.session.self_problem = 'near'
    assert 'near' in other.step(enable=True).refused[0]


def random_path(random):
    """A trajectory of both arms over up to three random poses, and its motion from home."""
    start = np.array([KRANG.home, *np.zeros((3, 17))])
    while True:
        q = np.tile(KRANG.home, (random.integers(1, 4), 1))
        q[:, 3:] += random.uniform(-0.7, 0.7, (len(q), 14))
        q = np.clip(q, KRANG.lower + 0.05, KRANG.upper - 0.05)
        ways = np.abs(np.diff([KRANG.home, *q], axis=0))
        times = np.cumsum(4 * (ways / KRANG.velocity_limits).max(axis=1) + 0.5)
        path = Reference(KRANG).prepare(JointTrajectory(KRANG.joint_names, times, q))
        try:
            return path, path.joined(start, 0.0)
        except InputError:  # it passes a position limit between its points
            continue


@pytest.mark.slow
@pytest.mark.parametrize('count', [5, pytest.param(1000, marks=pytest.mark.long)])
def test_trajectories_that_touch_in_mujoco_are_refused_and_free_ones_are_not(distance, count):
    """MuJoCo finds the contacts of the same shapes, 1,000 times along each trajectory."""
    mujoco = pytest.importorskip('mujoco')
    robot = MujocoModel(mujoco_spec(KRANG, KRANG.urdf.text.decode(), 1e-3, False), KRANG.joint_names)
    model, data = robot.model, robot.data
    links = [model.body(body).name for body in model.geom_bodyid]
    pairs = {frozenset(pair) for pair in distance.pairs}

    def touches(q):
        data.qpos[robot.q] = q
        mujoco.mj_kinematics(model, data)
        mujoco.mj_collision(model, data)
        return any(frozenset(links[geom] for geom in contact.geom) in pairs for contact in data.contact)

    random = np.random.default_rng(7)
    touching, refused = np.zeros((2, count), dtype=bool)
    for k in range(count):
        path, motion = random_path(random)
        refused[k] = bool(path_problem(distance, path, KRANG.home, 1e-5))
        touching[k] = any(touches(motion.sample(t)[0]) for t in np.linspace(0, path.duration, 1000))
    print(
        f'{touching.sum()} touch, {(touching & ~refused).sum()} of them accepted; '
        f'{(~touching).sum()} are free, {(refused & ~touching).sum()} of them refused'
    )
    assert touching.any()
    assert not (touching & ~refused).any()
    assert (refused & ~touching).sum() <= 0.02 * (~touching).sum()
