"""What torque to ask for: terms that turn a state and a reference into joint torques."""
