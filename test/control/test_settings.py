"""Settings: values of the parameters by field and by name, frames, changes, and equality."""

import numpy as np
import pytest
from harness import robot_named

from krang_dynamics.control.guard import GuardSettings
from krang_dynamics.control.settings import Settings
from krang_dynamics.errors import InputError

PLANAR = robot_named('planar_2r')
# A value of every parameter that is not live.
FIXED = {
    'robot': 'krang',
    'robot_description': 'topic',
    'terms': ('gravity', 'damping'),
    'command_joints': ('joint_2', 'joint_1'),
    'command_unit': 'current',
    'wheels_locked': True,
    'auto_enable': True,
    'hardware_compensates_gravity': True,
    'stop.policy': 'hold',
    'stop.time': 1.0,
    'stop.limit': 30.0,
    'stop.blind_time': 1.0,
    'stop.rate': 3.0,
    'deadman.required': True,
    'emergency_stop.required': True,
    'missing_velocity': 'zero',
    'wrench.tip.convention': 'applied_by_robot',
}
# A value of every live parameter.
LIVE = {
    'ramp_time': 0.7,
    'limits.effort': [20.0, 10.0],
    'limits.effort_rate': 5.0,
    'limits.velocity': 2.0,
    'limits.position_margin': 0.1,
    'limits.following_error': 0.2,
    'limits.state_rate': 60.0,
    'friction.scale': 0.5,
    'state_timeout': 0.2,
    'reference_timeout': 0.3,
    'stream.velocity': [1.0, 2.0],
    'stream.acceleration': 4.0,
    'stream.jerk': 40.0,
    'cartesian.tip.stiffness': [400.0, 400.0, 400.0, 50.0, 50.0, 50.0],
    'cartesian.tip.damping_ratio': 0.7,
    'cartesian.tip.axes': 'tip',
    'cartesian.tip.max_force': 40.0,
    'cartesian.tip.max_moment': 5.0,
    'guide.damping': 3.0,
    'limits.self_distance': 0.02,
    'estimate_payload.frame': 'tip',
    'estimate_payload.tare': True,
    'nullspace.stiffness': 20.0,
    'nullspace.damping_ratio': 0.5,
    'nullspace.posture': [0.1, 0.2],
    'deadman.timeout': 0.6,
    'gravity': [0.0, 0.0, -5.0],
    'payload.tip.mass': 1.0,
    'payload.tip.com': [0.0, 0.0, 0.1],
    'payload.tip.inertia': [0.1, 0.1, 0.1],
    'damping': [2.0, 1.0],
    'gains.bandwidth': 12.5,
    'gains.damping_ratio': 0.7,
    'gains.kp': 3.0,
    'gains.kd': [3.0, 4.0],
    'observer.gain': 9.0,
    'observer.contact': 1.0,
    'observer.collision': 9.0,
    'observer.reaction': 'none',
    'wrench.tip.max_force': 30.0,
    'wrench.tip.max_moment': 2.0,
    'wrench_timeout': 0.4,
}
OTHER = {**FIXED, **LIVE}


def fields(settings):
    """The fields as a user reads them."""
    return {name: getattr(settings, name.replace('.', '_')) for name in settings.values}


# -- values --------------------------------------------------------------------------------------------


def test_every_row_of_the_table_has_a_case_here():
    rows = Settings.parameters()
    frames = {name.replace('<frame>', 'tip') for name in rows}
    assert frames == set(OTHER)
    assert {name for name in frames if rows[name.replace('.tip.', '.<frame>.')].live} == set(LIVE)


def test_defaults_are_those_of_the_table():
    rows = Settings.parameters()
    assert Settings().values == {name: row.default for name, row in rows.items() if '<frame>' not in name}
    assert fields(Settings()) == Settings().values


@pytest.mark.parametrize('name', OTHER)
def test_a_value_is_given_by_field_or_by_name_and_changes_no_other(name):
    usual, expected = Settings().values, OTHER[name]
    for key in (name, name.replace('.', '_')):
        settings = Settings(**{key: expected})
        assert settings.values == {**usual, name: expected}
        assert fields(settings) == settings.values


def test_a_value_that_is_given_by_field_and_by_name_is_refused():
    with pytest.raises(InputError, match=r'gains\.bandwidth and gains_bandwidth are the same parameter'):
        Settings(**{'gains.bandwidth': 5.0, 'gains_bandwidth': 20.0})


@pytest.mark.parametrize(
    ('key', 'word'),
    [
        ('bandwith', 'bandwith'),
        ('gains.bandwith', "did you mean 'gains.bandwidth'"),
        ('limits_stop_rate', 'limits_stop_rate'),
        ('payload.mass', 'payload.mass'),
        ('payload.<frame>.volume', 'payload'),
    ],
)
def test_an_unknown_name_is_refused(key, word):
    with pytest.raises(InputError, match='there is no parameter') as refusal:
        Settings(**{key: 1.0})
    assert word in str(refusal.value)


@pytest.mark.parametrize(
    ('name', 'value', 'word'),
    [
        ('ramp_time', 'soon', 'one number'),
        ('ramp_time', -1.0, 'within 0 .. 60'),
        ('terms', 3, 'a list of names'),
        ('auto_enable', 1, 'true or false'),
        ('stop.policy', 'panic', 'one of hold, lower, zero'),
        ('command_unit', 'horse', 'one of'),
        ('payload.tip.mass', -1.0, 'within'),
        ('limits.effort', [1.0, np.nan], 'within'),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_by_name(name, value, word):
    with pytest.raises(InputError) as refusal:
        Settings(**{name: value})
    assert str(refusal.value).startswith(f'{name} is ')
    assert word in str(refusal.value)


def test_settings_from_values_by_name_leave_out_what_is_no_parameter():
    values = {**OTHER, 'use_sim_time': True, 'executor': 'static', 'payload.mass': 3.0}
    assert Settings.of(values) == Settings(**OTHER)


def test_settings_of_a_guard_have_the_parameters_that_it_shares_and_its_own():
    guard = GuardSettings.of({**OTHER, 'silence': 0.02})
    assert guard.silence == 0.02
    assert guard.stop_policy == 'hold'
    assert guard.frames('payload')['tip']['mass'] == 1.0
    assert not {'terms', 'gains.kp', 'ramp_time'} & set(guard.values)
    assert GuardSettings().silence == 0.045
    with pytest.raises(InputError, match='terms'):
        GuardSettings(terms=('gravity',))
    with pytest.raises(InputError, match='silence'):
        Settings(silence=0.02)


# -- per joint and per frame ---------------------------------------------------------------------------


def test_one_number_is_for_all_joints_and_a_list_has_one_for_each():
    krang = robot_named('krang')
    np.testing.assert_array_equal(Settings(damping=3).per_joint('damping', krang), np.full(17, 3.0))
    per_joint = Settings(damping=range(17)).per_joint('damping', krang)
    np.testing.assert_array_equal(per_joint, np.arange(17.0))


@pytest.mark.parametrize('value', [[1.0, 2.0, 3.0], [1.0], []])
def test_a_list_of_wrong_length_is_refused_with_the_names_of_the_joints(value):
    with pytest.raises(InputError, match=r'damping has \d numbers.*joint_1, joint_2'):
        Settings(damping=value).per_joint('damping', PLANAR)


def test_a_robot_of_one_joint_takes_a_number_or_a_list_of_one():
    pole = robot_named(
        '<robot name="pole"><link name="floor"/><link name="rod"><inertial><origin xyz="0 0 1"/>'
        '<mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        '<joint name="hinge" type="revolute"><parent link="floor"/><child link="rod"/><axis xyz="1 0 0"/>'
        '<limit lower="-1" upper="1" effort="9" velocity="9"/></joint></robot>'
    )
    for value in (2.0, [2.0]):
        np.testing.assert_array_equal(Settings(damping=value).per_joint('damping', pole), [2.0])


def test_values_of_frames_are_collected_by_frame():
    settings = Settings(
        wrench_left_hand_convention='applied_on_robot',
        **{'wrench.right_hand.max_force': 3.0, 'payload.left_hand.mass': 2.0, 'wrench_timeout': 0.3},
    )
    assert settings.frames('wrench') == {
        'left_hand': {'convention': 'applied_on_robot'},
        'right_hand': {'max_force': 3.0},
    }
    assert settings.frames('payload') == {'left_hand': {'mass': 2.0}}
    assert Settings().frames('payload') == {}


# -- changes -------------------------------------------------------------------------------------------


def test_replace_makes_other_settings_and_leaves_the_old_ones():
    old = Settings(ramp_time=0.5, damping=2.0, payload_tip_mass=1.0)
    new = old.replace(damping=3.0, **{'payload.tip.mass': 4.0})
    assert (new.ramp_time, new.damping, new.payload_tip_mass) == (0.5, 3.0, 4.0)
    assert (old.damping, old.payload_tip_mass) == (2.0, 1.0)
    assert old.replace() == old
    with pytest.raises(InputError, match='there is no parameter'):
        old.replace(courage=1.0)


def test_values_that_are_handed_out_or_in_do_not_change_the_settings():
    mine = np.array([1.0, 2.0])
    settings = Settings(damping=mine)
    mine[:] = 9.0
    settings.values['damping'] = None
    assert settings.damping == settings.values['damping'] == [1.0, 2.0]


def test_equal_values_are_equal_settings():
    assert Settings(damping=[1.0, 2.0]) == Settings(damping=np.array([1.0, 2.0]))
    assert Settings(damping=1.0) != Settings(damping=2.0)
    assert Settings() != GuardSettings()
    assert Settings() != 'settings'


def test_the_text_shows_what_differs_from_the_defaults():
    assert repr(Settings(ramp_time=0.5, stop_policy='hold')) == "Settings(ramp_time=0.5, stop_policy='hold')"
    assert repr(GuardSettings()) == 'GuardSettings()'


@pytest.mark.parametrize('name', LIVE)
def test_a_live_parameter_may_change(name):
    Settings().check_change(Settings(**{name: LIVE[name]}))
    Settings(**{name: LIVE[name]}).check_change(Settings())


@pytest.mark.parametrize('name', FIXED)
def test_a_parameter_that_is_not_live_cannot_change(name):
    changed = Settings(**{name: FIXED[name]})
    changed.check_change(Settings(**{name: FIXED[name]}, ramp_time=0.3))
    for old, new in ((Settings(), changed), (changed, Settings())):
        with pytest.raises(InputError, match=f'{name} cannot change'):
            old.check_change(new)
