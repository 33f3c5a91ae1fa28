"""Your own robot: any URDF works as it is; a robot file adds what a URDF cannot describe."""

import tempfile
from pathlib import Path

import numpy as np

import krang_dynamics as kd

URDF = """
<robot name="lift">
  <link name="base"/>
  <link name="carriage">
    <inertial><mass value="4"/><inertia ixx="0.02" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
  <link name="arm">
    <inertial>
      <origin xyz="0.3 0 0"/><mass value="1.5"/>
      <inertia ixx="0.001" iyy="0.04" izz="0.04" ixy="0" ixz="0" iyz="0"/>
    </inertial>
  </link>
  <joint name="column" type="prismatic">
    <parent link="base"/><child link="carriage"/><axis xyz="0 0 1"/>
    <limit lower="0" upper="1" effort="200" velocity="1"/>
  </joint>
  <joint name="shoulder" type="revolute">
    <parent link="carriage"/><child link="arm"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" effort="20" velocity="3"/>
  </joint>
</robot>
"""

ROBOT_FILE = """
name: lift
urdf: lift.urdf
command_unit: current                # the drivers take A
joints:
  column: {driven: true, motor: {gear: 50, rotor_inertia: 1e-4, torque_constant: 0.1}}
  shoulder: {driven: true, nominal_torque: 12, motor: {gear: 80, rotor_inertia: 2e-5, torque_constant: 0.05}}
friction:
  viscous: {column: 30.0, shoulder: 0.2}    # N s/m, N m s/rad
home: {column: 0.5, shoulder: 0.3}
end_effectors: [arm]
stop: {policy: lower}
actuators:
  - {name: column_drive, joint: column}
  - {name: shoulder_drive, joint: shoulder, sign: -1}    # mounted the other way round
"""

# A URDF alone: every joint is driven in N m (N for a prismatic joint).
bare = kd.load_robot(URDF)
print(bare.name, bare.joint_names, 'gravity', bare.gravity_torque([0.5, 0.3]).round(2))

with tempfile.TemporaryDirectory() as folder:
    Path(folder, 'lift.urdf').write_text(URDF)
    Path(folder, 'lift.yaml').write_text(ROBOT_FILE)
    robot = kd.load_robot(Path(folder, 'lift.yaml'))

# Geared rotors are most of the inertia: N^2 J_m = 0.25 kg on the column, 0.13 kg m2 on the shoulder.
print('mass matrix\n', robot.mass_matrix(robot.home).round(3))
tau = robot.gravity_torque(robot.home)
print('currents that hold it [A]', robot.motor_command(tau, np.zeros(2)).round(3))

# Errors name the value and the valid ones.
try:
    robot.jacobian(robot.home, 'hand')
except kd.KrangError as error:
    print('error:', error)
