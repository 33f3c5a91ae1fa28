"""From a list of names to the terms whose sum goes to the motors."""

from collections.abc import Sequence

from ..errors import InputError, UnknownNameError
from ..robot.model import Robot
from .settings import TERMS, Settings, per_joint
from .terms.balance import Balance
from .terms.computed_torque import ComputedTorque
from .terms.damping import Damping
from .terms.friction_compensation import Friction
from .terms.gravity_compensation import Gravity
from .terms.joint_limits import JointLimits
from .terms.observer import Observer
from .terms.rolling_base import RollingBase
from .terms.term import Term
from .terms.wrench import Wrench


def build_terms(robot: Robot, settings: Settings) -> list[Term]:
    """The terms in the order given; gravity and friction are counted once, whoever asks for them."""
    names = settings.terms
    for name in names:
        if name not in TERMS:
            raise UnknownNameError('term', name, TERMS)
    if not names or len(set(names)) < len(names):
        raise InputError(f'terms is {list(names)}; name each term once, and at least one')
    return [_build(name, robot, settings) for name in names]


def retune(terms: Sequence[Term], robot: Robot, settings: Settings) -> None:
    """Put other settings in force, in all terms or, where one of them is wrong, in none."""
    tunable = [term for term in terms if isinstance(term, (ComputedTorque, Damping, Wrench, Observer))]
    tuned = [_build(term.name, robot, settings) for term in tunable]
    for old, new in zip(tunable, tuned, strict=True):
        old.adopt(new)


def _build(name: str, robot: Robot, settings: Settings) -> Term:
    if name == 'gravity':
        return Gravity(settings.hardware_compensates_gravity)
    if name == 'friction':
        return Friction(robot)
    if name == 'damping':
        return Damping(per_joint('damping', settings.damping, robot))
    if name == 'computed_torque':
        elsewhere = 'gravity' in settings.terms or settings.hardware_compensates_gravity
        return ComputedTorque(robot, *settings.gains(robot), with_gravity=not elsewhere)
    if name == 'wrench':
        return Wrench(robot, settings.wrenches, settings.wrench_timeout)
    if name == 'joint_limits':
        return JointLimits(robot)
    if name == 'observer':
        return Observer(robot, settings.observer)
    if name == 'rolling_base':
        return RollingBase(robot)
    return Balance(robot)
