"""Fixtures that all tests share."""

import os

# Tests that start ROS nodes stay on this machine, whoever starts pytest.
os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
