"""The queues between vLLM's processes on a CPU: readers wait asleep, the worker after a short while; chunks are small.

For a second after each message vLLM's reader polls shared memory without a pause. EngineCore and its worker then take
two cores between them even if neither has any work, and every other process waits for the scheduler: on two cores, for
hundreds of milliseconds. A message goes into the next of ten chunks, whose memory stays: a trained adapter's files
would fill each of them in turn. What is longer than a chunk goes through a socket.
"""

import functools
from collections.abc import Callable
from typing import Any

import zmq
from vllm.distributed.device_communicators import shm_broadcast

WORKER_SPIN_S = 0.02  # the worker has a core of its own: it is awake for the next step of a decode or an update
CHUNK_BYTES = 1 << 20  # vLLM's own: 16 and 24 MiB
RECHECK_MS = 50  # looking once more while asleep, should a notification be lost
NOTIFICATIONS = 1000  # that may be under way; vLLM's 1 loses the second of two within a millisecond


def install(spin_s: float = 0.0) -> None:
    """Make the readers of queues that this process makes later sleep from `spin_s` after a message on. In place.

    These queues have small chunks.
    """
    shm_broadcast.SHM_READER_RECHECK_INTERVAL_MS = RECHECK_MS
    original = shm_broadcast.SpinCondition.__init__

    @functools.wraps(original)
    def opened(condition: Any, is_reader: bool, context: Any, notify_address: str, busy_loop_s: float = spin_s) -> None:
        original(condition, is_reader, context, notify_address, busy_loop_s)
        if not is_reader:
            _tell_all(condition.local_notify_socket, notify_address)

    shm_broadcast.SpinCondition.__init__ = opened
    queue = shm_broadcast.MessageQueue
    queue.__init__ = functools.partialmethod(_with_small_chunks, queue.__init__)


def _with_small_chunks(queue: Any, make: Callable[..., None], *args: Any, **kwargs: Any) -> None:
    make(queue, *args, **kwargs | {"max_chunk_bytes": CHUNK_BYTES})


def _tell_all(socket: Any, address: str) -> None:
    """Bind the socket again with a higher limit, which holds for later binds only. In place."""
    socket.unbind(address)
    socket.setsockopt(zmq.SNDHWM, NOTIFICATIONS)
    socket.bind(address)
