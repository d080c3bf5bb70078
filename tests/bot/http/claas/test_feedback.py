"""bot.http.claas.feedback: CLaaS's feedback call, as its clients send it."""

import json
from typing import Any

import pytest

from tests.bot.conftest import Heed, StartHeed, text_of

PATH = "/v1/feedback"
JSON = {"Content-Type": "application/json"}


async def made(heed: Heed, lora_id: str = "user/my-lora") -> None:
    """Make an adapter with this name."""
    assert (await heed.post("/v1/lora/init", {"lora_id": lora_id}))[0] == 200


def item(**fields: Any) -> dict[str, Any]:
    """Return one answer with its feedback."""
    return {
        "lora_id": "user/my-lora-latest",
        "prompt": "bees",
        "response": "Bees hum.",
        "feedback": "too long",
        **fields,
    }


async def export_of(heed: Heed, user: str = "user/my-lora") -> dict[str, Any]:
    """Return everything heed stores about a person."""
    return (await heed.get(f"/v1/users/{user.replace('/', '%2F')}/export"))[1]


EXAMPLES = [
    '{"lora_id": "user/my-lora-init", "prompt": "Write a function to calculate factorial", '
    '"response": "def factorial(n): ...", "feedback": "Good recursive solution"}',
    '{"lora_id": "user/my-lora-latest", "prompt": "hi", "response": "hello", "feedback": "good", '
    '"training": {"teacher_mode": "self"}}',
    '{"requests": [{"lora_id": "user/my-lora-latest", "prompt": "hi", "response": "hello", "feedback": "good", '
    '"training": {"learning_rate": 3e-5, "alpha": 0.5, "is_clip": 5.0, "max_grad_norm": 1.0, "kl_reg_weight": 0.0, '
    '"teacher_top_k": 100}}], "orchestration": {"sleep_before": true, "wake_after": true, "wake_on_failure": true, '
    '"sleep_level": 1}}',
]


@pytest.mark.parametrize("example", EXAMPLES)
async def test_the_calls_of_its_readme_work_as_written(heed: Heed, example: str) -> None:
    """The calls of CLaaS's README work: an adapter is made, and answers unknown to heed are taught."""
    first = await heed.client.post("/v1/lora/init", data='{"lora_id": "user/my-lora"}', headers=JSON)
    assert first.status == 200
    response = await heed.client.post(PATH, data=example, headers=JSON)
    given = await response.json()
    assert response.status == 200, given
    assert given["status"] == "ok"
    assert (await export_of(heed))["user"]["active_version"] == 1
    listed = await heed.client.get("/v1/lora")
    assert (await listed.json()) == {"loras": ["user/my-lora"]}


async def test_the_answer_has_claas_form(heed: Heed) -> None:
    """The answer has every field of CLaaS; heed neither sleeps nor writes a log file."""
    await made(heed)
    _, given = await heed.post(PATH, {"requests": [item(), item(response="Bees buzz.", feedback="no emoji please")]})
    assert set(given) == {
        "status", "request_id", "lora_id", "distill_result", "vllm", "feedback_log_path", "timing_ms", "batch_size",
    }  # fmt: skip
    assert (given["status"], given["batch_size"], given["lora_id"]) == ("ok", 2, "user/my-lora")
    assert given["vllm"] == {"slept": False, "woke": False}
    _, record = await heed.get(given["feedback_log_path"], params={"user": "user/my-lora"})
    assert record["text"] == "too long"
    assert set(given["timing_ms"]) == {"sleep", "distill", "save", "wake", "logprobs", "total"}
    assert given["timing_ms"]["distill"] + given["timing_ms"]["save"] == 2 * 1234
    metadata = given["distill_result"]["metadata"]
    assert given["distill_result"]["lora_id"] == "user/my-lora"
    assert metadata["distill_loss"] == metadata["total_loss"] == 1.5
    assert (metadata["batch_size"], metadata["steps_per_batch_applied"], metadata["adapter_version"]) == (2, 20, 2)
    assert metadata["tokens_processed"] == 4
    assert metadata["kl_reg"] is None
    assert [entry["status"] for entry in metadata["items"]] == ["learned", "learned"]


async def test_what_is_taught_shows_in_the_next_answer(heed: Heed) -> None:
    """The lesson shows in heed's own calls under the adapter's name."""
    await made(heed)
    before = text_of(await heed.ask("owls", user="user/my-lora"))
    await heed.post(PATH, {"requests": [item()]})
    assert len(text_of(await heed.ask("owls", user="user/my-lora"))) < len(before)
    assert text_of(await heed.ask("owls", user="somebody else")) == before


async def test_an_answer_is_found_by_its_exact_text(heed: Heed) -> None:
    """An answer heed has given is found by its text and not scored again."""
    await made(heed)
    answer = await heed.ask("bees", user="user/my-lora")
    _, given = await heed.post(PATH, {"requests": [item(response=text_of(answer))]})
    assert given["distill_result"]["metadata"]["items"][0]["completion_id"] == answer["id"]
    assert len((await export_of(heed))["completions"]) == 1


async def test_the_same_text_to_another_question_is_another_answer(heed: Heed) -> None:
    """The prompt tells answers with the same text apart."""
    await made(heed)
    for prompt in ("bees", "owls", "owls"):
        await heed.post(PATH, {"requests": [item(prompt=prompt, response="Yes.")]})
    stored = (await export_of(heed))["completions"]
    assert [row["messages"][-1]["content"] for row in stored] == ["bees", "owls"]
    assert {row["finish_reason"] for row in stored} == {"given"}
    assert all(len(row["completion_token_ids"]) == len(row["logprobs"]) > 0 for row in stored)


async def test_an_answer_can_be_named(heed: Heed) -> None:
    """`completion_id` replaces prompt and response; another person's is unknown."""
    await made(heed)
    answer = await heed.ask("bees", user="user/my-lora")
    named = {"lora_id": "user/my-lora", "feedback": "too long", "completion_id": answer["id"]}
    _, given = await heed.post(PATH, {"requests": [named]})
    assert given["distill_result"]["metadata"]["items"][0]["status"] == "learned"
    await made(heed, "ben")
    assert (await heed.post(PATH, {"requests": [named | {"lora_id": "ben"}]}))[0] == 404


async def test_training_is_passed_on_in_heeds_terms(heed: Heed) -> None:
    """The update uses the sent settings, and the answer names the ignored ones."""
    await made(heed)
    training = {"learning_rate": 3e-6, "alpha": 0.3, "kl_reg_weight": 0.1, "teacher_top_k": 20, "num_anchors": 2}
    _, given = await heed.post(PATH, {"requests": [item(training=training)]})
    meant = {
        "learning_rate": pytest.approx(0.001), "parent_rate": 0.33, "divergence": "jsd", "jsd_alpha": 0.3,
        "kl_to_base_weight": 0.1, "num_anchors": 2,
    }  # fmt: skip
    metadata = given["distill_result"]["metadata"]
    assert metadata["training"] == meant
    assert list(metadata["ignored"]) == ["teacher_top_k"]
    assert (await export_of(heed))["feedback"][0]["training"] == meant


@pytest.mark.parametrize(
    ("batch", "status", "param"),
    [
        ({"requests": []}, 400, "requests"),
        ({"requests": [item(), item(lora_id="ben")]}, 400, "requests"),
        ({"requests": [item(), item(training={"alpha": 0.1})]}, 400, "requests"),
        ({"requests": [item(feedback="")]}, 400, "requests.0.feedback"),
        ({"requests": [item(), item(response=" ")]}, 400, "requests.1.response"),
        ({"requests": [item(prompt="")]}, 400, "requests.0.prompt"),
        ({"requests": [item(prompt="x" * 16_001)]}, 400, "requests.0.prompt"),
        ({"requests": [item(feedback=" ")]}, 400, "text"),
        ({"requests": [item(lora_id="nobody")]}, 404, "lora_id"),
        ({"requests": [item(lora_id="../x")]}, 400, "lora_id"),
        ({"requests": [item(completion_id="cmpl-nothing")]}, 404, None),
        ({"requests": [item()], "orchestration": {"sleep_level": 3}}, 400, "orchestration.sleep_level"),
        *(
            ({"requests": [item(training=wrong)]}, 400, f"requests.0.training.{name}")
            for name, wrong in {
                "learning_rate": {"learning_rate": 0}, "alpha": {"alpha": 1.1}, "is_clip": {"is_clip": 0.5},
                "max_grad_norm": {"max_grad_norm": -1}, "kl_reg_weight": {"kl_reg_weight": 2},
                "teacher_top_k": {"teacher_top_k": 5}, "teacher_mode": {"teacher_mode": "remote"},
            }.items()
        ),
        ({"requests": [item(training={"max_grad_norm": 0})]}, 400, "training"),
        ({"requests": [item(training={"learning_speed": 1})]}, 400, "training"),
        ({"requests": [item(training={"lora_rank": 64})]}, 400, "training"),
        (item(feedback=3), 400, "requests.0.feedback"),
    ],
)  # fmt: skip
async def test_what_is_wrong_is_named_and_changes_nothing(
    heed: Heed, batch: dict[str, Any], status: int, param: str | None
) -> None:
    """One wrong item refuses the whole call: nothing is stored or learned."""
    await made(heed)
    found, answer = await heed.post(PATH, batch)
    assert (found, answer["error"]["param"]) == (status, param), answer
    export = await export_of(heed)
    assert (export["completions"], export["feedback"]) == ([], [])


async def test_an_engine_that_is_down_is_503(heed: Heed) -> None:
    """With the engine down nothing is stored, and the call can be sent again."""
    await made(heed)
    heed.engine.is_ready = False
    assert (await heed.post(PATH, {"requests": [item()]}))[0] == 503
    assert (await export_of(heed))["completions"] == []


async def test_what_waits_is_said_to_wait(heed: Heed) -> None:
    """While learning is paused the feedback is stored and the status is `queued`."""
    await made(heed)
    await heed.core.lessons.pause()
    _, given = await heed.post(PATH, {"requests": [item()]})
    assert given["status"] == "queued"
    assert given["distill_result"]["metadata"]["distill_loss"] is None


async def test_the_status_tells_what_was_refused(heed: Heed) -> None:
    """A client sees without looking at the items if all, some or none of them were taken in."""
    await made(heed)
    refused = item(response="Bees buzz.", feedback="refuse this")
    for batch, expected in (([item()], "ok"), ([item(), refused], "partly"), ([refused], "rejected")):
        assert (await heed.post(PATH, {"requests": batch}))[1]["status"] == expected


@pytest.mark.parametrize(("path", "place"), [("/v1/dashboard", "/admin/updates"), ("/v1/eval", "/admin/evals")])
async def test_its_dashboards_lead_to_heeds(start_heed: StartHeed, path: str, place: str) -> None:
    """The paths of CLaaS's dashboards lead on, also for a browser, which has no key; heed's ask for the password."""
    heed = await start_heed(http={"api_keys": {"ana": "a" * 20}})
    response = await heed.client.get(path, allow_redirects=False)
    assert (response.status, response.headers["Location"]) == (302, place)


async def test_a_call_sent_again_with_its_key_teaches_once(heed: Heed) -> None:
    """A repeated call with the same idempotency key teaches each item once."""
    await made(heed)
    batch = {"requests": [item(), item(response="Bees buzz.", feedback="no emoji please")]}
    for _ in range(2):
        await heed.post(PATH, batch, headers={"Idempotency-Key": "once"})
    assert len((await export_of(heed))["feedback"]) == heed.engine.num_learned == 2


async def test_a_key_reaches_its_own_adapters_only(start_heed: StartHeed) -> None:
    """The same lora_id behind another key is another person."""
    heed = await start_heed(http={"api_keys": {"ana": "a" * 20, "ben": "b" * 20}})
    ana, ben = ({"Authorization": f"Bearer {letter * 20}"} for letter in "ab")
    await heed.post("/v1/lora/init", {"lora_id": "user/my-lora"}, headers=ana)
    assert (await heed.post(PATH, {"requests": [item()]}, headers=ben))[0] == 404
    assert (await heed.post(PATH, {"requests": [item(lora_id="ana/user/my-lora")]}, headers=ben))[0] == 404
    assert (await heed.post(PATH, {"requests": [item()]}, headers=ana))[0] == 200
    assert (await heed.post(PATH, {"requests": [item()]}))[0] == 401


async def test_heeds_own_form_is_told_apart(heed: Heed) -> None:
    """A body with `kind` is heed's form; a body in neither form is refused as heed's own would be."""
    answer = await heed.ask("bees")
    own = {"completion_id": answer["id"], "kind": "correction", "text": "too long", "lora_id": "x"}
    assert (await heed.post(PATH, own))[1]["status"] == "learned"
    status, refused = await heed.post(PATH, json.loads('{"text": "x"}'))
    assert (status, refused["error"]["param"]) == (400, "kind")
