"""The exported model: nothing of the robot is lost, it stands level, wheels share what the caster leaves."""

import numpy as np
import pytest
from simulation.tractor import TEXT, tractor

import krang_dynamics as kd
from krang_dynamics.simulation import ContactPlant
from krang_dynamics.simulation.ground import CASTER_SHARE
from krang_dynamics.simulation.planar_base import PlanarBase
from krang_dynamics.simulation.rolling_mjcf import rolling_spec

mujoco = pytest.importorskip('mujoco')

ROBOTS = {'otbot': kd.load_robot('otbot'), 'tractor': tractor()}


@pytest.fixture(params=ROBOTS.values(), ids=ROBOTS)
def robot(request):
    return request.param


@pytest.fixture
def spec(robot):
    return rolling_spec(robot, PlanarBase(robot), 1e-3, False)


def test_masses_are_the_robot_s(robot, spec):
    np.testing.assert_allclose(spec.compile().body_mass.sum(), robot.total_mass, rtol=1e-12)


def test_kinetic_energy_of_planar_motion_is_the_robot_s(robot, spec):
    model = spec.compile()
    data, base = mujoco.MjData(model), PlanarBase(robot)
    own = [name for i, name in enumerate(robot.joint_names) if i not in base.joints]
    for q, v in np.random.default_rng(5).uniform(-2, 2, (10, 2, robot.nv)):
        free = model.joint(base.free_joint)
        position, velocity = base.free_state(q, v)
        data.qpos[free.qposadr[0] :][:7], data.qvel[free.dofadr[0] :][:6] = position, velocity
        for name in own:
            joint, i = model.joint(name), robot.joint_names.index(name)
            data.qpos[joint.qposadr], data.qvel[joint.dofadr] = q[i], v[i]
        mujoco.mj_forward(model, data)
        momentum = np.zeros(model.nv)
        mujoco.mj_mulM(model, data, momentum, data.qvel)
        np.testing.assert_allclose(data.qvel @ momentum / 2, robot.kinetic_energy(q, v), rtol=1e-9)


def test_it_stands_level_and_the_wheels_share_the_weight_equally(robot, spec):
    model = spec.compile()
    data, base = mujoco.MjData(model), PlanarBase(robot)
    start = base.free_state(robot.home, np.zeros(robot.nv))[0]
    data.qpos[:7] = start
    for _ in range(1000):
        mujoco.mj_step(model, data)
    np.testing.assert_allclose(data.qpos[:7], start, atol=2e-6)
    forces = np.zeros((data.ncon, 6))
    for i, force in enumerate(forces):
        mujoco.mj_contactForce(model, data, i, force)
    wheel = (1 - CASTER_SHARE) / 2
    shares = np.sort(forces[:, 0]) / (robot.total_mass * 9.81)
    np.testing.assert_allclose(shares, [CASTER_SHARE, wheel, wheel], rtol=1e-4)


def test_the_mjcf_file_loads_again(robot, spec):
    model = spec.compile()
    again = mujoco.MjModel.from_xml_string(spec.to_xml())
    assert (again.nv, again.ngeom) == (model.nv, model.ngeom)
    np.testing.assert_allclose(again.body_mass.sum(), robot.total_mass, rtol=1e-6)


@pytest.mark.parametrize(
    ('old', 'new', 'words'),
    [
        ('-0.1 0.3 0"', '-0.1 0.3 0.01"', 'different heights'),
        ('xyz="0.06 0.02 0.03"', 'xyz="-0.1 0 0.03"', 'would have to balance'),
        ('"body"/><child link="left_rim"/>', '"right_rim"/><child link="left_rim"/>', 'one link'),
    ],
)
def test_given_what_cannot_stand_on_a_caster_then_it_is_refused(old, new, words):
    assert old in TEXT
    with pytest.raises(kd.KrangError, match=words):
        ContactPlant(tractor(TEXT.replace(old, new)))
