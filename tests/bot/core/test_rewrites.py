"""bot.core.rewrites: "say it like this: ..." in ten languages, and what only looks like it."""

# ruff: noqa: RUF001  Chinese and Japanese are written with wide colons and commas

import time

import pytest

from bot.core.rewrites import WORDINGS, ideal_text

REWRITES = {
    "en": ["say it like this: X", "No, put it this way:X", "please word that like so:X", "say this like so: X"],
    "de": [
        "sag es so: X", "Nein, sag es lieber so: X", "Bitte schreib das so: X", "Sagen Sie es bitte folgendermaßen: X",
        "formuliere es auf diese Weise: X", "Drück es besser so aus: X", "sag es so, bitte: X",
    ],
    "es": [
        "dilo así: X", "Dilo asi : X", "No, mejor dilo de esta manera: X", "escríbelo así, por favor: X",
        "Dígalo de este modo: X", "Ponlo así: X", "decilo así: X",
    ],
    "fr": [
        "dis-le comme ça : X", "Dites-le plutôt ainsi : X", "Non, écris-le comme ceci: X", "dis ça comme ça\u00a0: X",
        "S\u2019il te plaît, formule-le de cette façon : X",
    ],
    "it": ["dillo così: X", "No, dillo piuttosto in questo modo: X", "Scrivilo cosi': X", "Meglio, lo dica così: X"],
    "pt": ["diga assim: X", "Não, diga isso assim: X", "escreva-o desta forma: X", "por favor diz isto deste modo: X"],
    "nl": ["zeg het zo: X", "Nee, zeg het liever zo: X", "Schrijf dat als volgt: X", "zegt u het op deze manier: X"],
    "ru": ["скажи так: X", "Нет, скажи это лучше вот так: X", "Сформулируйте это следующим образом: X"],
    "zh": ["这样说：X", "不，请这样说：X", "你应该这么写: X", "請改成這樣：X", "不对，改成这样：X"],
    "ja": [
        "こう言って：X", "いいえ、次のように書いてください：X", "こんなふうに言ってほしい: X",
        "むしろこう言い直して：X",
    ],
}  # fmt: skip

OTHERS = [
    "say it like this", "say it like this:  ", "I like this: bees", "do it like this: x", "do not say it like this: x",
    "sag es so", "sag es nicht so: x", "ich sage es so: x", "sag es kürzer: x", "antworte so: kurz und knapp",
    "dilo así", "no lo digas así: x", "no diga así: x", "responde así: sí o no", "dilo más corto: x", "digo así: x",
    "dis-le comme ça", "ne le dis pas comme ça : x", "dis-le plus simplement : x", "comme ça : x",
    "dillo così", "non dirlo così: x", "non lo dica così: x", "dillo in italiano: x", "così: x",
    "diga assim", "não diga assim: x", "nao escreva assim: x", "diga mais curto: x", "assim: x",
    "zeg het zo", "zeg het niet zo: x", "zeg het korter: x", "ik zeg het zo: x",
    "скажи так", "не говори так: x", "не скажи так: x", "скажи короче: x", "так: x", "говори так: коротко",
    "这样说", "不要这样说：x", "别这样说：x", "不可以这样说：x", "不应该这样说：x", "这样回答：简短一点",
    "こう言って", "こう言わないで：x", "こう言っては駄目：x", "こう思った：x", "もっと短く言って：x",
]  # fmt: skip


@pytest.mark.parametrize("text", [text for texts in REWRITES.values() for text in texts])
def test_a_rewrite_is_known_in_every_language(text: str) -> None:
    """Plain and polite, with another answer behind a colon of any width."""
    assert ideal_text(text) == "X"


def test_every_language_of_the_table_is_tried() -> None:
    """A new line of the table needs its examples."""
    assert REWRITES.keys() == WORDINGS.keys()


@pytest.mark.parametrize("text", OTHERS)
def test_other_texts_are_no_rewrites(text: str) -> None:
    """Denied, without an answer, or a wish of another kind."""
    assert ideal_text(text) is None


def test_the_answer_is_kept_as_it_is() -> None:
    """With its lines and colons, without the blanks around it."""
    assert ideal_text("Sag es so:\n Hallo:\n  Welt \n") == "Hallo:\n  Welt"


@pytest.mark.parametrize(
    "text", ["please " * 3000, " " * 16_000, "say it like this" + " " * 16_000, "sag es " + "bitte " * 3000]
)
def test_a_long_text_is_read_at_once(text: str) -> None:
    """No text makes the search take longer than its length asks for."""
    started_s = time.perf_counter()
    assert ideal_text(text) is None
    assert time.perf_counter() - started_s < 1
