"""`krang view`: errors in one line; the page itself is tested in test/viewer/test_page.py."""

import pytest


@pytest.mark.parametrize(
    ('words', 'message'),
    [
        ([], 'which robot?'),
        (['krangg'], 'krang'),
        (['--bag', 'nowhere'], 'nowhere: does not exist'),
        (['planar_2r', '--bag', 'nowhere', '--map', 'x'], 'nowhere: does not exist'),
    ],
)
def test_an_error_is_one_line(words, message, refused):
    assert message in refused('view', *words)
