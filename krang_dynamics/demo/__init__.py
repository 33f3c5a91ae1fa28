"""Demonstrations: a robot's story on real topics, and whether every bound of it held."""
