"""The waiting of vLLM's processes for each other on a CPU: asleep, the worker after a short while.

For a second after each message vLLM's reader polls shared memory without a pause. EngineCore and its worker then take
two cores between them even if neither has any work, and every other process waits for the scheduler: on two cores, for
hundreds of milliseconds.
"""

import functools
from typing import Any

import zmq
from vllm.distributed.device_communicators import shm_broadcast

WORKER_SPIN_S = 0.02  # the worker has a core of its own: it is awake for the next step of a decode or an update
RECHECK_MS = 50  # looking once more while asleep, should a notification be lost
NOTIFICATIONS = 1000  # that may be under way; vLLM's 1 loses the second of two within a millisecond


def install(spin_s: float = 0.0) -> None:
    """Make the readers of queues that this process makes later sleep from `spin_s` after a message on. In place."""
    shm_broadcast.SHM_READER_RECHECK_INTERVAL_MS = RECHECK_MS
    original = shm_broadcast.SpinCondition.__init__

    @functools.wraps(original)
    def opened(condition: Any, is_reader: bool, context: Any, notify_address: str, busy_loop_s: float = spin_s) -> None:
        original(condition, is_reader, context, notify_address, busy_loop_s)
        if not is_reader:
            _tell_all(condition.local_notify_socket, notify_address)

    shm_broadcast.SpinCondition.__init__ = opened


def _tell_all(socket: Any, address: str) -> None:
    """Bind the socket again with a higher limit, which holds for later binds only. In place."""
    socket.unbind(address)
    socket.setsockopt(zmq.SNDHWM, NOTIFICATIONS)
    socket.bind(address)
