"""Inbox and outbox against a model: redeliveries, failing and late handlers, lost senders, restarts."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from sqlmodel import Session, select

from storage import inbox, outbox
from storage.tables import Inbox, Outbox
from tests.storage import rows
from tests.storage.conftest import Store, copy_data_dir, fast_folder

CHATS = ("a", "b")
LEASE_S = 10.0
STEPS = st.integers(0, 5)


class CrashedHere(Exception):
    """A handler died before it finished."""


class DeliveryMachine(RuleBasedStateMachine):
    """Updates come in, each makes one reply, replies go out; a platform shows what was sent."""

    def __init__(self, new_data_dir: Path) -> None:
        super().__init__()
        self.folder = contextlib.ExitStack()
        self.store = Store(copy_data_dir(new_data_dir, self.folder.enter_context(fast_folder())))
        self.now_s = 0.0
        self.arrived: dict[str, list[str]] = {chat: [] for chat in CHATS}
        self.handled: list[str] = []
        self.taken: list[Inbox] = []  # what handlers were given since the start, finished or not
        self.leases: list[Outbox] = []  # what senders were given since the start, current or not
        self.holders: dict[str, int] = {}  # which attempt at an item is the current one
        self.shown: dict[str, list[str]] = {chat: [] for chat in CHATS}
        self.buried: set[str] = set()

    def teardown(self) -> None:
        """Whatever happened, everything taken is answered in the end, once and in order."""
        try:
            self._drain()
            for chat, updates in self.arrived.items():
                assert self.shown[chat] == [update for update in updates if update not in self.buried]
        finally:
            self.store.close()
            self.store.runner.close()
            self.folder.close()

    @rule(chat=st.sampled_from(CHATS), number=st.integers(0, 9))
    def deliver(self, chat: str, number: int) -> None:
        """An update, new or delivered again."""
        update_id = f"{chat}{number}"
        _, is_new = self.store.write(lambda s: inbox.add(s, rows.inbox(update_id, chat)))
        assert is_new == (update_id not in self.arrived[chat])
        if is_new:
            self.arrived[chat].append(update_id)

    @rule(limit=st.integers(1, 3))
    def take(self, limit: int) -> None:
        """Handlers get the oldest waiting update of each chat."""
        items = self.store.read(lambda s: inbox.next_per_chat(s, limit))
        for item in items:
            waiting = [update for update in self.arrived[item.chat_key] if update not in self.handled]
            assert item.update_id == waiting[0]
        assert len({item.chat_key for item in items}) == len(items)
        self.taken += items

    @rule(pick=STEPS, dies=st.booleans())
    def handle(self, pick: int, dies: bool) -> None:
        """A handler finishes, or dies first; one that comes late has no effect."""
        if not self.taken:
            return
        item = self.taken[pick % len(self.taken)]
        is_late = item.update_id in self.handled
        if dies or is_late:
            with pytest.raises(CrashedHere):
                self.store.write(lambda s: self._effect(s, item, dies))
        else:
            self.store.write(lambda s: self._effect(s, item, dies))
            self.handled.append(item.update_id)

    @rule(passed_s=st.sampled_from([0.0, 1.0, LEASE_S]), limit=st.integers(1, 3))
    def lease(self, passed_s: float, limit: int) -> None:
        """A sender takes what is due; nobody else holds it, and nothing before it in its chat is open."""
        self.now_s += passed_s
        items = self.store.write(lambda s: outbox.lease(s, now_s=self.now_s, lease_s=LEASE_S, limit=limit))
        for item in items:
            finished = {*self.shown[item.chat_key], *self.buried}
            expected = [update for update in self.handled if update[0] == item.chat_key and update not in finished]
            assert item.id == expected[0]
            assert item.payload == {"text": item.id}
            self.holders[item.id] = item.attempts
        self.leases += items

    @rule(pick=STEPS, end=st.sampled_from(["done", "retry", "bury"]))
    def send(self, pick: int, end: str) -> None:
        """A sender comes back; only the latest attempt at an item counts, and only once."""
        if not self.leases:
            return
        lease = self.leases[pick % len(self.leases)]
        is_held = self.holders.get(lease.id) == lease.attempts
        ends = {
            "done": lambda s: outbox.mark_done(s, lease.id, lease.attempts, "m1"),
            "retry": lambda s: outbox.retry(s, lease.id, lease.attempts, self.now_s + 1),
            "bury": lambda s: outbox.bury(s, lease.id, lease.attempts),
        }
        assert self.store.write(ends[end]) == is_held
        if is_held:
            del self.holders[lease.id]
        if is_held and end == "done":
            self.shown[lease.chat_key].append(lease.id)
        if is_held and end == "bury":
            self.buried.add(lease.id)

    @rule()
    def restart(self) -> None:
        """Handlers and senders of the old run are gone; the clock may have gone back."""
        self.store.reopen()
        self.store.write(outbox.release_all)
        self.taken, self.leases, self.holders, self.now_s = [], [], {}, 0.0

    @invariant()
    def each_effect_is_there_once(self) -> None:
        """There is one reply for each update that was handled, and none for any other."""
        queued = self.store.read(lambda s: list(s.exec(select(Outbox.id))))
        assert sorted(queued) == sorted(self.handled)
        waiting = sum(len(updates) for updates in self.arrived.values()) - len(self.handled)
        assert self.store.read(inbox.num_waiting) == waiting

    def _effect(self, s: Session, item: Inbox, dies: bool) -> None:
        _, is_new = outbox.add(s, rows.outbox(item.update_id, item.chat_key))
        is_first = inbox.mark_done(s, item.seq or 0)
        assert is_new == is_first
        if dies or not is_first:
            raise CrashedHere

    def _drain(self) -> None:
        self.restart()
        while self.store.read(inbox.num_waiting):
            self.take(limit=3)
            for pick in range(len(self.taken)):
                if self.taken[pick].update_id not in self.handled:
                    self.handle(pick, dies=False)
        while True:
            self.leases = []
            self.lease(LEASE_S, limit=3)
            if not self.leases:
                return
            for pick in range(len(self.leases)):
                self.send(pick, "done")


def test_every_update_is_answered_once_and_in_order_whatever_happens(new_data_dir: Path) -> None:
    """No redelivery, dead or late handler, lost sender or restart loses, doubles or reorders a reply."""
    run_state_machine_as_test(
        lambda: DeliveryMachine(new_data_dir),
        settings=settings(
            max_examples=6, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
