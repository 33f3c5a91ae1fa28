"""A running robot for the page: the newest messages of its topics, and its services and parameters."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped, WrenchStamped
from nav_msgs.msg import Odometry
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.parameter import Parameter
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Bool, String
from std_srvs.srv import SetBool, Trigger

from ..arrays import Array
from ..bags.observed_robot import ObservedRobot, Snapshot
from ..control.messages import topic_word
from ..control.node_state import NodeState
from ..robot.model import Robot
from .ros import qos
from .ros.discovery import find_controller, full_name
from .ros.executor import StaticExecutor, drain
from .ros.process import init

SEARCH_PERIOD = 1.0  # of the search for a controller [s]
ANSWER_TIMEOUT = 5.0  # of a service [s]
VALUES = ('torques', 'reference', 'external_torques')

Then = Callable[[bool, str], None]  # takes whether a request has succeeded, and the answer in words


class RobotWatch:
    """Subscriptions that are read 30 times per second, not at the rate of the messages.

    Queues have a depth of one, so the middleware drops what would not be shown, and nothing converts it.
    """

    is_live = True

    def __init__(self, robot: Robot, name: str | None = None, ros_args: Sequence[str] = ()) -> None:
        init(['--ros-args', *ros_args])
        self._watcher = rclpy.create_node('page')  # in no executor
        self._asker = rclpy.create_node('page_requests')
        self._executor = StaticExecutor(self._asker.context, self._asker.get_logger())
        self._executor.add_node(self._asker)
        self._robot = robot
        self._observed = ObservedRobot(robot)
        self._chosen = full_name(self._watcher, name)
        self.controller = ''  # the full name, once it was found
        self.problem = ''  # why no controller is shown
        self._searched_at = self._now = 0.0
        self._terms: set[str] = set()  # to whose topics there is a subscription
        self._clients: dict[str, Any] = {}
        self._pending: list[tuple[float, Any, str, Then]] = []  # requests without an answer yet
        self._requests: SimpleQueue[Callable[[], None]] = SimpleQueue()  # from other threads
        self._namespace = self._chosen.rpartition('/')[0] or self._watcher.get_namespace().rstrip('/')
        self._of_robot: list[Any] = []  # subscriptions
        self._of_controller: list[Any] = []
        self._stop_button: Any = None  # publisher, once an operator has come: observers publish nothing
        self._has_pressed = False  # whether this page holds the emergency stop
        self._targets: dict[str, Any] = {}  # publishers, by hand
        self._subscribe_to_robot()

    def poll(self) -> Snapshot:
        """Take the newest messages and the answers of services."""
        self._now = now = monotonic()
        if now - self._searched_at > SEARCH_PERIOD:
            self._searched_at = now
            self._search()
        drain(self._watcher)
        while not self._requests.empty():
            try:
                self._requests.get_nowait()()
            except Empty:
                break
        if self._pending:
            self._executor.spin_once(0)
            self._pending = [entry for entry in self._pending if not self._is_answered(*entry)]
        return self._observed.snapshot(now)

    def close(self) -> None:
        self._executor.shutdown()
        for node in (self._watcher, self._asker):
            node.destroy_node()
        rclpy.try_shutdown()

    # -- requests, from any thread -----------------------------------------------------------------------

    def operate(self) -> None:
        """An operator has opened the page: commands can be published from the next poll on."""
        self._requests.put(self._prepare_commands)

    def press_emergency_stop(self) -> None:
        """Published at once, in the thread of the caller."""
        self._has_pressed = True
        if self._stop_button is not None:
            self._stop_button.publish(Bool(data=True))

    def release_emergency_stop(self, then: Then) -> None:
        """Only if this page has pressed it and nobody else can have: `false` would release every switch."""
        self._requests.put(partial(self._release_stop, then))

    def _release_stop(self, then: Then) -> None:
        switches = self._asker.get_publishers_info_by_topic(self._stop_button.topic_name)
        others = [switch.node_name for switch in switches]
        others.remove(self._asker.get_name())
        if others:
            then(False, f'{", ".join(others)} can have pressed it too: release it there, or end that node')
        elif not self._has_pressed:
            then(False, 'this page has not pressed it; release the switch that has, or press it here first')
        else:
            self._has_pressed = False
            self._stop_button.publish(Bool(data=False))
            then(True, 'released; now clear the fault')

    def enable(self, on: bool, then: Then) -> None:
        self._ask(SetBool, f'{self.controller}/enable', SetBool.Request(data=on), then)

    def clear_fault(self, then: Then) -> None:
        """Of the guard first, because the controller faults again while its guard has a fault."""
        self._ask_both('clear_fault', then)

    def release(self, then: Then) -> None:
        self._ask_both('release', then)

    def set_parameters(self, values: Mapping[str, Any], then: Then) -> None:
        """Set live parameters of the controller, all or none."""
        request = SetParametersAtomically.Request()
        request.parameters = [Parameter(name, value=x).to_parameter_msg() for name, x in values.items()]
        self._ask(SetParametersAtomically, f'{self.controller}/set_parameters_atomically', request, then)

    @property
    def hands(self) -> Collection[str]:
        """End effectors for which the controller takes target poses."""
        return tuple(self._targets)

    def move_hand(self, frame: str, position: Array, quaternion: Array) -> None:
        """Publish the target pose of a hand [m, x y z w], relative to the root link."""
        message = PoseStamped()
        message.header.frame_id = self._robot.urdf.root
        place, turn = message.pose.position, message.pose.orientation
        place.x, place.y, place.z = position.tolist()
        turn.x, turn.y, turn.z, turn.w = quaternion.tolist()
        if (publisher := self._targets.get(frame)) is not None:
            publisher.publish(message)

    def _ask_both(self, service: str, then: Then) -> None:
        if self._observed.guard is not None:
            self._ask(Trigger, f'{self._guard}/{service}', Trigger.Request(), partial(_unless_done, then))
        self._ask(Trigger, f'{self.controller}/{service}', Trigger.Request(), then)

    def _ask(self, kind: Any, name: str, request: Any, then: Then) -> None:
        self._requests.put(partial(self._send, kind, name, request, then))

    def _send(self, kind: Any, name: str, request: Any, then: Then) -> None:
        if name not in self._clients:
            self._clients[name] = self._asker.create_client(kind, name)
        client = self._clients[name]
        if not client.wait_for_service(0.2):
            then(False, f'{name} is not available')
            return
        self._pending.append((monotonic() + ANSWER_TIMEOUT, client.call_async(request), name, then))

    def _is_answered(self, deadline: float, future: Any, name: str, then: Then) -> bool:
        if future.done():
            answer = future.result()
            result = getattr(answer, 'result', answer)
            is_set = hasattr(result, 'successful')
            then(result.successful if is_set else result.success, result.reason if is_set else result.message)
            return True
        if monotonic() > deadline:
            then(False, f'{name} has not answered within {ANSWER_TIMEOUT:g} s')
            return True
        return False

    # -- topics ------------------------------------------------------------------------------------------

    def _subscribe_to_robot(self) -> None:
        """Topics of the robot itself, in the namespace of its controller once that is known."""
        while self._of_robot:
            self._watcher.destroy_subscription(self._of_robot.pop())
        while self._targets:
            self._asker.destroy_publisher(self._targets.popitem()[1])
        take = self._observed

        def subscribe(kind: Any, name: str, on_message: Any, depth: Any, raw: bool = False) -> None:
            topic = f'{self._namespace}/{name}'
            new = self._watcher.create_subscription(kind, topic, self._on(on_message), depth, raw=raw)
            self._of_robot.append(new)

        # Deeper than one: each part of a robot may have a driver that publishes its joints.
        subscribe(JointState, 'joint_states', take.take_joint_states, qos.STATES, raw=True)
        subscribe(Imu, 'imu', take.take_imu, qos.NEWEST)
        subscribe(Odometry, 'odom', take.take_odom, qos.NEWEST)
        for frame in self._robot.config.end_effectors:
            on_wrench = partial(take.take_wrench, frame)
            subscribe(WrenchStamped, f'wrench/{topic_word(frame)}', on_wrench, qos.NEWEST)
        if self._stop_button is not None:
            self._asker.destroy_publisher(self._stop_button)
            self._add_stop_button()

    def _prepare_commands(self) -> None:
        if self._stop_button is None:
            self._add_stop_button()

    def _add_stop_button(self) -> None:
        topic = f'{self._namespace}/emergency_stop'
        self._stop_button = self._asker.create_publisher(Bool, topic, qos.LATCHED)
        if self._has_pressed:  # before there was this publisher
            self._stop_button.publish(Bool(data=True))

    def _search(self) -> None:
        """Find the controller, or the one that has replaced it, and the hands that it moves."""
        self._find_hands()
        if self.controller and self._watcher.count_publishers(f'{self.controller}/state'):
            return
        found, problem = find_controller(self._watcher, self._chosen)
        if found:
            self._follow(found)
        elif not self.controller:
            self.problem = problem

    def _find_hands(self) -> None:
        for frame in self._robot.config.end_effectors:
            topic = f'{self._namespace}/target_pose/{topic_word(frame)}'
            is_taken = self._stop_button is not None and self._watcher.count_subscribers(topic) > 0
            if is_taken and frame not in self._targets:
                self._targets[frame] = self._asker.create_publisher(PoseStamped, topic, qos.RELIABLE)
            elif not is_taken and frame in self._targets:
                self._asker.destroy_publisher(self._targets.pop(frame))

    def _follow(self, controller: str) -> None:
        """Subscribe to the topics of a controller and of the guard beside it."""
        while self._of_controller:
            self._watcher.destroy_subscription(self._of_controller.pop())
        self._terms.clear()
        namespace = controller.rpartition('/')[0]
        self.problem, self.controller, self._guard = '', controller, f'{namespace}/torque_guard'
        if namespace != self._namespace:
            self._namespace = namespace
            self._subscribe_to_robot()
        for kind, topic, take, profile in (
            (DiagnosticArray, '/diagnostics', self._on(self._observed.take_report), qos.RELIABLE),
            (String, f'{controller}/state', self._on_state, qos.LATCHED),
            (String, f'{self._guard}/state', self._on_guard, qos.LATCHED),
        ):
            self._of_controller.append(self._watcher.create_subscription(kind, topic, take, profile))
        for name in VALUES:
            self._subscribe_to_values(name)

    def _subscribe_to_values(self, topic: str) -> None:
        take = self._on(partial(self._observed.take_values, topic))
        name = f'{self.controller}/{topic}'
        new = self._watcher.create_subscription(JointState, name, take, qos.NEWEST, raw=True)
        self._of_controller.append(new)

    def _on(self, take: Callable[[Any, float], None]) -> Callable[[Any], None]:
        return lambda message: take(message, self._now)

    def _on_state(self, message: Any) -> None:
        state = NodeState.from_json(message.data)
        if state is None:
            return
        self._observed.controller = state
        for term in state.parameters.get('terms', ()):
            if term not in self._terms:
                self._terms.add(term)
                self._subscribe_to_values(f'terms/{term}')

    def _on_guard(self, message: Any) -> None:
        self._observed.guard = NodeState.from_json(message.data) or self._observed.guard


def _unless_done(then: Then, success: bool, text: str) -> None:
    """Pass on a failure alone: the success is reported by another request."""
    if not success:
        then(success, text)
