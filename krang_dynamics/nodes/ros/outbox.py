"""The publishers of a controller: commands first, what is said about them afterwards."""

import numpy as np
from rclpy.duration import Duration
from rclpy.lifecycle import LifecycleNode
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from ...bags.io.joint_state_codec import JointStateWriter
from ...control.controller import Outputs, TorqueController
from . import qos
from .command_message import CommandTemplate, Stamp
from .flight_recorder import FlightRecorder

LAST_WORDS = Duration(seconds=0.5)  # patience with drivers that do not listen


class Outbox:
    """effort_commands and ~/torques; ~/external_torques with an observer; on request terms and reference.

    All are silent unless the node is active.
    """

    def __init__(self, node: LifecycleNode, controller: TorqueController, with_terms: bool) -> None:
        names, drivers = controller.command_joints, controller.drivers.names
        self._rows = np.array([controller.robot.joint_names.index(name) for name in names], dtype=np.intp)
        self._commands = node.create_lifecycle_publisher(Float64MultiArray, 'effort_commands', qos.COMMANDS)
        self._torques = node.create_lifecycle_publisher(JointState, '~/torques', qos.RELIABLE)
        self._terms = {
            term.name: node.create_lifecycle_publisher(JointState, f'~/terms/{term.name}', qos.RELIABLE)
            for term in (controller.terms if with_terms else ())
        }
        self._external = node.create_lifecycle_publisher(JointState, '~/external_torques', qos.RELIABLE)
        self._reference = node.create_lifecycle_publisher(JointState, '~/reference', qos.RELIABLE)
        self._with_terms = with_terms
        others = (self._torques, self._external, self._reference, *self._terms.values())
        self.publishers = [self._commands, *others]
        self.command_topic = self._commands.topic_name
        self.torque_topic = self._torques.topic_name
        self._command = CommandTemplate(drivers)
        self._torque = JointStateWriter(names, ('effort',))
        joints = controller.robot.joint_names
        self._term = JointStateWriter(joints, ('effort',))
        self._desired = JointStateWriter(joints, ('position', 'velocity'))

    def send(self, outputs: Outputs, stamp: Stamp) -> bytes | None:
        """Publish the command, with the stamp of the state that caused it; the message, None without one."""
        if outputs.command is None:
            return None
        command = self._command.answering(stamp, outputs.command)
        self._commands.publish(command)
        return command

    def tell(self, outputs: Outputs, stamp: Stamp) -> bytes:
        """Publish the same in N m, and its terms, with that stamp."""
        assert outputs.torque is not None
        torque = self._torque.stamped(stamp, outputs.torque[self._rows])
        self._torques.publish(torque)
        for name, publisher in self._terms.items():
            if name in outputs.terms:
                publisher.publish(self._term.stamped(stamp, outputs.terms[name]))
        if self._with_terms and outputs.reference is not None:
            self._reference.publish(self._desired.stamped(stamp, *outputs.reference))
        if outputs.external is not None:
            self._external.publish(self._term.stamped(stamp, outputs.external))
        return torque

    def flush(self) -> None:
        """Wait until the last command has arrived: a process that ends takes its messages along."""
        self._commands.wait_for_all_acked(LAST_WORDS)

    def announce(self, recorder: FlightRecorder) -> None:
        recorder.add_topic(self.command_topic, Float64MultiArray)
        recorder.add_topic(self.torque_topic, JointState)
