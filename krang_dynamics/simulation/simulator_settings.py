"""The parameters of the simulator node."""

from ..control.parameters import Parameter
from ..control.settings import Settings
from . import ENGINES

SHARED = (
    'robot robot_description command_joints command_unit wheels_locked '
    'payload.<frame>.mass payload.<frame>.com payload.<frame>.inertia'
).split()


class SimulatorSettings(Settings):
    """Settings of a simulated robot: the controller's parameters on its joints, and its own."""

    own = (
        Parameter(
            'engine', 'text', 'auto', 'physics engine; auto: mujoco if it can', choices=('auto', *ENGINES)
        ),
        Parameter('rate', 'number', 1000.0, 'rate of the states', 'Hz', 1, 10000),
        Parameter('lock_step', 'flag', True, 'true: wait for the command after each state; false: real time'),
        Parameter('publish_clock', 'flag', False, 'true: publish simulated time on /clock'),
        Parameter('measure_wrenches', 'flag', True, 'true: publish external wrenches at the end effectors'),
        Parameter('held', 'flag', False, 'true: brakes hold the robot while no commands arrive', live=True),
        Parameter('start', 'per_joint', None, 'initial position; default: home', 'rad'),
        Parameter('push.frame', 'text', '', 'frame to push; empty: no push', live=True),
        Parameter('push.wrench', 'numbers', [0.0] * 6, 'force and moment, world axes', 'N, N m', live=True),
        Parameter('push.duration', 'number', 0.0, 'duration of the push; 0: no end', 's', 0, 1e6, live=True),
        Parameter(
            'push.start', 'number', 0.0, 'simulated time of its begin; past: at once', 's', 0, 1e9, live=True
        ),
        Parameter('wall.frame', 'text', '', 'frame that the wall stops; empty: no wall', live=True),
        Parameter('wall.point', 'numbers', [0.0] * 3, 'point of the wall', 'm', live=True),
        Parameter(
            'wall.normal', 'numbers', [1.0, 0.0, 0.0], 'normal of the wall, towards the robot', live=True
        ),
        Parameter('faults.position_noise', 'number', 0.0, 'position noise (1 sigma)', 'rad', 0, 1, live=True),
        Parameter(
            'faults.velocity_noise', 'number', 0.0, 'velocity noise (1 sigma)', 'rad/s', 0, 10, live=True
        ),
        Parameter('faults.effort_noise', 'number', 0.0, 'effort noise (1 sigma)', 'N m', 0, 1e4, live=True),
        Parameter('faults.quantisation', 'number', 0.0, 'resolution of positions', 'rad', 0, 1, live=True),
        Parameter('faults.delay', 'number', 0.0, 'delay of states', 's', 0, 10, live=True),
        Parameter('faults.lost', 'number', 0.0, 'fraction of states that are lost', '1', 0, 1, live=True),
        Parameter('faults.frozen', 'names', (), 'joints whose sensors repeat their last value', live=True),
        Parameter('faults.nan', 'names', (), 'joints whose sensors give NaN', live=True),
        Parameter('faults.dead_drivers', 'names', (), 'drivers that give no torque', live=True),
        Parameter(
            'faults.mass', 'number', 1.0, 'factor on link masses and inertias', '1', 0.1, 10, live=True
        ),
    )

    @classmethod
    def parameters(cls) -> dict[str, Parameter]:
        rows = super().parameters()
        return {name: rows[name] for name in (*SHARED, *(row.name for row in cls.own))}
