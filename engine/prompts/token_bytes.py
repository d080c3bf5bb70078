"""The bytes that each token stands for: a character of several bytes may be cut between two tokens."""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

_BYTE = re.compile(r"<0x([0-9A-F]{2})>")  # a byte that has no token of its own, in tokenizers with a fallback
_KEPT = (*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100))  # bytes that are their own character


def reader(tokenizer: Any) -> Callable[[int], bytes]:
    """Return a function from the id of one of the tokenizer's tokens to its bytes."""
    known = tokenizer.added_tokens_decoder.items()
    added: dict[int, bytes] = {number: token.content.encode() for number, token in known}
    is_byte_level = "ByteLevel" in repr(tokenizer.backend_tokenizer.decoder)
    byte_of = _bytes_by_character()

    @lru_cache(maxsize=10_000)
    def token_bytes(token_id: int) -> bytes:
        piece = tokenizer.convert_ids_to_tokens(token_id)
        if token_id in added or piece is None:
            return added.get(token_id, b"")
        if is_byte_level:
            return bytes(byte_of[char] for char in piece)
        fallback = _BYTE.fullmatch(piece)
        return bytes.fromhex(fallback[1]) if fallback else piece.replace("\u2581", " ").encode()

    return token_bytes


def _bytes_by_character() -> dict[str, int]:
    """Return the alphabet of byte-level tokenizers: the bytes that are no visible character follow from 256 on."""
    rest = [byte for byte in range(256) if byte not in _KEPT]
    return {chr(byte): byte for byte in _KEPT} | {chr(256 + place): byte for place, byte in enumerate(rest)}
