"""Robot files: every wrong entry is refused by file, key and remedy."""

from copy import deepcopy

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from robot.bad_input import RANDOM, ROBOT_FILE, load_or_refuse, refusal

import krang_dynamics as kd

BAD_FILES = {
    'misspelt key': [('gravity:', 'gravty:'), 'gravty', "'gravity'"],
    'misspelt nested key': [('policy:', 'polcy:'), 'stop.polcy', "'policy'"],
    'misspelt key of a joint': [('nominal_torque:', 'nominal_torqe:'), 'joints.shoulder.nominal_torqe'],
    'misspelt key of a motor': [('gear:', 'geer:'), 'joints.shoulder.motor.geer', "'gear'"],
    'misspelt key of an actuator': [('joint: shoulder}', 'joint: shoulder, rato: 2}'), 'rato', "'ratio'"],
    'duplicate key': [('description: an arm', 'name: other'), "'name'", 'twice'],
    'duplicate nested key': [('{shoulder: 0.5,', '{shoulder: 0.5, shoulder: 0.6,'), "'shoulder'", 'twice'],
    'unknown joint': [
        ('  elbow: {driven: false}', '  elbow: {driven: false}\n  wrist: {driven: false}'),
        'wrist',
    ],
    'forgotten joint': [('  elbow: {driven: false}\n', ''), 'joints.elbow', 'missing'],
    'name is a number': [('name: mine', 'name: 3'), 'name', '3', 'text'],
    'name is a date': [('name: mine', 'name: 2020-01-01'), 'name', 'text'],
    'name is an impossible date': [('name: mine', 'name: 2020-13-41')],
    'gravity is a number': [('[0.0, 0.0, -9.81]', '-9.81'), 'gravity', '-9.81'],
    'gravity of two': [('[0.0, 0.0, -9.81]', '[0.0, -9.81]'), 'gravity', '2', '3'],
    'gravity nan': [('[0.0, 0.0, -9.81]', '[0.0, .nan, 0.0]'), 'gravity[1]', 'nan', 'finite'],
    'driven maybe': [('driven: true', 'driven: maybe'), 'joints.shoulder.driven', 'maybe', 'true or false'],
    'driven 1': [('driven: true', 'driven: 1'), 'joints.shoulder.driven', '1', 'true or false'],
    'driven missing': [('elbow: {driven: false}', 'elbow: {}'), 'joints.elbow', 'driven'],
    'torque in words': [('torque: 5.0', 'torque: much'), 'joints.shoulder.nominal_torque', 'much'],
    'torque negative': [('torque: 5.0', 'torque: -5.0'), 'shoulder', 'nominal_torque', '-5.0'],
    'torque infinite': [('torque: 5.0', 'torque: .inf'), 'joints.shoulder.nominal_torque', 'inf', 'finite'],
    'torque above the peak': [
        ('torque: 5.0', 'torque: 50.0'),
        'joints.shoulder.nominal_torque',
        '50.0',
        '10.0',
    ],
    'gear zero': [('gear: 50.0', 'gear: 0'), 'shoulder', 'gear'],
    'rotor negative': [('rotor_inertia: 1.0e-4', 'rotor_inertia: -1.0'), 'shoulder', 'rotor_inertia', '-1.0'],
    'home outside limits': [('shoulder: 0.5', 'shoulder: 2.5'), 'home.shoulder', '2.5', '-1.0', '2.0'],
    'home incomplete': [('{shoulder: 0.5, elbow: 0.0}', '{shoulder: 0.5}'), 'home.elbow'],
    'home of an unknown joint': [('elbow: 0.0}', 'elbow: 0.0, wrist: 0.0}'), 'home', 'wrist', 'elbow'],
    'home as a list': [('{shoulder: 0.5, elbow: 0.0}', '[0.5, 0.0]'), 'home', '[0.5, 0.0]', 'mapping'],
    'exact sign, smooth fit': [('sign: smooth', 'sign: exact'), 'sign', "'exact'", "'smooth'"],
    'smooth sign, exact fit': [('fitted_with: smooth', 'fitted_with: exact'), 'sign', "'exact'", "'smooth'"],
    'unknown sign': [('sign: smooth', 'sign: rough'), 'friction.sign', 'rough', "'smooth', 'exact'"],
    'fit missing': [('  fitted_with: smooth\n', ''), 'fitted_with'],
    'friction negative': [('viscous: {shoulder: 0.1', 'viscous: {shoulder: -0.1'), 'shoulder', '-0.1'],
    'friction of an unknown joint': [('viscous: {shoulder', 'viscous: {sholder'), 'sholder', "'shoulder'"],
    'friction as one number': [('coulomb: {shoulder: 0.3}', 'coulomb: 0.3'), 'friction.coulomb', '0.3'],
    'shares below 1': [('joint: shoulder}', 'joint: shoulder, share: 0.7}'), 'shoulder', '0.7', '1'],
    'shares above 1': [
        ('joint: shoulder}', 'joint: shoulder}\n  - {name: motor_2, joint: shoulder, share: 0.5}'),
        'shoulder',
        '1.5',
    ],
    'share negative': [('joint: shoulder}', 'joint: shoulder, share: -1.0}'), 'share', '-1.0'],
    'actuator twice': [
        (
            'joint: shoulder}',
            'joint: shoulder, share: 0.5}\n  - {name: motor_1, joint: shoulder, share: 0.5}',
        ),
        'motor_1',
        'twice',
    ],
    'actuator of an unknown joint': [('joint: shoulder}', 'joint: sholder}'), 'sholder', 'shoulder'],
    'actuator of a passive joint': [
        ('joint: shoulder}', 'joint: shoulder}\n  - {name: motor_2, joint: elbow}'),
        'elbow',
    ],
    'actuator without joint': [('{name: motor_1, joint: shoulder}', '{name: motor_1}'), 'joint', 'missing'],
    'actuator ratio zero': [('joint: shoulder}', 'joint: shoulder, ratio: 0}'), 'ratio'],
    'actuator sign': [('joint: shoulder}', 'joint: shoulder, sign: 2}'), 'sign', '2'],
    'driven joint without actuator': [
        ('elbow: {driven: false}', 'elbow: {driven: true}'),
        'elbow',
        'actuator',
    ],
    'stop time negative': [('time: 2.0', 'time: -2.0'), 'stop', '-2.0'],
    'stop empty': [('stop: {policy: lower, time: 2.0, blind_time: 0.5}', 'stop:'), 'stop', 'policy'],
    'unknown unit': [('unit: torque', 'unit: volts'), 'command_unit', 'volts', "'voltage'"],
    'current without constant': [('unit: torque', 'unit: current'), 'torque_constant', 'current'],
    'unknown end effector': [('[tip]', '[tipp]'), 'end_effectors', 'tipp', "'tip'"],
    'end effector as text': [('[tip]', 'tip'), 'end_effectors', 'list'],
    'urdf missing on disk': [('urdf: arm.urdf', 'urdf: amr.urdf'), 'amr.urdf'],
    'wheel on an unknown link': [
        ('rolling: []', 'rolling: [{link: lowr, radius: 0.1, axle: [0, 1, 0]}]'),
        'lowr',
        "'lower'",
    ],
    'wheel without radius': [
        ('rolling: []', 'rolling: [{link: lower, axle: [0, 1, 0]}]'),
        'rolling[0].radius',
    ],
    'wheel of radius zero': [
        ('rolling: []', 'rolling: [{link: lower, radius: 0, axle: [0, 1, 0]}]'),
        'rolling[0]',
        'radius',
    ],
    'wheel without direction': [
        ('rolling: []', 'rolling: [{link: lower, radius: 0.1, axle: [0, 0, 0]}]'),
        'rolling[0]',
        'axle',
    ],
    'wheel that cannot turn': [
        ('rolling: []', 'rolling: [{link: base, radius: 0.1, axle: [0, 1, 0]}]'),
        'base',
    ],
    'unknown parent robot': [('description: an arm', 'extends: krnag'), 'extends', 'krnag', "'krang'"],
    'unknown source of state': [
        ('elbow: {driven: false}', 'elbow: {driven: false, state: gps}'),
        'gps',
        'imu',
    ],
    'not YAML': [('end_effectors: [tip]', 'end_effectors: [tip'), 'YAML'],
    'tabs': [('  sign: smooth', '\tsign: smooth'), 'YAML'],
    'python object': [('name: mine', 'name: !!python/object/apply:os.getcwd []'), 'YAML'],
    'two documents': [('rolling: []', '---'), 'YAML'],
}
REQUIRED = ['name', 'urdf', 'joints', 'home', 'stop', 'end_effectors']


def test_sound_robot_file_loads(robot_file):
    robot = kd.load_robot(robot_file(ROBOT_FILE))
    assert robot.name == 'mine'
    assert robot.actuated_joint_names == ('shoulder',)
    np.testing.assert_array_equal(robot.home, [0.5, 0.0])


@pytest.mark.parametrize('name', BAD_FILES)
def test_broken_robot_file_is_refused_by_file_key_and_remedy(robot_file, name):
    (old, new), *words = BAD_FILES[name]
    assert old in ROBOT_FILE
    message = refusal(kd.load_robot, robot_file(ROBOT_FILE.replace(old, new, 1)))
    assert 'mine.yaml' in message or 'amr.urdf' in message
    for word in words:
        assert word in message


@pytest.mark.parametrize('key', REQUIRED)
def test_missing_key_is_refused_by_name(robot_file, key):
    content = yaml.safe_load(ROBOT_FILE)
    del content[key]
    message = refusal(kd.load_robot, robot_file(yaml.safe_dump(content)))
    assert 'mine.yaml' in message
    assert f'{key} is missing' in message


@pytest.mark.parametrize('text', ['', '# nothing\n', '- a\n', 'abc', '3', 'null'])
def test_robot_file_that_is_no_mapping_is_refused(robot_file, text):
    message = refusal(kd.load_robot, robot_file(text))
    assert 'mine.yaml' in message
    assert 'mapping' in message


@pytest.mark.parametrize(
    ('keyword', 'value'),
    [
        ('home', {'shoulder': 5.0}),
        ('home', {'wrist': 0.0}),
        ('home', [0.0, 0.0]),
        ('friction', None),
        ('friction', 'none'),
        ('joints', {'wrist': {'driven': True}}),
        ('command_unit', 'volts'),
        ('end_effectors', ['tipp']),
        ('rolling', [{'link': 'lower'}]),
        ('stop', {'policy': 'lower', 'time': 0.0}),
        ('gravity', {0.0, 1.0, 2.0}),
        ('name', None),
    ],
)
def test_override_is_held_to_the_rules_of_the_file(robot_file, keyword, value):
    assert keyword in refusal(kd.load_robot, robot_file(ROBOT_FILE), **{keyword: value})


def test_overrides_are_not_modified(robot_file):
    overrides = {'home': {'shoulder': 0.1, 'elbow': 0.2}, 'gravity': np.array([0.0, 0.0, -1.0])}
    before = deepcopy(overrides)
    robot = kd.load_robot(robot_file(ROBOT_FILE), **overrides)
    np.testing.assert_equal(overrides, before)
    torque = robot.gravity_torque(robot.home)
    overrides['gravity'][:] = 0.0
    np.testing.assert_array_equal(robot.gravity_torque(robot.home), torque)


YAML_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, 1, -1, 0.5, 1e30, float('nan'), float('inf'), 10**400]),
    st.sampled_from(['', 'shoulder', 'elbow', 'tip', 'lower', 'smooth', 'exact', 'voltage', 'imu', 'krang']),
    st.sampled_from([[], {}, [0, 1, 0], ['shoulder'], {'shoulder': 1.0}, {'driven': True}, [[]], [{}]]),
)
YAML_KEYS = [
    'name',
    'joints',
    'extends',
    'imu',
    'odom',
    'rolling',
    'motor',
    'state',
    'share',
    'wrist',
    3,
    None,
]


def places(node):
    children = node.items() if isinstance(node, dict) else enumerate(node)
    for key, child in list(children):
        yield node, key
        if isinstance(child, dict | list):
            yield from places(child)


@st.composite
def mutated_robot_files(draw):
    content = yaml.safe_load(ROBOT_FILE)
    for _ in range(draw(st.integers(1, 3))):
        node, key = draw(st.sampled_from(list(places(content)) or [(content, 'name')]))
        deed = draw(st.sampled_from(['delete', 'set', 'add']))
        if deed == 'delete' and (key in node or isinstance(node, list)):
            del node[key]
        elif deed == 'add' and isinstance(node, dict):
            node[draw(st.sampled_from(YAML_KEYS))] = deepcopy(draw(YAML_VALUES))
        else:
            node[key] = deepcopy(draw(YAML_VALUES))
    return yaml.safe_dump(content, sort_keys=False)


@pytest.mark.parametrize('count', [60, pytest.param(400, marks=pytest.mark.long)])
def test_mutated_robot_file_loads_or_is_refused(robot_file, count):
    @settings(RANDOM, max_examples=count)
    @given(mutated_robot_files())
    def check(text):
        load_or_refuse(robot_file(text))

    check()
