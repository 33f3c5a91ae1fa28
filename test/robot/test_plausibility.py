"""What krang info warns of."""

import numpy as np
import pytest

import krang_dynamics as kd
from krang_dynamics.robot.plausibility import com_motion, warnings

ARM = """
<robot name="arm"><link name="world"/>
  <link name="upper">{shape}<inertial><mass value="1"/>
    <inertia ixx="{ixx}" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="lower"><inertial><origin xyz="0.5 0 0"/><mass value="{mass}"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="shoulder" type="revolute"><parent link="world"/><child link="upper"/>
    <axis xyz="0 -1 0"/><limit lower="-1" upper="{upper}" effort="{effort}" velocity="1"/></joint>
  <joint name="elbow" type="{kind}"><parent link="upper"/><child link="lower"/>
    <origin xyz="{reach} 0 0"/><axis xyz="0 -1 0"/>{limit}</joint>
</robot>"""
LIMIT = '<limit lower="-1" upper="1" effort="50" velocity="1"/>'
SOUND = {'ixx': 0.1, 'mass': 1, 'upper': 1, 'effort': 50, 'kind': 'revolute', 'reach': 1, 'limit': LIMIT}
SPHERE = '<visual><origin rpy="inf 0 0"/><geometry><sphere radius="1"/></geometry></visual>'


def warn(**changes):
    return '\n'.join(warnings(kd.load_robot(ARM.format(**{**SOUND, 'shape': '', **changes}))))


def test_a_sound_arm_gives_no_warning():
    assert warn() == ''


@pytest.mark.parametrize(
    ('changes', 'warning'),
    [
        ({'ixx': 0.3}, 'link upper: principal inertia 0.3 exceeds the sum of the others, 0.2'),
        ({'ixx': -0.01}, 'link upper: principal inertia -0.01 kg m2 is negative'),
        ({'upper': -1}, 'joint shoulder: lower and upper limit are equal'),
        ({'effort': 0}, 'joint shoulder: driven, but its effort limit is 0'),
        ({'effort': 1}, 'joint shoulder: gravity at home exceeds its effort limit'),
        ({'kind': 'continuous', 'limit': ''}, 'joint elbow: no effort limit'),
        ({'limit': f'{LIMIT}<orign xyz="1 0 0"/>'}, 'joint elbow: <orign> is ignored'),
        ({'limit': f'{LIMIT}{LIMIT}'}, 'joint elbow: the second <limit> is ignored'),
        ({'limit': LIMIT.replace('lower', 'lowr')}, 'joint elbow: lowr of <limit> is ignored'),
        ({'shape': SPHERE}, "link upper: a <visual> is ignored: URDF text: shape: origin rpy is 'inf 0 0'"),
        ({'reach': 0}, 'joints shoulder and elbow turn about the same axis'),
        ({'reach': 0}, 'frame lower: its Jacobian has rank 1 in every pose, although 2 joints move it'),
    ],
)
def test_what_is_suspicious_is_named(changes, warning):
    assert warning in warn(**changes)


def test_the_anthropomorphic_arm_is_warned_of_and_the_other_robots_are_not():
    for name in kd.robots():
        found = warnings(kd.load_robot(name))
        assert bool(found) == (name == 'anthropomorphic'), found
    assert 'rank 5' in warnings(kd.load_robot('anthropomorphic'))[0]


def test_positive_joints_move_the_centre_of_mass_the_documented_way():
    krang, planar = kd.load_robot('krang'), kd.load_robot('planar_2r')
    assert com_motion(krang, 0)[0] > 0.01  # base_pitch leans forward
    assert com_motion(planar, 0)[2] > 0.01  # q1 lifts
    pendubot = kd.load_robot('pendubot')
    assert com_motion(pendubot, 1)[1] > 0  # the rod tips from +z towards +y
    assert abs(np.linalg.norm(com_motion(kd.load_robot('otbot'), 0)) - 0.1) < 1e-12
