"""Wheels held by contact against wheels held by a constraint, and against Coulomb's law."""

import numpy as np
import pytest
from reference import otbot
from simulation.driving import DT, drive, free
from simulation.tractor import TEXT, tractor

import krang_dynamics as kd
from krang_dynamics.simulation import ContactPlant, PinocchioPlant
from krang_dynamics.simulation.contact_plant import rolling_spec
from krang_dynamics.simulation.planar_base import CASTER_SHARE, GRIP, PlanarBase

mujoco = pytest.importorskip('mujoco', reason='mujoco is not installed')

ROBOT = kd.load_robot('otbot')
OMEGA = 0.3  # [rad/s] of the published circle x = sin 0.3 t, y = cos 0.3 t - 1, alpha = 0


def circle_rates(time, q):
    """v and a on the circle in a state that is on it, by the reference's constraint J v = 0."""
    s, c = np.sin(OMEGA * time), np.cos(OMEGA * time)
    task, change = OMEGA * np.array([c, -s, 0]), -(OMEGA**2) * np.array([s, c, 0])
    J = otbot.constraint_jacobian(q)
    v = np.concatenate([task, np.linalg.solve(J[:, 3:], -J[:, :3] @ task)])
    bias = otbot.constraint_jacobian_rate(q, v) @ v
    return v, np.concatenate([change, np.linalg.solve(J[:, 3:], -J[:, :3] @ change - bias)])


def circle(seconds, dt):
    """States, and the torques that drive them, at t = 0, dt, ..; wheel angles integrated by Heun."""
    q, states, torques = ROBOT.home, [], []
    for k in range(round(seconds / dt) + 1):
        v, a = circle_rates(k * dt, q)
        states.append((q, v))
        torques.append(ROBOT.motor_torque(q, v, a, friction=True))
        guess, _ = circle_rates((k + 1) * dt, q + dt * v)
        q = q + dt / 2 * (v + guess)
    return states, torques


@pytest.mark.slow
def test_given_torques_of_the_rolling_model_then_it_follows_half_the_circle_open_loop():
    dt = 1e-2
    states, torques = circle(np.pi / OMEGA, dt)
    plant = ContactPlant(ROBOT)
    plant.reset(*states[0])
    slip = []
    for before, after, (q, _) in zip(torques, torques[1:], states[1:], strict=False):
        plant.step((before + after) / 2, dt)
        slip.append(ROBOT.constraint_jacobian(plant.q) @ plant.v)
        assert np.hypot(*(plant.q - q)[:2]) < 2e-3
    np.testing.assert_allclose(plant.q[:2], (0, -2), atol=2e-3)
    assert np.abs(slip).max() < 3e-4  # [m/s] forwards and sideways, of 0.3 m/s


def test_given_equal_wheel_torques_then_it_rolls_straight_as_the_model_says():
    u = np.array([10.0, 10.0, 0.0])
    plant = drive(ContactPlant(ROBOT, friction=False), lambda t, p: u, 0.5)
    a = ROBOT.forward_dynamics(ROBOT.home, np.zeros(6), u)
    np.testing.assert_allclose(plant.v, 0.5 * a, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize('robot', [ROBOT, tractor()], ids=lambda robot: robot.name)
def test_given_turns_and_a_push_then_it_stays_with_the_rolling_model(robot):
    plants = ContactPlant(robot), PinocchioPlant(robot)
    phases = np.arange(len(robot.actuated_joint_names))
    frame, heavy = robot.config.rolling[0].link, robot.total_mass
    for plant in plants:
        plant.reset(robot.home + 0.3, np.zeros(robot.nv))
        drive(plant, lambda t, p: heavy * 0.02 * (1 + np.sin(3 * t + phases)), 0.7)
        plant.push(frame, heavy * np.array([0.3, -0.5, 0, 0, 0, 0.1]))
        drive(plant, lambda t, p: heavy * 0.02 * (1 + np.sin(3 * t + phases)), 0.3)
    contact, exact = plants
    assert np.abs(exact.q - robot.home - 0.3).max() > 0.5
    np.testing.assert_allclose(contact.q, exact.q, atol=0.02)
    np.testing.assert_allclose(contact.v, exact.v, atol=0.05)


def test_given_more_torque_than_grip_then_the_wheels_spin_and_coulomb_sets_the_pace():
    u, weight = 80.0, ROBOT.total_mass * 9.81
    plant = drive(ContactPlant(ROBOT, friction=False), lambda t, p: [u, u, 0], 0.2)
    assert plant.v[3] * otbot.R > 5 * plant.v[0]
    # Moments about the axle, where gravity presses the caster down and the motors lift it.
    offset = ROBOT.center_of_mass(ROBOT.home)[0] + otbot.L_1
    load = weight - (weight * offset - 2 * u) / (offset / CASTER_SHARE)
    # Spinning wheels hop, so that this holds on average only.
    np.testing.assert_allclose(plant.v[0] / 0.2, GRIP * load / ROBOT.total_mass, rtol=0.1)


def test_given_a_turning_platform_then_alpha_counts_the_turns():
    plant = drive(ContactPlant(ROBOT), lambda t, p: [0, 0, 30.0], 1.5, dt=1e-2)
    exact = drive(PinocchioPlant(ROBOT, timestep=1e-2), lambda t, p: [0, 0, 30.0], 1.5, dt=1e-2)
    assert plant.q[2] > 2 * np.pi
    np.testing.assert_allclose(plant.q[2], exact.q[2], rtol=0.01)


@pytest.mark.parametrize('sign', ['smooth', 'exact'])
def test_given_coulomb_friction_in_the_pivot_then_it_slows_the_platform_as_in_the_model(sign):
    friction = {'coulomb': {'pivot': 2.0}, 'sign': sign, 'fitted_with': sign}
    robot = kd.load_robot('otbot', friction=friction)
    plants = ContactPlant(robot), PinocchioPlant(robot)
    for plant in plants:
        drive(plant, lambda t, p: [0, 0, 5.0], 0.3)
        drive(plant, free, 0.2)
    np.testing.assert_allclose(plants[0].v[5], plants[1].v[5], rtol=0.01)


def test_given_a_payload_then_the_acceleration_is_smaller():
    robot = ROBOT.with_payload('platform', 40.0, (0.1, 0, 0.2), np.diag([1.0, 1.0, 2.0]))
    u = np.array([10.0, 10.0, 0.0])
    plant = drive(ContactPlant(robot, friction=False), lambda t, p: u, 0.2)
    a = robot.forward_dynamics(robot.home, np.zeros(6), u)
    np.testing.assert_allclose(plant.v[:2], 0.2 * a[:2], rtol=0.01, atol=1e-5)


def test_given_a_long_step_then_it_is_divided():
    plants = ContactPlant(ROBOT), ContactPlant(ROBOT)
    plants[0].step([5.0, 4.0, 1.0], 0.02)
    drive(plants[1], lambda t, p: [5.0, 4.0, 1.0], 0.02, dt=DT)
    np.testing.assert_allclose(plants[0].q, plants[1].q, atol=1e-12)


def test_links_that_the_free_joint_replaces_cannot_be_pushed():
    with pytest.raises(kd.KrangError, match="unknown frame 'x_slide'"):
        ContactPlant(ROBOT).push('x_slide', np.ones(6))


def test_given_a_driven_planar_joint_then_it_is_refused():
    joints = {name: {'driven': False, 'state': 'odom'} for name in ('north', 'bearing')}
    driven = {name: {'driven': True} for name in ('left', 'right')}
    names = ('left', 'right', 'east')
    robot = tractor(
        joints={**joints, **driven, 'east': {'driven': True, 'state': 'odom'}},
        actuators=[{'name': name, 'joint': name} for name in names],
    )
    with pytest.raises(kd.KrangError, match='east are driven'):
        ContactPlant(robot)


# -- the MuJoCo model: masses, energy, weight on wheels and caster -------------------------------------


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
