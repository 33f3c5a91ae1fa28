"""The robot's URDF with the additions that Gazebo and gz_ros2_control need."""

from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement

import numpy as np

from ...arrays import Array
from ...errors import KrangError
from ...robot.model import Robot
from ...robot.urdf_editing import UrdfDocument
from ..planar_base import GRIP, PlanarBase, caster
from .gazebo_world import STEP

WORLD = 'world'  # name of a root link that Gazebo fixes to the ground
CASTER = 'gazebo_caster'
FAST = 1.0  # largest speed at which a smooth sign is matched [rad/s]


def gazebo_urdf(robot: Robot, effort_joints: Sequence[str], controllers: str, prefix: str = '') -> str:
    """URDF of the robot on its fixed base or on its wheels; `controllers` is the path of a parameter file.

    The named joints take effort [N m], all others are passive. Topics start with `prefix`, '' or '/name'.
    """
    document = UrdfDocument(robot.urdf.text)
    # A second hardware interface or plugin would claim the same joints.
    document.remove('ros2_control', 'gazebo', 'transmission')
    if robot.config.rolling:
        document.remove_links(PlanarBase(robot).removed_links)
        _add_wheel_contacts(document, robot)
    elif robot.urdf.root != WORLD:
        _fix_to_world(document, robot.urdf.root)
    _check_support(document, robot)
    _add_payloads(document, robot)
    _set_friction(document, robot)
    _add_ros2_control(document, robot, effort_joints)
    _add_sensors(document, robot, prefix)
    _add_controller_manager(document, controllers, prefix)
    return document.text()


def _check_support(document: UrdfDocument, robot: Robot) -> None:
    """Refuse mimic joints and moving links without mass, which Gazebo does not simulate correctly."""
    for name in document.joints.keys() & robot.urdf.joints.keys():
        joint = robot.urdf.joints[name]
        if joint.mimic is not None:
            raise KrangError(
                f'joint {name!r} mimics {joint.mimic.leader!r}, which Gazebo does not couple by forces; '
                'lock it in a robot file (locked:), or use krang sim'
            )
        body = robot.urdf.rigid_part(joint.child)
        if joint.moves and not any(robot.urdf.links[link].mass for link in body):
            raise KrangError(
                f'joint {name!r} moves link {joint.child!r}, which has no mass: Gazebo would drop both; '
                'give the link an <inertial>'
            )


def _add_wheel_contacts(document: UrdfDocument, robot: Robot) -> None:
    """Spheres as wheels, because the rim of a cylinder scrubs in turns, and a caster without friction."""
    for wheel in robot.config.rolling:
        link = document.links[wheel.link]
        for collision in link.findall('collision'):
            link.remove(collision)
        _add_contact(document, link, wheel.radius, GRIP)
    carrier, place = caster(robot)
    _add_contact(document, document.add_link(CASTER), robot.config.rolling[0].radius, 0.0)
    document.add_fixed_joint(carrier, CASTER, place)


def _add_contact(document: UrdfDocument, link: Element, radius: float, friction: float) -> None:
    geometry = SubElement(SubElement(link, 'collision'), 'geometry')
    SubElement(geometry, 'sphere', radius=repr(radius))
    surface = SubElement(document.robot, 'gazebo', reference=link.get('name', ''))
    SubElement(surface, 'mu1').text = SubElement(surface, 'mu2').text = repr(friction)


def _fix_to_world(document: UrdfDocument, root: str) -> None:
    """Fix the root link to the ground; Gazebo needs its mass, whose value then has no effect."""
    document.add_link(WORLD)
    document.add_fixed_joint(WORLD, root, np.zeros(3))
    if document.links[root].find('inertial') is None:
        document.set_inertia(root, 1.0, np.zeros(3), np.eye(3))


def _add_payloads(document: UrdfDocument, robot: Robot) -> None:
    for number, payload in enumerate(robot.payloads, 1):
        name = f'gazebo_payload_{number}'
        document.add_link(name)
        document.set_inertia(name, payload.mass, payload.com, payload.inertia)
        document.add_fixed_joint(payload.frame, name, np.zeros(3))


def viscous_friction(robot: Robot) -> Array:
    """F_v [N m s/rad] for Gazebo, whose Coulomb friction has the exact sign only.

    A smooth sign becomes viscous friction: the chord of F_c tanh(v / width) from rest to the speed limit.
    """
    viscous = robot.friction.viscous.copy()
    if robot.friction.sign == 'smooth':
        speed = np.clip(robot.velocity_limits, 1e-3, FAST)
        viscous += robot.friction.coulomb * np.tanh(speed / robot.friction.width) / speed
    return viscous


def _set_friction(document: UrdfDocument, robot: Robot) -> None:
    viscous = viscous_friction(robot)
    coulomb = np.zeros(robot.nv) if robot.friction.sign == 'smooth' else robot.friction.coulomb
    for name, F_v, F_c in zip(robot.joint_names, viscous.tolist(), coulomb.tolist(), strict=True):
        if name in document.joints:  # a planar joint of a rolling base is not
            document.set_friction(name, F_v, F_c)


def _add_ros2_control(document: UrdfDocument, robot: Robot, effort_joints: Sequence[str]) -> None:
    block = SubElement(document.robot, 'ros2_control', name=robot.name, type='system')
    SubElement(SubElement(block, 'hardware'), 'plugin').text = 'gz_ros2_control/GazeboSimSystem'
    joints = document.joints
    for name, home in zip(robot.joint_names, robot.home.tolist(), strict=True):
        if name not in joints:
            continue
        joint = SubElement(block, 'joint', name=name)
        if name in effort_joints:
            command = SubElement(joint, 'command_interface', name='effort')
            peak = robot.urdf.joints[name].effort
            if np.isfinite(peak):
                SubElement(command, 'param', name='min').text = repr(-peak)
                SubElement(command, 'param', name='max').text = repr(peak)
        position = SubElement(joint, 'state_interface', name='position')
        SubElement(position, 'param', name='initial_value').text = repr(home)
        SubElement(joint, 'state_interface', name='velocity')
        if name in effort_joints:
            SubElement(joint, 'state_interface', name='effort')


def _add_sensors(document: UrdfDocument, robot: Robot, prefix: str) -> None:
    imu = robot.config.imu
    if imu is not None:
        sensor = SubElement(
            SubElement(document.robot, 'gazebo', reference=imu.link), 'sensor', name='imu', type='imu'
        )
        SubElement(sensor, 'pose').text = '0 0 0 ' + ' '.join(map(repr, imu.mount_rpy))
        SubElement(sensor, 'topic').text = f'{prefix}/imu'
        SubElement(sensor, 'update_rate').text = repr(1 / STEP)
        # Without a named frame Gazebo reports angles relative to the IMU's initial orientation.
        reference = SubElement(SubElement(sensor, 'imu'), 'orientation_reference_frame')
        SubElement(reference, 'localization').text = 'ENU'
    if robot.config.rolling:
        odometry = _plugin(
            document, 'gz-sim-odometry-publisher-system', 'gz::sim::systems::OdometryPublisher'
        )
        SubElement(odometry, 'odom_frame').text = 'odom'
        SubElement(odometry, 'robot_base_frame').text = PlanarBase(robot).link
        SubElement(odometry, 'odom_topic').text = f'{prefix}/odom'
        SubElement(odometry, 'odom_publish_frequency').text = repr(1 / STEP)


def _add_controller_manager(document: UrdfDocument, controllers: str, prefix: str) -> None:
    manager = _plugin(document, 'gz_ros2_control-system', 'gz_ros2_control::GazeboSimROS2ControlPlugin')
    SubElement(manager, 'parameters').text = controllers
    # Gazebo holds each joint until a controller claims it, so that the robot does not fall during start-up.
    SubElement(manager, 'hold_joints').text = 'true'
    if prefix:
        SubElement(SubElement(manager, 'ros'), 'namespace').text = prefix


def _plugin(document: UrdfDocument, library: str, name: str) -> Element:
    return SubElement(SubElement(document.robot, 'gazebo'), 'plugin', filename=library, name=name)
