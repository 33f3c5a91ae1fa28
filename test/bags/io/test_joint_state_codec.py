"""JointState messages as bytes, against rosbags' and rclpy's own serialization."""

import struct
import time
import tracemalloc
import warnings
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from krang_dynamics.bags.io.joint_state_codec import (
    TYPE,
    JointStateReader,
    JointStateWriter,
    decode,
    encode,
    parse,
    stamp_of,
)
from krang_dynamics.bags.io.storage import batched
from krang_dynamics.errors import InputError

with warnings.catch_warnings(), suppress(ImportError):
    warnings.simplefilter('ignore')  # the message generator's parser imports a deprecated module
    import rosidl_generator_py  # noqa: F401

pytest.importorskip('rosbags', reason='rosbags is not installed')
from rosbags.typesys import Stores, get_typestore

TYPES = get_typestore(Stores.ROS2_JAZZY)
ARRIVAL = 12.5
SOON = 0.2  # no message takes longer to read or refuse [s]
HUGE = (1 << 16, 1 << 24, 1 << 31, (1 << 32) - 1)  # counts that no message has
FIELDS = ('position', 'velocity', 'effort')

# A zero ends a string in CDR, and surrogates cannot be encoded.
WORDS = st.text(st.characters(exclude_characters='\0', exclude_categories=['Cs']), max_size=12)
DOUBLES = st.lists(st.floats(width=64), max_size=9)
STAMPS = st.tuples(st.integers(-(2**31), 2**31 - 1), st.integers(0, 2**32 - 1))
few = settings(max_examples=20, deadline=None)
many = settings(max_examples=60, deadline=None)
very_many = settings(max_examples=200, deadline=None)


def joint_state(stamp=(0, 0), frame='', names=(), position=(), velocity=(), effort=()):
    """A message of rosbags' own type."""
    header = TYPES.types['std_msgs/msg/Header'](TYPES.types['builtin_interfaces/msg/Time'](*stamp), frame)
    return TYPES.types[TYPE](header, list(names), *map(np.array, map(list, (position, velocity, effort))))


MESSAGES = st.builds(joint_state, STAMPS, WORDS, st.lists(WORDS, max_size=9), DOUBLES, DOUBLES, DOUBLES)


def serialized(message, little_endian=True):
    return bytes(TYPES.serialize_cdr(message, TYPE, little_endian=little_endian))


def assert_same(sample, message):
    """A sample has the values of the message, including NaN."""
    assert sample.names == tuple(message.name)
    for field in FIELDS:
        values = getattr(sample, field)
        np.testing.assert_array_equal(values, np.array(getattr(message, field), dtype=float))
        assert values.dtype == np.float64
    stamp = message.header.stamp
    assert sample.stamp == pytest.approx(stamp.sec + 1e-9 * stamp.nanosec, abs=1e-6)
    assert sample.arrival == ARRIVAL


def read_or_refuse(reader, data):
    """The sample, or None where it is refused; no other error is possible, and none of it takes long."""
    begin = time.thread_time()
    try:
        return reader.read(data, ARRIVAL)
    except InputError:
        return None
    finally:
        assert time.thread_time() - begin < SOON


EXAMPLE = joint_state(
    (7, 5), 'base_link', ['left_1', 'waist', 'x'], [1.0, 2.0, 3.0], [0.1, np.nan, 0.3], [4.0, 5.0, 6.0]
)
BYTES, BIG_ENDIAN = serialized(EXAMPLE), serialized(EXAMPLE, little_endian=False)


# -- reading one message at a time ---------------------------------------------------------------------


@many
@given(message=MESSAGES)
def test_a_message_of_either_byte_order_is_read_as_it_was_written(message):
    for little_endian in (True, False):
        reader = JointStateReader()
        assert_same(reader.read(serialized(message, little_endian), ARRIVAL), message)
        assert reader.stamp == (message.header.stamp.sec, message.header.stamp.nanosec)


@few
@given(messages=st.lists(st.tuples(MESSAGES, st.booleans()), min_size=2, max_size=6))
def test_one_reader_reads_any_messages_one_after_the_other(messages):
    reader = JointStateReader()
    for message, little_endian in [*messages, *messages]:
        assert_same(reader.read(serialized(message, little_endian), ARRIVAL), message)
        assert reader.stamp == (message.header.stamp.sec, message.header.stamp.nanosec)


@many
@given(message=MESSAGES)
def test_a_message_is_read_as_rclpy_reads_it(message):
    serialization = pytest.importorskip('rclpy.serialization', reason='rclpy.serialization is not installed')
    from sensor_msgs.msg import JointState

    theirs = JointState(name=message.name, **{field: getattr(message, field).tolist() for field in FIELDS})
    theirs.header.frame_id = message.header.frame_id
    theirs.header.stamp.sec, theirs.header.stamp.nanosec = (
        message.header.stamp.sec,
        message.header.stamp.nanosec,
    )
    data = serialization.serialize_message(theirs)
    assert_same(JointStateReader().read(data, ARRIVAL), serialization.deserialize_message(data, JointState))
    data = serialized(message, little_endian=False)
    if len(data) >= 60:  # rclpy refuses shorter ones
        theirs = serialization.deserialize_message(data, JointState)
        assert_same(JointStateReader().read(data, ARRIVAL), theirs)


@pytest.mark.parametrize('length', range(10))
@pytest.mark.parametrize('names', [[], ['a'], ['ab', 'abc'], ['abcd', '', 'µ'], ['x' * 300]])
def test_alignment_holds_whatever_the_length_of_frame_and_names(length, names):
    message = joint_state((1, 2), 'f' * length, names, [1.5] * len(names), [], [2.5] * len(names))
    assert_same(JointStateReader().read(serialized(message), ARRIVAL), message)


def test_names_that_repeat_are_the_same_object():
    """JointBuffer compares them by identity first."""
    reader = JointStateReader()
    moved = serialized(joint_state((8, 0), 'other_frame', EXAMPLE.name, [1.0, 2.0, 3.0]))
    first, second, third = (reader.read(data, ARRIVAL) for data in (BYTES, BYTES, moved))
    assert first.names is second.names is third.names


def test_names_with_the_same_beginning_are_distinguished():
    reader = JointStateReader()
    for names in (['a', 'b'], ['a'], ['a', 'b', 'c'], ['a', 'bb'], [], ['a', 'b'], ['a', 'c'], ['c', 'b']):
        assert reader.read(serialized(joint_state(names=names)), ARRIVAL).names == tuple(names)


def test_a_sample_does_not_change_when_the_next_message_is_read():
    reader = JointStateReader()
    sample = reader.read(BYTES, ARRIVAL)
    reader.read(serialized(joint_state((9, 9), 'other', ['q'], [9.0], [9.0], [9.0])), ARRIVAL)
    assert_same(sample, EXAMPLE)


def test_names_that_are_no_utf_8_are_read_as_unknown_names():
    data = BYTES.replace(b'waist', b'\xff\xfeist')
    assert JointStateReader().read(data, ARRIVAL).names == ('left_1', '\ufffd\ufffdist', 'x')


# -- bytes that are no message -------------------------------------------------------------------------


@pytest.mark.parametrize('data', [BYTES, BIG_ENDIAN])
def test_every_truncation_is_refused(data):
    reader = JointStateReader()
    end = parse(data).end  # padding may follow
    for length in range(end):
        assert read_or_refuse(reader, data[:length]) is None, length
    assert_same(reader.read(data[:end], ARRIVAL), EXAMPLE)


def test_other_encodings_are_refused():
    for data in (b'', b'\0', b'\0\0', b'\0\0\0\0', b'\0\3\0\0', b'\xff' * 40, b'\0\7\0\0' + BYTES[4:]):
        assert read_or_refuse(JointStateReader(), data) is None


def test_a_refused_message_does_not_change_the_reader():
    reader = JointStateReader()
    reader.read(BYTES, ARRIVAL)
    for length in (10, 30, 45, 60, 90, 120):
        assert read_or_refuse(reader, BYTES[:length]) is None
        assert reader.stamp == (7, 5)
        assert_same(reader.read(BYTES, ARRIVAL), EXAMPLE)


@pytest.mark.parametrize('count', HUGE)
def test_a_huge_count_anywhere_neither_hangs_nor_allocates(count):
    tracemalloc.start()
    try:
        for where in range(4, len(BYTES) - 4, 4):
            data = bytearray(BYTES)
            struct.pack_into('<I', data, where, count)
            read_or_refuse(JointStateReader(), bytes(data))
            decode(batched([(0, bytes(data))]))
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize('filler', [b'\0', b'\1', b'\xff', b'\1\0\0\0\0\0\0\0'])
@pytest.mark.parametrize('start', [4, 12, 16, 28])
def test_a_large_message_of_invalid_data_does_not_hang(filler, start):
    """As large as one UDP packet can be."""
    read_or_refuse(JointStateReader(), BYTES[:start] + filler * (65_000 // len(filler)))


@pytest.mark.parametrize('names', [['x' * 20_000], [f'joint_{i}' for i in range(2000)]])
def test_names_that_would_delay_a_control_loop_are_refused(names):
    with pytest.raises(InputError, match='names have more than 16384 bytes'):
        JointStateReader().read(encode(names, 0, *np.zeros((3, 0))), ARRIVAL)


@very_many
@given(data=st.binary(max_size=200), head=st.sampled_from([b'\0\1\0\0', b'\0\0\0\0', b'']))
def test_invalid_data_are_read_or_refused(data, head):
    read_or_refuse(JointStateReader(), head + data)
    decode(batched([(0, head + data)]))
    assert isinstance(stamp_of(head + data), float)


@very_many
@given(
    original=st.sampled_from([BYTES, BIG_ENDIAN]),
    flips=st.lists(st.tuples(st.integers(0, len(BYTES) - 1), st.integers(0, 255)), min_size=1, max_size=6),
    length=st.integers(0, len(BYTES)),
)
def test_a_damaged_message_is_read_or_refused(original, flips, length):
    reader = JointStateReader()
    reader.read(BYTES, ARRIVAL)
    damaged = bytearray(original)
    for where, value in flips:
        damaged[where] = value
    for data in (bytes(damaged), bytes(damaged[:length])):
        read_or_refuse(reader, data)
        decode(batched([(0, data)]))
        assert_same(reader.read(BYTES, ARRIVAL), EXAMPLE)


# -- the stamp alone -----------------------------------------------------------------------------------


@many
@given(stamp=STAMPS)
def test_the_stamp_is_that_of_the_message(stamp):
    for little_endian in (True, False):
        data = serialized(joint_state(stamp), little_endian)
        assert stamp_of(data) == pytest.approx(stamp[0] + 1e-9 * stamp[1], abs=1e-6)


@pytest.mark.parametrize('length', range(12))
def test_a_message_that_is_too_short_has_no_stamp(length):
    assert stamp_of(BYTES[:length]) == 0.0


# -- writing -------------------------------------------------------------------------------------------


@pytest.mark.parametrize('names', [['a'], ['abc', 'de'], ['joint_1', 'x', 'joint_33']])
@pytest.mark.parametrize('frame', ['', 'x', 'base', 'world'])
@pytest.mark.parametrize('has_effort', [True, False])
def test_an_encoded_message_is_the_one_of_rosbags_and_is_decoded_again(names, frame, has_effort):
    n = len(names)
    fields = [np.arange(n) + 0.5, -np.arange(n) * 1.0, np.ones(n) if has_effort else np.zeros(0)]
    theirs = joint_state((5, 7), frame, names, *fields)
    assert encode(names, 5_000_000_007, *fields, frame) == serialized(theirs)
    for little_endian in (True, False):
        (states,), lost = decode(batched([(3, serialized(theirs, little_endian))]))
        assert not len(lost)
        assert states.names == tuple(names)
        assert (states.arrival[0], states.stamp[0]) == (3, 5_000_000_007)
        np.testing.assert_array_equal(states.position[0], fields[0])
        np.testing.assert_array_equal(states.velocity[0], fields[1])
        np.testing.assert_array_equal(states.effort[0], fields[2] if has_effort else np.full(n, np.nan))


@many
@given(names=st.lists(WORDS, max_size=8), stamps=st.lists(STAMPS, min_size=1, max_size=3), data=st.data())
def test_a_writer_writes_stamp_and_numbers_and_leaves_other_fields_empty(names, stamps, data):
    numbers = st.lists(st.floats(), min_size=len(names), max_size=len(names)).map(np.array)
    fields = data.draw(st.lists(st.sampled_from(FIELDS), unique=True))
    writer = JointStateWriter(names, fields)
    for stamp in stamps:
        values = {field: data.draw(numbers) for field in fields}
        written = writer.stamped(stamp, *values.values())
        assert written == serialized(joint_state(stamp, '', names, **values))


def test_rclpy_reads_what_a_writer_writes():
    serialization = pytest.importorskip('rclpy.serialization', reason='rclpy.serialization is not installed')
    from sensor_msgs.msg import JointState

    for fields in ((), ('effort',), ('position', 'velocity'), FIELDS):
        for names in ([], ['arm'], ['arm', 'pendulum'], [f'left_{i}' for i in range(17)]):
            values = [np.arange(len(names)) + 10.0 * k for k in range(len(fields))]
            data = JointStateWriter(names, fields).stamped((3, 4), *values)
            message = serialization.deserialize_message(data, JointState)
            assert (message.header.stamp.sec, message.header.stamp.nanosec) == (3, 4)
            assert (message.header.frame_id, list(message.name)) == ('', names)
            for field in FIELDS:
                expected = values[fields.index(field)].tolist() if field in fields else []
                assert list(getattr(message, field)) == expected


def test_a_written_message_does_not_change_when_the_next_is_written():
    writer = JointStateWriter(['a', 'b'], ['effort'])
    first = writer.stamped((5, 6), np.array([3.0, 4.0]))
    writer.stamped((7, 8), np.array([5.0, 6.0]))
    sample = JointStateReader().read(first, ARRIVAL)
    assert (sample.names, sample.effort.tolist(), sample.stamp) == (('a', 'b'), [3.0, 4.0], 5.000000006)


def test_numbers_may_be_any_part_of_an_array_but_must_fit():
    writer = JointStateWriter(['a', 'b', 'c'], ['effort'])
    data = writer.stamped((0, 0), np.arange(12.0).reshape(3, 4)[:, 1])
    assert JointStateReader().read(data, ARRIVAL).effort.tolist() == [1.0, 5.0, 9.0]
    with pytest.raises(ValueError, match='broadcast'):
        writer.stamped((0, 0), np.zeros(4))


# -- thousands of messages at once ---------------------------------------------------------------------


def test_publishers_are_kept_apart_and_each_in_order():
    def message(k):
        return encode(['a', 'b'], k + 1, [k, 2.0], [], []) if k % 2 else encode(['c'], k + 1, [k], [], [])

    states, _ = decode(batched([(k, message(k)) for k in (3, 0, 1, 2)]))
    assert {s.names: s.position[:, 0].tolist() for s in states} == {('a', 'b'): [1, 3], ('c',): [0, 2]}


def test_a_layout_that_changes_is_noticed():
    messages = [
        (0, encode(['ab', 'c'], 1, [1.0, 2.0], [], [])),
        (1, encode(['xb', 'c'], 2, [3.0, 4.0], [], [])),
    ]
    states, _ = decode(batched(messages))
    assert {s.names for s in states} == {('ab', 'c'), ('xb', 'c')}


@pytest.mark.parametrize(
    'data',
    [
        b'',
        b'\0\1\0\0',
        b'\0\7\0\0' + bytes(60),
        bytes(range(256)),
        b'\0\1' + b'\xff' * 90,
        encode(['a'], 1, [1.0, 2.0], [], []),  # two numbers for one name
    ],
    ids=range(6),
)
def test_unreadable_messages_are_counted(data):
    good = encode(['a'], 1, [1.0], [2.0], [3.0])
    (states,), lost = decode(batched([(0, good), (1, data), (2, good)]))
    assert len(states) == 2
    assert lost.tolist() == [1]


def test_parse_raises_an_error_that_gives_the_reason():
    for data, reason in (
        (b'', 'its encapsulation is 0x'),
        (b'\0\7\0\0' + bytes(60), 'its encapsulation is 0x0007'),
        (bytes(range(256)), 'a count of 252579084 at byte 12 exceeds its 256 bytes'),
        (b'\0\1' + b'\xff' * 90, 'exceeds its 92 bytes'),
        (BYTES[:-8], f'a count of 3 at byte {len(BYTES) - 32} exceeds'),
    ):
        with pytest.raises(InputError, match=f'^joint_states: the message cannot be read: .*{reason}'):
            parse(data)
