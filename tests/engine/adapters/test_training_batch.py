"""engine.adapters.training_batch: what an update was trained on, kept and handed out."""

import hashlib
import json
from typing import Any

import pytest

from engine.adapters.training_batch import BATCH_FILE, MANIFEST_FILE, Origin, encode, pack
from engine.config import LearnConfig
from engine.errors import BatchNotKept
from engine.sample import Sample
from tests import adapter_zips

ORIGIN = Origin("pocket", "a fingerprint", 3, "too long")
SAMPLES = [
    Sample("correction", [1], [1, 2], [3, 4], behaviour_logprobs=[-0.5, -1.0], behaviour_ids=[1]),
    Sample("counterfactual", [1], [1, 2], [5], weight=0.25, behaviour_logprobs=[-0.5]),
    Sample("counterfactual", [1], [1, 2], [6]),
    Sample("anchor", [7], [7], [8]),
    Sample("gold", [7], [7], [9]),
]


def decode(token_ids: Any) -> str:
    """Token ids as words."""
    return " ".join(f"t{token}" for token in token_ids)


def packed() -> tuple[list[dict[str, Any]], dict[str, Any], bytes]:
    """The lines and the manifest of the batch above, and the file of lines as it is."""
    content = encode("upd-1", 2, SAMPLES, LearnConfig(steps=7))
    files = adapter_zips.contents(pack(content, ORIGIN, decode))
    assert set(files) == {BATCH_FILE, MANIFEST_FILE}
    lines = [json.loads(line) for line in files[BATCH_FILE].splitlines()]
    return lines, json.loads(files[MANIFEST_FILE]), files[BATCH_FILE]


def test_every_sample_is_a_line_with_ids_and_words() -> None:
    """Prompt, teacher's view and response, as they were trained on and as people read them."""
    lines, _, _ = packed()
    assert [line["response_ids"] for line in lines] == [sample.response_ids for sample in SAMPLES]
    first = lines[0]
    assert (first["prompt"], first["teacher_prompt"], first["response"]) == ("t1", "t1 t2", "t3 t4")
    assert (first["student_ids"], first["teacher_ids"]) == ([1], [1, 2])
    assert (first["feedback"], first["behaviour_logprobs"]) == ("too long", [-0.5, -1.0])
    assert [line["weight"] for line in lines] == [1.0, 0.25, 1.0, 1.0, 1.0]


def test_a_line_says_who_wrote_the_response() -> None:
    """The answer that was corrected, the adapter, the teacher, the base model; and what was only looked at."""
    sources = [line["source"] for line in packed()[0]]
    words = ("corrected", "adapter", "teacher", "base model", "not trained on")
    assert [word in source for word, source in zip(words, sources, strict=True)] == [True] * 5


def test_the_manifest_vouches_for_the_lines() -> None:
    """Counts, settings, the model's fingerprint, and the SHA-256 of the very file beside it."""
    _, manifest, raw = packed()
    assert manifest["sha256"] == {BATCH_FILE: hashlib.sha256(raw).hexdigest()}
    assert (manifest["num_samples"], manifest["num_response_tokens"]) == (5, 6)
    assert manifest["num_by_kind"] == {"anchor": 1, "correction": 1, "counterfactual": 2, "gold": 1}
    assert LearnConfig.from_dict(manifest["settings"]) == LearnConfig(steps=7)
    assert (manifest["base_model"], manifest["version"], manifest["parent"]) == ("a fingerprint", 3, 2)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format": "another"}', b"\xff", b'{"a": 1}\n{}'])
def test_what_is_no_batch_is_named(content: bytes) -> None:
    """Never a stack trace."""
    with pytest.raises(BatchNotKept, match="batch"):
        pack(content, ORIGIN, decode)
