"""The files that install and start heed: project file, Makefile, containers."""

import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    """pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    """The services of docker-compose.yml."""
    compose: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    return dict(compose["services"])


@pytest.fixture(scope="module")
def dockerfile() -> str:
    """The Dockerfile."""
    return (ROOT / "Dockerfile").read_text(encoding="utf-8")


def test_the_command_is_heed(project: dict[str, Any]) -> None:
    """Installing the project gives the command `heed`."""
    assert project["project"]["scripts"] == {"heed": "bot.cli.main:main"}


def test_the_project_file_pulls_nothing_in(project: dict[str, Any]) -> None:
    """A plain `pip install` of heed resolves nothing, since only the locks know which torch fits."""
    assert project["project"]["dependencies"] == []


def test_every_lint_exception_gives_its_reason() -> None:
    """Each rule switched off in pyproject.toml has a comment on its line that says why."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    ignored = text.partition("\nignore = [")[2].partition("[tool.ruff.lint.flake8-bugbear]")[0]
    rules = [line for line in ignored.splitlines() if line.startswith("    ")]
    assert rules
    assert [line for line in rules if "# " not in line] == []


@pytest.mark.parametrize("target", ["setup", "run", "test", "check", "lock", "clean"])
def test_make_knows_its_targets(target: str) -> None:
    """Each documented target can be made from a fresh clone (a dry run)."""
    done = subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_ci_runs_what_a_person_runs() -> None:
    """.ci/run is executable and does nothing but the three commands."""
    script = ROOT / ".ci" / "run"
    commands = [line for line in script.read_text(encoding="utf-8").splitlines() if line.startswith("make ")]
    assert commands == ["make check", "make test", "make test-real"]
    assert script.stat().st_mode & 0o111


@pytest.mark.parametrize("name", ["heed", "heed-gpu"])
def test_containers_stay_on_loopback(services: dict[str, Any], name: str) -> None:
    """Either container listens on this machine's loopback and on nothing else."""
    assert services[name]["environment"]["HEED_HTTP_HOST"] == "127.0.0.1"
    assert services[name]["network_mode"] == "host"
    assert "ports" not in services[name]


@pytest.mark.parametrize("name", ["heed", "heed-gpu"])
def test_containers_get_time_to_finish(services: dict[str, Any], name: str) -> None:
    """Docker waits longer than heed drains, asks /healthz, and keeps data in a volume."""
    assert services[name]["stop_grace_period"] == "45s"
    assert "/healthz" in services[name]["healthcheck"]["test"][-1]
    assert services[name]["volumes"] == ["heed-data:/data"]


def test_each_container_has_a_profile(services: dict[str, Any]) -> None:
    """heed's share the data and the port: `docker compose up` starts neither, a profile or a name one of them."""
    profiles = {name: service["profiles"] for name, service in services.items()}
    alone = {"heed": ["cpu"], "heed-gpu": ["gpu"], "postgres": ["postgres"]}
    assert profiles == alone | {name: ["cluster"] for name in ("ray", "engine", "gateway", "cluster-postgres")}


def test_a_clusters_ports_stay_inside(services: dict[str, Any]) -> None:
    """People reach the gateway by this machine's loopback; who could reach Ray might run anything."""
    published = {name: service.get("ports", []) for name, service in services.items()}
    assert {name for name in ("ray", "engine", "cluster-postgres") if published[name]} == set()
    assert all(port.startswith("127.0.0.1:") for port in published["gateway"])
    for name in ("ray", "engine", "gateway"):
        assert services[name]["environment"]["RAY_AUTH_MODE"] == "token"
        assert services[name]["cap_drop"] == ["ALL"]


def test_kubernetes_lets_only_parts_reach_each_other() -> None:
    """By a policy for all pods of heed, but for the port that people use; Ray wants its token."""
    kinds = {one["kind"]: one for one in yaml.safe_load_all((ROOT / "deploy" / "kuberay.yaml").read_text())}
    assert kinds["RayCluster"]["spec"]["authOptions"] == {"mode": "token"}
    rules = kinds["NetworkPolicy"]["spec"]["ingress"]
    assert [rule["ports"] for rule in rules if "from" not in rule] == [[{"protocol": "TCP", "port": 8080}]]
    pinned = (ROOT / "requirements" / "cluster.txt").read_text().partition("\nray==")[2].split()[0]
    assert kinds["RayCluster"]["spec"]["rayVersion"] == pinned


@pytest.mark.parametrize("name", ["heed", "heed-gpu"])
def test_containers_have_no_rights(services: dict[str, Any], name: str) -> None:
    """No capability, and no way to more."""
    assert services[name]["cap_drop"] == ["ALL"]
    assert services[name]["security_opt"] == ["no-new-privileges:true"]


def test_the_database_server_stays_on_loopback(services: dict[str, Any]) -> None:
    """Its port is published on this machine alone, its password comes from the environment, and no process is root."""
    server = services["postgres"]
    assert all(port.startswith("127.0.0.1:") for port in server["ports"])
    assert server["environment"]["POSTGRES_PASSWORD"].startswith("${POSTGRES_PASSWORD")
    assert (server["user"], server["cap_drop"], server["profiles"]) == ("postgres", ["ALL"], ["postgres"])
    assert "pg_isready" in server["healthcheck"]["test"]
    assert server["volumes"] == ["heed-postgres:/var/lib/postgresql/data"]


def test_the_container_does_not_run_as_root(dockerfile: str) -> None:
    """The last user named in the Dockerfile is heed."""
    assert [line for line in dockerfile.splitlines() if line.startswith("USER ")][-1] == "USER heed"


def test_the_container_gets_every_package(dockerfile: str, project: dict[str, Any]) -> None:
    """Each package of the project is copied into the image, and let through by .dockerignore."""
    packages = [name for name in project["tool"]["setuptools"]["packages"]["find"]["include"] if "." not in name]
    let_through = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert [name for name in packages if f"COPY {name} {name}" not in dockerfile or f"!{name}" not in let_through] == []
