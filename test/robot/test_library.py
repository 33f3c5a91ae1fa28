"""Robots are found by name, by robot file and by URDF, and overridden by keyword."""

from pathlib import Path

import numpy as np

import krang_dynamics as kd

FIVE = {'krang', 'otbot', 'pendubot', 'planar_2r', 'anthropomorphic'}


def test_the_five_and_their_variants_are_shipped():
    assert set(kd.robots()) == FIVE | {'krang_exact_sign', 'pendubot_station_7', 'pendubot_station_9'}


def test_name_robot_file_urdf_path_and_urdf_text_give_the_same_torque():
    by_name = kd.load_robot('planar_2r')
    urdf = Path(by_name.urdf.source)
    robot_file = urdf.parents[1] / 'config/robots/planar_2r.yaml'
    for source in (urdf, str(urdf), urdf.read_text(), robot_file, str(robot_file)):
        robot = kd.load_robot(source)
        np.testing.assert_array_equal(
            robot.gravity_torque(by_name.home), by_name.gravity_torque(by_name.home)
        )


def test_keywords_override_the_robot_file():
    light = kd.load_robot('krang', gravity=np.array([0, 0, -1.0]), rotor_inertia=False)
    normal = kd.load_robot('krang')
    np.testing.assert_allclose(
        light.gravity_torque(light.home) * 9.81, normal.gravity_torque(normal.home), atol=1e-9
    )
    assert not light.rotor_inertia().any()
    assert light.config.home == normal.config.home


def test_a_users_file_may_extend_a_shipped_robot(tmp_path):
    path = tmp_path / 'mine.yaml'
    path.write_text('extends: planar_2r\nname: mine\nhome: {joint_1: 1e-1, joint_2: 0}\n')
    robot = kd.load_robot(path)
    assert robot.name == 'mine'
    np.testing.assert_array_equal(robot.home, [0.1, 0])


def test_actuated_joints():
    assert kd.load_robot('otbot').actuated_joint_names == ('right_wheel', 'left_wheel', 'pivot')
    assert kd.load_robot('pendubot').actuated_joint_names == ('arm',)
    assert kd.load_robot('krang').actuated_joint_names == kd.load_robot('krang').joint_names


def test_default_limits_are_nominal_and_never_above_the_urdf():
    krang = kd.load_robot('krang')
    assert krang.effort_limits[1] == 432
    assert krang.urdf.joints['waist'].effort == 744
    for name in kd.robots():
        robot = kd.load_robot(name)
        peaks = [robot.urdf.joints[joint].effort for joint in robot.joint_names]
        assert (robot.effort_limits <= peaks).all()
