"""How far one consolidation reaches: how often it goes to storage, counted on the running engine."""

from typing import Any

import pytest

from tests.engine.live import Live

pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="session")]

MAX_STORAGE_CALLS = 6


async def test_a_consolidation_goes_to_storage_a_few_times_only(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """One read of everything, one write at its beginning, one for the candidate's number, one that ends it.

    Counted are the calls of Database.read and Database.write while the consolidator runs; better answers, which are a
    cycle of their own with a row for each try, are switched off.
    """
    user_id = await live.person()
    await live.teach(await live.ask(user_id, "Tell me about the koala"), "no emoji please")
    await live.alone()
    calls: list[str] = []
    database = live.parts.context.database
    for name in ("read", "write"):
        real = getattr(database, name)

        async def counted(work: Any, real: Any = real, name: str = name) -> Any:
            calls.append(name)
            return await real(work)

        monkeypatch.setattr(database, name, counted)
    monkeypatch.setitem(vars(live.engine.config.curriculum), "is_on", False)
    outcome = await live.parts.consolidator.consolidate(user_id)
    assert outcome.num_new == 1, outcome
    assert calls[0] == "read"
    assert len(calls) <= MAX_STORAGE_CALLS, calls
