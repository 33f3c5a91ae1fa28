"""Joints from an inertial unit and from odometry, against poses and Jacobians of the same robot."""

import numpy as np
import pytest
from harness import robot_named
from scipy.spatial.transform import Rotation

import krang_dynamics as kd
from krang_dynamics.control.sensors import ImuSample, ImuSource, OdomSample, OdomSource
from krang_dynamics.errors import ConfigError, InputError

EXACT = 1e-12  # rad, m and per second
STAMP, ARRIVAL = 1000.0, 10.0  # [s]
INERTIAL = (
    '<inertial><origin xyz="0.1 0 0.2"/><mass value="3"/>'
    '<inertia ixx="0.2" iyy="0.2" izz="0.2" ixy="0" ixz="0" iyz="0"/></inertial>'
)
LIMIT = '<limit lower="{}" upper="{}" effort="9" velocity="9"/>'


def joint(name, kind, parent, child, inside=''):
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>{inside}</joint>'
    )


# A body that leans about an oblique axis, on a root that stands askew, with the unit on a plate welded to it.
LEAN = '<origin xyz="0.1 0.2 0.3" rpy="-0.8 0.3 1.9"/><axis xyz="0.6 -0.5 0.4"/>'
LEANER = (
    '<robot name="leaner"><link name="rock"/><link name="foot"/><link name="plate"/>'
    f'<link name="body">{INERTIAL}</link><link name="arm">{INERTIAL}</link>'
    + joint('weld', 'fixed', 'rock', 'foot', '<origin xyz="0 1 0" rpy="0.4 -0.7 0.2"/>')
    + joint('lean', 'revolute', 'foot', 'body', LEAN + LIMIT.format(-1, 4))
    + joint('bolts', 'fixed', 'body', 'plate', '<origin xyz="0.2 0 0.1" rpy="1 0.5 -2"/>')
    + joint('elbow', 'continuous', 'plate', 'arm', '<origin xyz="0 0 0.5"/><axis xyz="1 0 0"/>')
    + '</robot>'
)
ASKEW = (2.0, -4.0, -8.5)  # m/s2
UNIT = {'link': 'plate', 'mount_rpy': [0.3, -1.1, 2.2], 'feeds': 'joint'}
FED = {'lean': {'driven': True, 'state': 'imu'}, 'elbow': {'driven': True}}


def leaner(text=LEANER, **overrides):
    return kd.load_robot(text, **{'joints': FED, 'imu': UNIT, 'gravity': ASKEW, **overrides})


def world_from_root(gravity, heading):
    """A rotation that makes gravity point down the world's z, with any heading."""
    level, _ = Rotation.align_vectors([[0, 0, -1]], [np.array(gravity) / np.linalg.norm(gravity)])
    return Rotation.from_euler('z', heading) * level


def imu_sample(robot, q, v, heading=0.0):
    """What a unit on the robot measures."""
    imu = robot.config.imu
    root_from_link = Rotation.from_matrix(robot.frame_pose(q, imu.link)[:3, :3])
    mount = Rotation.from_euler('xyz', imu.mount_rpy)
    orientation = world_from_root(robot.config.gravity, heading) * root_from_link * mount
    spin = mount.inv().apply(robot.jacobian(q, imu.link, 'local')[3:] @ v)
    return ImuSample(orientation.as_quat(), spin, STAMP, ARRIVAL)


def still(orientation):
    return ImuSample(np.array(orientation), np.zeros(3), STAMP, ARRIVAL)


# -- a joint from an inertial unit ---------------------------------------------------------------------


@pytest.mark.parametrize('robot', [robot_named('krang'), leaner()], ids=lambda robot: robot.name)
def test_the_unit_gives_the_joint_at_any_heading_of_its_own(robot):
    source = ImuSource(robot)
    fed = next(name for name, joint in robot.config.joints.items() if joint.state == 'imu')
    i = robot.joint_names.index(fed)
    random = np.random.default_rng(1)
    for _ in range(200):
        q, v = random.uniform(-3, 3, (2, robot.nv))
        q[i] = random.uniform(robot.lower[i], robot.upper[i])
        sample = source.samples(imu_sample(robot, q, v, random.uniform(-9, 9)))
        assert sample.names == (fed,)
        assert sample.position == pytest.approx([q[i]], abs=EXACT)
        assert sample.velocity == pytest.approx([v[i]], abs=EXACT)
        assert (len(sample.effort), sample.stamp, sample.arrival) == (0, STAMP, ARRIVAL)


def test_krang_leans_forwards_when_its_unit_does():
    """By hand: x forward and z up at zero, so a turn about the unit's y lowers the nose."""
    source = ImuSource(robot_named('krang'))
    tilted = np.array([0.0, np.sin(0.15), 0.0, np.cos(0.15)])
    sample = source.samples(ImuSample(tilted, np.array([7.0, 0.5, -3.0]), STAMP, ARRIVAL))
    assert sample.position == pytest.approx([0.3], abs=EXACT)
    assert sample.velocity == pytest.approx([0.5], abs=EXACT)


def test_ground_that_slopes_sideways_does_not_change_the_pitch():
    source = ImuSource(robot_named('krang'))
    orientation = Rotation.from_euler('x', 0.2) * Rotation.from_euler('y', 0.3)
    assert source.samples(still(orientation.as_quat())).position == pytest.approx([0.3], abs=EXACT)


def test_just_outside_the_limits_the_angle_is_the_one_next_to_them():
    robot = leaner()
    source = ImuSource(robot)
    for angle in (-1.4, 4.4):
        sample = source.samples(imu_sample(robot, np.array([angle, 0.0]), np.zeros(2)))
        assert sample.position == pytest.approx([angle], abs=EXACT)


def test_a_joint_without_limits_may_turn_many_times():
    robot = leaner(LEANER.replace('"lean" type="revolute"', '"lean" type="continuous"'))
    source = ImuSource(robot)
    for angle in [*np.arange(0, 20, 0.5), *np.arange(20, -20, -0.5)]:
        sample = source.samples(imu_sample(robot, np.array([angle, 0.0]), np.zeros(2)))
        assert sample.position == pytest.approx([angle], abs=EXACT)


def test_a_rate_that_is_not_measured_is_missing():
    sample = ImuSample(np.array([0.0, 0.0, 0.0, 1.0]), np.full(3, np.nan), STAMP, ARRIVAL)
    assert np.isnan(ImuSource(robot_named('krang')).samples(sample).velocity).all()


def test_quaternions_are_normalised():
    source = ImuSource(robot_named('krang'))
    tilted = np.array([0.0, np.sin(0.15), 0.0, np.cos(0.15)])
    for length in (0.91, -1.09):
        assert source.samples(still(length * tilted)).position == pytest.approx([0.3], abs=EXACT)


NO_ROTATION = [
    (0, 0, 0, 0),
    (0, 0, 0, 0.89),
    (0.8, 0, 0.8, 0),
    (np.nan, 0, 0, 1),
    (0, np.inf, 0, 0),
    (1e200,) * 4,
]


@pytest.mark.parametrize('orientation', NO_ROTATION)
def test_an_invalid_rotation_is_refused(orientation):
    orientation = np.array(orientation, dtype=float)
    with pytest.raises(InputError, match=r'imu: orientation .* a rotation has length 1'):
        ImuSource(robot_named('krang')).samples(still(orientation))
    otbot = robot_named('otbot')
    with pytest.raises(InputError, match=r'odom: orientation .* a rotation has length 1'):
        OdomSource(otbot).samples(
            OdomSample(0, 0, orientation, *np.zeros((2, 3)), STAMP, ARRIVAL), *np.zeros((2, 6))
        )


def test_a_robot_on_its_side_has_no_measurable_pitch():
    source = ImuSource(robot_named('krang'))
    for roll, seen in ((1.45, True), (1.55, False), (-1.55, False)):
        sample = still(Rotation.from_euler('x', roll).as_quat())
        if seen:
            assert source.samples(sample).position == pytest.approx([0.0], abs=EXACT)
        else:
            with pytest.raises(InputError, match="axis of joint 'base_pitch'"):
                source.samples(sample)


@pytest.mark.parametrize(
    ('make', 'words'),
    [
        (lambda: robot_named('otbot'), 'no IMU'),
        (lambda: leaner(gravity=(0, 0, 0)), 'gravity is 0'),
        (lambda: leaner(imu={**UNIT, 'link': 'arm'}), "moved by elbow, lean; only 'lean'"),
        (lambda: leaner(imu={**UNIT, 'link': 'foot'}), "moved by no joint; only 'lean'"),
        (lambda: leaner(imu={**UNIT, 'feeds': 'gravity'}, joints=DRIVEN), 'moved by lean; it must be fixed'),
        (lambda: leaner(LEANER.replace('revolute', 'prismatic')), 'is prismatic'),
        (lambda: leaner(gravity=tuple(9.81 * lean_axis())), "axis of joint 'lean'"),
        (lambda: leaner(gravity=tuple(-9.81 * lean_axis())), "axis of joint 'lean'"),
    ],
)
def test_a_unit_that_cannot_measure_its_joint_is_refused(make, words):
    with pytest.raises(ConfigError, match=words):
        ImuSource(make())


DRIVEN = {'lean': {'driven': True}, 'elbow': {'driven': True}}


def lean_axis():
    """In the root's axes."""
    return leaner().jacobian(np.zeros(2), 'body')[3:, 0]


# -- gravity from an inertial unit ---------------------------------------------------------------------


def test_the_unit_gives_gravity_in_the_roots_axes():
    robot = leaner(imu={**UNIT, 'link': 'foot', 'feeds': 'gravity'}, joints=DRIVEN)
    source = ImuSource(robot)
    assert source.feeds == 'gravity'
    size = np.linalg.norm(ASKEW)
    for gravity, heading in zip(np.random.default_rng(2).normal(size=(50, 3)), range(50), strict=True):
        gravity *= size / np.linalg.norm(gravity)
        tilted = robot.with_gravity(gravity)
        sample = imu_sample(tilted, np.zeros(2), np.zeros(2), heading)
        np.testing.assert_allclose(source.gravity(sample), gravity, atol=size * EXACT)


# -- a planar base from odometry -----------------------------------------------------------------------

# A car that its slides carry askew and whose heading counts clockwise; a trailer on a hitch behind it has
# odometry at a corner, in a link whose axes are turned every way.
SPAN = LIMIT.format(-99, 99)
NORTH = '<origin xyz="3 -2 0.1" rpy="0 0 0.7"/><axis xyz="0 -1 0"/>'
SLANT = '<origin rpy="0 0 0.4"/><axis xyz="1 0.3 0"/>'
YAW = '<origin xyz="0.3 0.1 0" rpy="0 0 1"/><axis xyz="0 0 -1"/>'
HITCH = '<origin xyz="-0.8 0.1 0"/><axis xyz="0 0 1"/>'
TRAIN = (
    '<robot name="train"><link name="yard"/><link name="rail"/><link name="plate"/><link name="corner"/>'
    f'<link name="car">{INERTIAL}</link><link name="trailer">{INERTIAL}</link>'
    f'<link name="lid">{INERTIAL}</link>'
    + joint('north', 'prismatic', 'yard', 'rail', NORTH + SPAN)
    + joint('slant', 'prismatic', 'rail', 'plate', SLANT + SPAN)
    + joint('yaw', 'continuous', 'plate', 'car', YAW)
    + joint('hitch', 'continuous', 'car', 'trailer', HITCH)
    + joint('screws', 'fixed', 'trailer', 'corner', '<origin xyz="-0.5 0.4 0.2" rpy="1.5 0.4 2"/>')
    + joint('hinge', 'continuous', 'trailer', 'lid', '<axis xyz="0 1 0"/>')
    + '</robot>'
)
PLANAR = {'driven': False, 'state': 'odom'}
SEEN = {'x': 'slant', 'y': 'north', 'heading': 'yaw', 'heading_of': 'corner'}


def train(text=TRAIN, **odom):
    joints = {
        'hitch': {'driven': True},
        'yaw': PLANAR,
        'north': PLANAR,
        'hinge': {'driven': True},
        'slant': PLANAR,
    }
    actuators = [{'name': name, 'joint': name} for name in ('hitch', 'hinge')]
    return kd.load_robot(text, joints=joints, actuators=actuators, odom={**SEEN, **odom})


def odom_sample(robot, q, v):
    """What odometry of the link sees."""
    link = robot.config.odom.heading_of
    pose = robot.frame_pose(q, link)
    twist = robot.jacobian(q, link, 'local') @ v
    orientation = Rotation.from_matrix(pose[:3, :3]).as_quat()
    return OdomSample(pose[0, 3], pose[1, 3], orientation, twist[:3], twist[3:], STAMP, ARRIVAL)


def planar_joints(robot):
    odom = robot.config.odom
    return [robot.joint_names.index(name) for name in (odom.x, odom.y, odom.heading)]


@pytest.mark.parametrize(
    'robot',
    [robot_named('otbot'), train(), train(heading_of='car'), train(heading_of='trailer')],
    ids=['otbot', 'corner of a trailer', 'car', 'trailer'],
)
def test_odometry_gives_the_planar_joints(robot):
    source, rows = OdomSource(robot), planar_joints(robot)
    random = np.random.default_rng(3)
    for q, v in random.uniform(-9, 9, (200, 2, robot.nv)):
        present_q, present_v = q.copy(), v.copy()
        present_q[rows] += random.uniform(-3, 3, 3)
        present_v[rows] = random.uniform(-9, 9, 3)
        before = present_q.copy(), present_v.copy()
        sample = source.samples(odom_sample(robot, q, v), present_q, present_v)
        assert sample.names == tuple(robot.joint_names[row] for row in rows)
        np.testing.assert_allclose(sample.position, q[rows], atol=9 * EXACT)
        np.testing.assert_allclose(sample.velocity, v[rows], atol=9 * EXACT)
        assert (len(sample.effort), sample.stamp, sample.arrival) == (0, STAMP, ARRIVAL)
        np.testing.assert_array_equal((present_q, present_v), before)


def test_otbots_platform_is_the_chassis_angle_plus_the_pivot():
    source = OdomSource(robot_named('otbot'))
    theta, pivot = 0.3, 0.5
    q, v = np.array([0, 0, 0, 0, 0, pivot]), np.array([0, 0, 0, 0, 0, 0.25])
    orientation = np.array([0, 0, np.sin(theta / 2), np.cos(theta / 2)])
    forwards, turning = np.array([2.0, 0, 0]), np.array([0, 0, 0.5])
    sample = source.samples(OdomSample(4.0, 5.0, orientation, forwards, turning, STAMP, ARRIVAL), q, v)
    np.testing.assert_allclose(sample.position, [4.0, 5.0, theta + pivot], atol=EXACT)
    np.testing.assert_allclose(sample.velocity, [2 * np.cos(theta), 2 * np.sin(theta), 0.75], atol=EXACT)


@pytest.mark.parametrize('robot', [robot_named('otbot'), train()], ids=lambda robot: robot.name)
def test_the_heading_may_turn_many_times(robot):
    source, rows = OdomSource(robot), planar_joints(robot)
    q, v, present = np.zeros(robot.nv), np.zeros(robot.nv), np.zeros(robot.nv)
    for heading in [*np.arange(0, 20, 0.5), *np.arange(20, -20, -0.5)]:
        q[rows[2]] = heading
        present[rows] = source.samples(odom_sample(robot, q, v), present, v).position
        assert present[rows[2]] == pytest.approx(heading, abs=9 * EXACT)


def test_a_velocity_that_is_not_measured_is_missing_and_the_pose_is_not():
    robot = train()
    q, v = np.random.default_rng(4).uniform(-1, 1, (2, robot.nv))
    seen = odom_sample(robot, q, v)
    blind = OdomSample(seen.x, seen.y, seen.orientation, *np.full((2, 3), np.nan), STAMP, ARRIVAL)
    sample = OdomSource(robot).samples(blind, q, v)
    np.testing.assert_allclose(sample.position, q[planar_joints(robot)], atol=EXACT)
    assert np.isnan(sample.velocity).all()


@pytest.mark.parametrize('tilt', [0.6, -2.0, np.pi])
def test_a_pose_that_does_not_lie_in_the_plane_is_refused(tilt):
    orientation = (Rotation.from_euler('z', 1.0) * Rotation.from_euler('y', tilt)).as_quat()
    sample = OdomSample(0, 0, orientation, *np.zeros((2, 3)), STAMP, ARRIVAL)
    with pytest.raises(InputError, match="tilts 'chassis' by more than"):
        OdomSource(robot_named('otbot')).samples(sample, *np.zeros((2, 6)))


def changed(old, new, **odom):
    assert old in TRAIN
    return train(TRAIN.replace(old, new), **odom)


@pytest.mark.parametrize(
    ('make', 'words'),
    [
        (lambda: robot_named('krang'), 'no odometry'),
        (lambda: train(heading_of='lid'), "odom: hinge lift or tilt 'lid'"),
        (lambda: changed('1 0.3 0"', '1 0.3 0.1"'), 'odom: slant lift or tilt'),
        (lambda: changed(HITCH, HITCH.replace('0 0 1', '0 0.1 1')), 'odom: hitch lift or tilt'),
        (lambda: train(heading_of='plate'), "'yaw' must turn it"),
        (lambda: train(heading_of='yard'), "'slant' and 'north' must slide"),
        (lambda: train(x='yaw', heading='slant'), "'slant' must turn it"),
        (lambda: changed('"north" type="prismatic"', '"north" type="revolute"'), 'north, .* lift or tilt'),
    ],
)
def test_a_link_that_odometry_cannot_place_is_refused(make, words):
    with pytest.raises(ConfigError, match=words):
        OdomSource(make())


def test_slides_that_a_joint_turns_are_refused():
    """Heading first and slides after it: their directions are not the world's."""
    text = (
        '<robot name="crane"><link name="yard"/><link name="tower"/><link name="trolley"/>'
        f'<link name="hook">{INERTIAL}</link>'
        + joint('yaw', 'continuous', 'yard', 'tower', '<axis xyz="0 0 1"/>')
        + joint('slant', 'prismatic', 'tower', 'trolley', '<axis xyz="1 0 0"/>' + LIMIT.format(-9, 9))
        + joint('north', 'prismatic', 'trolley', 'hook', '<axis xyz="0 1 0"/>' + LIMIT.format(-9, 9))
        + '</robot>'
    )
    joints = dict.fromkeys(('yaw', 'slant', 'north'), PLANAR)
    robot = kd.load_robot(text, joints=joints, actuators=[], odom={**SEEN, 'heading_of': 'hook'})
    with pytest.raises(ConfigError, match='in two directions that no joint turns'):
        OdomSource(robot)
