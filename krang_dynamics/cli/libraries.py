"""Libraries that commands need: each missing one is reported in one line, before any work."""

from importlib.util import find_spec

from ..errors import KrangError

PACKAGES = {'pinocchio': 'pin', 'yaml': 'PyYAML'}  # names on PyPI that differ from the module's
ROS = 'source a ROS 2 installation, or run make setup'


def require_libraries(*names: str | None) -> None:
    """Raise for the libraries that are not installed, before any long work; None stands for none."""
    missing = [name for name in names if name and find_spec(name) is None]
    if missing:
        raise KrangError(_advice(missing))


def require_ros() -> None:
    """Raise if rclpy is not installed."""
    require_libraries('rclpy')


def missing_library(error: ModuleNotFoundError) -> str:
    """What to install after a failed import."""
    return _advice([(error.name or str(error)).partition('.')[0]])


def _advice(names: list[str]) -> str:
    is_ros = any(name == 'rclpy' or name.endswith(('_msgs', '_srvs', '_interfaces')) for name in names)
    what = ROS if is_ros else f'pip install {" ".join(PACKAGES.get(name, name) for name in names)}'
    verb = 'is' if len(names) == 1 else 'are'
    return f'{" and ".join(names)} {verb} not installed; {what}'
