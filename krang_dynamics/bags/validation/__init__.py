"""Measured torque against the model."""
