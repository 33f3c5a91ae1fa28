"""What all plants share: state handed out as copies, steps, pushes, refusals."""

import numpy as np
import pytest
from simulation.driving import drive, free, one_joint

import krang_dynamics as kd
from krang_dynamics.simulation import (
    ENGINES,
    ContactPlant,
    MujocoPlant,
    PinocchioPlant,
    choose_engine,
    make_plant,
)
from krang_dynamics.simulation.plant import rk4_step

pytest.importorskip('mujoco', reason='mujoco is not installed')
HARD_PUSH = np.array([3.0, 0, 4.0, 0, 1.0, 0])


@pytest.fixture(params=ENGINES)
def plant(request):
    return make_plant(kd.load_robot('planar_2r'), request.param)


def test_starts_at_home_at_rest(plant):
    np.testing.assert_array_equal(plant.q, plant.robot.home)
    np.testing.assert_array_equal(plant.v, [0, 0])
    assert plant.time == 0
    assert plant.name in ENGINES


def test_hands_out_copies(plant):
    plant.q[:] = plant.v[:] = 7
    np.testing.assert_array_equal(plant.q, plant.robot.home)
    q = np.array([0.1, 0.2])
    plant.reset(q, q)
    q[:] = 7
    np.testing.assert_array_equal(plant.q, [0.1, 0.2])
    np.testing.assert_array_equal(plant.v, [0.1, 0.2])


def test_reset_forgets_time_and_pushes(plant):
    drive(plant, free, 0.1)
    first = plant.q
    plant.push('tip', HARD_PUSH)
    drive(plant, free, 0.1)
    plant.reset(plant.robot.home, [0, 0])
    assert plant.time == 0
    np.testing.assert_array_equal(drive(plant, free, 0.1).q, first)


def test_a_push_lasts_until_it_is_cleared(plant):
    plant.push('tip', HARD_PUSH)
    plant.push('tip', np.zeros(6))
    untouched = make_plant(plant.robot, plant.name)
    np.testing.assert_array_equal(drive(plant, free, 0.05).q, drive(untouched, free, 0.05).q)


def test_a_long_step_is_divided(plant):
    other = make_plant(plant.robot, plant.name)
    drive(other, free, 0.1)
    plant.step([0, 0], 0.1)
    np.testing.assert_allclose(plant.q, other.q, atol=1e-12)
    np.testing.assert_allclose(plant.time, other.time)


@pytest.mark.parametrize('name', ['krang', 'krang_exact_sign', 'otbot', 'pendubot'])
@pytest.mark.parametrize('engine', ENGINES)
def test_two_runs_are_identical_to_the_bit(name, engine):
    def run():
        plant = make_plant(kd.load_robot(name), engine)
        plant.push(plant.robot.config.end_effectors[0], HARD_PUSH)
        drive(plant, lambda t, p: np.sin(t + np.arange(len(free(t, p)))), 0.2)
        return plant

    first, second = run(), run()
    np.testing.assert_array_equal(first.q, second.q)
    np.testing.assert_array_equal(first.v, second.v)


@pytest.mark.parametrize(
    ('call', 'words'),
    [
        (lambda p: p.step([1.0], 1e-3), 'u has shape'),
        (lambda p: p.step([1.0, np.nan], 1e-3), 'must be finite'),
        (lambda p: p.step([0, 0], 0.0), 'dt is 0.0'),
        (lambda p: p.step([0, 0], np.inf), 'dt is inf'),
        (lambda p: p.step([0, 0], 'x'), "dt is 'x'"),
        (lambda p: p.reset([0.0], [0, 0]), 'q has shape'),
        (lambda p: p.push('tipp', np.zeros(6)), "did you mean 'tip'"),
        (lambda p: p.push('tip', np.zeros(3)), '6 numbers'),
    ],
)
def test_what_cannot_be_meant_is_refused_and_changes_nothing(plant, call, words):
    with pytest.raises(kd.KrangError, match=words):
        call(plant)
    np.testing.assert_array_equal(plant.q, plant.robot.home)
    assert plant.time == 0


@pytest.mark.filterwarnings('ignore:overflow', 'ignore:invalid')
def test_a_robot_that_leaves_all_bounds_is_reported(plant):
    plant.reset([0, 1], [1e200, -1e200])
    with pytest.raises(kd.KrangError, match='diverged'):
        plant.step([0, 0], 1e-3)


def test_a_timestep_of_nothing_is_refused(plant):
    with pytest.raises(kd.KrangError, match='timestep is 0'):
        make_plant(plant.robot, plant.name, timestep=0)


# -- plants by the name of their engine ----------------------------------------------------------------


@pytest.mark.parametrize(
    ('robot', 'engine', 'kind'),
    [
        ('planar_2r', 'pinocchio', PinocchioPlant),
        ('planar_2r', 'mujoco', MujocoPlant),
        ('otbot', 'pinocchio', PinocchioPlant),
        ('otbot', 'mujoco', ContactPlant),
    ],
)
def test_an_engine_chooses_the_plant_that_fits_the_robot(robot, engine, kind):
    plant = make_plant(kd.load_robot(robot), engine, friction=False)
    assert type(plant) is kind
    assert plant.name == engine


def test_an_unknown_engine_is_refused_with_the_names_that_exist():
    with pytest.raises(kd.KrangError, match='pinocchio, mujoco'):
        make_plant(kd.load_robot('planar_2r'), 'gazebo')


# -- Runge-Kutta ---------------------------------------------------------------------------------------


def oscillator_error(steps):
    q, v = np.array([1.0]), np.array([0.0])
    for _ in range(steps):
        q, v = rk4_step(lambda q, v: -q, q, v, 1 / steps)
    return max(abs(q[0] - np.cos(1)), abs(v[0] + np.sin(1)))


def test_given_half_the_step_then_a_sixteenth_of_the_error():
    assert oscillator_error(20) < 1e-7
    np.testing.assert_allclose(np.log2(oscillator_error(20) / oscillator_error(40)), 4, atol=0.1)


def test_given_a_damped_swing_then_the_velocity_of_every_stage_counts():
    q, v = np.array([0.0]), np.array([1.0])
    for _ in range(100):
        q, v = rk4_step(lambda q, v: -3 * v, q, v, 0.01)
    np.testing.assert_allclose([q[0], v[0]], [(1 - np.exp(-3)) / 3, np.exp(-3)], atol=1e-8)


@pytest.mark.parametrize('engine', ENGINES)
def test_given_friction_that_stops_a_light_joint_within_a_step_then_the_motion_is_stable(engine):
    robot = kd.load_robot(one_joint(inertia=1e-4, damping=5.0))
    plant = kd.make_plant(robot, engine)
    plant.reset([0.0], [10.0])
    drive(plant, lambda time, plant: [1.0], 1.0)
    assert plant.v[0] == pytest.approx(1.0 / 5.0, rel=1e-6)
    assert plant.q[0] == pytest.approx(0.2, abs=0.002)


def test_given_dry_friction_on_a_light_stiff_joint_then_it_sticks_and_pinocchio_is_chosen():
    robot = kd.load_robot(one_joint(inertia=1e-5, damping=5.0, friction=1.0))
    plant = kd.make_plant(robot, 'pinocchio')
    drive(plant, lambda time, plant: [0.9], 0.2)
    assert plant.q[0] == pytest.approx(0.0, abs=1e-9)
    drive(plant, lambda time, plant: [1.5], 0.5)
    assert plant.v[0] == pytest.approx(0.5 / 5.0, rel=1e-6)
    assert choose_engine(robot)[0] == 'pinocchio'
