"""Bytes of JointTrajectory: both byte orders, every alignment, and invalid bytes."""

import random
import struct
import warnings
from contextlib import suppress

import numpy as np
import pytest

from krang_dynamics.bags.io.trajectory_codec import FIELDS, decode_trajectory, encode_trajectory
from krang_dynamics.control.reference.trajectory import JointTrajectory
from krang_dynamics.errors import InputError

NAMES = ('a', 'joint_2')
PRESENT = [(), (0,), (0, 1), (0, 1, 2), (0, 3), (0, 1, 2, 3), (3,)]  # fields that are given


def trajectory(count=5, given=(0, 1), names=NAMES):
    rng = np.random.default_rng(count)
    fields = [rng.normal(size=(count, len(names))) if i in given else None for i in range(4)]
    if fields[0] is None:
        fields[0] = np.zeros((count, 0))
    return JointTrajectory(names, np.arange(count) * 0.25, *fields)


def assert_same(a, b):
    assert a.joint_names == b.joint_names
    for name in ('times', 'positions', 'velocities', 'accelerations', 'efforts'):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


@pytest.mark.parametrize('given', PRESENT)
@pytest.mark.parametrize('count', [1, 2, 3, 100])
@pytest.mark.parametrize('names', [NAMES, ('abc',), ('abcd', 'e', 'f')])
def test_what_is_encoded_is_decoded(given, count, names):
    expected = trajectory(count, given, names)
    got = decode_trajectory(encode_trajectory(expected, (12, 500_000_000)))
    assert_same(got, expected)
    assert got.start == 12.5
    assert got.positions.dtype == np.float64


@pytest.mark.parametrize('names', [(), NAMES])
def test_a_message_without_points(names):
    got = decode_trajectory(encode_trajectory(trajectory(0, (0,), names)))
    assert (got.joint_names, got.times.shape, got.positions.shape) == (names, (0,), (0, len(names)))


@pytest.mark.parametrize('given', PRESENT)
def test_the_bytes_are_those_of_ros(given):
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # the message generator's parser imports a deprecated module
        pytest.importorskip('rosidl_generator_py', reason='rosidl_generator_py is not installed')
    serialization = pytest.importorskip('rclpy.serialization', reason='rclpy.serialization is not installed')
    from builtin_interfaces.msg import Duration
    from trajectory_msgs.msg import JointTrajectory as Message
    from trajectory_msgs.msg import JointTrajectoryPoint

    x = trajectory(4, given)
    message = Message(joint_names=list(NAMES))
    message.header.frame_id = 'world'
    message.header.stamp.sec = 7
    for i in range(4):
        point = JointTrajectoryPoint(time_from_start=Duration(sec=0, nanosec=250_000_000 * i))
        point.time_from_start.sec, point.time_from_start.nanosec = divmod(250_000_000 * i, 10**9)
        for name, values in zip(FIELDS, (x.positions, x.velocities, x.accelerations, x.efforts), strict=True):
            if values is not None:
                setattr(point, name, values[i].tolist())
        message.points.append(point)
    got = decode_trajectory(serialization.serialize_message(message))
    assert_same(got, x)
    assert got.start == 7.0


def test_big_endian_numbers():
    out = bytearray(b'\0\0\0\0') + struct.pack('>iI', 3, 0) + struct.pack('>I', 1) + b'\0\0\0\0'
    out += struct.pack('>I', 1) + struct.pack('>I', 2) + b'a\0\0\0' + struct.pack('>I', 2)
    for k in range(2):
        out += struct.pack('>I', 1)
        out += b'\0' * (-(len(out) - 4) % 8) + struct.pack('>d', 1.5 + k)
        out += struct.pack('>IIIiI', 0, 0, 0, k, 5)
    got = decode_trajectory(bytes(out))
    np.testing.assert_array_equal(got.positions, [[1.5], [2.5]])
    np.testing.assert_array_equal(got.times, [5e-9, 1 + 5e-9])
    assert (got.joint_names, got.start) == (('a',), 3.0)


@pytest.mark.parametrize('other', [2, 5])
def test_points_with_fields_of_other_lengths_are_refused(other):
    data = bytearray(encode_trajectory(trajectory(6, (0,), ('a',))))
    number = struct.pack('<d', trajectory(6, (0,), ('a',)).positions[other, 0])
    place = data.rindex(struct.pack('<I', 1), 0, data.index(number))
    data[place : place + 4] = struct.pack('<I', 0)
    with pytest.raises(InputError, match='positions'):
        decode_trajectory(bytes(data))


def test_any_bytes_are_a_trajectory_or_an_input_error():
    chance = random.Random(1)
    good = [encode_trajectory(trajectory(count, given)) for count in (0, 1, 3, 9) for given in PRESENT]
    for _ in range(5000):
        data = bytearray(chance.choice(good))
        for _ in range(chance.randrange(1, 6)):
            data[chance.randrange(len(data))] = chance.choice((0, 1, 2, 4, 127, 128, 255))
        data = data[: chance.choice((len(data), chance.randrange(len(data) + 1)))]
        with suppress(InputError):
            decode_trajectory(bytes(data))
