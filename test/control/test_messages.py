"""ROS messages as the controller takes them: every number at its place, and invalid never a fault."""

import warnings
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

with warnings.catch_warnings():
    warnings.simplefilter('ignore')  # the message generator's parser imports a deprecated module
    import rosidl_generator_py  # noqa: F401

from builtin_interfaces.msg import Duration, Time
from geometry_msgs.msg import Quaternion, Vector3, WrenchStamped
from harness import Harness
from nav_msgs.msg import Odometry
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import Imu
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from krang_dynamics.control.messages import imu_sample, joint_trajectory, odom_sample, seconds, wrench_sample
from krang_dynamics.errors import InputError

ARRIVAL = 12.5
ANY = st.floats(width=64)
HOME = [0.6, 0.8]
idle = cache(Harness)


def sent(message):
    """As it comes out of the middleware."""
    return deserialize_message(serialize_message(message), type(message))


def vector(numbers):
    x, y, z = map(float, numbers)
    return Vector3(x=x, y=y, z=z)


def point(time=0.0, **fields):
    whole = int(time // 1)
    span = Duration(sec=whole, nanosec=int(1e9 * (time - whole)))
    return JointTrajectoryPoint(
        time_from_start=span, **{k: [float(x) for x in numbers] for k, numbers in fields.items()}
    )


# -- time ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('message', 'expected'),
    [
        (Time(sec=0, nanosec=0), 0.0),
        (Time(sec=3, nanosec=250_000_000), 3.25),
        (Time(sec=1_700_000_000, nanosec=1), 1_700_000_000.0),
        (Duration(sec=-2, nanosec=500_000_000), -1.5),
    ],
)
def test_times_are_seconds(message, expected):
    assert seconds(message) == pytest.approx(expected, abs=1e-9)


# -- inertial unit and odometry ------------------------------------------------------------------------


def test_an_imu_message_is_read_number_by_number():
    message = Imu(orientation=Quaternion(x=0.1, y=0.2, z=0.3, w=0.4), angular_velocity=vector([5, 6, 7]))
    message.linear_acceleration = vector([8, 9, 10])
    message.header.stamp = Time(sec=3, nanosec=500_000_000)
    sample = imu_sample(sent(message), ARRIVAL)
    assert sample.orientation.tolist() == [0.1, 0.2, 0.3, 0.4]
    assert sample.angular_velocity.tolist() == [5.0, 6.0, 7.0]
    assert (sample.stamp, sample.arrival) == (3.5, ARRIVAL)


def test_an_imu_without_orientation_is_refused():
    message = Imu()
    message.orientation_covariance[0] = -1.0
    with pytest.raises(InputError, match=r'imu: .*no orientation'):
        imu_sample(sent(message), ARRIVAL)
    message.orientation_covariance[0] = 1.0
    imu_sample(sent(message), ARRIVAL)


def test_an_odometry_message_is_read_number_by_number():
    message = Odometry()
    message.header.stamp = Time(sec=4, nanosec=0)
    pose, twist = message.pose.pose, message.twist.twist
    pose.position.x, pose.position.y, pose.position.z = 1.0, 2.0, 3.0
    pose.orientation = Quaternion(x=0.1, y=0.2, z=0.3, w=0.4)
    twist.linear, twist.angular = vector([4, 5, 6]), vector([7, 8, 9])
    sample = odom_sample(sent(message), ARRIVAL)
    assert (sample.x, sample.y) == (1.0, 2.0)
    assert sample.orientation.tolist() == [0.1, 0.2, 0.3, 0.4]
    assert sample.linear.tolist() == [4.0, 5.0, 6.0]
    assert sample.angular.tolist() == [7.0, 8.0, 9.0]
    assert (sample.stamp, sample.arrival) == (4.0, ARRIVAL)


# -- wrenches ------------------------------------------------------------------------------------------


def test_a_wrench_message_is_read_number_by_number():
    message = WrenchStamped()
    message.header.frame_id = 'sensor'
    message.wrench.force, message.wrench.torque = vector([1, 2, 3]), vector([4, 5, 6])
    sample = wrench_sample('tip', sent(message), ARRIVAL)
    assert (sample.frame, sample.frame_id, sample.arrival) == ('tip', 'sensor', ARRIVAL)
    assert sample.wrench.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


# -- trajectories --------------------------------------------------------------------------------------


def test_a_trajectory_is_read_point_by_point():
    message = JointTrajectory(
        joint_names=['b', 'a'],
        points=[
            point(0.5, positions=[1, 2], velocities=[3, 4], accelerations=[5, 6], effort=[7, 8]),
            point(1.25, positions=[9, 10], velocities=[11, 12], accelerations=[13, 14], effort=[15, 16]),
        ],
    )
    trajectory = joint_trajectory(sent(message))
    assert trajectory.joint_names == ('b', 'a')
    assert trajectory.times.tolist() == [0.5, 1.25]
    assert trajectory.positions.tolist() == [[1, 2], [9, 10]]
    assert trajectory.velocities.tolist() == [[3, 4], [11, 12]]
    assert trajectory.accelerations.tolist() == [[5, 6], [13, 14]]
    assert trajectory.efforts.tolist() == [[7, 8], [15, 16]]


@pytest.mark.parametrize('name', ['velocities', 'accelerations', 'effort'])
def test_a_field_that_no_point_has_is_none(name):
    fields = {f: [1, 2] for f in ('positions', 'velocities', 'accelerations', 'effort') if f != name}
    trajectory = joint_trajectory(sent(JointTrajectory(joint_names=['a', 'b'], points=[point(**fields)])))
    assert getattr(trajectory, 'efforts' if name == 'effort' else name) is None


@pytest.mark.parametrize('name', ['positions', 'velocities', 'accelerations', 'effort'])
@pytest.mark.parametrize('wrong', [[], [1]])
def test_a_field_that_is_not_the_same_in_all_points_is_refused_by_name(name, wrong):
    fields = {f: [1, 2] for f in ('positions', 'velocities', 'accelerations', 'effort')}
    points = [point(0, **fields), point(1, **{**fields, name: wrong}), point(2, **fields)]
    with pytest.raises(InputError, match=f'trajectory: {name} '):
        joint_trajectory(sent(JointTrajectory(joint_names=['a', 'b'], points=points)))


# -- invalid reaches a controller that drives, and leads to a refusal at most --------------------------


@pytest.fixture(scope='module')
def driving():
    loop = Harness(
        terms=('gravity', 'computed_torque', 'wrench'),
        gains_bandwidth=1.0,
        wrench_tip_convention='applied_by_robot',
        wrench_tip_max_force=1.0,
        wrench_tip_max_moment=1.0,
    )
    return loop.start()


def assert_goes_on(loop, **inputs):
    """Whatever it was, the controller answers with a command, and has no fault of its own making."""
    outputs = loop.step(**inputs)
    assert outputs.torque is not None
    assert np.isfinite(outputs.torque).all()
    assert outputs.fault is None or outputs.fault.kind != 'exception', outputs.fault
    assert outputs.fault is None or outputs.fault.kind != 'term', outputs.fault
    return outputs


POINTS = st.builds(
    lambda sec, nano, p, v, a, e: JointTrajectoryPoint(
        time_from_start=Duration(sec=sec, nanosec=nano), positions=p, velocities=v, accelerations=a, effort=e
    ),
    st.integers(-(2**31), 2**31 - 1) | st.integers(0, 5),
    st.integers(0, 2**32 - 1) | st.just(0),
    *[st.lists(ANY | st.sampled_from(HOME), max_size=3)] * 4,
)
NAMES = st.lists(st.sampled_from(['joint_1', 'joint_2', 'lamp', '']), max_size=3)


@settings(max_examples=80, deadline=None)
@given(names=NAMES, points=st.lists(POINTS, max_size=4))
def test_no_trajectory_breaks_the_controller(driving, names, points):
    message = JointTrajectory(joint_names=names, points=points)
    try:
        trajectory = joint_trajectory(sent(message))
    except InputError:
        return
    assert_goes_on(driving, trajectory=trajectory)


@pytest.mark.parametrize(
    'points',
    [
        [point()],
        [point(), point(1)],
        [point(velocities=[0, 0])],
        [point(-1, positions=HOME), point(1, positions=HOME)],
        [point(1, positions=HOME), point(1, positions=HOME)],
        [point(0, positions=[np.nan, 0.8])],
        [point(0, positions=HOME, velocities=[np.inf, 0])],
        [point(0, positions=[*HOME, 1])],
    ],
)
def test_a_trajectory_that_cannot_be_followed_is_refused_with_a_reason(driving, points):
    message = JointTrajectory(joint_names=['joint_1', 'joint_2'], points=points)
    outputs = assert_goes_on(driving, trajectory=joint_trajectory(sent(message)))
    assert outputs.refused[0].startswith('trajectory: ')


@settings(max_examples=60, deadline=None)
@given(numbers=st.tuples(*[ANY] * 6), frame=st.sampled_from(['tip', 'world', '', 'nowhere']))
def test_no_wrench_breaks_the_controller(driving, numbers, frame):
    message = WrenchStamped()
    message.header.frame_id = frame
    message.wrench.force, message.wrench.torque = vector(numbers[:3]), vector(numbers[3:])
    sample = wrench_sample('tip', sent(message), driving.time)
    outputs = assert_goes_on(driving, wrenches=[sample])
    good = np.isfinite(numbers).all() and frame in ('tip', 'world')
    assert (outputs.refused == []) == good


@settings(max_examples=60, deadline=None)
@given(orientation=st.tuples(*[ANY] * 4), rates=st.tuples(*[ANY] * 6), data=st.data())
def test_no_imu_and_no_odometry_breaks_a_controller(orientation, rates, data):
    robot = data.draw(st.sampled_from(['krang', 'otbot']))
    loop = idle(robot)
    x, y, z, w = orientation
    turn = Quaternion(x=x, y=y, z=z, w=w)
    if robot == 'krang':
        message = Imu(orientation=turn, angular_velocity=vector(rates[:3]))
        outputs = loop.step(samples=[], imu=[imu_sample(sent(message), loop.time)])
    else:
        message = Odometry()
        message.pose.pose.orientation = turn
        message.twist.twist.linear, message.twist.twist.angular = vector(rates[:3]), vector(rates[3:])
        outputs = loop.step(samples=[], odom=[odom_sample(sent(message), loop.time)])
    assert outputs.fault is None
