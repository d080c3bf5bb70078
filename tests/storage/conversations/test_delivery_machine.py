"""Inbox and outbox against a model: redeliveries, failing and late handlers, senders that come twice, restarts."""

import contextlib

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from sqlmodel import Session, select

from storage.conversations import inbox, outbox
from storage.kinds import OutboxState
from storage.tables import Inbox, Outbox
from tests.storage import rows
from tests.storage.conftest import Store, fast_folder
from tests.storage.new_data_dir import copy_to

CHATS = ("a", "b")
STEPS = st.integers(0, 5)


class CrashedHere(Exception):
    """A handler died before it finished."""


class DeliveryMachine(RuleBasedStateMachine):
    """Updates come in, each makes one reply, replies go out; a platform shows what was sent."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = contextlib.ExitStack()
        self.store = Store(copy_to(self.folder.enter_context(fast_folder())))
        self.arrived: dict[str, list[str]] = {chat: [] for chat in CHATS}
        self.handled: list[str] = []
        self.taken: list[Inbox] = []  # what handlers were given since the start, finished or not
        self.drafts: set[str] = set()  # replies that are being written
        self.sending: list[Outbox] = []  # what senders were given, settled meanwhile or not
        self.shown: dict[str, list[str]] = {chat: [] for chat in CHATS}
        self.given_up: set[str] = set()

    def teardown(self) -> None:
        """After any history, everything taken is answered in the end, once and in order."""
        try:
            self._drain()
            for chat, updates in self.arrived.items():
                assert self.shown[chat] == [update for update in updates if update not in self.given_up]
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
        oldest: dict[str, Inbox] = {}
        for item in self.store.read(inbox.waiting):
            oldest.setdefault(item.chat_key, item)
        items = list(oldest.values())[:limit]
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

    @rule(pick=STEPS)
    def write(self, pick: int) -> None:
        """A reply that is being written gets its placeholder, or the one an earlier handler left."""
        unhandled = [item for item in self.taken if item.update_id not in self.handled]
        if not unhandled:
            return
        item = unhandled[pick % len(unhandled)]
        draft = rows.outbox(item.update_id, item.chat_key, state=OutboxState.DRAFT, external_message_id="p1")
        assert self.store.write(lambda s: outbox.keep(s, draft)).state == OutboxState.DRAFT
        self.drafts.add(item.update_id)

    @rule()
    def send(self) -> None:
        """Senders get what waits: what was handled and is not settled, in order within a chat, with its content."""
        items = self.store.read(outbox.waiting)
        for chat in CHATS:
            settled = {*self.shown[chat], *self.given_up}
            expected = [update for update in self.handled if update[0] == chat and update not in settled]
            assert sorted(item.id for item in items if item.chat_key == chat) == sorted(expected)
        assert all(item.payload == {"text": item.id} for item in items)
        self.sending += items

    @rule(pick=STEPS, is_shown=st.booleans())
    def settle(self, pick: int, is_shown: bool) -> None:
        """A sender has shown the first of a chat, or gives it up; who says so again changes nothing."""
        if not self.sending:
            return
        item = self._first(self.sending[pick % len(self.sending)])
        is_open = item.id not in {*self.shown[item.chat_key], *self.given_up}
        end = (lambda s: outbox.finish(s, item.id, "m1")) if is_shown else (lambda s: outbox.give_up(s, item.id))
        assert self.store.write(end) is is_open
        if is_open and is_shown:
            self.shown[item.chat_key].append(item.id)
        elif is_open:
            self.given_up.add(item.id)
        kept = self.store.read(lambda s: outbox.get(s, item.id))
        assert kept is not None
        assert (kept.payload, kept.chat_key) == ({}, "")

    @rule()
    def restart(self) -> None:
        """Handlers and senders of the old run are gone."""
        self.store.reopen()
        self.taken, self.sending = [], []

    @invariant()
    def each_effect_is_there_once(self) -> None:
        """There is one reply for each update that was handled, and nothing but drafts for any other."""
        queued = self.store.read(lambda s: list(s.exec(select(Outbox.id))))
        assert sorted(queued) == sorted({*self.handled, *self.drafts})
        waiting = sum(len(updates) for updates in self.arrived.values()) - len(self.handled)
        assert self.store.read(inbox.num_waiting) == waiting

    def _first(self, item: Outbox) -> Outbox:
        """The first of an item's chat that its sender has not settled, or the item where it has settled all."""
        settled = {*self.shown[item.chat_key], *self.given_up}
        open_items = [it for it in self.sending if it.chat_key == item.chat_key and it.id not in settled]
        return min(open_items, key=lambda it: it.seq or 0, default=item)

    def _effect(self, s: Session, item: Inbox, dies: bool) -> None:
        outbox.keep(s, rows.outbox(item.update_id, item.chat_key))
        is_first = inbox.mark_done(s, item.seq or 0)
        if dies or not is_first:
            raise CrashedHere

    def _drain(self) -> None:
        self.restart()
        while self.store.read(inbox.num_waiting):
            self.take(limit=3)
            for pick in range(len(self.taken)):
                if self.taken[pick].update_id not in self.handled:
                    self.handle(pick, dies=False)
        self.send()
        for item in list(self.sending):
            self.settle(self.sending.index(item), is_shown=True)


def test_every_update_is_answered_once_and_in_order_whatever_happens() -> None:
    """No redelivery, dead or late handler, repeated sender or restart loses, doubles or reorders a reply."""
    run_state_machine_as_test(
        DeliveryMachine,
        settings=settings(
            max_examples=6, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
