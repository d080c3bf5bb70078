"""engine.cluster.cluster: what a gateway gets, and what is said where Ray is not installed."""

import os
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

from engine.cluster import SECRET_SETTING, cluster
from engine.cluster.engines_here import EnginesHere
from engine.config import EngineConfig
from engine.errors import ClusterNotInstalled
from storage.database import Database
from tests.patience import PATIENCE_S


def test_a_gateway_gets_an_engine_and_a_secret_for_its_processes() -> None:
    """Ray is told before it is imported."""
    made = cluster.engine_with_engines_here(
        EngineConfig("m", Path()), cast(Database, None), database_url="postgresql://x/y", num_engines=2
    )
    assert isinstance(made, EnginesHere)
    assert len(os.environ[SECRET_SETTING]) >= 32
    assert os.environ["RAY_AUTH_MODE"] == "token"


def test_a_secret_that_was_given_is_left_alone() -> None:
    """An operator may hand it to further processes."""
    code = f"import os; import engine.cluster; print(os.environ['{SECRET_SETTING}'])"
    environment = {**os.environ, SECRET_SETTING: "given"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    assert done.stdout == "given\n"


def test_without_ray_a_cluster_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """A heed on one machine never comes here."""
    monkeypatch.setitem(sys.modules, "engine.cluster.ray_engines", None)
    monkeypatch.delattr(sys.modules["engine.cluster"], "ray_engines", raising=False)
    with pytest.raises(ClusterNotInstalled, match=r"requirements/cluster\.txt"):
        cluster.engine_with_engines_here(
            EngineConfig("m", Path()), cast(Database, None), database_url="postgresql://x/y", num_engines=2
        )


def test_a_heed_on_one_machine_imports_no_ray() -> None:
    """Nor does the command line."""
    code = "import sys, bot.cli.main, engine.engine; print('ray' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    assert done.stdout == "False\n"
