"""Krang's files for MoveIt fit its URDF, its limits and the controller's action."""

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import yaml
from harness import robot_named

from krang_dynamics.control.reference.stream import StreamLimits
from krang_dynamics.robot.self_distance import SelfDistance

FOLDER = Path(__file__).resolve().parents[1] / 'config' / 'moveit' / 'krang'
KRANG = robot_named('krang')
ARMS = [name for name in KRANG.joint_names if name.startswith(('left', 'right'))]


def read(name):
    return yaml.safe_load((FOLDER / name).read_text())


def test_the_srdf_names_links_joints_and_home_of_the_robot():
    srdf = ElementTree.parse(FOLDER / 'krang.srdf').getroot()
    chains = list(srdf.iter('chain'))
    assert {chain.get(end) for chain in chains for end in ('base_link', 'tip_link')} <= set(KRANG.frames)
    both = next(state for state in srdf.iter('group_state') if state.get('group') == 'both_arms')
    home = dict(zip(KRANG.joint_names, KRANG.home, strict=True))
    assert {joint.get('name'): float(joint.get('value')) for joint in both} == {n: home[n] for n in ARMS}
    disabled = {(pair.get('link1'), pair.get('link2')) for pair in srdf.iter('disable_collisions')}
    assert disabled == set(SelfDistance(KRANG).excluded)


def test_limits_and_controllers_are_those_of_the_arms():
    limits, stream = read('joint_limits.yaml')['joint_limits'], StreamLimits.of(KRANG)
    assert list(limits) == ARMS
    columns = [KRANG.joint_names.index(name) for name in ARMS]
    speeds = [entry['max_velocity'] for entry in limits.values()]
    accelerations = [entry['max_acceleration'] for entry in limits.values()]
    np.testing.assert_allclose(speeds, stream.velocity[columns], atol=1e-4)
    np.testing.assert_allclose(accelerations, stream.acceleration[columns], atol=2e-4)
    controllers = read('moveit_controllers.yaml')['moveit_simple_controller_manager']
    (name,) = controllers['controller_names']
    assert controllers[name]['joints'] == ARMS
    assert (name, controllers[name]['action_ns']) == ('torque_controller', 'follow_joint_trajectory')
    assert set(read('kinematics.yaml')) == {'left_arm', 'right_arm'}
