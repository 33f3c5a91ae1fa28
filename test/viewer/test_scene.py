"""The scene that viser holds, against the robot's own kinematics."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
import viser.transforms
from viewer.test_web_server import server  # noqa: F401  the fixture

from krang_dynamics import colours
from krang_dynamics.bags.observed_robot import ObservedRobot
from krang_dynamics.control.node_state import NodeState
from krang_dynamics.robot.library import load_robot
from krang_dynamics.viewer.scene import RobotScene


@pytest.fixture
def scene(server):  # noqa: F811
    server.scene.reset()
    return server.scene


def world_pose(scene, handle):
    """The pose of a node from those of all nodes above it."""
    pose, path = np.eye(4), ''
    nodes = scene._handle_from_node_name
    for part in handle.name.strip('/').split('/'):
        path += f'/{part}'
        node = nodes[path]
        turn = viser.transforms.SO3(np.asarray(node.wxyz)).as_matrix()
        pose = pose @ pin.SE3(turn, np.asarray(node.position, float)).homogeneous
    return pose


@pytest.mark.parametrize('name', ['krang', 'otbot', 'pendubot'])
def test_links_and_reference_are_where_the_robot_has_them(scene, name):
    robot = load_robot(name)
    shown = RobotScene(scene, robot)
    rng = np.random.default_rng(0)
    q, reference = (robot.home + rng.uniform(-0.5, 0.5, robot.nv) for _ in range(2))
    snapshot = replace(ObservedRobot(robot).snapshot(0.0), q=q, reference=reference)
    for _ in range(2):  # the reference moves in every second frame
        shown.show(snapshot)
    nodes = scene._handle_from_node_name
    for path, node in nodes.items():
        link = path.rpartition('/')[2]
        if link in robot.frames and path.startswith(('/robot/', '/reference/')):
            expected = robot.frame_pose(q if path.startswith('/robot') else reference, link)
            np.testing.assert_allclose(world_pose(scene, node), expected, atol=3e-3)
    np.testing.assert_allclose(nodes['/centre_of_mass'].position, robot.center_of_mass(q), atol=1e-3)
    assert nodes['/reference'].visible


def test_an_external_force_at_the_hand_is_found_again(scene):
    robot = load_robot('krang')
    shown = RobotScene(scene, robot)
    force = np.array([30.0, -10.0, 20.0])
    wrenches = {'left_hand': np.array([*force, 0, 0, 0]), 'right_hand': np.zeros(6)}
    external = robot.wrench_to_torque(robot.home, wrenches)
    state = NodeState('mode', 0.0, '', 'active', None, 'krang', (), {}, gravity=[0.0, 0.0, -9.81])
    base = ObservedRobot(robot).snapshot(0.0)
    shown.show(replace(base, q=robot.home, external=external, controller=state))
    arrows = scene._handle_from_node_name['/arrows/external']
    assert arrows.visible
    ((start, end),) = np.asarray(arrows.points, float)
    np.testing.assert_allclose(start, robot.frame_pose(robot.home, 'left_hand')[:3, 3], atol=1e-5)
    np.testing.assert_allclose(end - start, 0.004 * force, atol=1e-5)


def test_a_loaded_link_is_red(scene):
    robot = load_robot('planar_2r')
    shown = RobotScene(scene, robot)
    shown.tint(np.array([1.0, 0.0]))
    meshes = {path: node for path, node in scene._handle_from_node_name.items() if 'shape_' in path}
    links = [robot.urdf.joints[name].child for name in robot.joint_names]

    def colours_of(link):
        return [
            tuple(node.color)
            for path, node in meshes.items()
            if path.startswith('/robot') and path.split('/')[-2] == link
        ]

    assert set(colours_of(links[0])) == {colours.rgb(colours.BAD)}
    assert colours.rgb(colours.BAD) not in colours_of(links[1])
