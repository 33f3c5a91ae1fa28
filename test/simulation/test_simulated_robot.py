"""The simulated robot: drivers, external forces, loads, faults and sensors."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from simulation.driving import truth

import krang_dynamics as kd
from krang_dynamics.control.drivers import Drivers
from krang_dynamics.control.sensors import ImuSample, ImuSource, OdomSample, OdomSource
from krang_dynamics.errors import ConfigError, InputError, UnknownNameError
from krang_dynamics.robot.payload import Payload
from krang_dynamics.simulation.faults import Faults
from krang_dynamics.simulation.simulated_robot import SimulatedRobot, Wall

EXACT = 1e-9  # rad and rad/s, of two integrators of high order
HARD = np.array([5.0, 0.0, -20.0, 0.0, 1.0, 0.0])  # N, N m


def simulated_robot(name='planar_2r', engine='pinocchio', **overrides):
    robot = kd.load_robot(name, **overrides)
    return SimulatedRobot(robot, Drivers(robot, robot.actuated_joint_names), engine)


@pytest.fixture
def simulated():
    return simulated_robot()


def run(simulated, seconds):
    for _ in range(round(seconds / simulated.period)):
        simulated.step()
    return simulated


def carried(mass, frame='tip'):
    return Payload.checked(frame, mass, [0.1, 0.02, 0.03], np.diag([0.02, 0.03, 0.04]))


def assert_moved_as(simulated, acceleration, begin, seconds):
    """The robot is where another integrator ends that starts at (q, v)."""
    q, v = truth(acceleration, *begin, seconds)
    np.testing.assert_allclose(simulated.q, q, atol=EXACT)
    np.testing.assert_allclose(simulated.v, v, atol=EXACT)


# -- drivers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize('engine', ['pinocchio', 'mujoco'])
def test_before_any_command_it_is_held_where_it_stands(engine):
    simulated = simulated_robot(engine=engine)
    run(simulated, 0.3)
    np.testing.assert_allclose(simulated.q, simulated.robot.home, atol=1e-6)
    simulated.start_at([0.3, -0.4])
    assert simulated.time == 0
    run(simulated, 0.3)
    np.testing.assert_allclose(simulated.q, [0.3, -0.4], atol=1e-6)


@pytest.mark.parametrize('engine', ['pinocchio', 'mujoco'])
def test_brakes_hold_it_until_the_next_command_while_time_goes_on(engine):
    simulated = simulated_robot(engine=engine)
    simulated.receive_command(np.zeros(2))
    run(simulated, 0.2)
    q, now = simulated.q, simulated.time
    assert np.abs(simulated.v).max() > 0.1
    simulated.hold()
    simulated.push('tip', HARD)
    run(simulated, 0.1)
    assert np.array_equal(simulated.q, q)
    assert not simulated.v.any()
    assert simulated.time == pytest.approx(now + 0.1)
    np.testing.assert_allclose(simulated.effort(), simulated.robot.gravity_torque(q))
    simulated.end_push()
    simulated.receive_command(np.zeros(2))
    run(simulated, 0.1)
    assert np.abs(simulated.q - q).max() > 0.01


def test_a_reset_brings_it_home_at_rest_and_held_and_time_goes_on(simulated):
    simulated.receive_command(np.zeros(2))
    simulated.push('tip', HARD)
    run(simulated, 0.5)
    now = simulated.time
    simulated.reset(simulated.robot.home)
    assert simulated.time == now
    run(simulated, 0.1)
    assert np.array_equal(simulated.q, simulated.robot.home)
    assert not simulated.v.any()
    assert simulated.time == pytest.approx(now + 0.1)


def test_drivers_hold_the_last_command(simulated):
    robot, u = simulated.robot, np.array([40.0, 12.0])
    simulated.receive_command(u)
    run(simulated, 0.4)
    begin = (robot.home, np.zeros(2))
    assert_moved_as(simulated, lambda t, q, v: robot.forward_dynamics(q, v, u, friction=True), begin, 0.4)
    assert simulated.time == pytest.approx(0.4)


def test_a_command_is_in_the_driver_s_unit():
    simulated = simulated_robot('krang')
    torque = 0.1 * simulated.robot.effort_limits * np.cos(np.arange(17))
    simulated.receive_command(simulated.drivers.command(torque, np.zeros(17)))
    np.testing.assert_allclose(simulated.effort(), torque, rtol=1e-12)


def test_volts_give_less_torque_the_faster_the_motor_turns():
    simulated = simulated_robot('pendubot')
    simulated.receive_command([3.0])
    run(simulated, 0.1)
    assert abs(simulated.v[0]) > 0.5
    assert simulated.robot.motor_command(simulated.effort(), simulated.v)[0] == pytest.approx(3.0)


@pytest.mark.parametrize('command', [[1.0], [1.0, np.nan], [1.0, np.inf], [1.0, 2.0, 3.0]])
def test_what_is_no_command_is_refused_and_the_one_before_held(simulated, command):
    simulated.receive_command([40.0, 12.0])
    with pytest.raises(InputError):
        simulated.receive_command(np.array(command))
    np.testing.assert_array_equal(simulated.effort(), [40.0, 12.0])


def test_a_dead_driver_gives_no_torque(simulated):
    robot = simulated.robot
    simulated.receive_command([40.0, 12.0])
    simulated.set_faults(Faults(dead_drivers=('joint_2',)))
    np.testing.assert_array_equal(simulated.effort(), [40.0, 0.0])
    run(simulated, 0.2)
    u, begin = np.array([40.0, 0.0]), (robot.home, np.zeros(2))
    assert_moved_as(simulated, lambda t, q, v: robot.forward_dynamics(q, v, u, friction=True), begin, 0.2)


def test_of_two_drivers_of_a_joint_one_can_be_dead():
    simulated = simulated_robot('krang')
    torque = np.zeros(17)
    torque[0] = 30.0
    simulated.receive_command(simulated.drivers.command(torque, np.zeros(17)))
    simulated.set_faults(Faults(dead_drivers=('left_wheel_motor',)))
    assert simulated.effort()[0] == pytest.approx(15.0)
    simulated.set_faults(Faults(dead_drivers=('left_wheel_motor', 'right_wheel_motor')))
    assert simulated.effort()[0] == pytest.approx(0.0)


# -- another robot in truth ----------------------------------------------------------------------------


@pytest.mark.parametrize('engine', ['pinocchio', 'mujoco'])
def test_with_other_masses_it_moves_as_a_robot_that_has_them(engine):
    simulated, factor = simulated_robot(engine=engine), 1.3
    robot, u, rotors = simulated.robot, np.array([40.0, 12.0]), np.diag(simulated.robot.rotor_inertia())

    def acceleration(t, q, v):
        links = robot.mass_matrix(q) - rotors
        loads = factor * (robot.coriolis_matrix(q, v) @ v + robot.gravity_torque(q))
        return np.linalg.solve(factor * links + rotors, u - loads - robot.friction_torque(v))

    simulated.receive_command(u)
    run(simulated, 0.1)
    begin = (simulated.q, simulated.v)
    simulated.set_load(factor, ())
    np.testing.assert_array_equal((simulated.q, simulated.v), begin)
    run(simulated, 0.2)
    assert_moved_as(simulated, acceleration, begin, 0.2)
    assert simulated.time == pytest.approx(0.3)


def test_what_it_carries_moves_with_it(simulated):
    load, u = carried(3.0), np.array([60.0, 20.0])
    laden = simulated.robot.with_payload(load.frame, load.mass, load.com, load.inertia)
    simulated.set_load(1.0, (load,))
    simulated.receive_command(u)
    run(simulated, 0.2)
    begin = (simulated.robot.home, np.zeros(2))
    assert_moved_as(simulated, lambda t, q, v: laden.forward_dynamics(q, v, u, friction=True), begin, 0.2)


def test_the_same_load_set_again_changes_nothing(simulated):
    simulated.set_load(1.0, (carried(3.0),))
    run(simulated, 0.05)
    plant = simulated._plant
    simulated.set_load(1.0, (carried(3.0),))
    assert simulated._plant is plant
    simulated.set_load(1.0, ())
    assert simulated._plant is not plant
    assert simulated.time == pytest.approx(0.05)


def test_a_load_does_not_change_the_nominal_model(simulated):
    simulated.set_load(2.0, (carried(3.0),))
    assert simulated.robot.mass_matrix([0, 0]) == pytest.approx(
        kd.load_robot('planar_2r').mass_matrix([0, 0]), rel=1e-15
    )


# -- pushes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize('engine', ['pinocchio', 'mujoco'])
def test_a_push_begins_and_ends_at_its_time(engine):
    simulated = simulated_robot(engine=engine)
    robot, u = simulated.robot, simulated.effort()
    run(simulated, 0.1)
    before = (simulated.q, simulated.v)
    simulated.push('tip', HARD, 0.2)

    def acceleration(push):
        def of(t, q, v):
            force = u + robot.jacobian(q, 'tip').T @ push
            return robot.forward_dynamics(q, v, force, friction=True)

        return of

    run(simulated, 0.2)
    # The engines evaluate the torque of the push at different times within a step.
    q, v = truth(acceleration(HARD), *before, 0.2)
    np.testing.assert_allclose(simulated.q, q, atol=1e-6)
    np.testing.assert_allclose(simulated.v, v, atol=1e-5)
    after = (simulated.q, simulated.v)
    run(simulated, 0.2)
    assert_moved_as(simulated, acceleration(np.zeros(6)), after, 0.2)


def test_a_push_is_measured_in_the_frame_s_axes_while_it_lasts(simulated):
    simulated.push('tip', HARD, 0.02)
    seen = []
    for _ in range(40):
        seen.append(simulated.measured_wrench('tip'))
        rotation = simulated.robot.frame_pose(simulated.q, 'tip')[:3, :3]
        if seen[-1].any():
            np.testing.assert_allclose(seen[-1][:3], rotation.T @ HARD[:3], atol=1e-12)
            np.testing.assert_allclose(seen[-1][3:], rotation.T @ HARD[3:], atol=1e-12)
        simulated.step()
    assert [bool(wrench.any()) for wrench in seen] == [True] * 20 + [False] * 20


def test_a_push_begins_at_its_start(simulated):
    simulated.push('tip', HARD, 0.02, start=0.01)
    pushed = []
    for _ in range(40):
        pushed.append(bool(simulated.external_wrench('tip').any()))
        simulated.step()
    assert pushed == [False] * 10 + [True] * 20 + [False] * 10


def test_without_a_time_a_push_lasts_until_it_is_let_go(simulated):
    simulated.push('tip', HARD)
    run(simulated, 0.1)
    np.testing.assert_array_equal(simulated.external_wrench('tip'), HARD)
    simulated.end_push()
    begin = (simulated.q, simulated.v)
    run(simulated, 0.1)
    robot, u = simulated.robot, simulated.effort()
    assert_moved_as(simulated, lambda t, q, v: robot.forward_dynamics(q, v, u, friction=True), begin, 0.1)


def test_a_push_ends_the_one_before(simulated):
    simulated.push('tip', HARD)
    simulated.step()
    simulated.push('link_1', -HARD)
    assert not simulated.external_wrench('tip').any()
    np.testing.assert_array_equal(simulated.external_wrench('link_1'), -HARD)


def test_a_push_goes_on_when_masses_change(simulated):
    simulated.push('tip', HARD)
    simulated.step()
    simulated.set_load(2.0, ())
    simulated.step()
    np.testing.assert_array_equal(simulated.external_wrench('tip'), HARD)
    assert simulated._plant._pushes.keys() == {'tip'}


@pytest.mark.parametrize(
    'act',
    [
        lambda simulated: simulated.push('tipp', HARD),
        lambda simulated: simulated.set_wall(Wall('tipp', np.zeros(3), np.ones(3))),
        lambda simulated: simulated.set_faults(Faults(nan=('tipp',))),
        lambda simulated: simulated.set_faults(Faults(dead_drivers=('tipp',))),
    ],
)
def test_unknown_names_are_refused_and_change_nothing(simulated, act):
    with pytest.raises(UnknownNameError, match='tipp'):
        act(simulated)
    assert simulated.sensors.faults == Faults()
    simulated.step()
    assert not simulated.external_wrench('tip').any()


# -- sensors -------------------------------------------------------------------------------------------


def moving(name, **overrides):
    """A simulated robot in motion."""
    simulated = simulated_robot(name, **overrides)
    torque = simulated.effort() + 0.2 * simulated.robot.effort_limits * np.cos(np.arange(simulated.robot.nv))
    simulated.receive_command(simulated.drivers.command(torque, np.zeros(simulated.robot.nv)))
    run(simulated, 0.3)
    assert np.abs(simulated.v).max() > 0.05
    return simulated


def test_without_faults_sensors_measure_the_true_state():
    simulated = moving('planar_2r')
    measured = simulated.measure()
    assert measured.time == simulated.time
    np.testing.assert_array_equal(measured.q, simulated.q)
    np.testing.assert_array_equal(measured.v, simulated.v)
    np.testing.assert_array_equal(measured.effort, simulated.effort())


def test_the_inertial_unit_turns_as_its_link():
    simulated = moving('krang')
    robot, q, v = simulated.robot, simulated.q, simulated.v
    orientation, rate = simulated.imu()
    unit = robot.config.imu
    mount = Rotation.from_euler('xyz', unit.mount_rpy)
    link = Rotation.from_matrix(robot.frame_pose(q, unit.link)[:3, :3])
    assert (Rotation.from_quat(orientation).inv() * link * mount).magnitude() < 1e-12
    spin = mount.inv().apply(robot.jacobian(q, unit.link, 'local')[3:] @ v)
    np.testing.assert_allclose(rate, spin, atol=1e-12)


@pytest.mark.parametrize('gravity', [(0.0, 0.0, -9.81), (2.0, -4.0, -8.5)])
def test_the_controller_reads_the_joint_back_from_the_inertial_unit(gravity):
    simulated = moving('krang', gravity=gravity)
    sample = ImuSource(simulated.robot).samples(ImuSample(*simulated.imu(), 1.0, 1.0))
    row = simulated.robot.joint_names.index(sample.names[0])
    assert sample.position == pytest.approx([simulated.q[row]], abs=1e-12)
    assert sample.velocity == pytest.approx([simulated.v[row]], abs=1e-12)


@pytest.mark.parametrize('engine', ['pinocchio', 'mujoco'])
def test_the_controller_reads_the_base_back_from_odometry(engine):
    simulated = moving('otbot', engine=engine) if engine == 'pinocchio' else simulated_robot('otbot', engine)
    simulated.receive_command([8.0, 5.0, 1.0])
    run(simulated, 0.3)
    robot, q, v = simulated.robot, simulated.q, simulated.v
    place, orientation, twist = simulated.odometry()
    link = robot.config.odom.heading_of
    np.testing.assert_allclose(place, robot.frame_pose(q, link)[:3, 3])
    np.testing.assert_allclose(twist, robot.jacobian(q, link, 'local') @ v, atol=1e-12)
    sample = OdomSample(place[0], place[1], orientation, twist[:3], twist[3:], 1.0, 1.0)
    seen = OdomSource(robot).samples(sample, q, v)
    rows = [robot.joint_names.index(name) for name in seen.names]
    np.testing.assert_allclose(seen.position, q[rows], atol=1e-12)
    np.testing.assert_allclose(seen.velocity, v[rows], atol=1e-12)


def test_sensors_that_a_robot_does_not_have_are_named(simulated):
    with pytest.raises(ConfigError, match='no `imu`'):
        simulated.imu()
    with pytest.raises(ConfigError, match='no `odom`'):
        simulated.odometry()


# -- a wall --------------------------------------------------------------------------------------------


ARM = kd.load_robot('planar_2r')
REST = np.zeros(2)
NORMAL = np.array([-1.0, 0.0, 0.0])


def tip(q):
    return ARM.frame_pose(q, 'tip')[:3, 3]


def wall_at(depth, normal=NORMAL, **numbers):
    """A wall in which the tip is so deep [m] at home; level with the tip, it does not matter where."""
    unit = normal / np.linalg.norm(normal)
    return Wall('tip', tip(ARM.home) + depth * unit + [0, 3.0, 0], normal, **numbers)


def test_it_is_a_spring():
    for depth in (0.001, 0.01):
        np.testing.assert_allclose(
            wall_at(depth).wrench(ARM, ARM.home, REST), [-2e4 * depth, 0, 0, 0, 0, 0], atol=1e-9
        )


def test_out_of_reach_it_does_nothing():
    assert not wall_at(-1e-6).wrench(ARM, ARM.home, 10 * np.ones(2)).any()


def test_only_the_direction_of_the_normal_counts():
    normal = np.array([-2.0, 0.0, 1.0])
    np.testing.assert_allclose(
        wall_at(0.01, normal).wrench(ARM, ARM.home, REST)[:3], 200 * normal / np.sqrt(5)
    )


@pytest.mark.parametrize('sign', [1, -1])
def test_it_brakes_who_comes_and_never_pulls_who_goes(sign):
    v = sign * np.array([0.3, 0.2])
    step = 1e-6
    speed = (tip(ARM.home + step * v) - tip(ARM.home - step * v))[0] / (2 * step)
    for damping in (300.0, 1e6):
        force = wall_at(0.001, damping=damping).wrench(ARM, ARM.home, v)[0]
        assert force == pytest.approx(-max(0.0, 20.0 + damping * speed), rel=1e-6)
        assert force <= 0


def test_a_wall_without_a_direction_is_refused():
    with pytest.raises(InputError, match='normal of a wall is 0'):
        Wall('tip', np.zeros(3), np.zeros(3))


def test_an_arm_that_leans_on_it_comes_to_rest_with_its_force():
    """A constant force of 15 N at the tip, stiff in the other direction, damped: the wall gives 15 N back."""
    simulated = SimulatedRobot(ARM, Drivers(ARM, ARM.joint_names), 'pinocchio')
    simulated.set_wall(wall_at(-0.002))
    height = tip(ARM.home)[2]
    for _ in range(3000):
        q, v = simulated.q, simulated.v
        J = ARM.jacobian(q, 'tip')[:3]
        force = np.array([15.0, 0, 2000 * (height - tip(q)[2])]) - 100 * (J @ v)
        simulated.receive_command(ARM.gravity_torque(q) + J.T @ force - 2 * v)
        simulated.step()
    assert np.abs(simulated.v).max() < 1e-4
    np.testing.assert_allclose(simulated.external_wrench('tip')[:3], [-15, 0, 0], atol=0.05)


def test_a_wall_and_a_push_add_up(simulated):
    simulated.set_wall(wall_at(0.001, -NORMAL))
    simulated.push('tip', HARD)
    np.testing.assert_allclose(simulated.external_wrench('tip'), HARD + np.eye(6)[0] * 20.0, atol=1e-9)


def test_a_wall_that_is_taken_away_presses_no_more(simulated):
    simulated.set_wall(wall_at(0.01, -NORMAL))
    simulated.step()
    simulated.set_wall(None)
    begin = (simulated.q, simulated.v)
    run(simulated, 0.1)
    robot, u = simulated.robot, simulated.effort()
    assert_moved_as(simulated, lambda t, q, v: robot.forward_dynamics(q, v, u, friction=True), begin, 0.1)
