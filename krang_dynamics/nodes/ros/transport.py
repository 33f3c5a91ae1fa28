"""How messages travel: without shared memory, and in memory that is freed, where the middleware is Fast DDS.

A process that is killed or frozen while it holds a lock of Fast DDS's shared memory blocks all publishers
of the processes that send to it, for a second. Over UDP its messages are dropped instead.
"""

from collections.abc import MutableMapping

from ...robot.library import share

RANGE, PROFILES = 'ROS_AUTOMATIC_DISCOVERY_RANGE', 'FASTRTPS_DEFAULT_PROFILES_FILE'
MEMORY = 'RMW_FASTRTPS_USE_QOS_FROM_XML'  # otherwise rmw_fastrtps ignores the profile's management of memory
# Who has set up the middleware by one of these keeps that set-up.
CHOICES = (PROFILES, 'FASTDDS_DEFAULT_PROFILES_FILE', 'FASTDDS_BUILTIN_TRANSPORTS', 'ROS_STATIC_PEERS')


def set_up_fast_dds(environment: MutableMapping[str, str], middleware: str) -> None:
    """Set the variables that Fast DDS reads when ROS starts."""
    folder = share() / 'config' / 'fastdds'
    localhost = str(folder / 'localhost.xml')
    own = (None, '', localhost)  # a parent process may have set that profile
    if 'fastrtps' not in middleware or any(environment.get(name) not in own for name in CHOICES):
        return
    if environment.get(RANGE) == 'LOCALHOST':
        environment[RANGE] = 'SYSTEM_DEFAULT'  # rmw_fastrtps would add shared memory to the profile
        environment[PROFILES] = localhost
    elif not environment.get(PROFILES):
        environment[PROFILES] = str(folder / 'network.xml')
    environment.setdefault(MEMORY, '1')
