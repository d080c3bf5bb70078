"""Consent to learning is kept step by step, and followed."""

import pytest
from sqlmodel import Session

from storage.errors import PersonNotFound
from storage.kinds import ConsentChoice
from storage.learning import feedback, updates, versions
from storage.people import consent, people
from storage.tables import Consent, UpdateRun
from tests.storage import rows
from tests.storage.conftest import Store

FOLLOW_UPS, NO_FOLLOW_UPS = ConsentChoice.FOLLOW_UPS, ConsentChoice.NO_FOLLOW_UPS
ASKED, YES, NO, WITHDRAWN = ConsentChoice.ASKED, ConsentChoice.YES, ConsentChoice.NO, ConsentChoice.WITHDRAWN


def say(store: Store, user_id: str, choice: ConsentChoice, *, is_permitted: bool = True) -> Consent:
    """One step."""
    step = Consent(user_id=user_id, choice=choice, wording="1", platform="telegram", place="5")
    return store.write(lambda s: consent.record(s, step, is_permitted=is_permitted))


def is_learning(store: Store, user_id: str) -> bool:
    """Return True if corrections train."""
    return store.read(lambda s: people.get(s, user_id).is_learning)


@pytest.mark.parametrize(
    ("choices", "expected"),
    [
        ([ASKED], False),
        ([ASKED, YES], True),
        ([ASKED, NO], False),
        ([ASKED, YES, ASKED], True),
        ([YES, WITHDRAWN], False),
        ([YES, WITHDRAWN, ASKED], False),
        ([YES, WITHDRAWN, YES], True),
    ],
)
def test_the_last_answer_counts(store: Store, ana: str, choices: list[ConsentChoice], expected: bool) -> None:
    """Only a yes turns learning on; being asked again changes nothing."""
    for choice in choices:
        say(store, ana, choice)
    assert is_learning(store, ana) is expected
    assert store.read(lambda s: consent.is_given(s, ana)) is expected


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([], True),
        ([(ASKED, "1+teacher")], False),
        ([(YES, "1")], False),
        ([(YES, "1+teacher")], True),
        ([(YES, "1"), (ASKED, "1+teacher")], False),
        ([(YES, "1+teacher"), (ASKED, "2+teacher")], True),
        ([(YES, "1+teacher"), (NO, "1+teacher")], False),
        ([(YES, "1+teacher"), (WITHDRAWN, "1+teacher")], False),
    ],
)
def test_a_teacher_elsewhere_reads_only_after_a_yes_to_words_that_say_so(
    store: Store, ana: str, steps: list[tuple[ConsentChoice, str]], expected: bool
) -> None:
    """Local people are never asked: they are the operator's own."""
    for choice, wording in steps:
        step = Consent(user_id=ana, choice=choice, wording=wording, platform="telegram", place="5")
        store.write(lambda s, step=step: consent.record(s, step, is_permitted=True))
    assert store.read(lambda s: consent.may_be_sent(s, ana)) is expected


@pytest.mark.parametrize(
    ("choices", "expected"),
    [
        ([], False),
        ([YES], False),
        ([YES, FOLLOW_UPS], True),
        ([FOLLOW_UPS], True),
        ([YES, FOLLOW_UPS, ASKED], True),
        ([YES, FOLLOW_UPS, NO_FOLLOW_UPS], False),
        ([YES, FOLLOW_UPS, WITHDRAWN], False),
        ([YES, FOLLOW_UPS, NO, YES], False),
    ],
)
def test_next_messages_are_learned_from_after_a_yes_to_just_that(
    store: Store, ana: str, choices: list[ConsentChoice], expected: bool
) -> None:
    """A no to learning is a no to that, too, and it has to be said again."""
    for choice in choices:
        if choice in (FOLLOW_UPS, NO_FOLLOW_UPS):
            step = Consent(user_id=ana, choice=choice, wording="1", platform="telegram", place="5")
            store.write(lambda s, step=step: consent.set_follow_ups(s, step))
        else:
            say(store, ana, choice)
    assert store.read(lambda s: consent.allows_follow_ups(s, ana)) is expected


def test_what_is_said_about_next_messages_changes_nothing_else(store: Store, ana: str) -> None:
    """Neither whether learning is on, nor what was said last about it, nor a withdrawal that is not finished."""
    say(store, ana, YES)
    store.write(lambda s: feedback.add(s, rows.feedback(ana)))
    say(store, ana, WITHDRAWN)
    step = Consent(user_id=ana, choice=FOLLOW_UPS, wording="2", platform="telegram", place="5")
    store.write(lambda s: consent.set_follow_ups(s, step))
    newest = store.read(lambda s: consent.newest(s, ana))
    assert newest is not None
    assert (newest.choice, is_learning(store, ana)) == (WITHDRAWN, False)
    assert store.read(consent.unfinished_withdrawals) == [ana]


def test_every_step_is_kept_with_wording_place_and_time(store: Store, ana: str, ben: str) -> None:
    """The record has the wording, the place and the time, and no other person's steps."""
    say(store, ben, NO)
    say(store, ana, ASKED)
    last = say(store, ana, YES)
    assert [step.choice for step in store.read(lambda s: consent.history(s, ana))] == [ASKED, YES]
    assert (last.wording, last.platform, last.place) == ("1", "telegram", "5")
    assert last.created_at > 0
    newest = store.read(lambda s: consent.newest(s, ana))
    assert newest is not None
    assert newest.seq == last.seq


def test_a_yes_where_learning_is_not_permitted_is_kept_and_not_followed(store: Store, ana: str) -> None:
    """The platform's rule is above the person's wish."""
    say(store, ana, YES, is_permitted=False)
    assert not is_learning(store, ana)


def test_nobody_cannot_consent(store: Store) -> None:
    """A step of a person who does not exist is PersonNotFound."""
    with pytest.raises(PersonNotFound):
        say(store, "nobody", YES)


@pytest.mark.parametrize(("is_permitted", "expected"), [(True, [True, False, True]), (False, [False, False, True])])
def test_a_start_follows_consent_and_permission(store: Store, is_permitted: bool, expected: list[bool]) -> None:
    """On that platform only people who said yes learn, and no one without the operator's permission."""
    yes, none = (store.write(lambda s, name=name: people.resolve(s, "discord", name)).id for name in ("yes", "none"))
    local = store.write(lambda s: people.resolve(s, "http", "local", is_learning=True)).id
    store.write(lambda s: people.set_learning(s, none, True))
    say(store, yes, YES, is_permitted=not is_permitted)
    store.write(lambda s: consent.enforce(s, "discord", is_permitted=is_permitted))
    assert [is_learning(store, user_id) for user_id in (yes, none, local)] == expected


def _teach(s: Session, user_id: str) -> None:
    lesson, _ = feedback.add(s, rows.feedback(user_id))
    run = updates.start(s, UpdateRun(user_id=user_id, feedback_id=lesson.id))
    versions.allocate(s, user_id, 0, "pocket", lesson.id, run.id)


def test_a_withdrawal_that_was_cut_short_is_found(store: Store, ana: str, ben: str) -> None:
    """While lessons of before are there it is unfinished; of those who said yes nothing is."""
    for user_id in (ana, ben):
        say(store, user_id, YES)
        store.write(lambda s, user_id=user_id: _teach(s, user_id))
    assert store.read(consent.unfinished_withdrawals) == []
    say(store, ana, WITHDRAWN)
    assert store.read(consent.unfinished_withdrawals) == [ana]
    store.write(lambda s: people.unlearn(s, ana))
    store.write(lambda s: feedback.add(s, rows.feedback(ana)))
    assert store.read(consent.unfinished_withdrawals) == [], "what was said since is kept without learning"
