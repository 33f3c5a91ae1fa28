"""From inputs to torque, without ROS and without a clock."""
