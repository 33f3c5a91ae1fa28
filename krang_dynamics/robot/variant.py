"""A robot without a part of its tree: a hand that was not mounted, say."""

from dataclasses import replace
from xml.etree import ElementTree

from ..errors import KrangError, UnknownNameError
from .model import Robot
from .urdf import Urdf


def without_subtree(robot: Robot, link: str) -> Robot:
    """The robot less `link` and everything beyond it."""
    urdf = robot.urdf
    if link not in urdf.links:
        raise UnknownNameError('link', link, urdf.links)
    if link == urdf.root:
        raise KrangError(f'--remove-subtree {link}: that is the whole robot; name a link beyond the root')
    gone = set(urdf.subtree(link))
    document = ElementTree.fromstring(urdf.text.strip())
    for element in list(document):
        ends = [getattr(element.find(tag), 'attrib', {}).get('link') for tag in ('parent', 'child')]
        if (element.tag == 'link' and element.get('name') in gone) or (
            element.tag == 'joint' and gone.intersection(ends)
        ):
            document.remove(element)
    return _rebuilt(robot, Urdf(ElementTree.tostring(document, encoding='unicode'), urdf.source))


def _rebuilt(robot: Robot, urdf: Urdf) -> Robot:
    """The same robot file on a smaller URDF."""
    config = robot.config
    joints = {name: joint for name, joint in config.joints.items() if name in urdf.joints}
    if not joints:
        raise KrangError('--remove-subtree: no joint is left')
    if any(wheel.link not in urdf.links for wheel in config.rolling):
        raise KrangError('--remove-subtree: it would take a wheel that the robot rolls on')
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
