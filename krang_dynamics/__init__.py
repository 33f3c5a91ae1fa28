"""Rigid-body dynamics and torque control of real robots, on Pinocchio and ROS 2."""

from .errors import KrangError
from .robot.library import load_robot, robots
from .robot.model import Robot

__all__ = ['KrangError', 'Robot', 'load_robot', 'robots']
