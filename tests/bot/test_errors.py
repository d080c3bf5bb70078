"""bot.errors: the tree as drawn, with a stdlib type at each leaf that has one."""

import inspect

import pytest

from bot import errors
from bot.errors import BotError, RequestError


def test_every_error_is_in_the_drawing() -> None:
    """The tree in the module's docstring names each class, and no other."""
    names = {name for name, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, BotError)}
    drawn = {word for word in (errors.__doc__ or "").split() if word in names}
    assert drawn == names


@pytest.mark.parametrize(
    ("name", "status"),
    [("MalformedRequest", 400), ("NotAuthorised", 401), ("OriginRefused", 403), ("NotFound", 404),
     ("InvalidField", 400), ("CallChanged", 409), ("Overloaded", 429), ("NotReady", 503), ("AnswerTimeout", 504)],
)  # fmt: skip
def test_refusals_have_their_status(name: str, status: int) -> None:
    """Each refused request has the HTTP status the drawing says."""
    assert getattr(errors, name).status == status


def test_a_refusal_names_its_field() -> None:
    """`param` is carried along."""
    assert RequestError("no", "text").param == "text"
