"""Nodes as processes of their own, which are ended whatever happens."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import yaml

PATIENCE = 8.0  # with a node that was asked to end [s]


def private_domain() -> None:
    """Keep discovery on this machine, and to ourselves unless a domain was chosen."""
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
    os.environ.setdefault('ROS_DOMAIN_ID', str(random.randint(1, 101)))


class Processes:
    """A context that starts nodes and ends them, the first one first."""

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix='krang_')
        self._running: list[tuple[str, subprocess.Popen[bytes]]] = []

    def __enter__(self) -> 'Processes':
        return self

    def __exit__(self, *error: object) -> None:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second ^C would leave nodes behind
        for _, process in self._running:
            _end(process)
        self._folder.cleanup()
        signal.signal(signal.SIGINT, before)

    def start(self, node: str, parameters: Mapping[str, Any], *arguments: str) -> None:
        """Start krang_dynamics.nodes.<node>; what it says goes into a log."""
        file = Path(self._folder.name) / f'{node}.yaml'
        values = {name: _plain(value) for name, value in parameters.items()}
        file.write_text(yaml.safe_dump({'/**': {'ros__parameters': values}}), encoding='utf-8')
        command = [
            sys.executable,
            '-m',
            f'krang_dynamics.nodes.{node}',
            '--ros-args',
            '--params-file',
            str(file),
        ]
        with self._log(node).open('wb') as log:
            process = subprocess.Popen(
                [*command, *arguments],
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a ^C is for us; nodes are ended in order
            )
        self._running.append((node, process))

    def dead(self) -> str | None:
        """The first node that is no more, and its last words."""
        for node, process in self._running:
            if process.poll() is not None:
                lines = self._log(node).read_text(errors='replace').strip().splitlines() or [
                    'it said nothing'
                ]
                return f'{node} ended with status {process.returncode}: {lines[-1]}'
        return None

    def log(self, node: str) -> str:
        """All that a node has said."""
        return self._log(node).read_text(errors='replace')

    def _log(self, node: str) -> Path:
        return Path(self._folder.name) / f'{node}.log'


def _end(process: subprocess.Popen[bytes]) -> None:
    for number, patience in ((signal.SIGINT, PATIENCE), (signal.SIGKILL, PATIENCE)):
        with suppress(ProcessLookupError):
            process.send_signal(number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience)
            return


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value
