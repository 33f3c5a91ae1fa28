"""A krang command as a process of the harness."""

import os
import signal
import subprocess

from nodes.harness import BIN


class Command:
    """Started with its arguments; killed at the end of the harness, if it still runs."""

    def __init__(self, harness, *arguments, stdin=''):
        self.path = f'krang {arguments[0]}'
        self.harness = harness
        self._log = harness.folder / f'{arguments[0]}_{len(harness.processes)}.log'
        self.environment = {
            **os.environ,
            'ROS_DOMAIN_ID': str(harness.domain),
            'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST',
        }
        with self._log.open('w') as log:
            self.popen = subprocess.Popen(
                [str(BIN / 'krang'), *arguments],
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                text=True,
            )
        self.popen.stdin.write(stdin)
        self.popen.stdin.close()
        harness.processes.append(self)

    @property
    def log(self):
        return self._log.read_text()

    def control_c(self):
        self.popen.send_signal(signal.SIGINT)
        return self.popen.wait(30)

    def kill(self):
        self.popen.kill()
        self.popen.wait()
