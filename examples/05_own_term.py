"""Your own control term, in your own file: the package is not changed.

A spring pulls one joint to a rest angle: tau_i = K (q_0 - q_i). It is combined with gravity and damping.
"""

import numpy as np

import krang_dynamics as kd

JOINT = 1  # index in joint_names
STIFFNESS = 20.0  # K [N m/rad]
DAMPING = 3.0  # D, every joint [N m s/rad]
ANGLE = 0.4  # from home to the rest angle [rad]
RATE = 500.0  # of the control loop [Hz]


@kd.register_term
class Spring(kd.Term):
    """K (q_0 - q_i) on one joint [N m]."""

    name = 'spring'

    def __init__(self, rest: float) -> None:
        self.rest = rest  # q_0 [rad]

    @classmethod
    def from_settings(cls, robot, settings):
        return cls(robot.home[JOINT] + ANGLE)

    def torque(self, state):
        torque = np.zeros_like(state.q)
        torque[JOINT] = STIFFNESS * (self.rest - state.q[JOINT])
        return torque


robot = kd.load_robot('planar_2r')
plant = kd.make_plant(robot, 'pinocchio')
settings = kd.Settings(terms=('gravity', 'damping', 'spring'), damping=DAMPING, ramp_time=0.5)
controller = kd.TorqueController(robot, settings)

effort = robot.gravity_torque(plant.q)  # measured torque [N m]
for k in range(round(4.0 * RATE)):
    now = 1.0 + k / RATE
    state = kd.JointSamples(robot.joint_names, plant.q, plant.v, effort, now, now)
    outputs = controller.step(kd.Inputs(now, now, [state], enable=True if k == 0 else None))
    effort = outputs.torque
    plant.step(effort, 1 / RATE)
    if k % round(RATE / 2) == 0:
        angle = plant.q[JOINT] - robot.home[JOINT]
        print(f'{k / RATE:3.1f} s  {robot.joint_names[JOINT]} moved by {angle:6.3f} rad, '
              f'spring {outputs.terms["spring"][JOINT]:6.2f} N m')  # fmt: skip

print(f'remaining distance to the rest angle: {abs(ANGLE - (plant.q - robot.home)[JOINT]):.4f} rad')
