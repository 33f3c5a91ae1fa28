"""Messages of which some numbers are exchanged, against rclpy's own serialization."""

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

from krang_dynamics.nodes.ros.message_template import Template

# Zero ends a string on its way through rclpy, and surrogates are no text.
WORDS = st.text(st.characters(exclude_characters='\0', exclude_categories=['Cs']), max_size=12)
STAMPS = st.tuples(st.integers(-(2**31), 2**31 - 1), st.integers(0, 2**32 - 1))
many = settings(max_examples=60, deadline=None)


def joint_state(stamp=(0, 0), frame='', names=(), position=(), velocity=(), effort=()):
    header = Header(frame_id=frame)
    header.stamp.sec, header.stamp.nanosec = stamp
    lists = (list(position), list(velocity), list(effort))
    return JointState(header=header, name=list(names), position=lists[0], velocity=lists[1], effort=lists[2])


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
