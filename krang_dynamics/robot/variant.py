"""A robot without a part of its tree, such as a hand that was not mounted."""

from dataclasses import replace

from ..errors import KrangError, UnknownNameError
from .model import Robot
from .urdf import Urdf
from .urdf_editing import UrdfDocument


def without_subtree(robot: Robot, link: str) -> Robot:
    """The robot without `link` and all links beyond it."""
    urdf = robot.urdf
    if link not in urdf.links:
        raise UnknownNameError('link', link, urdf.links)
    if link == urdf.root:
        raise KrangError(f'--remove-subtree {link}: that is the whole robot; name a link beyond the root')
    document = UrdfDocument(urdf.text)
    document.remove_links(urdf.subtree(link))
    return _rebuilt(robot, Urdf(document.text(), urdf.source))


def _rebuilt(robot: Robot, urdf: Urdf) -> Robot:
    """The robot file's entries that a smaller URDF still has."""
    config = robot.config
    joints = {name: joint for name, joint in config.joints.items() if name in urdf.joints}
    if not joints:
        raise KrangError('--remove-subtree: no joint is left')
    if any(wheel.link not in urdf.links for wheel in config.rolling):
        raise KrangError('--remove-subtree: it would remove a wheel that the robot rolls on')
    friction = replace(
        config.friction,
        viscous={name: value for name, value in config.friction.viscous.items() if name in joints},
        coulomb={name: value for name, value in config.friction.coulomb.items() if name in joints},
    )
    smaller = replace(
        config,
        joints=joints,
        home={name: config.home[name] for name in joints},
        friction=friction,
        actuators=tuple(actuator for actuator in config.actuators if actuator.joint in joints),
        end_effectors=tuple(f for f in config.end_effectors if f in urdf.links) or tuple(urdf.leaves()),
    )
    return Robot(smaller, urdf, tuple(p for p in robot.payloads if p.frame in urdf.links))
