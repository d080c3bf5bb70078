"""Call heed with requests that its OpenAPI document allows or forbids, and check every answer against it.

Drawn cases alone would hardly ever name an answer, a note or a person that exists. So the names heed has returned are
remembered, and half of the cases ask about that; a fifth has a header as browsers, proxies or attackers send it.
"""

import json
import random
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import jsonschema
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi import checks

from bot.commands.person import COMMANDS
from bot.http.protocol.event_streams import CONTENT_TYPE
from tests import adapter_zips

Json = dict[str, Any]
CHECKS = [
    schemathesis.checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
TIMEOUT_S = 60.0
MAX_EVENTS = 10_000  # of one stream: all of them
REFUSED = ["4xx", "5xx"]  # also 413: what is broken may be too large besides
MOSTLY_KNOWN = 0.85  # of the calls for answers: hardly any other names a model
ANSWERING = ("/v1/chat/completions", "/v1/completions", "/v1/score")
WRONG_SHARE = 0.25  # of the cases that break the document on purpose, where a call can be broken
USERS = ("local", "ana", "Zoë")
TEXTS = ("bees", "too long", "no emoji, please", "say it like this: Bees.", "worse", "call me Ana", "refuse this")
VALUES: tuple[str | int, ...] = ("+1", -1, "👍🏽", "🤷", "", "worse")
ARGUMENTS = (
    "",
    "1",
    "v2",
    "0",
    "on",
    "off",
    "everything",
    "too long",
    "delete 1",
    "none",
    "follow-ups on",
    "²",
    "9" * 5000,
)
ZIPS = (adapter_zips.packed(), b"", b"PK\x03\x04", adapter_zips.packed(base_model="another"))
HEADERS: dict[str, tuple[str, ...]] = {
    "Origin": ("null", "http://[", "http://localhost", "http://evil.example", "\xff", ""),
    "Sec-Fetch-Site": ("cross-site", "same-origin", "none"),
    "Authorization": ("Bearer", "Bearer \xe9", "Basic a", ""),
    "Content-Encoding": ("gzip", "deflate", "identity"),  # the server refuses others before heed sees the call
    "Content-Type": (
        "text/plain",
        "application/json; charset=utf-16",
        "application/json; charset=nonsense",
        "\xff",
        "",
    ),
    "Idempotency-Key": ("k", "\xe9", "k" * 300, ""),
    "X-Request-Id": ("mine", "\xff", "x" * 500),
    "Host": ("localhost", "[", "evil.example", "[::1]:80", "\xff"),
    "Range": ("bytes=0-1", "bytes=9999999-", "bytes=-0", "nonsense"),
    "If-None-Match": ("*", '"a"', "\xff"),
    "If-Match": ('"a"', "*"),
    "If-Modified-Since": ("Fri, 31 Dec 9999 23:59:59 GMT", "yesterday"),
    "If-Unmodified-Since": ("Thu, 01 Jan 1970 00:00:00 GMT",),
    "Accept": ("text/event-stream", "application/xml"),
    "Accept-Encoding": ("gzip", "br;q=2", "\xff"),
    "Expect": ("100-continue",),  # as Content-Encoding
    "Cookie": ("a=b; c", "\xff"),
}


schemathesis.openapi.media_type("application/zip", st.binary() | st.sampled_from(ZIPS))


@schemathesis.serializer("application/zip")
def as_it_is(_: schemathesis.SerializationContext, value: Any) -> bytes:
    """Return a file as it is, and any other value as its text."""
    return value if isinstance(value, bytes) else str(value).encode()


@dataclass(frozen=True)
class Finding:
    """A case whose answer was not as the document says."""

    call: str
    check: str
    message: str
    curl: str


@dataclass
class Tally:
    """The results of calls, counted."""

    cases: int = 0
    broken: int = 0  # cases that broke the document on purpose
    known: int = 0  # cases that asked about something that exists
    statuses: Counter[int] = field(default_factory=Counter)


class Explorer:
    """Explores the heed at `url`; `tallies` and `findings` are what came of it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.session = requests.Session()
        self.document: Json = self.session.get(f"{url}/openapi.json", timeout=TIMEOUT_S).json()
        refused = {"negative_data_rejection": {"expected-statuses": REFUSED}}
        config = schemathesis.Config.from_dict({"max-stream-events": MAX_EVENTS, "checks": refused})
        schema = schemathesis.openapi.from_dict(self.document, config=config)
        self.operations = {found.ok().label: found.ok() for found in schema.get_all_operations()}
        self.tallies = {label: Tally() for label in self.operations}
        self.findings: dict[tuple[str, str, str], Finding] = {}
        self._answers: list[tuple[str, str]] = []  # who asked, the answer's id
        self._notes: list[str] = []
        self._sessions: list[tuple[str, str]] = []  # whose, the session's id
        self._events = {label: self._event_validator(label) for label in self.operations}

    def explore(self, label: str, cases: int, number: int) -> None:
        """So many cases of one call; `number` seeds them."""
        operation = self.operations[label]
        wrong = round(cases * WRONG_SHARE) if operation.body or len(list(operation.iter_parameters())) else 0
        if wrong:
            try:
                self._draw(label, GenerationMode.NEGATIVE, wrong, number)
            except (Unsatisfiable, schemathesis.errors.SchemathesisError):
                wrong = 0  # every value will do here
        self._draw(label, GenerationMode.POSITIVE, cases - wrong, number)

    def _draw(self, label: str, mode: GenerationMode, cases: int, number: int) -> None:
        @seed(number + zlib.crc32(label.encode()))
        @settings(
            max_examples=cases,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=self.operations[label].as_strategy(mode), pick=st.integers(0, 2**63))
        def draw(case: Case, pick: int) -> None:
            self._try(label, case, random.Random(pick), is_wrong=mode is GenerationMode.NEGATIVE)

        draw()

    def _try(self, label: str, case: Case, pick: random.Random, *, is_wrong: bool) -> None:
        tally = self.tallies[label]
        headers = {}
        if not is_wrong and pick.random() < (MOSTLY_KNOWN if case.operation.path in ANSWERING else 0.5):
            self._ask_about_known(case, pick)
            tally.known += 1
        if not is_wrong and pick.random() < 0.2:
            name = pick.choice(list(HEADERS))
            headers = {name: pick.choice(HEADERS[name])}
        tally.cases += 1
        tally.broken += is_wrong
        as_bytes = {name: value.encode("latin-1") for name, value in headers.items()}
        response = case.call(self.url, session=self.session, headers=as_bytes, timeout=TIMEOUT_S)
        tally.statuses[response.status_code] += 1
        self._judge(label, case, response, headers, is_wrong=is_wrong)
        self._remember(case, response)

    def _judge(self, label: str, case: Case, response: Any, headers: Json, *, is_wrong: bool) -> None:
        wanted = [*CHECKS, checks.negative_data_rejection] if is_wrong else CHECKS
        failures: list[tuple[str, str]] = []
        try:
            case.validate_response(response, checks=wanted, headers=dict(headers))
        except FailureGroup as group:
            failures = [(type(failure).__name__, str(failure)) for failure in group.exceptions]
        failures += [("EventSchema", message) for message in self._wrong_events(label, response)]
        for check, message in failures:
            key = (label, check, message.splitlines()[0] + str(response.status_code))
            curl = case.as_curl_command(headers=dict(headers))
            self.findings.setdefault(key, Finding(label, check, f"{message}\n{response.text[:500]}", curl))

    def _wrong_events(self, label: str, response: Any) -> Iterator[str]:
        validator = self._events[label]
        if validator is None or not response.headers.get("content-type", [""])[0].startswith(CONTENT_TYPE):
            return
        lines = [line for line in response.text.split("\n\n") if line]
        if not lines or lines[-1] != "data: [DONE]":
            yield "the stream does not end with [DONE]"
        for line in lines[:-1]:
            yield from (error.message for error in validator.iter_errors(json.loads(line.removeprefix("data: "))))

    def _event_validator(self, label: str) -> Any:
        method, path = label.split(" ", 1)
        answers = self.document["paths"][path][method.lower()]["responses"].get("200", {}).get("content", {})
        if CONTENT_TYPE not in answers:
            return None
        schema = {**answers[CONTENT_TYPE]["x-event-schema"], "components": self.document["components"]}
        return jsonschema.Draft202012Validator(schema)

    def _ask_about_known(self, case: Case, pick: random.Random) -> None:
        """In place: make the case ask about a person and an object that heed knows."""
        user, answer = pick.choice([*self._answers, (pick.choice(USERS), "cmpl-none")])
        known = {
            "user": user,
            "chat": pick.choice(["web", "none"]),
            "version": pick.randrange(4),
            "id": pick.choice(self._notes or ["note-none"]),
            "name": pick.choice(["main.js", "style.css", "nothing"]),
            "model": pick.choice(["heed", "heed-base"]),
        }
        if case.operation.path.startswith("/api/sessions"):
            known["user"], known["id"] = pick.choice(self._sessions or [(known["user"], "none")])
            case.query = {"user": known["user"]}
        if "lora_id" in (case.query or {}):
            case.query["lora_id"] = known["user"]
        for name in case.path_parameters or {}:
            case.path_parameters[name] = known[name]
        if isinstance(case.body, dict):
            self._fill(case.body, case.operation.path, known | {"completion_id": answer}, pick)
        elif case.media_type == "application/zip":
            case.body = pick.choice(ZIPS)

    def _fill(self, body: Json, path: str, known: Json, pick: random.Random) -> None:
        for name in [name for name, value in body.items() if isinstance(value, float) and value.is_integer()]:
            body[name] = int(body[name])  # 13.0 as nearly everybody writes it
        if path.startswith(("/v1/lora", "/api/")) or "requests" in body or "lora_id" in body:
            self._fill_others(body, path, known, pick)
            return
        if pick.random() < 0.8:
            body["user"] = known["user"]
        if "completion_id" in body or path == "/v1/feedback":
            body["completion_id"] = known["completion_id"]
            body["index"] = 0
        if path.endswith("/rollback"):
            body["version"] = known["version"]
        if path.endswith("/commands"):
            body["text"] = f"/{pick.choice([*COMMANDS, 'users', 'updates', 'stats'])} {pick.choice(ARGUMENTS)}"
        elif path.endswith("/feedback") and pick.random() < 0.8:
            body["text"], body["value"] = pick.choice(TEXTS), pick.choice(VALUES)
            if pick.random() < 0.7:
                body.pop("training", None)
        if path in ANSWERING:
            self._make_answerable(body, path, known, pick)

    def _fill_others(self, body: Json, path: str, known: Json, pick: random.Random) -> None:
        """In place: the same in CLaaS's and continualcode's forms of a call."""
        for item in [body, *body.get("requests", [])]:
            if "lora_id" in item:
                item["lora_id"] = known["user"]
                item.pop("training", None)
            if "feedback" in item:
                item["prompt"], item["response"], item["feedback"] = "bees", "Bees hum.", pick.choice(TEXTS)
                item["completion_id"] = pick.choice([None, known["completion_id"]])
        if path.startswith("/api/") and "text" in body:
            body["text"] = pick.choice(TEXTS)

    def _make_answerable(self, body: Json, path: str, known: Json, pick: random.Random) -> None:
        """In place: what refuses most drawn calls for an answer goes."""
        body["model"] = known["model"]
        if path == "/v1/completions":
            body["prompt"] = pick.choice(TEXTS)
        else:
            body["messages"] = [*body.get("messages", []), {"role": "user", "content": pick.choice(TEXTS)}]
        if not body.get("logprobs"):
            body.pop("top_logprobs", None)
        if pick.random() < 0.7:
            body["n"] = 1
            body["heed"] = {"notes": "off"}
        elif pick.random() < 0.5:
            body["heed"] = {"regenerate": known["completion_id"]}
            body["n"] = 1

    def _remember(self, case: Case, response: Any) -> None:
        if response.status_code != 200 or not isinstance(case.body, dict):
            return
        asked_for = case.body.get("user", "")
        answer = response.text.partition('"id": "')[2].partition('"')[0]
        if case.operation.path.endswith("completions") and answer and asked_for in ("", *USERS):
            self._answers.append((asked_for or USERS[0], answer))
        if case.operation.path == "/api/sessions":
            user = asked_for or (case.query or {}).get("user", "") or USERS[0]
            self._sessions += [(user, response.json()["id"])] * (user in USERS)
        if case.operation.path == "/api/sessions/{id}/prompt":  # what something was said in is asked about more often
            self._sessions += [(case.query["user"], response.json()["session_id"])] * 9
        note = response.text.partition('"note_id": "')[2].partition('"')[0]
        if note:
            self._notes.append(note)
