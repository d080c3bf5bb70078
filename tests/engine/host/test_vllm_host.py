"""engine.host.vllm_host: the real vLLM with the trainer in its worker: streams, adapters, parity, faults."""

import asyncio
import itertools
import json
import random
import shutil
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import pytest_asyncio
from safetensors.numpy import load, save
from vllm.v1.engine.async_llm import AsyncLLM
from vllm.v1.engine.exceptions import EngineDeadError

from engine.adapter_ref import CONFIG_FILE, TENSORS_FILE, ZERO_ADAPTER, AdapterRef
from engine.config import EngineConfig, LearnConfig
from engine.errors import AdapterLoadError, EngineRestarting, EngineStartError, PromptTooLongError
from engine.host import vllm_host
from engine.host.running_engine import HEALTH_INTERVAL_S, RunningEngine
from engine.host.vllm_host import VllmHost
from engine.host.vllm_types import HostChunk
from engine.requests import REPEATED, Sampling
from engine.worker.watchdog import ProcessId
from tests.engine.death import Death
from tests.engine.live import Live
from tests.engine.pocket_model import pocket_folder
from tests.patience import PATIENCE_S, until
from tests.storage.stored import directory_sha256

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.engine]

IDS = itertools.count(1_000_000)  # far from what the database gives out
GREEDY = Sampling(max_tokens=40)


@pytest.fixture
def host(live: Live) -> VllmHost:
    """Return the one running host."""
    return live.host


def new_host(data_dir: Path) -> VllmHost:
    """Return a host that has not been started."""
    return VllmHost(EngineConfig(model=str(pocket_folder()), data_dir=data_dir))


class Answer:
    """A stream read to its end."""

    def __init__(self, chunks: list[HostChunk]) -> None:
        self.chunks = chunks
        self.text = "".join(chunk.text for chunk in chunks)
        self.token_ids = [token for chunk in chunks for token in chunk.token_ids]
        self.logprobs = [value for chunk in chunks for value in chunk.logprobs]
        self.finish_reason = chunks[-1].finish_reason


def prompt_of(host: VllmHost, text: str = "Tell me about the koala") -> list[int]:
    """Return the token ids of a chat prompt."""
    messages = [{"role": "user", "content": text}]
    ids: list[int] = host.tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True)[
        "input_ids"
    ]
    return ids


async def answer(
    host: VllmHost, prompt: list[int], adapter: AdapterRef = ZERO_ADAPTER, sampling: Sampling = GREEDY
) -> Answer:
    """Return a finished answer."""
    request_id = f"test-{random.random()}"
    return Answer([chunk async for chunk in host.generate(prompt, sampling, adapter, request_id)])


KOALA, PIANO, LIMA = "Tell me about the koala", "Tell me about the piano", "Tell me about Lima"


async def lesson(host: VllmHost, like: str = PIANO) -> list[dict[str, Any]]:
    """Return a correction that makes the koala's answer the one of another subject, far from the base model's."""
    student, teacher = prompt_of(host, KOALA), prompt_of(host, like)
    response = (await answer(host, teacher)).token_ids
    return [{"kind": "correction", "student_ids": student, "teacher_ids": teacher, "response_ids": response}]


async def train(host: VllmHost, parent: AdapterRef | None = None, like: str = PIANO, **learn: Any) -> str:
    """Run an update to its end and return its id."""
    update_id = f"update-{next(IDS)}"
    spec = {
        "update_id": update_id,
        "parent": parent.to_dict() if parent else None,
        "samples": await lesson(host, like),
        "learn": LearnConfig(**({"steps": 8, "learning_rate": 1e-2} | learn)).to_dict(),
    }
    record = await host.rpc("heed_open_update", spec)
    assert record["ok"], record
    while not (record := await host.rpc("heed_advance", update_id, 25.0))["done"]:
        assert record["ok"], record
    return update_id


def ref_in(folder: Path, user_id: str = "ana") -> AdapterRef:
    """Return a reference that was never used before."""
    number = next(IDS)
    return AdapterRef(user_id, number, number, str(folder / str(number)))


async def publish(host: VllmHost, folder: Path, update_id: str, *, is_written: bool = True) -> AdapterRef:
    """Register a trained adapter in the worker and write it to disk."""
    ref = ref_in(folder)
    record = await host.rpc("heed_publish", update_id, ref.lora_int_id, ref.name)
    assert record["ok"], record
    await host.rpc("heed_close_update", update_id)
    if is_written:
        write(ref, record["tensors"], record["config"])
    return ref


def read(ref: AdapterRef) -> tuple[bytes, str]:
    """Return the two files of a PEFT directory, as `write` takes them."""
    return (Path(ref.path) / TENSORS_FILE).read_bytes(), (Path(ref.path) / CONFIG_FILE).read_text()


def write(ref: AdapterRef, tensors: bytes, config: str) -> None:
    """Write the two files of a PEFT directory."""
    Path(ref.path).mkdir(parents=True)
    (Path(ref.path) / TENSORS_FILE).write_bytes(tensors)
    (Path(ref.path) / CONFIG_FILE).write_text(config)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def adapter(live: Live, tmp_path_factory: pytest.TempPathFactory) -> AdapterRef:
    """Return a trained adapter that answers otherwise than the base model; no test removes or changes it."""
    return await publish(live.host, tmp_path_factory.mktemp("adapters"), await train(live.host))


@pytest_asyncio.fixture(loop_scope="session")
async def own_adapter(host: VllmHost, tmp_path: Path) -> AdapterRef:
    """Return a trained adapter like `adapter` that the test may remove."""
    return await publish(host, tmp_path, await train(host))


async def test_a_stream_arrives_in_pieces_with_a_log_probability_per_token(host: VllmHost) -> None:
    """The ids, the log-probabilities and the text of a stream fit together."""
    for _ in range(50):  # on a busy machine an answer may be whole before its first piece is read
        result = await answer(host, prompt_of(host))
        if len(result.chunks) > 1:
            break
    assert len(result.chunks) > 1
    assert len(result.logprobs) == len(result.token_ids)
    assert all(value <= 0 for value in result.logprobs)
    assert host.tokenizer.decode(result.token_ids, skip_special_tokens=True) == result.text


async def test_the_end_of_sequence_token_is_among_the_ids_when_the_model_stops(host: VllmHost) -> None:
    """The token is among the ids, to be trained, and is not part of the text."""
    result = await answer(host, prompt_of(host), sampling=Sampling(max_tokens=400))
    assert result.finish_reason == "stop"
    assert result.token_ids[-1] == host.tokenizer.eos_token_id
    assert host.tokenizer.eos_token not in result.text


async def test_an_answer_that_was_cut_says_so(host: VllmHost) -> None:
    """An answer that is cut has exactly the tokens allowed."""
    result = await answer(host, prompt_of(host), sampling=Sampling(max_tokens=3))
    assert result.finish_reason == "length"
    assert len(result.token_ids) == 3


async def test_a_stop_word_ends_the_answer_and_is_not_shown(host: VllmHost) -> None:
    """A text of `stop` ends the answer before it."""
    whole = await answer(host, prompt_of(host))
    word = whole.text.split()[2]
    cut = await answer(host, prompt_of(host), sampling=Sampling(max_tokens=40, stop=(word,)))
    assert cut.finish_reason == "stop"
    assert whole.text.startswith(cut.text)
    assert word not in cut.text


async def test_an_answer_in_one_piece_is_the_streamed_one(host: VllmHost) -> None:
    """It has the same tokens and log-probabilities, and no text."""
    prompt = prompt_of(host, KOALA)
    whole = await host.complete(prompt, GREEDY, ZERO_ADAPTER, "in-one-piece")
    streamed = await answer(host, prompt)
    assert whole.token_ids == streamed.token_ids
    assert whole.logprobs == pytest.approx(streamed.logprobs, abs=1e-3)
    assert whole.finish_reason == "stop"
    assert not whole.text


async def test_top_log_probabilities_hold_the_sampled_token_and_the_likeliest(host: VllmHost) -> None:
    """`top_logprobs` holds the sampled token, and it is the likeliest of a greedy answer."""
    result = await answer(host, prompt_of(host), sampling=Sampling(max_tokens=5, top_logprobs=3))
    for chunk in result.chunks:
        assert chunk.top_logprobs is not None
        for token, value, top in zip(chunk.token_ids, chunk.logprobs, chunk.top_logprobs, strict=True):
            assert top[token] == value == max(top.values())
            assert len(top) >= 3


async def test_the_seed_decides_what_is_sampled(host: VllmHost) -> None:
    """The same seed gives the same answer, and a dozen seeds do not all agree."""

    async def sampled(seed: int) -> tuple[int, ...]:
        sampling = Sampling(temperature=2.0, seed=seed, max_tokens=40)
        return tuple((await answer(host, prompt_of(host), sampling=sampling)).token_ids)

    texts = [await sampled(seed) for seed in range(12)]
    assert await sampled(3) == texts[3]
    assert len(set(texts)) > 1


async def test_a_repeated_prompt_is_read_from_the_cache(host: VllmHost) -> None:
    """The earlier turns of a conversation are not computed again."""
    prompt = prompt_of(host, "Tell me about the koala, the tiger and the horse, and where each of them lives") * 2
    await answer(host, prompt)
    assert (await answer(host, prompt)).chunks[-1].num_cached_tokens > 0


async def test_leaving_a_stream_ends_it_in_vllm(host: VllmHost) -> None:
    """vLLM stops decoding an answer that is no longer read."""
    stream = host.generate(prompt_of(host), Sampling(max_tokens=400, temperature=2.0), ZERO_ADAPTER, "left-early")
    await anext(stream)
    await stream.aclose()
    assert host.num_running == 0
    assert host._running is not None
    async with asyncio.timeout(PATIENCE_S):
        while host._running.llm.output_processor.has_unfinished_requests():  # noqa: ASYNC110 - vLLM has no event for it
            await asyncio.sleep(0.01)


async def test_an_answer_that_only_repeats_itself_is_ended(host: VllmHost) -> None:
    """Four times 48 tokens of one line end suffice; one that may repeat itself goes on to its limit."""
    blanks = host.tokenizer("\n" * 6, add_special_tokens=False)["input_ids"]
    ended, free = [
        await answer(host, blanks, sampling=Sampling(max_tokens=300, may_repeat=may)) for may in (False, True)
    ]
    assert (ended.finish_reason, free.finish_reason) == (REPEATED, "length")
    assert 192 <= len(ended.token_ids) < len(free.token_ids) == 300
    assert free.token_ids[: len(ended.token_ids)] == ended.token_ids


async def test_a_prompt_that_does_not_fit_is_refused(host: VllmHost) -> None:
    """A prompt longer than the context never reaches vLLM."""
    with pytest.raises(PromptTooLongError):
        await answer(host, [5] * host.max_model_len)


@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.0])
async def test_the_training_forward_agrees_with_vllm(host: VllmHost, adapter: AdapterRef, temperature: float) -> None:
    """Log-probabilities of the same tokens, with an adapter: mean absolute difference at most 0.02, here far below."""
    prompt = prompt_of(host, "What does the tiger eat?")
    sampled = await answer(host, prompt, adapter, Sampling(temperature=temperature, max_tokens=40, seed=5))
    sample = {
        "kind": "correction",
        "student_ids": prompt,
        "teacher_ids": prompt,
        "response_ids": sampled.token_ids,
        "behaviour_logprobs": sampled.logprobs,
        "temperature": temperature,
        "teacher": "current",
    }
    spec = {
        "update_id": "parity",
        "parent": adapter.to_dict(),
        "samples": [sample],
        "learn": LearnConfig(steps=1).to_dict(),
    }
    assert (await host.rpc("heed_open_update", spec))["ok"]
    record = await host.rpc("heed_advance", "parity", 1e6)
    assert record["is_weights"]["mean_abs_log"] < 1e-3
    if temperature in (0.0, 1.0):
        (score,) = (await host.rpc("heed_score", [sample], adapter.to_dict()))["scores"]
        assert np.abs(np.subtract(score["student_logprobs"], sampled.logprobs)).mean() <= 0.02


async def test_a_current_teacher_without_feedback_reproduces_the_student(host: VllmHost, adapter: AdapterRef) -> None:
    """With the same prompt and adapter the log-probabilities are equal and the divergence is zero."""
    prompt = prompt_of(host)
    response = (await answer(host, prompt, adapter)).token_ids
    sample = {"kind": "correction", "student_ids": prompt, "teacher_ids": prompt, "response_ids": response}
    sample |= {"teacher": "current"}
    (score,) = (await host.rpc("heed_score", [sample], adapter.to_dict()))["scores"]
    assert score["student_logprobs"] == score["teacher_logprobs"]
    assert score["divergence"] == pytest.approx(0.0, abs=1e-6)


async def test_vllm_loads_a_published_directory_from_disk_as_it_is(host: VllmHost, own_adapter: AdapterRef) -> None:
    """A version dropped from memory and read from disk answers the same."""
    prompt = prompt_of(host)
    from_memory = await answer(host, prompt, own_adapter)
    await host.remove_adapter(own_adapter)
    record = await host.rpc("heed_drop", own_adapter.lora_int_id)
    assert record["ok"]
    from_disk = await answer(host, prompt, own_adapter)
    base = await answer(host, prompt)
    assert from_disk.token_ids == from_memory.token_ids != base.token_ids


async def test_base_and_adapters_in_one_batch_each_answer_as_alone(
    host: VllmHost, adapter: AdapterRef, tmp_path: Path
) -> None:
    """Each request of a mixed batch gets its own adapter; vLLM's own CPU kernels mix them up."""
    other = await publish(host, tmp_path, await train(host, like=LIMA))
    prompt = prompt_of(host, KOALA)
    alone = {ref.name: (await answer(host, prompt, ref)).token_ids for ref in (ZERO_ADAPTER, adapter, other)}
    assert len(set(map(tuple, alone.values()))) == 3
    refs = [ZERO_ADAPTER, adapter, other, ZERO_ADAPTER, other, adapter, ZERO_ADAPTER]
    together = await asyncio.gather(*(answer(host, prompt, ref) for ref in refs))
    for ref, result in zip(refs, together, strict=True):
        assert result.token_ids == alone[ref.name]


async def test_an_update_leaves_another_persons_answers_and_files_alone(
    host: VllmHost, adapter: AdapterRef, tmp_path: Path
) -> None:
    """B's greedy answers and adapter files are the same before and after A's update."""
    prompts = [prompt_of(host, text) for text in ("Hi!", "Where does the tiger live?", "What is 3 plus 4?")]

    async def bens() -> tuple[list[list[int]], str]:
        await host.reset_prefix_cache()
        return [(await answer(host, p, adapter)).token_ids for p in prompts], directory_sha256(Path(adapter.path))

    before = await bens()
    anas = await publish(host, tmp_path, await train(host, like=LIMA))
    await answer(host, prompts[0], anas)
    assert await bens() == before


@pytest.mark.parametrize("damage", ["missing", "truncated", "not a number", "rank", "kind"])
async def test_a_bad_adapter_is_refused_and_hurts_no_other_stream(
    host: VllmHost, adapter: AdapterRef, tmp_path: Path, damage: str
) -> None:
    """The other streams run on, and a good adapter is served right afterwards."""
    bad = ref_in(tmp_path, "ben")
    files = await asyncio.to_thread(lambda: {path.name: path.read_bytes() for path in Path(adapter.path).iterdir()})
    config = json.loads(files[CONFIG_FILE])
    if damage != "missing":
        tensors = load(files[TENSORS_FILE])
        if damage == "not a number":
            next(iter(tensors.values()))[0, 0] = np.nan
        if damage == "rank":
            tensors = {n: np.repeat(t, 16, axis=0 if ".lora_A." in n else 1) for n, t in tensors.items()}
        if damage == "kind":
            config["use_dora"] = True
        write(bad, save(tensors)[: -5 if damage == "truncated" else None], json.dumps(config))
    stream = asyncio.create_task(answer(host, prompt_of(host), adapter, Sampling(max_tokens=60)))
    await until(lambda: host.num_running)
    with pytest.raises(AdapterLoadError):
        await answer(host, prompt_of(host), bad)
    assert (await stream).token_ids == (await answer(host, prompt_of(host), adapter, Sampling(max_tokens=60))).token_ids


async def test_a_version_that_vanishes_after_it_was_added_is_served_as_the_base_and_reported(
    host: VllmHost, own_adapter: AdapterRef
) -> None:
    """vLLM may have to read it again in the middle of a step, where an exception would end the engine."""
    prompt = prompt_of(host)
    await answer(host, prompt, own_adapter)
    assert host._running is not None
    await host._running.llm.remove_lora(own_adapter.lora_int_id)  # as when it leaves vLLM's memory
    await host.rpc("heed_drop", own_adapter.lora_int_id)
    shutil.rmtree(own_adapter.path)
    await host.reset_prefix_cache()
    assert (await answer(host, prompt, own_adapter)).token_ids == (await answer(host, prompt)).token_ids
    assert str(own_adapter.lora_int_id) in (await host.rpc("heed_status"))["failed"]
    await host._forget_failed()
    with pytest.raises(AdapterLoadError):
        await answer(host, prompt, own_adapter)


async def test_a_candidate_that_is_not_finite_is_never_registered(
    host: VllmHost, adapter: AdapterRef, tmp_path: Path
) -> None:
    """A candidate whose parent overflows has no files, cannot be served and does no harm."""
    parent, candidate = ref_in(tmp_path), ref_in(tmp_path)
    tensors, config = read(adapter)
    enormous = {name: np.full_like(tensor, 1e30) for name, tensor in load(tensors).items()}
    write(parent, save(enormous), config)
    update_id = await train(host, parent)
    record = await host.rpc("heed_publish", update_id, candidate.lora_int_id, candidate.name)
    assert record["ok"]
    assert not record["finite"]
    assert record["tensors"] == b""
    with pytest.raises(AdapterLoadError):
        await host.add_adapter(candidate)
    assert (await answer(host, prompt_of(host))).token_ids


async def test_a_version_in_use_is_removed_only_afterwards(host: VllmHost, own_adapter: AdapterRef) -> None:
    """A removal waits until the stream has ended on its own adapter."""
    prompt = prompt_of(host)
    expected = (await answer(host, prompt, own_adapter, Sampling(max_tokens=60))).token_ids
    order = []

    async def read() -> list[int]:
        ids = (await answer(host, prompt, own_adapter, Sampling(max_tokens=60))).token_ids
        order.append("read")
        return ids

    reading = asyncio.create_task(read())
    await until(lambda: host.num_running)
    await host.remove_adapter(own_adapter)
    order.append("removed")
    assert await reading == expected
    assert order == ["read", "removed"]


async def test_decoding_goes_on_during_an_update(host: VllmHost) -> None:
    """Tokens of another person's streams arrive between the calls into the worker."""
    arrived: list[int] = []

    async def read_on() -> None:
        while True:
            async for chunk in host.generate(prompt_of(host), Sampling(), ZERO_ADAPTER, f"beside-{next(IDS)}"):
                arrived.extend(chunk.token_ids)

    reading = asyncio.create_task(read_on())
    while not arrived:  # noqa: ASYNC110 - the first token has no event
        await asyncio.sleep(0.01)
    num_before = len(arrived)
    update_id = await train(host, steps=20, micro_batch_tokens=64)
    num_during = len(arrived) - num_before
    reading.cancel()
    await host.rpc("heed_close_update", update_id)
    assert num_during > 10


async def test_bad_calls_into_the_worker_come_back_as_records(host: VllmHost) -> None:
    """Every bad call gives a record with an error, because an exception would end the worker."""
    learn = LearnConfig().to_dict()
    good = {"kind": "correction", "student_ids": [5], "teacher_ids": [6], "response_ids": [7]}
    calls: list[tuple[str, list[Any]]] = [
        ("heed_advance", ["no such update", 25.0]),
        ("heed_publish", ["no such update", 1, "x@1"]),
        ("heed_open_update", [{}]),
        ("heed_open_update", [{"update_id": "u", "parent": None, "samples": [], "learn": learn}]),
        ("heed_open_update", [{"update_id": "u", "parent": None, "samples": [good], "learn": {"steps": -1}}]),
        ("heed_open_update", [{"update_id": "u", "parent": None, "samples": [good | {"x": 1}], "learn": learn}]),
        (
            "heed_open_update",
            [{"update_id": "u", "parent": {"lora_int_id": 10**9, "path": "/no"}, "samples": [good], "learn": learn}],
        ),
        ("heed_score", [[good | {"response_ids": [10**9]}], None]),
        ("heed_register", [12345, "/nowhere"]),
    ]
    for method, arguments in calls:
        record = await host.rpc(method, *arguments)
        assert not record["ok"], method
        assert record["error"]
    assert (await answer(host, prompt_of(host))).token_ids


async def test_a_dead_engine_is_restarted_and_chats_go_on(host: VllmHost, death: Death) -> None:
    """Streams in flight end with a retryable error; the next ones are answered, by adapters read from disk again."""
    assert isinstance(death.stream, EngineRestarting)
    assert death.stream.retryable
    base, adapted = death.answers_before
    assert base != adapted
    assert await death.witness.answers(host) == death.answers_before
    assert host.is_alive
    assert len(host._restarts) == 1
    assert len(death.processes) >= 1
    assert not any(process.is_alive() for process in death.processes)
    assert host._running is not None
    assert all(ProcessId.of(process.pid) for process in host._running.children)


def life(host: VllmHost, *, is_dead: bool = False) -> RunningEngine:
    """Return a life of an engine that vLLM calls dead or alive."""
    return RunningEngine(SimpleNamespace(errored=is_dead), PATIENCE_S, host._note_death)


@pytest.mark.parametrize("error", [EngineDeadError(), TimeoutError()])
async def test_a_late_error_of_a_dead_engine_does_not_end_the_next_one(tmp_path: Path, error: Exception) -> None:
    """A late call into a former engine fails, and the engine in its place goes on."""
    host = new_host(tmp_path)
    former, host._running = life(host, is_dead=True), life(host)
    host._ready.set()
    with pytest.raises(EngineRestarting), former.watched():
        raise error
    assert (host._has_died.is_set(), host._ready.is_set()) == (False, True)
    with pytest.raises(EngineRestarting), host._running.watched():
        raise error
    assert (host._has_died.is_set(), host._ready.is_set()) == (True, False)


async def test_a_caller_that_finds_the_engine_dead_has_it_restarted_and_waits(tmp_path: Path) -> None:
    """A dead engine is noticed before any call into it, and the caller waits for the next one."""
    host = new_host(tmp_path)
    host._running = life(host, is_dead=True)
    host._ready.set()
    waiting = asyncio.create_task(host._current())
    async with asyncio.timeout(PATIENCE_S):
        await host._has_died.wait()
    assert not waiting.done()
    host._running = again = life(host)
    host._ready.set()
    assert await waiting is again


async def test_a_worker_that_ends_is_noticed_without_any_call(tmp_path: Path) -> None:
    """The host looks at the model's processes several times in two seconds, and says that it restarts them."""
    states: list[tuple[str, str]] = []
    host = VllmHost(EngineConfig(str(pocket_folder()), tmp_path), lambda *state: states.append(state))
    worker = await asyncio.create_subprocess_exec("sleep", "600")
    host._running = life(host)
    host._running.children = [known for known in [ProcessId.of(worker.pid)] if known is not None]
    watch = asyncio.create_task(host._watch_engine())
    worker.kill()
    await worker.wait()
    await until(lambda: states)
    watch.cancel()
    await asyncio.gather(watch, return_exceptions=True)
    assert states == [("restarting", "the model process died")]
    assert HEALTH_INTERVAL_S * 4 < 2


async def test_an_engine_that_dies_while_it_is_restarted_is_restarted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is restarted as often as the settings allow, and then it is down with a reason."""
    host, died = new_host(tmp_path), EngineRestarting("the model process died")
    outcomes: list[Exception | None] = [died, None, died, died, died]
    up = asyncio.Event()

    async def launch(_progress: Any) -> None:
        outcome = outcomes.pop(0)
        if outcome is not None:
            raise outcome
        up.set()

    monkeypatch.setattr(host, "_launch", launch)
    watch = asyncio.create_task(host._watch_engine())
    host._has_died.set()
    async with asyncio.timeout(PATIENCE_S):
        await up.wait()
        host._has_died.set()
        await watch
    assert outcomes == []
    assert f"died {host._config.host.max_restarts + 1} times" in host._down_reason


async def test_a_model_that_dies_during_the_start_is_one_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error is one of the start and promises no restart."""
    host = new_host(tmp_path)

    async def launch(_progress: Any) -> None:
        raise EngineRestarting("the model process died and is being restarted; ask again")

    monkeypatch.setattr(host, "_launch", launch)
    with pytest.raises(EngineStartError, match="while it was started"):
        await host.start()
    await host.stop()


async def test_an_end_while_it_starts_leaves_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """vLLM cannot be stopped while it loads, so it is stopped as soon as it has loaded."""
    begun, loaded, ended = threading.Event(), threading.Event(), threading.Event()

    def load_slowly(_args: Any) -> Any:
        begun.set()
        assert loaded.wait(PATIENCE_S)
        return SimpleNamespace(shutdown=ended.set)

    monkeypatch.setattr(vllm_host, "set_environment", lambda *_: None)
    monkeypatch.setattr(AsyncLLM, "from_engine_args", load_slowly)
    host = new_host(tmp_path)
    start = asyncio.create_task(host.start())
    assert await asyncio.to_thread(begun.wait, 60)
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    loaded.set()
    assert await asyncio.to_thread(ended.wait, 60)
