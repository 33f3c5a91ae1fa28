"""Wrong and random input: an arm as URDF and robot file, and campaigns of random values."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import krang_dynamics as kd

ARM = """<robot name="arm">
<link name="base"/>
<link name="upper"><inertial><origin xyz="0 0 -0.5" rpy="0 0 0"/><mass value="2"/>
<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.01"/></inertial></link>
<link name="lower"><inertial><origin xyz="0 0 -0.5"/><mass value="1"/>
<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.01"/></inertial></link>
<link name="tip"/>
<joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
<limit lower="-1" upper="2" effort="10" velocity="3"/><dynamics damping="0.1" friction="0.2"/></joint>
<joint name="elbow" type="continuous"><parent link="upper"/><child link="lower"/><origin xyz="0 0 -1"/>
<axis xyz="0 1 0"/></joint>
<joint name="weld" type="fixed"><parent link="lower"/><child link="tip"/></joint>
</robot>"""

ROBOT_FILE = """name: mine
urdf: arm.urdf
description: an arm
end_effectors: [tip]
stop: {policy: lower, time: 2.0, blind_time: 0.5}
command_unit: torque
gravity: [0.0, 0.0, -9.81]
joints:
  shoulder: {driven: true, nominal_torque: 5.0, motor: {gear: 50.0, rotor_inertia: 1.0e-4}}
  elbow: {driven: false}
home: {shoulder: 0.5, elbow: 0.0}
friction:
  sign: smooth
  fitted_with: smooth
  viscous: {shoulder: 0.1, elbow: 0.2}
  coulomb: {shoulder: 0.3}
rolling: []
actuators:
  - {name: motor_1, joint: shoulder}
"""

RANDOM = settings(
    deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)

ANYTHING = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.floats(-1e3, 1e3),
        st.sampled_from([np.nan, np.inf, -np.inf]),
        st.integers(-1000, 1000),
        st.text(max_size=5),
        st.binary(max_size=5),
        st.complex_numbers(max_magnitude=10),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=6,
)


def campaign(*strategies, small=50, full=300):
    """Decorator: a test that checks random values, few of them by default and all in a long campaign."""

    def decorate(check):
        def test(count):
            settings(RANDOM, max_examples=count)(given(*strategies)(check))()

        sizes = [small, pytest.param(full, marks=pytest.mark.long)]
        return pytest.mark.parametrize('count', sizes)(test)

    return decorate


def refusal(function, *args, **keywords):
    with pytest.raises(kd.KrangError) as caught:
        function(*args, **keywords)
    return str(caught.value)


def outcome(function, *args, **keywords):
    """(result, '') or (None, message of the error)."""
    try:
        return function(*args, **keywords), ''
    except kd.KrangError as error:
        return None, str(error)


def load_or_refuse(source):
    robot, reason = outcome(kd.load_robot, source)
    if robot is None:
        assert reason
        return
    assert np.isfinite(robot.mass_matrix(robot.home)).all()
    assert np.isfinite(robot.gravity_torque(robot.home)).all()
