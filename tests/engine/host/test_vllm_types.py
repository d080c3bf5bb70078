"""engine.host.vllm_types: heed's requests in vLLM's terms, and back."""

import json
from types import SimpleNamespace

import pytest
from vllm.sampling_params import RequestOutputKind

from engine.adapter_ref import AdapterRef
from engine.host import vllm_types
from engine.requests import Sampling

SAMPLING = Sampling(temperature=0.7, top_p=0.9, max_tokens=12, seed=3, stop=("END",), top_logprobs=2)


def test_a_streamed_answer_comes_token_by_token_as_it_was_asked_for() -> None:
    """Every field of the sampling is passed on."""
    params = vllm_types.in_pieces(SAMPLING)
    asked = (params.temperature, params.top_p, params.max_tokens, params.seed, params.stop, params.logprobs)
    assert asked == (0.7, 0.9, 12, 3, ["END"], 2)
    assert params.skip_special_tokens
    assert not vllm_types.in_pieces(Sampling(keeps_special=True)).skip_special_tokens
    filtered = vllm_types.in_pieces(Sampling(0.7, top_k=20, min_p=0.1, repetition_penalty=1.05))
    assert (filtered.top_k, filtered.min_p, filtered.repetition_penalty) == (20, 0.1, 1.05)
    assert params.output_kind == RequestOutputKind.DELTA


def test_an_answer_in_one_piece_is_sampled_alike_without_text() -> None:
    """An answer in one piece has the same sampling and one output."""
    params = vllm_types.in_one_piece(Sampling(temperature=0.7, max_tokens=12))
    assert (params.temperature, params.max_tokens) == (0.7, 12)
    assert params.output_kind == RequestOutputKind.FINAL_ONLY
    assert not params.detokenize


def test_an_answer_in_words_is_ended_where_it_goes_round_in_circles() -> None:
    """One with a form or with tools may repeat itself, and one whose caller bends the sampling."""
    limit = vllm_types.in_pieces(Sampling()).repetition_detection
    assert limit.min_pattern_size * limit.min_count >= 192  # "write it twenty times" is answered
    assert limit.max_pattern_size >= 2 * limit.min_pattern_size  # any shorter passage fits some times into one of these
    for free in (Sampling(may_repeat=True), Sampling(json_schema={}), Sampling(logit_bias={"7": -100})):
        assert vllm_types.in_pieces(free).repetition_detection is None
    assert vllm_types.in_one_piece(Sampling()).repetition_detection is None


def test_an_adapter_keeps_its_name_number_and_path() -> None:
    """Name, number and path are passed on, because the prefix cache is keyed by them."""
    request = vllm_types.lora_request(AdapterRef("ana", 2, 7, "/data/ana/2"))
    assert (request.lora_int_id, request.lora_path) == (7, "/data/ana/2")
    assert "ana" in request.lora_name


@pytest.mark.parametrize(("top", "expected"), [(0, None), (1, [{5: -0.5, 6: -1.5}])])
def test_an_output_becomes_a_chunk(top: int, expected: object) -> None:
    """A chunk has the sampled token's log-probability, and the likeliest ones if they were asked for."""
    step = {5: SimpleNamespace(logprob=-0.5), 6: SimpleNamespace(logprob=-1.5)}
    completion = SimpleNamespace(text=" a", token_ids=[6], logprobs=[step], finish_reason=None)
    output = SimpleNamespace(outputs=[completion], num_cached_tokens=None)
    chunk = vllm_types.chunk_of(output, Sampling(top_logprobs=top))
    assert (chunk.text, chunk.token_ids, chunk.logprobs) == (" a", [6], [-1.5])
    assert chunk.top_logprobs == expected
    assert chunk.num_cached_tokens == 0


def test_penalties_biases_and_forms_are_passed_on() -> None:
    """Biases are by the token's number; a grammar wins over the schema that it is made from."""
    params = vllm_types.in_pieces(Sampling(frequency_penalty=0.5, presence_penalty=-1, logit_bias={"7": -100}))
    assert (params.frequency_penalty, params.presence_penalty, params.logit_bias) == (0.5, -1, {7: -100})
    assert params.structured_outputs is None
    assert vllm_types.in_pieces(Sampling(json_schema={})).structured_outputs.json == {}
    tag = json.dumps({"format": {"type": "json_schema"}})
    assert vllm_types.in_pieces(Sampling(json_schema={}, structural_tag=tag)).structured_outputs.structural_tag == tag


@pytest.mark.parametrize(
    ("sampling", "expected"),
    [
        (Sampling(), None),
        (Sampling(json_schema={}), "response_format"),
        (Sampling(structural_tag=json.dumps({"format": {"type": "json_schema"}})), "response_format"),
        (Sampling(structural_tag=json.dumps({"format": {"type": "tags_with_separator"}})), "tools"),
    ],
)
def test_a_grammar_comes_from_a_field(sampling: Sampling, expected: str | None) -> None:
    """A refusal of the grammar names the field that it was made from."""
    assert vllm_types.form_field(vllm_types.in_pieces(sampling)) == expected
