"""Small helpers of the simulation's tests: drive a plant, and robots that no file ships."""

import numpy as np
from scipy.integrate import solve_ivp

DT = 1e-3  # [s]


def drive(plant, torque, seconds, dt=DT):
    """Step with u = torque(t, plant) [N m]; the plant, for chaining."""
    for k in range(round(seconds / dt)):
        plant.step(torque(k * dt, plant), dt)
    return plant


def free(time, plant):
    """No motor torque."""
    return np.zeros(len(plant.robot.actuated_joint_names))


def truth(acceleration, q, v, seconds):
    """q and v by another integrator, of order 8, for a(t, q, v)."""
    n = len(q)

    def rate(t, x):
        return np.concatenate([x[n:], acceleration(t, x[:n], x[n:])])

    x = solve_ivp(rate, (0, seconds), np.concatenate([q, v]), method='DOP853', rtol=1e-11, atol=1e-11).y[
        :, -1
    ]
    return x[:n], x[n:]


def one_joint(inertia=2.0, damping=0.0, friction=0.0, limits='lower="-9" upper="9"'):
    """A wheel of `inertia` [kg m2] about the vertical; nothing but its friction acts on it."""
    return f"""<robot name="wheel"><link name="stand"/>
      <link name="rim"><inertial><mass value="1"/>
        <inertia ixx="{inertia}" iyy="{inertia}" izz="{inertia}" ixy="0" ixz="0" iyz="0"/></inertial></link>
      <joint name="spin" type="revolute"><parent link="stand"/><child link="rim"/><axis xyz="0 0 1"/>
        <limit {limits} effort="100" velocity="100"/>
        <dynamics damping="{damping}" friction="{friction}"/></joint></robot>"""
