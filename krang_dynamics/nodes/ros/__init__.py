"""What the nodes need of rclpy: executor, parameters, lifecycle, QoS."""
