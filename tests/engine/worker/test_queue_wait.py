"""engine.worker.queue_wait: readers sleep, and no notification is lost."""

import inspect
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import zmq
from vllm.distributed.device_communicators import shm_broadcast
from vllm.distributed.device_communicators.shm_broadcast import MessageQueue, SpinCondition

from engine.worker import queue_wait

LONG_MS = 60_000
Ends = tuple[SpinCondition, SpinCondition]


@pytest.fixture
def ends(tmp_path: Any) -> Iterator[Callable[[], Ends]]:
    """Return the writing and the reading end of this test's own queues."""
    context = zmq.Context()

    def make() -> Ends:
        address = f"ipc://{tmp_path}/notifications"
        writer = SpinCondition(is_reader=False, context=context, notify_address=address)
        reader = SpinCondition(is_reader=True, context=context, notify_address=address)
        while not reader.local_notify_socket.poll(10):  # until it is connected
            writer.notify()
        return writer, reader

    yield make
    context.destroy(linger=0)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Install heed's way of waiting for this test only."""
    monkeypatch.setattr(SpinCondition, "__init__", SpinCondition.__init__)
    monkeypatch.setattr(MessageQueue, "__init__", MessageQueue.__init__)
    monkeypatch.setattr(shm_broadcast, "SHM_READER_RECHECK_INTERVAL_MS", 5000)
    queue_wait.install()


def polls(reader: SpinCondition, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record how long the reader sleeps. In place."""
    asked: list[int] = []
    poll = reader.poller.poll
    monkeypatch.setattr(
        reader, "poller", type("Poller", (), {"poll": lambda _, timeout: asked.append(timeout) or poll(timeout)})()
    )
    return asked


@pytest.mark.usefixtures("installed")
def test_a_reader_sleeps_until_it_is_notified(ends: Callable[[], Ends], monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader sleeps even right after a message."""
    writer, reader = ends()
    asked = polls(reader, monkeypatch)
    reader.record_read()
    writer.notify()
    reader.wait(LONG_MS)
    assert asked == [LONG_MS]


def test_vllms_own_does_not_sleep(ends: Callable[[], Ends], monkeypatch: pytest.MonkeyPatch) -> None:
    """vLLM's own reader polls for a second after a message; once it does not, the module can go."""
    monkeypatch.setattr(SpinCondition, "__init__", inspect.unwrap(SpinCondition.__init__))
    _, reader = ends()
    asked = polls(reader, monkeypatch)
    reader.record_read()
    reader.wait(LONG_MS)
    assert asked == []


@pytest.mark.usefixtures("installed")
def test_no_notification_is_dropped(ends: Callable[[], Ends]) -> None:
    """The second of two messages within a millisecond arrives, too."""
    writer, reader = ends()
    assert writer.local_notify_socket.getsockopt(zmq.SNDHWM) == queue_wait.NOTIFICATIONS
    for _ in range(200):
        reader.record_read()
        writer.notify()
        reader.wait(LONG_MS)
        writer.notify()
        reader.wait(LONG_MS)
    assert shm_broadcast.SHM_READER_RECHECK_INTERVAL_MS == queue_wait.RECHECK_MS


def test_the_worker_may_look_for_a_while_first(ends: Callable[[], Ends], monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker polls for a short while after a message, then it sleeps."""
    monkeypatch.setattr(SpinCondition, "__init__", inspect.unwrap(SpinCondition.__init__))
    monkeypatch.setattr(MessageQueue, "__init__", MessageQueue.__init__)
    queue_wait.install(queue_wait.WORKER_SPIN_S)
    _, reader = ends()
    assert reader.busy_loop_s == queue_wait.WORKER_SPIN_S < 1


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("size", [10, 3 * queue_wait.CHUNK_BYTES])
def test_a_message_longer_than_a_chunk_arrives(size: int) -> None:
    """Chunks are small, whatever vLLM asks for."""
    writer = MessageQueue(1, 1, max_chunk_bytes=1 << 24)
    assert writer.buffer.max_chunk_bytes == queue_wait.CHUNK_BYTES
    reader = MessageQueue.create_from_handle(writer.export_handle(), 0)
    with ThreadPoolExecutor(1) as pool:
        ready = pool.submit(reader.wait_until_ready)
        writer.wait_until_ready()
        ready.result()
    message = bytes(size)
    writer.enqueue(message)
    assert reader.dequeue(timeout=LONG_MS / 1000) == message
