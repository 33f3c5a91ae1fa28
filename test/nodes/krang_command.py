"""A krang command as a process of the bench."""

import os
import signal
import subprocess

from nodes.bench import BIN


class Command:
    """Started with its arguments; killed with the bench, if it still runs."""

    def __init__(self, bench, *arguments):
        self.path = f'krang {arguments[0]}'
        self.bench = bench
        self._log = bench.folder / f'{arguments[0]}_{len(bench.processes)}.log'
        environment = {
            **os.environ,
            'ROS_DOMAIN_ID': str(bench.domain),
            'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST',
        }
        with self._log.open('w') as log:
            self.popen = subprocess.Popen(
                [str(BIN / 'krang'), *arguments], env=environment, stdout=log, stderr=log
            )
        bench.processes.append(self)

    @property
    def log(self):
        return self._log.read_text()

    def control_c(self):
        self.popen.send_signal(signal.SIGINT)
        return self.popen.wait(30)

    def kill(self):
        self.popen.kill()
        self.popen.wait()
