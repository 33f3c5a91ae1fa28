"""Settings of a controller: one value per row of the parameter table."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from ..arrays import Array
from ..errors import InputError, suggestion
from ..robot.model import Robot
from ..robot.motor import UNITS
from ..safety.stop_policies import STOP_POLICIES
from .parameters import FRAME, PARAMETERS, Parameter, frame_of
from .terms import term as terms

SettingsType = TypeVar('SettingsType', bound='Settings')


class Settings:
    """Values of the parameters, as fields named like them with '_' for '.': gains.kp is gains_kp.

    None means the robot's own value, or none. Settings are immutable: `replace` returns new ones.
    """

    own: ClassVar[tuple[Parameter, ...]] = ()  # rows that a subclass adds

    def __init__(self, **values: Any) -> None:
        rows = self.parameters()
        self._values = {name: row.default for name, row in rows.items() if FRAME not in name}
        by_attribute = {row.attribute: name for name, row in rows.items()}
        given: dict[str, str] = {}
        for key, value in values.items():
            name, row = _find(key, rows, by_attribute)
            if name in given:
                raise InputError(f'{given[name]} and {key} are the same parameter; keep one')
            given[name] = key
            self._values[name] = replace(row, name=name).checked(value)
        self.__dict__.update({name.replace('.', '_'): value for name, value in self._values.items()})

    if TYPE_CHECKING:  # the fields derive from the table

        def __getattr__(self, name: str) -> Any: ...

    @classmethod
    def parameters(cls) -> dict[str, Parameter]:
        """The table: rows of the controller, then those of every registered term, by name."""
        registered = terms.registered_terms()
        rows = {row.name: row for row in PARAMETERS}
        for term in registered.values():
            rows |= {row.name: row for row in term.parameters}
        rows['terms'] = replace(
            rows['terms'], description=f'{rows["terms"].description}: {", ".join(registered)}'
        )
        rows['command_unit'] = replace(rows['command_unit'], choices=tuple(UNITS))
        rows['stop.policy'] = replace(rows['stop.policy'], choices=tuple(STOP_POLICIES))
        return rows | {row.name: row for row in cls.own}

    @classmethod
    def of(cls: type[SettingsType], values: Mapping[str, Any]) -> SettingsType:
        """Settings from values by parameter name; other names are ignored."""
        rows = cls.parameters()
        families = [row for name, row in rows.items() if FRAME in name]
        return cls(
            **{
                name: value
                for name, value in values.items()
                if name in rows or any(frame_of(row, name) is not None for row in families)
            }
        )

    @property
    def values(self) -> dict[str, Any]:
        """All values by parameter name."""
        return dict(self._values)

    def replace(self: SettingsType, **changes: Any) -> SettingsType:
        """New settings with some values changed; keys are fields or parameter names."""
        fields = {name.replace('.', '_') for name in changes}
        kept = {name: value for name, value in self._values.items() if name.replace('.', '_') not in fields}
        return type(self)(**kept, **changes)

    def per_joint(self, name: str, robot: Robot) -> Array:
        """A value as one number per joint of the robot, from one number for all or one for each."""
        x = np.asarray(self._values[name], dtype=float)
        if x.ndim == 0:
            return np.full(robot.nv, float(x))
        if x.shape != (robot.nv,):
            raise InputError(
                f'{name} has {x.size} numbers; give one, or one per joint: {", ".join(robot.joint_names)}'
            )
        return x

    def frames(self, kind: str) -> dict[str, dict[str, Any]]:
        """Values that are set for frames, such as wrench.<frame>.max_force: by frame, then last part."""
        found: dict[str, dict[str, Any]] = {}
        for name, value in self._values.items():
            first, _, rest = name.partition('.')
            frame, _, last = rest.rpartition('.')
            if first == kind and frame and value is not None:
                found.setdefault(frame, {})[last] = value
        return found

    def check_change(self, new: 'Settings') -> None:
        """Refuse changes of parameters that are not live."""
        rows = self.parameters()
        for name in {**self._values, **new._values}:
            row = rows.get(name) or next(row for row in rows.values() if frame_of(row, name) is not None)
            if not row.live and self._values.get(name, row.default) != new._values.get(name, row.default):
                raise InputError(f'{name} cannot change while the controller runs; configure it again')

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._values == self._values

    def __repr__(self) -> str:
        rows = self.parameters()
        changed = [
            f'{name.replace(".", "_")}={value!r}'
            for name, value in self._values.items()
            if name not in rows or value != rows[name].default
        ]
        return f'{type(self).__name__}({", ".join(changed)})'


def _find(key: str, rows: dict[str, Parameter], by_attribute: dict[str, str]) -> tuple[str, Parameter]:
    """Name and row of a parameter that is given by its name or by its field."""
    name = by_attribute.get(key, key)
    if name in rows and FRAME not in name:
        return name, rows[name]
    for row in rows.values():
        frame = frame_of(row, key) or frame_of(replace(row, name=row.attribute), key)
        if frame is not None:
            return row.name.replace(FRAME, frame), row
    valid = by_attribute if '_' in key and '.' not in key else rows
    raise InputError(f'there is no parameter {key!r}{suggestion(key, valid)}')
