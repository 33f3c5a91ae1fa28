"""Parameters on a ROS node: declared with description and range, checked, set as a whole or not at all."""

import os
from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from pathlib import Path
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor, SetParametersResult
from rclpy.exceptions import ParameterException
from rclpy.node import Node
from rclpy.parameter import Parameter as RosParameter

from ...control.guard import GuardSettings
from ...control.parameters import Parameter, frame_of
from ...control.settings import Settings
from ...errors import InputError, KrangError, suggestion
from ...simulation.simulator_settings import SimulatorSettings

ROS_OWN = ('use_sim_time', 'start_type_description_service')
FLIGHTS = str(Path(os.environ.get('ROS_HOME', '~/.ros')) / 'flights')
# Rows of the process and of the node, in addition to those of the controller.
PROCESS_PARAMETERS = (
    Parameter(
        'executor', 'text', 'static', 'executor of the callbacks', choices=('static', 'single', 'events')
    ),
    Parameter('busy_wait', 'flag', False, 'true: poll for messages instead of sleeping; occupies a core'),
    Parameter('thread_priority', 'integer', 0, 'SCHED_FIFO priority; 0: normal scheduling', '', 0, 99),
    Parameter('lock_memory', 'flag', False, 'true: keep all memory from being swapped out'),
    Parameter('cpu_affinity', 'integers', None, 'CPUs that the process may use; default: all', '', 0, 1023),
)
NODE_PARAMETERS = (
    *PROCESS_PARAMETERS,
    Parameter('guard', 'text', '', 'node of the guard between controller and drivers; empty: none'),
    Parameter('auto_activate', 'flag', False, 'true: configure and activate the node when it starts'),
    Parameter('publish_terms', 'flag', False, 'true: publish the torque of each term and the reference'),
    Parameter('flight_recorder', 'text', FLIGHTS, 'folder for bags of the time before a fault; empty: none'),
)
Apply = Callable[[Mapping[str, Any]], None]  # puts new values in force, or raises KrangError


class RosParameters:
    """The parameters of a node by name; `values` holds those in force.

    Once `apply` is set, live ones go through it and all others are refused.
    """

    def __init__(self, node: Node, parameters: Iterable[Parameter]) -> None:
        self._node = node
        self._known: dict[str, Parameter] = {}
        self.values: dict[str, Any] = {}
        self.apply: Apply | None = None
        self.limited: Callable[[], Mapping[str, Any]] = dict  # values in force of those that have a limit
        self._is_showing = False
        self.declare(parameters)
        node.add_on_set_parameters_callback(self._set)
        node.add_post_set_parameters_callback(lambda _: self.show_limited())

    @property
    def given(self) -> list[str]:
        """Names that were given at the start, including unknown ones."""
        return list(self._node._parameter_overrides)

    def declare(self, parameters: Iterable[Parameter]) -> None:
        """Add parameters; those that exist already keep their values."""
        for parameter in parameters:
            if parameter.name in self._known:
                continue
            try:
                value = self._declared(parameter)
            except ParameterException as error:
                raise InputError(f'{parameter.name}: {error}') from None
            self.values[parameter.name] = parameter.checked(_plain(value))
            self._known[parameter.name] = parameter

    def _declared(self, parameter: Parameter) -> Any:
        """The given value, or the default; an earlier attempt may have declared it."""
        if not self._node.has_parameter(parameter.name):
            self._node.declare_parameter(parameter.name, _for_ros(parameter.default), _descriptor(parameter))
        return self._node.get_parameter(parameter.name).value

    def unknown(self) -> list[str]:
        """A message for each given name that no node has; nodes share files and arguments."""
        return unknown_parameters(name for name in self.given if name not in self._known)

    def show(self, in_force: Mapping[str, Any]) -> None:
        """Show the values in force of parameters that were not given; they still follow the robot's own."""
        self._show({name: value for name, value in in_force.items() if self.values.get(name) is None})

    def show_limited(self) -> None:
        """Let parameters that were given beyond a limit show the value in force."""
        if self._is_showing:
            return
        limited = {
            name: value
            for name, value in self.limited().items()
            if self.values.get(name) is not None and self.values[name] != value
        }
        self.values |= limited
        self._show(limited)

    def _show(self, values: Mapping[str, Any]) -> None:
        shown = [
            RosParameter(name, value=_for_ros(value))
            for name, value in values.items()
            if self._node.has_parameter(name)
        ]
        self._is_showing = True
        try:
            self._node.set_parameters(shown)
        finally:
            self._is_showing = False

    def _set(self, changes: list[Any]) -> SetParametersResult:
        if self._is_showing:
            return SetParametersResult(successful=True)
        try:
            self._take({change.name: _plain(change.value) for change in changes})
        except KrangError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def _take(self, changes: dict[str, Any]) -> None:
        values = dict(self.values)
        for name, value in changes.items():
            parameter = self._known.get(name)
            if (
                self.apply is not None
                and (parameter is None or not parameter.live)
                and name != 'start_type_description_service'
            ):
                raise InputError(f'{name} is read when the node is configured; clean it up first')
            if parameter is not None:
                values[name] = parameter.checked(value)
        if self.apply is not None:
            self.apply(values)
        self.values = values


def unknown_parameters(given: Iterable[str]) -> list[str]:
    """A message for each name that is a parameter of no node."""
    tables = (Settings, GuardSettings, SimulatorSettings)
    rows = [*NODE_PARAMETERS, *(row for table in tables for row in table.parameters().values())]
    own, known = ('qos_overrides', *ROS_OWN), dict.fromkeys(row.name for row in rows)
    return [
        f'there is no parameter {name!r}{suggestion(name, list(known))}'
        for name in given
        if not name.startswith(own) and not any(name == row.name or frame_of(row, name) for row in rows)
    ]


def _descriptor(parameter: Parameter) -> ParameterDescriptor:
    descriptor = ParameterDescriptor(description=parameter.text)
    if parameter.choices:
        descriptor.additional_constraints = f'one of {", ".join(parameter.choices)}'
    # Parameter.checked() checks the type: 1 is accepted for 1.0, and None means the robot's own value.
    descriptor.dynamic_typing = True
    if (
        isfinite(parameter.low)
        and isfinite(parameter.high)
        and parameter.kind in ('number', 'numbers', 'per_joint')
    ):
        descriptor.floating_point_range = [
            FloatingPointRange(from_value=float(parameter.low), to_value=float(parameter.high))
        ]
    return descriptor


def _plain(value: Any) -> Any:
    """Arrays of rclpy as lists, which can be compared and written as JSON."""
    return value if value is None or isinstance(value, (str, bool, int, float)) else list(value)


def _for_ros(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
