"""JointState messages against rosbags' own serialisation."""

import numpy as np
import pytest

from krang_dynamics.bags.io.joint_state_codec import TYPE, decode, encode, parse
from krang_dynamics.bags.io.storage import batched

pytest.importorskip('rosbags')
from rosbags.typesys import Stores, get_typestore

TYPES = get_typestore(Stores.ROS2_JAZZY)
NAMES = [['a'], ['abc', 'de'], ['joint_1', 'x', 'joint_33']]


def serialised(names, stamp, fields, frame, little_endian=True):
    header = TYPES.types['std_msgs/msg/Header'](TYPES.types['builtin_interfaces/msg/Time'](*stamp), frame)
    message = TYPES.types[TYPE](header, names, *fields)
    return bytes(TYPES.serialize_cdr(message, TYPE, little_endian=little_endian))


@pytest.mark.parametrize('names', NAMES)
@pytest.mark.parametrize('frame', ['', 'x', 'base', 'world'])
@pytest.mark.parametrize('has_effort', [True, False])
def test_messages_are_those_of_ros(names, frame, has_effort):
    n = len(names)
    fields = [np.arange(n) + 0.5, -np.arange(n) * 1.0, np.ones(n) if has_effort else np.zeros(0)]
    theirs = serialised(names, (5, 7), fields, frame)
    assert encode(names, 5_000_000_007, *fields, frame) == theirs
    for data in (theirs, serialised(names, (5, 7), fields, frame, little_endian=False)):
        (states,), lost = decode(batched([(3, data)]))
        assert not len(lost)
        assert states.names == tuple(names)
        assert (states.arrival[0], states.stamp[0]) == (3, 5_000_000_007)
        np.testing.assert_array_equal(states.position[0], fields[0])
        np.testing.assert_array_equal(states.velocity[0], fields[1])
        np.testing.assert_array_equal(states.effort[0], fields[2] if has_effort else np.full(n, np.nan))


def test_publishers_are_kept_apart_and_each_in_order():
    one, two = (
        (lambda k: encode(['a', 'b'], k + 1, [k, 2.0], [], [])),
        lambda k: encode(['c'], k + 1, [k], [], []),
    )
    messages = [(k, (one if k % 2 else two)(k)) for k in (3, 0, 1, 2)]
    states, _ = decode(batched(messages))
    assert {s.names: s.position[:, 0].tolist() for s in states} == {('a', 'b'): [1, 3], ('c',): [0, 2]}


def test_a_layout_that_changes_is_noticed():
    messages = [
        (0, encode(['ab', 'c'], 1, [1.0, 2.0], [], [])),
        (1, encode(['xb', 'c'], 2, [3.0, 4.0], [], [])),
    ]
    states, _ = decode(batched(messages))
    assert {s.names for s in states} == {('ab', 'c'), ('xb', 'c')}


@pytest.mark.parametrize(
    'data', [b'', b'\0\1\0\0', b'\0\7\0\0' + bytes(60), bytes(range(256)), b'\0\1' + b'\xff' * 90]
)
def test_rubbish_is_no_joint_state_and_is_counted(data):
    with pytest.raises(ValueError, match='JointState'):
        parse(data)
    good = encode(['a'], 1, [1.0], [2.0], [3.0])
    (states,), lost = decode(batched([(0, good), (1, data), (2, good)]))
    assert len(states) == 2
    assert lost.tolist() == [1]
