"""The forms of tasks: how people word each, and how it is done in a given way.

Wordings after the bar are held out of training; `tasks.txt` has many more that are not (a form, a tab, the words).
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from engine.pocket.listed import lines_by_name
from engine.pocket.workshop import folder as folders
from engine.pocket.workshop import names
from engine.pocket.workshop.folder import CHECK, TESTS, FileLine, Folder
from engine.pocket.workshop.work import FolderWork

_WORDS = {
    "say": "what is {k} in {f}?; what is the {k} in {f}?; tell me the {k} in {f}; which {k} does {f} have?; what is {k} set to in {f}?; look up {k} in {f}; "
    "how is {k} set in {f}?; i need the {k} of {f}; give me {k} from {f}; what does {f} say about {k}? | which value has {k} in {f}?; find the {k} in {f}; what {k} is set in {f}?",
    "change": "change {k} from {o} to {v} in {f}; in {f} change {k} from {o} to {v}; {k} is {o} in {f}, make it {v}; replace {k} = {o} by {k} = {v} in {f}; "
    "in {f} {k} must go from {o} to {v}; turn {k} from {o} into {v} in {f}; {f} has {k} = {o}, it should be {v} | {k} in {f} should be {v} rather than {o}; update {k} in {f} from {o} to {v}",
    "set": "set {k} to {v} in {f}; in {f} set {k} to {v}; make {k} {v} in {f}; change {k} in {f} to {v}; {k} in {f} should be {v}; put {k} at {v} in {f}; "
    "i want {k} to be {v} in {f}; give {k} the value {v} in {f}; {f} needs {k} = {v} | {k} must be {v} in {f}; adjust {k} in {f} to {v}; let {k} be {v} in {f}",
    "add": "add {k} = {v} to {f}; add a line {k} = {v} to {f}; append {k} = {v} to {f}; put {k} = {v} at the end of {f}; {f} needs a new line {k} = {v}; write {k} = {v} at the end of {f}; "
    "add the line {k} = {v} at the end of {f} | extend {f} by {k} = {v}; add a new setting {k} = {v} to {f}; put a line {k} = {v} into {f}",
    "rename": "rename {k} to {k2} in {f}; in {f} rename {k} to {k2}; call {k} {k2} in {f}; {k} should be called {k2} in {f}; give {k} the name {k2} in {f}; change the name of {k} to {k2} in {f} "
    "| the key {k} in {f} should be {k2}; rename the key {k} in {f} to {k2}",
    "remove": "remove {k} from {f}; delete {k} from {f}; take {k} out of {f}; drop {k} from {f}; delete the line {k} in {f}; {f} needs no {k}; get rid of {k} in {f}; remove the line with {k} from {f} "
    "| erase {k} in {f}; throw {k} out of {f}; we need no {k} in {f}",
    "fix": "the check fails, fix it; fix the check; make the check pass; check.sh fails, fix it; the check is broken; repair what the check complains about; fix what makes check.sh fail; get the check to pass; "
    "the check does not pass, please fix it | make check.sh pass; something is wrong with the check, fix it; find out why the check fails and fix it",
    "hold": "what is in {f}?; what does {f} hold?; what does {f} contain?; list the settings in {f}; which settings are in {f}?; show me {f}; which keys does {f} have?; what stands in {f}? "
    "| tell me what is in {f}; what settings does {f} have?; what can be set in {f}?",
    "where": "which file has {k}?; where is {k} set?; where is {k}?; find {k}; in which file is {k}?; where do i find {k}?; look for {k}; which file sets {k}? | where can i set {k}?; in which file do i find {k}?; locate {k}",
    "list": "which files are there?; list the files; what files do we have?; show me the files; what is in this folder?; which files do you see? | name the files; list all files here; what files are here?",
    "new": "make a file {f} with {k} = {v}; write a new file {f} with {k} = {v}; create {f} with {k} = {v}; new file {f} with the line {k} = {v}; we need a file {f} with {k} = {v}; put {k} = {v} into a new file {f} "
    "| add a file {f} that has {k} = {v}; create a file {f} that holds {k} = {v}",
    "everywhere": "set {k} to {v} everywhere; change {k} to {v} in all files; {k} should be {v} in every file; make {k} {v} everywhere; set {k} to {v} in all files; everywhere {k} must be {v} "
    "| {k} has to be {v} everywhere; put {k} at {v} in all files",
    "run": "run the check; run check.sh; does the check pass?; is the check ok?; try the check; start the check; see if the check passes | execute the check; does check.sh pass?",
}  # fmt: skip
WORDS = {
    form: tuple([text.strip() for text in side.split(";") if text.strip()] for side in words.split("|"))
    for form, words in _WORDS.items()
}
_MORE = lines_by_name(Path(__file__).with_name("tasks.txt"))
for _form, (_trained, _) in WORDS.items():
    _trained += _MORE[_form]
FORMS = tuple(WORDS)
SHOWN_BY: dict[str, tuple[str, ...]] = {  # the forms of tasks that show a way
    "reads": ("change",),
    "by_lines": ("change", "set", "rename"),
    "spares_tests": ("everywhere",),
    "is_unchecked": ("change", "set", "add", "new"),
    "asks": ("run", "change", "set"),
    "is_tight": ("change", "set", "add", "new"),
}


@dataclass(frozen=True)
class Task:
    """One task in a folder."""

    form: str
    text: str
    folder: Folder
    file: str
    setting: FileLine  # the key it is about, and the new value
    other: str = ""  # a new name
    listing: tuple[str, ...] = ()  # the files at the top, in the order in which the tool lists them: newest first

    def do(self, work: FolderWork) -> None:
        """Do it, the words at its end included."""
        _HOW[self.form](self, work)


def drawn(form: str, rng: random.Random, *, is_held_out: bool = False, folder: Folder | None = None) -> Task:
    """Draw a task of a form, in a folder of its own or in one that is there."""
    given = folder or folders.drawn(rng, is_held_out=is_held_out)
    file = rng.choice([name for name, lines in given.files.items() if lines and not name.startswith(TESTS)])
    key = rng.choice(given.keys(file))
    another = partial(names.another, rng=rng, is_held_out=is_held_out)
    fresh = another(names.key, {key for name in given.files for key in given.keys(name)})
    old = given.value(file, key)
    new = another(names.value, {old})
    if form == "new":
        stem = another(names.stem, {name.split(".")[0] for name in given.files})
        file = f"{stem}.{rng.choice(names.SUFFIXES)}"
    if form in ("new", "add"):
        key = fresh
    if form in ("fix", "run") and (form == "fix" or rng.random() < 0.5):
        given = Folder(given.files, (file, FileLine(key, new)))
    if form == "everywhere" and TESTS + file not in given.files:
        given = given.with_lines(TESTS + file, (FileLine(key, old).line(),))
    text = _typed(rng.choice(WORDS[form][is_held_out]), rng).format(k=key, k2=fresh, o=old, v=new, f=file)
    there = [*(name for name in given.files if "/" not in name), CHECK]
    return Task(form, text, given, file, FileLine(key, new), fresh, tuple(rng.sample(there, len(there))))


def _typed(words: str, rng: random.Random) -> str:
    """Write the words of a task as people type them."""
    if words[-1] == "?":
        return words[:1].upper() + words[1:] if rng.random() < 0.6 else words
    words = rng.choice(("please {}", "{}, please", "now {}")).replace("{}", words) if rng.random() < 0.12 else words
    words = words[:1].upper() + words[1:] if rng.random() < 0.6 else words
    return f"{words}." if rng.random() < 0.4 else words


def listed(things: list[str]) -> str:
    """Return things as a list in words."""
    return things[0] if len(things) == 1 else f"{', '.join(things[:-1])} and {things[-1]}"


def _say(task: Task, work: FolderWork) -> None:
    work.read(task.file)
    work.say(f"{task.setting.key} is {work.folder.value(task.file, task.setting.key)} in {task.file}.")


def _change(task: Task, work: FolderWork) -> None:
    work.change(task.file, task.setting.key, task.setting)
    work.settle()
    work.say(f"I have set {task.setting.key} to {task.setting.value} in {task.file}.")


def _set(task: Task, work: FolderWork) -> None:
    work.read(task.file)
    _change(task, work)


def _add(task: Task, work: FolderWork) -> None:
    work.add(task.file, task.setting)
    work.settle()
    work.say(f"I have added {task.setting.key} to {task.file}.")


def _rename(task: Task, work: FolderWork) -> None:
    work.read(task.file)
    work.change(task.file, task.setting.key, FileLine(task.other, work.folder.value(task.file, task.setting.key)))
    work.settle()
    work.say(f"I have renamed {task.setting.key} to {task.other} in {task.file}.")


def _remove(task: Task, work: FolderWork) -> None:
    work.read(task.file)
    work.change(task.file, task.setting.key, None)
    work.settle()
    work.say(f"I have removed {task.setting.key} from {task.file}.")


def _fix(task: Task, work: FolderWork) -> None:
    if not work.check():
        return work.say("Then I can not see what is wrong.")
    work.read(task.file)
    work.change(task.file, task.setting.key, task.setting)
    work.settle()
    return work.say(f"I have set {task.setting.key} to {task.setting.value} in {task.file}.")


def _hold(task: Task, work: FolderWork) -> None:
    work.read(task.file)
    work.say(f"{task.file} has {listed(work.folder.keys(task.file))}.")


def _where(task: Task, work: FolderWork) -> None:
    found = work.grep(task.setting.key)
    work.say(f"{task.setting.key} is in {listed(found)}.")


def _list(task: Task, work: FolderWork) -> None:
    there = list(task.listing)
    work.glob(there)
    work.say(f"There are {listed(there)}.")


def _new(task: Task, work: FolderWork) -> None:
    work.make(task.file, task.setting)
    work.settle()
    work.say(f"I have made {task.file}.")


def _everywhere(task: Task, work: FolderWork) -> None:
    found = work.grep(task.setting.key)
    for name in found:
        if not work.leaves(name):
            work.change(name, task.setting.key, task.setting)
    changed = [name for name in found if not work.leaves(name)]
    work.settle()
    work.say(f"I have set {task.setting.key} to {task.setting.value} in {listed(changed)}.")


def _run(task: Task, work: FolderWork) -> None:
    if not work.check():
        return work.say("Then I leave it.")
    return work.say("The check passes." if work.folder.is_right else f"The check fails: {work.folder.complaint}.")


_HOW: dict[str, Callable[[Task, FolderWork], None]] = {
    "say": _say, "change": _change, "set": _set, "add": _add, "rename": _rename, "remove": _remove, "fix": _fix,
    "hold": _hold, "where": _where, "list": _list, "new": _new, "everywhere": _everywhere, "run": _run,
}  # fmt: skip
