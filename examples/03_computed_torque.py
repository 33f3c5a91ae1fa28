"""Computed torque on a trajectory, without ROS.

tau = A (a_d + Kd (v_d - v) + Kp (q_d - q)) + C v + Q + Gamma_f
Kp = w^2 and Kd = 2 w: the error of every joint is critically damped with bandwidth w, 5 Hz by default.
"""

import numpy as np

import krang_dynamics as kd

RATE = 500.0  # of the control loop [Hz]
REACH = 0.5  # of every joint [rad]
DURATION = 2.0  # there and back [s]

robot = kd.load_robot('planar_2r')
plant = kd.make_plant(robot, 'mujoco')  # not the engine of the controller's model
terms = ('friction', 'computed_torque')
controller = kd.TorqueController(robot, kd.Settings(terms=terms, ramp_time=0.1))

# A cosine there and back: position, velocity and acceleration are given, so nothing is interpolated.
t = np.arange(0.0, DURATION + 0.01, 0.01)[:, None]
w = 2 * np.pi / DURATION  # [rad/s]
ones = np.ones(robot.nv)
trajectory = kd.JointTrajectory(
    robot.joint_names,
    t[:, 0],
    positions=robot.home + REACH / 2 * (1 - np.cos(w * t)) * ones,
    velocities=REACH / 2 * w * np.sin(w * t) * ones,
    accelerations=REACH / 2 * w**2 * np.cos(w * t) * ones,
)

effort = robot.gravity_torque(plant.q)  # measured torque [N m]: brakes hold the robot before enable
errors = []
for k in range(round((DURATION + 0.5) * RATE)):
    now = 1.0 + k / RATE
    inputs = kd.Inputs(now, now, [kd.JointSamples(robot.joint_names, plant.q, plant.v, effort, now, now)])
    if k == 0:
        inputs.enable = True
    if k == 50:
        inputs.trajectory = trajectory
    outputs = controller.step(inputs)
    assert not outputs.refused, outputs.refused
    effort = outputs.torque
    plant.step(effort, 1 / RATE)
    desired, _ = outputs.reference
    errors.append(desired - inputs.samples[0].position)

print(f'mode {outputs.mode.value}, fault {outputs.fault}')
for name, error in zip(robot.joint_names, np.array(errors).T, strict=True):
    print(f'{name}: RMS error {np.sqrt(np.mean(error**2)):.1e} rad, largest {np.abs(error).max():.1e} rad')
