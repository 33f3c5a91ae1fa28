"""Robots as MuJoCo reads them: foreign URDFs, payloads, refusals."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from simulation.driving import drive, free
from tools import assert_close, states

import krang_dynamics as kd
from krang_dynamics.simulation import MujocoPlant, PinocchioPlant, choose_engine

mujoco = pytest.importorskip('mujoco', reason='mujoco is not installed')

INERTIA = '<inertia ixx="0.02" iyy="0.03" izz="0.04" ixy="0.001" ixz="0" iyz="-0.002"/>'
LIMIT = '<limit lower="-5" upper="5" effort="100" velocity="10"/>'
FOREIGN = f"""<robot name="foreign">
  <link name="pedestal"><inertial><mass value="9"/>{INERTIA}</inertial></link>
  <joint name="lift" type="prismatic"><parent link="pedestal"/><child link="massless"/>
    <origin xyz="0 0.1 0.2" rpy="0.3 0.2 -0.4"/><axis xyz="1 2 3"/>{LIMIT}</joint>
  <link name="massless"/>
  <joint name="spin" type="continuous"><parent link="massless"/><child link="turned"/>
    <origin rpy="1 0 0.5"/><axis xyz="0 1 0"/></joint>
  <link name="turned">
    <inertial><origin xyz="0.1 0 0.2" rpy="0.5 0.6 0.7"/><mass value="2"/>{INERTIA}</inertial></link>
  <joint name="weld" type="fixed"><parent link="turned"/><child link="point"/>
    <origin xyz="0 0.3 0" rpy="0 1 0"/></joint>
  <link name="point"><inertial><mass value="0.5"/>
    <inertia ixx="0" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="tool" type="fixed"><parent link="point"/><child link="camera"/><origin xyz="0.1 0 0"/></joint>
  <link name="camera"/></robot>"""


def fall_apart(robot, wrench=None, frame=None):
    """Largest difference of the two engines after 0.3 s of falling."""
    plants = [PinocchioPlant(robot), MujocoPlant(robot)]
    for plant in plants:
        if frame is not None:
            plant.push(frame, wrench)
        drive(plant, free, 0.3)
        assert np.abs(plant.q - robot.home).max() > 0.01
    return np.abs(plants[0].q - plants[1].q).max()


@pytest.mark.parametrize('frame', ['camera', 'massless', 'pedestal'])
def test_given_a_foreign_urdf_then_both_engines_agree_wherever_it_is_pushed(frame):
    assert fall_apart(kd.load_robot(FOREIGN), np.array([1.0, 2, -3, 0.1, 0.2, -0.1]), frame) < 1e-8


def test_given_another_gravity_and_payloads_then_both_engines_agree():
    robot = kd.load_robot('anthropomorphic').with_gravity((1.0, -2.0, -9.0))
    robot = robot.with_payload('tool', 1.5, (0.02, 0.1, 0.05), np.diag([0.01, 0.02, 0.015]))
    robot = robot.with_payload(robot.urdf.root, 3.0).with_payload('tool', 0.5, (0, 0, 0.1))
    assert fall_apart(robot) < 1e-7


def with_follower(mimic):
    follower = (
        '<joint name="follower" type="revolute"><parent link="camera"/><child link="finger"/>'
        f'<axis xyz="0 0.6 0.8"/>{LIMIT}{mimic}</joint>'
        f'<link name="finger"><inertial><mass value="1"/>{INERTIA}</inertial></link></robot>'
    )
    return kd.load_robot(FOREIGN.replace('</robot>', follower))


@pytest.mark.parametrize('mimic', ['', ' multiplier="-1.5" offset="0.3"', ' multiplier="0"'])
def test_given_a_mimic_joint_then_both_engines_agree(mimic):
    robot = with_follower(f'<mimic joint="spin"{mimic}/>')
    assert robot.joint_names == ('lift', 'spin')
    assert fall_apart(robot, np.array([1.0, 2, -3, 0.1, 0.2, -0.1]), 'finger') < 1e-4


def test_given_an_inertia_that_no_body_has_then_the_link_is_named_with_a_remedy():
    text = FOREIGN.replace('izz="0.04"', 'izz="4"')
    with pytest.raises(kd.KrangError, match='MuJoCo cannot build the robot: link turned') as caught:
        MujocoPlant(kd.load_robot(text))
    proposal = re.search('<inertia .*?/>', str(caught.value))[0]
    mended = re.sub(r'(rpy="0.5 0.6 0.7")(.*?)<inertia .*?/>', rf'rpy="0 0 0"\2{proposal}', text)
    assert mended != text
    MujocoPlant(kd.load_robot(mended))


def test_given_an_implausible_link_in_a_plausible_part_then_both_engines_agree():
    point = '<inertia ixx="1e-6" iyy="1e-6" izz="9e-6" ixy="0" ixz="0" iyz="0"/>'
    camera = f'<link name="camera"><inertial><mass value="0.01"/>{point}</inertial></link>'
    assert fall_apart(kd.load_robot(FOREIGN.replace('<link name="camera"/>', camera))) < 1e-8


def test_the_engine_is_mujoco_unless_it_cannot_simulate_the_robot():
    assert choose_engine(kd.load_robot(FOREIGN)) == ('mujoco', '')
    engine, reason = choose_engine(kd.load_robot(FOREIGN.replace('izz="0.04"', 'izz="4"')))
    assert engine == 'pinocchio'
    assert 'link turned' in reason


def test_without_mujoco_the_exact_plant_works_and_the_other_says_what_to_install():
    code = (
        'import sys\n'
        "sys.modules['mujoco'] = None\n"
        'import krang_dynamics as kd\n'
        'from krang_dynamics import simulation\n'
        "robot = kd.load_robot('planar_2r')\n"
        'simulation.PinocchioPlant(robot).step([0, 0], 1e-3)\n'
        "for name in 'planar_2r', 'otbot':\n"
        '    try:\n'
        "        simulation.make_plant(kd.load_robot(name), 'mujoco')\n"
        '    except kd.KrangError as error:\n'
        "        assert 'pip install mujoco' in str(error)\n"
        '    else:\n'
        '        sys.exit(1)'
    )
    subprocess.run([sys.executable, '-c', code], check=True, timeout=60)


# -- the same URDF read by MuJoCo itself: A, bias and inverse dynamics ----------------------------------


class Engine:
    """MuJoCo's model of a robot's URDF, evaluated in the robot's joint order."""

    def __init__(self, robot, urdf):
        self.model = mujoco.MjModel.from_xml_string(urdf)
        self.model.opt.gravity[:] = robot.config.gravity
        self.model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
        joints = [mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_JOINT, n) for n in robot.joint_names]
        self.q, self.v = self.model.jnt_qposadr[joints], self.model.jnt_dofadr[joints]
        self.model.dof_armature[self.v] = np.diag(robot.rotor_inertia())
        self.data = mujoco.MjData(self.model)

    def evaluate(self, q, v, a):
        """(A, C v + Q, inverse dynamics)."""
        self.data.qpos[self.q], self.data.qvel[self.v] = q, v
        mujoco.mj_forward(self.model, self.data)
        full = np.zeros((self.model.nv, self.model.nv))
        for row, unit in zip(full, np.eye(self.model.nv), strict=True):
            mujoco.mj_mulM(self.model, self.data, row, unit)
        bias = self.data.qfrc_bias[self.v].copy()
        self.data.qacc[self.v] = a
        mujoco.mj_inverse(self.model, self.data)
        return full[np.ix_(self.v, self.v)], bias, self.data.qfrc_inverse[self.v].copy()


@pytest.mark.parametrize('name', kd.robots())
def test_mujoco_agrees(name):
    robot = kd.load_robot(name)
    engine = Engine(robot, Path(robot.urdf.source).read_text())
    q, v, a = states(200, robot.nv)
    A, bias, tau = zip(*map(engine.evaluate, q, v, a), strict=True)
    assert_close([robot.mass_matrix(x) for x in q], A)
    assert_close([robot.inverse_dynamics(*x, np.zeros(robot.nv)) for x in zip(q, v, strict=True)], bias)
    assert_close([robot.inverse_dynamics(*x) for x in zip(q, v, a, strict=True)], tau)
