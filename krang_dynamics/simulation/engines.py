"""Plants by the name of what computes them."""

from typing import Any

from ..errors import UnknownNameError
from ..robot.model import Robot
from .contact_plant import ContactPlant
from .mujoco_plant import MujocoPlant
from .pinocchio_plant import PinocchioPlant
from .plant import Plant

ENGINES = ('pinocchio', 'mujoco')


def make_plant(robot: Robot, engine: str, **options: Any) -> Plant:
    """The plant of an engine, on the ground by contact where MuJoCo meets wheels; options are the plant's."""
    if engine == 'pinocchio':
        return PinocchioPlant(robot, **options)
    if engine == 'mujoco':
        return ContactPlant(robot, **options) if robot.config.rolling else MujocoPlant(robot, **options)
    raise UnknownNameError('engine', engine, ENGINES)
