"""An honest stand-in for engine.engine.Engine: same calls, same rows in the real database, no model.

It answers every question the way the pocket model does before anybody corrected it (long, an emoji, a closing
question) and follows what it was taught: words of lessons in the active version's line, and of notes in the
prompt. Deterministic: the same person, question, version and notes give the same answer; a temperature above
zero only changes the opening. Nothing is remembered outside the database but the vocabulary.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict, replace
from typing import Any

from engine.adapters import training_batch, undo, zip_format
from engine.config import EngineConfig, LearnConfig, NoteConfig
from engine.engine import Engine
from engine.errors import AdapterRefused, BatchNotKept, EngineRestarting, NothingToUndo
from engine.learning import endings
from engine.requests import (
    GIVEN,
    STOPPED,
    TOOLS,
    ChatMessage,
    ConsolidationOutcome,
    Delta,
    EngineLoad,
    GenerateRequest,
    GenerateResult,
    LearnOutcome,
    LessonProgress,
    Likelihood,
    ModelLearning,
    ModelSkills,
    Sampling,
    ToolCallPiece,
    UndoResult,
)
from engine.sample import Sample
from engine.samples.notes import fitting, prompt_notes, prompt_room
from storage.database import Database
from storage.kinds import FeedbackKind, FeedbackStatus, NoteState
from storage.learning import feedback, notes, signals, updates, versions
from storage.people import erasure, people
from storage.tables import Feedback, Note, UpdateRun, User
from tests import adapter_zips

EMOJI = "🙂"
MAX_MODEL_LEN = 2000  # words
OPENINGS = ("Well,", "Sure,", "Happily:", "Right,")


class FakeEngine:
    """See the module. `token_delay_s` and `learn_delay_s` make it as slow as a test wants.

    With `hold_at` an answer stops before that word until `may_go_on` is set; a negative number counts from the end.
    """

    teacher_view = staticmethod(Engine.teacher_view)

    def __init__(self, config: EngineConfig, database: Database) -> None:
        self._database = database
        self._words: dict[str, int] = {}
        self._texts: list[str] = []
        self.config = config
        self.token_delay_s = 0.0
        self.learn_delay_s = 0.0
        self.hold_at: int | None = None
        self.may_go_on = asyncio.Event()
        self.is_ready = False
        self.failure: Exception | None = None  # raised by the next generate or learn
        self.num_aborted = 0
        self.prepared: list[str] = []  # for whom an adapter was wanted ahead
        self.num_learned = 0
        self.is_consolidation_paused = False
        self.requests: list[GenerateRequest] = []
        self.lesson_share: float | None = None  # how far a lesson says that it is; None: as its time
        self._lessons_under_way: dict[str, tuple[float, asyncio.Future[bool]]] = {}  # since when; its end: cancelled?
        self.thoughts = ""  # what it thinks before every answer
        self.ends_as = ""  # the finish reason of answers that would end by themselves; empty: "stop"
        self.learning = ModelLearning(architecture="Fake", learning_rate=0.001, steps=20)
        self.sampling = Sampling()  # that the model asks for
        self.skills = ModelSkills(True, True, lambda token_id: self._texts[token_id].encode())
        self.calls: list[ToolCallPiece] = []  # that it makes at the end of an answer with tools

    async def start(self, progress: Callable[[str], None]) -> None:
        """Load nothing, but say so."""
        progress("loading fake")
        await asyncio.sleep(0)
        self.is_ready = True

    async def stop(self) -> None:
        """Nothing to end."""
        self.is_ready = False

    def health(self) -> dict[str, str]:
        """Each part's state."""
        return {"model": "ok" if self.is_ready else "starting", "trainer": "ok" if self.is_ready else "starting"}

    def loads(self) -> dict[str, EngineLoad]:
        """What there is to do."""
        return {"engine": EngineLoad(num_lessons=len(self._lessons_under_way))}

    async def resume_pending(self) -> int:
        """Learn what an earlier heed left pending."""
        waiting = await self._database.read(feedback.pending)
        for row in waiting:
            await self.learn(row.id)
        return len(waiting)

    async def generate(self, request: GenerateRequest) -> AsyncIterator[Delta]:
        """Stream the words of the answer."""
        self._fail()
        self.requests.append(request)
        is_whole = False
        try:
            result = await self._answer(request)
            for place, token_id in enumerate(result.completion_token_ids):
                await asyncio.sleep(self.token_delay_s)
                if self.hold_at in (place, place - len(result.completion_token_ids)):
                    await self._held(request.stop)
                top = [{token_id: -0.25, 0: -2.0}] if request.sampling.top_logprobs else None
                last = result if place == len(result.completion_token_ids) - 1 else None
                is_whole = last is not None
                word = self._texts[token_id]
                thought, said = (word, "") if place < len(self._ids(result.reasoning)) else ("", word)
                yield Delta(said, [token_id], [-0.25], top, last, thought, pieces(last))
                if last is None and request.stop is not None and request.stop.is_set():
                    is_whole = True
                    yield Delta("", [], [], None, self._stopped(result, place + 1))
                    return
        finally:
            self.num_aborted += not is_whole

    def go_on(self, hold_at: int | None = None) -> None:
        """Let the answers that are held go on, as far as another word if one is given."""
        self.may_go_on.set()
        self.hold_at, self.may_go_on = hold_at, asyncio.Event()

    async def _held(self, stop: asyncio.Event | None) -> None:
        """Return once an answer may go on, or is to stop."""
        events = [self.may_go_on, *([] if stop is None else [stop])]
        waits = [asyncio.create_task(event.wait()) for event in events]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    def _stopped(self, whole: GenerateResult, num_tokens: int) -> GenerateResult:
        ids = whole.completion_token_ids[:num_tokens]
        text = "".join(self._texts[token_id] for token_id in ids)
        logprobs = whole.logprobs[:num_tokens]
        return replace(whole, text=text, completion_token_ids=ids, logprobs=logprobs, finish_reason=STOPPED)

    async def score(self, request: GenerateRequest, answer: str) -> Likelihood:
        """Each word of the fake's own answer is likely, any other is not."""
        self._fail()
        likely = compose(request.messages, await self._notes_in_prompt(request)).split()
        ids = self._ids(answer)
        logprobs = [-0.25 if self._texts[token_id].strip() in likely else -4.0 for token_id in ids]
        num_asked = sum(len(message["content"].split()) for message in request.messages)
        return Likelihood(num_asked, [self._texts[token_id] for token_id in ids], logprobs)

    async def adopt(self, request: GenerateRequest, text: str) -> GenerateResult:
        """Another's answer with this one's likelihoods."""
        found = await self.score(request, text)
        user = await self._user(request.user_id)
        prompt_ids = self._ids(" ".join(message["content"] for message in request.messages))
        return GenerateResult(
            text, request.messages, await self._notes_in_prompt(request), prompt_ids, self._ids(text), found.logprobs,
            user.active_version, asdict(request.sampling), GIVEN, 0, 0.0, 0.01,
        )  # fmt: skip

    async def prompt_notes(self, live: list[Note], version: int) -> list[Note]:
        """The newest notes that fit, which the weights do not hold."""
        standing = prompt_notes(live, has_adapter=version > 0)
        return fitting(standing, NoteConfig(), MAX_MODEL_LEN)

    async def note_size(self, text: str) -> tuple[int, int]:
        """Words for tokens."""
        return len(text.split()), prompt_room(NoteConfig(), MAX_MODEL_LEN)

    async def learn(self, feedback_id: str) -> LearnOutcome:
        """Make a version and a note of a correction; keep anything else."""
        self._fail()
        begun = (time.monotonic(), asyncio.get_running_loop().create_future())
        _, cancelled = self._lessons_under_way.setdefault(feedback_id, begun)  # before anything is awaited
        try:
            row = await self._database.read(lambda s: feedback.get(s, feedback_id))
            if await self._is_cancelled(cancelled):
                return await endings.cancel(self._database, feedback_id)
            return await self._taught(row)
        finally:
            self._lessons_under_way.pop(feedback_id, None)

    async def _taught(self, row: Feedback) -> LearnOutcome:
        user = await self._user(row.user_id)
        text = note_text(row)
        if "unsure" in row.text and not row.scope:
            return await self._ask(row, user)
        is_lesson = row.kind in (FeedbackKind.CORRECTION, FeedbackKind.IDEAL) and user.is_learning
        if not is_lesson or "refuse" in row.text:
            return await self._keep(row, user, text)
        return await self._learn(row, user, text)

    async def _is_cancelled(self, cancelled: asyncio.Future[bool]) -> bool:
        """Take the time of a lesson, with its end before that."""
        try:
            async with asyncio.timeout(self.learn_delay_s):
                return await asyncio.shield(cancelled)
        except TimeoutError:
            return False

    def finish_lessons(self) -> None:
        """Let the lessons that are under way be learned now."""
        for _, cancelled in self._lessons_under_way.values():
            if not cancelled.done():
                cancelled.set_result(False)

    async def lesson_progress(self, feedback_id: str) -> LessonProgress | None:
        """A lesson is as far as its time; it writes examples first, then trains."""
        if feedback_id not in self._lessons_under_way:
            return None
        taken_s = time.monotonic() - self._lessons_under_way[feedback_id][0]
        share = self.lesson_share
        if share is None:
            share = min(taken_s / max(self.learn_delay_s, 0.001), 0.99)
        return LessonProgress("running", "teacher rollouts" if share < 0.5 else "train", share, taken_s)

    async def cancel_lesson(self, feedback_id: str) -> LearnOutcome:
        """End the lesson, if it has not ended."""
        if feedback_id in self._lessons_under_way and not self._lessons_under_way[feedback_id][1].done():
            self._lessons_under_way[feedback_id][1].set_result(True)
        return await endings.cancel(self._database, feedback_id)

    async def consolidate(self, user_id: str) -> ConsolidationOutcome:
        """Take in what is new; nothing is trained."""
        self._fail()
        await asyncio.sleep(self.learn_delay_s)
        user = await self._user(user_id)
        found = await self._database.read(lambda s: signals.fresh(s, user_id))
        ids = [row.id for row in found]
        await self._database.write(lambda s: signals.take_in(s, user_id, "upd-fake", ids, []))
        status: Any = "learned" if ids else "kept"
        reason = "" if ids else "There is nothing new to consolidate."
        return ConsolidationOutcome(status, user.active_version, reason, num_new=len(ids), duration_ms=2000.0)

    async def rebuild(self, user_id: str) -> ConsolidationOutcome:
        """Another version with the same lessons, on top of the active one."""
        self._fail()
        await asyncio.sleep(self.learn_delay_s)
        user = await self._user(user_id)
        if not user.active_version:
            return ConsolidationOutcome(
                "kept", 0, "Nothing you taught is left, so the base model answers.", is_rebuild=True
            )
        version = await self._database.write(
            lambda s: versions.allocate(s, user_id, user.active_version, "fake", None, None)
        )
        await self._database.write(lambda s: versions.accept(s, user_id, version.number, "00", 1))
        return ConsolidationOutcome("learned", version.number, num_new=0, duration_ms=2000.0, is_rebuild=True)

    async def pause_consolidation(self, is_paused: bool) -> None:
        """Nothing runs by itself here."""
        self.is_consolidation_paused = is_paused

    async def undo(self, user_id: str) -> UndoResult:
        """Back to the parent of the active version; its note goes."""
        user = await self._user(user_id)
        if not user.active_version:
            raise NothingToUndo("there is no lesson to take back")
        version = await self._database.read(lambda s: versions.get(s, user_id, user.active_version))
        await self._database.write(lambda s: versions.activate(s, user_id, version.parent))
        taught_by = version.feedback_id or ""
        made = await self._database.read(lambda s: notes.by_feedback(s, user_id, taught_by))
        for note in made:
            await self._database.write(lambda s, note=note: notes.set_state(s, note.id, NoteState.DELETED))
        await self._database.write(lambda s: feedback.set_status(s, taught_by, FeedbackStatus.UNDONE))
        return UndoResult(version.parent, made[0].text if made else None)

    async def take_back(self, complaint: Feedback, version: int, reason: str) -> UndoResult | None:
        """As the real engine does."""
        return await self._database.write(lambda s: undo.take_back(s, complaint, version, reason))

    async def rollback(self, user_id: str, version: int) -> int:
        """Another version answers."""
        await self._database.write(lambda s: versions.activate(s, user_id, version))
        return version

    async def export_adapter(self, user_id: str, version: int) -> bytes:
        """A zip file with the same small adapter for every version."""
        await self._database.read(lambda s: versions.accepted(s, user_id, version))
        return zip_format.pack(adapter_zips.directory(), adapter_zips.BASE_MODEL, "fake", version)

    async def export_batch(self, user_id: str, version: int) -> bytes:
        """One sample for every version."""
        await self._database.read(lambda s: versions.accepted(s, user_id, version))
        if version > 1:
            raise BatchNotKept(f"what v{version} was trained on was not kept")
        sample = Sample("correction", student_ids=[1], teacher_ids=[1], response_ids=[1])
        content = training_batch.encode("upd-1", 0, [sample], LearnConfig())
        return training_batch.pack(content, training_batch.Origin("fake", "fake", version, None), str)

    async def check_adapter(self, content: bytes) -> zip_format.AdapterPackage:
        """As the real engine does, without a model to fit."""
        package = zip_format.unpack(content, self.config.versions.max_import_bytes)
        if package.base_model != adapter_zips.BASE_MODEL:
            raise AdapterRefused("the adapter was made for another base model")
        return package

    async def import_adapter(self, user_id: str, package: zip_format.AdapterPackage) -> int:
        """A version without files."""

        def take_in(s: Any) -> int:
            parent = people.get(s, user_id).active_version
            version = versions.allocate(s, user_id, parent, "fake", None, None)
            undo.take_in(s, version, f"imported: {package.origin}", "0" * 64, 1234)
            return version.number

        return await self._database.write(take_in)

    async def delete_note(self, user_id: str, note_id: str) -> None:
        """The note goes, and what it had replaced holds again."""
        await self._database.write(lambda s: undo.delete_note(s, user_id, note_id))

    async def forget(self, user_id: str) -> None:
        """The person goes."""
        await erasure.forget_person(self._database, user_id)

    async def unlearn(self, user_id: str) -> None:
        """What was learned goes."""
        await erasure.unlearn_person(self._database, user_id)

    async def prepare(self, user_id: str) -> None:
        """Note for whom."""
        self.prepared.append(user_id)

    async def _ask(self, row: Feedback, user: User) -> LearnOutcome:
        """Teach nothing, because the words may mean this answer or every one."""

        def kept(s: Any) -> None:
            given = feedback.set_status(s, row.id, FeedbackStatus.KEPT)
            given.reading, given.is_unsure = "remark", True

        await self._database.write(kept)
        return LearnOutcome(row.id, "kept", user.active_version, reading="remark", is_unsure=True)

    async def _keep(self, row: Feedback, user: User, text: str) -> LearnOutcome:
        refused = "refuse" in row.text
        status = FeedbackStatus.REJECTED if refused else FeedbackStatus.KEPT
        reason = "the new version did worse" if refused else ""
        await self._database.write(lambda s: feedback.set_status(s, row.id, status, reason))
        if refused:
            return LearnOutcome(row.id, "rejected", user.active_version, reason=reason)
        note = await self._add_note(row, text, NoteState.IN_PROMPT)
        return LearnOutcome(row.id, "kept", user.active_version, note=text, note_id=note.id)

    async def _learn(self, row: Feedback, user: User, text: str) -> LearnOutcome:
        self.num_learned += 1
        run = await self._database.write(
            lambda s: updates.start(
                s, UpdateRun(user_id=user.id, feedback_id=row.id, parent_version=user.active_version)
            )
        )
        version = await self._database.write(
            lambda s: versions.allocate(s, user.id, user.active_version, "fake", row.id, run.id)
        )
        await self._database.write(lambda s: versions.accept(s, user.id, version.number, "0" * 64, 1234))
        heat = await self._heat(row, text)
        figures: dict[str, Any] = {
            "status": "accepted", "duration_ms": 1234.0, "steps": 10, "divergence_before": 1.5,
            "divergence_after": 0.02, "heat": heat, "version": version.number, "gate": {"passed": True},
            "phases_ms": {"teacher": 100.0, "steps": 1100.0, "publish": 34.0},
        }  # fmt: skip
        await self._database.write(lambda s: updates.finish(s, run.id, **figures))
        note = await self._add_note(row, text, NoteState.IN_WEIGHTS)
        await self._database.write(lambda s: feedback.set_status(s, row.id, FeedbackStatus.LEARNED))
        return LearnOutcome(
            row.id, "learned", version.number, text, note.id, "", 10, 1.5, 0.02, 1234.0,
            figures["phases_ms"], figures["gate"], heat, run.id, is_calibrated=self.config.is_calibrated,
        )  # fmt: skip

    async def _add_note(self, row: Feedback, text: str, state: NoteState) -> Note:
        return await self._database.write(
            lambda s: notes.add(
                s, Note(user_id=row.user_id, feedback_id=row.id, text=text, state=state, num_tokens=len(text.split()))
            )
        )

    async def _heat(self, row: Feedback, lesson: str) -> list[tuple[str, float]]:
        from storage.conversations import completions

        answer = await self._database.read(lambda s: completions.get(s, row.user_id, row.completion_id or ""))
        wanted = set(compose(answer.messages, [lesson]).split())
        tokens = [self._texts[token_id] for token_id in self._ids(answer.text)]
        return [(token, 0.05 if token.strip() in wanted else -1.8) for token in tokens] + [("<end>", 1.2)]

    async def _lessons(self, user: User, number: int) -> list[str]:
        taught: list[str] = []
        while number:
            version = await self._database.read(lambda s, n=number: versions.get(s, user.id, n))
            row = await self._database.read(lambda s, v=version: feedback.get(s, v.feedback_id or ""))
            taught.insert(0, note_text(row))
            number = version.parent
        return taught

    async def _notes_in_prompt(self, request: GenerateRequest) -> list[str]:
        if request.notes == "off" or request.adapter == "base":
            return []
        live = await self._database.read(lambda s: notes.live(s, request.user_id))
        return [note.text for note in live if note.state != NoteState.IN_WEIGHTS]

    async def _answer(self, request: GenerateRequest) -> GenerateResult:
        """What is streamed, whole."""
        noted, version, lessons = await self._notes_in_prompt(request), 0, []
        if request.adapter == "active":
            user = await self._user(request.user_id)
            version, lessons = user.active_version, await self._lessons(user, user.active_version)
        text = compose(request.messages, [*lessons, *noted])
        if request.sampling.temperature > 0:
            text = f"{OPENINGS[(request.sampling.seed or 0) % len(OPENINGS)]} {text}"
        text, finish_reason = cut(text, request.sampling.stop, request.sampling.max_tokens)
        prompt_ids = self._ids(" ".join(message["content"] for message in request.messages))
        ids = self._ids(self.thoughts) + self._ids(text)
        finish_reason = self.ends_as if finish_reason == "stop" and self.ends_as else finish_reason
        return GenerateResult(
            text, request.messages, noted, prompt_ids, ids, [-0.25] * len(ids), version,
            asdict(request.sampling) | ({TOOLS: request.tools} if request.tools else {}), finish_reason, 0, 0.01, 0.02,
            self.thoughts, self.calls if request.tools else [], text,
        )  # fmt: skip

    async def _user(self, user_id: str) -> User:
        return await self._database.read(lambda s: people.get(s, user_id))

    def _ids(self, text: str) -> list[int]:
        ids = []
        for word in re.findall(r"\s*\S+|\s+$", text):
            if word not in self._words:
                self._words[word] = len(self._texts)
                self._texts.append(word)
            ids.append(self._words[word])
        return ids

    def _fail(self) -> None:
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure
        if not self.is_ready:
            raise EngineRestarting("the engine is being restarted")


def note_text(row: Feedback) -> str:
    """The standing note a piece of feedback makes."""
    return f"say it like this: {row.text}" if row.kind == FeedbackKind.IDEAL else row.text


def pieces(result: GenerateResult | None) -> list[ToolCallPiece]:
    """Return the calls of an answer with the last of its words."""
    return [{"index": place, **call} for place, call in enumerate(result.tool_calls if result else [])]


def cut(text: str, stop: tuple[str, ...], max_tokens: int | None) -> tuple[str, str]:
    """The text up to a stop string or a number of words, and why it ended."""
    for mark in stop:
        text = text.partition(mark)[0].rstrip() or text
    words = re.findall(r"\s*\S+", text)
    if max_tokens is not None and len(words) > max_tokens:
        return "".join(words[:max_tokens]), "length"
    return text, "stop"


def compose(messages: list[ChatMessage], lessons: list[str]) -> str:
    """The answer to the last message, following the lessons, the newest last."""
    asked = messages[-1]["content"].strip().rstrip("?!.")
    for lesson in reversed(lessons):
        if lesson.startswith("say it like this: "):
            return lesson.removeprefix("say it like this: ")
    wishes = " ".join(lessons).lower()
    parts = [f"You asked about {asked}.", "It is a fine subject with many sides, and I could go on for quite a while."]
    if "short" in wishes or "too long" in wishes:
        parts = parts[:1]
    if "emoji" not in wishes:
        parts.append(EMOJI)
    if "question" not in wishes:
        parts.append("Would you like to know more?")
    text = " ".join(parts)
    name = re.search(r"call me (\w+)", wishes)
    text = f"{name[1].title()}: {text}" if name else text
    return text.lower() if "lowercase" in wishes else text
