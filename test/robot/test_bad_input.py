"""Whatever is wrong with the input, KrangError names the value and what would have been valid."""

import re
import xml.etree.ElementTree as ET
from copy import deepcopy

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import krang_dynamics as kd

PAYLOAD = (1.0, (0.0, 0.0, 0.1), np.diag([0.01, 0.01, 0.01]))
FRAMES = {'planar_2r': 'tip', 'otbot': 'platform', 'krang': 'left_hand', 'pendubot': 'tip'}

METHODS = {
    'mass_matrix': 'q',
    'coriolis_matrix': 'q v',
    'gravity_torque': 'q',
    'friction_torque': 'v',
    'inverse_dynamics': 'q v a',
    'forward_dynamics': 'q v u',
    'motor_torque': 'q v a',
    'constraint_jacobian': 'q',
    'constraint_bias': 'q v',
    'constraint_force': 'q v u',
    'jacobian': 'q frame',
    'frame_pose': 'q frame',
    'wrench_to_torque': 'q wrenches',
    'center_of_mass': 'q',
    'kinetic_energy': 'q v',
    'potential_energy': 'q',
    'linearize': 'q v u',
    'motor_command': 'tau v',
}
VECTORS = ['q', 'v', 'a', 'u', 'tau']
VECTOR_ARGUMENTS = [
    (method, name) for method, names in METHODS.items() for name in names.split() if name in VECTORS
]

NOT_NUMBERS = {
    'none': None,
    'text': 'abc',
    'list of text': ['a', 'b', 'c', 'd', 'e', 'f'],
    'list of digits': ['1', '2', '3', '4', '5', '6'],
    'list of none': [None] * 6,
    'complex': np.full(6, 1j),
    'bool': np.ones(6, dtype=bool),
    'ragged': [[1.0], [2.0, 3.0]],
    'mapping': {'x': 0.0},
    'object': object(),
    'bytes': b'123456',
    'overflow': [10**400] * 6,
}
WRONG_SHAPES = {
    'scalar': 0.0,
    'empty': [],
    'one short': np.zeros(5),
    'one long': np.zeros(7),
    'row': np.zeros((1, 6)),
    'column': np.zeros((6, 1)),
    'cube': np.zeros((6, 1, 1)),
    'nested list': [[0.0] * 6],
}


@pytest.fixture(scope='module')
def otbot():
    return kd.load_robot('otbot')


@pytest.fixture(scope='module')
def planar():
    return kd.load_robot('planar_2r')


def arguments(robot, method, scale=0.1):
    nu = len(robot.actuated_joint_names)
    frame = FRAMES[robot.name]
    valid = {name: scale * np.arange(1.0, robot.nv + 1) for name in VECTORS} | {
        'u': scale * np.arange(1.0, nu + 1),
        'frame': frame,
        'wrenches': {frame: np.arange(1.0, 7.0)},
    }
    return {name: valid[name] for name in METHODS[method].split()}


def call(robot, method, **changed):
    values = arguments(robot, method) | changed
    return getattr(robot, method)(*values.values())


def parts(result):
    return list(result) if isinstance(result, tuple) else [result]


def refusal(function, *args, **keywords):
    with pytest.raises(kd.KrangError) as caught:
        function(*args, **keywords)
    return str(caught.value)


@pytest.mark.parametrize('bad', WRONG_SHAPES.values(), ids=WRONG_SHAPES)
@pytest.mark.parametrize(('method', 'name'), VECTOR_ARGUMENTS)
def test_wrong_shape_is_refused_with_the_right_one(otbot, method, name, bad):
    message = refusal(call, otbot, method, **{name: bad})
    assert re.search(rf'\b{name}\b', message)
    assert str(np.shape(bad)) in message
    assert ('3' if name == 'u' else '6') in message
    assert 'right_wheel, left_wheel, pivot' in message


@pytest.mark.parametrize('bad', NOT_NUMBERS.values(), ids=NOT_NUMBERS)
@pytest.mark.parametrize(('method', 'name'), VECTOR_ARGUMENTS)
def test_what_is_no_number_is_refused(otbot, method, name, bad):
    message = refusal(call, otbot, method, **{name: bad})
    assert re.search(rf'\b{name}\b', message)
    assert 'numbers' in message


@pytest.mark.parametrize('bad', [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(('method', 'name'), VECTOR_ARGUMENTS)
def test_non_finite_number_is_refused_by_its_place(otbot, method, name, bad):
    value = arguments(otbot, method)[name]
    value[1] = bad
    message = refusal(call, otbot, method, **{name: value})
    assert f'{name}[1]' in message
    assert str(bad) in message
    assert 'finite' in message


@pytest.mark.parametrize('bad', ['platfrom', 'Platform', '', None, 3, b'platform', ['platform'], 'alpha'])
@pytest.mark.parametrize('method', ['jacobian', 'frame_pose'])
def test_unknown_frame_is_refused_with_the_known_ones(otbot, method, bad):
    message = refusal(call, otbot, method, frame=bad)
    assert repr(bad) in message
    assert ', '.join(otbot.frames) in message


@pytest.mark.parametrize('bad', ['LOCAL', 'base', None])
@pytest.mark.parametrize('method', ['jacobian', 'wrench_to_torque'])
def test_unknown_reference_is_refused_with_all_valid_ones(otbot, method, bad):
    message = refusal(getattr(otbot, method), *arguments(otbot, method).values(), bad)
    assert repr(bad) in message
    assert 'reference' in message
    for valid in ('world', 'local', 'platform', 'chassis'):
        assert valid in message


def test_unknown_reference_is_refused_without_any_wrench(otbot):
    refusal(otbot.wrench_to_torque, otbot.home, {}, 'nowhere')


@pytest.mark.parametrize(
    'bad', [None, 'platform', 3, [1.0] * 6, [('platform', [0.0] * 6)], np.zeros(6), {'platform'}], ids=repr
)
def test_wrenches_that_are_no_mapping_are_refused(otbot, bad):
    assert 'wrench' in refusal(otbot.wrench_to_torque, otbot.home, bad)


@pytest.mark.parametrize(
    'bad',
    [None, 'up', 0.0, [0.0] * 3, [0.0] * 7, np.zeros((6, 1)), [0, 0, np.nan, 0, 0, 0], [1j] * 6],
    ids=repr,
)
def test_wrench_that_is_not_six_finite_numbers_is_refused_by_frame(otbot, bad):
    message = refusal(otbot.wrench_to_torque, otbot.home, {'platform': bad})
    assert 'platform' in message
    assert '6' in message or 'finite' in message


def test_wrench_at_an_unknown_frame_is_refused(otbot):
    message = refusal(otbot.wrench_to_torque, otbot.home, {'platfrom': np.zeros(6)})
    assert "'platfrom'" in message
    assert "did you mean 'platform'" in message


def test_torque_may_cover_all_joints_or_the_driven_ones_and_nothing_else(otbot):
    assert otbot.motor_command(np.ones(3), np.zeros(6)).shape == (3,)
    assert otbot.motor_command(np.ones(6), np.zeros(6)).shape == (6,)
    message = refusal(otbot.motor_command, np.ones(4), np.zeros(6))
    assert '3' in message
    assert '6' in message


def test_surplus_and_missing_arguments_are_python_errors(otbot):
    with pytest.raises(TypeError):
        otbot.mass_matrix()
    with pytest.raises(TypeError):
        otbot.mass_matrix(otbot.home, otbot.home)


# What is returned is the caller's, what is given stays the caller's.

RETURNED = {method: lambda robot, method=method: call(robot, method) for method in METHODS} | {
    'actuation_matrix': lambda robot: robot.actuation_matrix(),
    'home': lambda robot: robot.home,
    'linearize B': lambda robot: call(robot, 'linearize')[1],
    'linearize': lambda robot: call(robot, 'linearize')[0],
}
SCALARS = {'kinetic_energy', 'potential_energy'}


@pytest.mark.parametrize('name', sorted(RETURNED.keys() - SCALARS))
@pytest.mark.parametrize('robot_name', ['otbot', 'planar_2r', 'pendubot'])
def test_spoiling_a_result_spoils_nothing_later(robot_name, name):
    robot = kd.load_robot(robot_name)
    first = RETURNED[name](robot)
    expected = first.copy()
    first[...] = 77.0
    second = RETURNED[name](robot)
    assert not np.shares_memory(first, second)
    np.testing.assert_array_equal(second, expected)
    assert second.dtype == np.float64


def test_later_calls_do_not_change_earlier_results(otbot):
    results = {name: get(otbot) for name, get in RETURNED.items()}
    copies = deepcopy(results)
    for method in METHODS:
        getattr(otbot, method)(*arguments(otbot, method, scale=0.7).values())
    np.testing.assert_equal(results, copies)


@pytest.mark.parametrize('name', sorted(SCALARS))
def test_energy_is_a_float(otbot, name):
    assert type(call(otbot, name)) is float


@pytest.mark.parametrize('method', METHODS)
def test_inputs_are_neither_changed_nor_kept(otbot, method):
    values = arguments(otbot, method)
    before = deepcopy(values)
    result = getattr(otbot, method)(*values.values())
    for name, value in values.items():
        np.testing.assert_equal(value, before[name])
        for part in parts(result):
            if isinstance(value, np.ndarray):
                assert not np.shares_memory(part, value)


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def strided(array):
    return np.repeat(array, 2)[::2]


DISGUISES = {
    'list': np.ndarray.tolist,
    'tuple': tuple,
    'read-only': read_only,
    'strided': strided,
    'reversed twice': lambda array: array[::-1].copy()[::-1],
    'column of a matrix': lambda array: np.column_stack([array, array])[:, 1],
    'big endian': lambda array: array.astype('>f8'),
    'long double': lambda array: array.astype(np.longdouble),
}


@pytest.mark.parametrize('disguise', DISGUISES.values(), ids=DISGUISES)
@pytest.mark.parametrize('method', METHODS)
def test_floats_are_welcome_in_any_container(otbot, method, disguise):
    values = {
        name: disguise(value) if isinstance(value, np.ndarray) else value
        for name, value in arguments(otbot, method).items()
    }
    np.testing.assert_equal(parts(getattr(otbot, method)(*values.values())), parts(call(otbot, method)))


@pytest.mark.parametrize('kind', [list, np.array, np.int32, np.uint8, np.float32])
@pytest.mark.parametrize('method', METHODS)
def test_integers_and_single_precision_are_numbers(otbot, method, kind):
    values = arguments(otbot, method, scale=1.0)
    disguised = {
        name: kind([int(number) for number in value]) if isinstance(value, np.ndarray) else value
        for name, value in values.items()
    }
    np.testing.assert_equal(
        parts(getattr(otbot, method)(*disguised.values())), parts(getattr(otbot, method)(*values.values()))
    )


# Payload and gravity.


@pytest.mark.parametrize('bad', [-1.0, np.nan, np.inf, None, '1', [1.0], 1j, {}], ids=repr)
def test_mass_of_a_payload_is_a_finite_number_from_zero_up(planar, bad):
    assert 'mass' in refusal(planar.with_payload, 'tip', bad, *PAYLOAD[1:])


@pytest.mark.parametrize('bad', [None, 0.0, 'abc', (0, 0), (0, 0, np.nan), [[0, 0, 0]], (0, 0, 1j)], ids=repr)
def test_centre_of_mass_of_a_payload_is_three_finite_numbers(planar, bad):
    message = refusal(planar.with_payload, 'tip', 1.0, bad, PAYLOAD[2])
    assert 'com' in message
    assert '3' in message or 'finite' in message


IMPOSSIBLE_INERTIAS = {
    'none': None,
    'text': 'abc',
    'vector': np.ones(3),
    'six numbers': np.ones(6),
    'too small': np.eye(2),
    'not finite': np.diag([1.0, np.nan, 1.0]),
    'negative': -np.eye(3),
    'negative principal moment': np.array([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
    'triangle broken': np.diag([1.0, 1.0, 3.0]),
    'not symmetric': np.eye(3) + np.triu(np.full((3, 3), 0.1), 1),
}


@pytest.mark.parametrize('bad', IMPOSSIBLE_INERTIAS.values(), ids=IMPOSSIBLE_INERTIAS)
def test_inertia_that_no_body_has_is_refused(planar, bad):
    assert 'inertia' in refusal(planar.with_payload, 'tip', 1.0, (0, 0, 0), bad)


def test_payload_at_an_unknown_frame_is_refused(planar):
    message = refusal(planar.with_payload, 'tipp', *PAYLOAD)
    assert "'tipp'" in message
    assert 'world, link_1, link_2, tip' in message


def test_payload_keeps_its_own_copy_of_what_it_was_given(planar):
    com, inertia = np.array([0.0, 0.0, 0.1]), np.eye(3) * 0.01
    loaded = planar.with_payload('tip', 1.0, com, inertia)
    before = loaded.inverse_dynamics([0.1, 0.2], [1.0, 1.0], [1.0, 1.0])
    com[:], inertia[:] = 9.0, 9.0
    np.testing.assert_array_equal(loaded.inverse_dynamics([0.1, 0.2], [1.0, 1.0], [1.0, 1.0]), before)


@pytest.mark.parametrize('change', [{'mass': 1e308}, {'com': (1e200, 0, 0)}, {'inertia': np.eye(3) * 1e308}])
def test_absurd_payload_is_refused_by_name_and_gives_no_nan(planar, change):
    payload = {'mass': 1.0, 'com': (0, 0, 0), 'inertia': PAYLOAD[2]} | change
    assert next(iter(change)) in refusal(planar.with_payload, 'tip', **payload)


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


def test_a_urdf_cannot_be_told_to_be_another_urdf():
    assert 'urdf' in refusal(kd.load_robot, ARM, urdf='other.urdf')


# What load_robot is pointed at.


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


# What is wrong in a URDF.

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
LOWER_INERTIAL = ARM[
    ARM.index('<link name="lower"><inertial>') + 19 : ARM.index('</link>\n<link name="tip"/>')
]
ZERO_INERTIAL = re.sub('"[0-9.]+"', '"0"', LOWER_INERTIAL)
LIMIT = '<limit lower="-1" upper="2" effort="10" velocity="3"/>'
ELBOW_CHILD = '<child link="lower"/>'


def with_elbow(content):
    return ELBOW_CHILD, ELBOW_CHILD + content


BAD_URDFS = {
    'floating': [('"revolute"', '"floating"'), 'shoulder', 'floating'],
    'planar': [('"revolute"', '"planar"'), 'shoulder', 'planar'],
    'unknown type': [('"revolute"', '"ball"'), 'shoulder', 'ball', 'revolute, continuous, prismatic'],
    'type in capitals': [('"revolute"', '"Revolute"'), 'shoulder', 'Revolute', "'revolute'"],
    'type missing': [(' type="revolute"', ''), 'shoulder', 'type'],
    'negative mass': [('mass value="2"', 'mass value="-2"'), 'upper', '-2', 'mass'],
    'mass nan': [('mass value="2"', 'mass value="nan"'), 'upper', 'nan', 'mass'],
    'mass infinite': [('mass value="2"', 'mass value="inf"'), 'upper', 'inf', 'mass'],
    'mass in words': [('mass value="2"', 'mass value="two"'), 'upper', 'two', 'mass'],
    'mass with comma': [('mass value="2"', 'mass value="2,5"'), 'upper', '2,5', 'mass'],
    'mass without value': [('mass value="2"', 'mass'), 'upper', 'value'],
    'inertial without mass': [('<mass value="2"/>', ''), 'upper', 'mass'],
    'inertia incomplete': [('ixx="0.1" ', ''), 'upper', 'ixx'],
    'inertia nan': [('iyz="0"', 'iyz="nan"'), 'upper', 'iyz', 'nan'],
    'centre of mass nan': [('xyz="0 0 -0.5"', 'xyz="0 0 nan"'), 'upper', 'nan'],
    'centre of mass of two': [('xyz="0 0 -0.5"', 'xyz="0 -0.5"'), 'upper', '0 -0.5', '3'],
    'massless moving subtree': [(LOWER_INERTIAL, ''), 'elbow', 'mass'],
    'moving subtree of mass zero': [(LOWER_INERTIAL, ZERO_INERTIAL), 'elbow', 'mass'],
    'two links of one name': [('link name="tip"', 'link name="lower"'), 'lower', 'unique'],
    'two joints of one name': [('joint name="weld"', 'joint name="elbow"'), 'elbow', 'unique'],
    'link without name': [('<link name="tip"/>', '<link/>'), 'link', 'name'],
    'joint without name': [('joint name="elbow"', 'joint'), 'joint', 'name'],
    'ring': [('<parent link="base"/>', '<parent link="lower"/>'), 'shoulder'],
    'own parent': [('<parent link="upper"/>', '<parent link="lower"/>'), 'elbow'],
    'two parents': [
        ('</robot>', '<joint name="x" type="fixed"><parent link="base"/><child link="tip"/></joint></robot>'),
        'tip',
        'weld',
    ],
    'two roots': [('</robot>', '<link name="alone"/></robot>'), 'root', 'base', 'alone'],
    'unknown parent': [('<parent link="upper"/>', '<parent link="uper"/>'), 'uper', "'upper'"],
    'unknown child': [(ELBOW_CHILD, '<child link="lowr"/>'), 'lowr', "'lower'"],
    'parent missing': [('<parent link="upper"/>', ''), 'elbow', 'parent'],
    'child missing': [(ELBOW_CHILD, ''), 'elbow', 'child'],
    'limit missing': [(LIMIT, ''), 'shoulder', 'limit'],
    'effort missing': [('effort="10" ', ''), 'shoulder', 'effort'],
    'velocity missing': [(' velocity="3"', ''), 'shoulder', 'velocity'],
    'lower above upper': [('lower="-1"', 'lower="3"'), 'shoulder', '3.0', '2.0'],
    'limit nan': [('lower="-1"', 'lower="nan"'), 'shoulder', 'lower', 'nan'],
    'effort negative': [('effort="10"', 'effort="-10"'), 'shoulder', '-10'],
    'axis zero': [('axis xyz="0 1 0"', 'axis xyz="0 0 0"'), 'shoulder', 'axis'],
    'axis of two': [('axis xyz="0 1 0"', 'axis xyz="0 1"'), 'shoulder', 'axis', '3'],
    'axis nan': [('axis xyz="0 1 0"', 'axis xyz="0 nan 0"'), 'shoulder', 'axis', 'nan'],
    'origin nan': [('xyz="0 0 -1"', 'xyz="0 0 nan"'), 'elbow', 'nan'],
    'origin of two angles': [('xyz="0 0 -1"', 'xyz="0 0 -1" rpy="0 0"'), 'elbow', 'rpy', '3'],
    'mimic of unknown joint': [with_elbow('<mimic joint="sholder"/>'), 'elbow', 'sholder', 'shoulder'],
    'mimic of itself': [with_elbow('<mimic joint="elbow"/>'), 'elbow'],
    'mimic of a fixed joint': [with_elbow('<mimic joint="weld"/>'), 'elbow', 'weld'],
    'mimic of nothing': [with_elbow('<mimic/>'), 'elbow', 'mimic'],
    'mimic multiplier nan': [with_elbow('<mimic joint="shoulder" multiplier="nan"/>'), 'elbow', 'nan'],
    'damping negative': [('damping="0.1"', 'damping="-0.1"'), 'shoulder', '-0.1'],
    'friction nan': [('friction="0.2"', 'friction="nan"'), 'shoulder', 'nan'],
    'xacro expression': [('mass value="2"', 'mass value="${m}"'), 'xacro'],
    'xacro argument': [('joint name="elbow"', 'joint name="$(arg side)_elbow"'), 'xacro'],
    'xacro element': [
        ('<robot name="arm">', '<robot name="arm" xmlns:xacro="http://ros.org/xacro"><xacro:arm/>'),
        'xacro',
    ],
    'xacro undeclared': [('<robot name="arm">', '<robot name="arm"><xacro:arm/>'), 'xacro'],
}


@pytest.mark.parametrize('name', BAD_URDFS)
def test_broken_urdf_is_refused_with_its_fault(name):
    (old, new), *words = BAD_URDFS[name]
    assert old in ARM
    message = refusal(kd.load_robot, ARM.replace(old, new, 1))
    for word in words:
        assert word in message


def test_broken_urdf_file_is_refused_by_its_name(tmp_path):
    path = tmp_path / 'arm.urdf'
    path.write_text(ARM.replace('mass value="2"', 'mass value="-2"'))
    assert str(path) in refusal(kd.load_robot, path)


def test_joints_that_mimic_each_other_are_refused_as_such():
    circle = ARM.replace(*with_elbow('<mimic joint="shoulder"/>'))
    circle = circle.replace('<child link="upper"/>', '<child link="upper"/><mimic joint="elbow"/>')
    message = refusal(kd.load_robot, circle)
    assert 'mimic' in message
    assert 'elbow' in message


@pytest.mark.parametrize(
    ('text', 'word'),
    [
        ('<robot', 'XML'),
        ('<robot name="a">', 'XML'),
        (ARM + 'more', 'XML'),
        (ARM.replace('base', 'b\x00se'), 'XML'),
        (ARM.replace('tip', 't\ud800p'), 'XML'),
        (ARM.replace('tip', 't&p'), 'XML'),
        ('<html><body/></html>', 'robot'),
        ('<sdf version="1.7"><model name="a"/></sdf>', 'robot'),
        ('<robot name="a"/>', 'link'),
        ('<robot name="a"><link name="b"/></robot>', 'joint'),
    ],
    ids=lambda value: ascii(value[:25]),
)
def test_text_that_is_no_urdf_is_refused(text, word):
    assert word in refusal(kd.load_robot, text)


@pytest.mark.parametrize('content', [b'', b'\xff\xfe\x00abc\x80', b'\x00' * 100, b'hello', b'PK\x03\x04'])
@pytest.mark.parametrize('suffix', ['urdf', 'yaml', 'xml', 'txt'])
def test_file_of_rubbish_is_refused_by_its_name(tmp_path, content, suffix):
    path = tmp_path / f'rubbish.{suffix}'
    path.write_bytes(content)
    assert str(path) in refusal(kd.load_robot, path)


# What is wrong in a robot file.

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
    'unknown stop policy': [
        ('policy: lower', 'policy: drop'),
        'stop.policy',
        'drop',
        "'hold', 'lower', 'zero'",
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
REQUIRED = ['name', 'urdf', 'joints', 'home', 'stop', 'end_effectors', 'actuators']


@pytest.fixture
def robot_file(tmp_path):
    (tmp_path / 'arm.urdf').write_text(ARM)

    def write(text):
        path = tmp_path / 'mine.yaml'
        path.write_text(text)
        return path

    return write


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
        ('stop', {'policy': 'drop'}),
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


# Random rubbish: it loads, or KrangError says why not, and nothing else ever happens.

RANDOM = settings(
    max_examples=300,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def outcome(function, *args, **keywords):
    """What comes back, or why it does not."""
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


@RANDOM
@given(st.text(max_size=300))
@example('<')
@example('<robot>\U0010ffff</robot>')
def test_random_text_loads_or_is_refused(text):
    load_or_refuse(text)


@RANDOM
@given(st.binary(max_size=200), st.sampled_from(['urdf', 'yaml', 'xml']))
@example(b'%YAML 9.9\n---\n', 'yaml')
@example(b'&a [*a]', 'yaml')
@example(b'? ? ? a', 'yaml')
def test_random_file_loads_or_is_refused(tmp_path, content, suffix):
    path = tmp_path / f'random.{suffix}'
    path.write_bytes(content)
    load_or_refuse(path)


URDF_VALUES = ['', '0 0 0', '1 2', '0 1 0', '\u0661']
URDF_VALUES += (
    '0 -1 1e30 nan x é 1_0 0x1 base upper lower tip shoulder elbow weld fixed prismatic floating'.split()
)
URDF_ATTRIBUTES = 'name type link xyz rpy value ixx lower joint multiplier extra'.split()
URDF_TAGS = 'link joint inertial mass inertia origin axis limit mimic dynamics x'.split()
DEEDS = ['delete', 'duplicate', 'move', 'rename', 'unset', 'set', 'swap']


def mutate_xml(draw, root):
    parents = [(parent, child) for parent in root.iter() for child in parent]
    if not parents:
        return
    parent, child = draw(st.sampled_from(parents))
    deed = draw(st.sampled_from(DEEDS))
    if deed == 'delete':
        parent.remove(child)
    elif deed == 'duplicate':
        parent.append(deepcopy(child))
    elif deed == 'move':
        draw(st.sampled_from(parents))[0].append(deepcopy(child))
    elif deed == 'rename':
        child.tag = draw(st.sampled_from(URDF_TAGS))
    elif deed == 'unset' and child.attrib:
        del child.attrib[draw(st.sampled_from(sorted(child.attrib)))]
    elif deed == 'swap':
        child.text = draw(st.sampled_from(URDF_VALUES))
    else:
        known = sorted(child.attrib) or URDF_ATTRIBUTES
        child.set(draw(st.sampled_from(known + URDF_ATTRIBUTES)), draw(st.sampled_from(URDF_VALUES)))


@st.composite
def mutated_urdfs(draw):
    root = ET.fromstring(ARM)
    for _ in range(draw(st.integers(1, 4))):
        mutate_xml(draw, root)
    return ET.tostring(root, encoding='unicode')


@settings(RANDOM, max_examples=600)
@given(mutated_urdfs())
def test_mutated_urdf_loads_or_is_refused(text):
    load_or_refuse(text)


@RANDOM
@given(st.data())
def test_cut_and_spliced_urdf_loads_or_is_refused(data):
    start, stop = sorted(data.draw(st.tuples(*[st.integers(0, len(ARM))] * 2)))
    patch = data.draw(st.text(alphabet='<>/="&; \n0aé', max_size=4))
    load_or_refuse(ARM[:start] + patch + ARM[stop:] if stop - start < 80 else ARM[:stop] + patch)


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


@settings(RANDOM, max_examples=400)
@given(mutated_robot_files())
def test_mutated_robot_file_loads_or_is_refused(robot_file, text):
    load_or_refuse(robot_file(text))


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


@RANDOM
@given(ANYTHING)
def test_random_object_is_a_position_or_is_refused(planar, q):
    torque, reason = outcome(planar.gravity_torque, q)
    if torque is None:
        assert re.search(r'\bq\b', reason)
        return
    assert np.isfinite(torque).all()
    assert np.shape(q) == (2,)


@RANDOM
@given(ANYTHING)
def test_random_object_is_a_payload_or_is_refused(planar, value):
    for change in ({'mass': value}, {'com': value}, {'inertia': value}, {'frame': value}):
        payload = {'frame': 'tip', 'mass': 1.0, 'com': (0, 0, 0), 'inertia': PAYLOAD[2]} | change
        robot, reason = outcome(planar.with_payload, **payload)
        assert robot or next(iter(change)) in reason


@RANDOM
@given(
    st.sampled_from(['gravity', 'home', 'joints', 'friction', 'stop', 'rolling', 'actuators', 'imu']),
    ANYTHING,
)
def test_random_override_is_valid_or_is_refused(keyword, value):
    robot, reason = outcome(kd.load_robot, 'planar_2r', **{keyword: value})
    assert robot or keyword in reason
