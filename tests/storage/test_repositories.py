"""No repository function reaches a person's rows without saying whose."""

import inspect
from types import ModuleType

import pytest
from sqlmodel import Session

from storage.conversations import chats, completions
from storage.learning import feedback, notes, signals, updates, versions
from storage.people import consent, people

MODULES = (people, chats, completions, consent, feedback, notes, versions, updates, signals)
WITHOUT_PERSON = {
    "people.resolve": "finds out who it is",
    "people.find": "finds out who it is",
    "people.accounts": "for the operator, never for a person",
    "chats.turns": "by our own random id, from chats.resolve of that person",
    "chats.reset": "as chats.turns",
    "chats.remove": "as chats.turns",
    "chats.places": "for the platform itself, never for a person",
    "chats.move": "a place that the platform has given a new id",
    "completions.add": "the row names its person",
    "completions.link": "the answer names its person",
    "completions.drop_unneeded": "what is old goes, whoever it was said to",
    "completions.drop_unneeded_of": "a conversation is one person's, and its id names it",
    "consent.record": "the row names its person",
    "consent.set_follow_ups": "as consent.record",
    "consent.enforce": "sweep at start",
    "consent.unfinished_withdrawals": "sweep at start",
    "feedback.add": "the row names its person",
    "feedback.get": "by our own random id, from the engine's queue",
    "feedback.begin_training": "as feedback.get",
    "feedback.set_status": "as feedback.get",
    "feedback.note_taken_back": "as feedback.get",
    "feedback.note_reading": "as feedback.get",
    "feedback.set_scope": "as feedback.get",
    "updates.cancel": "as feedback.get",
    "feedback.pending": "the scheduler's queue, or one person's",
    "feedback.people_waiting": "sweep at a gateway's start",
    "feedback.requeue_interrupted": "sweep at start",
    "notes.add": "the row names its person",
    "notes.set_state": "by our own random id, from notes.live of that person",
    "notes.set_questions": "as notes.set_state",
    "notes.requeue_interrupted": "sweep at start",
    "versions.unfinished": "sweep at start",
    "versions.known_paths": "sweep at start",
    "versions.all_accepted": "copies that are missing are made at start",
    "signals.waiting": "finds out whose turn it is",
    "signals.unfinished": "sweep at start",
    "updates.start": "the row names its person",
    "updates.finish": "by our own random id, from updates.start",
    "updates.fail_interrupted": "sweep at start",
}


def _functions(module: ModuleType) -> dict[str, inspect.Signature]:
    own = [
        (name, function)
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__ and not name.startswith("_")
    ]
    return {f"{module.__name__.rpartition('.')[2]}.{name}": inspect.signature(f) for name, f in own}


FUNCTIONS = {name: signature for module in MODULES for name, signature in _functions(module).items()}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_takes_a_session_first(name: str) -> None:
    """Repositories never open a session of their own."""
    first = next(iter(FUNCTIONS[name].parameters.values()))
    assert (first.name, first.annotation) == ("s", Session)


def test_every_function_names_the_person_or_its_reason() -> None:
    """A function without a required user_id is on the list above, with the reason why it needs none."""
    without = set()
    for name, signature in FUNCTIONS.items():
        parameter = signature.parameters.get("user_id")
        if parameter is None or parameter.default is not inspect.Parameter.empty:
            without.add(name)
    assert without == set(WITHOUT_PERSON)
