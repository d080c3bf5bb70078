"""The files that run and watch heed: the systemd unit, the dashboard, and what the guides say of both."""

import configparser
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from bot.config import ChatSettings, unknown_variables
from bot.http.port import WANTED_FILES
from bot.monitoring.metrics import Metrics
from tests.bot.conftest import Heed

ROOT = Path(__file__).resolve().parents[2]
UNIT = ROOT / "deploy" / "heed.service"
DASHBOARD = ROOT / "deploy" / "grafana.json"
GUIDES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "SECURITY.md", ROOT / "README.md"]
MAX_EXPOSURE = 25  # tenths, by systemd-analyze: below 2.5 it calls a service OK
SUFFIXES = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}


@pytest.fixture(scope="module")
def service() -> dict[str, str]:
    """The [Service] section; the last of several equal keys."""
    parser = configparser.RawConfigParser(strict=False, delimiters=("=",), comment_prefixes=("#",))
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(UNIT.read_text(encoding="utf-8"))
    return dict(parser["Service"])


def test_the_unit_runs_heed_as_nobody_special(service: dict[str, str]) -> None:
    """A user of its own, data below /var/lib that only it reads, and another try after a failure."""
    assert service["ExecStart"] == "/opt/heed/.venv/bin/heed run --no-terminal"
    assert (service["User"], service["StateDirectory"], service["StateDirectoryMode"]) == ("heed", "heed", "0700")
    assert service["Restart"] == "on-failure"


def test_the_unit_lets_heed_open_as_many_files_as_it_wants(service: dict[str, str]) -> None:
    """systemd's own bound would be reached by a thousand connections."""
    assert int(service["LimitNOFILE"]) == WANTED_FILES


def test_systemd_and_docker_wait_equally_long(service: dict[str, str]) -> None:
    """Longer than heed drains, and the signal goes to heed alone: it ends its own processes."""
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    assert compose["services"]["heed"]["stop_grace_period"] == f"{service['TimeoutStopSec']}s"
    assert float(service["TimeoutStopSec"]) > 3 * ChatSettings().drain_timeout_s
    assert service["KillMode"] == "mixed"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze here")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    """Every line means something to it, and it finds the service well confined."""
    there = UNIT.read_text(encoding="utf-8").replace("/opt/heed/.venv/bin/heed", sys.executable)
    (tmp_path / "heed.service").write_text(re.sub("(?m)^Documentation=.*$", "", there), encoding="utf-8")
    checked = analyze("verify", tmp_path / "heed.service")
    assert (checked.returncode, checked.stderr) == (0, "")
    rated = analyze("security", "--offline=true", "--no-pager", f"--threshold={MAX_EXPOSURE}", UNIT)
    assert rated.returncode == 0, rated.stdout[-300:]


def analyze(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """systemd-analyze, which looks and changes nothing."""
    command = ["systemd-analyze", *(str(argument) for argument in arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def expressions() -> Iterator[tuple[str, str]]:
    """Each panel's title and what it asks Prometheus; guides have expressions in back-quotes."""
    for panel in json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]:
        yield from ((panel["title"], target["expr"]) for target in panel["targets"])
    for guide in GUIDES:
        text = guide.read_text(encoding="utf-8")
        yield from ((guide.name, found) for found in re.findall(r"`([^`\n]*\bheed_[a-z_]+[^`\n]*)`", text))


async def test_every_metric_that_is_named_exists(heed: Heed) -> None:
    """In the answer of a running heed to /metrics, under that very name."""
    text = await (await heed.client.get("/metrics")).text()
    families = list(text_string_to_metric_families(text))
    known = {f"{family.name}{suffix}" for family in families for suffix in SUFFIXES.get(family.type, ())}
    named = {(where, name) for where, expression in expressions() for name in re.findall(r"\bheed_\w+", expression)}
    assert len(named) >= len(families)
    assert {(where, name) for where, name in named if name not in known} == set()


def test_every_metric_is_on_the_dashboard() -> None:
    """What heed counts can be seen without writing a query."""
    shown = DASHBOARD.read_text(encoding="utf-8")
    counted = {family.name for family in Metrics().registry.collect()}
    assert {name for name in counted if name not in shown} == set()


def test_every_label_that_is_named_exists() -> None:
    """What panels group and select by is what heed counts by."""
    metrics: dict[str, Any] = {m._name: m for m in vars(Metrics()).values() if hasattr(m, "_labelnames")}
    for title, expression in expressions():
        name = re.search(r"\bheed_\w+", expression)
        used = set(re.findall(r"by \(([^)]*)\)", expression)) | set(re.findall(r"[{,](\w+)[=!]", expression))
        labels = {label.strip() for group in used for label in group.split(",")} - {"le"}
        counted = next(m for known, m in metrics.items() if name and name.group().startswith(known))
        assert labels <= set(counted._labelnames), f"{title}: {expression}"


def test_panels_do_not_overlap() -> None:
    """Each has a place of its own on the page, 24 columns wide."""
    taken: set[tuple[int, int]] = set()
    for panel in json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.name)
def test_guides_name_only_what_exists(guide: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings, files, tests and modules in back-quotes or links; a guide that is wrong is worse than none."""
    text = guide.read_text(encoding="utf-8")
    for name in set(re.findall(r"\bHEED_[A-Z_]*[A-Z]\b", text)) - {"HEED_CONFIG"}:
        monkeypatch.setenv(name, "1")
    assert list(unknown_variables()) == []
    paths = re.findall(r"`((?:bot|engine|storage|tests|docs|deploy|evals|bench|tools)/[\w./-]+\.\w+)`", text)
    paths += [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    assert [path for path in paths if not ((ROOT / path).exists() or (guide.parent / path).exists())] == []
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text)
    assert [name for path, name in named if f"def {name}(" not in (ROOT / path).read_text(encoding="utf-8")] == []
