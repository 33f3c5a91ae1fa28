"""Settings that all tests share."""

import os
from contextlib import suppress

from krang_dynamics.nodes.ros.transport import fast_dds_version, set_up_fast_dds

# Tests that start ROS nodes stay on this machine.
os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
# A test with ROS in its own process discovers nodes as fast as they discover each other.
with suppress(ImportError):  # without ROS
    import rclpy

    set_up_fast_dds(os.environ, rclpy.get_rmw_implementation_identifier(), fast_dds_version())
# Each worker has a domain of its own, apart from those that a harness claims.
os.environ['ROS_DOMAIN_ID'] = str(102 + os.getpid() % 100)
# Threads of BLAS would compete with the other worker, for matrices that are small.
os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')


def pytest_collection_modifyitems(config, items):
    """Long campaigns run only where the expression of -m names them."""
    if 'long' in config.option.markexpr:
        return
    long = [item for item in items if item.get_closest_marker('long')]
    items[:] = [item for item in items if item not in long]
    config.hook.pytest_deselected(items=long)
