"""A control term: one method from the present state to a torque, and a registry of terms by name."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from ...arrays import Array, Mask
from ...errors import InputError, UnknownNameError
from ...robot.model import Robot
from ...safety.modes import Fault
from ..dynamics import Dynamics
from ..parameters import Parameter

if TYPE_CHECKING:
    from ..settings import Settings

ENTRY_POINTS = 'krang_dynamics.terms'  # group in which other packages offer terms


@dataclass(slots=True)
class ReferencePoint:
    """The reference at one step, over joint_names."""

    q: Array  # [rad]
    v: Array  # [rad/s]
    a: Array  # [rad/s2]
    effort: Array  # feed-forward [N m]

    def before(self, age: Array) -> 'ReferencePoint':
        """The same with each position as it was `age` [s] before, when that joint was measured."""
        return ReferencePoint(self.q - age * self.v, self.v, self.a, self.effort)


@dataclass(slots=True)
class TermInputs:
    """State and reference at one step, over joint_names; all terms share it and none changes it."""

    time: float  # steady [s]
    dt: float  # since the last step [s]
    q: Array  # [rad]
    v: Array  # [rad/s]
    reference: ReferencePoint
    applied: Array  # the torque commanded since the last step [N m]
    friction: Array  # Gamma_f(v) of the robot's model [N m], for terms with needs_friction
    dynamics: Dynamics


class Term(ABC):
    """A part of the torque that goes to the motors."""

    name: ClassVar[str]  # in the parameter `terms`
    parameters: ClassVar[tuple[Parameter, ...]] = ()  # rows that this term adds to the table
    takes: ClassVar[tuple[type, ...]] = ()  # types of samples that it uses, such as WrenchSample
    needs_coriolis: ClassVar[bool] = False  # whether it reads dynamics.C
    follows_reference: ClassVar[bool] = False  # whether joints follow the joint reference
    compensates_gravity: ClassVar[bool] = False  # unless another term or the hardware does
    needs_friction: bool = False  # whether it reads state.friction

    external: Array | None = None  # estimated torque of the environment [N m]; None: no estimate
    followed: Mask | None = None  # joints that follow the reference, where the term has such
    arms: Mapping[str, Mask] = MappingProxyType({})  # the joints of each hand that follows Cartesian targets
    posture: Array | None = None  # that these targets prefer [rad]; None: that at enable
    contact = 'none'  # interpretation of that torque: none, contact or collision

    @classmethod
    @abstractmethod
    def from_settings(cls, robot: Robot, settings: 'Settings') -> 'Term':
        """The term for a robot; InputError if the settings are invalid for it."""

    @property
    def gains(self) -> tuple[Array, Array] | None:
        """Kp [1/s2] and Kd [1/s] over joint_names, where the term feeds back errors of the joints."""
        return None

    @abstractmethod
    def torque(self, state: TermInputs) -> Array:
        """Torque [N m] over joint_names, in an array that is not changed afterwards."""

    def take(self, sample: Any, now: float) -> str | None:
        """Use a sample of a type in `takes` from now [s] on; returns the reason if it is refused."""
        return f'{self.name} takes no {type(sample).__name__}'

    def fault(self) -> Fault | None:
        """A reason to stop, found by the last torque()."""
        return None

    def reset(self) -> None:  # noqa: B027
        """Reset the internal state, as at enable."""

    def check_change(self, other: Any) -> None:  # noqa: B027
        """InputError if the settings of another term of the same class cannot be adopted."""

    def adopt(self, other: Any) -> None:  # noqa: B027
        """Take the settings of another term of the same class, and keep the internal state."""


TermType = TypeVar('TermType', bound=type[Term])
_registry: dict[str, type[Term]] = {}


def register_term(term: TermType) -> TermType:
    """Class decorator: make a term available under its name in the parameter `terms`."""
    name = getattr(term, 'name', '')
    if not name.isidentifier():
        raise InputError(f'term {term.__name__}: name is {name!r}; it must be a word such as my_term')
    known = _registry.get(name)
    if known is not None and (known.__module__, known.__qualname__) != (term.__module__, term.__qualname__):
        raise InputError(f'term {name!r} is registered already, by {known.__module__}; choose another name')
    _registry[name] = term
    return term


def registered_terms() -> dict[str, type[Term]]:
    """All terms by name: those of this package and those that were registered from outside."""
    return dict(_registry)


def load_entry_points() -> None:
    """Import the terms that installed packages offer in the group krang_dynamics.terms."""
    for entry in entry_points(group=ENTRY_POINTS):
        entry.load()


def follow_reference(names: Iterable[str]) -> bool:
    """Whether any of these terms follows the joint reference."""
    return any(name in _registry and _registry[name].follows_reference for name in names)


def build_terms(robot: Robot, settings: 'Settings') -> list[Term]:
    """The terms of the parameter `terms`, in its order."""
    names = settings.terms
    for name in names:
        if name not in _registry:
            raise UnknownNameError('term', name, _registry)
    if not names or len(set(names)) < len(names):
        raise InputError(f'terms is {list(names)}; name each term once, and at least one')
    return [_registry[name].from_settings(robot, settings) for name in names]
