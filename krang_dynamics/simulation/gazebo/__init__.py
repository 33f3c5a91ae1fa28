"""Gazebo's files, generated from a robot's own."""
