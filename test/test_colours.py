"""Colours as numbers."""

from krang_dynamics.colours import rgb


def test_rgb():
    assert rgb('#ff8001') == (255, 128, 1)
