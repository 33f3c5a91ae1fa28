"""Memory of a controller over a million steps on Krang, all terms; it takes about two minutes."""

import gc

from tick import controller_at_work, inputs

import krang_dynamics as kd

STEPS = 1_000_000


def run():
    robot = kd.load_robot('krang')
    controller, now = controller_at_work(robot)
    for k in range(STEPS + 1):
        controller.step(inputs(robot, now + 1e-3 * k))
        if k in (STEPS // 100, STEPS // 10, STEPS):
            gc.collect()
            yield {'steps': k, 'megabytes': resident()}


def resident():
    """Resident memory of this process [MB], from /proc."""
    with open('/proc/self/statm') as file:
        return int(file.read().split()[1]) * 4096 / 1e6
