"""The state of one lesson's update while it runs, from its feedback to what became of it."""

import time
from dataclasses import dataclass, field, replace

from engine.adapter_ref import AdapterRef
from engine.config import LearnConfig
from engine.gates.candidate import Verdict
from engine.host.trainer_client import Trained, finite_or_none
from engine.learning.bystanders import Bystanders
from engine.learning.intent import Intent
from engine.learning.update_log import PhaseTimer, Status
from engine.requests import LearnOutcome
from engine.samples.lessons import Lesson
from storage.kinds import Meaning
from storage.tables import Completion, Note, UpdateRun

_SAME_UPDATE = {"user_id", "feedback_id", "kind", "parent_version", "notes"}


@dataclass
class UpdateState(PhaseTimer):
    """One update of a lesson, and what is known of it by now."""

    run: UpdateRun
    parent: AdapterRef
    learn: LearnConfig
    notes: list[str]  # that the teacher sees besides the new feedback
    facts: list[Note]  # that the weights hold
    note: Note | None = None  # that the feedback became
    replaced: list[str] = field(default_factory=list)  # the notes whose place it has taken
    recent: list[Completion] = field(default_factory=list)  # answers to the person, in chats or at work as the lesson's
    intent: Intent = field(default_factory=lambda: Intent(Meaning.WISH, was_read=False))
    bystanders: Bystanders | None = None  # of a remark, which must not change their answers
    is_last_try: bool = False  # a refused candidate is trained once more, with gentler settings
    trained: Trained = field(default_factory=Trained)
    heat: list[tuple[str, float]] = field(default_factory=list)  # (token text, log p_teacher - log p_student)

    @property
    def read(self) -> list[str]:
        """The notes that the teacher reads: those of earlier lessons and, unless switched off, this one's own."""
        if self.note is None or not self.learn.reads_own_note:
            return self.notes
        return [*self.notes, self.note.text]

    def next_run(self, kind: str = "") -> UpdateRun:
        """Return the row of another update of the same lesson; `kind`: another than the lesson's."""
        row = UpdateRun(**self.run.model_dump(include=_SAME_UPDATE))
        row.kind = kind or row.kind
        return row

    def another(self, kind: str) -> "UpdateState":
        """Return the state of another update of the same lesson, which nothing is measured of by now."""
        run, now_s = self.next_run(kind), time.perf_counter()
        return replace(self, run=run, trained=Trained(), phases_ms={}, started_s=now_s, on_lap=None)

    def try_gently(self) -> None:
        """Prepare the second try, at half the learning rate: the last one."""
        self.learn = self.learn.gentler()
        self.is_last_try = True

    def as_read(self, lesson: Lesson) -> Lesson:
        """Return the lesson as the teacher reads it beside the notes: a correction need not be said twice."""
        return lesson if self.note is None or self.learn.reads_hindsight else lesson.without_feedback()

    def outcome(self, status: Status, version: int, reason: str = "", verdict: Verdict | None = None) -> LearnOutcome:
        """Return how the update ended; `version` is active now."""
        return LearnOutcome(
            feedback_id=self.run.feedback_id or "",
            status=status,
            adapter_version=version,
            note=self.note.text if self.note else None,
            note_id=self.note.id if self.note else None,
            replaced=self.replaced,
            reason=reason,
            steps=self.trained.steps,
            divergence_before=finite_or_none(self.trained.divergence_before),
            divergence_after=finite_or_none(self.trained.divergence_after),
            duration_ms=self.duration_ms,
            phases_ms=self.phases_ms,
            gate=verdict.to_dict() if verdict else {},
            heat=self.heat,
            curves=self.trained.curves,
            update_id=self.run.id,
            reading=self.intent.meaning if self.intent.was_read else "",
            is_unsure=self.intent.is_unsure,
        )
