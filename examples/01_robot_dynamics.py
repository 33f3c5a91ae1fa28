"""Load a robot and read its equations of motion.

A(q) a + C(q, v) v + Q(q) + Gamma_f(v) = tau
"""

import numpy as np

import krang_dynamics as kd

np.set_printoptions(precision=2, suppress=True, linewidth=110)

robot = kd.load_robot('krang')
q = robot.home  # [rad]
v = np.full(robot.nv, 0.1)  # [rad/s]
a = np.full(robot.nv, 0.5)  # [rad/s2]

print(f'{robot.name}: {robot.nv} joints, {len(robot.actuated_joint_names)} with a motor')

# Each part of the equation, over robot.joint_names.
A = robot.mass_matrix(q)  # [kg m2], rotor inertia on the diagonal
C = robot.coriolis_matrix(q, v)  # [kg m2/s]
Q = robot.gravity_torque(q)  # [N m]
friction = robot.friction_torque(v)  # [N m]
print(f'gravity torque [N m]\n{Q}')

# Inverse dynamics is their sum.
tau = robot.inverse_dynamics(q, v, a, friction=True)  # [N m]
print(f'difference from the sum: {np.abs(tau - (A @ a + C @ v + Q + friction)).max():.1e} N m')

# Forward dynamics inverts it.
difference = robot.forward_dynamics(q, v, tau, friction=True) - a
print(f'acceleration after a round trip: off by {np.abs(difference).max():.1e} rad/s2')

# Q is the gradient of the potential energy: compare with a central difference.
step = 1e-6  # [rad]
numeric = [
    (robot.potential_energy(q + dq) - robot.potential_energy(q - dq)) / (2 * step)
    for dq in step * np.eye(robot.nv)
]
print(f'gravity torque against finite differences: {np.abs(Q - numeric).max():.1e} N m')

# A hand that presses with 30 N downwards loads the joints by J^T f.
press = {'left_hand': [0, 0, -30, 0, 0, 0]}  # force [N], moment [N m], world axes
print(f'torque of a 30 N press [N m]\n{robot.wrench_to_torque(q, press)}')

# The motor drivers of Krang take currents.
print(f'motor currents [A]\n{robot.motor_command(tau, v)}')
