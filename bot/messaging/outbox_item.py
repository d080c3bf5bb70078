"""One thing to show on a platform, as the outbox keeps it and as its sender works on it."""

import hashlib
from base64 import b64decode, b64encode
from dataclasses import dataclass, field, replace
from typing import Any

from bot.channel import Button, File, Post, Rows
from bot.events import Author, Place
from storage.kinds import OutboxState
from storage.tables import Completion, Outbox, new_id

NONCE_BYTES = 12  # 24 hex digits: Discord takes 25 characters


def chat_of(place: Place) -> str:
    """Return the place without its thread: message ids are unique in there."""
    return place.external_id.partition("/")[0]


@dataclass
class OutboxItem:
    """A message, or an answer (`is_answer`: it may have a placeholder, and must not be shown twice).

    `shown`: the messages posted for it, one per part; `num_final`: how many of them have their final text;
    `is_uncertain`: its next part, or a placeholder for it, may have been posted, and the id was lost;
    `after`: the newest message that was there before that, empty if none is known;
    `is_known`: storage knows what each of `shown` is for;
    `is_fresh`: storage has it as it is here: it was stored or read just now.
    """

    id: str
    user_id: str | None
    post: Post
    is_answer: bool = False
    completion_id: str = ""
    role: str = ""
    about: str = ""
    shown: list[str] = field(default_factory=list)
    num_final: int = 0
    is_uncertain: bool = False
    after: str = ""
    is_known: bool = False
    is_fresh: bool = False

    @classmethod
    def of_post(
        cls, post: Post, user_id: str | None, key: str = "", *, is_answer: bool = False, role: str = "", about: str = ""
    ) -> "OutboxItem":
        """Return an item of a post, known by `key`."""
        after = post.newer_than if post.newer_than.isdecimal() else ""
        return cls(key or new_id(), user_id, post, is_answer, role=role, about=about, after=after)

    @classmethod
    def of_row(cls, row: Outbox) -> "OutboxItem":
        """Return the item the outbox keeps."""
        kept = row.payload
        place = Place(row.platform, kept["place"], kept["is_private_place"], kept.get("server", ""))
        post = Post(
            place,
            kept["text"],
            rows_of(kept["rows"]),
            kept["reply_to"],
            files=tuple(File(name, b64decode(content)) for name, content in kept["files"]),
            token=kept["token"],
            is_private=kept["is_private"],
            wants_reply=kept["wants_reply"],
            asked=Author(row.platform, *kept["asked"]) if kept.get("asked") else None,
        )
        return cls(
            row.id, row.user_id, post, kept["is_answer"], kept["completion_id"], kept["role"], kept["about"],
            list(kept["shown"]), is_uncertain=kept["is_uncertain"], after=kept.get("after", ""),
        )  # fmt: skip

    @property
    def is_careful(self) -> bool:
        """True if it must not be shown twice: an answer, or something to press. No edit opens the field for a reply."""
        return self.is_answer or (bool(self.role) and not self.post.wants_reply)

    @property
    def platform(self) -> str:
        """The platform it is shown on."""
        return self.post.place.platform

    @property
    def chat_key(self) -> tuple[str, str]:
        """The chat whose order it keeps."""
        return self.platform, chat_of(self.post.place)

    def retell(self, text: str, completion: Completion | None) -> None:
        """In place: the final text, and the answer it is; without one there is nothing to press."""
        self.post = replace(self.post, text=text, rows=self.post.rows if completion else ())
        self.completion_id = completion.id if completion else ""

    def row(self, state: OutboxState = OutboxState.WAITING) -> Outbox:
        """Return the item as the outbox keeps it."""
        return Outbox(
            id=self.id,
            platform=self.platform,
            user_id=self.user_id,
            chat_key=chat_of(self.post.place),
            payload=self._payload(),
            state=state,
            external_message_id=self.shown[0] if self.shown else "",
        )

    def first_post(self) -> Post:
        """Return what its placeholder is posted as."""
        return replace(self.post, text="", rows=(), files=(), nonce=self.nonce(0))

    def part_of_draft(self) -> Post:
        """Return what it is posted as before its final text."""
        return replace(self.post, nonce=self.nonce(0))

    def part(self, parts: list[str], place: int) -> Post:
        """One of its parts: the first answers, the last has the buttons and files; what is private is so in each."""
        is_first, is_last = place == 0, place == len(parts) - 1
        return replace(
            self.post,
            text=parts[place],
            rows=self.post.rows if is_last else (),
            files=self.post.files if is_last else (),
            reply_to=self.post.reply_to if is_first else None,
            token=self.post.token if is_first or self.post.is_private else "",
            nonce=self.nonce(place),
            number=place,
        )

    def nonce(self, place: int, instead_of: str = "") -> str:
        """Return the same for the same part, anyone who posts it; another for what replaces a message that is gone."""
        name = f"{self.id}:{place}:{instead_of}" if instead_of else f"{self.id}:{place}"
        return hashlib.blake2s(name.encode(), digest_size=NONCE_BYTES).hexdigest()

    def _payload(self) -> dict[str, Any]:
        post = self.post
        return {
            "place": post.place.external_id,
            "is_private_place": post.place.is_private,
            "server": post.place.server,
            "text": post.text,
            "rows": [[[button.label, button.action] for button in row] for row in post.rows],
            "reply_to": post.reply_to,
            "files": [[file.name, b64encode(file.content).decode()] for file in post.files],
            "token": post.token,
            "is_private": post.is_private,
            "wants_reply": post.wants_reply,
            "asked": [post.asked.account, post.asked.display_name] if post.asked else [],
            "is_answer": self.is_answer,
            "completion_id": self.completion_id,
            "role": self.role,
            "about": self.about,
            "shown": self.shown,
            "is_uncertain": self.is_uncertain,
            "after": self.after,
        }


def rows_of(kept: list[list[list[str]]]) -> Rows:
    """Rows of buttons from their stored form."""
    return tuple(tuple(Button(label, action) for label, action in row) for row in kept)
