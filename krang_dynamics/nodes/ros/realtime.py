"""Real-time settings of the operating system and of Python: priority, memory, CPUs, garbage collection."""

import ctypes
import gc
import os
import resource
from collections.abc import Sequence
from contextlib import suppress

from ...errors import InputError

_MCL_CURRENT_AND_FUTURE = 3  # of mlockall
_CAP_IPC_LOCK = 14  # bit of the capabilities
_M_MMAP_THRESHOLD = -3  # of mallopt
_LARGE = 131072  # glibc's threshold before it has freed a larger block [bytes]


def set_up(thread_priority: int, lock_memory: bool, cpu_affinity: Sequence[int]) -> list[str]:
    """Apply the settings; 0, False and () change nothing. Returns a warning with a remedy for each refusal.

    They apply to all threads of the process, including those of the middleware, which receive the messages,
    and to threads that these start later.
    """
    refusals = (_set_priority(thread_priority), _lock_memory(lock_memory), _set_affinity(cpu_affinity))
    return [refusal for refusal in refusals if refusal]


def return_large_blocks() -> None:
    """Return every large block to the system when it is freed.

    By default glibc keeps blocks of the size of those freed before; small ones between them hold their space.
    """
    with suppress(AttributeError):  # another C library
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE)


def freeze_garbage() -> bool:
    """Collect garbage once, then disable collection; the result is the argument of `thaw_garbage`."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.freeze()
    gc.disable()
    return was_enabled


def thaw_garbage(was_enabled: bool) -> None:
    """Restore garbage collection as it was before `freeze_garbage`."""
    gc.unfreeze()
    if was_enabled:
        gc.enable()


def _set_priority(priority: int) -> str | None:
    if priority == 0:
        return None
    lowest, highest = os.sched_get_priority_min(os.SCHED_FIFO), os.sched_get_priority_max(os.SCHED_FIFO)
    if not lowest <= priority <= highest:
        raise InputError(f'thread_priority is {priority}. Valid: 0 for none, or {lowest} to {highest}')
    try:
        for thread in _threads():
            os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(priority))
    except OSError as error:
        return (
            f'thread_priority {priority} is refused ({error.strerror}): the loop runs at normal priority. '
            + _advice(f'rtprio {priority}', f'rtprio={priority}')
        )
    return None


def _lock_memory(wanted: bool) -> str | None:
    if not wanted:
        return None
    reason = _mlockall()
    if reason is None:
        return None
    return f'lock_memory is refused ({reason}): pages may be swapped out. ' + _advice(
        'memlock unlimited', 'memlock=-1'
    )


def _mlockall() -> str | None:
    """Lock all memory, or return the reason why not. Under a limit, a later allocation could fail."""
    _, most = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if most != resource.RLIM_INFINITY and not _is_above_limits():
        return f'the limit is {most // 1024} kB'
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (most, most))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mlockall(_MCL_CURRENT_AND_FUTURE) != 0:
        return os.strerror(ctypes.get_errno())
    return None


def _is_above_limits() -> bool:
    """Whether this process may lock any amount of memory."""
    with open('/proc/self/status') as status:
        capabilities = next(line for line in status if line.startswith('CapEff:')).split()[1]
    return bool(int(capabilities, 16) >> _CAP_IPC_LOCK & 1)


def _set_affinity(processors: Sequence[int]) -> str | None:
    if not processors:
        return None
    before, wanted = os.sched_getaffinity(0), set(processors)
    with suppress(OSError, ValueError, OverflowError):
        for thread in _threads():
            os.sched_setaffinity(thread, wanted)
    if os.sched_getaffinity(0) == wanted:
        return None
    os.sched_setaffinity(0, before)
    return (
        f'cpu_affinity {sorted(wanted)} is refused: the loop runs on any of the processors {sorted(before)}. '
        'Choose among these, or free others in the cpuset of the service or container'
    )


def _advice(limit: str, ulimit: str) -> str:
    user = os.environ.get('USER', '@realtime')
    return (
        f"Add '{user} - {limit}' to /etc/security/limits.conf and log in again, "
        f'or start the container with --ulimit {ulimit}'
    )


def _threads() -> list[int]:
    """All threads of this process; first the calling one, as 0, which fails early if it is not allowed."""
    return [0, *(int(name) for name in os.listdir('/proc/self/task'))]
