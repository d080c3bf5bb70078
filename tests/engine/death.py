"""The model process dies once, in the middle of a lesson and of a stream: what several tests look at.

Once, because the start of another one takes 20 s.
"""

import asyncio
import os
import signal
from dataclasses import dataclass

from engine.adapter_ref import ZERO_ADAPTER, AdapterRef
from engine.host.vllm_host import VllmHost
from engine.requests import LearnOutcome, Sampling
from engine.worker.watchdog import ProcessId
from tests.engine.live import Live
from tests.patience import PATIENCE_S

QUESTION = "Tell me about the koala"
STREAM = "in-flight"


@dataclass(frozen=True)
class Witness:
    """Who can tell whether the new engine answers as the old one did: the base model, and a version from before."""

    prompt: list[int]
    refs: tuple[AdapterRef, ...]

    async def answers(self, host: VllmHost) -> list[list[int]]:
        """The token ids that each of them answers with."""
        return [await answered(host, self.prompt, ref, f"witness-{ref.name}") for ref in self.refs]


@dataclass(frozen=True)
class Death:
    """What was before, and what became of the lesson and of the stream."""

    witness: Witness
    answers_before: list[list[int]]
    processes: list[ProcessId]  # of the engine that died
    stream: list[int] | BaseException
    pupil: str
    outcome: LearnOutcome


async def die(live: Live) -> Death:
    """Kill the model process; returns when the lesson has ended."""
    earlier, _ = await live.pupil("use lowercase")
    prompt = (await live.result(earlier, QUESTION, notes="off")).prompt_token_ids
    witness = Witness(prompt, (ZERO_ADAPTER, live.engine._adapters.ref(await live.version(earlier, 1))))
    answers = await witness.answers(live.host)
    pupil = await live.person()
    row = await live.say(await live.ask(pupil, QUESTION), "no emoji please")
    with live.open_gates():
        learning = asyncio.create_task(live.engine.learn(row.id))
        await live.has_begun(row.id)
        processes, stream = await _die_during_a_stream(live.host, witness)
        return Death(witness, answers, processes, stream, pupil, await learning)


async def _die_during_a_stream(host: VllmHost, witness: Witness) -> tuple[list[ProcessId], list[int] | BaseException]:
    assert host._running is not None
    processes, llm = host._running.children, host._running.llm
    os.kill(
        processes[0].pid, signal.SIGSTOP
    )  # neither the lesson nor the answer can be ready before the engine is dead
    reading = asyncio.create_task(answered(host, witness.prompt, witness.refs[-1], STREAM))
    async with asyncio.timeout(PATIENCE_S):
        while not any(name.startswith(STREAM) for name in llm.output_processor.request_states):  # noqa: ASYNC110 - vLLM tells nobody
            await asyncio.sleep(0.01)
    os.kill(processes[0].pid, signal.SIGKILL)
    return processes, (await asyncio.gather(reading, return_exceptions=True))[0]


async def answered(host: VllmHost, prompt: list[int], ref: AdapterRef, request_id: str) -> list[int]:
    """The token ids of a finished answer."""
    chunks = [chunk async for chunk in host.generate(prompt, Sampling(max_tokens=40), ref, request_id)]
    return [token for chunk in chunks for token in chunk.token_ids]
