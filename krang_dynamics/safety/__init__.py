"""What stands between torque terms and motors; pure, with the time passed in."""
