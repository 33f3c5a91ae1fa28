"""CommandCodec reads what it writes, and nothing else."""

import numpy as np
import pytest

from krang_dynamics.bags.io.command_message import CommandCodec

NAMES = ('torso', 'left_wheel_motor', 'right_wheel_motor')
TIMES = ((1_700_000_000, 1), (77, 5), (1_700_000_000, 999_999_999))
NUMBERS = np.array([1.5, -2.5, 1e-300])


@pytest.fixture
def codec():
    return CommandCodec(NAMES)


@pytest.mark.parametrize('numbers', [NUMBERS, np.array([np.nan, np.inf, -0.0])], ids=['finite', 'not finite'])
def test_numbers_are_read_bit_for_bit_whatever_the_times(codec, numbers):
    for times in (TIMES, ((0, 0),) * 3):
        found = CommandCodec(NAMES).numbers_of(codec.labelled(times, numbers))
        assert found.tobytes() == numbers.tobytes()


def test_numbers_do_not_change_with_a_later_command(codec):
    found = codec.numbers_of(codec.labelled(TIMES, NUMBERS))
    codec.labelled(TIMES, 2 * NUMBERS)
    assert found.tolist() == NUMBERS.tolist()


def test_a_wrong_byte_anywhere_else_is_not_read(codec):
    data = codec.labelled(TIMES, NUMBERS)
    begin = data.index(NUMBERS.tobytes())
    for place in range(len(data)):
        wrong = bytearray(data)
        wrong[place] ^= 0x80  # within a time this is no text any more
        assert (codec.numbers_of(bytes(wrong)) is not None) == (place >= begin), place


@pytest.mark.parametrize('change', [lambda data: data[:-1], lambda data: data + b'\0', lambda data: b''])
def test_another_length_is_not_read(codec, change):
    assert codec.numbers_of(change(codec.labelled(TIMES, NUMBERS))) is None


@pytest.mark.parametrize(
    'names', [NAMES[::-1], NAMES[:2], ('torso', 'left_wheel_motor', 'right_wheel_moto_')]
)
def test_a_command_of_other_drivers_is_not_read(codec, names):
    assert codec.numbers_of(CommandCodec(names).labelled(TIMES, np.zeros(len(names)))) is None
