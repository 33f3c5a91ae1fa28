"""Lifecycle transitions that cannot end the process."""

import traceback
from typing import Any

from rclpy.lifecycle import LifecycleNode, TransitionCallbackReturn

DONE, FAILED = TransitionCallbackReturn.SUCCESS, TransitionCallbackReturn.FAILURE


def guard_transitions(node: LifecycleNode) -> None:
    """Log exceptions of transitions, which rclpy swallows, and refuse transitions that do not exist.

    rclpy lets the latter's exception end the process, in whatever state the robot is.
    """
    for state, callback in node._callbacks.items():
        node._callbacks[state] = _logged(node, callback)
    service = node._service_change_state
    service.callback = _refusing(node, service.callback)


def _logged(node: LifecycleNode, callback: Any) -> Any:
    def transition(state: Any) -> TransitionCallbackReturn:
        try:
            return callback(state)
        except Exception:
            node.get_logger().error(traceback.format_exc())
            raise

    return transition


def _refusing(node: LifecycleNode, callback: Any) -> Any:
    def change_state(request: Any, response: Any) -> Any:
        try:
            return callback(request, response)
        except Exception as error:  # RCLError: no such transition from here
            node.get_logger().warning(f'transition refused: {error}')
            response.success = False
            return response

    return change_state
