"""Simulated plants, by the engine that computes their motion. Importing this needs no MuJoCo."""

from typing import Any

from ..errors import KrangError, UnknownNameError
from ..robot.model import Robot
from .contact_plant import ContactPlant
from .mujoco_plant import MujocoPlant
from .pinocchio_plant import PinocchioPlant
from .plant import Plant

__all__ = ['ENGINES', 'ContactPlant', 'MujocoPlant', 'PinocchioPlant', 'Plant', 'choose_engine', 'make_plant']

ENGINES = ('pinocchio', 'mujoco')


def make_plant(robot: Robot, engine: str, **options: Any) -> Plant:
    """The plant of a robot in an engine; MuJoCo simulates wheels by contact. `options` are the plant's."""
    if engine == 'pinocchio':
        return PinocchioPlant(robot, **options)
    if engine == 'mujoco':
        return ContactPlant(robot, **options) if robot.config.rolling else MujocoPlant(robot, **options)
    raise UnknownNameError('engine', engine, ENGINES)


def choose_engine(robot: Robot) -> tuple[str, str]:
    """MuJoCo if it can simulate the robot well, else Pinocchio with the reason."""
    try:
        plant = make_plant(robot, 'mujoco')
    except KrangError as error:
        return 'pinocchio', str(error)
    if plant.has_stiff_friction:
        return 'pinocchio', 'in MuJoCo, light joints with strong dry friction creep'
    return 'mujoco', ''
