"""Rigid-body dynamics and torque control of robots, built on Pinocchio and ROS 2."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .errors import KrangError

if TYPE_CHECKING:
    from .control.command_check import Command
    from .control.controller import Inputs, Outputs, TorqueController
    from .control.guard import Guard, GuardInputs, GuardSettings
    from .control.parameters import Parameter
    from .control.reference.trajectory import JointTrajectory
    from .control.settings import Settings
    from .control.terms.term import Term, register_term
    from .robot.library import load_robot, robots
    from .robot.model import Robot
    from .safety.joint_buffer import JointSamples
    from .simulation import make_plant

__version__ = '0.1.0'

__all__ = [
    'Command',
    'Guard',
    'GuardInputs',
    'GuardSettings',
    'Inputs',
    'JointSamples',
    'JointTrajectory',
    'KrangError',
    'Outputs',
    'Parameter',
    'Robot',
    'Settings',
    'Term',
    'TorqueController',
    'load_robot',
    'make_plant',
    'register_term',
    'robots',
]

# Imported on first use: Pinocchio alone takes longer to import than Python to start.
_MODULES = {
    'Command': 'control.command_check',
    'Guard': 'control.guard',
    'GuardInputs': 'control.guard',
    'GuardSettings': 'control.guard',
    'Inputs': 'control.controller',
    'JointSamples': 'safety.joint_buffer',
    'JointTrajectory': 'control.reference.trajectory',
    'Outputs': 'control.controller',
    'Parameter': 'control.parameters',
    'Robot': 'robot.model',
    'Settings': 'control.settings',
    'Term': 'control.terms.term',
    'TorqueController': 'control.controller',
    'load_robot': 'robot.library',
    'make_plant': 'simulation',
    'register_term': 'control.terms.term',
    'robots': 'robot.library',
}

if not TYPE_CHECKING:  # a misspelt name stays an error of the type checker

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
        value = getattr(import_module(f'.{_MODULES[name]}', __name__), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
