"""Nodes as child processes that never outlive this process.

The child is `python -m krang_dynamics.scenarios.processes NODE PARENT ...`, which runs that node.
"""

import ctypes
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import yaml

END_TIMEOUT = 8.0  # after SIGTERM to a node [s]
DOMAINS = range(1, 102)  # of ROS, whose ports no operating system uses for other purposes
PARTICIPANTS = 8  # of a domain whose ports are tried
SIGNALS = (signal.SIGINT, signal.SIGTERM)
PR_SET_PDEATHSIG = 1  # of prctl(2)


def private_domain() -> None:
    """Restrict discovery to this machine, and to a domain that nobody uses unless ROS_DOMAIN_ID is set."""
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
    domains = random.sample(DOMAINS, len(DOMAINS))
    os.environ.setdefault('ROS_DOMAIN_ID', str(next(filter(_is_free, domains), domains[0])))


def _is_free(domain: int) -> bool:
    """Whether no process of this machine has one of the first ports of a ROS domain."""
    for participant in range(PARTICIPANTS):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as port:
            try:
                port.bind(('', 7410 + 250 * domain + 2 * participant))  # by the DDSI-RTPS standard
            except OSError:
                return False
    return True


@contextmanager
def signals_as(handler: Any) -> Iterator[None]:
    """Handle SIGINT and SIGTERM by `handler`, also if SIGINT was ignored at the start (nohup, `&`)."""
    before = {number: signal.signal(number, handler) for number in SIGNALS}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


class Processes:
    """A context that starts nodes, and ends them in the order of their start."""

    def __init__(self, is_logged: bool = True) -> None:
        self._is_logged = is_logged  # whether the output of the nodes goes to files
        self._folder = TemporaryDirectory(prefix='krang_')
        self._running: list[tuple[str, subprocess.Popen[bytes]]] = []

    def __enter__(self) -> 'Processes':
        return self

    def __exit__(self, *error: object) -> None:
        with signals_as(signal.SIG_IGN):  # a second ^C must not interrupt this
            for _, process in self._running:
                _end(process)
            self._folder.cleanup()

    def start(self, node: str, parameters: Mapping[str, Any], *arguments: str) -> None:
        """Start krang_dynamics.nodes.<node> with ROS parameters and arguments."""
        file = Path(self._folder.name) / f'{node}.yaml'
        values = {name: _plain(value) for name, value in parameters.items()}
        file.write_text(yaml.safe_dump({'/**': {'ros__parameters': values}}), encoding='utf-8')
        child = [sys.executable, '-m', 'krang_dynamics.scenarios.processes', node, str(os.getpid())]
        with self._log(node).open('wb') as log:
            process = subprocess.Popen(
                [*child, '--ros-args', '--params-file', str(file), *arguments],
                stdout=log if self._is_logged else None,
                stderr=subprocess.STDOUT if self._is_logged else None,
                start_new_session=True,  # ^C reaches this process alone, which ends the nodes in order
            )
        self._running.append((node, process))

    def dead(self) -> str | None:
        """The first node that has ended, with the last line of its log; None while all run."""
        for node, process in self._running:
            if process.poll() is not None:
                lines = self.log(node).strip().splitlines() or ['see its output']
                return f'{node} ended with status {process.returncode}: {lines[-1]}'
        return None

    def write_logs(self, file: Path) -> None:
        """Write the output of all nodes to a file."""
        parts = [f'# {node}\n{self.log(node)}' for node, _ in self._running]
        file.write_text('\n'.join(parts), encoding='utf-8')

    def log(self, node: str) -> str:
        """The output of a node so far."""
        return self._log(node).read_text(errors='replace')

    def _log(self, node: str) -> Path:
        return Path(self._folder.name) / f'{node}.log'


def end_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent ends, even by SIGKILL (Linux only)."""
    if sys.platform != 'linux':
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # the parent ended before the call
        sys.exit(f'process {parent} has ended')


def _end(process: subprocess.Popen[bytes]) -> None:
    # SIGTERM, not SIGINT: it also ends a node that has not installed its handlers yet.
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            process.send_signal(number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(END_TIMEOUT)
            return


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def _run_node(node: str, parent: str, *arguments: str) -> None:
    end_with_parent(int(parent))
    import_module(f'krang_dynamics.nodes.{node}').main(list(arguments))


if __name__ == '__main__':
    _run_node(*sys.argv[1:])
