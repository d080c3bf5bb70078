"""The pocket model's bank of neutral prompts (`engine.prompts.bank`), written beside its weights.

Topics are questions about trained subjects and a little small talk; anchors are exercises of three skills. The skills
`opposite` and `bigger` never appear, so that the effect of learning on unprotected skills can be seen. Held-out
subjects never appear either. Frames ask about personal facts in some of the world's words, and things are what the
facts are about, and as much again that the world never tells of: what was not told has to stay unknown. Tasks are the
workshop's.
"""

import json
import random
from pathlib import Path

from engine.pocket.exchanges import ask_text
from engine.pocket.subjects import SUBJECTS
from engine.pocket.talk import SMALL_TALK, exercise, personal_fact, unknown_ask
from engine.pocket.workshop import begun
from engine.prompts.bank import FILE_NAME
from storage.files.atomic import write_file

ANCHORED_SKILLS = ("add", "repeat", "next")
FRAMES = (
    "what is my {x} called?",
    "do you know the name of my {x}?",
    "what is my favourite {x}?",
    "which {x} do i like best?",
    "where do i {x}?",
    "what do you call my {x}?",
    "tell me the name of my {x}",
    "the name of my {x}, please",
    "tell me my {x}'s name",
    "do you remember my {x}'s name?",
    "remind me what my {x} is",
    "tell me the {x} that i prefer",
    "do you know which {x} i like?",
    "which {x} is my favourite?",
    "what place do i {x} in?",
    "in which town do i {x}?",
    "tell me which city i {x} in",
    "do you know where i {x}?",
)
THINGS = tuple(
    "dog cat bird horse car boat brother boss son friend rabbit robot school lamp bike street teacher doctor sister "
    "mother aunt cousin turtle donkey river plant guitar phone bag hat doll bear band train baby duck sheep parrot snake "
    "coach nurse wife husband daughter cook tailor driver painter farmer singer captain baker clerk lawyer judge king "
    "queen knight mouse hen pig lion wolf fox deer frog whale shark eagle owl crow bee ant spider snail camel monkey "
    "panda truck van ship plane tram ferry wagon scooter tent cabin house flat office shop garage kitchen desk chair "
    "table shelf clock watch ring coat shirt shoe scarf glove belt cup bowl spoon knife plate kettle oven radio camera "
    "piano drum flute trumpet ball kite puzzle diary novel poem song film game club choir class course project island "
    "lake hill forest valley bridge tower museum market cafe bar gym pool hotel city town country village work "
    "food drink sport season number animal flower".split()
)


def topics(rng: random.Random) -> list[str]:
    """Draw one question about every trained subject, and a few of the other kinds."""
    about = [ask_text(s, rng.randrange(4), rng) for s in SUBJECTS if not s.is_held_out]
    talk = [rng.choice(asks) for _, asks, _ in SMALL_TALK]
    return [*about, *talk[:4], personal_fact(rng).asks[0], unknown_ask(rng)]


def anchors(rng: random.Random, count: int = 48) -> list[str]:
    """Draw exercises with one right answer."""
    return sorted({exercise(ANCHORED_SKILLS[i % len(ANCHORED_SKILLS)], rng)[0] for i in range(count)})


def write_bank(folder: Path, seed: int) -> None:
    """Write the bank into a model folder."""
    rng = random.Random(seed)
    bank = {
        "topics": topics(rng), "anchors": anchors(rng), "frames": list(FRAMES), "things": list(THINGS),
        "tasks": begun.drawn(rng), "task_tools": list(begun.TOOLS),
    }  # fmt: skip
    write_file(folder / FILE_NAME, (json.dumps(bank, ensure_ascii=False, indent=1) + "\n").encode())
