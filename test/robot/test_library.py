"""Robots are found by name, by robot file and by URDF, and overridden by keyword."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from robot.bad_input import ANYTHING, ARM, RANDOM, ROBOT_FILE, campaign, load_or_refuse, outcome, refusal
from robot.urdf_text import BALL, BOB, EXACT, dynamics, joint, link, mimic, pendulum, urdf

import krang_dynamics as kd
from krang_dynamics.robot import library
from krang_dynamics.robot.sanity_report import report

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


def test_damping_and_friction_of_the_urdf_oppose_motion():
    text = pendulum('revolute', dynamics(0.3, 0.2))
    robot = kd.load_robot(text)
    np.testing.assert_allclose(robot.friction_torque([2.0]), [0.8], **EXACT)
    np.testing.assert_allclose(robot.friction_torque([-2.0]), [-0.8], **EXACT)
    np.testing.assert_allclose(robot.inverse_dynamics([0.0], [2.0], [0.0], friction=True), [0.8], **EXACT)
    assert kd.load_robot(text, friction={}).friction_torque([2.0]) == 0.0


# -- refusals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    'bad', [None, 9.81, 'down', (0, 0), (0, 0, np.nan), (0, 0, 0, 0), [[0, 0, 1]], (0, 0, '1')], ids=repr
)
@pytest.mark.parametrize('robot', ['planar_2r', 'krang'])
def test_gravity_is_three_finite_numbers(robot, bad):
    message = refusal(kd.load_robot, robot, gravity=bad)
    assert 'gravity' in message
    assert '3' in message or 'finite' in message


@pytest.mark.parametrize('bad', [None, 'no', 1, 0.0, []])
def test_rotor_inertia_is_true_or_false(bad):
    assert 'true or false' in refusal(kd.load_robot, 'krang', rotor_inertia=bad)


@pytest.mark.parametrize('keyword', ['gravty', 'rotor_inertias', 'friction_sign'])
@pytest.mark.parametrize('robot', ['krang', 'plain'])
def test_unknown_keyword_is_refused_with_the_known_ones(keyword, robot):
    message = refusal(kd.load_robot, ARM if robot == 'plain' else robot, **{keyword: 1})
    assert keyword in message
    assert 'gravity' in message
    assert 'rotor_inertia' in message


def test_a_urdf_takes_no_other_urdf():
    assert 'urdf' in refusal(kd.load_robot, ARM, urdf='other.urdf')


@pytest.mark.parametrize('bad', [None, 3, 1.5, b'krang', [], ['krang'], {}, object])
def test_robot_is_a_name_a_path_or_a_text(bad):
    assert repr(bad) in refusal(kd.load_robot, bad)


@pytest.mark.parametrize(
    ('misspelt', 'right'),
    [
        ('krnag', 'krang'),
        ('Otbot', 'otbot'),
        ('pendubot_station7', 'pendubot_station_7'),
        ('planar', 'planar_2r'),
    ],
)
def test_misspelt_robot_is_refused_with_a_suggestion(misspelt, right):
    message = refusal(kd.load_robot, misspelt)
    assert repr(misspelt) in message
    assert f"did you mean '{right}'" in message
    assert ', '.join(kd.robots()) in message


@pytest.mark.parametrize('name', ['nowhere.urdf', 'nowhere.yaml', 'sub/nowhere.urdf'])
@pytest.mark.parametrize('kind', [str, lambda path: path], ids=['text', 'Path'])
def test_missing_file_is_refused_by_name(tmp_path, name, kind):
    assert str(tmp_path / name) in refusal(kd.load_robot, kind(tmp_path / name))


def test_folder_is_refused_as_a_folder(tmp_path):
    message = refusal(kd.load_robot, tmp_path)
    assert str(tmp_path) in message
    assert 'no such file' not in message


@pytest.mark.parametrize(
    'text',
    ['', ' ', '\n', '\x00', '.', '/', '~', 'a' * 5000, 'a/' * 5000, 'name: mine\n' * 200, 'a\udc80.urdf'],
    ids=lambda text: ascii(text[:20]),
)
def test_text_that_names_nothing_is_refused(text):
    refusal(kd.load_robot, text)


@campaign(st.text(max_size=300))
def test_random_text_loads_or_is_refused(text):
    load_or_refuse(text)


@pytest.mark.parametrize('count', [50, pytest.param(300, marks=pytest.mark.long)])
def test_random_file_loads_or_is_refused(tmp_path, count):
    @settings(RANDOM, max_examples=count)
    @given(st.binary(max_size=200), st.sampled_from(['urdf', 'yaml', 'xml']))
    @example(b'%YAML 9.9\n---\n', 'yaml')
    @example(b'&a [*a]', 'yaml')
    @example(b'? ? ? a', 'yaml')
    def check(content, suffix):
        path = tmp_path / f'random.{suffix}'
        path.write_bytes(content)
        load_or_refuse(path)

    check()


@campaign(
    st.sampled_from(['gravity', 'home', 'joints', 'friction', 'stop', 'rolling', 'actuators', 'imu']),
    ANYTHING,
)
def test_random_override_is_valid_or_is_refused(keyword, value):
    robot, reason = outcome(kd.load_robot, 'planar_2r', **{keyword: value})
    assert robot or keyword in reason


def test_a_shipped_robot_is_two_data_files(tmp_path, monkeypatch):
    (tmp_path / 'config' / 'robots').mkdir(parents=True)
    robot_file = ROBOT_FILE.replace('arm.urdf', '../../urdf/arm.urdf')
    (tmp_path / 'config' / 'robots' / 'mine.yaml').write_text(robot_file)
    (tmp_path / 'urdf').mkdir()
    (tmp_path / 'urdf' / 'arm.urdf').write_text(ARM)
    monkeypatch.setattr(library, 'share', lambda: tmp_path)
    assert kd.robots() == ['mine']
    robot = kd.load_robot('mine')
    assert report(robot).startswith('mine: an arm')


# -- defaults and locked joints -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ('limits', 'home'),
    [
        ('lower="0" upper="2"', 0.1),
        ('lower="-2" upper="0"', -0.1),
        ('lower="0" upper="0.04"', 0.004),
        ('lower="-1" upper="1"', 0.0),
        ('lower="0.5" upper="0.5"', 0.5),
    ],
)
def test_default_home_is_inside_the_limits_by_a_margin(limits, home):
    robot = kd.load_robot(pendulum().replace('lower="-10" upper="10"', limits))
    np.testing.assert_allclose(robot.home, [home], **EXACT)
    assert robot.lower[0] <= robot.home[0] <= robot.upper[0]


def test_a_home_at_a_limit_tolerates_round_off():
    assert kd.load_robot(ARM, home={'shoulder': 2.000004, 'elbow': 0.0}).home[0] == 2.000004
    assert 'outside' in refusal(kd.load_robot, ARM, home={'shoulder': 2.0001, 'elbow': 0.0})


def test_without_actuators_every_driven_joint_has_one_driver(tmp_path):
    (tmp_path / 'arm.urdf').write_text(ARM)
    (tmp_path / 'mine.yaml').write_text(ROBOT_FILE.partition('actuators:')[0])
    robot = kd.load_robot(tmp_path / 'mine.yaml')
    assert [(a.name, a.joint, a.sign, a.share) for a in robot.config.actuators] == [
        ('shoulder', 'shoulder', 1, 1.0)
    ]


@pytest.mark.parametrize('kind', ['revolute', 'continuous', 'prismatic'])
def test_a_locked_joint_is_part_of_the_link_that_carries_it(kind, rng):
    text = urdf(
        link('base'), link('a', BALL), link('b', BOB), link('c', BALL), link('d', BOB),
        joint('lead', kind, 'a', 'b', xyz=(0.1, 0.2, 0.3), rpy=(0.3, -0.4, 0.5), axis=(0.6, 0, 0.8)),
        joint('follow', 'revolute', 'b', 'c', mimic('lead', -0.5, 0.2), axis=(0, 1, 0), rpy=(0.1, 0.2, 0.3)),
        joint('first', 'revolute', 'base', 'a', axis=(0, 1, 0)),
        joint('last', 'revolute', 'c', 'd', axis=(1, 0, 0), xyz=(0, 0.4, 0)),
    )  # fmt: skip
    free, locked = kd.load_robot(text), kd.load_robot(text, locked={'lead': 0.7})
    assert locked.joint_names == ('first', 'last')
    kept = [free.joint_names.index(name) for name in locked.joint_names]
    full = np.zeros((3, free.nv))
    full[:, kept] = state = rng.uniform(-1, 1, (3, 2))
    full[0, free.joint_names.index('lead')] = 0.7
    np.testing.assert_allclose(locked.inverse_dynamics(*state), free.inverse_dynamics(*full)[kept], **EXACT)
    np.testing.assert_allclose(locked.frame_pose(state[0], 'd'), free.frame_pose(full[0], 'd'), **EXACT)


def test_entries_on_a_locked_joint_are_dropped(tmp_path):
    path = tmp_path / 'mine.yaml'
    path.write_text('extends: anthropomorphic\nlocked: {joint_5: 0.2, joint_6: 0.4}\n')
    robot, whole = kd.load_robot(path), kd.load_robot('anthropomorphic')
    assert robot.joint_names == whole.joint_names[:4]
    np.testing.assert_allclose(
        robot.gravity_torque(robot.home), whole.gravity_torque(whole.home)[:4], **EXACT
    )


@pytest.mark.parametrize(
    ('locked', 'words'),
    [
        ({'sholder': 0}, "did you mean 'shoulder'"),
        ({'weld': 0}, "'weld' is not a joint that can be locked"),
        ({'shoulder': 3}, 'locked.shoulder is 3.0, outside its limits -1.0 .. 2.0'),
        ({'shoulder': 'home'}, 'locked.shoulder is str'),
        ({'shoulder': 0, 'elbow': 0}, 'no joint that moves'),
    ],
)
def test_a_wrong_lock_is_refused_by_name(locked, words):
    assert words in refusal(kd.load_robot, ARM, locked=locked)


def test_a_robot_file_extends_a_urdf(tmp_path):
    urdf = kd.load_robot('planar_2r').urdf
    (tmp_path / 'arm.urdf').write_bytes(urdf.text)
    (tmp_path / 'mine.yaml').write_text('extends: arm.urdf\ngravity: [0, 0, -1.6]\n')
    mine = kd.load_robot(tmp_path / 'mine.yaml')
    assert mine.name == urdf.name
    bare = kd.load_robot(tmp_path / 'arm.urdf', gravity=(0, 0, -1.6))
    np.testing.assert_array_equal(mine.gravity_torque(mine.home), bare.gravity_torque(bare.home))


def test_a_robot_file_extends_any_other(tmp_path):
    (tmp_path / 'sub').mkdir()
    (tmp_path / 'base.yaml').write_text('extends: planar_2r\nname: base\ngravity: [0, 0, -1.6]\n')
    (tmp_path / 'sub' / 'mine.yaml').write_text('extends: ../base.yaml\nname: mine\n')
    robot = kd.load_robot(tmp_path / 'sub' / 'mine.yaml')
    assert (robot.name, robot.config.gravity, robot.nv) == ('mine', (0, 0, -1.6), 2)
    (tmp_path / 'base.yaml').write_text('extends: sub/mine.yaml\n')
    with pytest.raises(kd.KrangError, match='extends this file'):
        kd.load_robot(tmp_path / 'sub' / 'mine.yaml')
    (tmp_path / 'base.yaml').write_text('extends: planar2r\n')
    with pytest.raises(kd.KrangError, match='planar_2r'):
        kd.load_robot(tmp_path / 'base.yaml')
