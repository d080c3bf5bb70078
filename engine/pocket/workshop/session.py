"""Training conversations of the workshop: an agent's session, with wishes about its ways in each place they can stand.

Every step of the model is a target: a plan in other ways has the same steps up to the first that differs, so what
stands before a correction is what led to it.
"""

import random
from dataclasses import dataclass, field, replace

from engine.pocket.workshop import tasks
from engine.pocket.workshop.folder import TESTS
from engine.pocket.workshop.tasks import FORMS, SHOWN_BY, Task
from engine.pocket.workshop.ways import DEFAULT, DIRECTIONS, NAMES, Direction, Ways, wish
from engine.pocket.workshop.work import MAY_I, RUN_CHECK, YES, FolderWork, Step, called
from engine.prompts.hindsight import Hindsight, with_hindsight, with_notes
from engine.requests import ChatMessage

# As `bot.agent.state.SYSTEM` and `bot.agent.session.HERE` and LEFT_OUT have it, and the chat template the tools; tests hold them.
SYSTEM = (
    "You work on the files of one folder, with the tools you are given. Call exactly one tool at a time and read its "
    "result before you go on. Do not guess what a file holds. Say in a sentence what you did when you are done."
)
HERE = "The person has noted about this folder:"
TOOLS = (
    "Tools: read(path, offset, limit), write(path, content), edit(path, old, new, all), "
    "edit_lines(path, start, end, content), glob(pattern), grep(pattern, path), bash(command)"
)
LEFT_OUT = "(output left out: the conversation has grown too long)"
DIFFERENCE = "In this call of {tool}: {name} must be {new}, not {old}."
_WEIGHTS = dict.fromkeys(FORMS, 1.0) | {
    "change": 2.5, "set": 1.5, "add": 1.8, "rename": 2.0, "remove": 1.5, "everywhere": 2.0, "run": 1.3,
}  # fmt: skip
_COUNTS = (0.7, 0.16, 0.06, 0.03, 0.02, 0.015, 0.015)  # shares of sessions of one task, two, ...
_LONG = 3  # tasks, from which on a session may have outputs left out
_NUM_WISHES = (0.34, 0.18, 0.13, 0.11, 0.1, 0.14)  # shares of one wish, two, ...
_RARE = {"reads": 4.0, "spares_tests": 8.0, "by_lines": 3.0}  # ways that few tasks show are asked for more often there
_LATE = {
    "spares_tests": 60.0,
    "is_unchecked": 8.0,
}  # times as often, where the denied call lies behind a step that the wish would have left out
_SHARE_LATE = 0.15  # of sessions, drawn until they have such a denial: a single word of them tells what was meant
_NOTED = {"by_lines": 2.0, "asks": 1.5, "reads": 2.0}  # the same in notes
_CALL_END = "}\n</tool_call>"
_NO = ("no", "no, do not", "better not", "no, leave it", "not now")


@dataclass(frozen=True)
class Line:
    """One message of a session."""

    role: str
    content: str
    is_learned: bool = True  # if it is the model's


@dataclass(frozen=True)
class _Request:
    """A person's words about a task, the ways in which it is begun, and the call that they denied on the way."""

    text: str
    ways: Ways
    wanted: Ways  # from the denied call on
    hindsight: Hindsight = field(default_factory=Hindsight)
    num_done: int = 0  # steps before the denied call that are not learned
    note: str = ""  # that the wish has become

    @property
    def turn(self) -> tuple[int, Ways] | None:
        """The step before which the ways change, and the ways from there on; None if they do not change."""
        return (self.num_done, self.wanted) if self.num_done else None


def drawn(rng: random.Random, chat_note: str = "") -> list[Line]:
    """Draw a session of one task or more; `chat_note` is a wish about chats, which changes nothing here."""
    is_late = rng.random() < _SHARE_LATE
    lines, asked = _drawn(rng, chat_note)
    while is_late and asked.ways == asked.wanted:
        lines, asked = _drawn(rng, chat_note)
    return lines


def _drawn(rng: random.Random, chat_note: str) -> tuple[list[Line], _Request]:
    """Draw a session and how its last task was asked for."""
    here: list[str] = []
    ways, notes = DEFAULT, [chat_note] if chat_note else []
    kind = rng.random()
    directions = _directions(rng) if kind < 0.5 else []
    for direction in directions:
        ways = ways.with_side(direction)
        (here if kind < 0.08 else notes).extend(_noted_lines(direction, rng))
    exchanges: list[list[Line]] = []
    folder = None
    count = rng.choices(range(1, len(_COUNTS) + 1), _COUNTS)[0]
    for number in range(1, count + 1):
        task = tasks.drawn(_form(directions, rng), rng, folder=folder if rng.random() < 0.5 else None)
        is_told = number == count and kind > 0.2
        asked = _told(task, ways, rng, has_notes=bool(directions)) if is_told else _Request(task.text, ways, ways)
        may_run = bool(asked.num_done) or rng.random() < 0.75
        work = FolderWork(task.folder, asked.ways, may_run, asked.turn)
        task.do(work)
        exchanges.append(_written(asked, work, rng))
        notes += [asked.note] if asked.note else []
        folder = work.folder if any(work.folder.files.values()) else None
    if count >= _LONG and rng.random() < 0.5:
        exchanges = _shortened(exchanges, rng.randrange(1, count))
    return [Line("system", system(here, notes)), *(line for lines in exchanges for line in lines)], asked


def _shortened(exchanges: list[list[Line]], count: int) -> list[list[Line]]:
    """Leave out what the tools answered in the first `count` exchanges; what followed from it can not be learned."""
    before = [
        [replace(line, content=LEFT_OUT) if line.role == "tool" else replace(line, is_learned=False) for line in lines]
        for lines in exchanges[:count]
    ]
    return [*before, *exchanges[count:]]


def system(here: list[str], notes: list[str]) -> str:
    """Return a session's system message as the model reads it."""
    own = "\n".join([f"{SYSTEM}\n\n{HERE}", *(f"- {note}" for note in here)]) if here else SYSTEM
    message: ChatMessage = {"role": "system", "content": own}
    return f"{with_notes([message], notes)[0]['content']}\n\n{TOOLS}"


def _form(directions: list[Direction], rng: random.Random) -> str:
    """Draw a form of task, mostly one that shows a way that was wished for; files of tests are in one form alone."""
    is_read_first = ("reads", True) in directions and ("spares_tests", True) not in directions
    if directions and rng.random() < (0.7 if is_read_first else 0.2):
        return "everywhere"
    if directions and rng.random() < 0.6:
        return rng.choice(SHOWN_BY[rng.choice(directions)[0]])
    return rng.choices(FORMS, [_WEIGHTS[form] for form in FORMS])[0]


def _directions(rng: random.Random) -> list[Direction]:
    """Draw one to six different ways with a side each, mostly not the default."""
    count = rng.choices(range(1, len(NAMES) + 1), _NUM_WISHES)[0]
    ways = sorted(NAMES, key=lambda way: rng.random() ** (1 / _NOTED.get(way, 1.0)), reverse=True)
    return [(way, rng.random() < 0.85) for way in rng.sample(ways[:count], count)]


def _noted_lines(direction: Direction, rng: random.Random) -> list[str]:
    """Draw the notes of a wish: its own, sometimes behind one of the opposite, which it takes the place of."""
    way, side = direction
    before = [_noted((way, not side), rng)] if rng.random() < 0.08 else []
    return [*before, _noted(direction, rng)]


def _noted(direction: Direction, rng: random.Random) -> str:
    """Draw what a note says that holds a wish: mostly the words, sometimes those of an edit of another task's call."""
    if direction[0] == "is_tight" and rng.random() < 0.25:
        task = tasks.drawn(rng.choice(SHOWN_BY["is_tight"]), rng)
        before = DEFAULT.with_side(("is_tight", not direction[1]))
        wanted = before.with_side(direction)
        if text := _difference(first_that_differs(task, before, wanted), wanted, task):
            return text
    return wish(direction, rng)


def _told(task: Task, ways: Ways, rng: random.Random, *, has_notes: bool) -> _Request:
    """Draw what the person says of the task, with a wish in it or behind it: mostly behind it if there are notes."""
    kind = rng.random()
    if kind < (0.12 if has_notes else 0.25):
        return _Request(task.text, ways, ways)
    direction = _asked(task, ways, rng)
    wanted, said = ways.with_side(direction), wish(direction, rng)
    if kind < (0.2 if has_notes else 0.42):
        end = "" if task.text[-1] in ".?" else "."
        return _Request(f"{task.text}{end} {_capital(said)}", wanted, wanted)
    denied, place = behind_a_step(task, ways, direction) if rng.random() < 0.8 else (None, 0)
    denied = denied or first_that_differs(task, ways, wanted)
    text = (_difference(denied, wanted, task) if rng.random() < 0.5 else "") or said
    note = text if rng.random() < 0.45 else ""
    is_bare = denied is None or not denied.answer or rng.random() < (0.8 if note else 0.2)
    hindsight = Hindsight(text, context=() if is_bare else context_of(denied))
    num_done = place or (_behind_a_yes(task, wanted) if rng.random() < 0.3 else 0)
    return _Request(task.text, ways if place else wanted, wanted, hindsight, num_done, note)


def behind_a_step(task: Task, ways: Ways, direction: Direction) -> tuple[Step | None, int]:
    """Return the call that is denied, and its place, where a step led to it that the wish would have left out, too.

    A file of the tests was read before it is changed, the check was asked about and allowed. Else None, 0.
    """
    first = first_place(task, ways, ways.with_side(direction))
    for place, step in enumerate(_steps(task, ways)):
        if first is not None and place > first and _is_against(step, direction):
            return step, place
    return None, 0


def _behind_a_yes(task: Task, ways: Ways) -> int:
    """Return the place behind the question whether the check may be run, 0 if there is none.

    A person has said yes there before they say what they wish.
    """
    return next((place for place, step in enumerate(_steps(task, ways), 1) if step.said == MAY_I), 0)


def _is_against(step: Step, direction: Direction) -> bool:
    """Return True for a call that a wish forbids."""
    match direction:
        case ("spares_tests", True):
            return f'"path": "{TESTS}' in step.said and '"name": "read"' not in step.said
        case ("is_unchecked", True):
            return step.said == called("bash", {"command": RUN_CHECK})
        case _:
            return False


def _asked(task: Task, ways: Ways, rng: random.Random) -> Direction:
    """Draw a change of the ways, mostly one that this task shows."""
    changes = [(name, not getattr(ways, name)) for name in NAMES]
    telling = [change for change in changes if first_that_differs(task, ways, ways.with_side(change)) is not None]
    drawn_from = telling if telling and rng.random() < 0.85 else changes
    if rng.random() < 0.05:
        return rng.choice(DIRECTIONS)
    late = [_LATE[change[0]] if behind_a_step(task, ways, change)[1] else 1.0 for change in drawn_from]
    weights = [_RARE.get(way, 1.0) * times for (way, _), times in zip(drawn_from, late, strict=True)]
    return rng.choices(drawn_from, weights)[0]


def first_that_differs(task: Task, ways: Ways, wanted: Ways) -> Step | None:
    """Return the first step of the task that another way of doing it changes, None if there is none."""
    place = first_place(task, ways, wanted)
    return None if place is None else _steps(task, ways)[place]


def first_place(task: Task, ways: Ways, wanted: Ways) -> int | None:
    """Return the place of the first step that another way of doing a task changes, None if there is none."""
    pairs = enumerate(zip(_steps(task, ways), _steps(task, wanted), strict=False))
    return next((place for place, (one, other) in pairs if one != other), None)


def _steps(task: Task, ways: Ways) -> list[Step]:
    work = FolderWork(task.folder, ways)
    task.do(work)
    return work.steps


def _difference(denied: Step | None, wanted: Ways, task: Task) -> str:
    """Return what a person's other arguments say, where the wish is about how a line is written."""
    loose, tight = task.setting.line(), task.setting.line(is_tight=True)
    old, new = (loose, tight) if wanted.is_tight else (tight, loose)
    if denied is None or f'"{old}' not in denied.said:
        return ""
    tool = denied.said.split('"')[3]
    name, end = ("new", "") if tool == "edit" else ("content", "\\n" if tool == "write" else "")
    return DIFFERENCE.format(tool=tool, name=name, new=f'"{new}{end}"', old=f'"{old}{end}"')


def context_of(denied: Step | None) -> tuple[str, ...]:
    """Return what the teacher is told besides: the call that was denied, as `bot.agent.session` words it."""
    if denied is None or not denied.answer:
        return ()
    name, _, arguments = denied.said.removeprefix('<tool_call>\n{"name": "').partition('", "arguments": ')
    return (f"The call was {name} {arguments.removesuffix(_CALL_END)}.",)


def _written(asked: _Request, work: FolderWork, rng: random.Random) -> list[Line]:
    """Write an exchange; hindsight stands behind what the person said last before the denied call."""
    lines = [Line("user", asked.text)]
    last = 0  # line of the person, before the denied call
    for place, step in enumerate(work.steps):
        is_learned = place >= asked.num_done
        lines.append(Line("assistant", step.said, is_learned))
        if step.answer:
            lines.append(Line("tool", step.answer))
        elif step.said == MAY_I:
            lines.append(Line("user", rng.choice(YES if work.may_run else _NO)))
            last = last if is_learned else len(lines) - 1
    messages: list[ChatMessage] = [{"role": "user", "content": lines[last].content}]
    lines[last] = replace(lines[last], content=with_hindsight(messages, asked.hindsight)[0]["content"])
    return lines


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
