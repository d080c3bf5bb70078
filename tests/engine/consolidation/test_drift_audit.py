"""engine.consolidation.drift_audit with the real engine: an audit after a consolidation, seen in the log of updates."""

import logging
from dataclasses import replace

import pytest

from engine.config import AuditConfig
from engine.consolidation.drift_audit import DriftAudit
from storage.learning import drift_audits
from storage.tables import UpdateRun
from tests.engine.live import Live

pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="session")]

TOPICS = ("the koala", "the owl", "paella", "sushi", "the tiger")


def auditor(live: Live, **fields: float) -> DriftAudit:
    """Return an audit with the parts of the running engine and settings of its own."""
    context = live.parts.context
    config = replace(context.config, audit=AuditConfig(**{"min_answers": 4, "num_rewritten": 4, **fields}))
    return DriftAudit(replace(context, config=config))


async def newest(live: Live, user_id: str) -> UpdateRun | None:
    """Return the person's last audit."""
    return await live.database.read(lambda s: drift_audits.newest(s, user_id))


async def talked(live: Live) -> str:
    """Return a person who has taught a lesson and asked some questions since."""
    user_id, _ = await live.pupil()
    await live.engine.settled()
    for topic in TOPICS:
        await live.ask(user_id, f"Tell me about {topic}")
    return user_id


async def test_a_good_lesson_is_no_drift(live: Live, caplog: pytest.LogCaptureFixture) -> None:
    """Compared with the base model that reads the notes it is fine; the row names the version, the log is calm."""
    user_id = await talked(live)
    with caplog.at_level(logging.WARNING, "engine.consolidation.drift_audit"):
        found = await auditor(live).audit(user_id)
    assert found is not None
    assert (found.level, found.num_answers) == ("ok", 1 + len(TOPICS)), found
    assert found.drift is not None
    assert found.drift < 0.2
    row = await newest(live, user_id)
    assert row is not None
    assert (row.status, row.parent_version, row.gate) == ("ok", 1, found.to_dict())
    assert caplog.text == ""


async def test_what_is_beyond_a_line_is_logged_and_kept_with_its_words(
    live: Live, caplog: pytest.LogCaptureFixture
) -> None:
    """With bounds so narrow that anything is critical, the row and the log carry the reasons."""
    user_id = await talked(live)
    with caplog.at_level(logging.WARNING, "engine.consolidation.drift_audit"):
        found = await auditor(live, warn_drift=1e-9, critical_drift=1e-9).audit(user_id)
    assert found is not None
    assert (found.level, found.reasons[0].startswith("drift")) == ("critical", True)
    row = await newest(live, user_id)
    assert row is not None
    assert row.error == ", ".join(found.reasons)
    assert row.error in caplog.text


async def test_too_few_answers_say_nothing(live: Live) -> None:
    """Nothing is measured and no row is written."""
    user_id, _ = await live.pupil()
    assert await auditor(live, min_answers=20).audit(user_id) is None
    assert await newest(live, user_id) is None


async def test_it_looks_after_so_many_lessons_and_after_a_consolidation(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine's own tasks run an audit after some lessons, not after each one."""
    user_id = await talked(live)
    assert await auditor(live).look(user_id) is None
    assert await auditor(live, every_versions=1).look(user_id) is not None
    assert await auditor(live, every_versions=1).look(user_id) is None
    monkeypatch.setattr(live.parts.audit, "_config", auditor(live)._config)
    for bound in ("max_unasked", "max_unasked_worst"):  # what else a candidate changes is not what is asked here
        monkeypatch.setitem(vars(live.engine.config.gate), bound, 9.0)
    half = {"learning_rate": 1e-3}
    await live.teach(await live.ask(user_id, "What is ramen?"), "use lowercase", training=half)
    outcome = await live.engine.consolidate(user_id)
    assert outcome.status == "learned", outcome
    await live.engine.settled()
    row = await newest(live, user_id)
    assert row is not None
    assert row.parent_version == outcome.adapter_version
