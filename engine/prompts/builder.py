"""Builds prompts: conversations as token ids, by chat template, with special tokens kept out and long ones cut.

Invariants: text that a person wrote can never become a special token; the system message (which carries the notes)
and the newest turns survive cutting; what was generated is never re-tokenised for training, only quoted as context.
"""

import copy
import json
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from engine.errors import ConversationRefused, PromptTooLongError
from engine.prompts import tool_messages
from engine.prompts.reasoning import KNOWN_MARKS, marks_of, parted
from engine.prompts.shortening import ConversationViews, newest_turns, shortened
from engine.prompts.turn_rules import TEMPLATE_ERRORS, TurnRules
from engine.requests import ChatMessage, Tool

# Enough for a mark and the blanks around it, even if each character is a token.
_MARK_TOKENS = max(len(mark) for marks in KNOWN_MARKS for mark in marks) + 4
_ANY_QUESTION, _ANY_ANSWER = "A question.", "Here is my answer."  # before a turn that is read by itself
_ZERO_WIDTH_SPACE = "\u200b"


class PromptBuilder:
    """The prompts of one tokenizer: messages as token ids."""

    def __init__(
        self, tokenizer: Any, max_model_len: int, *, is_thinking: bool = False, max_training_tokens: int | None = None
    ) -> None:
        """Build prompts for one tokenizer. `max_model_len`: tokens of prompt and answer together.

        `is_thinking` is handed to the chat template; training reads at most `max_training_tokens` of prompt and answer.
        """
        self._tokenizer = tokenizer
        self.max_model_len = max_model_len
        self.max_training_tokens = min(max_training_tokens or max_model_len, max_model_len)
        self._is_thinking = is_thinking
        self.marks = marks_of(tokenizer)
        self._turn_rules = TurnRules.of(tokenizer)
        self._special_ids = {number for number, token in tokenizer.added_tokens_decoder.items() if token.special}
        self._mark_ids = {n for n, token in tokenizer.added_tokens_decoder.items() if token.content in self.marks}
        self._special = sorted((t for t in _special_tokens(tokenizer) if len(t) > 1), key=len, reverse=True)

    def prompt_token_ids(
        self,
        messages: Sequence[ChatMessage],
        *,
        reserve_tokens: int = 1,
        tools: Sequence[Tool] = (),
        is_whole: bool = False,
    ) -> list[int]:
        """Return the prompt for the next answer. The oldest turns are dropped until `reserve_tokens` fit behind it.

        `tools` are for chat templates that show them; others leave them out. `is_whole`: no turn is dropped.

        Raises:
            PromptTooLongError: the system message and the newest user message alone are too long, or all that is whole.
            ConversationRefused: the chat template does not take the conversation.
        """
        room = self.max_model_len - reserve_tokens
        ids = self._ids(messages, tools)
        if len(ids) <= room:
            return ids
        what, noun = "conversation", "conversation"
        if not is_whole:
            (kept,) = newest_turns([messages], lambda views: len(self._ids(views[0], tools)) - room)
            ids, what, noun = self._ids(kept, tools), "newest message, with its system message,", "message"
        if len(ids) > room:
            raise PromptTooLongError(
                f"The {what} has {len(ids)} tokens. "
                f"The model reads {self.max_model_len}, {reserve_tokens} of them for the answer. Shorten the {noun}."
            )
        return ids

    def training_prompts(self, views: ConversationViews, num_answer_tokens: int) -> list[list[int]]:
        """Return the prompts of several views of one conversation, shortened alike to what training reads.

        `num_answer_tokens` are left for the answer; tools are those that the conversation carries. Empty if nothing of
        the newest message would remain, and for a conversation that the chat template refuses: it is not trained on.
        """
        room = self.max_training_tokens - num_answer_tokens
        try:
            whole = [self._ids(messages, ()) for messages in views]
            if max(map(len, whole)) <= room:
                return whole
            kept = shortened(views, lambda v: max(len(self._ids(m, ())) for m in v) - room, self._num_chars)
            return [] if kept is None else [self._ids(messages, ()) for messages in kept]
        except ConversationRefused:
            return []

    def refusal(self, messages: Sequence[ChatMessage]) -> str:
        """Return why the chat template does not take a conversation; empty if it does."""
        try:
            self._ids(messages, ())
        except ConversationRefused as error:
            return str(error)
        return ""

    def limited(self, max_training_tokens: int) -> "PromptBuilder":
        """Return the same prompts for an update that reads no more than `max_training_tokens` of each sample."""
        limited = copy.copy(self)
        limited.max_training_tokens = min(max_training_tokens, self.max_model_len)
        return limited

    def turn(self, text: str, limit: int) -> tuple[list[int], int, int]:
        """Return a person's turn behind an answer, without the conversation before it, and where its text lies in it.

        At most `limit` tokens of the text are kept. A template that refuses it, or shows it otherwise, leaves the text
        alone.
        """
        text = self._defused(text.strip())
        messages = [("user", _ANY_QUESTION), ("assistant", _ANY_ANSWER), ("user", text)]
        try:
            whole = self._templated([{"role": role, "content": content} for role, content in messages])
        except ConversationRefused:
            whole = ""
        start = max(0, whole.rfind(_ANY_ANSWER))
        place = whole.find(text, start + len(_ANY_ANSWER))
        before, after = (whole[start:place], whole[place + len(text) :]) if place >= 0 else ("", "")
        parts = [self._encoded(before), self._encoded(text)[:limit], self._encoded(after)]
        first = len(parts[0])
        return [token for part in parts for token in part], first, first + len(parts[1])

    def answer_token_ids(self, text: str) -> list[int]:
        """Return the tokens of an answer that a person wrote, without the token that ends it."""
        return self._encoded(self._defused(text))

    @property
    def end_token_id(self) -> int:
        """The token that ends an answer."""
        end: int = self._tokenizer.eos_token_id
        return end

    def room_for(self, prompt_token_ids: Sequence[int]) -> int:
        """Return the tokens left for an answer."""
        return self.max_model_len - len(prompt_token_ids)

    def count(self, text: str) -> int:
        """Count the tokens of a text."""
        return len(self._encoded(text))

    def text(self, token_ids: Sequence[int]) -> str:
        """Return an answer's text as the person reads it, without the thoughts before it."""
        left_out = self._special_ids - self._mark_ids
        ids = [token_id for token_id in token_ids if token_id not in left_out]
        text = str(self._tokenizer.decode(ids, skip_special_tokens=not self.has_special_marks))
        return parted(text, self.marks).text

    @property
    def has_special_marks(self) -> bool:
        """True if the marks around thoughts are special tokens, which a text has only if that is asked for."""
        return bool(self._mark_ids & self._special_ids)

    def opens_thoughts(self, prompt_token_ids: Sequence[int]) -> bool:
        """Return True if the answer to a prompt begins within thoughts, as some chat templates have it."""
        end = str(self._tokenizer.decode(list(prompt_token_ids[-_MARK_TOKENS:])))
        return end.rstrip().endswith(self.marks.opening)

    def num_thought_tokens(self, response_ids: Sequence[int], *, is_open: bool) -> int:
        """Count the tokens of the thoughts before an answer, with their marks and blanks; all if they never end.

        `is_open`: its prompt opens them.
        """
        begins = str(self._tokenizer.decode(list(response_ids[:_MARK_TOKENS]))).lstrip()
        if not (is_open or begins.startswith(self.marks.opening)):
            return 0
        count = bisect_left(
            range(len(response_ids)),
            True,
            key=lambda n: self.marks.closing in str(self._tokenizer.decode(list(response_ids[:n]))),
        )
        while count < len(response_ids) and self.token_text(response_ids[count]).isspace():
            count += 1
        return count

    @property
    def closing_token_ids(self) -> list[int]:
        """The tokens that end thoughts which would go on for too long."""
        return self._encoded(f"\n{self.marks.closing}\n\n")

    def token_text(self, token_id: int) -> str:
        """Return the text of one token."""
        return str(self._tokenizer.decode([token_id]))

    @property
    def shows_tools(self) -> bool:
        """True if the chat template puts tools into the prompt."""
        return tool_messages.shows_tools(self._tokenizer)

    def _ids(self, messages: Sequence[ChatMessage], tools: Sequence[Tool]) -> list[int]:
        tools = tools or tool_messages.carried(messages)
        turns = tool_messages.templated(self._turn_rules.obeyed(messages), self._tokenizer, self._defused)
        return self._encoded(self._templated(turns, self._defused_tools(tools)))

    def _templated(self, messages: Sequence[ChatMessage], tools: list[Tool] | None = None) -> str:
        """Return the conversation as the template writes it. Raises ConversationRefused."""
        try:
            return str(
                self._tokenizer.apply_chat_template(
                    messages,
                    tools=tools,
                    tokenize=False,
                    add_generation_prompt=True,
                    enable_thinking=self._is_thinking,
                )
            )
        except TEMPLATE_ERRORS as error:
            raise ConversationRefused(error) from error

    def _num_chars(self, text: str, num_tokens: int) -> int:
        """Count the characters of the first tokens of a text; one that is cut in two belongs to them."""
        rest = str(self._tokenizer.decode(self._encoded(text)[num_tokens:])).lstrip("\ufffd")
        return max(1, len(text) - len(rest))

    def _encoded(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False))

    def _defused_tools(self, tools: Sequence[Tool]) -> list[Tool] | None:
        """Defuse the names and descriptions of tools, which are people's text, too."""
        if not tools:
            return None
        defused: list[Tool] = json.loads(self._defused(json.dumps(list(tools), ensure_ascii=False)))
        return defused

    def _defused(self, text: str) -> str:
        """Break special tokens inside people's text with a zero-width space, so that they stay text."""
        for token in self._special:
            if token in text:
                text = text.replace(token, token[0] + _ZERO_WIDTH_SPACE + token[1:])
        return text


def _special_tokens(tokenizer: Any) -> set[str]:
    """Return every token that is never text: a tokenizer names some by their role and only lists the others."""
    listed = {t.content for t in tokenizer.added_tokens_decoder.values() if t.special}
    return listed | set(tokenizer.all_special_tokens)
