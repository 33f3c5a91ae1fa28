"""Simulated plants, by the engine that computes their motion. Importing this needs no MuJoCo."""

from typing import Any

from ..errors import UnknownNameError
from ..robot.model import Robot
from .contact_plant import ContactPlant
from .mujoco_plant import MujocoPlant
from .pinocchio_plant import PinocchioPlant
from .plant import Plant

__all__ = ['ENGINES', 'ContactPlant', 'MujocoPlant', 'PinocchioPlant', 'Plant', 'make_plant']

ENGINES = ('pinocchio', 'mujoco')


def make_plant(robot: Robot, engine: str, **options: Any) -> Plant:
    """The plant of a robot in an engine; MuJoCo simulates wheels by contact. `options` are the plant's."""
    if engine == 'pinocchio':
        return PinocchioPlant(robot, **options)
    if engine == 'mujoco':
        return ContactPlant(robot, **options) if robot.config.rolling else MujocoPlant(robot, **options)
    raise UnknownNameError('engine', engine, ENGINES)
