"""What the machine is: URDF and robot file in, equations of motion out."""
