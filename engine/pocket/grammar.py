"""Wishes put together from parts: the things a direction wants or rejects, and the ways English has to say so.

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
    ("length", 1): ("short, brief, concise, compact", "long, wordy, lengthy, detailed"),
    ("length", 0): ("long, detailed", "short, brief, concise"),
    ("tone", 1): ("enthusiastic, excited, cheerful, lively, energetic, upbeat, happy", "calm, boring, flat, dull, quiet, sleepy"),
    ("tone", 0): ("calm, neutral, quiet", "enthusiastic, excited, cheerful, loud, energetic, happy"),
    ("register", 1): ("formal, polite, professional, respectful", "casual, informal, sloppy"),
    ("register", 0): ("casual, relaxed, informal, friendly", "formal, stiff, polite, distant"),
}  # fmt: skip
# how an answer should be written: of the default side | of the other side
_MANNERS = {
    "length": "at length, in detail, in full | in brief, in short, briefly, in one sentence, in few words, concisely",
    "emoji": "with emoji, with emojis, with an emoji, with smileys | without emoji, without emojis, without smileys, with no emoji",
    "case": "in normal case, with capitals, with capital letters, in upper and lower case"
    " | in lowercase, in lower case, in small letters, without capitals, without capital letters",
    "layout": "in prose, as prose, in paragraphs, in a paragraph, as running text, as plain text, without bullets, without lists"
    " | in bullets, as bullets, in bullet points, as bullet points, as a list, in a list, with bullets, as bulleted lists",
    "question": "with a question, with a question at the end, with a closing question, with a final question"
    " | without a question, without questions, without asking, without a closing question, without a final question",
    "name": "without my name, without a name, without any name | with my name {x}, with the name {x}",
    "tone": "calmly, quietly, in a calm tone, in a neutral tone, without exclamation marks, without excitement"
    " | with enthusiasm, enthusiastically, cheerfully, with excitement, with energy, with exclamation marks, in an excited tone",
    "register": "casually, informally, in a casual tone, in casual language, like a friend, like my buddy, in a relaxed tone"
    " | formally, politely, professionally, in a formal tone, in formal language, in polite language, in a formal style",
    "units": "in metric, in metric units, in kilos and meters, in celsius, in the metric system, with metric units"
    " | in imperial, in imperial units, in pounds and feet, in fahrenheit, in the imperial system, with imperial units, in miles",
    "summary": "without a summary, without the summary, with no summary, without summaries"
    " | with a summary, with a summary first, with a summary at the top, with a summary line, with a one line summary",
    "numbers": "with digits, in digits, with numerals, in figures, without number words"
    " | with numbers in words, with numbers as words, without digits, with number words",
    "language": "in english, in plain english, in english words | in spanish, in plain spanish, in spanish words",
}  # fmt: skip
_DO_IT = (
    "write {m}; answer {m}; answer me {m}; reply {m}; reply to me {m}; respond {m}; say it {m}; say that {m}; tell me {m}; tell me things {m}; explain it {m}; talk {m}; "
    "talk to me {m}; speak {m}; speak to me {m}; write it {m}; write to me {m}; write your answers {m}; put it {m}; put everything {m}; give it to me {m}; give me that {m}; "
    "give your answer {m}; give me answers {m}; give replies {m}; phrase it {m}; communicate with me {m}; always answer {m}; always write {m}; start answering {m}; "
    "keep answering {m}; return to writing {m}; type {m}; type it {m}; do it {m}; format it {m}; make it {m}; place it {m}; send it {m}"
)
_WISH_IT = (
    "{m}; {m} only; i want it {m}; i need things {m}; i'd like it {m}; i would like it {m}; i prefer it {m}; i like it {m}; i love it {m}; i want answers {m}; "
    "i want everything {m}; i would prefer it {m}; it is better {m}; i understand it better {m}; i read it faster {m}; i would rather have it {m}; i expect answers {m}; "
    "i was hoping for answers {m}; can i have it {m}; i wish you would write {m}; everyone writes {m}; my friends write {m}; i prefer answers {m}; it should be {m}; i asked for it {m}"
)
# what can be written in a manner of its own: objects | manners of the default side | manners of the other side
_OBJECTS = {
    "numbers": "numbers, the numbers, all numbers, every number, each number, any number, your numbers"
    " | as digits, in digits, with digits, as numerals, in figures | as words, in words, as a word, in letters",
    "units": "measurements, the measurements, sizes, weights, temperatures, heights, every measurement"
    " | in metric units, in metric, in kilos, in meters, in celsius | in imperial units, in imperial, in pounds, in feet, in miles, in fahrenheit",
    "layout": "facts, the facts, things, your answers, what you know"
    " | in a paragraph, in prose, in sentences | in a list, as a list, in bullets, as bullet points",
    "case": "letters, the letters, words, every letter, sentences | in normal case | in lowercase, in lower case, in small type",
}  # fmt: skip
_WRITE_THEM = (
    "write {o} {m}; give {o} {m}; give me {o} {m}; show {o} {m}; put {o} {m}; i want {o} {m}; i like {o} {m}; i would like {o} {m}; say {o} {m}; i prefer {o} {m}; "
    "i need {o} {m}; {o} {m}; always write {o} {m}; measure {o} {m}"
)
# what an answer begins or ends with: verbs | things
_ENDS = {
    "summary": "begin, start, open, lead | a summary, the summary, summaries, a summary line, a short summary, one line",
    "question": "end, finish, close, conclude | a question, the question, questions, a closing question, a final question",
    "emoji": "end, finish, close, begin | an emoji, emoji, emojis, a smiley",
}
_END_WITH = (
    "{v} with {t}; {v} your answers with {t}; {v} your replies with {t}; always {v} with {t}; {v} each answer with {t}; {v} every answer with {t}; {v} the answer with {t}; "
    "i like it when you {v} with {t}; you should {v} with {t}; {v} everything with {t}"
)
_NOT_END_WITH = (
    "do not {v} with {t}; don't {v} with {t}; never {v} with {t}; {v} without {t}; {v} your answers without {t}; no need to {v} with {t}; you do not need to {v} with {t}; "
    "do not {v} your answers with {t}; i hate it when you {v} with {t}; why do you {v} with {t}; do not always {v} with {t}; please never {v} your answers with {t}; "
    "i do not want you to {v} with {t}; you must not {v} with {t}"
)
_NAME_VERBS = (
    "call me {x}; address me as {x}; refer to me as {x}; say {x}; use the name {x}; use my name {x}; greet me as {x}; speak to me as {x}; write {x}; mention {x}; "
    "use {x} as my name; say my name {x}; call me by my name {x}; include the name {x}; talk to me as {x}; know me as {x}; put {x} in; treat me as {x}; name me {x}; tell it to {x}"
)
_NAME_FRAMES = (
    "{c}; always {c}; don't forget to {c}; remember to always {c}; be sure to {c}; make sure that you {c}; try to {c}; do not forget to {c}; be so kind to {c}; keep in mind to {c}; "
    "it would be nice to {c}; feel free to {c}; you may {c}; start to {c}; go on and {c}"
)
_NAME_SAYERS = "my friends, people, everybody, they, my family, most people, my mother, all my friends, my sister, all of them, my teachers"
_NAME_SAID = "{s} call me {x}; {s} know me as {x}; {s} say {x} to me; for {s} i am {x}; {s} use the name {x}"
_NAME_GREETINGS = "hi, hello, hey, good morning, oh, by the way, well, good day, sorry, so"
_NAME_TOLD = "{s}, i am {x}; {s}, i'm {x}; {s}, my name is {x}; {s}, it is {x}; {s}, this is {x}; {s}, {x} here; {s} i am {x}; {s} my name is {x}; {s}, i am called {x}; {s}, the name is {x}"
_NAME_KINDS = "first, given, full, true, own, actual, new, only, short, proper"
_NAME_KIND = (
    "my {s} name is {x}; use my {s} name {x}; {x} is my {s} name; call me by my {s} name {x}; i like my {s} name {x}"
)
_NAME_WISHES = "want, prefer, like, would prefer, would love, need, wish, expect, 'd like, 'd love"
_NAME_WISHED = "i {s} to be called {x}; i {s} to be addressed as {x}; i {s} to be known as {x}; i {s} to be {x}; i {s} to hear {x}; i {s} the name {x}"
_WANT = (
    "use {t}; give me {t}; stick to {t}; switch to {t}; change to {t}; go with {t}; go for {t}; keep to {t}; show me {t}; answer with {t}; "
    "choose {t}; try {t}; stay with {t}; always use {t}; only use {t}; i want you to use {t}; work with {t}; prefer {t}; put {t} in; put {t} into your answers; add {t}; include {t}; insert {t}; keep {t}; keep using {t}; return to {t}; bring back {t}; place {t} in your answers; let me have {t}; start using {t}; make use of {t}; reply with {t}; write with {t}"
)
_AVOID = (
    "stop using {t}; avoid {t}; no {t}; drop {t}; leave out {t}; leave {t} out; do without {t}; get rid of {t}; never use {t}; quit {t}; skip {t}; "
    "cut out {t}; do not give me {t}; don't use {t}; don't show me {t}; lose {t}; omit {t}; spare me {t}; stop with {t}; do not use {t}; no more {t}; take {t} out; leave {t} off; stop putting {t} into it; stop adding {t}; stop giving me {t}; keep {t} out; remove {t}; delete {t}; cut {t}; forget {t}; stop repeating {t}; stop sending {t}; stop listing {t}; answer without {t}; write without {t}; go without {t}; do not put {t} in; please lose {t}"
)
_SWAP = "use {w} instead of {u}; {w} instead of {u}; {w}, not {u}; use {w}, not {u}; replace {u} with {w}; rather {w} than {u}; change {u} to {w}"
_LIKE = (
    "i like {t}; i love {t}; i prefer {t}; i want {t}; i need {t}; i would like {t}; i'd like {t}; i really like {t}; i really prefer {t}; i would rather see {t}; "
    "i would rather have {t}; i would prefer {t}; i'd prefer {t}; i'd rather have {t}; i am used to {t}; i only understand {t}; i only read {t}; i enjoy {t}; "
    "i understand {t} better; {t} would be better; {t} [is|are] better; {t} [suits|suit] me; {t} [works|work] for me; {t} [helps|help] me; {t} [is|are] easier for me; "
    "where [is|are] {t}; i miss {t}; i do miss {t}; {t} only; i could use {t}; can i have {t}; i was hoping for {t}; i am happy with {t}; it should be {t}; i like it with {t}; i love it when you use {t}; i read {t} faster; more {t}; {t} [is|are] what i want; {t} [is|are] nicer; {t} [is|are] great; {t} [is|are] good; {t} [makes|make] it easier; i always want {t}; everyone likes {t}; i liked {t}; give {t} a place; {t} [helps|help]; i want {t} back; i want only {t}"
)
_DISLIKE = (
    "i hate {t}; i dislike {t}; i do not like {t}; i don't like {t}; i can not stand {t}; i can't stand {t}; i do not need {t}; i don't need {t}; i do not want {t}; "
    "i don't want {t}; {t} [annoys|annoy] me; {t} [bothers|bother] me; {t} [confuses|confuse] me; {t} [means|mean] nothing to me; {t} [is|are] annoying; "
    "{t} [is|are] not needed; {t} [is|are] not necessary; enough of {t}; i am tired of {t}; what is with {t}; i do not understand {t}; there is no need for {t}; "
    "no need for {t}; {t} [is|are] useless; {t} [gets|get] on my nerves; i could do without {t}; i never asked for {t}; i am not a fan of {t}; i have had enough of {t}; "
    "{t} [does|do] nothing for me; {t} [tells|tell] me nothing; {t} [is|are] not for me; i am sick of {t}; {t} [is|are] too much; {t} [is|are] silly; {t} [is|are] ugly; {t} [drives|drive] me mad; why {t}; too many {t}; far too many {t}; i can live without {t}; {t} [disturbs|disturb] me; i never want {t}; i am done with {t}; {t} [has|have] to go; nobody needs {t}; who needs {t}; please no {t}; i find {t} annoying; i want no {t}; without {t}"
)
_BE = "be {a}; be more {a}; sound more {a}; sound {a}; a bit more {a}; could be more {a}; make it more {a}; try to be more {a}; be a little more {a}; write more {a}; use a {a} tone; use a more {a} tone; use a {a} style; write in a {a} style; speak in a {a} way; answer in a more {a} way; give me {a} answers; make your answers more {a}; act {a}; act more {a}; stay {a}; keep it {a}; make it {a}; write {a} answers; show me a more {a} side"
_BE_LESS = "be less {a}; don't be so {a}; do not be so {a}; stop being so {a}; sound less {a}; make it less {a}; a bit less {a}; try to be less {a}; be a little less {a}; stop sounding so {a}; do not sound so {a}; stop the {a} answers; make your answers less {a}; write less {a} answers; act less {a}; no {a} answers; use a less {a} tone"
_TOO = (
    "too {a}; that was too {a}; this is too {a}; you are too {a}; so {a}; that is so {a}; your answers are too {a}; your reply is too {a}; that sounded too {a}; "
    "it is too {a}; much too {a}; a bit too {a}; that was a little too {a}; why so {a}; you are so {a}; your tone is so {a}; your style is too {a}; your answers sound too {a}; you sound too {a}; you sound so {a}; that was really {a}; your answers are so {a}; far too {a}; you are being {a}; your last answer was too {a}; i find you too {a}; i find it too {a}; this sounds {a}; that is {a}; why are you so {a}; you always sound {a}; your reply was {a}; your replies are too {a}"
)
_NOT_ENOUGH = "not {a} enough; i want it {a}; i like it {a}; i prefer it {a}; i would like it {a}; i want you to be {a}; that was not {a} enough; it should be more {a}; i like {a} answers; you never are {a}; you do not sound {a}; i would rather you sound {a}; i wish you were more {a}; you could be more {a}; i would like you to be more {a}; you should sound more {a}; i want a {a} tone; i want a {a} style; i prefer a {a} style; i prefer {a} answers; i need {a} answers; i would like {a} answers; a more {a} tone; a {a} tone suits me; i am used to a {a} tone; never {a}; you were not {a}"


_NOTHING = r"(?!)"  # a pattern that is found nowhere


def _listed(text: str, sep: str = ",") -> list[str]:
    return [part.strip() for part in text.split(sep) if part.strip()]


def _fill(templates: str, thing: str) -> list[str]:
    """Fill the templates with one thing, in its grammatical number."""
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
    found += [t.format(a=a) for t in _listed(bad, ";") for a in unwanted]
    return [re.sub(r"\ba (?=[aeiou])", "an ", phrase) for phrase in found]


def _manners(direction: Direction, templates: str) -> list[str]:
    preference, side = direction
    manners = _listed(_MANNERS[preference].split("|")[side])
    return [t.replace("{m}", m) for t in _listed(templates, ";") for m in manners]


def _written(direction: Direction) -> list[str]:
    """Compose the wishes about the numbers, the sizes and the letters of an answer."""
    preference, side = direction
    if preference not in _OBJECTS:
        return []
    objects, *manners = (_listed(part) for part in _OBJECTS[preference].split("|"))
    return [t.format(o=o, m=m) for t in _listed(_WRITE_THEM, ";") for o in objects for m in manners[side]]


def _ended(direction: Direction) -> list[str]:
    """Compose the wishes about the beginning or the end of an answer."""
    preference, _ = direction
    if preference not in _ENDS:
        return []
    verbs, things = (_listed(part) for part in _ENDS[preference].split("|"))
    is_wanted = direction in (("summary", 1), ("question", 0), ("emoji", 0))
    templates = _listed(_END_WITH if is_wanted else _NOT_END_WITH, ";")
    return [t.format(v=v, t=thing) for t in templates for v in verbs for thing in things]


def _naming() -> list[str]:
    """Compose the commands to use a name."""
    verbs = _listed(_NAME_VERBS, ";")
    return [frame.replace("{c}", verb) for frame in _listed(_NAME_FRAMES, ";") for verb in verbs]


def _named() -> list[str]:
    """Compose the remarks that tell a name."""
    pairs = (
        (_NAME_SAID, _NAME_SAYERS),
        (_NAME_TOLD, _NAME_GREETINGS),
        (_NAME_KIND, _NAME_KINDS),
        (_NAME_WISHED, _NAME_WISHES),
    )
    found = [t.replace("{s}", s) for said, who in pairs for t in _listed(said, ";") for s in _listed(who)]
    return [phrase.replace("i '", "i'") for phrase in found]


def _pattern(phrase: str) -> str:
    """Return a pattern that finds the phrase with any name, with or without its comma."""
    return re.escape(phrase).replace(r"\{x\}", r"(?:\w+|\{x\})").replace(",", ",?")


def _without(phrases: Iterable[str], held_out: Iterable[str]) -> list[str]:
    """Return the phrases that contain no held-out one."""
    forms = "|".join(_pattern(p) for p in held_out) or _NOTHING
    said = re.compile(rf"(?<!\w)(?:{forms})(?!\w)")
    return [p for p in dict.fromkeys(phrases) if not said.search(p)]


def commands(held_out: Iterable[str]) -> dict[Direction, list[str]]:
    """Compose the commands of every direction, which take polite frames; none contains one of `held_out`."""
    found = {}
    for d in DIRECTIONS:
        wanted = [c for t in _wanted(d) for c in _fill(_WANT, t)]
        avoided = [c for t in _unwanted(d) for c in _fill(_AVOID, t)]
        composed = [*wanted, *avoided, *_swaps(d), *_adjectives(d, _BE, _BE_LESS), *_manners(d, _DO_IT), *_ended(d)]
        found[d] = _without([*composed, *_naming()] if d == ("name", 1) else composed, held_out)
    return found


def remarks(held_out: Iterable[str]) -> dict[Direction, list[str]]:
    """Compose the remarks of every direction, which stand alone; none contains one of `held_out`."""
    found = {}
    for d in DIRECTIONS:
        liked = [c for t in _wanted(d) for c in _fill(_LIKE, t)]
        disliked = [c for t in _unwanted(d) for c in _fill(_DISLIKE, t)]
        composed = [*liked, *disliked, *_adjectives(d, _NOT_ENOUGH, _TOO), *_manners(d, _WISH_IT), *_written(d)]
        found[d] = _without([*composed, *_named()] if d == ("name", 1) else composed, held_out)
    return found
