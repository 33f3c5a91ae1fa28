"""The world around a robot in Gazebo's format (SDF): gravity, light, and ground for wheels."""

from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from ...robot.model import Robot
from ..planar_base import ground_level

STEP = 1e-3  # period of Gazebo's physics and of its controllers [s]
SYSTEMS = {  # system plugins of gz-sim, by library
    'gz-sim-physics-system': 'gz::sim::systems::Physics',
    'gz-sim-user-commands-system': 'gz::sim::systems::UserCommands',
    'gz-sim-scene-broadcaster-system': 'gz::sim::systems::SceneBroadcaster',
}


def gazebo_world(robot: Robot) -> str:
    """SDF of a world named after the robot, without the robot."""
    document = Element('sdf', version='1.9')
    world = SubElement(document, 'world', name=robot.name)
    physics = SubElement(world, 'physics', name='step', type='ignored')
    SubElement(physics, 'max_step_size').text = repr(STEP)
    SubElement(physics, 'real_time_factor').text = '1.0'
    SubElement(world, 'gravity').text = ' '.join(map(repr, robot.config.gravity))
    systems = dict(SYSTEMS)
    if robot.config.imu is not None:
        systems['gz-sim-imu-system'] = 'gz::sim::systems::Imu'
    for library, name in systems.items():
        SubElement(world, 'plugin', filename=library, name=name)
    world.append(ElementTree.fromstring(SUN))
    if robot.config.rolling:
        world.append(ElementTree.fromstring(GROUND.format(level=ground_level(robot))))
    ElementTree.indent(document)
    return ElementTree.tostring(document, encoding='unicode') + '\n'


SUN = """<light type="directional" name="sun">
  <pose>0 0 10 0 0 0</pose>
  <diffuse>0.9 0.9 0.9 1</diffuse>
  <specular>0.2 0.2 0.2 1</specular>
  <direction>-0.4 0.2 -0.9</direction>
  <cast_shadows>true</cast_shadows>
</light>"""

# Gazebo uses the smaller coefficient of two bodies in contact, so that of the wheel or caster applies.
GROUND = """<model name="ground">
  <static>true</static>
  <pose>0 0 {level!r} 0 0 0</pose>
  <link name="ground">
    <collision name="ground_collision">
      <geometry><plane><normal>0 0 1</normal></plane></geometry>
      <surface><friction><ode><mu>100</mu><mu2>100</mu2></ode></friction></surface>
    </collision>
    <visual name="ground_visual">
      <geometry><plane><normal>0 0 1</normal><size>50 50</size></plane></geometry>
      <material><ambient>0.7 0.7 0.7 1</ambient><diffuse>0.7 0.7 0.7 1</diffuse></material>
    </visual>
  </link>
</model>"""
