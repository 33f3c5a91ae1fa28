"""A harness for each test, and an environment in which launch finds the package."""

import os

import pytest
from nodes.harness import BIN, Harness


@pytest.fixture
def ros():
    with Harness() as harness:
        yield harness


@pytest.fixture(scope='module')
def environment(tmp_path_factory):
    """Where launch finds the package: installed, or the executables of this virtual environment."""
    if not (BIN / 'torque_controller').exists():
        return dict(os.environ)
    prefix = tmp_path_factory.mktemp('prefix')
    index, executables = prefix / 'share/ament_index/resource_index/packages', prefix / 'lib/krang_dynamics'
    for folder in (index, executables):
        folder.mkdir(parents=True)
    (index / 'krang_dynamics').touch()
    for name in ('torque_controller', 'torque_guard', 'simulator', 'krang'):
        (executables / name).symlink_to(BIN / name)
    return {**os.environ, 'AMENT_PREFIX_PATH': f'{prefix}:{os.environ.get("AMENT_PREFIX_PATH", "")}'}
