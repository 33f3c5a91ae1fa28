"""Joint states and commands as bytes, against rclpy's own serialization."""

import struct
import time
import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

with warnings.catch_warnings():
    warnings.simplefilter('ignore')  # the message generator's parser imports a deprecated module
    import rosidl_generator_py  # noqa: F401

from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, Header, MultiArrayDimension, MultiArrayLayout

from krang_dynamics.errors import InputError
from krang_dynamics.nodes.ros.message_template import JointStateReader, Template, stamp_of

ARRIVAL = 12.5
SOON = 0.2  # for what must neither hang nor allocate [s]
HUGE = (1 << 16, 1 << 24, 1 << 31, (1 << 32) - 1)  # counts that no message has

# Zero ends a string on its way through rclpy, and surrogates are no text.
WORDS = st.text(st.characters(exclude_characters='\0', exclude_categories=['Cs']), max_size=12)
DOUBLES = st.lists(st.floats(width=64), max_size=9)
STAMPS = st.tuples(st.integers(-(2**31), 2**31 - 1), st.integers(0, 2**32 - 1))
MESSAGES = st.builds(
    lambda stamp, frame, names, position, velocity, effort: joint_state(
        stamp, frame, names, position, velocity, effort
    ),
    STAMPS,
    WORDS,
    st.lists(WORDS, max_size=9),
    DOUBLES,
    DOUBLES,
    DOUBLES,
)
few = settings(max_examples=20, deadline=None)
many = settings(max_examples=60, deadline=None)
very_many = settings(max_examples=200, deadline=None)


def joint_state(stamp=(0, 0), frame='', names=(), position=(), velocity=(), effort=()):
    header = Header(frame_id=frame)
    header.stamp.sec, header.stamp.nanosec = stamp
    lists = (list(position), list(velocity), list(effort))
    return JointState(header=header, name=list(names), position=lists[0], velocity=lists[1], effort=lists[2])


def big_endian(message):
    """The same message as a machine of the other byte order sends it."""
    out = bytearray(b'\x00\x00\x00\x00')

    def put(format, *values):
        size = struct.calcsize(f'>{format[-1]}')
        out.extend(bytes(-(len(out) - 4) % size))
        out.extend(struct.pack(f'>{format}', *values))

    def put_text(text):
        data = text.encode() + b'\0'
        put('I', len(data))
        out.extend(data)

    put('i', message.header.stamp.sec)
    put('I', message.header.stamp.nanosec)
    put_text(message.header.frame_id)
    put('I', len(message.name))
    for name in message.name:
        put_text(name)
    for numbers in (message.position, message.velocity, message.effort):
        put('I', len(numbers))
        if len(numbers):
            put(f'{len(numbers)}d', *numbers)
    return bytes(out)


def assert_same(sample, message):
    """A sample is what rclpy's message says, NaN and all."""
    assert sample.names == tuple(message.name)
    for field in ('position', 'velocity', 'effort'):
        np.testing.assert_array_equal(getattr(sample, field), np.array(getattr(message, field), dtype=float))
    stamp = message.header.stamp
    assert sample.stamp == pytest.approx(stamp.sec + 1e-9 * stamp.nanosec, abs=1e-6)
    assert sample.arrival == ARRIVAL


def read_or_refuse(reader, data):
    """The sample, or None where it is refused; nothing else may happen, and it happens soon."""
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
BYTES = serialize_message(EXAMPLE)


# -- reading -------------------------------------------------------------------------------------------


@many
@given(message=MESSAGES)
def test_a_message_reads_as_rclpy_reads_it(message):
    data = serialize_message(message)
    assert_same(JointStateReader().read(data, ARRIVAL), deserialize_message(data, JointState))


@few
@given(messages=st.lists(MESSAGES, min_size=2, max_size=6))
def test_one_reader_reads_any_messages_one_after_the_other(messages):
    reader = JointStateReader()
    for message in [*messages, *messages]:
        sample = reader.read(serialize_message(message), ARRIVAL)
        assert_same(sample, message)
        assert reader.stamp == (message.header.stamp.sec, message.header.stamp.nanosec)


@pytest.mark.parametrize('length', range(10))
@pytest.mark.parametrize('names', [[], ['a'], ['ab', 'abc'], ['abcd', '', 'µ'], ['x' * 300]])
def test_alignment_holds_whatever_the_length_of_frame_and_names(length, names):
    message = joint_state((1, 2), 'f' * length, names, [1.5] * len(names), [], [2.5] * len(names))
    assert_same(JointStateReader().read(serialize_message(message), ARRIVAL), message)


def test_names_that_repeat_are_the_same_object():
    """What looks them up asks `is` first."""
    reader = JointStateReader()
    first, second = (reader.read(BYTES, ARRIVAL) for _ in range(2))
    assert first.names is second.names


def test_names_with_the_same_beginning_are_told_apart():
    reader = JointStateReader()
    for names in (['a', 'b'], ['a'], ['a', 'b', 'c'], ['a', 'bb'], [], ['a', 'b'], ['a', 'c'], ['c', 'b']):
        assert reader.read(serialize_message(joint_state(names=names)), ARRIVAL).names == tuple(names)


def test_what_was_read_stays_as_it_was():
    reader = JointStateReader()
    sample = reader.read(BYTES, ARRIVAL)
    reader.read(serialize_message(joint_state((9, 9), 'other', ['q'], [9.0], [9.0], [9.0])), ARRIVAL)
    assert_same(sample, EXAMPLE)


@many
@given(message=MESSAGES)
def test_the_other_byte_order_is_read_too(message):
    data = big_endian(message)
    if len(data) >= 60:  # rclpy itself reads it, so it is a message
        assert_same(JointStateReader().read(data, ARRIVAL), deserialize_message(data, JointState))


def test_the_other_byte_order_has_its_own_stamp():
    reader = JointStateReader()
    reader.read(BYTES, ARRIVAL)
    message = joint_state((123, 456), 'other', ['a'], [1.0], [1.0], [1.0])
    assert reader.read(big_endian(message), ARRIVAL).stamp == pytest.approx(123.000000456)
    assert reader.stamp == (123, 456)


# -- what is no message --------------------------------------------------------------------------------


def test_every_truncation_is_refused():
    reader = JointStateReader()
    end = BYTES.rindex(struct.pack('<d', 6.0)) + 8  # what follows is padding
    for length in range(2, end):
        assert read_or_refuse(reader, BYTES[:length]) is None, length
    assert_same(reader.read(BYTES[:end], ARRIVAL), EXAMPLE)


def test_what_is_too_short_or_of_another_encoding_is_refused():
    for data in (b'', b'\0', b'\0\0', b'\0\0\0\0', b'\0\3\0\0', b'\xff' * 40):
        assert read_or_refuse(JointStateReader(), data) is None


def test_every_truncation_of_the_other_byte_order_is_refused():
    data = big_endian(EXAMPLE)
    for length in range(2, len(data)):
        assert read_or_refuse(JointStateReader(), data[:length]) is None, length


def test_a_refused_message_leaves_the_reader_as_good_as_before():
    reader = JointStateReader()
    reader.read(BYTES, ARRIVAL)
    for length in (10, 30, 45, 60, 90, 120):
        read_or_refuse(reader, BYTES[:length])
        assert_same(reader.read(BYTES, ARRIVAL), EXAMPLE)


@pytest.mark.parametrize('count', HUGE)
def test_a_huge_count_anywhere_neither_hangs_nor_allocates(count):
    tracemalloc.start()
    try:
        for where in range(4, len(BYTES) - 4, 4):
            data = bytearray(BYTES)
            struct.pack_into('<I', data, where, count)
            read_or_refuse(JointStateReader(), bytes(data))
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize('filler', [b'\0', b'\1', b'\xff', b'\1\0\0\0\0\0\0\0'])
@pytest.mark.parametrize('start', [4, 12, 16, 28])
def test_a_large_message_of_rubbish_does_not_hang(filler, start):
    """As large as one packet can be."""
    read_or_refuse(JointStateReader(), BYTES[:start] + filler * (65_000 // len(filler)))


@very_many
@given(data=st.binary(max_size=200))
def test_rubbish_is_read_or_refused_and_nothing_else(data):
    read_or_refuse(JointStateReader(), b'\0\1\0\0' + data)


@very_many
@given(flips=st.lists(st.tuples(st.integers(2, len(BYTES) - 1), st.integers(0, 255)), min_size=1, max_size=6))
def test_a_damaged_message_is_read_or_refused_and_nothing_else(flips):
    data, reader = bytearray(BYTES), JointStateReader()
    reader.read(BYTES, ARRIVAL)
    for where, value in flips:
        data[where] = value
    read_or_refuse(reader, bytes(data))
    assert_same(reader.read(BYTES, ARRIVAL), EXAMPLE)


@many
@given(data=st.binary(max_size=200))
def test_rubbish_of_any_encoding_is_read_or_refused_and_nothing_else(data):
    read_or_refuse(JointStateReader(), data)


# -- the stamp alone -----------------------------------------------------------------------------------


@many
@given(stamp=STAMPS)
def test_the_stamp_is_that_of_the_message(stamp):
    expected = stamp[0] + 1e-9 * stamp[1]
    assert stamp_of(serialize_message(joint_state(stamp))) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize('length', range(12))
def test_what_is_too_short_has_no_stamp(length):
    assert stamp_of(BYTES[:length]) == 0.0


# -- writing -------------------------------------------------------------------------------------------


@many
@given(values=st.lists(st.floats(width=64), max_size=20), label=WORDS)
def test_a_filled_template_is_the_message_with_these_numbers(values, label):
    layout = MultiArrayLayout(dim=[MultiArrayDimension(label=label, size=3, stride=3)], data_offset=1)
    template = Template(Float64MultiArray(layout=layout), 'data', len(values))
    for numbers in (np.array(values), np.array(values[::-1]), np.zeros(len(values))):
        message = deserialize_message(template.filled(numbers), Float64MultiArray)
        np.testing.assert_array_equal(np.array(message.data), numbers)
        assert message.layout == layout


@many
@given(
    names=st.lists(WORDS, min_size=2, max_size=8),
    stamps=st.lists(STAMPS, min_size=1, max_size=3),
    frame=WORDS,
    data=st.data(),
)
def test_a_stamped_template_is_the_message_with_this_stamp(names, stamps, frame, data):
    template = Template(joint_state((1, 1), frame, names), 'effort', len(names))
    for stamp in stamps:
        numbers = np.array(data.draw(st.lists(st.floats(), min_size=len(names), max_size=len(names))))
        message = deserialize_message(template.stamped(stamp, numbers), JointState)
        assert (message.header.stamp.sec, message.header.stamp.nanosec) == stamp
        assert (message.header.frame_id, list(message.name)) == (frame, names)
        assert len(message.position) + len(message.velocity) == 0
        np.testing.assert_array_equal(np.array(message.effort), numbers)


@pytest.mark.parametrize('kind', [JointState, Float64MultiArray])
def test_what_memory_holds_behind_a_message_is_not_taken_for_its_numbers(kind):
    """Serialized messages may end in bytes that nobody has set: those of an earlier message, say."""
    field = 'effort' if kind is JointState else 'data'
    for size in [*range(1, 31)] * 20:
        earlier = [serialize_message(Float64MultiArray(data=[1.0] * (size + k))) for k in range(3)]
        del earlier
        named = JointState(name=['arm']) if kind is JointState else Float64MultiArray()
        message = deserialize_message(Template(named, field, 1).filled(np.array([7.5])), kind)
        assert list(getattr(message, field)) == [7.5]


def test_an_empty_template_is_its_message():
    template = Template(joint_state(names=[]), 'position effort', 0)
    message = deserialize_message(template.stamped((3, 4), np.zeros(0), np.zeros(0)), JointState)
    assert (message.header.stamp.sec, len(message.effort)) == (3, 0)


def test_what_a_template_handed_out_stays_as_it_was():
    template = Template(Float64MultiArray(), 'data', 2)
    first = template.filled(np.array([1.0, 2.0]))
    template.filled(np.array([3.0, 4.0]))
    assert list(deserialize_message(first, Float64MultiArray).data) == [1.0, 2.0]


def test_numbers_may_be_any_part_of_an_array():
    template = Template(Float64MultiArray(), 'data', 3)
    numbers = np.arange(12.0).reshape(3, 4)[:, 1]
    assert list(deserialize_message(template.filled(numbers), Float64MultiArray).data) == [1.0, 5.0, 9.0]


@many
@given(rows=st.lists(st.tuples(*[st.floats()] * 3), min_size=2, max_size=8), stamp=STAMPS)
def test_several_fields_are_filled_each_with_its_own(rows, stamp):
    fields = np.array(rows).T
    template = Template(joint_state(names=['j'] * len(rows)), 'position velocity effort', len(rows))
    template.filled(*fields[::-1])
    message = deserialize_message(template.stamped(stamp, *fields), JointState)
    for name, numbers in zip(('position', 'velocity', 'effort'), fields, strict=True):
        np.testing.assert_array_equal(np.array(getattr(message, name), dtype=float), numbers)


def test_a_template_whose_own_numbers_look_like_its_marks_is_filled_in_the_right_place():
    message = joint_state(names=['a', 'b'], position=[1.0, 2.0], velocity=[1.0, 2.0])
    filled = deserialize_message(Template(message, 'effort', 2).filled(np.array([8.0, 9.0])), JointState)
    assert (list(filled.position), list(filled.velocity)) == ([1.0, 2.0], [1.0, 2.0])
    assert list(filled.effort) == [8.0, 9.0]


def test_a_template_that_is_read_again_is_the_sample_that_was_meant():
    template = Template(joint_state(names=['a', 'b']), 'effort', 2)
    sample = JointStateReader().read(template.stamped((5, 6), np.array([3.0, 4.0])), ARRIVAL)
    assert (sample.names, sample.effort.tolist(), sample.stamp) == (('a', 'b'), [3.0, 4.0], 5.000000006)
