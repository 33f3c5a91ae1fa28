"""A controller from parameter values, and what other values change of it: alike in node and replay."""

from typing import Any

from ..errors import InputError
from ..robot.model import Robot
from .builder import Values, gravity_of, limits_of, payloads_of, settings_of
from .controller import Inputs, TorqueController
from .settings import Settings


def controller_of(values: Values, robot: Robot) -> TorqueController:
    """A controller with limits, load and gravity in force; nothing has been received yet."""
    controller = TorqueController(robot, settings_of(values, robot, Settings))
    controller.limits.set(robot, **limits_of(values, robot))
    load = Inputs(0.0, 0.0, gravity=gravity_of(values, robot), payloads=payloads_of(values))
    for reason in controller.step(load).refused:
        raise InputError(reason)
    return controller


def new_values(values: Values, before: Values, robot: Robot) -> dict[str, Any]:
    """The fields of a controller's inputs that put other live parameters in force."""
    return {
        'settings': settings_of(values, robot, Settings),
        'limits': limits_of(values, robot),
        **new_load(values, before, robot),
    }


def new_load(values: Values, before: Values, robot: Robot) -> dict[str, Any]:
    """Payloads and gravity where they change: they take time, and an inertial unit may feed gravity."""
    has_new_payload = any(values[k] != before.get(k) for k in values if k.startswith('payload.'))
    return {
        'payloads': payloads_of(values) if has_new_payload else None,
        'gravity': gravity_of(values, robot) if values['gravity'] != before['gravity'] else None,
    }
