"""One thing a person did on a platform, while it is being handled."""

from dataclasses import dataclass, field

from bot.channel import Button, Channel, File, Post, Rows
from bot.events import Author, Place
from bot.messaging.inbox import Done
from bot.messaging.markdown import literal
from bot.messaging.outbox_item import chat_of
from storage.tables import Inbox

ANSWER_ROWS: Rows = ((Button("👍", "up"), Button("👎", "down"), Button("✏️", "fix"), Button("🔄", "again")),)
NOT_YOURS = (
    "Only the person who asked can use these buttons. If that was you: heed has erased what they belong to, "
    "so ask once more."
)


@dataclass(frozen=True)
class ChatRequest:
    """The person, the place and the update of one event; `token` if it was a press, a form or a slash command."""

    channel: Channel
    item: Inbox
    done: Done
    author: Author
    place: Place
    message_id: str = ""
    token: str = ""
    is_admin: bool = False
    user_id: str = field(default="")
    is_new_message: bool = False  # just written, so that nothing of heed's is newer

    @property
    def chat(self) -> str:
        """The chat in which message ids are looked up."""
        return chat_of(self.place)

    @property
    def idempotency_key(self) -> str:
        """The same for the same update, however often it is handled."""
        return f"{self.item.platform}:{self.item.bot_id}:{self.item.update_id}"

    @property
    def undone(self) -> Done | None:
        """The done mark for what is said last; None where an effect before it has marked the update done."""
        return None if self.done.is_called else self.done

    def key(self, what: str) -> str:
        """Return the outbox's id of something said because of this update."""
        return f"{what}-{self.item.seq}"

    def post(
        self, text: str, rows: Rows = (), *, files: tuple[File, ...] = (), token: str = "", is_private: bool = False
    ) -> Post:
        """Return a message in heed's own words in answer to this; if others read along it says to whom."""
        reply_to = None if self.place.is_private or token else self.message_id or None
        newer_than = self.message_id if self.is_new_message and not self.item.attempts else ""
        return Post(
            self.place, literal(text), rows, reply_to,
            files=files, token=token, is_private=is_private, newer_than=newer_than,
        )  # fmt: skip
