"""A report on how well the pocket model follows feedback in its context: `python -m engine.pocket.report [FOLDER]`.

Speaks held-out phrasings, held-out names and held-out subjects only. Prints one row per way of telling (next turn,
system prompt, hindsight, standing note among others) with the share of greedy answers in which the wished preference
holds, in which every preference is as it should be, and which still carry the facts.
"""

import argparse
import random
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from engine.pocket import WEIGHTS
from engine.pocket.exchanges import ask_text
from engine.pocket.style import (
    DEFAULT,
    DIRECTIONS,
    PREFERENCES,
    Direction,
    Factual,
    Style,
    has_facts,
    observe,
    render,
)
from engine.pocket.subjects import SUBJECTS
from engine.pocket.talk import SKILLS, exercise
from engine.pocket.wishes import HELD_OUT_NAMES, NAMES, apply, held_out_wish, wish
from engine.prompts.hindsight import Hindsight, with_hindsight, with_notes
from engine.requests import ChatMessage

_HELD_OUT = [s for s in SUBJECTS if s.is_held_out]
_BATCH = 32


@dataclass(frozen=True)
class Case:
    """One conversation and the requirement on its answer."""

    messages: list[ChatMessage]
    content: Factual
    style: Style
    direction: Direction
    name: str


def _question(rng: random.Random) -> tuple[str, Factual]:
    content = Factual(rng.choice(_HELD_OUT), rng.randrange(4))
    return ask_text(content.subject, content.lead, rng), content


def _start(direction: Direction) -> Style:
    """Return the style before the wish; a wish for the default starts from the other side."""
    preference, side = direction
    if side == 1:
        return DEFAULT
    value = PREFERENCES[preference][1]
    return DEFAULT.with_value(preference, "Ana" if value == "*" else value)


def _base(direction: Direction, rng: random.Random) -> list[ChatMessage]:
    """Return a system prompt that asks for the starting style."""
    if direction[1] == 1:
        return []
    return with_notes([], [wish([(direction[0], 1)], "Ana", rng)])


def next_turn(direction: Direction, rng: random.Random) -> Case:
    """Build a case of question, answer and wish, in which the answer is given again."""
    name = rng.choice(HELD_OUT_NAMES)
    asked, content = _question(rng)
    start = _start(direction)
    said = held_out_wish(direction, name, rng)
    messages = [
        *_base(direction, rng),
        {"role": "user", "content": asked},
        {"role": "assistant", "content": render(content, start)},
        {"role": "user", "content": said},
    ]
    return Case(messages, content, apply(start, [direction], name), direction, name)


def system_prompt(direction: Direction, rng: random.Random) -> Case:
    """Build a case with the wish in the system prompt."""
    name = rng.choice(HELD_OUT_NAMES)
    asked, content = _question(rng)
    said = held_out_wish(direction, name, rng)
    messages = [
        {"role": "system", "content": f"You are a helpful assistant. {said}."},
        {"role": "user", "content": asked},
    ]
    return Case(messages, content, apply(DEFAULT, [direction], name), direction, name)


def hindsight(direction: Direction, rng: random.Random, wording: str = "heed") -> Case:
    """Build a case with the wish in a hindsight block."""
    name = rng.choice(HELD_OUT_NAMES)
    asked, content = _question(rng)
    start = _start(direction)
    block = Hindsight(held_out_wish(direction, name, rng), wording=wording)
    messages = with_hindsight([*_base(direction, rng), {"role": "user", "content": asked}], block)
    return Case(messages, content, apply(start, [direction], name), direction, name)


def note(direction: Direction, rng: random.Random, others: int = 0) -> Case:
    """Build a case with the wish as the newest of `others` + 1 standing notes."""
    name = rng.choice(HELD_OUT_NAMES)
    asked, content = _question(rng)
    style, notes = _start(direction), []
    if direction[1] == 0:
        notes.append(wish([(direction[0], 1)], "Ana", rng))
    while len(notes) < others:
        preference = rng.choice([p for p in PREFERENCES if p != direction[0]])
        other: Direction = (preference, rng.choice((0, 1)))
        other_name = rng.choice(NAMES)
        notes.append(wish([other], other_name, rng))
        style = apply(style, [other], other_name)
    notes.append(held_out_wish(direction, name, rng))
    style = apply(style, [direction], name)
    messages = with_notes([{"role": "user", "content": asked}], notes)
    return Case(messages, content, style, direction, name if direction[0] == "name" else style.name or name)


WAYS: dict[str, Callable[[Direction, random.Random], Case]] = {
    "next turn": next_turn,
    "system prompt": system_prompt,
    "hindsight": hindsight,
    "hindsight (sdpo)": lambda d, r: hindsight(d, r, "sdpo"),
    "hindsight (claas)": lambda d, r: hindsight(d, r, "claas"),
    "hindsight (user interactions)": lambda d, r: hindsight(d, r, "user_interactions"),
    "note": note,
    "4 notes": lambda d, r: note(d, r, 3),
    "8 notes": lambda d, r: note(d, r, 7),
    "16 notes": lambda d, r: note(d, r, 15),
}


class Pocket:
    """The model and its tokenizer, for greedy answers in batches."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self.tokenizer: Any = AutoTokenizer.from_pretrained(folder, padding_side="left")
        self.model: Any = AutoModelForCausalLM.from_pretrained(folder).eval()

    def answer(self, conversations: list[list[ChatMessage]]) -> list[str]:
        """Return one greedy answer for each conversation."""
        with torch.inference_mode():
            return self._answer(conversations)

    def _answer(self, conversations: list[list[ChatMessage]]) -> list[str]:
        texts: list[str] = []
        for i in range(0, len(conversations), _BATCH):
            prompts = [
                self.tokenizer.apply_chat_template(c, tokenize=False, add_generation_prompt=True)
                for c in conversations[i : i + _BATCH]
            ]
            inputs = self.tokenizer(prompts, return_tensors="pt", padding=True, add_special_tokens=False)
            inputs.pop("token_type_ids", None)
            out = self.model.generate(**inputs, max_new_tokens=80, do_sample=False)
            texts += self.tokenizer.batch_decode(out[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
        return texts


def judge(case: Case, text: str) -> tuple[bool, bool, bool]:
    """Return whether the wished preference holds, whether all preferences do, and whether the facts are there."""
    seen = observe(text, case.name)
    wanted = {p: getattr(case.style, p) for p in PREFERENCES}
    is_exact = all(seen[p] is None or seen[p] == wanted[p] for p in PREFERENCES)
    preference = case.direction[0]
    return seen[preference] == wanted[preference], is_exact, has_facts(text, case.content, case.style)


def skill_accuracy(pocket: Pocket, count: int, seed: int) -> dict[str, float]:
    """Return the share of right answers per skill."""
    rng = random.Random(seed)
    found = {}
    for skill in SKILLS:
        exercises = [exercise(skill, rng) for _ in range(count)]
        texts = pocket.answer([[{"role": "user", "content": asked}] for asked, _ in exercises])
        right = [t == render(content) for t, (_, content) in zip(texts, exercises, strict=True)]
        found[skill] = sum(right) / count
    return found


def main(arguments: list[str]) -> int:
    """Run the command line and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m engine.pocket.report", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=WEIGHTS)
    parser.add_argument("--count", type=int, default=8, help="cases per direction and way")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=0, help="print this many failures per way")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    pocket = Pocket(options.folder)
    say = sys.stdout.write
    for way, make in WAYS.items():
        rng = random.Random(options.seed)
        cases = [make(d, rng) for d in DIRECTIONS for _ in range(options.count)]
        texts = pocket.answer([c.messages for c in cases])
        results = [judge(c, t) for c, t in zip(cases, texts, strict=True)]
        rates = [sum(r[i] for r in results) / len(results) for i in range(3)]
        by_direction: dict[Direction, list[bool]] = defaultdict(list)
        for case, result in zip(cases, results, strict=True):
            by_direction[case.direction].append(result[0])
        worst = sorted((sum(v) / len(v), d) for d, v in by_direction.items())[:3]
        say(f"{way:30}  holds {rates[0]:.3f}  all {rates[1]:.3f}  facts {rates[2]:.3f}  worst {worst}\n")
        failures = [(c, t) for c, t, r in zip(cases, texts, results, strict=True) if not (r[0] and r[2])]
        for case, text in failures[: options.show]:
            say(f"   {case.direction} {case.messages[-1]['content']!r} -> {text!r}\n")
    say(f"skills {skill_accuracy(pocket, 40, options.seed)}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
