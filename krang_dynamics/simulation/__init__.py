"""Plants that stand in for the real robot: its exact model, and MuJoCo. Importing this needs no MuJoCo."""

from .contact_plant import ContactPlant
from .engines import ENGINES, make_plant
from .mujoco_plant import MujocoPlant
from .pinocchio_plant import PinocchioPlant
from .plant import Plant

__all__ = ['ENGINES', 'ContactPlant', 'MujocoPlant', 'PinocchioPlant', 'Plant', 'make_plant']
