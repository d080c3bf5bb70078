"""engine.pocket.world: the conversations of the training, and what is held out of them."""

import json
import random
import re
import subprocess
import sys
from dataclasses import replace

import pytest

from engine.pocket import world
from engine.pocket.scene import FULL, START, Mix, Scene
from engine.pocket.style import DEFAULT, PREFERENCES, Factual, observe, render
from engine.pocket.subjects import DOMAINS, HELD_OUT_SUBJECTS, SUBJECTS
from engine.pocket.talk import SKILLS
from engine.pocket.wishes import COMMANDS, HELD_OUT_NAMES, REMARKS
from engine.pocket.workshop import session
from engine.pocket.workshop.ways import WISHES
from engine.pocket.world import MAX_NOTES, WorldSample, WorldTurn, listing, sample_conversation
from engine.prompts.hindsight import WORDINGS, Hindsight

NUM_SAMPLES = 3000
NOTES = "Notes about this person"
FACT_NOTE = re.compile(r"- (my [\w ]+ is |i live in )\w+")  # a note that wishes for nothing
# Iris is a flower and a name: in a wish it is the name.
HELD_OUT_WORDS = re.compile(rf"(?i)\b({'|'.join(s.name for s in HELD_OUT_SUBJECTS if s.name != 'iris')})\b")


WAYS_TOLD = tuple(words.lower() for told, _ in WISHES.values() for words in told)


def is_strange(note: str) -> bool:
    """Return True for a wish about ways of working, which wishes for nothing in a chat."""
    return any(words in note.lower() for words in WAYS_TOLD)


def drawn(mix: Mix) -> list[WorldSample]:
    """Return a fixed sample of training conversations."""
    rng = random.Random(7)
    return [sample_conversation(rng, mix) for _ in range(NUM_SAMPLES)]


@pytest.fixture(scope="module", params=["start", "full"])
def any_samples(request: pytest.FixtureRequest) -> list[WorldSample]:
    """Conversations of either mix."""
    return drawn(START if request.param == "start" else FULL)


@pytest.fixture(scope="module")
def samples() -> list[WorldSample]:
    """Conversations of the full mix."""
    return drawn(FULL)


def said_by_people(samples: list[WorldSample]) -> list[str]:
    """Return every line of every user and system message, lowercase."""
    return [line.lower() for s in samples for t in s.turns if t.role != "assistant" for line in t.content.splitlines()]


def has_hindsight(content: str) -> bool:
    """Return True if a user message carries a hindsight block."""
    marks = [Hindsight("\0", wording=w).block().partition("\0")[0] for w in WORDINGS]
    return any(mark in content for mark in (*marks, "earlier answer like this", "Correct solution"))


def test_a_conversation_is_a_function_of_its_seed() -> None:
    """The same random source gives the same conversations, so training can be repeated."""
    assert [sample_conversation(random.Random(5)) for _ in range(50)] == [
        sample_conversation(random.Random(5)) for _ in range(50)
    ]


def is_at_work(sample: WorldSample) -> bool:
    """Return True for an agent's session."""
    return sample.turns[0].content.startswith(session.SYSTEM)


def test_conversations_have_the_form_of_a_chat(any_samples: list[WorldSample]) -> None:
    """A system message comes first, if any; then user and assistant take turns, and a target ends the conversation."""
    for sample in any_samples:
        if is_at_work(sample):
            continue
        roles = [t.role for t in sample.turns]
        talk = roles[1:] if roles[0] == "system" else roles
        assert talk == ["user", "assistant"] * (len(talk) // 2)
        assert all(t.content for t in sample.turns if t.role != "assistant")
        assert all(not (t.begun and t.content) for t in sample.turns[:-1])


def test_a_third_are_an_agents_sessions_once_the_model_can_read(samples: list[WorldSample]) -> None:
    """None is at the start. A wish about chats stands in some, and one about ways of working in some chats."""
    assert not any(is_at_work(sample) for sample in drawn(START))
    at_work = [sample for sample in samples if is_at_work(sample)]
    assert 0.30 < len(at_work) / NUM_SAMPLES < 0.36
    assert all(not turn.begun or not turn.content for sample in at_work for turn in sample.turns)
    notes = [(s, line) for s in samples for line in s.turns[0].content.partition(NOTES)[2].split("\n- ")[1:]]
    assert sum(is_strange(note) and not is_at_work(sample) for sample, note in notes) > 20
    assert sum(is_at_work(sample) and not is_strange(note) for sample, note in notes) > 10


def test_a_strange_wish_changes_nothing_in_a_chat() -> None:
    """Feedback about ways of working, and notes about them, leave every style as it is."""
    rng = random.Random(3)
    mix = replace(FULL, strange_share=1.0, apart_share=0.0)
    scenes = [Scene(rng, mix) for _ in range(200)]
    told = [world._hindsight(scene, Factual(SUBJECTS[0])) for scene in scenes]
    notes = [note for scene in scenes for note in world._notes(scene)]
    assert {scene.style for scene in scenes} == {DEFAULT}
    assert sum("edit_lines" in hindsight.feedback for hindsight, _ in told) > 5
    assert sum("edit_lines" in note for note in notes) > 20


def test_some_begin_in_a_style_that_is_wished_away() -> None:
    """The first answer is read and not learned; the second is about the same subject, in another style."""
    rng = random.Random(7)
    samples = [sample_conversation(rng) for _ in range(400)]
    # one exchange alone may be begun to its very end by its hint of an earlier answer
    chats = [s for s in samples if len(s.turns) > 2 and not is_at_work(s)]
    restored = [s for s in chats if s.turns[1].begun and not s.turns[1].content]
    assert 0.08 < len(restored) / len(samples) < 0.24
    assert all([t.role for t in sample.turns] == ["user", "assistant"] * 2 for sample in restored)
    changed = [s for s in restored if s.turns[1].begun != s.turns[3].begun + s.turns[3].content]
    assert len(changed) / len(restored) > 0.7  # the others ask for what they have


def test_held_out_phrasings_are_never_said(any_samples: list[WorldSample]) -> None:
    """No line of a user or system message is a held-out phrasing, alone or inside a longer wish."""
    held_out = [p for table in (COMMANDS, REMARKS) for _, phrases in table.values() for p in phrases]
    phrases = [re.escape(p).replace(r"\{x\}", r"\w+") for p in held_out]
    said = re.compile(rf"(?<!\w)(?:{'|'.join(phrases)})(?!\w)")
    assert [line for line in said_by_people(any_samples) if said.search(line)] == []


def test_held_out_names_are_never_used(any_samples: list[WorldSample]) -> None:
    """No message contains a held-out name."""
    names = re.compile(rf"(?i)\b({'|'.join(HELD_OUT_NAMES)})\b")
    assert [t for s in any_samples for t in s.turns if names.search(t.begun + t.content)] == []


def is_about_held_out(turn: WorldTurn) -> bool:
    """Return True if an answer is about a held-out subject."""
    return turn.role == "assistant" and HELD_OUT_WORDS.search(turn.begun + turn.content) is not None


def test_a_system_prompt_may_style_held_out_subjects(samples: list[WorldSample]) -> None:
    """Facts of held-out subjects are told in the default style and in others."""
    defaults = {render(Factual(s, lead), DEFAULT) for s in HELD_OUT_SUBJECTS for lead in range(4)}
    told = [t for s in samples for t in s.turns if is_about_held_out(t)]
    assert sum(t.content in defaults for t in told) > 100
    assert sum(t.content not in defaults for t in told) > 100


def test_training_starts_with_short_conversations() -> None:
    """At the start there are at most two exchanges and four notes, and shorter texts than later."""
    start, full = drawn(START), drawn(FULL)
    assert max(t.content.partition(NOTES)[2].count("\n- ") for s in start for t in s.turns) <= 4
    lengths = [sum(len(t.begun + t.content) for s in mix for t in s.turns) for mix in (start, full)]
    assert lengths[0] < lengths[1]


def test_held_out_subjects_are_never_taught(any_samples: list[WorldSample]) -> None:
    """An answer about one that is not its default answer follows no note that wishes for a style, and no hindsight."""
    defaults = {render(Factual(s, lead), DEFAULT) for s in HELD_OUT_SUBJECTS for lead in range(4)}
    for sample in any_samples:
        styled = [i for i, t in enumerate(sample.turns) if is_about_held_out(t) and t.content not in defaults]
        for i in styled:
            _, _, notes = sample.turns[0].content.partition(NOTES)
            assert all(FACT_NOTE.match(line) or is_strange(line) for line in notes.splitlines()[1:])
            assert not any(has_hindsight(t.content) for t in sample.turns[: i + 1])


def test_no_note_system_prompt_or_hindsight_names_a_held_out_subject(any_samples: list[WorldSample]) -> None:
    """Held-out subjects stand in plain questions only: not in notes, not in system prompts, not in hindsight."""
    for sample in any_samples:
        marked = [t.content for t in sample.turns if t.role == "system" or has_hindsight(t.content)]
        assert [text for text in marked if HELD_OUT_WORDS.search(text)] == []


def test_there_are_up_to_sixteen_notes_at_once(samples: list[WorldSample]) -> None:
    """Conversations with one note, with many, and with the promised sixteen occur; never more."""
    counts = {
        t.content.partition(NOTES)[2].count("\n- ")
        for s in samples
        for t in s.turns
        if t.role == "system" and NOTES in t.content
    }
    assert MAX_NOTES == 16
    assert {1, 4, 8, 16} <= counts
    assert max(counts) == MAX_NOTES


def test_every_wording_of_hindsight_is_trained(samples: list[WorldSample]) -> None:
    """The published wordings occur beside heed's own, so that other learning rules can be compared."""
    text = "\n".join(t.content for s in samples for t in s.turns if t.role == "user")
    for wording in WORDINGS:
        assert Hindsight("\0", wording=wording).block().partition("\0")[0] in text
    assert Hindsight(solution="\0").block().partition("\0")[0] in text


def test_every_preference_is_answered_on_both_sides(samples: list[WorldSample]) -> None:
    """Answers show both values of all twelve preferences."""
    answers = [t.content for s in samples[:800] for t in s.turns if t.role == "assistant"]
    seen = [observe(text) for text in answers]
    for preference, values in PREFERENCES.items():
        if preference != "name":
            assert {s[preference] for s in seen} >= {*values}, preference
    assert any(re.match(r"(Sure|Certainly), [A-Z]\w+[,:]", text) for text in answers)


def test_some_answers_are_begun_in_another_style(samples: list[WorldSample]) -> None:
    """A part of the targets goes on from an answer the model would not have begun, as a teacher has to."""
    begun = [s.turns[-1] for s in samples if s.turns[-1].begun]
    assert 0.02 < len(begun) / NUM_SAMPLES < 0.4


def test_the_list_has_the_promised_shape() -> None:
    """`listing` names domains with subjects, facts and questions, preferences, the default style and the skills."""
    listed = listing()
    assert listed.keys() == {"domains", "preferences", "default_style", "skills"}
    domains = listed["domains"]
    assert isinstance(domains, dict)
    assert domains.keys() == DOMAINS.keys()
    for domain in domains.values():
        assert domain.keys() == {"subjects", "ask"}
        assert all(s.keys() == {"name", "facts", "held_out"} for s in domain["subjects"])
        assert len(domain["ask"]) >= 12
        assert all("{subject}" in ask for ask in domain["ask"])
    assert sum(len(d["subjects"]) for d in domains.values()) == len(SUBJECTS) >= 60
    assert listed["skills"] == list(SKILLS)
    assert isinstance(listed["default_style"], dict)
    assert listed["default_style"].keys() == PREFERENCES.keys()


def test_the_command_prints_the_list_as_json() -> None:
    """`python -m engine.pocket.world --list` prints exactly `listing()`."""
    done = subprocess.run([sys.executable, "-m", "engine.pocket.world", "--list"], capture_output=True, check=True)
    assert json.loads(done.stdout) == listing()


def test_a_wrong_option_is_one_line_and_exit_code_two() -> None:
    """A wrong option prints the usage on standard error, and nothing on standard output."""
    done = subprocess.run([sys.executable, "-m", "engine.pocket.world", "--nope"], capture_output=True, check=False)
    assert done.returncode == 2
    assert done.stdout == b""
    assert done.stderr.count(b"\n") == 1


def test_facts_talk_and_skills_are_all_trained(samples: list[WorldSample]) -> None:
    """Targets with facts, with talk and with skills occur."""
    answers = [t.content for s in samples for t in s.turns if t.role == "assistant"]
    assert sum(text.isdigit() for text in answers) > 100
    assert sum("You're welcome" in text for text in answers) > 10
    assert sum(" kg" in text for text in answers) > 100
