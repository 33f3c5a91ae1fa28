"""Generation of the files that Gazebo needs for a robot."""
