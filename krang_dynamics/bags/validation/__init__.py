"""Measured torque compared with the model."""
