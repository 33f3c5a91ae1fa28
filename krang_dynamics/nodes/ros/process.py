"""A node as a process: start, signals, and an end that runs the stop policy."""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any

import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.logging import LoggingSeverity, set_logger_level
from rclpy.signals import SignalHandlerOptions

from ...errors import KrangError
from .executor import make_executor
from .realtime import return_large_blocks, set_up
from .transport import fast_dds_version, set_up_fast_dds

SIGNALS = (signal.SIGINT, signal.SIGTERM)
LONGEST_WAIT = 0.05  # after which signals are checked [s]


def init(args: Sequence[str] | None = None) -> None:
    """rclpy.init without signal handlers; KrangError if the ROS arguments are wrong.

    rclpy's own handler would shut the context down before the robot has come to rest.
    """
    return_large_blocks()
    set_up_fast_dds(os.environ, rclpy.get_rmw_implementation_identifier(), fast_dds_version())
    set_logger_level('rcl', LoggingSeverity.FATAL)  # it would log a wrong argument in a line of its own
    try:
        rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
    except Exception as error:  # RCLError and similar ones, which are private
        reason = str(error).removeprefix('failed to initialize rcl: ').partition(', at /')[0]
        unknown = 'unknown: ' if type(error).__name__ == 'UnknownROSArgsError' else ''
        raise KrangError(f'ROS arguments: {unknown}{" ".join(reason.split())}') from None
    finally:
        set_logger_level('rcl', LoggingSeverity.UNSET)


def run(make_node: Callable[[], Any], args: Sequence[str] | None = None) -> int:
    """Spin a node until SIGINT, SIGTERM or an exception; returns the exit status."""
    try:
        init(args)
    except KrangError as error:
        print(f'krang: {error}', file=sys.stderr)
        return 2
    signals: list[int] = []
    for number in SIGNALS:
        signal.signal(number, lambda number, _: signals.append(number))
    try:
        node = make_node()
    except Exception as error:  # usually a wrong parameter: one line is enough
        kind = '' if isinstance(error, KrangError) else f'{type(error).__name__}: '
        print(f'krang: {kind}{error}', file=sys.stderr)
        rclpy.try_shutdown()
        return 2
    return _spin(node, signals)


def _spin(node: Any, signals: list[int]) -> int:
    log = node.get_logger()
    status = 0
    try:
        kind, busy_wait = node.executor_kind()
        executor = make_executor(kind, node.context, log, busy_wait)
        executor.add_node(node)
        for warning in set_up(*node.real_time()):
            log.warning(warning)
        while not signals and node.context.ok():
            executor.spin_once(LONGEST_WAIT)
    except ExternalShutdownException:
        pass
    except KrangError as error:
        log.fatal(str(error))
        status = 2
    except BaseException as error:  # of any kind: the robot must be stopped
        log.fatal(f'{type(error).__name__}: {error}; stopping')
        status = 1
    try:
        node.finish()
    finally:
        for number in SIGNALS:  # the robot is at rest: a second ^C changes nothing
            signal.signal(number, signal.SIG_IGN)
        if signals:
            log.info(f'{signal.Signals(signals[0]).name}: stopped')
        node.destroy_node()
        rclpy.try_shutdown()
    return status
