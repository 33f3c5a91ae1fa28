"""rosbag2 files and the messages in them."""
