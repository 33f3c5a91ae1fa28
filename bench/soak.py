"""torque_controller at 1 kHz, Krang with all terms: memory, threads and files while it is used.

Every second it gets a parameter change, and every minute a disable and an enable. KRANG_SOAK_MINUTES is the
duration; default: an hour.
"""

import os
import time
from pathlib import Path

import node

MINUTES = int(os.environ.get('KRANG_SOAK_MINUTES', '60'))


def run():
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
    os.environ['ROS_DOMAIN_ID'] = str(1 + os.getpid() % 100)
    with node.Client() as client, node.answering('torque_controller', client) as process:
        for minute in range(1, MINUTES + 1):
            share = used_minute(client, minute)
            yield {'minute': minute, 'answered %': 100 * share, **figures(process.pid)}


def used_minute(client, minute):
    """Share of the states that are answered, with requests between them."""
    from rcl_interfaces.srv import SetParameters
    from rclpy.parameter import Parameter
    from std_srvs.srv import SetBool, Trigger

    shares, end = [], time.monotonic() + 60.0
    while time.monotonic() < end:
        shares.append(client.share_answered(1.0))
        damping = Parameter('damping', value=1.0 + 0.1 * (len(shares) % 5)).to_parameter_msg()
        request = SetParameters.Request(parameters=[damping])
        result = client.call(SetParameters, 'torque_controller/set_parameters', request).results[0]
        assert result.successful, f'minute {minute}: {result.reason}'
    client.call(SetBool, 'torque_controller/enable', SetBool.Request(data=False))
    client.call(Trigger, 'torque_controller/release', Trigger.Request())
    client.spin_states(1.0)
    limit = time.monotonic() + 20
    while not (
        answer := client.call(SetBool, 'torque_controller/enable', SetBool.Request(data=True))
    ).success:
        client.call(Trigger, 'torque_controller/clear_fault', Trigger.Request())
        assert time.monotonic() < limit, f'minute {minute}: {answer.message}'
    return sum(shares) / len(shares)


def figures(pid):
    """Resident memory [MB], threads and open files of a process, from /proc."""
    status = dict(
        line.split(':', 1) for line in Path(f'/proc/{pid}/status').read_text().splitlines() if ':' in line
    )
    files = len(list(Path(f'/proc/{pid}/fd').iterdir()))
    return {
        'megabytes': int(status['VmRSS'].split()[0]) / 1e3,
        'threads': int(status['Threads']),
        'files': files,
    }
