"""How messages travel: without shared memory, and in memory that is freed, where the middleware is Fast DDS.

A process that is killed or frozen while it holds a lock of Fast DDS's shared memory blocks all publishers
of the processes that send to it, for a second. Over UDP its messages are dropped instead.
"""

from collections.abc import MutableMapping
from pathlib import Path

from ...robot.library import share

RANGE = 'ROS_AUTOMATIC_DISCOVERY_RANGE'
# The variable that names the profiles, by version of Fast DDS; 3 is that of Kilted.
PROFILES = {2: 'FASTRTPS_DEFAULT_PROFILES_FILE', 3: 'FASTDDS_DEFAULT_PROFILES_FILE'}
MEMORY = 'RMW_FASTRTPS_USE_QOS_FROM_XML'  # otherwise rmw_fastrtps ignores the profile's management of memory
# Who has set up the middleware by one of these keeps that set-up.
CHOICES = (*PROFILES.values(), 'FASTDDS_BUILTIN_TRANSPORTS', 'ROS_STATIC_PEERS')


def fast_dds_version() -> int:
    """The version that this process has loaded; its name has changed with version 3."""
    return 2 if 'libfastrtps.so' in Path('/proc/self/maps').read_text() else 3


def set_up_fast_dds(environment: MutableMapping[str, str], middleware: str, version: int) -> None:
    """Set the variables that Fast DDS of this version reads when ROS starts."""
    folder, profiles = share() / 'config' / 'fastdds' / str(version), PROFILES[version]
    localhost = str(folder / 'localhost.xml')
    own = (None, '', localhost)  # a parent process may have set that profile
    if 'fastrtps' not in middleware or any(environment.get(name) not in own for name in CHOICES):
        return
    if environment.get(RANGE) == 'LOCALHOST':
        environment[RANGE] = 'SYSTEM_DEFAULT'  # rmw_fastrtps would add shared memory to the profile
        environment[profiles] = localhost
    elif not environment.get(profiles):
        environment[profiles] = str(folder / 'network.xml')
    environment.setdefault(MEMORY, '1')
