"""An adversary: random and hostile inputs of a robot that works, for controllers without ROS."""

import random
from collections import Counter
from dataclasses import replace
from math import inf, nan

import numpy as np
import pinocchio as pin
from harness import robot_named
from monitor import DRIVING, Monitor

import krang_dynamics as kd
from krang_dynamics.control.controller import Inputs, TorqueController
from krang_dynamics.control.reference.cartesian_target import PoseSample, TwistSample
from krang_dynamics.control.reference.trajectory import JointTrajectory
from krang_dynamics.control.sensors import ImuSample, OdomSample
from krang_dynamics.control.settings import Settings
from krang_dynamics.control.terms.wrench import WrenchSample
from krang_dynamics.robot.payload import Payload
from krang_dynamics.safety.joint_buffer import JointSamples

INVALID = (nan, inf, -inf, 1e308, -1e308, 5e-324, -5e-324, 0.0, -0.0, 1e9, -1.0, 1.0, 1e-9, 3.0)
ARM = 'gravity friction damping computed_torque wrench joint_limits observer'
# Robot, terms, frame of wrenches and payloads, other settings.
SETUPS = [
    ('planar_2r', ARM, 'tip', {}),
    ('planar_2r', ARM, 'tip', {'stop_policy': 'hold'}),
    ('planar_2r', 'gravity damping', 'tip', {'stop_policy': 'zero', 'missing_velocity': 'zero'}),
    ('planar_2r', 'computed_torque', 'tip', {'command_joints': ['joint_2'], 'limits_state_rate': 0.0}),
    ('anthropomorphic', ARM, 'tool', {'deadman_required': True}),
    ('pendubot', 'gravity balance damping wrench observer', 'tip', {}),
    ('pendubot', 'gravity computed_torque friction', 'tip', {'emergency_stop_required': True}),
    ('otbot', 'rolling_base damping wrench observer', 'platform', {'deadman_required': True}),
    ('krang', ARM, 'left_hand', {}),
    ('krang', ARM, 'right_hand', {'wheels_locked': True}),
    ('anthropomorphic', 'gravity friction cartesian_impedance wrench observer', 'tool', {}),
    ('krang', 'cartesian_impedance joint_limits', 'left_hand', {}),
    ('anthropomorphic', 'guide', 'tool', {}),
]
SHARES = (21, 7, 7, 7, 9, 9, 7, 5, 10, 5, 7, 3, 3)  # of the steps of a campaign [%]
STEPS = 20  # of a hostile scene, at most


def settings_of(setup):
    _, terms, frame, options = setup
    wrench = {f'wrench.{frame}.convention': 'applied_by_robot', f'wrench.{frame}.max_force': 50.0}
    defaults = {
        'ramp_time': 0.03,
        'stop_time': 0.3,
        'stop_blind_time': 0.2,
        'reference_timeout': 0.1,
        'observer_collision': 5000.0,
        'damping': 0.2,
    }
    return Settings(terms=terms.split(), **{**defaults, **(wrench if 'wrench' in terms else {}), **options})


class Failing(kd.Term):
    """A term that fails when the adversary wants it."""

    name = 'failing'
    failure = None

    @classmethod
    def from_settings(cls, robot, settings):
        return cls()

    def torque(self, state):
        if self.failure == 'exception':
            raise ZeroDivisionError('division by zero')
        return np.full(1 if self.failure == 'shape' else len(state.q), nan if self.failure == 'nan' else 0.0)


def controller_of(setup):
    controller = TorqueController(robot_named(setup[0]), settings_of(setup))
    controller.terms.append(Failing())
    return controller


# -- the adversary -------------------------------------------------------------------------------------


class Adversary:
    """Makes inputs of a robot that works, with the errors of one scene, at a random rate."""

    def __init__(self, setup, dice):
        self.name, _, self.frame, self.options = setup
        self.dice = dice
        self.robot = robot_named(self.name)
        self.usual = settings_of(setup)
        self.time, self.offset = 100.0, 1000.0
        self.period = 1 / np.exp(dice.uniform(np.log(50), np.log(1000)))
        self.q, self.v = self.robot.home, np.zeros(self.robot.nv)
        self.weight = self.robot.gravity_torque(self.q)
        self.effort = self.weight
        self.outputs = None  # of the last step: an adversary sees them
        self.sensed = []  # what the samples of other sensors in this step stand for
        self.failure = None  # of the term Failing
        self.usual_is_lost = False  # whether a scene changed the settings
        self.k = self.left = 0  # steps of the present scene, and steps that are left of it
        self.away = np.zeros(self.robot.nv)  # by which positions have jumped

    @property
    def is_driving(self):
        return self.outputs is not None and self.outputs.mode in DRIVING

    def inputs(self, dt=None):
        """One step later: what a robot sends that moves a little."""
        self.time += self.period if dt is None else dt
        self.v = 0.9 * self.v + np.array([self.dice.gauss(0, 0.05) for _ in self.v])
        self.q = self.robot.home + 0.9 * (self.q + self.period * self.v - self.robot.home)
        self.sensed = []
        return Inputs(self.time, self.time + self.offset, [self.sample()], deadman=True)

    def play(self, scene):
        """The inputs of one hostile scene; it ends soon after the controller stopped."""
        self.left, self.k, self.away = STEPS, 0, np.zeros(self.robot.nv)
        while self.left > 0:
            inputs = self.inputs()
            getattr(self, f'do_{scene}')(inputs)
            yield inputs
            self.k += 1
            self.left = self.left - 1 if self.is_driving else min(self.left - 1, 6)

    def recover(self, longest=150):
        """Inputs until the terms are at work again, and for a while after."""
        self.failure, self.k = None, 0
        is_patient = self.dice.random() < 0.3  # waits until the stop ends by itself
        is_lasting = self.options.get('stop_policy') == 'hold'
        calm = self.dice.randrange(5, 30)
        while self.k < longest and calm > 0:
            self.k += 1
            out = self.outputs
            if self.is_driving:
                calm -= 1
                yield self.calm()
            elif out is not None and out.torque is not None and out.fault is not None and not is_lasting:
                yield self.end_of_stop(is_patient)
            else:
                yield self.restart(out is not None and out.fault is not None)

    def calm(self):
        """Inputs of a robot that works, now and then at an odd time."""
        is_odd = self.dice.random() < 0.05
        return self.inputs(self.dice.choice([0.0, 1e-9, 0.019, 0.05]) if is_odd else None)

    def end_of_stop(self, is_patient):
        """A robot at rest, until the stop ends, or a release."""
        self.v = 0 * self.v
        inputs = self.inputs(0.08 if is_patient else None)
        inputs.release = not is_patient and self.k % 8 == 1
        inputs.samples = [self.sample(velocity=0 * self.v)]
        return self.unlocked(inputs)

    def restart(self, has_fault):
        """Clear the fault, or enable."""
        sends = self.outputs is not None and self.outputs.torque is not None
        # After a pause the states of before do not count for the rate any more.
        inputs = self.inputs(0.6 if has_fault and not sends else None)
        self.effort = self.weight
        inputs.samples = [self.sample()]
        inputs.clear_fault, inputs.enable = has_fault, None if has_fault else True
        return self.unlocked(inputs)

    def unlocked(self, inputs):
        """The same, with the emergency stop released and the usual settings."""
        inputs.emergency_stop = False
        inputs.settings = self.usual if self.usual_is_lost else None
        return inputs

    def sample(self, **changes):
        message = {
            'names': self.robot.joint_names,
            'position': self.q.copy(),
            'velocity': self.v.copy(),
            'effort': self.effort.copy(),
            'stamp': self.time + self.offset,
            'arrival': self.time,
        }
        return JointSamples(**{**message, **changes})

    def part(self, names, **changes):
        """A sample of some joints."""
        rows = [self.robot.joint_names.index(name) for name in names]
        values = {'position': self.q[rows], 'velocity': self.v[rows], 'effort': self.effort[rows]}
        return self.sample(names=tuple(names), **{**values, **changes})

    def later(self, inputs, dt):
        """Let this step happen dt [s] later."""
        self.time += dt
        inputs.time, inputs.clock = self.time, self.time + self.offset
        inputs.samples = [self.sample()]

    def invalid(self, n):
        return np.array([self.dice.choice(INVALID) for _ in range(n)])

    def spoilt(self, good):
        """`good` with one number replaced."""
        x = np.array(good, dtype=float)
        if x.size:
            x.flat[self.dice.randrange(x.size)] = self.dice.choice(INVALID)
        return x

    def is_time_for(self, share=0.1):
        return self.dice.random() < share

    # One method per scene.

    def do_storm(self, inputs):
        flip = lambda: self.dice.choice([None, None, True, False])  # noqa: E731
        inputs.enable, inputs.emergency_stop, inputs.deadman = flip(), flip(), flip()
        inputs.clear_fault, inputs.other_publisher = self.is_time_for(0.5), self.is_time_for()
        inputs.release, inputs.lower, inputs.fade = (self.is_time_for() for _ in range(3))
        inputs.guard_problem = 'the guard has a fault' if self.is_time_for() else ''

    def do_stop(self, inputs):
        """Disable, release, lower, fade, and enable again."""
        request = self.dice.choice(['disable', 'release', 'lower', 'fade', 'enable', *5 * ['none']])
        if request in ('release', 'lower', 'fade'):
            setattr(inputs, request, True)
        inputs.enable = {'disable': False, 'enable': True}.get(request)

    def do_others(self, inputs):
        """Other publishers, a guard that does not relay, a deadman that is let go."""
        inputs.other_publisher = self.is_time_for()
        inputs.guard_problem = 'no state of the guard' if self.is_time_for() else ''
        inputs.deadman = self.dice.choice([None, None, None, True, False])
        inputs.enable = True

    def do_silence(self, inputs):
        inputs.samples = []

    def do_part(self, inputs):
        """One joint is silent, or all are sent in two messages."""
        names = list(self.robot.joint_names)
        silent = self.dice.randrange(len(names)) if self.k % 10 else 0
        rest = names[:silent] + names[silent + 1 :]
        inputs.samples = [self.part(rest)] if len(names) > 1 else []
        if self.is_time_for(0.3):
            inputs.samples.append(self.part([names[silent]]))

    def do_mute_joint(self, inputs):
        inputs.samples = [self.part(self.robot.joint_names[1:])]

    def do_old_stamps(self, inputs):
        """States arrive in time, with stamps that are farther and farther behind."""
        inputs.samples = [self.sample(stamp=self.time + self.offset - 0.01 * self.k)]

    def do_values(self, inputs):
        field = self.dice.choice(['position', 'velocity', 'effort'])
        good = {'position': self.q, 'velocity': self.v, 'effort': self.effort}[field]
        bad = self.dice.choice([self.spoilt(good), self.invalid(self.robot.nv), self.invalid(3), []])
        inputs.samples = [self.sample(**{field: bad})]

    def do_names(self, inputs):
        names = list(self.robot.joint_names)
        self.dice.shuffle(names)
        odd = self.dice.choice([[], ['x'], [''], ['\x00', '\ud800'], names[:1]])
        names = [*names[: self.dice.randrange(len(names) + 1)], *odd]
        index = [self.robot.joint_names.index(n) if n in self.robot.joint_names else 0 for n in names]
        inputs.samples = [
            self.sample(names=names, position=self.q[index], velocity=self.v[index], effort=[]),
            *self.dice.choice([[], [self.sample()]]),
        ]

    def do_stamps(self, inputs):
        clock = self.time + self.offset
        stamps = (0.0, -1.0, clock, clock - 0.05, clock - 50, clock + 0.5, clock + 50, *INVALID)
        arrivals = (self.time, self.time, self.time - 0.05, self.time + 5, *INVALID)
        inputs.samples = [
            self.sample(stamp=self.dice.choice(stamps), arrival=self.dice.choice(arrivals))
            for _ in range(self.dice.randrange(3))
        ]

    def do_time(self, inputs):
        if self.is_time_for():
            self.time += self.dice.choice([-1e-3, -0.05, -5.0, 0.05, 0.5, 10.0, 1e6])
            inputs.time = self.time if self.is_time_for(0.5) else self.dice.choice(INVALID)

    def do_clock(self, inputs):
        if self.is_time_for():
            self.offset += self.dice.choice([-900.0, -1.0, -0.01, 0.01, 1.0, 900.0, 1e9])
            self.offset = max(self.offset, 0.0)
            inputs.clock = self.time + self.offset if self.is_time_for(0.5) else self.dice.choice(INVALID)

    def do_slow(self, inputs):
        """States at a rate that is too low."""
        self.later(inputs, 0.03)

    def do_jump(self, inputs):
        if self.is_time_for():
            self.away[self.dice.randrange(self.robot.nv)] += self.dice.choice([-3.0, -0.5, 0.5, 1.0, 3.0])
        inputs.samples = [self.sample(position=self.q + self.away)]

    def do_wrench(self, inputs):
        frames = (self.frame, self.robot.frames[0], 'nowhere')
        inputs.wrenches = [
            WrenchSample(
                self.dice.choice(frames),
                self.dice.choice(frames),
                self.dice.choice([np.ones(6), 1e3 * np.ones(6), self.invalid(6), self.invalid(3), None]),
                self.dice.choice([self.time, 1e300, -1.0, nan]),
            )
            for _ in range(self.dice.randrange(3))
        ]

    def do_trajectory(self, inputs):
        names = self.dice.choice([self.robot.joint_names, self.robot.joint_names[:1], ('x',), ()])
        count, n = self.dice.choice([0, 1, 1, 2, 3]), len(names)
        near = np.tile(self.q[:n] if n else [], (count, 1)) + 0.01 * self.dice.random()
        most = np.tile(self.robot.effort_limits[:n] if n else [], (count, 1))
        spoil = self.is_time_for(0.5)
        clock = self.time + self.offset
        inputs.trajectory = JointTrajectory(
            names,
            self.spoilt(np.arange(count)) if spoil else 0.05 * np.arange(count),
            self.spoilt(near) if spoil else near,
            self.dice.choice([None, np.zeros((count, n)), self.invalid(n)]),
            None,
            self.dice.choice([None, most, -most, 1e9 * np.ones((count, n)), self.invalid(3)]),
            self.dice.choice([0.0, 0.0, 0.0, clock + 0.02, clock - 0.02, nan, 1e9]),
        )

    def do_stream(self, inputs):
        """Set-points near the robot for some steps, then none: long enough to come to rest."""
        if self.k == 0:
            self.left = 60
        if self.k < self.dice.randrange(1, 12):
            goal = self.robot.home + self.dice.choice([-0.02, -0.005, 0.005, 0.02])
            inputs.trajectory = JointTrajectory(self.robot.joint_names, np.zeros(1), goal[None, :])
        elif self.period < 0.018:
            self.later(inputs, 0.018 - self.period)

    def do_target(self, inputs):
        """Poses near and far, twists slow and fast, and invalid ones."""
        pose = self.robot.frame_pose(self.q, self.frame)
        turn, size = pin.Quaternion(pose[:3, :3]).coeffs(), self.dice.choice([0.0, 0.01, 0.3, 5.0])
        position = pose[:3, 3] + size * np.array([self.dice.gauss(0, 1) for _ in range(3)])
        frames = (self.frame, self.frame, self.robot.urdf.root, 'nowhere')
        pose = PoseSample(
            self.dice.choice(frames),
            self.dice.choice([self.robot.urdf.root, self.frame, 'nowhere']),
            self.dice.choice([position, position, self.spoilt(position), self.invalid(2)]),
            self.dice.choice([turn, turn, -turn, 2 * turn, self.spoilt(turn), self.invalid(4)]),
            self.time,
        )
        v = size * np.array([self.dice.gauss(0, 1) for _ in range(6)])
        twist = TwistSample(pose.frame, pose.frame_id, self.dice.choice([v, v, self.spoilt(v)]), self.time)
        inputs.targets = self.dice.choice([[], [pose], [twist], [pose, twist]])

    def do_gravity(self, inputs):
        g = np.array(
            self.dice.choice([(0, 0, -9.81), (0, 1.0, -9.7), (2.0, 0, -9.0), (0, 0, 9.81), (0, 0, 0)])
        )
        inputs.gravity = self.dice.choice(
            [g, g, self.spoilt(g), self.invalid(3), self.invalid(2), 'down', 9.81]
        )
        self.usual_is_lost = True

    def do_payload(self, inputs):
        if not self.is_time_for(0.3):
            return
        mass = self.dice.choice([0.0, 0.5, 2.0, -1.0, nan, 1e9])
        frame = self.dice.choice([self.frame, self.frame, 'nowhere'])
        com = self.dice.choice([np.zeros(3), np.array([0.05, 0.0, 0.1])])
        inputs.payloads = self.dice.choice([[], [Payload(frame, mass, com, 1e-3 * np.eye(3))]])
        inputs.limits = self.dice.choice([None, None, {'effort': nan}, {'effort_rate': 300.0}])
        self.usual_is_lost = True

    def do_limits(self, inputs):
        if self.is_time_for(0.7):
            return
        n = self.robot.nv
        field = self.dice.choice(
            ['effort', 'effort', 'effort_rate', 'velocity', 'position_margin', 'following_error', 'nothing']
        )
        size = self.dice.choice([0.0, 0.1, 1.0, 50.0, 1e3, 1e308])
        same = np.full(n, size)
        inputs.limits = {field: self.dice.choice([same, same, self.invalid(n), [1.0]])}
        self.usual_is_lost = True

    def do_settings(self, inputs):
        if self.is_time_for(0.7):
            return
        changes = (
            {'ramp_time': 2.0}, {'ramp_time': 0.0}, {'state_timeout': 0.03}, {'damping': 1.5},
            {'reference_timeout': 0.05}, {'limits_state_rate': 200.0}, {'terms': ('damping',)},
            {'gains_bandwidth': 5.0}, {'gains_bandwidth': 900.0}, {'gains_kp': 1e6, 'gains_kd': 0.0},
            {'stop_policy': 'zero'}, {'damping': 0.5, 'limits_effort': 5000.0}, {'friction_scale': 1.5},
            {'damping': 0.7, 'stop_time': 9.0}, {'deadman_timeout': 0.01}, {'limits_effort': [1.0] * 40},
        )  # fmt: skip
        inputs.settings = self.usual.replace(**self.dice.choice(changes))
        self.usual_is_lost = True

    def do_push(self, inputs):
        """The robot is thrown about, and measures strange efforts."""
        self.effort = self.dice.choice([np.full(self.robot.nv, 1e4), self.invalid(self.robot.nv)])
        inputs.samples = [self.sample(velocity=self.v + self.dice.choice([0.0, 0.5, 100.0]))]
        inputs.enable = True

    def do_first_effort(self, inputs):
        """A start from any measured effort."""
        if self.k == 0:
            inputs.release, self.left = True, 30
        elif self.outputs.torque is not None:
            self.later(inputs, 0.015)
        else:
            self.effort = self.weight + self.dice.choice([0.0, 1.0, 8.0, 30.0, -30.0, 1e3])
            inputs.samples, inputs.enable = [self.sample()], True

    def do_term(self, inputs):
        self.failure = self.dice.choice(['exception', 'nan', 'shape']) if self.is_time_for() else None

    def do_sensors(self, inputs):
        """Joints that have other sensors come from these, valid or not."""
        config = self.robot.config
        sources = {name: config.joints[name].state for name in self.robot.joint_names}
        encoders = [name for name, source in sources.items() if source == 'joint_states']
        others = [name for name, source in sources.items() if source != 'joint_states']
        is_valid = self.is_time_for(0.8)
        noise = None if is_valid else self.dice.choice([nan, inf, 0.0, 1e9])
        if config.imu is None and config.odom is None:
            garbage = ImuSample(self.invalid(4), self.invalid(3), *self.invalid(2))
            inputs.imu, inputs.odom = [garbage], []
            return
        inputs.samples = [self.part(encoders)]
        if config.imu is not None:
            inputs.imu = [self.imu(noise)]
        else:
            inputs.odom = [self.odom(noise)]
        if is_valid:
            self.sensed = [self.part(others, effort=np.zeros(0))]

    def imu(self, noise):
        robot, link = self.robot, self.robot.config.imu.link
        mount = pin.rpy.rpyToMatrix(*robot.config.imu.mount_rpy)
        rotation = robot.frame_pose(self.q, link)[:3, :3] @ mount
        angular = rotation.T @ robot.jacobian(self.q, link)[3:] @ self.v
        quaternion = pin.Quaternion(rotation).coeffs() * (1.0 if noise is None else noise)
        return ImuSample(quaternion, angular, self.time + self.offset, self.time)

    def odom(self, noise):
        robot, link = self.robot, self.robot.config.odom.heading_of
        pose, J = robot.frame_pose(self.q, link), robot.jacobian(self.q, link)
        rotation = pose[:3, :3]
        quaternion = pin.Quaternion(rotation).coeffs() * (1.0 if noise is None else noise)
        linear, angular = rotation.T @ J[:3] @ self.v, rotation.T @ J[3:] @ self.v
        return OdomSample(*pose[:2, 3], quaternion, linear, angular, self.time + self.offset, self.time)


SCENES = [name.removeprefix('do_') for name in vars(Adversary) if name.startswith('do_')]


# -- the campaign --------------------------------------------------------------------------------------


def same(one, other):
    """P10: bit by bit."""
    for a, b in ((one.torque, other.torque), (one.command, other.command)):
        assert (a is None) == (b is None), 'P10, P16: another command'
        assert a is None or a.tobytes() == b.tobytes(), 'P10, P16: another command'
    assert (one.mode, one.fault, one.refused) == (other.mode, other.fault, other.refused), 'P10, P16'


def with_other_reference(trajectory, commanded):
    """P16: the same trajectory, with other references of joints that are not commanded."""
    if trajectory is None or np.ndim(trajectory.positions) != 2 or not np.size(trajectory.positions):
        return trajectory
    moved = [0.0 if name in commanded else 0.003 for name in trajectory.joint_names]
    return replace(trajectory, positions=trajectory.positions + np.array(moved))


class Run:
    """One controller under attack; a second one gets the same inputs and must give the same bits.

    The second one gets other references for joints that are not commanded, while the trajectory is valid.
    """

    def __init__(self, setup, seed, with_copy=False):
        self.dice = random.Random(seed)
        self.adversary = Adversary(setup, self.dice)
        self.monitor = Monitor(controller_of(setup))
        self.copy = controller_of(setup) if with_copy else None
        self.counted = Counter()

    def play(self, scene):
        self.scene = scene
        inputs_of = self.adversary.recover() if scene == 'recover' else self.adversary.play(scene)
        for inputs in inputs_of:
            self.step(inputs)

    def step(self, inputs):
        adversary, monitor = self.adversary, self.monitor
        before = monitor.mode
        monitor.controller.terms[-1].failure = adversary.failure
        adversary.outputs = outputs = monitor.step(inputs, adversary.sensed)
        if inputs.settings is adversary.usual and monitor.controller.settings == adversary.usual:
            adversary.usual_is_lost = False
        if self.copy is not None:
            self.copy.terms[-1].failure = adversary.failure
            if self.scene == 'stream' and not adversary.robot.config.rolling:
                other = with_other_reference(inputs.trajectory, self.copy.command_joints)
                inputs = replace(inputs, trajectory=other)
            same(outputs, self.copy.step(inputs))
        self.counted['steps'] += 1
        self.counted['driving'] += outputs.mode in DRIVING
        self.counted['stops'] += before in DRIVING and outputs.mode not in DRIVING

    @np.errstate(all='ignore')  # of invalid numbers that it makes
    def attack(self, steps, scenes=SCENES):
        """Hostile scenes in random order; the controller recovers before each, so that it is at work."""
        while self.counted['steps'] < steps:
            self.play('recover')
            self.play(self.dice.choice(scenes))
        return self.counted
