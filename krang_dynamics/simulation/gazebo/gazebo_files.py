"""All files to run a robot in Gazebo Harmonic with gz_ros2_control, from its URDF and robot file."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import yaml

from ...control.gains import delay_margin
from ...robot.config import ActuatorConfig
from ...robot.model import Robot
from ...robot.schema import to_yaml
from ...robot.urdf import Urdf
from ...robot.urdf_editing import UrdfDocument
from ..planar_base import PlanarBase
from .gazebo_model import gazebo_urdf, viscous_friction
from .gazebo_world import STEP, gazebo_world

DELAY = 3  # from a state to the torque computed from it [steps of Gazebo]
LONGEST_DELAY = 0.03  # the same on a busy machine, where Gazebo does not wait for commands [s]
FOLLOWING_ERROR = 0.4  # [rad, m], with the low bandwidth that this delay allows
TURN = np.linspace(-np.pi, np.pi, 721)  # [rad]
# Timeouts [s] that a simulator on a busy machine can keep.
STATE_TIMEOUT, SILENCE = 0.4, 0.2


@dataclass(frozen=True)
class GazeboSetup:
    """What a launch file needs to run a robot in Gazebo; `folder` holds the generated files."""

    folder: Path
    urdf: str  # text, for robot_description
    effort_joints: tuple[str, ...]  # in the order of effort_controller's commands
    pose: tuple[float, ...]  # where it is spawned: x, y, z [m], roll, pitch, yaw [rad]
    bridges: tuple[str, ...]  # arguments of ros_gz_bridge's parameter_bridge

    @property
    def world(self) -> Path:
        return self.folder / 'world.sdf'

    @property
    def controllers(self) -> Path:
        return self.folder / 'controllers.yaml'

    @property
    def nodes(self) -> Path:
        return self.folder / 'nodes.yaml'

    @property
    def robot_file(self) -> Path:
        return self.folder / 'robot.yaml'


def write_gazebo_files(
    robot: Robot, folder: Path, namespace: str = '', wheels_locked: bool = False
) -> GazeboSetup:
    """Write the files for Gazebo, ros2_control and the nodes; topics are in `namespace`."""
    robot = hanging(robot)
    joints = effort_joints(robot, wheels_locked)
    prefix = '/' + namespace.strip('/') if namespace.strip('/') else ''
    folder.mkdir(parents=True, exist_ok=True)
    urdf = gazebo_urdf(robot, joints, str(folder / 'controllers.yaml'), prefix)
    setup = GazeboSetup(folder, urdf, joints, _spawn_pose(robot), _bridges(robot, prefix))
    (folder / 'gazebo.urdf').write_text(urdf)
    setup.world.write_text(gazebo_world(robot))
    setup.controllers.write_text(controllers_yaml(joints))
    setup.nodes.write_text(nodes_yaml(robot, joints, wheels_locked))
    text = robot.urdf.text
    (folder / 'robot.urdf').write_bytes(text.encode() if isinstance(text, str) else text)
    setup.robot_file.write_text(gazebo_robot_file(robot, 'robot.urdf'))
    return setup


def effort_joints(robot: Robot, wheels_locked: bool = False) -> tuple[str, ...]:
    """Joints that are commanded, in the order of their drivers: those whose `only_if` is true or absent."""
    holds = {None: True, 'wheels_locked': wheels_locked}
    joints = (driver.joint for driver in robot.config.actuators if holds.get(driver.only_if, False))
    return tuple(dict.fromkeys(joints))


def controllers_yaml(joints: Sequence[str]) -> str:
    """Parameters of the controller manager: a joint state broadcaster, and torques [N m] to `joints`."""
    manager = {
        'update_rate': round(1 / STEP),
        'joint_state_broadcaster': {'type': 'joint_state_broadcaster/JointStateBroadcaster'},
        'effort_controller': {'type': 'forward_command_controller/ForwardCommandController'},
    }
    return _parameters(
        controller_manager=manager, effort_controller={'joints': list(joints), 'interface_name': 'effort'}
    )


def gazebo_robot_file(robot: Robot, urdf: str) -> str:
    """The robot file for the nodes that control the robot in Gazebo.

    It has one driver per joint, in joint coordinates, and odometry of the link that Gazebo reports.
    """
    config = replace(robot.config, urdf=urdf, actuators=_joints_as_drivers(robot))
    if config.rolling and config.odom is not None:
        config = replace(config, odom=replace(config.odom, heading_of=PlanarBase(robot).link))
    return to_yaml(config)


def hanging(robot: Robot) -> Robot:
    """The robot with the zero of its passive revolving joints where they hang.

    gz_ros2_control sets the initial position of commanded joints only; all others start at zero.
    """
    document, home = UrdfDocument(robot.urdf.text), dict(robot.config.home)
    free = robot.continuous & ~np.isin(robot.joint_names, robot.actuated_joint_names)
    for i in np.flatnonzero(free) if not robot.config.rolling else ():
        name, poses = robot.joint_names[i], np.tile(robot.home, (TURN.size, 1))
        poses[:, i] = TURN
        lowest = float(TURN[np.argmin([robot.potential_energy(q) for q in poses])])
        document.shift_zero(robot.urdf.joints[name], lowest)
        home[name] = float(np.remainder(home[name] - lowest, 2 * np.pi))
    config = replace(robot.config, home=home)
    return Robot(config, Urdf(document.text(), robot.urdf.source)) if free.any() else robot


def nodes_yaml(robot: Robot, joints: Sequence[str], wheels_locked: bool) -> str:
    """Parameters of torque_controller and torque_guard for Gazebo."""
    common = {
        'command_unit': 'torque',
        'command_joints': list(joints),
        'wheels_locked': wheels_locked,
        'state_timeout': STATE_TIMEOUT,
    }
    # Gazebo holds the joints until torques flow, so the controller must start by itself.
    controller = {
        **common,
        'auto_enable': True,
        'gains.bandwidth': bandwidth(robot),
        'limits.following_error': FOLLOWING_ERROR,
    }
    return _parameters(torque_controller=controller, torque_guard={**common, 'silence': SILENCE})


def bandwidth(robot: Robot) -> float:
    """Bandwidth [rad/s] of computed torque with half of the delay margin at LONGEST_DELAY."""
    margin = float(delay_margin(np.ones(1), np.full(1, 2.0))[0])  # in 1 / bandwidth
    late = 0.5 * margin / LONGEST_DELAY
    return min(late, rotorless_bandwidth(robot)) if robot.rotor_inertia().any() else late


def rotorless_bandwidth(robot: Robot) -> float:
    """Largest stable bandwidth w [rad/s] of computed torque in Gazebo, which does not simulate rotors J.

    One joint, sampled at h: (A + h F) v+ = A v - 2 w h (A + J) v_delayed is stable while
    2 w (A + J) <= F + A / (DELAY h).
    """
    J = np.diag(robot.rotor_inertia())
    A = 1 / np.diag(np.linalg.inv(robot.mass_matrix(robot.home) - np.diag(J)))  # with all other joints free
    F = viscous_friction(robot)
    return float(((F + A / (DELAY * STEP)) / (2 * (A + J))).min())


def _joints_as_drivers(robot: Robot) -> tuple[ActuatorConfig, ...]:
    conditions = {driver.joint: driver.only_if for driver in robot.config.actuators}
    return tuple(ActuatorConfig(joint, joint, only_if=only_if) for joint, only_if in conditions.items())


def _parameters(**nodes: dict[str, Any]) -> str:
    """A parameter file that is valid in any namespace."""
    # One dump per node: PyYAML writes equal lists as aliases, which ROS does not read.
    return ''.join(yaml.safe_dump({f'/**/{node}': {'ros__parameters': p}}) for node, p in nodes.items())


def _spawn_pose(robot: Robot) -> tuple[float, ...]:
    if not robot.config.rolling:
        return (0.0,) * 6
    pose = robot.frame_pose(robot.home, PlanarBase(robot).link)
    return (*pose[:3, 3].tolist(), *pin.rpy.matrixToRpy(pose[:3, :3]).tolist())


def _bridges(robot: Robot, prefix: str) -> tuple[str, ...]:
    """Bridges from Gazebo to ROS: the clock, and the topics of the robot's sensors."""
    bridges = ['/clock@rosgraph_msgs/msg/Clock[gz.msgs.Clock']
    if robot.config.imu is not None:
        bridges.append(f'{prefix}/imu@sensor_msgs/msg/Imu[gz.msgs.IMU')
    if robot.config.rolling:
        bridges.append(f'{prefix}/odom@nav_msgs/msg/Odometry[gz.msgs.Odometry')
    return tuple(bridges)
