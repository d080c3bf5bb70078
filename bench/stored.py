"""A database as long use leaves it: people, conversations, answers with token ids, feedback, updates and versions.

Drawn with a seed; the texts mean nothing, their sizes do. Written by plain INSERTs, thousands at once, into the SQLite
file: through the repositories a hundred thousand answers would take minutes, and how they are written is not measured.
"""

import json
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

from storage.conversations import chats
from storage.database import Database, Session
from storage.people import people
from storage.tables import Chat, User, new_id

Row = dict[str, Any]
Told = Callable[[int], None]  # how many answers there are more

AT_ONCE = 2000  # answers of one transaction
CHATS_EACH = 4
DAYS = 90
POOL = 200  # different texts and token ids
WORDS = ("bees", "wasps", "tell", "about", "what", "honey", "summer", "garden", "flowers", "know", "would", "subject")
PHASES_MS = {"rollouts": 40.0, "standing": 20.0, "teacher rollouts": 90.0, "train": 800.0, "publish": 20.0}
GATE = {"accepted": True, "checks": dict.fromkeys("abcdefghijk", True), "figures": {"update_norm": 0.8}}
TABLES = ("completion", "feedback", "update_run", "adapter_version")  # as they refer to each other


class Filling:
    """The values drawn on the way."""

    def __init__(self, num_people: int, seed: int) -> None:
        self.random = random.Random(seed)
        self.num_people = num_people
        self.users: list[User] = []
        self.chats: list[Chat] = []
        self.began_s = time.time() - DAYS * 86_400
        self.texts = [self.words(45) for _ in range(POOL)]
        self.token_ids = [json.dumps(self.random.choices(range(1000), k=150)) for _ in range(POOL)]
        self.rows: dict[str, list[Row]] = {table: [] for table in TABLES}
        self._versions: dict[str, int] = {}

    def meet(self, s: Session) -> None:
        """Everybody, with their conversations; one in ten does not let heed learn."""
        for number in range(self.num_people):
            is_learning = number % 10 != 9
            user = people.resolve(s, "http", f"p{number}", display_name=f"Person {number}", is_learning=is_learning)
            self.users.append(user)
            self.chats += [chats.resolve(s, user.id, "http", f"c{place}") for place in range(CHATS_EACH)]

    def answer(self, at_s: float, chat: Chat) -> Row:
        """One answer; one in eight belongs to no conversation."""
        row = {
            "id": f"cmpl-{new_id()}", "user_id": chat.user_id, "retry_of": None, "created_at": at_s,
            "chat_id": chat.id if self.random.random() > 1 / 8 else None,
            "messages": json.dumps([{"role": "user", "content": self.words(12)}]), "notes": "[]", "choice_index": 0,
            "prompt_token_ids": self.random.choice(self.token_ids), "logprobs": self.token_ids[0],
            "completion_token_ids": self.token_ids[1], "text": self.random.choice(self.texts), "adapter_version": 0,
            "sampling": '{"temperature": 0.0, "max_tokens": 1024}', "finish_reason": "stop", "num_cached_tokens": 0,
            "time_to_first_token_s": 0.05, "duration_s": 0.6, "is_gold": False,
        }  # fmt: skip
        self.rows["completion"].append(row)
        return row

    def update(self, answer: Row, chat: Chat) -> None:
        """Store a correction of an answer, what became of it, and the answer given again."""
        user_id, at_s, parent = answer["user_id"], answer["created_at"], self._versions.get(answer["user_id"], 0)
        number = self._versions[user_id] = parent + 1
        given, run = f"fb-{new_id()}", f"upd-{new_id()}"
        self.rows["feedback"].append({
            "id": given, "idempotency_key": given, "user_id": user_id, "completion_id": answer["id"],
            "kind": "correction", "text": self.words(6), "value": "", "created_at": at_s, "status": "learned",
            "attempts": 1, "reason": "", "scope": "", "reading": "wish", "is_unsure": False,
        })  # fmt: skip
        self.rows["update_run"].append({
            "id": run, "user_id": user_id, "feedback_id": given, "kind": "correction", "status": "accepted",
            "started_at": at_s, "duration_ms": 1000.0, "phases_ms": json.dumps(PHASES_MS), "steps": 22,
            "divergence_before": 1.5, "divergence_after": 0.02, "gate": json.dumps(GATE), "parent_version": parent,
            "heat": json.dumps([[f"{word} ", self.random.uniform(-3, 3)] for word in answer["text"].split()]),
            "version": number, "error": "", "notes": "[]",
            "curves": json.dumps({"loss": [1.5 * 0.8**n for n in range(22)]}),
        })  # fmt: skip
        self.rows["adapter_version"].append({
            "user_id": user_id, "number": number, "parent": parent, "path": f"adapters/{user_id}/{number}",
            "sha256": "0" * 64, "size_bytes": 100_000, "base_model": "bench", "state": "accepted",
            "feedback_id": given, "update_id": run, "created_at": at_s,
        })  # fmt: skip
        self.answer(at_s, chat).update(retry_of=answer["id"], chat_id=answer["chat_id"], adapter_version=number)

    def store(self, s: Session) -> None:
        """Write what was drawn since the last time, and which version answers now."""
        for table in TABLES:
            _insert(s, table, self.rows[table])
            self.rows[table] = []
        for user_id, number in self._versions.items():
            user = people.get(s, user_id)
            user.active_version = user.last_version = number

    def words(self, number: int) -> str:
        """Return some words."""
        return " ".join(self.random.choices(WORDS, k=number))


async def fill(database: Database, num_answers: int, num_updates: int, seed: int, told: Told) -> Filling:
    """Fill an empty SQLite database; as many answers as there are updates are corrected, and given again."""
    filling = Filling(num_people=max(num_answers // 500, 1), seed=seed)
    await database.write(filling.meet)
    num_first = num_answers - num_updates
    corrected = set(filling.random.sample(range(num_first), num_updates))
    for start in range(0, num_first, AT_ONCE):
        stop = min(start + AT_ONCE, num_first)
        for number in range(start, stop):
            chat = filling.random.choice(filling.chats)
            row = filling.answer(filling.began_s + number / num_first * DAYS * 86_400, chat)
            if number in corrected:
                filling.update(row, chat)
        await database.write(filling.store)
        told(stop - start)
    return filling


def _insert(s: Session, table: str, rows: Sequence[Row]) -> None:
    if rows:
        names = list(rows[0])
        values = [tuple(row[name] for name in names) for row in rows]
        places = ", ".join("?" for _ in names)
        statement = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({places})"  # noqa: S608  names of our own
        s.connection().exec_driver_sql(statement, values)
