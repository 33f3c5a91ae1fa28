"""Robot files as YAML: written and read back, and read without PyYAML's surprises."""

import pytest

import krang_dynamics as kd
from krang_dynamics.errors import ConfigError
from krang_dynamics.robot.config import RobotConfig
from krang_dynamics.robot.schema import build, read_yaml, to_yaml


@pytest.mark.parametrize('name', kd.robots())
def test_a_written_robot_file_is_read_back(name, tmp_path):
    config = kd.load_robot(name).config
    path = tmp_path / 'robot.yaml'
    path.write_text(to_yaml(config))
    assert build(RobotConfig, read_yaml(path), str(path)) == config
    assert 'null' not in path.read_text()


def test_small_numbers_are_numbers_and_repeated_keys_are_refused(tmp_path):
    path = tmp_path / 'data.yaml'
    path.write_text('a: 1e-5\nb: -2E3\n')
    assert read_yaml(path) == {'a': 1e-5, 'b': -2e3}
    path.write_text('a: 1\na: 2\n')
    with pytest.raises(ConfigError, match="key 'a' occurs twice"):
        read_yaml(path)


@pytest.mark.parametrize('number', [10**400, -(10**400), float('nan'), float('inf')])
def test_a_number_that_is_no_finite_float_is_refused(number):
    with pytest.raises(ConfigError, match=r'gravity\[2\] .* must be a finite number'):
        kd.load_robot('planar_2r', gravity=(0.0, 0.0, number))
