"""engine.worker.trainer: the extension's methods, on a worker with only the parts the trainer touches."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load as load_safetensors
from torch import nn
from transformers import AutoConfig

from engine.config import LORA_TARGET_MODULES, LearnConfig
from engine.training.adapter_tensors import read_directory
from engine.worker import kept_memory, lora_registry, trainer
from engine.worker.beside import Beside
from engine.worker.settings import WorkerSettings
from engine.worker.spare_cores import SpareCores
from engine.worker.trainer import TrainerExtension
from engine.worker.watchdog import ProcessId
from tests.engine.updates_of import token_ids
from tests.patience import PATIENCE_S
from tests.tiny_model import save_tiny_model

Record = dict[str, Any]


class Worker(TrainerExtension):
    """A worker as vLLM builds it, without vLLM; its manager accepts every adapter."""

    def __init__(self, vllm_config: Any) -> None:
        self.vllm_config = vllm_config
        self.model_runner = SimpleNamespace(lora_manager=lora_manager(), model=nn.Module())


def lora_manager() -> SimpleNamespace:
    """Return a manager as vLLM has it before the first request, of a model with no layers."""
    adapters = SimpleNamespace(model=nn.Module(), packed_modules={}, activate_adapter=lambda _: True)
    config = SimpleNamespace(lora_dtype=torch.float32)
    return SimpleNamespace(lora_config=config, _adapter_manager=adapters, _apply_adapters=lambda _: None)


@pytest.fixture(scope="module")
def prepared(tiny_model: Path) -> Iterator[Worker]:
    """Return a worker with the tiny model, prepared once."""
    heed = WorkerSettings(ProcessId.current(), 1.0, Path("vllm.log"), is_cpu=True, num_weights=1_000_000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainer, "watch", lambda *_: None)
        patch.setattr(trainer.punica, "install", lambda: None)
        patch.setattr(trainer.norms, "install", lambda _: None)
        patch.setattr(trainer, "check_servable", lambda *_: None)
        config = AutoConfig.from_pretrained(tiny_model)
        model_config = SimpleNamespace(dtype=torch.float32, hf_config=config, get_vocab_size=lambda: 512)
        worker = Worker(SimpleNamespace(additional_config=heed, model_config=model_config))
        record = worker.heed_prepare(
            {
                "model": str(tiny_model),
                "base_name": "tiny",
                "target_modules": list(LORA_TARGET_MODULES),
                "max_rank": 16,
                "registry_bytes": 1 << 28,
                "learn": LearnConfig().to_dict(),
                "teacher_model": "",
            }
        )
        assert record["ok"], record
        yield worker


@pytest.fixture
def worker(prepared: Worker) -> Worker:
    """Return the same worker without an earlier test's open update."""
    prepared.heed_require().update_id = prepared.heed_require().run = None
    return prepared


def all_done(beside: Beside) -> None:
    """Wait until the work that was begun has ended."""
    job, ends_s = beside.begin(dict), time.monotonic() + PATIENCE_S
    while beside.result(job) is None:
        assert time.monotonic() < ends_s


def own_cores() -> SpareCores:
    """Return the cores of this process, none to borrow."""
    return SpareCores(os.sched_getaffinity(0))


def spec(update_id: str = "u", parent: Record | None = None, **learn: Any) -> Record:
    """Return the specification of an update of one correction."""
    prompt = token_ids(10, 1)
    sample = {
        "kind": "correction",
        "student_ids": prompt,
        "teacher_ids": token_ids(10, 2) + prompt,
        "response_ids": token_ids(8, 3),
    }
    settings = LearnConfig(**({"steps": 2} | learn)).to_dict()
    return {"update_id": update_id, "parent": parent, "samples": [sample], "learn": settings}


def finished(worker: Worker, update: Record) -> Record:
    """Run an update to its end and return the last record."""
    assert worker.heed_open_update(update)["ok"]
    while not (record := worker.heed_advance(update["update_id"], 0.0))["done"]:
        assert record["ok"], record
    return record


def test_an_update_goes_from_samples_to_a_registered_adapter(worker: Worker, tmp_path: Path) -> None:
    """An update is opened, advanced, published and closed, and its files are a PEFT directory."""
    record = finished(worker, spec())
    assert record["phase"] == "finished"
    assert record["steps"] == 2
    assert len(record["heat"]) == 8
    published = worker.heed_publish("u", 7, "ana@1")
    assert published["finite"]
    assert 0 < published["value_change"] < published["update_norm"]
    (tmp_path / "adapter_model.safetensors").write_bytes(published["tensors"])
    (tmp_path / "adapter_config.json").write_text(published["config"])
    kept = worker.heed_require().registry.get(7, "/nowhere")
    on_disk = read_directory(tmp_path)
    assert all(torch.equal(tensor, on_disk.tensors[name]) for name, tensor in kept.tensors.items())
    assert worker.heed_close_update("u")["ok"]
    assert not worker.heed_advance("u", 0.0)["ok"]


def test_an_optimizer_is_kept_with_the_version_it_made_where_that_is_wanted(worker: Worker) -> None:
    """The next update of a version goes on with its optimizer if that is kept; by default it is not."""
    for number, keeps in ((21, True), (22, False)):
        finished(worker, spec("u", keeps_optimizer=keeps))
        worker.heed_publish("u", number, f"ana@{number}")
    trainer = worker.heed_require()
    assert set(trainer.optimizers) & {21, 22} == {21}
    parent = {"lora_int_id": 21, "path": "/nowhere"}
    finished(worker, spec("v", parent, keeps_optimizer=True, steps=1))
    steps = trainer.run.optimizer_state["state"][0]["step"]  # type: ignore[union-attr]
    assert int(steps) == 3


def test_a_second_update_goes_on_from_the_first(worker: Worker) -> None:
    """A second update finds its parent in memory."""
    finished(worker, spec())
    worker.heed_publish("u", 8, "ana@1")
    first = worker.heed_require().registry.get(8, "").tensors
    parent = {"lora_int_id": 8, "path": "/nowhere"}
    record = finished(worker, spec("v", parent, learning_rate=1e-6, steps=1, parent_share=1.0))
    assert record["ok"]
    values = worker.heed_require().run.slot.parameters  # type: ignore[union-attr]
    assert all(torch.allclose(values[name], tensor, atol=1e-4) for name, tensor in first.items())


def test_a_version_is_published_as_it_is_served(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounded to the type that vLLM serves adapters in, in memory and in the files."""
    registry = worker.heed_require().registry
    monkeypatch.setattr(registry, "dtype", torch.bfloat16)
    finished(worker, spec())
    record = worker.heed_publish("u", 21, "x@1")
    written = load_safetensors(record["tensors"])
    assert {tensor.dtype for tensor in written.values()} == {torch.bfloat16}
    kept = registry.get(21, "").tensors
    assert all(torch.equal(kept[name], tensor) for name, tensor in written.items())


def test_opening_an_update_abandons_the_one_before(worker: Worker) -> None:
    """A new update replaces an open one, whose caller may have died."""
    worker.heed_open_update(spec("u"))
    worker.heed_open_update(spec("v"))
    assert "not open" in worker.heed_advance("u", 0.0)["error"]
    assert worker.heed_advance("v", 0.0)["ok"]
    assert worker.heed_close_update("u")["ok"]
    assert worker.heed_status()["open"] == "v"


def test_values_that_are_no_numbers_are_reported_and_not_registered(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record of an update that is not finite has no files, and nothing can be served."""
    worker.heed_open_update(spec())
    run = worker.heed_require().current("u")
    monkeypatch.setattr(run._optimizer, "step", lambda: run.slot.flat.data.fill_(float("nan")))
    record = worker.heed_advance("u", 1e9)
    assert record["ok"]
    assert not record["finite"]
    published = worker.heed_publish("u", 9, "ana@2")
    assert published["ok"]
    assert not published["finite"]
    assert published["tensors"] == b""
    assert 9 not in worker.heed_require().registry


def test_records_are_plain_values(worker: Worker) -> None:
    """Every record holds plain values, which cross the process border as msgpack."""
    import msgspec

    records = [finished(worker, spec()), worker.heed_publish("u", 10, "x@1"), worker.heed_status()]
    assert [msgspec.msgpack.decode(msgspec.msgpack.encode(record)) for record in records] == records


def test_nothing_raises_out_of_a_method(worker: Worker) -> None:
    """Bad calls give records with an error, because an exception could end the worker."""
    bad = [
        worker.heed_open_update({}),
        worker.heed_open_update(spec() | {"samples": []}),
        worker.heed_advance("none", 1.0),
        worker.heed_publish("none", 1, "x"),
        worker.heed_score([{"kind": "correction"}], None),
        worker.heed_register(77, "/nowhere"),
        worker.heed_prepare({}),
    ]
    assert [record["ok"] for record in bad] == [False] * 7
    assert all(record["error"] for record in bad)


def test_an_external_teacher_is_loaded_beside_the_model(worker: Worker, tiny_model: Path, tmp_path: Path) -> None:
    """A teacher with outputs of another size is refused with both sizes; without a teacher none is loaded."""
    model = worker.heed_require().model
    assert worker.heed_load_teacher("", model) is None
    other = save_tiny_model(tmp_path / "other", num_layers=2, seed=1)
    teacher = worker.heed_load_teacher(str(other), model)
    assert teacher is not None
    assert teacher.vocab_size == model.vocab_size
    with pytest.raises(ValueError, match="other has"):
        worker.heed_load_teacher(str(other), SimpleNamespace(vocab_size=7))  # type: ignore[arg-type]


def test_a_worker_that_was_not_prepared_says_so() -> None:
    """Every method called before `heed_prepare` gives a record with an error."""
    fresh = object.__new__(Worker)
    assert "heed_prepare" in TrainerExtension.heed_status(fresh)["error"]


def test_a_model_that_is_only_served_has_processes_and_no_trainer(worker: Worker) -> None:
    """Its record says how large the vocabulary is and what belongs to this heed, and nothing is loaded."""
    bare = object.__new__(Worker)
    bare.vllm_config = worker.vllm_config
    record = bare.heed_serve()
    assert (record["ok"], record["vocab_size"]) == (True, 512)
    assert [ProcessId.current().pid, ProcessId.current().started] not in record["processes"]
    assert bare.heed_trainer is None


def test_vllm_loads_from_the_registry_and_never_sees_an_exception(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The installed loader gives a version's tensors, or the zero adapter's if they cannot be loaded."""
    loaded: list[Any] = []

    def check(_manager: Any, adapter: Any) -> Any:
        if 13 in registry and adapter is registry.get(13, ""):
            raise ValueError("vLLM does not like it")
        loaded.append(adapter)
        return SimpleNamespace(r=8, vllm_lora_scaling_factor=1.0)

    monkeypatch.setattr(lora_registry, "check_servable", check)
    registry = worker.heed_require().registry
    finished(worker, spec())
    for lora_int_id in (12, 13):
        worker.heed_publish("u", lora_int_id, "x@1")
    load = worker.heed_require().lora_manager._load_adapter
    for lora_int_id in (12, 13, 14):
        load(SimpleNamespace(lora_int_id=lora_int_id, lora_path="/nowhere"))
    assert loaded == [registry.get(12, ""), registry.zero, registry.zero]
    assert set(worker.heed_status()["failed"]) >= {"13", "14"}


def test_gradients_work_inside_vllms_inference_mode(worker: Worker) -> None:
    """Gradients are allowed in any mode the worker is in when the call comes."""
    with torch.inference_mode():
        record = finished(worker, spec())
    assert record["ok"]
    assert record["divergence_after"] < record["divergence_before"]


def test_a_version_on_disk_may_leave_memory(worker: Worker, tmp_path: Path) -> None:
    """Registering a version again after it was written lets it leave memory."""
    finished(worker, spec())
    registry = worker.heed_require().registry
    folder = tmp_path / "20"
    folder.mkdir()
    published = worker.heed_publish("u", 20, "x@1")
    (folder / "adapter_model.safetensors").write_bytes(published["tensors"])
    (folder / "adapter_config.json").write_text(published["config"])
    worker.heed_register(20, str(folder))
    assert registry.get(20, "").is_on_disk
    worker.heed_drop(20)
    assert worker.heed_register(20, str(folder))["ok"]


def test_states_cross_as_bytes_with_their_axes(worker: Worker) -> None:
    """One row for each passage, one matrix for each depth, float32."""
    passages = [{"token_ids": token_ids(6, n), "first": 1, "end": 4} for n in range(3)]
    record = worker.heed_states(passages, [0.5, 1.0])
    assert record["ok"], record
    num, depths, width = record["axes"]
    assert (num, depths) == (3, 2)
    assert len(record["states"]) == 4 * num * depths * width
    assert worker.heed_states([{"token_ids": [1], "first": 1, "end": 1}], [0.5])["ok"] is False


def test_first_tokens_are_the_models(worker: Worker) -> None:
    """One guided and one of its own for each pair of prompts, and how much surer guidance makes it."""
    pairs = [[token_ids(6, n), token_ids(4, n)] for n in range(3)]
    record = worker.heed_first_tokens(pairs, 1.5, 0.0, 0)
    assert record["ok"], record
    assert [len(found) for found in record["tokens"]] == [3, 3, 3]
    assert worker.heed_first_tokens([[[], [1]]], 1.5, 0.0, 0)["ok"] is False


def test_what_a_real_model_computes_goes_on_beside_decoding(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job takes the place of the record until it has ended; the numbers are those of a call that waits."""
    waited = finished(worker, spec())
    monkeypatch.setattr(worker.heed_require(), "beside", Beside(own_cores()))

    def computed(method: str, *args: Any) -> Record:
        record = worker.heed_compute(method, list(args), False)
        assert "job" in record
        ends_s = time.monotonic() + PATIENCE_S
        while "job" in record:
            assert time.monotonic() < ends_s
            record = worker.heed_result(record["job"], True)
        return record

    assert computed("heed_open_update", spec())["ok"]
    while not (record := computed("heed_advance", "u", 0.0))["done"]:
        assert record["ok"], record
    assert record["losses"] == waited["losses"]
    assert not computed("heed_advance", "no such update", 0.0)["ok"]
    assert not worker.heed_result(99, False)["ok"]


def test_one_call_beside_decoding_works_piece_by_piece_on_the_cores_free_at_each(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its budget is its own, since it holds nothing up; a stream that begins has its core at the next piece."""
    prepared = worker.heed_require()
    lent: list[bool] = []

    class Cores(SpareCores):
        def __init__(self) -> None:
            self.is_decoding = False

        @contextmanager
        def borrowed(self) -> Iterator[int]:
            lent.append(self.is_decoding)
            self.is_decoding = True
            yield 1

    monkeypatch.setattr(prepared, "beside", Beside(Cores()))
    monkeypatch.setattr(trainer, "BESIDE_S", PATIENCE_S)
    assert worker.heed_open_update(spec(steps=3))["ok"]
    record = worker.heed_advance("u", 0.0)
    assert (record["done"], record["steps"]) == (True, 3)
    assert lent[0] is False
    assert len(lent) > 3
    assert all(lent[1:])


def test_a_large_lesson_that_ends_gives_its_memory_back(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the thread that trained, so that decoding does not wait; a small one keeps it for the next."""
    where: list[str] = []
    forgotten: list[str] = []
    monkeypatch.setattr(kept_memory, "give_back", lambda: where.append(threading.current_thread().name) or True)
    monkeypatch.setattr(worker.heed_require().model, "forget_slots", lambda: forgotten.append("slots"))
    assert worker.heed_open_update(spec())["ok"]
    worker.heed_close_update("u")
    assert where == []
    beside = Beside(own_cores())
    monkeypatch.setattr(worker.heed_require(), "beside", beside)
    assert worker.heed_open_update(spec())["ok"]
    worker.heed_close_update("another")
    worker.heed_close_update("u")
    all_done(beside)
    assert len(where) == 1
    assert where[0].startswith("heed-trainer")
    assert forgotten == ["slots"]
    worker.heed_open_update(spec())
    worker.heed_require().give_back()
    all_done(beside)
    assert forgotten == ["slots"]  # those of an open update stay


def test_what_a_small_model_computes_is_answered_at_once(worker: Worker) -> None:
    """Its pieces are short; there is nothing to ask after."""
    assert worker.heed_compute("heed_open_update", [spec()], False)["ok"]
    assert worker.heed_compute("heed_advance", ["u", 0.0], False)["steps"] == 0
    assert not worker.heed_result(1, False)["ok"]
