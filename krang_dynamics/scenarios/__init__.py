"""Demonstrations: a robot's scenario on real topics, and whether every bound of it held."""
