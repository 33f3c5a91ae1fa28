"""Joint states without encoders: from an IMU, and from planar odometry."""

from dataclasses import dataclass
from math import atan2, hypot, isfinite, pi, sin

import numpy as np
import pinocchio as pin

from ..arrays import Array
from ..errors import ConfigError, InputError
from ..robot.model import Robot
from ..robot.urdf import Urdf
from ..safety.joint_buffer import JointSamples

TURN = 2 * pi  # [rad]
NO_ROTATION = 0.1  # a quaternion whose length differs from 1 by more is refused
BLIND = 0.05  # smallest sine of the angle between gravity and an axis whose rotation is measured
LARGEST_TILT = 0.5  # of a body that moves in the plane [rad]
EXACT = 1e-9  # tolerance for the geometry of a planar base
STEADY = 0.1  # rotation of the measured vertical that counts as noise [rad]
UNKNOWN_SPEED = 3.0  # largest angular speed assumed for an IMU that measures none [rad/s]
NOT_MEASURED = np.zeros(0)


@dataclass(frozen=True)
class ImuSample:
    """One message of an IMU; its world has z up, and any heading."""

    orientation: Array  # quaternion x y z w, world from IMU
    angular_velocity: Array  # in the IMU's axes [rad/s], NaN if not measured
    stamp: float  # on the node's clock, 0: unstamped [s]
    arrival: float  # steady [s]


@dataclass(frozen=True)
class OdomSample:
    """One message of odometry: pose and velocity of a link, in the axes of the robot's root link."""

    x: float  # of the link's origin [m]
    y: float
    orientation: Array  # quaternion x y z w, root from link
    linear: Array  # velocity of the link's origin in the link's axes [m/s]
    angular: Array  # in the link's axes [rad/s]
    stamp: float  # on the node's clock, 0: unstamped [s]
    arrival: float  # steady [s]


class ImuSource:
    """One joint's angle, or the direction of gravity, from the robot file's `imu`.

    Only the vertical is used: the IMU's heading may drift.
    """

    def __init__(self, robot: Robot) -> None:
        imu, size = robot.config.imu, float(np.linalg.norm(robot.config.gravity))
        if imu is None:
            raise ConfigError(f'{robot.name} has no IMU; give its robot file an `imu`')
        if size == 0:
            raise ConfigError(f'{robot.name}: imu: gravity is 0; an IMU needs gravity to find the vertical')
        self.feeds = imu.feeds
        fed = [name for name, joint in robot.config.joints.items() if joint.state == 'imu']
        moving = _moving_joints(robot.urdf, imu.link)
        if moving != fed:
            right = f'only {fed[0]!r} may move it' if fed else 'it must be fixed to the root link'
            raise ConfigError(
                f'{robot.name}: imu.link {imu.link!r} is moved by {", ".join(moving) or "no joint"}; {right}'
            )
        zero = np.zeros(robot.nv)
        root_from_unit = robot.frame_pose(zero, imu.link)[:3, :3] @ pin.rpy.rpyToMatrix(*imu.mount_rpy)
        if self.feeds == 'joint':
            self._prepare_joint(robot, fed[0], root_from_unit)
        else:
            self._gravity_from_up = -size * root_from_unit

    def _prepare_joint(self, robot: Robot, joint: str, root_from_unit: Array) -> None:
        """Find the matrix from the measured vertical to sine and cosine of the joint's angle.

        `root_from_unit` is the rotation with the joint at 0.
        """
        column = robot.joint_names.index(joint)
        if robot.urdf.joints[joint].type == 'prismatic':
            raise ConfigError(
                f'{robot.name}: imu: joint {joint!r} is prismatic; an IMU measures rotation only'
            )
        axis = robot.jacobian(np.zeros(robot.nv), robot.urdf.joints[joint].child)[3:, column]
        down = np.array(robot.config.gravity) / np.linalg.norm(robot.config.gravity)
        level = down - (axis @ down) * axis
        size = np.linalg.norm(level)
        if size < BLIND:
            raise ConfigError(
                f'{robot.name}: imu: the axis of joint {joint!r} is vertical: its angle cannot be measured'
            )
        # The IMU turns with the joint, so "down" turns the other way in its axes: Rot(axis, -angle) down.
        self._sine_cosine = -np.array([np.cross(level, axis), level]) @ root_from_unit / size
        self._axis = axis @ root_from_unit
        self._names = (joint,)
        lower, upper = robot.lower[column], robot.upper[column]
        self._turns = bool(upper - lower > TURN)  # then the limits do not determine the turn
        self._near = float(robot.home[column] if self._turns else (lower + upper) / 2)

    def samples(self, sample: ImuSample) -> JointSamples:
        """Angle [rad] and rate [rad/s] of the joint that the IMU measures; InputError if it cannot."""
        sine, cosine = self._sine_cosine.dot(_up(sample)).tolist()
        if hypot(sine, cosine) < BLIND:
            raise InputError(
                f'imu: gravity is parallel to the axis of joint {self._names[0]!r}: its angle is not measured'
            )
        angle = _nearest_turn(atan2(sine, cosine), self._near)
        if self._turns:
            self._near = angle
        rate = self._axis.dot(sample.angular_velocity)
        position, velocity = np.array([[angle], [rate]])
        return JointSamples(self._names, position, velocity, NOT_MEASURED, sample.stamp, sample.arrival)

    def gravity(self, sample: ImuSample) -> Array:
        """Gravity [m/s2] in the root link's axes, of the configured magnitude; may raise InputError."""
        return np.asarray(self._gravity_from_up.dot(_up(sample)))


class MeasuredGravity:
    """The direction of gravity from an IMU, with its age; implausible messages are refused."""

    def __init__(self, source: ImuSource) -> None:
        self._source = source
        self._last: tuple[ImuSample, Array] | None = None  # the last valid message, and its gravity

    def take(self, sample: ImuSample, clock: float, ahead: float) -> Array | None:
        """Gravity [m/s2] in the root link's axes; None for an old message, InputError for an invalid one.

        A stamp may be ahead of the clock by `ahead` [s]. A direction that turns faster than the IMU's
        angular velocity is invalid, unless the last valid message is older than `ahead`.
        """
        gravity = self._source.gravity(sample)
        if not 0 <= sample.stamp <= clock + ahead:
            raise InputError(f'imu: stamp {sample.stamp:.3f} s is ahead of the clock, or not valid')
        if self._last is not None:
            last, direction = self._last
            dt = sample.stamp - last.stamp if sample.stamp * last.stamp > 0 else sample.arrival - last.arrival
            if (sample.stamp > 0 and sample.stamp == last.stamp) or -ahead <= dt < 0:
                return None
            turn = _angle(gravity, direction)
            if 0 <= dt <= ahead and not turn <= STEADY + 2 * dt * _speed(sample, last):
                raise InputError(f'imu: gravity turned by {turn:.3g} rad in {dt:.3g} s; that is implausible')
        self._last = sample, gravity
        return gravity

    def stale(self, now: float, clock: float, timeout: float) -> str | None:
        """Why the direction of gravity is not known: never received, or too old."""
        if self._last is None:
            return 'gravity was never received from the IMU'
        sample = self._last[0]
        age = max(abs(now - sample.arrival), clock - sample.stamp if sample.stamp > 0 else 0.0)
        if age <= timeout:
            return None
        return f'gravity from the IMU is {age:.3f} s old, the limit is {timeout:g} s'


def _speed(*samples: ImuSample) -> float:
    """Largest measured angular speed [rad/s]; UNKNOWN_SPEED where none is measured."""
    speeds = [float(np.linalg.norm(sample.angular_velocity)) for sample in samples]
    return max(speed if isfinite(speed) else UNKNOWN_SPEED for speed in speeds)


def _angle(a: Array, b: Array) -> float:
    """Angle between two vectors [rad]."""
    return atan2(float(np.linalg.norm(np.cross(a, b))), float(a.dot(b)))


class OdomSource:
    """Joints x, y and heading that put the link `heading_of` at the pose of the odometry.

    The pose is that of the link's origin: Otbot's chassis has its origin on the pivot, not on the axle.
    Other joints that turn the link enter with their newest values: alpha = theta + pivot in [otbot].
    """

    def __init__(self, robot: Robot) -> None:
        odom = robot.config.odom
        if odom is None:
            raise ConfigError(f'{robot.name} has no odometry; give its robot file an `odom`')
        self._robot, self._link = robot, odom.heading_of
        self._names = (odom.x, odom.y, odom.heading)
        self._joints = np.array([robot.joint_names.index(name) for name in self._names])
        self._slides, self._heading = self._joints[:2], int(self._joints[2])
        zero = np.zeros(robot.nv)
        J = robot.jacobian(zero, self._link)
        self._check(J)
        self._yaw_per_joint = J[5]  # constant, as the link stays upright
        self._turn = float(np.sign(J[5, self._heading]))
        self._slides_per_way = np.linalg.inv(J[:2, self._slides])  # in the world
        self._upright = pin.Quaternion(robot.frame_pose(zero, self._link)[:3, :3]).conjugate()

    def _check(self, J: Array) -> None:
        """Refuse a link that tilts, or is not carried by two prismatic and one revolute joint."""
        robot, link, slides = self._robot, self._link, self._slides
        x, y, heading = self._names
        turns = np.abs(J[5, self._joints])
        is_planar = abs(np.linalg.det(J[:2, slides])) > EXACT and np.allclose(turns, (0, 0, 1), atol=EXACT)
        for q in np.random.default_rng(0).uniform(-1, 1, (3, robot.nv)):
            now = robot.jacobian(q, link)
            leaning = np.abs(now[2:5]).max(axis=0) > EXACT
            if leaning.any():
                names = ', '.join(np.array(robot.joint_names)[leaning])
                raise ConfigError(f'{robot.name}: odom: {names} lift or tilt {link!r}; it must stay level')
            is_planar &= np.allclose(now[:2, slides], J[:2, slides], atol=EXACT)
        if not is_planar:
            raise ConfigError(
                f'{robot.name}: odom: {x!r} and {y!r} must slide {link!r} in two directions that no joint '
                f'turns, and {heading!r} must turn it about the vertical'
            )

    def samples(self, sample: OdomSample, q: Array, v: Array) -> JointSamples:
        """x, y [m] and heading [rad] with their rates; q, v are the present ones of all joints.

        The heading is the equivalent angle nearest to the present one. InputError if the link tilts.
        """
        orientation = _orientation('odom', sample.orientation)
        turned = orientation * self._upright
        if hypot(turned.x, turned.y) > sin(LARGEST_TILT / 2):
            raise InputError(f'odom: the pose tilts {self._link!r} by more than {LARGEST_TILT:g} rad')
        rotation, present = orientation.matrix(), q[self._heading]
        linear, angular = rotation.dot(sample.linear), rotation.dot(sample.angular)
        q, v = q.copy(), v.copy()
        q[self._joints] = v[self._joints] = 0.0
        yaw = 2 * atan2(turned.z, turned.w) - self._yaw_per_joint.dot(q)
        q[self._heading] = _nearest_turn(self._turn * yaw, present)
        v[self._heading] = self._turn * (angular[2] - self._yaw_per_joint.dot(v))
        # The prismatic joints give the rest of position and velocity.
        place = (sample.x, sample.y) - self._robot.frame_pose(q, self._link)[:2, 3]
        speed = linear[:2] - self._robot.jacobian(q, self._link)[:2].dot(v)
        q[self._slides], v[self._slides] = self._slides_per_way.dot(place), self._slides_per_way.dot(speed)
        position, velocity = q[self._joints], v[self._joints]
        return JointSamples(self._names, position, velocity, NOT_MEASURED, sample.stamp, sample.arrival)


def _moving_joints(urdf: Urdf, link: str) -> list[str]:
    """The joints that move a link, from the link to the root."""
    above = {joint.child: joint for joint in urdf.joints.values()}
    names = []
    while link in above:
        joint = above[link]
        names += [joint.name] if joint.moves else []
        link = joint.parent
    return names


def _orientation(what: str, quaternion: Array) -> pin.Quaternion:
    """A rotation from x y z w; InputError if the quaternion is not of unit length."""
    turn = pin.Quaternion(quaternion)
    length = turn.norm()
    if not abs(length - 1) <= NO_ROTATION:
        raise InputError(
            f'{what}: orientation {quaternion.tolist()} has length {length:.4g}; a rotation has length 1'
        )
    turn.normalize()
    return turn


def _up(sample: ImuSample) -> Array:
    """The measured vertical, in the IMU's axes."""
    return np.asarray(_orientation('imu', sample.orientation).matrix()[2])


def _nearest_turn(angle: float, near: float) -> float:
    """The angle, whole turns away, that is nearest to `near` [rad]."""
    return angle + TURN * round((near - angle) / TURN)
