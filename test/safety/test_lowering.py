"""P13: in a `lower` stop no point of the robot is faster than 0.5 m/s, until after it is released."""

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
import pytest
from harness import robot_named
from tools import ROD, rod_robot

import krang_dynamics as kd
from krang_dynamics.control.controller import Inputs, TorqueController
from krang_dynamics.control.settings import Settings
from krang_dynamics.safety.joint_buffer import JointSamples
from krang_dynamics.safety.modes import Mode

pytestmark = pytest.mark.slow

FASTEST = 0.5  # m/s, that any point may have
TOLERANCE = 1.05  # times the first speed, where the robot moves when the stop begins
LONGEST = 120.0  # s, of a stop
AFTER = 3.0  # s, for which a robot is watched after its release
STEP = 2e-3  # s, of the plant
BRAKED = 0.5  # s, in which a fast robot is slowed down
NEVER = (np.inf, 0.0)
GAP = 0.13  # s, longer than the states may be old
LIGHT_WRIST = rod_robot([(0.4, 4.0, 60.0), (0.2, 0.5, 12.0)])
# Five and six rods whose motors carry them in every pose, but cannot brake all joints as fast as intended.
WEAK_5 = [(0.22, 5.04, 174.6), (0.35, 1.9, 151.7), (0.75, 1.97, 84.6), (0.24, 2.42, 31.6), (0.46, 3.76, 11.5)]
WEAK_6 = [
    (0.42, 1.97, 326.5), (0.77, 1.92, 244.0), (0.44, 2.97, 114.6),
    (0.13, 0.81, 34.8), (0.11, 4.81, 17.0), (0.37, 4.15, 10.8),
]  # fmt: skip
LIFT = """
<robot name="lift"><link name="world"/>
  <link name="carriage"><inertial><mass value="5"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="rod"><inertial><origin xyz="0 0 0.2"/><mass value="1"/>
    <inertia ixx="0.013" iyy="0.013" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="slide" type="prismatic"><parent link="world"/><child link="carriage"/><axis xyz="0 0 1"/>
    <limit effort="200" velocity="1" lower="0" upper="0.5"/></joint>
  <joint name="hinge" type="revolute"><parent link="carriage"/><child link="rod"/><axis xyz="0 1 0"/>
    <limit effort="20" velocity="5" lower="-3" upper="3"/><dynamics friction="1"/></joint>
</robot>"""
UPRIGHT = {'planar_2r': [np.pi / 2, 0.0], 'anthropomorphic': [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]}


class ArmOnEndStops:
    """A plant of its own: semi-implicit Euler, stiff end stops, other masses and friction than the model."""

    def __init__(self, robot, q, v, mass, friction):
        self.model = robot.model.copy()
        for i in range(1, self.model.njoints):
            body = self.model.inertias[i]
            self.model.inertias[i] = pin.Inertia(mass * body.mass, body.lever, mass * body.inertia)
        self.data = self.model.createData()
        self.friction = robot.friction if friction else None
        # Krang's base_pitch is fixed: its motor cannot carry the robot.
        self.free = np.flatnonzero([name != 'base_pitch' for name in robot.joint_names])
        self.frames = [self.model.getFrameId(name, pin.FrameType.BODY) for name in robot.frames]
        self.lower, self.upper = robot.lower, robot.upper
        self.q, self.v = q.copy(), v.copy()

    def step(self, torque, h, stiffness=5e3, damping=200.0):
        A = np.triu(pin.crba(self.model, self.data, self.q))
        A = A + np.triu(A, 1).T
        bias = pin.rnea(self.model, self.data, self.q, self.v, np.zeros_like(self.v))
        beyond = np.clip(self.q, self.lower, self.upper) - self.q
        force = torque - bias + stiffness * beyond
        implicit = np.where(beyond != 0, h * damping + h * h * stiffness, 0.0)
        if self.friction is not None:
            dry = self.friction.coulomb / np.maximum(np.abs(self.v), 0.01)
            implicit += h * (self.friction.viscous + dry)
        rows = np.ix_(self.free, self.free)
        momentum = (A @ self.v + h * force)[self.free]
        self.v = np.zeros_like(self.v)
        self.v[self.free] = np.linalg.solve((A + np.diag(implicit))[rows], momentum)
        self.q = self.q + h * self.v

    def speed(self):
        """Of the fastest frame or centre of mass [m/s]."""
        pin.forwardKinematics(self.model, self.data, self.q, self.v)
        speeds = [np.linalg.norm(pin.getFrameVelocity(self.model, self.data, f).linear) for f in self.frames]
        for motion, body in zip(self.data.v, self.model.inertias, strict=True):
            speeds.append(np.linalg.norm(motion.linear + np.cross(motion.angular, body.lever)))
        return float(max(speeds))


@dataclass
class Stop:
    """What a stop leads to."""

    first: float  # speed at its beginning [m/s]
    fastest: float  # until AFTER its end [m/s]
    later: float  # the same from `watch` on
    duration: float | None  # None: not at rest after LONGEST [s]


def stop(
    robot,
    q,
    v,
    rate,
    mass=1.0,
    friction=False,
    delay=0.0,
    gaps=(),
    gap=GAP,
    noise=0.0,
    body=None,
    set_back=NEVER,
    velocity=1.0,
    watch=BRAKED,
):
    """Hold a robot, then stop it; states at `rate` [Hz], commands late by `delay` [s].

    No state arrives for `gap` after each of the times `gaps` [s]; `noise` [rad/s] is that of the velocities;
    `body` is the robot that moves, where it is not the one that the controller knows; `set_back` has the
    time [s] at which the clock of all stamps is set back, and by how much [s]; velocities read `velocity`
    times the true ones; `later` counts from the time `watch` [s].
    """
    random = np.random.default_rng(1)
    settings = Settings(terms=('gravity',), ramp_time=0.0, limits_velocity=50.0, stop_policy='lower')
    controller = TorqueController(robot, settings)
    commanded = np.isin(robot.joint_names, controller.command_joints)
    plant = ArmOnEndStops(body or robot, q, v, mass, friction)
    time, period = 100.0, 1 / rate
    effort = robot.gravity_torque(q) * commanded

    def step(**requests):
        measured = velocity * plant.v + noise * random.normal(size=robot.nv)
        clock = time - (set_back[1] if time - begin > set_back[0] else 0.0)
        sample = JointSamples(robot.joint_names, plant.q, measured, effort, clock, time)
        is_lost = any(0 < time - begin - start < gap for start in gaps)
        return controller.step(Inputs(time, clock, [] if is_lost else [sample], **requests))

    for _ in range(round(0.6 * rate)):  # at rest, until the rate of the states is known
        time += period
        controller.step(Inputs(time, time, [JointSamples(robot.joint_names, q, 0 * v, effort, time, time)]))
    begin = time
    outputs = step(enable=True)
    assert outputs.mode in (Mode.RAMPING, Mode.ACTIVE), outputs
    first = fastest = plant.speed()
    later = 0.0
    late, held, ended = [], effort, None
    while time < begin + LONGEST and (ended is None or time < ended + AFTER):
        time += period
        outputs = step(enable=False)
        if outputs.torque is not None:
            late.append((time + delay, outputs.torque * commanded))
        elif ended is None:
            ended = time
        parts = max(1, round(period / STEP))
        for k in range(parts):
            while late and late[0][0] <= time + k * period / parts + 1e-9:
                held = late.pop(0)[1]
            plant.step(held, period / parts)
            speed = plant.speed()
            fastest = max(fastest, speed)
            later = max(later, speed if time > begin + watch else 0.0)
    return Stop(first, fastest, later, None if ended is None else ended - begin)


def cases(name, count, seed):
    """Random poses and conditions; every third moves, every fourth begins close to upright."""
    robot, random = robot_named(name), np.random.default_rng(seed)
    for i in range(count):
        q = random.uniform(np.maximum(robot.lower, -np.pi), np.minimum(robot.upper, np.pi))
        v = random.uniform(-0.5, 0.5, robot.nv) if i % 3 == 2 else np.zeros(robot.nv)
        if i % 4 == 3 and name in UPRIGHT:
            q = UPRIGHT[name] + random.uniform(-1e-3, 1e-3, robot.nv)
        if name == 'krang':
            q[0] = v[0] = 0.0
        conditions = {
            'rate': random.choice([50, 100, 250]),
            'mass': random.choice([0.8, 1.0, 1.2]),
            'friction': bool(random.integers(2)),
            'delay': random.choice([0.0, 0.01]),
        }
        yield q, v, conditions


def check(name, count, seed):
    stops = []
    for q, v, conditions in cases(name, count, seed):
        found = stop(robot_named(name), q, v, **conditions)
        assert found.fastest <= max(FASTEST, TOLERANCE * found.first), (q, v, conditions, found)
        assert found.duration is not None, (q, v, conditions)
        stops.append(found)
    at_rest = max(found.fastest for found in stops if found.first == 0)
    print(
        f'{name}: {count} stops of up to {max(found.duration for found in stops):.1f} s; from rest up to '
        f'{at_rest:.3f} m/s, in motion up to {max(found.fastest for found in stops):.3f} m/s'
    )


@pytest.mark.parametrize(('name', 'count'), [('planar_2r', 2), ('anthropomorphic', 2), ('krang', 1)])
def test_a_robot_is_lowered_slowly_and_released_only_at_rest(name, count):
    check(name, count, seed=7)


@pytest.mark.long
@pytest.mark.parametrize('name', ['planar_2r', 'anthropomorphic', 'krang'])
def test_two_hundred_poses(name):
    check(name, 200, seed=8)


@pytest.mark.parametrize('q', [(1.3, 0.0), (0.6, 0.8)])
def test_a_raised_arm_does_not_fall(q):
    """It fell at 9 to 12 m/s when stops ended after a fixed time."""
    found = stop(robot_named('planar_2r'), np.array(q), np.zeros(2), rate=100)
    assert found.fastest <= FASTEST
    assert found.duration is not None


@pytest.mark.parametrize('rate', [50, 100, 1000])
def test_a_stop_is_stable_at_every_rate_with_delay(rate):
    robot = robot_named('planar_2r')
    found = stop(robot, np.array([-1.0, 0.5]), np.array([0.5, -0.5]), rate=rate, delay=0.01)
    assert found.fastest <= max(FASTEST, TOLERANCE * found.first)


def test_a_gap_in_the_states_does_not_end_a_stop():
    """While no state is valid there is no damping, so the robot gains some speed."""
    found = stop(robot_named('planar_2r'), np.array([1.3, 0.0]), np.zeros(2), rate=100, gaps=range(1, 30, 3))
    assert found.fastest <= 2 * FASTEST
    assert found.duration is not None


@pytest.mark.parametrize('gap', [0.5, 0.8])
def test_an_arm_that_fell_without_states_is_caught_when_they_return(gap):
    """Its torque has decayed; without states nothing else is safe."""
    q = np.array([1.3, 0.0])
    found = stop(robot_named('planar_2r'), q, np.zeros(2), rate=100, gaps=[2.0], gap=gap, watch=2.5 + gap)
    assert found.later <= FASTEST
    assert found.duration is not None


@pytest.mark.parametrize('seconds', [0.09, 0.12, 0.45, 30.0])
def test_a_clock_that_is_set_back_does_not_drop_the_arm(seconds):
    """Older stamps are ignored, but not those of a clock that was set."""
    robot = robot_named('planar_2r')
    found = stop(robot, np.array([1.3, 0.0]), np.zeros(2), rate=100, set_back=(0.5, seconds))
    assert found.fastest <= FASTEST
    assert found.duration is not None


def test_a_link_without_a_frame_at_its_end_does_not_fall():
    """Its only frame is on the axis: the origin of a frame does not move."""
    found = stop(kd.load_robot(ROD), np.array([0.5]), np.zeros(1), rate=50)
    assert 0.05 < found.fastest <= FASTEST
    assert found.duration is not None


def test_the_end_of_a_shape_without_mass_does_not_fall():
    """A heavy hub with a long light pole: no frame and no centre of mass shows how fast its end is."""
    pole = '<collision><origin xyz="0 0 0.75"/><geometry><box size="0.02 0.02 1.5"/></geometry></collision>'
    hub = rod_robot([(0.2, 20.0, 60.0)]).replace('</inertial></link>', f'</inertial>{pole}</link>')
    found = stop(kd.load_robot(hub), np.array([0.5]), np.zeros(1), rate=100)
    assert found.fastest * 1.5 / 0.1 <= FASTEST  # the plant measures the centre of mass, at 0.1 m
    assert found.duration is not None


def test_an_arm_on_a_lift_is_released_where_friction_carries_it():
    """Relative to a lift that would fall, the arm does not sink: the lift must be known to stand."""
    found = stop(kd.load_robot(LIFT), np.array([0.1, 0.3]), np.zeros(2), rate=60, friction=True)
    assert found.fastest <= FASTEST
    assert found.duration < 10.0  # while friction still carries it


def test_a_load_that_the_model_does_not_know_does_not_fall():
    """As heavy as the wrist that holds it: damping in proportion to the known inertia does not carry it."""
    robot = kd.load_robot(LIGHT_WRIST)
    loaded = robot.with_payload('link_2', 0.5, [0.0, 0.0, 0.2], 1e-3 * np.eye(3))
    found = stop(robot, np.array([1.2, 0.3]), np.zeros(2), rate=50, body=loaded)
    assert found.fastest <= FASTEST
    assert found.duration is not None


@pytest.mark.parametrize(
    ('rods', 'q', 'v', 'rate', 'delay'),
    [
        (WEAK_5, [-0.32, -0.33, -1.39, 1.95, -0.29], [-0.4, -0.15, -0.01, -0.14, -0.4], 100, 0.01),
        (WEAK_6, [-2.92, 0.1, -0.81, -0.46, 1.41, 2.1], [0.46, 0.28, 0.32, 0.44, -0.12, -0.16], 500, 0.0),
    ],
)
def test_motors_at_their_limits_brake_the_robot_and_never_accelerate_it(rods, q, v, rate, delay):
    """With each torque cut to its limit by itself, the hand went from 0.8 to 3.6 m/s."""
    found = stop(kd.load_robot(rod_robot(rods)), np.array(q), np.array(v), rate=rate, delay=delay)
    assert found.fastest <= TOLERANCE * found.first


@pytest.mark.parametrize(('rate', 'delay'), [(100, 0.0), (500, 0.01)])
def test_a_fast_robot_is_braked_and_does_not_run_back(rate, delay):
    """It ran back at up to 11 m/s while its motion counted as the fall of an unknown load."""
    found = stop(robot_named('planar_2r'), np.array([0.6, 0.8]), np.array([1.5, 0.0]), rate=rate, delay=delay)
    assert found.first > 2.0
    assert found.fastest <= TOLERANCE * found.first
    assert found.later <= FASTEST


@pytest.mark.parametrize('rate', [50, 100, 1000])
def test_velocities_that_read_zero_do_not_drop_the_arm(rate):
    found = stop(robot_named('planar_2r'), np.array([0.6, 0.8]), np.zeros(2), rate=rate, velocity=0.0)
    assert found.fastest <= FASTEST
    assert found.duration is not None


def test_noisy_velocities_do_not_prevent_rest():
    found = stop(robot_named('planar_2r'), np.array([-1.2, -0.3]), np.zeros(2), rate=50, noise=0.02)
    assert found.fastest <= FASTEST
    assert found.duration is not None


def test_a_robot_that_is_balanced_upright_is_not_released():
    robot = robot_named('planar_2r')
    q = np.array([np.pi / 2, 0.0])
    settings = Settings(terms=('gravity',), ramp_time=0.0, stop_policy='lower')
    controller = TorqueController(robot, settings)
    for k in range(1000):
        sample = JointSamples(robot.joint_names, q, 0 * q, 0 * q, 100 + 0.01 * k, 100 + 0.01 * k)
        request = True if k == 60 else False if k == 61 else None
        outputs = controller.step(Inputs(100 + 0.01 * k, 100 + 0.01 * k, [sample], enable=request))
    assert outputs.mode is Mode.STOPPING
