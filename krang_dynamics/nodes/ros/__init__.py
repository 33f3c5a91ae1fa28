"""Common parts of the nodes that use rclpy: executor, parameters, lifecycle, QoS."""
