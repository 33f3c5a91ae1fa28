"""The robot model: from a URDF and a robot file to the equations of motion."""
