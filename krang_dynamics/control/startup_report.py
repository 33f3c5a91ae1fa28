"""The start-up report, to be read before the first enable."""

from ..robot.model import Robot
from ..text import number, table
from .builder import stop_of
from .controller import TorqueController
from .gains import DELAY, SAMPLING, delay_margin, gains_problem
from .terms.friction_compensation import SCALE


def startup_report(controller: TorqueController) -> list[str]:
    """By joint: source of the state, driver, effort limit and its source; then gravity and stop policy."""
    robot, settings = controller.robot, controller.settings
    stop = stop_of(settings, robot)
    return [
        f'{robot.name}: {" + ".join(settings.terms)}',
        *table(
            ('joint', 'state from', 'driver', 'effort limit [N m]', 'set by', 'rate [N m/s]'),
            [_row(controller, i, joint) for i, joint in enumerate(robot.joint_names)],
        ),
        f'command: {len(controller.drivers.names)} numbers in {controller.drivers.unit.symbol}, '
        f'in the order {", ".join(controller.drivers.names)}',
        _gravity(controller),
        *_warnings(controller),
        f'stop policy: {stop.policy}, {stop.time:g} s; without a valid state {stop.blind_time:g} s',
    ]


def _row(controller: TorqueController, i: int, joint: str) -> tuple[str, ...]:
    robot, limits = controller.robot, controller.limits
    drivers = [a.name for a in robot.config.actuators if a.joint == joint]
    is_commanded = joint in controller.command_joints
    return (
        joint,
        robot.config.joints[joint].state,
        ' + '.join(drivers) if is_commanded else 'none',
        number(limits.effort[i]) if is_commanded else '0',
        _source(robot, i, limits.effort[i], limits.peak[i]) if is_commanded else 'not commanded',
        number(limits.effort_rate[i]),
    )


def _source(robot: Robot, i: int, effort: float, peak: float) -> str:
    """Source of the effort limit in force."""
    if effort == robot.effort_limits[i]:
        return robot.effort_sources[i]
    return 'URDF' if effort == peak else 'limits.effort'


def _gravity(controller: TorqueController) -> str:
    settings = controller.settings
    if settings.hardware_compensates_gravity:
        return 'gravity: compensated by the HARDWARE (hardware_compensates_gravity), not by this controller'
    if any(term.compensates_gravity for term in controller.terms):
        return 'gravity: compensated here; the hardware must not (hardware_compensates_gravity is false)'
    return 'gravity: NOT compensated: gravity is not among the terms'


def _warnings(controller: TorqueController) -> list[str]:
    """What may become unstable: friction compensation, and gains at a low rate or with a delay."""
    settings, lines = controller.settings, []
    if 'friction' in settings.terms and settings.friction_scale > SCALE:
        lines.append(
            f'WARNING: friction.scale is {settings.friction_scale:g}, above {SCALE:g}: with less friction '
            'than modelled, a joint can run away after a small push'
        )
    for kp, kd in filter(None, (term.gains for term in controller.terms)):
        problem = gains_problem(controller.robot, kp, kd, 0.0, DELAY)
        if problem is not None:
            lines.append(f'WARNING: the rate of the states is not known yet; {problem}')
        elif kp.any() or kd.any():
            margin = float(delay_margin(kp, kd).min())
            lines.append(
                f'gains: stable with states above {SAMPLING / margin:.0f} Hz, '
                f'or {SAMPLING / (margin - DELAY):.0f} Hz with a delay of {1e3 * DELAY:g} ms'
            )
    return lines
