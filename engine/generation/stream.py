"""One answer while it is written: what vLLM sends, collected into the result that is stored."""

import time
from dataclasses import asdict, dataclass, field

from engine.host.vllm_types import HostChunk
from engine.prompts.reasoning import Reasoning, ReasoningParts
from engine.requests import TOOLS, Delta, GenerateRequest, GenerateResult, Sampling


@dataclass
class AnswerStream:
    """One answer while it is written: what is known before its first token, and what has come since."""

    request: GenerateRequest
    notes: list[str]  # in the prompt
    prompt_token_ids: list[int]
    adapter_version: int
    sampling: Sampling
    reasoning: Reasoning
    asked_s: float  # by `time.perf_counter`
    _parts: list[ReasoningParts] = field(default_factory=list)
    _token_ids: list[int] = field(default_factory=list)
    _logprobs: list[float] = field(default_factory=list)
    _first_s: float = 0.0

    def take(self, chunk: HostChunk) -> Delta:
        """Return a chunk as a delta; the last one carries the result."""
        if not self._token_ids:
            self._first_s = time.perf_counter() - self.asked_s
        parts = self.reasoning.take(chunk.text)
        if chunk.finish_reason:
            last = self.reasoning.rest()
            parts = ReasoningParts(parts.reasoning + last.reasoning, parts.text + last.text)
        self._parts.append(parts)
        self._token_ids += chunk.token_ids
        self._logprobs += chunk.logprobs
        result = self._result(chunk) if chunk.finish_reason else None
        return Delta(parts.text, chunk.token_ids, chunk.logprobs, chunk.top_logprobs, result, parts.reasoning)

    def _result(self, chunk: HostChunk) -> GenerateResult:
        return GenerateResult(
            text="".join(parts.text for parts in self._parts),
            messages=self.request.messages,
            notes=self.notes,
            prompt_token_ids=self.prompt_token_ids,
            completion_token_ids=self._token_ids,
            logprobs=self._logprobs,
            adapter_version=self.adapter_version,
            sampling=asdict(self.sampling) | ({TOOLS: self.request.tools} if self.request.tools else {}),
            finish_reason=chunk.finish_reason or "",
            num_cached_tokens=chunk.num_cached_tokens,
            time_to_first_token_s=self._first_s,
            duration_s=time.perf_counter() - self.asked_s,
            reasoning="".join(parts.reasoning for parts in self._parts),
        )
