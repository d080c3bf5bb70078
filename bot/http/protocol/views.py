"""Stored rows as the JSON of responses: pure functions, one for each kind of row."""

from dataclasses import asdict
from typing import cast

from bot.commands import texts
from bot.core.gateway import question
from bot.core.lessons import LessonResult
from bot.core.standing_notes import StandingNotes
from bot.http.protocol import responses
from engine.requests import ConsolidationOutcome, LearnOutcome, LessonProgress
from storage.tables import AdapterVersion, BetterAnswer, Completion, Feedback, Note, UpdateRun


def lesson(result: LessonResult) -> responses.LessonResponse:
    """Return the answer to a piece of feedback."""
    outcome = result.outcome
    optional = {
        "note": outcome.note,
        "note_id": outcome.note_id,
        "replaced": outcome.replaced,
        "reason": outcome.reason,
        "ask": result.ask,
        "taken_back": result.is_taken_back,
        "reading": outcome.reading,
        "is_unsure": outcome.is_unsure,
        "uncalibrated": _is_uncalibrated(outcome),
        "url": f"/v1/feedback/{result.feedback.id}" if outcome.status == "queued" else "",
        "update": update(outcome),
        "retry": retry(result.retry) if result.retry else None,
    }
    required: responses.LessonResponse = {
        "feedback_id": result.feedback.id,
        "status": outcome.status,
        "adapter_version": outcome.adapter_version,
    }
    return cast(responses.LessonResponse, required | {name: value for name, value in optional.items() if value})


def _is_uncalibrated(outcome: LearnOutcome) -> bool:
    """Return True for a lesson that was learned at an estimated rate, past estimated gates."""
    return outcome.status == "learned" and not outcome.is_calibrated


def update(outcome: LearnOutcome) -> responses.UpdateResponse | None:
    """Return the result of one update, or None if none ran."""
    if outcome.update_id is None and not outcome.steps:
        return None
    return {
        "id": outcome.update_id,
        "steps": outcome.steps,
        "divergence_before": outcome.divergence_before,
        "divergence_after": outcome.divergence_after,
        "duration_ms": outcome.duration_ms,
        "phases_ms": outcome.phases_ms,
        "gate": outcome.gate,
        "heat": outcome.heat,
    }


def retry(answer: Completion) -> responses.RetryResponse:
    """Return a new answer to the same question."""
    return {
        "completion_id": answer.id,
        "text": answer.text,
        "retry_of": answer.retry_of,
        "adapter_version": answer.adapter_version,
    }


def turn(
    row: Completion, entries: list[responses.StoredFeedback], better: BetterAnswer | None = None
) -> responses.TurnResponse:
    """Return one stored answer with its question, its feedback, and the better answer that a teacher wrote."""
    return {
        "completion_id": row.id,
        "question": question(row),
        "text": row.text,
        "retry_of": row.retry_of,
        "adapter_version": row.adapter_version,
        "created_at": row.created_at,
        "finish_reason": row.finish_reason,
        "is_gold": row.is_gold,
        "notes": row.notes,
        "feedback": entries,
        "better": better_answer(better) if better else None,
    }


def better_answer(row: BetterAnswer) -> responses.BetterAnswerResponse:
    """Return a teacher's better answer."""
    return {
        "completion_id": row.completion_id,
        "text": row.text,
        "source": row.source,
        "state": "taken in" if row.consolidated_by else row.state,
        "preserved": row.preserved,
        "reason": row.reason,
        "created_at": row.created_at,
    }


def feedback(row: Feedback, outcome: LearnOutcome) -> responses.StoredFeedback:
    """Return one piece of feedback with its result."""
    return {
        "feedback_id": row.id,
        "completion_id": row.completion_id,
        "kind": row.kind,
        "text": row.text,
        "value": row.value,
        "created_at": row.created_at,
        "state": row.status,
        "status": outcome.status,
        "adapter_version": outcome.adapter_version,
        "reason": row.reason,
        "scope": row.scope,
        "reading": row.reading,
        "is_unsure": row.is_unsure,
        "uncalibrated": _is_uncalibrated(outcome),
        "update": update(outcome),
    }


def progress(known: LessonProgress) -> responses.ProgressResponse:
    """Return how far a lesson is."""
    return cast(responses.ProgressResponse, asdict(known) | {"text": texts.learning(known)})


def cancelled(outcome: LearnOutcome) -> responses.Cancelled:
    """Return how feedback ended that was to be cancelled."""
    return {
        "feedback_id": outcome.feedback_id,
        "status": outcome.status,
        "adapter_version": outcome.adapter_version,
        "text": texts.learned(outcome),
    }


def note(row: Note, standing: StandingNotes) -> responses.NoteResponse:
    """Return one of a person's standing notes."""
    return {
        "id": row.id,
        "text": row.text,
        "state": standing.state(row),
        "in_prompt": row.id in standing.in_prompt,
        "probe": row.probe,
        "num_tokens": row.num_tokens,
        "learned_version": row.learned_version,
        "created_at": row.created_at,
    }


def version(row: AdapterVersion, taught: Feedback | None, run: UpdateRun | None) -> responses.VersionResponse:
    """Return one adapter version with the feedback that taught it."""
    return {
        "version": row.number,
        "parent": row.parent,
        "state": row.state,
        "created_at": row.created_at,
        "size_bytes": row.size_bytes,
        "sha256": row.sha256,
        "base_model": row.base_model,
        "taught_by": {"feedback_id": taught.id, "kind": taught.kind, "text": taught.text} if taught else None,
        "update": {"steps": run.steps, "duration_ms": run.duration_ms} if run else None,
    }


def consolidation(outcome: ConsolidationOutcome | None) -> responses.Consolidation:
    """Return the result of a consolidation; None means that it still waits or runs."""
    if outcome is None:
        return {"status": "queued", "text": texts.consolidated(outcome)}
    return cast(responses.Consolidation, asdict(outcome) | {"text": texts.consolidated(outcome)})
