"""engine.learning.import_trial: adapters that answer garbage, and others, with the real vLLM."""

import json
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load, save

from engine.adapter_ref import TENSORS_FILE
from engine.adapters.zip_format import FORMAT, MANIFEST_FILE
from engine.errors import AdapterRefused
from storage.kinds import VersionState
from tests import adapter_zips
from tests.engine.live import Live

pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="session")]


def garbage(content: bytes, size: float) -> bytes:
    """An adapter in which every value is +size or -size: finite, and of a possible norm."""
    files, rng = adapter_zips.contents(content), np.random.default_rng(0)
    known: dict[str, Any] = json.loads(files.pop(MANIFEST_FILE))
    tensors = {name: (rng.choice([-size, size], t.shape)).astype("f4") for name, t in load(files[TENSORS_FILE]).items()}
    files = {name: data for name, data in files.items() if name.endswith(("json", "safetensors"))}
    return adapter_zips.vouched(files | {TENSORS_FILE: save(tensors)}, format=FORMAT, base_model=known["base_model"])


@pytest.mark.parametrize("size", [5.0, 1.0])
async def test_finite_garbage_is_refused(live: Live, size: float) -> None:
    """The version before goes on answering, nothing is left on disk, and the log says why."""
    user_id, outcome = await live.pupil("use lowercase")
    package = await live.engine.check_adapter(
        garbage(await live.engine.export_adapter(user_id, outcome.adapter_version), size)
    )
    with pytest.raises(AdapterRefused, match="make no sense"):
        await live.engine.import_adapter(user_id, package)
    user = await live.user(user_id)
    assert user.active_version == outcome.adapter_version
    assert (await live.version(user_id, user.last_version)).state == VersionState.REJECTED
    assert not live.folder(user_id, user.last_version).exists()
    assert (await live.updates(user_id, 1))[0].status == "failed"


@pytest.mark.parametrize("wish", ["use lowercase", "no emoji please"])
async def test_a_persons_style_is_taken(live: Live, wish: str) -> None:
    """What a lesson has made passes with distance."""
    user_id, outcome = await live.pupil(wish)
    package = await live.engine.check_adapter(await live.engine.export_adapter(user_id, outcome.adapter_version))
    assert await live.engine.import_adapter(await live.person(), package) == 1
