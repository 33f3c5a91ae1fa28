"""Parameters of the process rather than of the controller."""

import os
from pathlib import Path

from ...control.parameters import Parameter

FLIGHTS = str(Path(os.environ.get('ROS_HOME', '~/.ros')) / 'flights')
EXECUTORS = ('static', 'single', 'events')

PROCESS_PARAMETERS = (
    Parameter('executor', 'text', 'static', 'what turns the callbacks', choices=EXECUTORS),
    Parameter('thread_priority', 'whole', 0, 'SCHED_FIFO priority, 0: an ordinary process', 0, 99),
    Parameter('lock_memory', 'flag', False, 'whether memory is kept from being swapped out'),
    Parameter('cpu_affinity', 'wholes', None, 'CPUs that the process may run on; default: all', 0, 1023),
)
NODE_PARAMETERS = (
    *PROCESS_PARAMETERS,
    Parameter('auto_enable', 'flag', False, 'enable once after activation, without being asked'),
    Parameter('publish_terms', 'flag', False, 'whether each term is published by itself'),
    Parameter('flight_recorder', 'text', FLIGHTS, 'folder of the bags of faults; empty: none'),
)
