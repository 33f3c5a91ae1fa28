"""The robot file: what a URDF cannot describe (motors, friction, drivers, sensors, stop policy)."""

from dataclasses import dataclass, field
from typing import Literal

from ..errors import ConfigError

Vector3 = tuple[float, float, float]
Sign = Literal['smooth', 'exact']
Unit = str  # name of a unit in motor.UNITS


def _check_positive(config: object, *names: str) -> None:
    """ConfigError for the first of these entries that is given and not positive."""
    for name in names:
        value = getattr(config, name)
        if value is not None and value <= 0:
            raise ConfigError(f'{name} is {value}; it must be positive')


@dataclass(frozen=True)
class MotorConfig:
    """Motor and gear of a joint; the constants refer to the motor shaft."""

    gear: float = 1.0  # N, motor turns per joint turn
    rotor_inertia: float = 0.0  # J_m [kg m2]
    torque_constant: float | None = None  # k_m [N m/A]
    back_emf: float | None = None  # [V s/rad]
    resistance: float | None = None  # [ohm]
    supply: float | None = None  # maximum voltage of the amplifier [V]

    def __post_init__(self) -> None:
        if self.gear == 0:
            raise ConfigError('gear is 0; it must be motor turns per joint turn, 1 without a gear')
        if self.rotor_inertia < 0:
            raise ConfigError(f'rotor_inertia is {self.rotor_inertia}; it must be 0 or more')
        _check_positive(self, 'torque_constant', 'back_emf', 'resistance', 'supply')

    def constant(self, name: str) -> float:
        """A constant that the unit of the drivers needs; an error if the robot file has none."""
        value: float | None = getattr(self, name)
        if value is None:
            raise ConfigError(f'motor.{name} is missing')
        return value


@dataclass(frozen=True)
class JointConfig:
    """One joint; a passive joint (driven: false) is never commanded."""

    driven: bool
    nominal_torque: float | None = None  # default effort limit [N m]; the URDF's effort is the peak
    effort_rate: float | None = None  # default rate limit [N m/s]; None: ten effort limits per second
    following_error: float | None = None  # default limit [rad, m]; None: 0.2
    motor: MotorConfig = field(default_factory=MotorConfig)
    state: Literal['joint_states', 'imu', 'odom'] = 'joint_states'

    def __post_init__(self) -> None:
        _check_positive(self, 'nominal_torque', 'effort_rate', 'following_error')


@dataclass(frozen=True)
class FrictionConfig:
    """Gamma_f = F_v v + (F_c + F_s exp(-(v / v_s)^2) + F_l |Q|) sign(v) + F_0, [krang] eq. 17 and more.

    A joint that is not named has none. The smooth sign is tanh(v / width). Coulomb coefficients are valid
    only with the sign function that they were fitted with.
    """

    viscous: dict[str, float] = field(default_factory=dict)  # F_v [N m s/rad]
    coulomb: dict[str, float] = field(default_factory=dict)  # F_c [N m]
    sign: Sign | None = None
    fitted_with: Sign | None = None
    width: dict[str, float] = field(default_factory=dict)  # of the smooth sign [rad/s]; default 1
    stribeck: dict[str, float] = field(default_factory=dict)  # F_s, additional near rest [N m]
    stribeck_speed: dict[str, float] = field(default_factory=dict)  # v_s [rad/s]; default 0.1
    load: dict[str, float] = field(default_factory=dict)  # F_l, share of the gravity torque Q(q) [1]
    # F_0, a constant torque [N m]: offset of the effort, or friction that depends on the direction, which is
    # F_c + F_0 forward and F_c - F_0 backward.
    offset: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ('viscous', 'coulomb', 'stribeck', 'load'):
            for joint, value in getattr(self, name).items():
                if value < 0:
                    raise ConfigError(f'{name}.{joint} is {value}; it must be 0 or more')
        for name in ('width', 'stribeck_speed'):
            for joint, value in getattr(self, name).items():
                if value <= 0:
                    raise ConfigError(f'{name}.{joint} is {value} rad/s; it must be positive')
        for name in ('stribeck', 'load'):
            if getattr(self, name) and self.sign != 'smooth':
                raise ConfigError(f'{name} needs sign: smooth, because a step at rest cannot be integrated')
        if not self.coulomb:
            return
        if self.sign is None or self.fitted_with is None:
            raise ConfigError('coulomb coefficients need the entries sign and fitted_with: smooth or exact')
        if self.sign != self.fitted_with:
            raise ConfigError(
                f'sign is {self.sign!r} but the coefficients were fitted with '
                f'{self.fitted_with!r}; use that sign, or coefficients fitted with {self.sign!r}'
            )

    def by_joint(self) -> dict[str, dict[str, float]]:
        """The entries that map joints to numbers."""
        return {name: value for name, value in vars(self).items() if isinstance(value, dict)}


@dataclass(frozen=True)
class WheelConfig:
    """A wheel that rolls without slipping on the plane z = const of the root link."""

    link: str  # its origin is the wheel's centre
    radius: float  # [m]
    axle: Vector3  # direction of the axle in the link's axes

    def __post_init__(self) -> None:
        if self.radius <= 0:
            raise ConfigError(f'radius is {self.radius} m; it must be positive')
        if not any(self.axle):
            raise ConfigError('axle is 0 0 0; it must be a direction')


@dataclass(frozen=True)
class ActuatorConfig:
    """A motor driver: q_joint = sign * q_driver / ratio + offset; it gives `share` of the joint's torque."""

    name: str  # in the driver's messages
    joint: str
    sign: Literal[1, -1] = 1
    offset: float = 0.0  # [rad] or [m]
    ratio: float = 1.0  # driver turns per joint turn
    share: float = 1.0
    only_if: str | None = None  # the driver is commanded only if this parameter is true

    def __post_init__(self) -> None:
        if self.ratio <= 0:
            raise ConfigError(f'ratio is {self.ratio}; it must be positive (the sign is `sign`)')
        if not 0 < self.share <= 1:
            raise ConfigError(f'share is {self.share}; it must be in (0, 1]')


@dataclass(frozen=True)
class StopConfig:
    """Stop policy (hold, lower or zero) and its times [s]."""

    policy: str  # a name of safety/stop_policies.py
    time: float = 2.0
    blind_time: float = 0.5
    limit: float = 60.0  # of a stop at the end of the process

    def __post_init__(self) -> None:
        if self.time <= 0 or self.blind_time <= 0:
            raise ConfigError(f'time {self.time} s and blind_time {self.blind_time} s must be positive')
        if max(self.time, self.blind_time) > self.limit:
            raise ConfigError(
                f'time {self.time} s and blind_time {self.blind_time} s must not exceed limit {self.limit} s'
            )


@dataclass(frozen=True)
class ImuConfig:
    """An IMU; it measures either the angle of one joint or the direction of gravity."""

    link: str  # to which the IMU is attached
    mount_rpy: Vector3  # rotation from the IMU's axes to the link's [rad]
    feeds: Literal['joint', 'gravity']


@dataclass(frozen=True)
class OdomConfig:
    """Planar odometry: the joints that it measures, and the link whose heading it reports."""

    x: str
    y: str
    heading: str
    heading_of: str


@dataclass(frozen=True)
class RobotConfig:
    """A robot file; `joints` is in the order of q."""

    name: str
    urdf: str  # path, relative to the robot file
    joints: dict[str, JointConfig]
    home: dict[str, float]  # [rad] or [m]
    stop: StopConfig
    end_effectors: tuple[str, ...]
    actuators: tuple[ActuatorConfig, ...] = ()  # if absent: one per driven joint, named like it
    command_unit: Unit = 'torque'
    gravity: Vector3 = (0.0, 0.0, -9.81)  # [m/s2] in the root link's axes
    rotor_inertia: bool = True  # whether N^2 J_m is part of A
    friction: FrictionConfig = field(default_factory=FrictionConfig)
    locked: dict[str, float] = field(default_factory=dict)  # joints that are fixed there [rad] or [m]
    rolling: tuple[WheelConfig, ...] = ()
    imu: ImuConfig | None = None
    odom: OdomConfig | None = None
    description: str = ''
