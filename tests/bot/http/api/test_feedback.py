"""bot.http.api.feedback: POST /v1/feedback."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from bot.events import Author
from engine.config import ConsolidationConfig
from engine.consolidation.material import DISLIKED, Material, gather, with_follow_ups
from storage.database import Session
from storage.tables import Feedback
from tests.bot.conftest import Heed, text_of
from tests.patience import PATIENCE_S

URL = "/v1/feedback"


async def test_a_correction_is_learned_with_everything_shown(heed: Heed) -> None:
    """The answer has the version, the note, the update with its heat map, and the retried answer."""
    first = await heed.ask("bees", user="ana")
    learned = await heed.correct(first["id"], "too long", user="ana", retry=True)
    assert (learned["status"], learned["adapter_version"], learned["note"]) == ("learned", 1, "too long")
    update = learned["update"]
    assert set(update) >= {"steps", "divergence_before", "divergence_after", "duration_ms", "gate", "heat"}
    assert "".join(token for token, _ in update["heat"]).startswith(text_of(first))
    assert len(learned["retry"]["text"]) < len(text_of(first))
    assert text_of(await heed.ask("ants", user="ana")) == "You asked about ants. 🙂 Would you like to know more?"


async def test_a_lesson_changes_one_persons_answers_only(heed: Heed) -> None:
    """After Ana's lesson Bob is answered as before."""
    before = text_of(await heed.ask("bees", user="bob"))
    first = await heed.ask("bees", user="ana")
    await heed.correct(first["id"], "too long", user="ana")
    assert text_of(await heed.ask("bees", user="bob")) == before


async def test_a_rewritten_answer_is_an_ideal(heed: Heed) -> None:
    """A rewritten answer teaches its text, also as a correction that says "say it like this: ..."."""
    for fields in ({"kind": "ideal", "text": "Buzz."}, {"kind": "correction", "text": "say it like this: Buzz."}):
        first = await heed.ask("bees")
        status, learned = await heed.post(URL, {"completion_id": first["id"], "retry": True, **fields})
        assert (status, learned["retry"]["text"]) == (200, "Buzz.")


async def test_an_approval_and_a_thumb_up_approve_the_answer(heed: Heed) -> None:
    """An approval and a thumb up are stored, train nothing, and approve the answer."""
    for fields in ({"kind": "approval"}, {"kind": "reaction", "value": "+1"}, {"kind": "reaction", "value": 1}):
        first = await heed.ask("bees", heed={"chat": "web"})
        status, kept = await heed.post(URL, {"completion_id": first["id"], **fields})
        assert (status, kept["status"], kept["adapter_version"]) == (200, "kept", 0)
    _, history = await heed.get("/v1/users/local/history")
    assert all(answers[-1]["is_gold"] for answers in history["data"])


async def test_a_lesson_that_made_it_worse_is_taken_back(heed: Heed) -> None:
    """The response names the active version after an automatic undo, and has its answer to the same question."""
    first = await heed.ask("bees")
    learned = await heed.correct(first["id"], "no emoji", retry=True)
    body = {"completion_id": learned["retry"]["completion_id"], "kind": "correction", "text": "go back", "retry": True}
    _, taken = await heed.post(URL, body)
    assert (taken["status"], taken["taken_back"], taken["adapter_version"]) == ("kept", True, 0)
    assert "because you said that it was better before. The untrained model answers again" in taken["reason"]
    assert (taken["retry"]["adapter_version"], "ask" in taken) == (0, False)


async def test_a_thumb_down_asks_for_a_reason(heed: Heed) -> None:
    """A thumb down alone is stored and answered with a question; with a reason it is learned."""
    first = await heed.ask("bees")
    _, kept = await heed.post(URL, {"completion_id": first["id"], "kind": "reaction", "value": -1})
    assert (kept["status"], kept["ask"]) == ("kept", "What should be different?")
    _, learned = await heed.post(
        URL, {"completion_id": first["id"], "kind": "reaction", "value": "👎", "text": "too long"}
    )
    assert learned["status"] == "learned"


async def test_the_persons_own_choice_is_stored_with_the_correction(heed: Heed) -> None:
    """`scope` reaches the row and the history; without it the row says that the person chose nothing."""
    first = await heed.ask("bees", heed={"chat": "web"})
    for scope in ("answer", "always", ""):
        body = {"completion_id": first["id"], "kind": "correction", "text": f"too long {scope}", "scope": scope}
        _, learned = await heed.post(URL, body)
        _, history = await heed.get("/v1/users/local/history")
        told = history["data"][0][-1]["feedback"][-1]
        assert (told["feedback_id"], told["scope"]) == (learned["feedback_id"], scope)


async def test_a_choice_that_does_not_exist_is_refused(heed: Heed) -> None:
    """`scope` is "answer", "always" or empty."""
    first = await heed.ask("bees")
    body = {"completion_id": first["id"], "kind": "correction", "text": "too long", "scope": "forever"}
    status, refused = await heed.post(URL, body)
    assert (status, refused["error"]["param"]) == (400, "scope")


async def test_a_note_needs_no_answer(heed: Heed) -> None:
    """A note is in the prompt of the very next answer."""
    _, kept = await heed.post(URL, {"kind": "note", "text": "call me Ana"})
    assert (kept["status"], kept["note"]) == ("kept", "call me Ana")
    assert text_of(await heed.ask("bees")).startswith("Ana:")


async def test_without_waiting_the_answer_is_queued(heed: Heed) -> None:
    """With wait: false the response comes before the update has run."""
    first = await heed.ask("bees")
    heed.engine.learn_delay_s = 2 * PATIENCE_S
    assert (await heed.correct(first["id"], "too long", wait=False))["status"] == "queued"
    heed.engine.finish_lessons()
    async with asyncio.timeout(PATIENCE_S):
        while (await heed.get("/v1/users/local"))[1]["active_version"] != 1:  # noqa: ASYNC110  the server is asked
            await asyncio.sleep(0.01)


async def test_the_same_key_gives_the_same_feedback(heed: Heed) -> None:
    """A repeated request has the same id and result; another body under the key is 422 and changes nothing."""
    first = await heed.ask("bees")
    body = {"completion_id": first["id"], "kind": "correction", "text": "too long", "retry": True}
    headers = {"Idempotency-Key": "abc"}
    answers = [(await heed.post(URL, body, headers=headers))[1] for _ in range(2)]
    assert answers[0]["feedback_id"] == answers[1]["feedback_id"]
    assert answers[0]["retry"] == answers[1]["retry"]
    status, refused = await heed.post(URL, {**body, "text": "too short"}, headers=headers)
    assert (status, refused["error"]["type"]) == (422, "invalid_request_error")
    assert heed.engine.num_learned == 1


@pytest.mark.parametrize("key", ["x" * 256])
async def test_a_key_has_a_length(heed: Heed, key: str) -> None:
    """An idempotency key has at most 255 characters."""
    status, answer = await heed.post(URL, {"kind": "note", "text": "x"}, headers={"Idempotency-Key": key})
    assert (status, answer["error"]["param"]) == (400, "Idempotency-Key")


async def test_an_answer_of_nobody_or_of_somebody_else_is_unknown(heed: Heed) -> None:
    """An unknown answer and another person's are the same 404, so that nothing leaks."""
    other = await heed.ask("bees", user="bob")
    answers = [
        await heed.post(URL, {"completion_id": id_, "kind": "correction", "text": "too long", "user": "ana"})
        for id_ in ("cmpl-0", other["id"])
    ]
    assert [status for status, _ in answers] == [404, 404]
    assert {body["error"]["type"] for _, body in answers} == {"not_found_error"}


@pytest.mark.parametrize(
    ("fields", "status", "param"),
    [
        ({"kind": "shout", "text": "x"}, 400, "kind"),
        ({"kind": "correction"}, 400, "text"),
        ({"kind": "correction", "text": "  "}, 400, "text"),
        ({"kind": "correction", "text": "x" * 16_001}, 400, "text"),
        ({"kind": "correction", "text": "a\x00"}, 400, "text"),
        ({"kind": "correction", "text": 7}, 400, "text"),
        ({"kind": "correction", "text": "x", "completion_id": None}, 400, "completion_id"),
        ({"kind": "reaction"}, 400, "value"),
        ({"kind": "correction", "text": "x", "index": 8}, 400, "index"),
        ({"kind": "correction", "text": "x", "wait": False, "retry": True}, 400, "retry"),
        ({"kind": "correction", "text": "x", "training": {"stepz": 3}}, 400, "training"),
        ({"kind": "correction", "text": "x", "training": {"learning_rate": -1}}, 400, "training"),
        ({"kind": "correction", "text": "x", "training": {"teacher": "external"}}, 400, "training"),
        ({"kind": "correction", "text": "x" * (256 * 1024)}, 413, None),
    ],
)
async def test_bad_feedback_is_refused_and_changes_nothing(
    heed: Heed, fields: dict[str, Any], status: int, param: str | None
) -> None:
    """Bad feedback is a 4xx that names the field, and stores nothing."""
    first = await heed.ask("bees")
    got, answer = await heed.post(URL, {"completion_id": first["id"], **fields})
    assert (got, answer["error"]["param"]) == (status, param)
    _, export = await heed.get("/v1/users/local/export")
    assert (export["feedback"], heed.engine.num_learned) == ([], 0)


async def test_a_megabyte_is_refused(heed: Heed) -> None:
    """The body limit holds before JSON is parsed."""
    response = await heed.client.post(URL, data=b"x" * 1_000_000)
    assert response.status == 413
    assert "262144 bytes" in (await response.json())["error"]["message"]


@pytest.mark.parametrize("raw", ["", "{", "[]", '"x"', "[" * 100_000, b"\xff\xfe", "NaN"])
async def test_what_is_no_json_object_is_refused(heed: Heed, raw: Any) -> None:
    """A body that is no JSON object is 400, also if it is nested without end."""
    response = await heed.client.post(URL, data=raw)
    assert (response.status, (await response.json())["error"]["type"]) == (400, "invalid_request_error")


async def test_request_level_learning_settings_are_checked_and_kept(heed: Heed) -> None:
    """`training` overrides single learning settings of this update."""
    first = await heed.ask("bees")
    await heed.correct(first["id"], "too long", training={"learning_rate": 0.01, "steps": 3})
    _, export = await heed.get("/v1/users/local/export")
    assert export["feedback"][0]["training"] == {"learning_rate": 0.01, "steps": 3}


async def test_feedback_survives_a_restart(start_heed: Any) -> None:
    """An answer from before a restart can be corrected after it."""
    first = await (await start_heed()).ask("bees")
    later = await start_heed()
    assert (await later.correct(first["id"], "too long"))["status"] == "learned"


async def material(heed: Heed) -> Material:
    """Return the material for a consolidation of the local user."""
    user_id = await heed.core.gateway.person(Author("http", "local"))

    def gathered(s: Session) -> Material:
        return with_follow_ups(s, user_id, gather(s, user_id, ConsolidationConfig()), ConsolidationConfig())

    return await heed.core.database.read(gathered)


async def test_a_thumb_down_without_words_reaches_a_consolidation(heed: Heed) -> None:
    """A bare thumb down is a weak signal; a later reason replaces it."""
    first = await heed.ask("bees", heed={"chat": "web"})
    await heed.post("/v1/feedback", {"completion_id": first["id"], "kind": "reaction", "value": "-1"})
    found = await material(heed)
    assert [(signal.completion.id, signal.hindsight.feedback) for signal in found.weak] == [(first["id"], DISLIKED)]
    await heed.correct(first["id"], "too long")
    found = await material(heed)
    assert (found.weak, [signal.completion.id for signal in found.new]) == ([], [first["id"]])


async def test_an_answer_that_was_regenerated_and_kept_reaches_a_consolidation(heed: Heed) -> None:
    """A regenerated answer that the person goes on from is approved and shown to the teacher of the dropped one."""
    first = await heed.ask("bees", heed={"chat": "web"})
    again = await heed.ask("", messages=[], heed={"regenerate": first["id"]})
    assert (await material(heed)).weak == []
    await heed.ask("wasps", heed={"chat": "web"})
    found = await material(heed)
    assert [(w.completion.id, w.hindsight.solution) for w in found.weak] == [(first["id"], text_of(again))]
    assert (found.completion_ids, found.kept_ids) == ([first["id"]], [again["id"]])


async def test_an_ordinary_next_message_reaches_one_only_where_the_person_allows_it(heed: Heed) -> None:
    """Follow-ups are used only if the person allows it with /learning."""
    first = await heed.ask("bees", heed={"chat": "web"})
    await heed.ask("could that be shorter", heed={"chat": "web"})
    assert (await material(heed)).weak == []
    for word, expected in (("on", [(first["id"], "could that be shorter")]), ("off", [])):
        await heed.post("/v1/users/local/commands", {"text": f"/learning follow-ups {word}"})
        found = await material(heed)
        assert [(w.completion.id, w.hindsight.feedback) for w in found.weak] == expected
        assert (await heed.get("/v1/users/local"))[1]["learns_from_follow_ups"] == (word == "on")


async def state(heed: Heed, feedback_id: str, user: str = "ana") -> dict[str, Any]:
    """What the call about a piece of feedback says."""
    status, found = await heed.get(f"{URL}/{feedback_id}?user={user}")
    assert status == 200, found
    return found


async def under_way(heed: Heed, text: str = "too long", **fields: Any) -> dict[str, Any]:
    """A lesson of Ana's that takes its time, once it runs."""
    first = await heed.ask("bees", user="ana")
    heed.engine.learn_delay_s = 2 * PATIENCE_S
    queued = await heed.correct(first["id"], text, user="ana", wait=0.05, **fields)
    assert queued["status"] == "queued"
    return queued


async def test_a_lesson_under_way_names_the_url_to_ask(heed: Heed) -> None:
    """After the seconds it waits the call gives up; the URL says how far the lesson is, in figures and in words."""
    queued = await under_way(heed)
    assert queued["url"] == f"/v1/feedback/{queued['feedback_id']}"
    _, found = await heed.get(f"{queued['url']}?user=ana")
    assert (found["status"], found["state"], found["text"]) == ("queued", "pending", "too long")
    progress = found["progress"]
    assert (progress["status"], progress["phase"], progress["place"]) == ("running", "teacher rollouts", 0)
    assert 0 <= progress["share"] < 0.5
    assert progress["text"].startswith("Learning: writing examples, ")


async def test_what_became_of_feedback_can_be_asked_later(heed: Heed) -> None:
    """The version, the gate and the times of a lesson that was learned; the reason of one that was refused."""
    first = await heed.ask("bees", user="ana")
    learned = await heed.correct(first["id"], "too long", user="ana")
    found = await state(heed, learned["feedback_id"])
    assert (found["status"], found["adapter_version"], found["progress"]) == ("learned", 1, None)
    assert (found["update"]["gate"], found["update"]["duration_ms"]) == ({"passed": True}, 1234.0)
    refused = await heed.correct(first["id"], "refuse this", user="ana")
    found = await state(heed, refused["feedback_id"])
    assert (found["status"], found["reason"]) == ("rejected", "the new version did worse")


async def test_another_persons_feedback_is_not_there(heed: Heed) -> None:
    """Whoever asks for it or cancels it gets 404, and nothing changes."""
    queued = await under_way(heed)
    for user in ("ben", "eva"):
        await heed.ask("bees", user="ben")
        assert (await heed.get(f"{queued['url']}?user={user}"))[0] == 404
        assert (await heed.post(f"{queued['url']}/cancel?user={user}", {}))[0] == 404
    assert (await heed.get(f"{URL}/nothing?user=ana"))[0] == 404
    assert (await state(heed, queued["feedback_id"]))["status"] == "queued"


async def test_a_lesson_is_cancelled(heed: Heed) -> None:
    """The call that waits for it hears of it; no version, no note, and a second time changes nothing."""
    queued = await under_way(heed)
    for _ in range(2):
        status, ended = await heed.post(f"{queued['url']}/cancel?user=ana", {})
        assert (status, ended["status"], ended["adapter_version"]) == (200, "cancelled", 0)
        assert ended["text"] == "Cancelled. Nothing was learned from it."
    found = await state(heed, queued["feedback_id"])
    assert (found["status"], found["state"], found["progress"]) == ("cancelled", "cancelled", None)
    _, notes = await heed.get("/v1/users/ana/notes")
    assert notes["data"] == []
    assert await heed.engine.resume_pending() == 0


async def test_what_was_learned_is_not_cancelled(heed: Heed) -> None:
    """A lesson that has ended keeps its outcome."""
    first = await heed.ask("bees", user="ana")
    learned = await heed.correct(first["id"], "too long", user="ana")
    _, ended = await heed.post(f"{URL}/{learned['feedback_id']}/cancel?user=ana", {})
    assert (ended["status"], ended["adapter_version"]) == ("learned", 1)


async def test_the_next_answer_does_not_wait_for_a_lesson(heed: Heed) -> None:
    """The person is answered while their lesson runs."""
    queued = await under_way(heed)
    assert text_of(await heed.ask("ants", user="ana")).startswith("You asked about ants.")
    assert (await state(heed, queued["feedback_id"]))["progress"] is not None


async def test_the_same_call_again_brings_the_result(heed: Heed, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its idempotency key: once the lesson has ended the result and the new answer come."""
    commit, is_known = heed.core.lessons.commit, asyncio.Event()

    async def noted(*args: Any, **about: Any) -> tuple[Feedback, bool]:
        found = await commit(*args, **about)
        is_known.set()
        return found

    first = await heed.ask("bees", user="ana")
    heed.engine.learn_delay_s = 2 * PATIENCE_S
    body = {"completion_id": first["id"], "kind": "correction", "text": "too long", "user": "ana", "retry": True}
    headers = {"Idempotency-Key": "k"}
    _, queued = await heed.post(URL, {**body, "wait": 0.01}, headers=headers)
    monkeypatch.setattr(heed.core.lessons, "commit", noted)
    again = asyncio.create_task(heed.post(URL, {**body, "wait": True}, headers=headers))
    await asyncio.wait_for(is_known.wait(), PATIENCE_S)
    heed.engine.finish_lessons()
    _, learned = await again
    assert (queued["status"], learned["status"]) == ("queued", "learned")
    assert (learned["feedback_id"], "retry" in queued) == (queued["feedback_id"], False)
    assert len(learned["retry"]["text"]) < len(text_of(first))


@pytest.mark.parametrize("is_calibrated", [True, False])
async def test_an_uncalibrated_model_says_so_wherever_a_lesson_is_told(heed: Heed, is_calibrated: bool) -> None:
    """At once, in the same call again, in what became of it, and in the history that the page shows after a reload."""
    heed.engine.config = replace(heed.engine.config, is_calibrated=is_calibrated)
    first = await heed.ask("bees", user="ana", heed={"chat": "web"})
    body = {"completion_id": first["id"], "kind": "correction", "text": "too long", "user": "ana"}
    told = [(await heed.post(URL, body, headers={"Idempotency-Key": "k"}))[1] for _ in range(2)]
    told.append(await state(heed, told[0]["feedback_id"]))
    _, history = await heed.get("/v1/users/ana/history")
    told += [given for (turn,) in history["data"] for given in turn["feedback"]]
    assert [given["status"] for given in told] == ["learned"] * 4
    assert [given.get("uncalibrated", False) for given in told] == [not is_calibrated] * 4


async def test_how_far_a_lesson_reaches_is_chosen_afterwards(heed: Heed) -> None:
    """The same choice changes nothing; the other one undoes the lesson, teaches it again and answers again."""
    first = await heed.ask("bees", user="ana")
    learned = await heed.correct(first["id"], "too long", user="ana")
    url = f"{URL}/{learned['feedback_id']}/scope?user=ana"
    status, kept = await heed.post(url, {"scope": "always"})
    assert (status, kept["feedback_id"], kept["adapter_version"]) == (200, learned["feedback_id"], 1)
    for _ in range(2):
        _, again = await heed.post(url, {"scope": "answer", "retry": True})
        assert (again["status"], again["adapter_version"], heed.engine.num_learned) == ("learned", 2, 2)
        assert len(again["retry"]["text"]) < len(text_of(first))
    assert (await state(heed, again["feedback_id"]))["scope"] == "answer"
    assert (await state(heed, learned["feedback_id"]))["state"] == "undone"
    assert (await heed.post(url.replace("ana", "ben"), {"scope": "answer"}))[0] == 404
    assert (await heed.post(url, {"scope": "sometimes"}))[0] == 400
    assert (await heed.post(url, {"scope": "answer", "wait": False, "retry": True}))[0] == 400


async def test_where_heed_is_unsure_it_asks(heed: Heed) -> None:
    """The result says so, and the choice teaches."""
    first = await heed.ask("bees", user="ana")
    asked = await heed.correct(first["id"], "unsure, too long", user="ana")
    assert (asked["status"], asked["reading"], asked["is_unsure"]) == ("kept", "remark", True)
    _, learned = await heed.post(f"{URL}/{asked['feedback_id']}/scope?user=ana", {"scope": "always"})
    assert (learned["status"], learned["adapter_version"]) == ("learned", 1)
