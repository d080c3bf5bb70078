"""The checker of the crash runs sees what is lost and what is doubled."""

from tests.crash.history import History, about, check


def right() -> History:
    """One question, corrected and answered again, with a press."""
    return History(
        ["q1"],
        ["u2", "u3"],
        ["q1"],
        [],
        ["q1"],
        ["q1"],
        ["u2", "u3"],
        ["You asked about q1.", "Well, You asked about q1. x", "Learned: v1"],
    )


def test_a_right_history_is_right() -> None:
    """Placeholders that were left over are counted and allowed."""
    history = right()
    history.shown += ["…", "You asked about …"]
    verdict = check(history)
    assert verdict.is_right
    assert verdict.num_placeholders == 2


def test_each_loss_is_seen() -> None:
    """A turn, a repetition, feedback, an answer that was never shown, something that still waits."""
    for name in ("turns", "repeats", "feedback", "shown"):
        history = right()
        getattr(history, name).pop(0)
        assert check(history).lost
        assert not check(history).doubled
    history = right()
    history.num_waiting = 1
    assert check(history).lost


def test_each_double_is_seen() -> None:
    """The same things, once too often."""
    for name in ("turns", "repeats", "feedback", "shown"):
        history = right()
        getattr(history, name).append(getattr(history, name)[0])
        assert check(history).doubled
        assert not check(history).lost


def test_a_lesson_that_is_taken_back_is_followed_by_one_answer() -> None:
    """About an answer that got a thumb down; another one is doubled, none at all is lost."""
    history = right()
    history.num_taken_back = 1
    assert check(history).lost
    history.repeats.append("q1")
    history.shown.append("You asked about q1. As before.")
    assert check(history).doubled  # no complaint was made about it
    history.complaints.append("q1")
    assert check(history).is_right
    history.complaints.append("q1")
    history.repeats.append("q1")
    history.shown.append("You asked about q1. As before.")
    assert check(history).doubled
    history.shown.pop()
    history.repeats.pop()
    history.shown.pop()
    assert check(history).lost


def test_answers_name_their_question() -> None:
    """With or without an opening; notices do not."""
    assert about("Sure, You asked about q7. It is") == "q7"
    assert about("Learned: v1 in 1.2 s.") == ""
