"""ROS 2 nodes around the library: parameters, messages, lifecycle, executor."""
