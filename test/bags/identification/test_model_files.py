"""Identified values as files that load again."""

from pathlib import Path

import numpy as np
import pinocchio as pin
from tools import assert_close, states

import krang_dynamics as kd
from krang_dynamics.bags.identification.model_files import robot_file, with_friction_and_motors, with_inertias


def test_a_robot_that_is_written_unchanged_is_the_same_robot(tmp_path):
    krang = kd.load_robot('krang')
    bodies = {
        name: body.toDynamicParameters()
        for name, body in list(zip(krang.model.names, krang.model.inertias, strict=True))[1:]
    }
    friction, rotors = krang.friction, np.diag(krang.rotor_inertia())
    config = with_friction_and_motors(
        krang, friction.viscous, friction.coulomb, 'smooth', rotors, np.ones(krang.nv)
    )
    (tmp_path / 'models').mkdir()
    urdf, path = tmp_path / 'models' / 'found.urdf', tmp_path / 'found.yaml'
    urdf.write_text(with_inertias(krang, bodies).text)
    path.write_text(robot_file(config, path, urdf, ['a comment']))
    assert path.read_text().startswith('# a comment\n')
    assert 'urdf: models/found.urdf' in path.read_text()
    again = kd.load_robot(path)
    assert again.config.actuators == krang.config.actuators
    for q, v, a in zip(*states(5, 17), strict=True):
        assert_close(
            again.inverse_dynamics(q, v, a, friction=True)[None],
            krang.inverse_dynamics(q, v, a, friction=True)[None],
        )


def test_fixed_links_are_counted_once_and_comments_stay():
    text = Path(kd.load_robot('planar_2r').urdf.source).read_text()
    fixed = """<!-- a tool -->
        <link name="tool"><inertial><mass value="1"/>
        <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
        <joint name="mount" type="fixed"><parent link="link_2"/><child link="tool"/>
        <origin xyz="0.3 0 0"/></joint></robot>"""
    robot = kd.load_robot(text.replace('</robot>', fixed))
    body = robot.model.inertias[robot.model.getJointId('joint_2')]
    found = with_inertias(robot, {'joint_2': 2 * body.toDynamicParameters()})
    assert '<!-- a tool -->' in found.text
    assert found.links['tool'].mass == 0
    assert found.links['link_2'].mass == 2 * body.mass
    assert_close(found.links['link_2'].com[None], pin.Inertia(body).lever[None])


def test_gains_go_into_the_torque_constants():
    krang = kd.load_robot('krang')
    zero = np.zeros(krang.nv)
    config = with_friction_and_motors(krang, zero, zero, 'exact', zero, np.full(krang.nv, 1.1))
    before, after = krang.config.joints['left_1'].motor, config.joints['left_1'].motor
    assert after.torque_constant == 1.1 * before.torque_constant
    assert after.rotor_inertia == 0
    assert config.friction.sign is None
