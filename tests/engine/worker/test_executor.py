"""engine.worker.executor: executors settle in before they start anything."""

from types import SimpleNamespace
from typing import Any

import pytest

from engine.worker import executor


@pytest.mark.parametrize(
    ("ours", "vllms", "waits"),
    [("CpuExecutor", "MultiprocExecutor", ["asleep", "forked"]), ("GpuExecutor", "UniProcExecutor", [])],
)
def test_settling_in_comes_before_the_worker(
    monkeypatch: pytest.MonkeyPatch, ours: str, vllms: str, waits: list[str]
) -> None:
    """The executor's children inherit session and output, and the watchdog runs while the model loads.

    The queues between the two processes of a CPU are made after heed has said how they wait, the worker after it
    has said how it begins.
    """
    order: list[Any] = []
    monkeypatch.setattr(executor, "settle_in", order.append)
    monkeypatch.setattr(executor.queue_wait, "install", lambda: order.append("asleep"))
    monkeypatch.setattr(executor, "fork_workers", lambda _config: order.append("forked"))
    monkeypatch.setattr(getattr(executor, vllms), "_init_executor", lambda _self: order.append("worker"))
    instance = object.__new__(getattr(executor, ours))
    instance.vllm_config = SimpleNamespace()
    instance._init_executor()
    assert order == [instance.vllm_config, *waits, "worker"]


@pytest.mark.parametrize(("ours", "vllms"), [("CpuExecutor", "MultiprocExecutor"), ("GpuExecutor", "UniProcExecutor")])
def test_what_is_left_is_left_once_the_worker_has_ended(monkeypatch: pytest.MonkeyPatch, ours: str, vllms: str) -> None:
    """Not before: vLLM ends the worker by objects that are collected."""
    order: list[str] = []
    monkeypatch.setattr(executor, "leave_as_it_is", lambda: order.append("left"))
    monkeypatch.setattr(getattr(executor, vllms), "shutdown", lambda _self: order.append("worker"))
    object.__new__(getattr(executor, ours)).shutdown()
    assert order == ["worker", "left"]
