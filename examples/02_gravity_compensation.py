"""Gravity compensation against a simulated robot, without ROS.

tau = Q(q) - D v keeps the arm in its pose. A push moves it; afterwards it stays in the new pose.
"""

import numpy as np

import krang_dynamics as kd

DAMPING = 10.0  # D, every joint [N m s/rad]
RATE = 500.0  # of the control loop [Hz]
PUSH = [10.0, 0.0, 10.0, 0.0, 0.0, 0.0]  # on the tool, world axes [N, N m]
START, END = 1.0, 1.5  # of the push [s]
DURATION = 3.0  # [s]

robot = kd.load_robot('planar_2r')
plant = kd.make_plant(robot, 'pinocchio')
controller = kd.TorqueController(robot, kd.Settings(terms=('gravity', 'damping'), damping=DAMPING))
(hand,) = robot.config.end_effectors

effort = robot.gravity_torque(plant.q)  # measured torque [N m]: brakes hold the robot before enable
for k in range(round(DURATION * RATE)):
    now = 1.0 + k / RATE  # clocks do not start at 0
    if now >= 1.0 + START:
        plant.push(hand, PUSH if now < 1.0 + END else np.zeros(6))

    # One step of the controller: joint state in, torque out.
    state = kd.JointSamples(robot.joint_names, plant.q, plant.v, effort, now, now)
    outputs = controller.step(kd.Inputs(now, now, [state], enable=True if k == 0 else None))
    if outputs.torque is not None:
        effort = outputs.torque

    plant.step(effort, 1 / RATE)
    if k % round(RATE / 2) == 0:
        moved = np.abs(plant.q - robot.home).max()
        print(f'{k / RATE:3.1f} s  {outputs.mode.value:7}  moved {moved:.3f} rad  '
              f'speed {np.abs(plant.v).max():.3f} rad/s')  # fmt: skip

print(f'gravity torque in the new pose [N m]: {robot.gravity_torque(plant.q).round(2)}')
