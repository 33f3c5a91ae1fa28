"""A robot without some of its joints, such as those of a hand that was not mounted."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TypeVar

from ..errors import KrangError, UnknownNameError
from .config import RobotConfig
from .model import Robot
from .urdf import Urdf
from .urdf_editing import UrdfDocument

T = TypeVar('T')


def without_subtree(robot: Robot, link: str) -> Robot:
    """The robot without `link` and all links beyond it; the robot file's entries on the rest remain."""
    urdf = robot.urdf
    if link not in urdf.links:
        raise UnknownNameError('link', link, urdf.links)
    if link == urdf.root:
        raise KrangError(f'--remove-subtree {link}: that is the whole robot; name a link beyond the root')
    document = UrdfDocument(urdf.text)
    document.remove_links(urdf.subtree(link))
    urdf = Urdf(document.text(), urdf.source)
    config = without_joints(robot.config, [name for name in robot.joint_names if name not in urdf.joints])
    if not config.joints:
        raise KrangError('--remove-subtree: no joint is left')
    if any(wheel.link not in urdf.links for wheel in config.rolling):
        raise KrangError('--remove-subtree: it would remove a wheel that the robot rolls on')
    end_effectors = tuple(f for f in config.end_effectors if f in urdf.links) or tuple(urdf.leaves())
    payloads = tuple(p for p in robot.payloads if p.frame in urdf.links)
    return Robot(replace(config, end_effectors=end_effectors), urdf, payloads)


def without_joints(config: RobotConfig, names: Collection[str]) -> RobotConfig:
    """The robot file without its entries on these joints."""
    kept = {name: _without(entries, names) for name, entries in config.friction.by_joint().items()}
    return replace(
        config,
        joints=_without(config.joints, names),
        home=_without(config.home, names),
        friction=replace(config.friction, **kept),  # type: ignore[arg-type]
        actuators=tuple(actuator for actuator in config.actuators if actuator.joint not in names),
    )


def _without(values: Mapping[str, T], names: Collection[str]) -> dict[str, T]:
    return {name: value for name, value in values.items() if name not in names}
