"""The training data of one update: kept beside the version it made, and exported as JSONL in a zip file.

Owns both formats. Invariants: token ids are written as they were trained on; a batch is as old as its version's other
files and goes with them (pruned, erased, forgotten), for it holds what one person said; the manifest's SHA-256 and
counts are of the very lines beside it.

A line of the export: kind and source of the response, weight, the feedback that taught the version, prompt and
response as text, the teacher's view of the prompt, and the token ids of all three.
"""

import hashlib
import io
import json
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from engine.config import LearnConfig
from engine.errors import BatchNotKept
from engine.sample import Sample

FORMAT = "heed batch 1"
BATCH_FILE, MANIFEST_FILE = "batch.jsonl", "manifest.json"
_SOURCES = {
    "correction": "the answer that was corrected",
    "anchor": "a neutral prompt, answered by the base model",
    "earlier": "an answer corrected earlier: measured, not trained on",
    "gold": "an approved answer: measured, not trained on",
}

Record = dict[str, Any]
Decode = Callable[[Sequence[int]], str]


@dataclass(frozen=True)
class Origin:
    """The model, version and feedback that a batch belongs to."""

    model: str  # as people know it
    base_model: str  # fingerprint
    version: int
    feedback: str | None  # the words that taught it, if there are any


def encode(update_id: str, parent: int, samples: Sequence[Sample], learn: LearnConfig) -> bytes:
    """Return a batch as it is kept: one line about the update, then one line for each sample."""
    head = {"format": FORMAT, "update": update_id, "parent": parent, "settings": learn.to_dict()}
    return b"".join(_line(record) for record in (head, *(sample.to_dict() for sample in samples)))


def pack(content: bytes, origin: Origin, decode: Decode) -> bytes:
    """Return the zip file of a kept batch. Blocking. Raise BatchNotKept if it cannot be read."""
    head, samples = _read(content)
    lines = b"".join(_line(_handed_out(sample, origin.feedback, decode)) for sample in samples)
    manifest = {
        "format": FORMAT,
        "model": origin.model,
        "base_model": origin.base_model,
        "version": origin.version,
        "parent": head["parent"],
        "update": head["update"],
        "settings": head["settings"],
        "num_samples": len(samples),
        "num_by_kind": dict(sorted(Counter(sample["kind"] for sample in samples).items())),
        "num_response_tokens": sum(len(sample["response_ids"]) for sample in samples),
        "sha256": {BATCH_FILE: hashlib.sha256(lines).hexdigest()},
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(BATCH_FILE, lines)
        archive.writestr(MANIFEST_FILE, json.dumps(manifest, indent=2, sort_keys=True) + "\n")
    return buffer.getvalue()


def _read(content: bytes) -> tuple[Record, list[Record]]:
    try:
        head, *samples = [json.loads(line) for line in content.splitlines()]
        if head["format"] == FORMAT:
            return head, samples
    except (ValueError, KeyError, TypeError) as error:
        raise BatchNotKept(f"the batch of this version cannot be read: {error}") from error
    raise BatchNotKept(f"the batch of this version is not a {FORMAT}")


def _handed_out(sample: Record, feedback: str | None, decode: Decode) -> Record:
    return {
        "kind": sample["kind"],
        "source": _source(sample),
        "weight": sample.get("weight", 1.0),
        "feedback": feedback,
        "prompt": decode(sample["student_ids"]),
        "teacher_prompt": decode(sample["teacher_ids"]),
        "response": decode(sample["response_ids"]),
        "student_ids": sample["student_ids"],
        "teacher_ids": sample["teacher_ids"],
        "response_ids": sample["response_ids"],
        "behaviour_logprobs": sample.get("behaviour_logprobs"),
    }


def _source(sample: Record) -> str:
    is_own = sample.get("behaviour_logprobs") is not None
    return _SOURCES.get(sample["kind"], "answered by the person's adapter" if is_own else "answered by the teacher")


def _line(record: Record) -> bytes:
    return (json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n").encode()
