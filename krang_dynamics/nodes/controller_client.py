"""A running controller from outside: its name, services, parameters and joint states."""

import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import monotonic, sleep
from typing import Any

import rclpy
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.node import Node
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from ..bags.io.joint_state_codec import JointStateReader
from ..errors import KrangError
from ..safety.joint_buffer import JointSamples
from .ros import qos
from .ros.discovery import find_controller, full_name
from .ros.process import init

TIMEOUT = 10.0  # of discovery and of services [s]
PAUSE = 0.002  # between two turns [s]


class ControllerClient:
    """The only controller that runs, or the one of a name."""

    def __init__(self, node: Node, name: str | None) -> None:
        self._node = node
        self.name = self._found(name)
        self.samples: list[JointSamples] = []  # joint states since the last look
        self._reader = JointStateReader()
        namespace = self.name.rpartition('/')[0]
        node.create_subscription(
            JointState, f'{namespace}/joint_states', self._on_states, qos.STATES, raw=True
        )

    def turn(self) -> None:
        """Receive what has arrived."""
        rclpy.spin_once(self._node, timeout_sec=PAUSE)

    def trigger(self, service: str) -> tuple[bool, str]:
        """Call a std_srvs/Trigger of the controller."""
        answer = self._call(Trigger, f'{self.name}/{service}', Trigger.Request())
        return answer.success, answer.message

    def set_parameters(self, values: Mapping[str, Any]) -> None:
        """Change parameters, all or none; KrangError if they are refused."""
        request = SetParametersAtomically.Request()
        request.parameters = [Parameter(name, value=x).to_parameter_msg() for name, x in values.items()]
        result = self._call(SetParametersAtomically, f'{self.name}/set_parameters_atomically', request).result
        if not result.successful:
            raise KrangError(f'{self.name}: {result.reason}')

    def _found(self, name: str | None) -> str:
        wanted = full_name(self._node, name)
        deadline = monotonic() + TIMEOUT
        while not (found := find_controller(self._node, wanted))[0]:
            if monotonic() > deadline:
                raise KrangError(found[1])
            sleep(0.05)
        return found[0]

    def _on_states(self, data: bytes) -> None:
        try:
            self.samples.append(self._reader.read(data, monotonic()))
        except KrangError:  # not a joint state: the controller reports it
            return

    def _call(self, kind: Any, name: str, request: Any) -> Any:
        client = self._node.create_client(kind, name)
        deadline = monotonic() + TIMEOUT
        while not client.service_is_ready() and monotonic() < deadline:
            self.turn()
        future = client.call_async(request)
        while not future.done() and monotonic() < deadline:
            self.turn()
        self._node.destroy_client(client)
        if not future.done():
            raise KrangError(f'{name} did not respond within {TIMEOUT:g} s')
        return future.result()


@contextmanager
def connected(name: str | None, ros_args: Sequence[str]) -> Iterator[ControllerClient]:
    """A client for one command."""
    init(['--ros-args', *ros_args])
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where a shell ignores it
    node = rclpy.create_node('controller_client')
    try:
        yield ControllerClient(node, name)
    finally:
        node.destroy_node()
        rclpy.try_shutdown()
