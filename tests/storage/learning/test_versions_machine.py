"""Adapter versions against a model: any order of moves, restarts and erasures."""

import contextlib

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from storage.errors import VersionNotFound, VersionStateError
from storage.kinds import VersionState
from storage.learning import versions
from storage.people import people
from tests.storage.conftest import Store, fast_folder
from tests.storage.new_data_dir import copy_to

ACCOUNTS = st.sampled_from(["ana", "ben"])
NUMBERS = st.integers(0, 6)


class VersionsMachine(RuleBasedStateMachine):
    """Two people, their versions, and what should be true of them."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = contextlib.ExitStack()
        self.store = Store(copy_to(self.folder.enter_context(fast_folder())))
        self.ids = {account: self.store.person(account) for account in ("ana", "ben")}
        self.states: dict[str, dict[int, str]] = {"ana": {}, "ben": {}}
        self.parents: dict[tuple[str, int], int] = {}
        self.active = {"ana": 0, "ben": 0}
        self.adapter_ids: list[int] = []
        self.paths: set[str] = set()

    def teardown(self) -> None:
        """End the database and remove its files."""
        self.store.close()
        self.store.runner.close()
        self.folder.close()

    @rule(account=ACCOUNTS)
    def allocate(self, account: str) -> None:
        """The next number, an adapter id above all before, a path never used."""
        user_id, parent = self.ids[account], self.active[account]
        version = self.store.write(lambda s: versions.allocate(s, user_id, parent, "pocket", None, None))
        assert version.number == len(self.states[account]) + 1
        assert version.lora_int_id is not None
        assert version.lora_int_id > max(self.adapter_ids, default=0)
        assert version.path not in self.paths
        self.states[account][version.number] = VersionState.CANDIDATE
        self.parents[account, version.number] = parent
        self.adapter_ids.append(version.lora_int_id)
        self.paths.add(version.path)

    @rule(account=ACCOUNTS, number=NUMBERS)
    def accept(self, account: str, number: int) -> None:
        """Candidates only; the pointer moves with it."""
        if self._decide(account, number, lambda s, u: versions.accept(s, u, number, "ab" * 32, 1)):
            self.states[account][number] = VersionState.ACCEPTED
            self.active[account] = number

    @rule(account=ACCOUNTS, number=NUMBERS)
    def reject(self, account: str, number: int) -> None:
        """Candidates only; the pointer stays."""
        if self._decide(account, number, lambda s, u: versions.reject(s, u, number)):
            self.states[account][number] = VersionState.REJECTED

    @rule(account=ACCOUNTS, number=NUMBERS)
    def roll_back(self, account: str, number: int) -> None:
        """To any accepted version and to the zero adapter."""
        user_id = self.ids[account]
        state = self.states[account].get(number)
        if number == 0 or state == VersionState.ACCEPTED:
            assert self.store.write(lambda s: versions.activate(s, user_id, number)) == self.active[account]
            self.active[account] = number
        else:
            with pytest.raises(VersionStateError if state else VersionNotFound):
                self.store.write(lambda s: versions.activate(s, user_id, number))

    @rule(account=ACCOUNTS, number=NUMBERS)
    def damage(self, account: str, number: int) -> None:
        """A damaged version is served no more: its nearest accepted ancestor is."""
        user_id = self.ids[account]
        if number not in self.states[account]:
            with pytest.raises(VersionNotFound):
                self.store.write(lambda s: versions.mark_damaged(s, user_id, number))
            return
        if self.states[account][number] != VersionState.PRUNED:
            self.states[account][number] = VersionState.DAMAGED
        while self.active[account] and self.states[account][self.active[account]] != VersionState.ACCEPTED:
            self.active[account] = self.parents[account, self.active[account]]
        assert self.store.write(lambda s: versions.mark_damaged(s, user_id, number)) == self.active[account]

    @rule(account=ACCOUNTS, keep=st.integers(2, 4))
    def prune(self, account: str, keep: int) -> None:
        """At most `keep` stay accepted, the active one and what an undo goes to among them."""
        user_id, states, active = self.ids[account], self.states[account], self.active[account]
        below = self.parents[account, active] if active else 0
        while below and states[below] != VersionState.ACCEPTED:
            below = self.parents[account, below]
        for version in self.store.write(lambda s: versions.prune(s, user_id, keep)):
            assert states[version.number] == VersionState.ACCEPTED
            assert version.number not in (active, below)
            states[version.number] = VersionState.PRUNED
        assert list(states.values()).count(VersionState.ACCEPTED) <= keep

    @rule(account=ACCOUNTS)
    def forget(self, account: str) -> None:
        """The person is gone; who comes back begins at 1, under another id."""
        user_id = self.ids[account]
        self.store.write(lambda s: people.forget(s, user_id))
        self.ids[account] = self.store.person(account)
        assert self.ids[account] != user_id
        self.states[account], self.active[account] = {}, 0

    @rule()
    def restart(self) -> None:
        """Everything is as it was."""
        self.store.reopen()

    @invariant()
    def the_store_agrees(self) -> None:
        """States and pointers are the model's; what is active is accepted or 0."""
        for account, user_id in self.ids.items():
            rows, user = self.store.read(lambda s, u=user_id: (versions.history(s, u), people.get(s, u)))
            stored, active = {row.number: row.state for row in rows}, user.active_version
            assert stored == self.states[account]
            assert active == self.active[account]
            assert active == 0 or stored[active] == VersionState.ACCEPTED

    def _decide(self, account: str, number: int, move: object) -> bool:
        user_id, state = self.ids[account], self.states[account].get(number)
        if state == VersionState.CANDIDATE:
            self.store.write(lambda s: move(s, user_id))  # type: ignore[operator]
            return True
        with pytest.raises(VersionStateError if state else VersionNotFound):
            self.store.write(lambda s: move(s, user_id))  # type: ignore[operator]
        return False


def test_versions_keep_their_invariants_in_any_order() -> None:
    """Numbers and adapter ids are never reused, at most one version is active, and only an accepted one."""
    run_state_machine_as_test(
        VersionsMachine,
        settings=settings(
            max_examples=8, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
