"""Regular files and plain numbers, whatever else the system and Python would read."""

import os
from math import isnan
from pathlib import Path

import pytest

from krang_dynamics.reading import plain_number, regular_file


@pytest.mark.parametrize(
    ('word', 'value'), [('1', 1), ('-1.5e-3', -0.0015), (' 2 ', 2), ('1e400', float('inf'))]
)
def test_numbers_are_those_of_other_programs(word, value):
    assert plain_number(word) == value
    assert isnan(plain_number('nan'))


@pytest.mark.parametrize('word', ['', '1_0', '٣', '\uff13', '0x10', '1,5', '1:30', 'yes'])
def test_other_words_are_no_numbers(word):
    with pytest.raises(ValueError, match=r'could not convert|ascii'):
        plain_number(word)


def test_only_a_regular_file_or_a_link_to_it_is_opened(tmp_path):
    (tmp_path / 'file').write_text('text')
    (tmp_path / 'link').symlink_to('file')
    assert regular_file(tmp_path / 'link').read_text() == 'text'
    os.mkfifo(tmp_path / 'pipe')
    for path in (tmp_path / 'pipe', tmp_path, Path('/dev/zero'), tmp_path / 'nothing'):
        with pytest.raises(OSError, match=r'regular file|No such file'):
            regular_file(path)
