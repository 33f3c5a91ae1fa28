"""A simulated robot with its controller and guard as processes, like simulation.launch.py without launch."""

import signal
from collections.abc import Mapping, Sequence
from time import sleep
from typing import Any

from ..errors import KrangError
from .processes import Processes, signals_as

NEXT = '^C ends; in other terminals: krang send FILE, krang record --out BAG, krang view'
POLL = 0.2  # period at which the processes are checked [s]


def run_simulation(simulator: Mapping[str, Any], terms: Sequence[str], ros_args: Sequence[str] = ()) -> int:
    """Run until ^C; `simulator` has the parameters of that node. KrangError if a node ends before."""
    shared = {'robot': simulator['robot'], 'wheels_locked': True}
    controller = {
        'terms': list(terms), 'guard': 'torque_guard', 'auto_activate': True, 'auto_enable': True,
    }  # fmt: skip
    on_clock = {**shared, 'use_sim_time': True}
    guarded = ('-r', 'effort_commands:=guarded/effort_commands')
    print(f'{NEXT} {simulator["robot"]}', flush=True)
    with signals_as(signal.default_int_handler), Processes(is_logged=False) as processes:
        processes.start('torque_controller', {**on_clock, **controller})
        processes.start('torque_guard', on_clock)
        processes.start('simulator', {**shared, **simulator, 'publish_clock': True}, *guarded, *ros_args)
        try:
            while (dead := processes.dead()) is None:
                sleep(POLL)
        except KeyboardInterrupt:
            return 0
        raise KrangError(dead)
