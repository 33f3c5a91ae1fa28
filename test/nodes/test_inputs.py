"""What else reaches a controller: wrenches, trajectories, imu and odom, with the torques they lead to."""

import time

import numpy as np
import pytest
from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from nodes.fake_robot import FakeRobot, time_message
from nodes.harness import Controller
from nodes.monitor import Monitor
from sensor_msgs.msg import Imu
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

pytestmark = pytest.mark.processes

FORCE = np.array([5.0, 0.0, -20.0, 0.0, 3.0, 0.0])  # (force, moment) [N, N m]
TURNS = 40  # of the robot, 0.2 s
BANDWIDTH = 10.0  # [rad/s]


def torque(controller):
    """The newest command by joint [N m]."""
    last = controller.torques.last
    return dict(zip(last.message.name, last.message.effort, strict=True)) if last else {}


def until_torque(harness, controller, names, expected):
    def there():
        now = torque(controller)
        return now and np.allclose([now[name] for name in names], expected, atol=1e-6)

    harness.until(there, f'the torque {np.round(expected, 3)} N m, not {torque(controller)}', 8.0)


@pytest.fixture(scope='module')
def controllers(harness):
    """All controllers of this file, started together, which is faster."""
    quick = {'ramp_time': 0.1, 'state_timeout': 0.8}
    return {
        'planar_2r': Controller(
            harness,
            robot='planar_2r',
            terms=['gravity', 'computed_torque', 'wrench'],
            stop__time=0.2,
            gains__bandwidth=BANDWIDTH,
            gains__damping_ratio=1.0,
            wrench__tip__convention='applied_by_robot',
            wrench__tip__max_force=100.0,
            **quick,
        ),
        'krang': Controller(
            harness, 'gravity_compensation', '/krang', robot='krang', stop__time=0.2, **quick
        ),
        'otbot': Controller(
            harness, namespace='/otbot', robot='otbot', terms=['gravity', 'damping'], damping=1.0, **quick
        ),
    }


@pytest.fixture(scope='module')
def controller(controllers):
    """A planar arm with gravity compensation, computed torque and wrenches."""
    return controllers['planar_2r'].activate()


@pytest.fixture
def moving(controller, robot, harness):
    """Past its ramp, and holding the robot's weight."""
    robot.be_honest()
    robot.says()
    controller.rest()
    begin = time.time()
    controller.drive()
    until_torque(harness, controller, robot.model.joint_names, robot.model.gravity_torque(robot.q))
    yield controller
    Monitor(controller, robot.model).check(begin)
    assert 'Traceback' not in controller.log


def pushing(robot, frame_id, numbers=FORCE):
    """The robot's honest turn, with a wrench beside it."""

    def turn():
        message = WrenchStamped()
        message.header.frame_id = frame_id
        message.header.stamp = time_message(robot.now())
        force, moment = message.wrench.force, message.wrench.torque
        force.x, force.y, force.z, moment.x, moment.y, moment.z = (float(f) for f in numbers)
        robot.publish(message, 'wrench/tip')
        robot.honest()

    return turn


# -- wrenches -----------------------------------------------------------------------------------------


def test_a_wrench_in_the_tips_axes_becomes_its_torque_and_fades_with_its_source(moving, harness, robot):
    model, q = robot.model, robot.q
    robot.say = pushing(robot, 'tip')
    pushed = model.wrench_to_torque(q, {'tip': FORCE}, reference='local')
    until_torque(harness, moving, model.joint_names, model.gravity_torque(q) + pushed)
    robot.say = robot.honest
    until_torque(harness, moving, model.joint_names, model.gravity_torque(q))
    assert moving.mode == 'active'


def test_a_wrench_at_another_frame_is_applied_at_that_frames_origin(moving, harness, robot):
    model, q = robot.model, robot.q
    robot.say = pushing(robot, 'link_2')
    at_link_2 = model.wrench_to_torque(q, {'link_2': FORCE}, reference='local')
    until_torque(harness, moving, model.joint_names, model.gravity_torque(q) + at_link_2)


@pytest.mark.parametrize('frame_id', ['map', '', 'ツール'])
def test_a_wrench_in_a_foreign_frame_is_refused_by_name(moving, harness, robot, frame_id):
    begin, expected = time.time(), robot.model.gravity_torque(robot.q)
    robot.say = pushing(robot, frame_id)
    harness.until(lambda: repr(frame_id) in moving.log, f'{frame_id!r} in the log')
    robot.says(TURNS)
    assert all(np.allclose(r.message.data, expected) for r in moving.commands.since(begin))
    assert moving.mode == 'active'


@pytest.mark.parametrize('invalid', [np.nan, np.inf, -1e308])
def test_p1_a_wrench_that_is_no_number_is_not_applied(moving, robot, invalid):
    begin = time.time()
    robot.say = pushing(robot, 'tip', [invalid, 0.0, 0.0, 0.0, invalid, 0.0])
    robot.says(TURNS)
    assert all(np.isfinite(r.message.data).all() for r in moving.commands.since(begin))


def test_a_wrench_beyond_max_force_is_shortened(moving, harness, robot):
    model, q = robot.model, robot.q
    robot.say = pushing(robot, 'tip', [0.0, 0.0, -300.0, 0.0, 0.0, 0.0])
    shortened = {'tip': np.array([0.0, 0.0, -100.0, 0.0, 0.0, 0.0])}
    expected = model.gravity_torque(q) + model.wrench_to_torque(q, shortened, reference='local')
    until_torque(harness, moving, model.joint_names, np.clip(expected, [-100, -50], [100, 50]))


# -- trajectories -------------------------------------------------------------------------------------


def point(position, seconds=0.0, **fields):
    message = JointTrajectoryPoint(positions=[float(p) for p in position], **fields)
    message.time_from_start.sec = int(seconds)
    message.time_from_start.nanosec = round(1e9 * (seconds % 1))
    return message


def test_a_set_point_is_answered_by_computed_torque(moving, harness, robot):
    model, q = robot.model, robot.q
    error = np.array([0.05, -0.03])
    message = JointTrajectory(joint_names=list(model.joint_names), points=[point(q + error)])
    robot.publish(message, 'joint_trajectory')
    expected = model.inverse_dynamics(q, 0 * q, BANDWIDTH**2 * error)
    until_torque(harness, moving, model.joint_names, expected)


def test_a_set_point_for_one_joint_leaves_the_other_where_it_is(moving, harness, robot):
    model, q = robot.model, robot.q
    message = JointTrajectory(joint_names=['joint_2'], points=[point([q[1] + 0.05], effort=[2.0])])
    robot.publish(message, 'joint_trajectory')
    expected = model.inverse_dynamics(q, 0 * q, BANDWIDTH**2 * np.array([0.0, 0.05]))
    until_torque(harness, moving, model.joint_names, expected + np.array([0.0, 2.0]))


def test_a_trajectory_is_followed_to_its_end(moving, harness, robot):
    model, q = robot.model, robot.q
    goal = q + np.array([0.08, 0.05])
    message = JointTrajectory(joint_names=list(model.joint_names), points=[point(q), point(goal, 0.3)])
    robot.publish(message, 'joint_trajectory')
    expected = model.inverse_dynamics(q, 0 * q, BANDWIDTH**2 * (goal - q))
    until_torque(harness, moving, model.joint_names, expected)


@pytest.mark.parametrize(
    'message',
    [
        JointTrajectory(),
        JointTrajectory(joint_names=['joint_1']),
        JointTrajectory(joint_names=['elbow'], points=[point([0.0])]),
        JointTrajectory(joint_names=['joint_1', 'joint_1'], points=[point([0.6, 0.6])]),
        JointTrajectory(joint_names=['joint_1'], points=[point([0.6, 0.8])]),
        JointTrajectory(joint_names=['joint_1'], points=[point([np.nan])]),
        JointTrajectory(joint_names=['joint_1'], points=[point([0.6]), point([0.7], 0.0)]),
        JointTrajectory(joint_names=['joint_1'], points=[point([0.6], 1.0), point([0.7], 0.5)]),
        JointTrajectory(joint_names=['joint_1'], points=[point([1e308], 1.0)]),
        JointTrajectory(joint_names=['joint_1'], points=[point([26.0])]),
    ],
    ids='empty pointless unknown double wide nan still backward far distant'.split(),
)
def test_a_trajectory_that_makes_no_sense_changes_nothing(moving, robot, message):
    begin, expected = time.time(), robot.model.gravity_torque(robot.q)
    robot.publish(message, 'joint_trajectory')
    robot.says(TURNS)
    assert moving.mode == 'active'
    assert all(np.allclose(r.message.data, expected) for r in moving.commands.since(begin))


def test_a_refused_trajectory_is_said_even_while_wrenches_are_refused(moving, harness, robot):
    robot.say = pushing(robot, 'nowhere')
    robot.says(TURNS)

    def is_logged():  # at most one refusal of a kind is logged per second, and the last test caused one
        robot.publish(JointTrajectory(joint_names=['wrist'], points=[point([0.0])]), 'joint_trajectory')
        time.sleep(0.2)
        return 'wrist' in moving.log

    harness.until(is_logged, 'the refusal in the log', 5.0)


# -- other states than joint_states -------------------------------------------------------------------


def axis_angle(axis, angle):
    return np.append(np.sin(angle / 2) * np.asarray(axis), np.cos(angle / 2))


def test_p6_krangs_base_pitch_comes_from_the_imu_and_its_motors_take_amperes(harness, controllers):
    robot = FakeRobot(harness, 'krang', '/krang', rate=100.0)
    model = robot.model
    arms = model.joint_names[1:]
    pitch = model.joint_names.index('base_pitch')
    # Where the unit is with base_pitch 0, then turned with the base: the robot's own kinematics.
    mount = rpy(*model.config.imu.mount_rpy)

    def attitude(quaternion):
        imu = Imu()
        imu.header.stamp = time_message(robot.now())
        to = imu.orientation
        to.x, to.y, to.z, to.w = quaternion
        robot.publish(imu, 'imu')
        robot.publish(robot.joint_state(arms))

    def turn():
        rotation = model.frame_pose(robot.q, model.config.imu.link)[:3, :3] @ mount
        attitude(quaternion_of(rotation))

    robot.say = robot.silent
    controller = controllers['krang'].activate()
    robot.say = lambda: robot.publish(robot.joint_state(arms))
    robot.says(TURNS)
    refused = controller.enable()
    assert not refused.success
    assert 'base_pitch' in refused.message
    for base in (model.home[pitch], -0.4):
        controller.rest()  # a jump while it drives would be a fault
        robot.q[pitch] = base
        robot.say = turn
        robot.says()
        controller.drive()
        names = [name for name in model.joint_names if name != 'base_pitch']
        expected = np.delete(model.gravity_torque(robot.q), pitch)
        until_torque(harness, controller, names, expected)
    amperes = np.delete(model.motor_command(model.gravity_torque(robot.q), robot.v), pitch)
    assert np.allclose(controller.commands.next().message.data, amperes)
    robot.say = lambda: attitude([0.0, 0.0, 0.0, 0.0])  # no rotation at all
    controller.until_fault('state')
    assert 'base_pitch' in controller.reason
    Monitor(controller, model, names).check()


def rpy(roll, pitch, yaw):
    """Rotation of a URDF's roll, pitch and yaw [rad]."""
    (sr, sp, sy), (cr, cp, cy) = np.sin([roll, pitch, yaw]), np.cos([roll, pitch, yaw])
    about_x = np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]])
    about_y = np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]])
    about_z = np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]])
    return about_z @ about_y @ about_x


def quaternion_of(rotation):
    """(x, y, z, w) of a rotation matrix: the eigenvector of the largest eigenvalue of Bar-Itzhack's K."""
    r = rotation
    k = np.array(
        [
            [r[0, 0] - r[1, 1] - r[2, 2], 0, 0, 0],
            [r[0, 1] + r[1, 0], r[1, 1] - r[0, 0] - r[2, 2], 0, 0],
            [r[0, 2] + r[2, 0], r[1, 2] + r[2, 1], r[2, 2] - r[0, 0] - r[1, 1], 0],
            [r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1], np.trace(r)],
        ]
    )
    return [float(value) for value in np.linalg.eigh(k)[1][:, -1]]


def test_p9_otbot_gets_its_pose_from_odom_and_drives_only_its_wheels_and_pivot(harness, controllers):
    robot = FakeRobot(harness, 'otbot', '/otbot', rate=100.0)
    model = robot.model
    robot.q = np.array([1.0, -2.0, 0.7, 3.0, 4.0, 0.2])
    motors = ('right_wheel', 'left_wheel', 'pivot')

    def states():
        robot.q = robot.q + robot.v / 100.0  # a position that stays at a velocity is a frozen sensor
        robot.publish(robot.joint_state(motors))

    def turn():
        odometry = Odometry()
        odometry.header.stamp = time_message(robot.now())
        odometry.header.frame_id, odometry.child_frame_id = 'odom', 'chassis'
        pose, theta = odometry.pose.pose, robot.q[2] - robot.q[5]  # alpha = theta + pivot
        pose.position.x, pose.position.y = robot.q[:2].tolist()
        *_, pose.orientation.z, pose.orientation.w = axis_angle([0, 0, 1], theta).tolist()
        robot.publish(odometry, 'odom')
        states()

    robot.say = turn
    controller = controllers['otbot']
    controller.activate()
    controller.drive()
    robot.v = np.array([0.0, 0.0, 0.0, 0.5, -0.5, 0.2])
    until_torque(harness, controller, motors, [-0.5, 0.5, -0.2])
    robot.say = states
    controller.until_fault('state')
    assert any(f"'{name}'" in controller.reason for name in ('x', 'y', 'alpha'))
    Monitor(controller, model).check()
    harness.until(lambda: not any(controller.commands.last.message.data), 'zero torque')
