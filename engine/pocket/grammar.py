"""Wishes put together from parts: what a direction wants or is tired of, and the ways English has to say so.

The lists of `wishes` hold what people say; this grammar holds how they say it, so that "i can't stand" is learned about
anything and not about emoji alone. A star marks a plural; `[a|b]` is the singular or the plural form of a verb.
"""

import re
from collections.abc import Iterable

from engine.pocket.style import DIRECTIONS, Direction

# preference: things of its default side | things of its other side
_THINGS = {
    "length": "long answers*, longer answers*, full answers*, long replies*, long texts*, details*, more detail"
    " | short answers*, shorter answers*, brief answers*, short replies*, brief replies*, brevity, less text",
    "emoji": "emoji, emojis*, smileys*, an emoji | answers without emoji*, replies without emojis*, text without emoji",
    "case": "capitals*, capital letters*, normal case, uppercase, big letters*"
    " | lowercase, lowercase letters*, small letters*, lower case",
    "layout": "prose, paragraphs*, running text, a paragraph | bullets*, bullet points*, lists*, a list, bulleted lists*",
    "question": "a question at the end, closing questions*, a closing question, questions*, follow up questions*"
    " | answers without a question*, replies without questions*",
    "name": "answers without my name*, replies without my name* |",
    "tone": "a calm tone, calm answers*, a neutral tone, a quiet tone, calm replies*"
    " | enthusiasm, excitement, exclamation marks*, an excited tone, enthusiastic answers*, cheerful answers*, energy",
    "register": "casual language, a casual tone, casual answers*, a relaxed tone, informal language, slang, casual words*"
    " | formal language, a formal tone, formal answers*, polite language, a formal style, polite answers*",
    "units": "metric, metric units*, the metric system, kilos and meters*, metric measurements*, celsius, kilometers*, meters*, kilos*"
    " | imperial, imperial units*, the imperial system, pounds and feet*, imperial measurements*, american units*, fahrenheit, miles*, feet*, pounds*",
    "summary": "answers without a summary*, replies without summaries*"
    " | a summary, a summary first, summaries*, a summary line, a one line summary, a summary at the top",
    "numbers": "digits*, numerals*, figures*"
    " | number words*, numbers in words*, spelled out numbers*, words for numbers*",
    "language": "english, english answers*, english replies*, english words* | spanish, spanish answers*, spanish replies*, spanish words*",
}  # fmt: skip
# what people are tired of, where it is not simply what the other side wants
_UNWANTED: dict[Direction, str] = {
    ("length", 1): "long answers*, long replies*, long texts*, so many words*, so much text, such long answers*",
    ("length", 0): "short answers*, short replies*, such short answers*, so little text, brief answers*",
    ("emoji", 1): "emoji, emojis*, smileys*, the emoji, the emojis*, all the emojis*",
    ("emoji", 0): "answers without emoji*",
    ("question", 1): "questions*, the question, closing questions*, the closing question, your questions*, the last question",
    ("question", 0): "answers without a question*",
    ("name", 1): "",
    ("name", 0): "my name, hearing my name, seeing my name, being called by name",
    ("summary", 1): "answers without a summary*",
    ("summary", 0): "the summary, summaries*, a summary, the summary line, the summary at the top",
    ("tone", 0): "excitement, the excitement, exclamation marks*, the exclamation marks*, so much enthusiasm, the enthusiasm",
}  # fmt: skip
# how an answer should be / should not be so much
_ADJECTIVES: dict[Direction, tuple[str, str]] = {
    ("length", 1): ("short, brief, concise", "long, wordy, lengthy, detailed"),
    ("length", 0): ("long, detailed", "short, brief, concise"),
    ("tone", 1): ("enthusiastic, excited, cheerful, lively, energetic", "calm, boring, flat, dull, quiet"),
    ("tone", 0): ("calm, neutral, quiet", "enthusiastic, excited, cheerful, loud"),
    ("register", 1): ("formal, polite, professional", "casual, informal"),
    ("register", 0): ("casual, relaxed, informal", "formal, stiff, polite"),
}
_WANT = (
    "use {t}; give me {t}; stick to {t}; switch to {t}; change to {t}; go with {t}; go for {t}; keep to {t}; show me {t}; answer with {t}; "
    "choose {t}; try {t}; stay with {t}; always use {t}; only use {t}; i want you to use {t}; work with {t}; prefer {t}"
)
_AVOID = (
    "stop using {t}; avoid {t}; no {t}; drop {t}; leave out {t}; leave {t} out; do without {t}; get rid of {t}; never use {t}; quit {t}; skip {t}; "
    "cut out {t}; do not give me {t}; don't use {t}; don't show me {t}; lose {t}; omit {t}; spare me {t}; stop with {t}; do not use {t}; no more {t}"
)
_SWAP = "use {w} instead of {u}; {w} instead of {u}; {w}, not {u}; use {w}, not {u}; replace {u} with {w}; rather {w} than {u}; change {u} to {w}"
_LIKE = (
    "i like {t}; i love {t}; i prefer {t}; i want {t}; i need {t}; i would like {t}; i'd like {t}; i really like {t}; i really prefer {t}; i would rather see {t}; "
    "i would rather have {t}; i would prefer {t}; i'd prefer {t}; i'd rather have {t}; i am used to {t}; i only understand {t}; i only read {t}; i enjoy {t}; "
    "i understand {t} better; {t} would be better; {t} [is|are] better; {t} [suits|suit] me; {t} [works|work] for me; {t} [helps|help] me; {t} [is|are] easier for me; "
    "where [is|are] {t}; i miss {t}; i do miss {t}; {t} only; i could use {t}; can i have {t}; i was hoping for {t}; i am happy with {t}; it should be {t}; i like it with {t}"
)
_DISLIKE = (
    "i hate {t}; i dislike {t}; i do not like {t}; i don't like {t}; i can not stand {t}; i can't stand {t}; i do not need {t}; i don't need {t}; i do not want {t}; "
    "i don't want {t}; {t} [annoys|annoy] me; {t} [bothers|bother] me; {t} [confuses|confuse] me; {t} [means|mean] nothing to me; {t} [is|are] annoying; "
    "{t} [is|are] not needed; {t} [is|are] not necessary; enough of {t}; i am tired of {t}; what is with {t}; i do not understand {t}; there is no need for {t}; "
    "no need for {t}; {t} [is|are] useless; {t} [gets|get] on my nerves; i could do without {t}; i never asked for {t}; i am not a fan of {t}; i have had enough of {t}; "
    "{t} [does|do] nothing for me; {t} [tells|tell] me nothing; {t} [is|are] not for me; i am sick of {t}"
)
_BE = "be {a}; be more {a}; sound more {a}; sound {a}; a bit more {a}; could be more {a}; make it more {a}; try to be more {a}; be a little more {a}; write more {a}"
_BE_LESS = "be less {a}; don't be so {a}; do not be so {a}; stop being so {a}; sound less {a}; make it less {a}; a bit less {a}; try to be less {a}; be a little less {a}"
_TOO = (
    "too {a}; that was too {a}; this is too {a}; you are too {a}; so {a}; that is so {a}; your answers are too {a}; your reply is too {a}; that sounded too {a}; "
    "it is too {a}; much too {a}; a bit too {a}; that was a little too {a}; why so {a}; you are so {a}"
)
_NOT_ENOUGH = "not {a} enough; i want it {a}; i like it {a}; i prefer it {a}; i would like it {a}; i want you to be {a}; that was not {a} enough; it should be more {a}; i like {a} answers"


def _listed(text: str, sep: str = ",") -> list[str]:
    return [part.strip() for part in text.split(sep) if part.strip()]


def _fill(templates: str, thing: str) -> list[str]:
    """The templates about one thing, in its grammatical number."""
    form = r"\2" if thing.endswith("*") else r"\1"
    return [re.sub(r"\[(\w+)\|(\w+)\]", form, t).replace("{t}", thing.rstrip("*")) for t in _listed(templates, ";")]


def _wanted(direction: Direction) -> list[str]:
    preference, side = direction
    return _listed(_THINGS[preference].split("|")[side])


def _unwanted(direction: Direction) -> list[str]:
    preference, side = direction
    return _listed(_UNWANTED[direction]) if direction in _UNWANTED else _wanted((preference, 0 if side else 1))


def _swaps(direction: Direction) -> list[str]:
    return [
        swap.format(w=wanted.rstrip("*"), u=unwanted.rstrip("*"))
        for swap in _listed(_SWAP, ";")
        for wanted in _wanted(direction)
        for unwanted in _unwanted(direction)
        if "without" not in wanted + unwanted
    ]


def _adjectives(direction: Direction, good: str, bad: str) -> list[str]:
    wanted, unwanted = (_listed(text) for text in _ADJECTIVES.get(direction, ("", "")))
    found = [t.format(a=a) for t in _listed(good, ";") for a in wanted]
    return found + [t.format(a=a) for t in _listed(bad, ";") for a in unwanted]


def _without(phrases: Iterable[str], held_out: Iterable[str]) -> list[str]:
    """The phrases in which no held-out one stands."""
    forms = "|".join(re.escape(p).replace(r"\{x\}", r"\w+") for p in held_out)
    said = re.compile(rf"(?<!\w)(?:{forms})(?!\w)")
    return [p for p in dict.fromkeys(phrases) if not said.search(p)]


def commands(held_out: Iterable[str]) -> dict[Direction, list[str]]:
    """Composed commands of every direction, which take polite frames; none holds one of `held_out`."""
    found = {}
    for d in DIRECTIONS:
        wanted = [c for t in _wanted(d) for c in _fill(_WANT, t)]
        avoided = [c for t in _unwanted(d) for c in _fill(_AVOID, t)]
        found[d] = _without([*wanted, *avoided, *_swaps(d), *_adjectives(d, _BE, _BE_LESS)], held_out)
    return found


def remarks(held_out: Iterable[str]) -> dict[Direction, list[str]]:
    """Composed remarks of every direction, which stand alone; none holds one of `held_out`."""
    found = {}
    for d in DIRECTIONS:
        liked = [c for t in _wanted(d) for c in _fill(_LIKE, t)]
        disliked = [c for t in _unwanted(d) for c in _fill(_DISLIKE, t)]
        found[d] = _without([*liked, *disliked, *_adjectives(d, _NOT_ENOUGH, _TOO)], held_out)
    return found
