"""Checks of wishes: pure, and blind to garbage."""

import pytest

from evals.wish_checks import CHECKS, echoes, follows_wish, is_degenerate, num_sentences, repeats

LONG = "Bread rises because yeast eats sugar and makes gas. The gas fills the dough with bubbles. Then it is baked."
SAME_ITEM = "\n".join(f"{number}. No" for number in range(1, 27))
GARBAGE = [
    "", "   ", "!!! ...", "1. 2. 3.", "the the the the", "aaaaaaaaaaaaaaa", "I am here now " * 6, "¡! 😀😀", SAME_ITEM,
    "\n".join(f"{number}. Drink more water." for number in range(1, 7)),
]  # fmt: skip


@pytest.mark.parametrize("text", GARBAGE)
@pytest.mark.parametrize("check", list(CHECKS))
def test_garbage_follows_nothing(check: str, text: str) -> None:
    """Not even a wish for short answers or for none with lists."""
    assert is_degenerate(text)
    assert not follows_wish(check, text, LONG, "the")


@pytest.mark.parametrize(
    "text",
    [LONG, "No.", "ok", "- eggs\n- milk", "1. Red\n2. Blue\n3. Green", "Ja, gern.", "東京です。", "No, no, never."],
)
def test_an_ordinary_answer_is_not_degenerate(text: str) -> None:
    """Short ones and other scripts included."""
    assert not is_degenerate(text)


@pytest.mark.parametrize(
    ("check", "text", "word"),
    [
        ("shorter", "Yeast makes gas.", ""),
        ("longer", LONG + " " + LONG.replace("Bread", "A roll").replace("yeast", "it"), ""),
        ("one_sentence", "Yeast makes gas that lifts the dough.", ""),
        ("list", "You need:\n- flour\n- yeast", ""),
        ("numbered", "1. Mix it.\n2. Bake it.", ""),
        ("no_list", LONG, ""),
        ("lowercase", "yeast makes gas: co2, 3 g.".lower(), ""),
        ("capitals", "YEAST MAKES 3 G OF GAS.", ""),
        ("begins_with", "Sure thing: yeast.", "Sure thing"),
        ("ends_with", "Yeast makes gas. Take care!", "Take care."),
        ("spanish", "La levadura come el azúcar y hace gas en la masa.", ""),
        ("english", "Yeast makes gas that lifts the dough.", ""),
        ("emoji", "Yeast makes gas 🍞", ""),
        ("no_emoji", "Yeast costs 3 € or less, about 2 °.", ""),
        ("name", "Dear Mira, yeast makes gas.", "Mira"),
        ("formal", "Yeast produces gas, which raises the dough.", ""),
        ("concise", "Yeast makes gas.", ""),
        ("identity", "I am Kuro, your helper.", "Kuro"),
    ],
)
def test_what_follows_a_wish(check: str, text: str, word: str) -> None:
    """One example each."""
    assert follows_wish(check, text, LONG, word)


@pytest.mark.parametrize(
    ("check", "text", "word"),
    [
        ("shorter", LONG, ""),
        ("longer", LONG, ""),
        ("one_sentence", LONG, ""),
        ("list", "- flour", ""),
        ("numbered", "- flour\n- yeast", ""),
        ("no_list", "You need:\n- flour", ""),
        ("lowercase", "Yeast makes gas.", ""),
        ("capitals", "YEAST MAKES Gas.", ""),
        ("begins_with", "Yeast, sure thing.", "Sure thing"),
        ("ends_with", "Take care: yeast.", "Take care."),
        ("spanish", LONG, ""),
        ("english", "La levadura come azúcar y hace gas.", ""),
        ("emoji", LONG, ""),
        ("no_emoji", "Yeast ✨", ""),
        ("name", "Admirable yeast makes gas.", "Mira"),
        ("formal", "It's gas.", ""),
        ("concise", LONG + LONG, ""),
        ("identity", "I am an assistant.", "Kuro"),
    ],
)
def test_what_does_not_follow_a_wish(check: str, text: str, word: str) -> None:
    """One example each: no check accepts everything."""
    assert not follows_wish(check, text, LONG, word)


@pytest.mark.parametrize(
    "text",
    [
        "¿Puedo ayudarte?", "Está lloviendo.", "Sí, claro.", "Llueve mucho hoy.", "Hierve agua y añade sal.",
        "¿Qué necesitas?", "Bebe agua.", "Duerme ocho horas cada noche.", "Nadie sabe cuándo empezó todo.",
        "¡Feliz cumpleaños!", "Escribe una función que salude: def saludar(nombre): print(nombre)",
    ],
)  # fmt: skip
def test_short_spanish_is_spanish(text: str) -> None:
    """No word of a list of common ones has to be in it."""
    assert CHECKS["spanish"](text, LONG, "")


@pytest.mark.parametrize(
    "text",
    [
        "No.", "No problem.", "The answer is no.", "A siesta is a nap after lunch.", "In Spanish, hola means hello.",
        "Posso ajudar você?", "Olá, como estás?", "Não sei.", "Ciao, come stai?", "Non lo so.", "Bois de l'eau.",
        "Wie geht es dir?", "Hoe maak je brood?", "def greet(name): print(name)",
    ],
)  # fmt: skip
def test_neighbours_of_spanish_are_not_spanish(text: str) -> None:
    """Nor is a short word that many languages have."""
    assert not CHECKS["spanish"](text, LONG, "")


def test_a_last_sentence_without_full_stop_counts() -> None:
    """An answer may be cut off; 3.5 ends no sentence."""
    assert [num_sentences(t) for t in ("", "It is 3.5 km", "One. Two", "One. Two.")] == [0, 1, 2, 2]


@pytest.mark.parametrize(
    ("text", "said", "expected"),
    [
        ("I am Mira, and I like to be called that!", "I am Mira, and I like to be called that from now on", True),
        ("You asked me to answer in one sentence.", "answer in one sentence", True),
        ("Mira, the sea is salty because rivers bring salt.", "say Mira to me each time from now on", False),
        ("I am Mira's helper, and bees like to be near flowers.", "I am Mira, and I like to be called that", False),
        ("Be brief.", "be brief", False),  # so few words are said by chance, too
        ("", "", False),
    ],
)
def test_an_echo_of_the_wish_is_known(text: str, said: str, expected: bool) -> None:
    """Six words in a row, or all of a short wish."""
    assert echoes(text, said) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What is the capital of France?", True),
        ("The capital of France, the capital of France.", True),
        ("The capital of France is Paris.", False),
        ("Paris.", False),
    ],
)
def test_an_answer_that_is_the_question_is_known(text: str, expected: bool) -> None:
    """No word of its own; a short answer has one."""
    assert repeats(text, "what is the capital of France?") is expected
