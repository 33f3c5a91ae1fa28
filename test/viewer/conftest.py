"""Nodes in a domain of their own, and a browser."""

import pytest
from viewer.browser import Browser


@pytest.fixture(scope='module')
def harness():
    from nodes.harness import Harness

    with Harness() as harness:
        yield harness


@pytest.fixture(scope='module')
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp('chromium'))
    yield browser
    browser.close()
