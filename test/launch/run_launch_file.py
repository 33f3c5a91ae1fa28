"""Runs a launch file as `ros2 launch` does: python run_launch_file.py FILE name:=value ..."""

import signal
import sys

from launch import LaunchService
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import AnyLaunchDescriptionSource

signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell ignore it
path, *words = sys.argv[1:]
arguments = [tuple(word.split(':=', 1)) for word in words]
service = LaunchService()
service.include_launch_description(
    IncludeLaunchDescription(AnyLaunchDescriptionSource(path), launch_arguments=arguments)
)
sys.exit(service.run())
