"""What has come of the robot's state since the last step, as bytes."""

from ...bags.io.joint_state_codec import JointStateReader
from ...control.state_collector import StateCollector
from ...robot.model import Robot


class Inbox(StateCollector):
    """Takes joint states as DDS carries them."""

    def __init__(self, robot: Robot) -> None:
        super().__init__(robot)
        self._reader = JointStateReader()
        self.stamp = (0, 0)  # of the newest joint state [s, ns], 0 where it has none

    def take_states(self, data: bytes, arrival: float) -> bool:
        """Keep a joint_states message; whether all that a step needs has come since the last one."""
        sample = self._reader.read(data, arrival)
        self.stamp = self._reader.stamp
        return self.take_sample(sample)
