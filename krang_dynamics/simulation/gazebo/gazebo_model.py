"""The robot's URDF with what Gazebo and gz_ros2_control want added: no second copy of the robot."""

from collections.abc import Iterator, Sequence
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

import numpy as np

from ...arrays import Array
from ...errors import KrangError
from ...robot.model import Robot
from ...robot.urdf import add_inertial
from ..ground import GRIP, caster
from ..planar_base import PlanarBase
from .gazebo_world import STEP

WORLD = 'world'  # the root link that Gazebo takes for the ground
CASTER = 'gazebo_caster'
FAST = 1.0  # up to which speed a smooth sign is matched where no lower limit is given [rad/s]


def gazebo_urdf(robot: Robot, effort_joints: Sequence[str], controllers: str, prefix: str = '') -> str:
    """URDF of the robot on its fixed base or on its wheels; `controllers` is the path of a parameter file.

    Joints named take effort [N m], all others are passive. Topics are below `prefix`, '' or '/name'.
    """
    document = ElementTree.fromstring(robot.urdf.text.strip())
    # A second hardware or plugin would fight for the same joints.
    for tag in ('ros2_control', 'gazebo', 'transmission'):
        for element in document.findall(tag):
            document.remove(element)
    if robot.config.rolling:
        PlanarBase(robot).cut_free(document)
        _put_on_wheels(document, robot)
    elif robot.urdf.root != WORLD:
        _fasten(document, robot.urdf.root)
    _refuse_losses(document, robot)
    _carry_payloads(document, robot)
    _set_friction(document, robot)
    _add_ros2_control(document, robot, effort_joints)
    _add_sensors(document, robot, prefix)
    _add_controller_manager(document, controllers, prefix)
    ElementTree.indent(document)
    return ElementTree.tostring(document, encoding='unicode') + '\n'


def _refuse_losses(document: Element, robot: Robot) -> None:
    """Gazebo drops moving links without mass, and followers give their leader no force."""
    for name in _named(document, 'joint').keys() & robot.urdf.joints.keys():
        joint = robot.urdf.joints[name]
        if joint.mimic is not None:
            raise KrangError(
                f'joint {name!r} mimics {joint.mimic.leader!r}, which Gazebo does not couple by forces; '
                'use PinocchioPlant'
            )
        if joint.moves and not any(robot.urdf.links[link].mass for link in _lump(robot, joint.child)):
            raise KrangError(
                f'joint {name!r} moves link {joint.child!r}, which has no mass: Gazebo would drop both; '
                'give the link an <inertial>'
            )


def _lump(robot: Robot, link: str) -> Iterator[str]:
    """`link` and those fixed to it, which Gazebo makes one body of."""
    yield link
    for joint in robot.urdf.joints.values():
        if joint.parent == link and not joint.moves:
            yield from _lump(robot, joint.child)


def _put_on_wheels(document: Element, robot: Robot) -> None:
    """Spheres as wheels, since the flat rim of a cylinder scrubs in turns, and a caster without friction."""
    links = _named(document, 'link')
    for wheel in robot.config.rolling:
        link = links[wheel.link]
        for collision in link.findall('collision'):
            link.remove(collision)
        _touch(document, link, wheel.radius, GRIP)
    carrier, place = caster(robot)
    link = SubElement(document, 'link', name=CASTER)
    _touch(document, link, robot.config.rolling[0].radius, 0.0)
    _fix(document, carrier, CASTER, _words(place))


def _touch(document: Element, link: Element, radius: float, friction: float) -> None:
    geometry = SubElement(SubElement(link, 'collision'), 'geometry')
    SubElement(geometry, 'sphere', radius=repr(radius))
    surface = SubElement(document, 'gazebo', reference=link.get('name', ''))
    SubElement(surface, 'mu1').text = SubElement(surface, 'mu2').text = repr(friction)


def _fasten(document: Element, root: str) -> None:
    """Hold the root link to the ground; what it weighs then does not matter, but it must weigh."""
    SubElement(document, 'link', name=WORLD)
    _fix(document, WORLD, root, '0 0 0')
    link = _named(document, 'link')[root]
    if link.find('inertial') is None:
        add_inertial(link, 1.0, np.zeros(3), np.eye(3))


def _carry_payloads(document: Element, robot: Robot) -> None:
    for number, payload in enumerate(robot.payloads, 1):
        link = SubElement(document, 'link', name=f'gazebo_payload_{number}')
        add_inertial(link, payload.mass, payload.com, payload.inertia)
        _fix(document, payload.frame, f'gazebo_payload_{number}', '0 0 0')


def viscous_friction(robot: Robot) -> Array:
    """F_v [N m s/rad] as Gazebo gets it, where Coulomb's friction has the exact sign alone.

    A smooth sign becomes viscous: the chord of F_c tanh(v), right at rest and at the speed limit.
    """
    viscous = robot.friction.viscous.copy()
    if robot.friction.sign == 'smooth':
        speed = np.clip(robot.velocity_limits, 1e-3, FAST)
        viscous += robot.friction.coulomb * np.tanh(speed) / speed
    return viscous


def _set_friction(document: Element, robot: Robot) -> None:
    dry = np.zeros(robot.nv) if robot.friction.sign == 'smooth' else robot.friction.coulomb
    joints = _named(document, 'joint')
    for name, damping, friction in zip(
        robot.joint_names, viscous_friction(robot).tolist(), dry.tolist(), strict=True
    ):
        if name not in joints:  # a planar joint of a base that rolls
            continue
        for element in joints[name].findall('dynamics'):
            joints[name].remove(element)
        SubElement(joints[name], 'dynamics', damping=repr(damping), friction=repr(friction))


def _add_ros2_control(document: Element, robot: Robot, effort_joints: Sequence[str]) -> None:
    block = SubElement(document, 'ros2_control', name=robot.name, type='system')
    SubElement(SubElement(block, 'hardware'), 'plugin').text = 'gz_ros2_control/GazeboSimSystem'
    joints = _named(document, 'joint')
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


def _add_sensors(document: Element, robot: Robot, prefix: str) -> None:
    imu = robot.config.imu
    if imu is not None:
        sensor = SubElement(
            SubElement(document, 'gazebo', reference=imu.link), 'sensor', name='imu', type='imu'
        )
        SubElement(sensor, 'pose').text = '0 0 0 ' + ' '.join(map(repr, imu.mount_rpy))
        SubElement(sensor, 'topic').text = f'{prefix}/imu'
        SubElement(sensor, 'update_rate').text = repr(1 / STEP)
        # Without a named frame Gazebo reports angles from where the unit began.
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


def _add_controller_manager(document: Element, controllers: str, prefix: str) -> None:
    manager = _plugin(document, 'gz_ros2_control-system', 'gz_ros2_control::GazeboSimROS2ControlPlugin')
    SubElement(manager, 'parameters').text = controllers
    # Until a controller claims a joint, it stands still: nothing falls while nodes start.
    SubElement(manager, 'hold_joints').text = 'true'
    if prefix:
        SubElement(SubElement(manager, 'ros'), 'namespace').text = prefix


def _plugin(document: Element, library: str, name: str) -> Element:
    return SubElement(SubElement(document, 'gazebo'), 'plugin', filename=library, name=name)


def _fix(document: Element, parent: str, child: str, xyz: str) -> None:
    joint = SubElement(document, 'joint', name=f'{child}_fixed', type='fixed')
    SubElement(joint, 'parent', link=parent)
    SubElement(joint, 'child', link=child)
    SubElement(joint, 'origin', xyz=xyz)


def _named(document: Element, tag: str) -> dict[str, Element]:
    return {element.get('name', ''): element for element in document.iterfind(tag)}


def _words(vector: Array) -> str:
    return ' '.join(map(repr, vector.tolist()))
