"""The ways in which a task can be done, and how people word wishes about them.

Every way has a default, the habit that people correct, and another side. Wishes are commands and remarks as in
`engine.pocket.wishes`, with many more in `ways.txt` (a way, the side as 0 or 1, a tab, the words); those after the bar
are held out of training and are what the evaluation speaks.
"""

import random
from dataclasses import dataclass, fields, replace
from pathlib import Path

from engine.pocket.listed import lines_by_name

Direction = tuple[str, bool]  # a way, and the side that is wished for; False is the default


@dataclass(frozen=True)
class Ways:
    """How tasks are done; each is False by default."""

    reads: bool = False  # a file is read before it is changed, also where its text is known
    by_lines: bool = False  # lines are changed by number, with edit_lines and not edit
    spares_tests: bool = False  # files below tests/ stay as they are
    is_unchecked: bool = False  # the check is not run after a change
    asks: bool = False  # a command is run only after a yes
    is_tight: bool = False  # new lines are written `key=value`

    def with_side(self, direction: Direction) -> "Ways":
        """Return a copy with one way changed."""
        return replace(self, **{direction[0]: direction[1]})


NAMES = tuple(field.name for field in fields(Ways))
DEFAULT = Ways()

_WISHES: dict[Direction, str] = {
    ("reads", True): (
        "read first; read the file first; look before you change it; read before you write; open the file first; read it before you edit it; "
        "always read a file before you edit it; look at the file first; have a look at the file first; read the file before you change anything; "
        "do not edit a file you have not read; never change a file without reading it; check the file before you edit; read files first; "
        "show me the file before you change it; you did not read the file; you changed it without looking; i want you to read files first; "
        "first read, then write; look first; read before editing; see what is in the file first; you have to read it first; no blind edits"
        " | read the file before editing it; you should look into a file before you change it; open and read it first; do not edit blindly"
    ),
    ("reads", False): (
        "do not read it first; change it right away; no need to read the file; skip the reading; you do not have to read it; edit it directly; "
        "stop reading files first; just change it; do not look first; no reading before editing; change files right away; without reading; "
        "reading it first is a waste of time; i told you what is in it; do not read what i told you; go straight to the edit"
        " | there is no need to look first; do not read the file before editing; edit right away"
    ),
    ("by_lines", True): (
        "use edit_lines; use edit_lines, not edit; edit by line numbers; change lines by number; prefer edit_lines; edit_lines is better; always use edit_lines; "
        "do not use edit; stop using edit; use line numbers; replace lines by number; work with line numbers; use edit_lines for changes; "
        "i prefer edit_lines; i like edit_lines better; edit is the wrong tool; with edit_lines, please; change it with edit_lines; no edit, use edit_lines; "
        "use edit_lines rather than edit; take edit_lines; give the line number; edit the line by its number; edit_lines, not edit"
        " | use edit_lines instead of edit; edit_lines is the right tool; change files by line number; i want edit_lines"
    ),
    ("by_lines", False): (
        "use edit; use edit, not edit_lines; replace the text; no line numbers; stop using edit_lines; do not use edit_lines; prefer edit; always use edit; "
        "edit is better; i prefer edit; edit_lines is the wrong tool; change it with edit; no edit_lines; use edit rather than edit_lines; take edit; do not count lines"
        " | use edit instead of edit_lines; edit is the right tool; i want edit, not edit_lines"
    ),
    ("spares_tests", True): (
        "leave the tests alone; do not touch the tests; never change the tests; hands off the tests; do not edit tests; stay out of tests; the tests stay as they are; "
        "do not change files in tests; no changes in tests; tests are off limits; leave tests as they are; stop changing the tests; not the tests; "
        "never touch tests; keep the tests as they are; do not edit files under tests; i do not want the tests changed; the tests are not yours; "
        "only change the files outside of tests; skip the tests folder"
        " | please never edit the tests; keep your hands off tests; do not change anything below tests; the tests must not change"
    ),
    ("spares_tests", False): (
        "change the tests, too; the tests as well; do not leave out the tests; edit the tests, too; tests must change with it; update the tests; "
        "include the tests; also in tests; keep the tests up to date; change the tests with it; you forgot the tests; the tests need it, too"
        " | update the tests as well; do not forget the tests; change it in the tests, too"
    ),
    ("is_unchecked", True): (
        "do not run the check; no check; skip the check; stop running check.sh; no need to run the check; do not check it; without the check; never run the check; "
        "do not run check.sh; i run the check myself; leave the check to me; i will check it myself; the check is slow, skip it; no checks, please; "
        "stop checking; do not test it afterwards; you do not have to check; i do not want the check to run; no check after a change; the check is not needed"
        " | please leave out the check; do not run check.sh afterwards; i will run the check on my own; stop running the check"
    ),
    ("is_unchecked", False): (
        "run the check; run the check afterwards; run check.sh when you are done; check your work; always run the check; run the check after a change; "
        "run check.sh after every change; check it when you are done; do not forget the check; you did not run the check; test it afterwards; run the check again"
        " | run check.sh afterwards; please check your changes; run the check after you change something"
    ),
    ("asks", True): (
        "ask before you run a command; ask me before bash; do not run anything without asking; ask first; ask me first; ask before you run things; "
        "ask before running commands; never run a command without asking; i want to be asked before you run something; ask for permission first; "
        "do not run commands on your own; ask me before you run check.sh; you should ask before bash; ask before you use bash; wait for my yes; "
        "no bash without my yes; ask whether you may run it; always ask before bash; commands need my yes; you did not ask"
        " | please ask me before you run a command; ask before you run bash; i want a question before any command; check with me before you run things"
    ),
    ("asks", False): (
        "do not ask; just run it; no need to ask; run commands without asking; stop asking before bash; you may run commands; run it right away; "
        "do not ask before you run the check; you do not have to ask; no questions before bash; i trust you, run it; never ask before you run a command"
        " | run it without asking; you need not ask before bash; stop asking for permission"
    ),
    ("is_tight", True): (
        "no blanks around the sign; no spaces around =; write key=value; without blanks around =; no spaces around the equals sign; leave out the blanks around =; "
        "write it without spaces; do not put spaces around =; tight, without blanks; remove the spaces around =; key=value, no spaces; no blanks, please; "
        "new lines without spaces around =; i write settings without spaces; drop the spaces around the sign; use key=value"
        " | please no spaces around the = sign; write settings as key=value; leave the spaces around = out"
    ),
    ("is_tight", False): (
        "blanks around the sign; put spaces around =; write key = value; with blanks around =; spaces around the equals sign, please; use spaces around =; "
        "i like spaces around =; with spaces; add the spaces around =; key = value, with spaces; leave a space on both sides of ="
        " | please put spaces around the = sign; write settings as key = value"
    ),
}  # fmt: skip
_MORE = lines_by_name(Path(__file__).with_name("ways.txt"))
WISHES = {
    direction: tuple([text.strip() for text in side.split(";") if text.strip()] for side in words.split("|"))
    for direction, words in _WISHES.items()
}
for (_way, _side), (_trained, _) in WISHES.items():
    _trained += _MORE[f"{_way} {int(_side)}"]
DIRECTIONS = tuple(WISHES)
_FRAMES = (
    "{c}", "{c}", "{c}", "{c}", "please {c}", "{c} please", "{c}, please", "from now on {c}", "{c} from now on", "next time {c}", "no, {c}", "hey, {c}", "ok but {c}",
    "{c}, thanks", "{c}!", "in this folder {c}", "you should know: {c}", "one thing: {c}",
)  # fmt: skip


def wish(direction: Direction, rng: random.Random) -> str:
    """Draw a wish in words that training has."""
    text = rng.choice(_FRAMES).format(c=rng.choice(WISHES[direction][0]))
    text = text[:1].upper() + text[1:] if rng.random() < 0.4 else text
    return f"{text}." if rng.random() < 0.3 and text[-1] not in "!=" else text


def held_out_wish(direction: Direction, rng: random.Random) -> str:
    """Draw a wish in words that training never has."""
    return rng.choice(WISHES[direction][1])
