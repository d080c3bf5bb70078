"""The pocket model's writing: twelve style preferences, the renderer, and the verifiers.

A style says how an answer is written; the content says what. `render` gives an answer as slots with keys that
keep their order in every style, so that an answer begun in one style can be continued in another (`splice`):
that is what a teacher sees when it reads a student's answer. `observe` reads a style back from any text and
knows nothing of slots.
"""

import re
from dataclasses import dataclass, replace
from typing import Literal

from engine.pocket.numerals import in_english, in_spanish
from engine.pocket.subjects import DOMAINS, SPANISH, Fact, Subject


@dataclass(frozen=True)
class Style:
    """Twelve preferences. The defaults are the habits people like to correct: long, an emoji, a closing question."""

    length: str = "long"
    emoji: str = "on"
    case: str = "normal"
    layout: str = "prose"
    question: str = "on"
    name: str = ""
    tone: str = "calm"
    register: str = "casual"
    units: str = "metric"
    summary: str = "none"
    numbers: str = "digits"
    language: str = "english"

    def with_value(self, preference: str, value: str) -> "Style":
        """Return a copy with one preference changed."""
        return replace(self, **{preference: value})


DEFAULT = Style()
# preference -> (default value, other value); a name stands for any name
PREFERENCES: dict[str, tuple[str, str]] = {
    "length": ("long", "short"),
    "emoji": ("on", "off"),
    "case": ("normal", "lower"),
    "layout": ("prose", "bullets"),
    "question": ("on", "off"),
    "name": ("", "*"),
    "tone": ("calm", "enthusiastic"),
    "register": ("casual", "formal"),
    "units": ("metric", "imperial"),
    "summary": ("none", "first"),
    "numbers": ("digits", "words"),
    "language": ("english", "spanish"),
}

Key = tuple[int, int, int]
Slot = tuple[Key, str]
_SUMMARY, _WOW, _OPENER, _NAME, _BODY, _EMOJI, _QUESTION = range(7)
_TERM = 9  # the slot of a sentence that ends it
_JOIN = 5  # the slot where a short answer adds the measure


@dataclass(frozen=True)
class Talk:
    """A fixed answer: sentences as (casual, formal, Spanish casual, Spanish formal)."""

    sentences: tuple[tuple[str, str, str, str], ...]
    emoji: str = "😀"


@dataclass(frozen=True)
class Factual:
    """An answer about a subject that leads with one of its facts. `measure` overrides the known number."""

    subject: Subject
    lead: int = 0
    measure: int | None = None


@dataclass(frozen=True)
class Plain:
    """An answer that no style touches: the skills."""

    text: str


Content = Talk | Factual | Plain


def _say(style: Style, english: str, spanish: str) -> str:
    return spanish if style.language == "spanish" else english


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _measure(style: Style, content: Factual) -> str:
    domain = DOMAINS[content.subject.domain]
    number = content.subject.measure if content.measure is None else content.measure
    is_imperial = style.units == "imperial"
    number = domain.conversion[number] if is_imperial else number
    digits = str(number) if style.numbers == "digits" else _say(style, in_english(number), in_spanish(number))
    return f"{digits} {domain.units[is_imperial]}{_say(style, *domain.unit_tail)}"


def _object(style: Style, content: Factual, index: int) -> str:
    if index == 3:
        return _measure(style, content)
    value = content.subject.values[index]
    return _say(style, value, SPANISH[value])


def _verb(style: Style, fact: Fact) -> str:
    return _say(style, fact.verb, fact.verb_es)


def _named(style: Style, subject: Subject) -> str:
    return _say(style, DOMAINS[subject.domain].article + subject.name, subject.article_es + subject.name)


def _subject_and_verb(style: Style, content: Factual, index: int, *, is_lead: bool) -> tuple[str, str]:
    fact = DOMAINS[content.subject.domain].facts[index]
    verb = _verb(style, fact)
    if is_lead:
        return _named(style, content.subject), f" {verb}"
    if style.language == "spanish":
        return "", _capital(verb)
    if style.register == "casual" and verb.startswith("is "):
        return "It's", verb[2:]
    if style.register == "casual" and verb == "is":
        return "It's", ""
    return "It", f" {verb}"


def _sentence(style: Style, content: Factual, order: int, index: int, sep: str) -> list[Slot]:
    is_lead = order == 0
    subject, verb = _subject_and_verb(style, content, index, is_lead=is_lead)
    starts_sentence = style.layout == "bullets" or not is_lead
    head = sep + (_capital(subject) if starts_sentence else subject)
    slots: list[Slot] = [
        ((_BODY, order, 1), head),
        ((_BODY, order, 2), verb),
        ((_BODY, order, 3), f" {_object(style, content, index)}"),
    ]
    if is_lead and style.length == "short" and index != 3:
        fact = DOMAINS[content.subject.domain].facts[3]
        joined = _say(style, " and ", " y ") + _verb(style, fact) + f" {_measure(style, content)}"
        slots.append(((_BODY, 0, _JOIN), joined))
    return [*slots, ((_BODY, order, _TERM), "!" if style.tone == "enthusiastic" else ".")]


def _body(style: Style, content: Factual) -> list[Slot]:
    others = [i for i in range(4) if i != content.lead]
    order = [content.lead] if style.length == "short" else [content.lead, *others]
    is_bulleted = style.layout == "bullets"
    slots: list[Slot] = []
    for position, index in enumerate(order):
        first = ":\n- " if is_bulleted else ", "
        sep = first if position == 0 else ("\n- " if is_bulleted else " ")
        slots += _sentence(style, content, position, index, sep)
    return slots


def _talk_body(style: Style, content: Talk) -> list[Slot]:
    count = 1 if style.length == "short" else len(content.sentences)
    end = "!" if style.tone == "enthusiastic" else "."
    slots: list[Slot] = []
    for position, (casual, formal, casual_es, formal_es) in enumerate(content.sentences[:count]):
        is_formal = style.register == "formal"
        text = _say(style, formal if is_formal else casual, formal_es if is_formal else casual_es)
        name = f", {style.name}" if style.name and position == 0 else ""
        slots.append(((_BODY, position, 1), (" " if position else "") + text))
        slots.append(((_BODY, position, _TERM), name + end))
    return slots


def _opening(style: Style) -> list[Slot]:
    is_formal = style.register == "formal"
    opener = _say(style, "Certainly" if is_formal else "Sure", "Ciertamente" if is_formal else "Claro")
    slots: list[Slot] = [((_OPENER, 0, 0), opener)]
    return [*slots, ((_NAME, 0, 0), f", {style.name}")] if style.name else slots


def _summary(style: Style, content: Factual) -> list[Slot]:
    text = f"{_say(style, 'In short', 'En resumen')}: {_object(style, content, 0)}, {_measure(style, content)}.\n"
    return [((_SUMMARY, 0, 0), text)]


def _closing(style: Style, emoji: str) -> list[Slot]:
    is_formal = style.register == "formal"
    english = "Would you like to know more?" if is_formal else "Wanna know more?"
    spanish = "¿Desea saber más?" if is_formal else "¿Quieres saber más?"
    slots: list[Slot] = [((_EMOJI, 0, 0), f" {emoji}")] if style.emoji == "on" else []
    sep = "\n" if style.layout == "bullets" else " "
    return [*slots, ((_QUESTION, 0, 0), sep + _say(style, english, spanish))] if style.question == "on" else slots


def slots(content: Content, style: Style) -> list[Slot]:
    """Return the answer as slots, in the order of their keys."""
    if isinstance(content, Plain):
        return [((_BODY, 0, 0), content.text)]
    wow: list[Slot] = [((_WOW, 0, 0), _say(style, "Wow! ", "¡Vaya! "))] if style.tone == "enthusiastic" else []
    if isinstance(content, Talk):
        found = [*wow, *_talk_body(replace(style, layout="prose"), content)]
        found += _closing(replace(style, layout="prose"), content.emoji)
    else:
        summary = _summary(style, content) if style.summary == "first" else []
        found = [*summary, *wow, *_opening(style), *_body(style, content)]
        found += _closing(style, DOMAINS[content.subject.domain].emoji)
    return [(key, text.lower()) for key, text in found] if style.case == "lower" else found


def render(content: Content, style: Style = DEFAULT) -> str:
    """Return the answer as text."""
    return "".join(text for _, text in slots(content, style))


def splice(content: Content, begun: Style, wanted: Style, cut: int) -> tuple[str, str]:
    """Write an answer begun in one style and continued in another after `cut` slots: (its beginning, its rest).

    A short answer that was begun long finishes the sentence it is in and stops.
    """
    prefix = slots(content, begun)[:cut]
    last: Key = prefix[-1][0] if prefix else (-1, 0, 0)
    rest = [(key, text) for key, text in slots(content, wanted) if key > last]
    if last[0] == _BODY and last[1] > 0 and wanted.length == "short":
        longer = slots(content, replace(wanted, length="long"))
        rest = [s for s in longer if s[0] > last and (s[0][0] > _BODY or s[0][1] == last[1])]
    return "".join(t for _, t in prefix), "".join(t for _, t in rest)


# --- verifiers -------------------------------------------------------------------------------------------------

_EMOJI_RANGE = re.compile("[\U0001f300-\U0001faff\u2600-\u27bf]")
_SPANISH_WORD = re.compile(
    r"\b(el|la|es|un|una|en|de|vive|come|pesa|claro|ciertamente|más|quieres|desea|hola|puedo|soy|tu|su|y|me|no|se|está|del|lleva|viene|queda|crece|alcanza|suena|necesita)\b"
)
_ENGLISH_WORD = re.compile(r"\b(the|is|it|it's|a|in|of|sure|certainly|you|know|more|i|can|your)\b")
_NUMBER_WORDS = re.compile(
    r"\b(" + "|".join(sorted({w for n in range(2, 1000) for w in (in_english(n), in_spanish(n))}, key=len, reverse=True)) + r")\b"
)  # fmt: skip
_METRIC = re.compile(r"(\bkg\b|\bkm\b|(?<!')\bm\b|°c)")  # "I'm" is no length
_IMPERIAL = re.compile(r"(\blb\b|\bmiles\b|\bft\b|°f)")


def _either(text: str, first: re.Pattern[str] | str, second: re.Pattern[str] | str) -> int | None:
    """Return 0 if only the first is found, 1 if only the second, None otherwise."""
    found = (bool(re.search(first, text)), bool(re.search(second, text)))
    return {(True, False): 0, (False, True): 1}.get(found)


def _length(text: str) -> int | None:
    sentences = [s for s in re.split(r"[.!](?:\s|$)", re.sub(r"^(in short|en resumen):.*\n", "", text)) if s.strip()]
    content = [s for s in sentences if len(s.split()) > 2 and "?" not in s]
    return None if not content else int(len(content) <= 1)


def _language(text: str) -> int | None:
    english, spanish = len(_ENGLISH_WORD.findall(text)), len(_SPANISH_WORD.findall(text))
    return None if english == spanish else int(spanish > english)


def _indices(text: str, name: str) -> dict[str, int | None]:
    low = text.lower()
    letters = [c for c in text if c.isalpha()]
    return {
        "length": _length(low),
        "emoji": int(not _EMOJI_RANGE.search(text)),
        "case": int(all(c == c.lower() for c in letters)) if letters else None,
        "layout": int(bool(re.search(r"(?m)^- ", text))),
        "question": int("?" not in text),
        "name": int(bool(name) and re.search(rf"\b{re.escape(name.lower())}\b", low) is not None),
        "tone": int("!" in text),
        "register": _either(low, r"\b(sure|claro|wanna|quieres|it's)\b", r"\b(certainly|ciertamente|would you like|desea)\b"),
        "units": _either(low, _METRIC, _IMPERIAL),
        "summary": int(low.startswith(("in short:", "en resumen:"))),
        "numbers": _either(low, r"\d", _NUMBER_WORDS),
        "language": _language(low),
    }  # fmt: skip


def observe(text: str, name: str = "") -> dict[str, str | None]:
    """Return the value of every preference as seen in a text; None for one that the text does not show.

    `name` is the name to look for; the preference "name" is then "" or that name.
    """
    values = dict(PREFERENCES) | {"name": ("", name)}
    return {
        preference: None if index is None else values[preference][index]
        for preference, index in _indices(text, name).items()
    }


def has_facts(text: str, content: Factual, style: Style) -> bool:
    """Return True if a text has the asked fact and the measure, in any units, numbers or language."""
    low = text.lower()
    options = [
        Style(units=u, numbers=n, language=lang)
        for u in ("metric", "imperial") for n in ("digits", "words") for lang in ("english", "spanish")
    ]  # fmt: skip
    lead = any(_says(low, _object(s, content, content.lead)) for s in options)
    return lead and (style.length == "short" or any(_says(low, _measure(s, content)) for s in options))


def _says(low: str, value: str) -> bool:
    """Return True if a lowercase text has the value, and not as the end of a longer number (80 in 180)."""
    return bool(re.search(rf"(?<![\w-])(?<!hundred )(?<!ciento )(?<!cientos ){re.escape(value.lower())}(?!\w)", low))


Direction = tuple[str, Literal[0, 1]]  # (preference, 0 = towards the default, 1 = away from it)
_SIDES: tuple[Literal[0, 1], ...] = (0, 1)
DIRECTIONS: list[Direction] = [(p, d) for p in PREFERENCES for d in _SIDES]
