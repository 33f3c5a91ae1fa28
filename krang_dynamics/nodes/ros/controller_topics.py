"""Topics that a controller publishes: first the command, then the torques and terms behind it."""

from typing import Any

import numpy as np
from rclpy.duration import Duration
from rclpy.lifecycle import LifecycleNode
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from ...bags.io.command_message import CommandCodec, Stamp
from ...bags.io.joint_state_codec import JointStateWriter
from ...control.controller import Outputs, TorqueController
from . import qos

FLUSH = Duration(seconds=0.5)  # longest wait for subscribers that do not acknowledge


class ControllerTopics:
    """effort_commands and ~/torques; ~/external_torques with an observer; optionally terms and reference.

    Nothing is published unless the node is active, and apart from commands nothing that no node receives.
    """

    def __init__(self, node: LifecycleNode, controller: TorqueController, with_terms: bool) -> None:
        names, joints = controller.command_joints, controller.robot.joint_names
        self._rows = np.array([joints.index(name) for name in names], dtype=np.intp)
        self._commands = node.create_lifecycle_publisher(Float64MultiArray, 'effort_commands', qos.COMMANDS)
        self._torques = node.create_lifecycle_publisher(JointState, '~/torques', qos.RELIABLE)
        self._terms = {
            term.name: node.create_lifecycle_publisher(JointState, f'~/terms/{term.name}', qos.RELIABLE)
            for term in (controller.terms if with_terms else ())
        }
        self._external = node.create_lifecycle_publisher(JointState, '~/external_torques', qos.RELIABLE)
        self._reference = node.create_lifecycle_publisher(JointState, '~/reference', qos.RELIABLE)
        self._with_terms = with_terms
        self.publishers = [
            self._commands, self._torques, self._external, self._reference, *self._terms.values(),
        ]  # fmt: skip
        self.command_topic = self._commands.topic_name
        self.torque_topic = self._torques.topic_name
        self._command = CommandCodec(controller.drivers.names)
        self._torque = JointStateWriter(names, ('effort',))
        self._term = JointStateWriter(joints, ('effort',))
        self._desired = JointStateWriter(joints, ('position', 'velocity'))

    def send(self, outputs: Outputs, times: tuple[Stamp, Stamp, Stamp]) -> bytes | None:
        """Publish the command, labelled with state, step and clock; returns its bytes, if any."""
        if outputs.command is None:
            return None
        command = self._command.labelled(times, outputs.command)
        self._commands.publish(command)
        return command

    def explain(self, outputs: Outputs, stamp: Stamp) -> bytes:
        """Publish the command in N m, terms, reference and external torque, with the state's stamp."""
        assert outputs.torque is not None
        torque = self._torque.stamped(stamp, outputs.torque[self._rows])
        if _is_received(self._torques):
            self._torques.publish(torque)
        for name, publisher in self._terms.items():
            if name in outputs.terms and _is_received(publisher):
                publisher.publish(self._term.stamped(stamp, outputs.terms[name]))
        if self._with_terms and outputs.reference is not None and _is_received(self._reference):
            self._reference.publish(self._desired.stamped(stamp, *outputs.reference))
        if outputs.external is not None and _is_received(self._external):
            self._external.publish(self._term.stamped(stamp, outputs.external))
        return torque

    @property
    def is_received(self) -> bool:
        """Whether a node subscribes to the commands."""
        return _is_received(self._commands)

    def flush(self) -> None:
        """Wait until the last command has arrived: the end of a process discards its messages."""
        self._commands.wait_for_all_acked(FLUSH)


def _is_received(publisher: Any) -> bool:
    """Whether a node subscribes to the topic; to publish costs twenty times as much as to look."""
    return bool(publisher.get_subscription_count())
