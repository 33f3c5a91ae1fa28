"""Scripted demonstrations on real topics, with criteria for their results. Importing this needs no ROS."""
