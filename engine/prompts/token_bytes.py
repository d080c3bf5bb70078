"""The bytes that each token stands for: a character of several bytes may be cut between two tokens."""

import re
from typing import Any

_BYTE = re.compile(r"<0x([0-9A-F]{2})>")  # a byte that has no token of its own, in tokenizers with a fallback
_KEPT = (*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100))  # bytes that are their own character


class TokenBytes:
    """The bytes of a tokenizer's tokens, by their ids; it can be sent to another process."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        known = tokenizer.added_tokens_decoder.items()
        self._added: dict[int, bytes] = {number: token.content.encode() for number, token in known}
        self._is_byte_level = "ByteLevel" in repr(tokenizer.backend_tokenizer.decoder)
        self._byte_of = _bytes_by_character()

    def __call__(self, token_id: int) -> bytes:
        """Return the bytes of one token, none for an id that is no token."""
        piece = self._tokenizer.convert_ids_to_tokens(token_id)
        if token_id in self._added or piece is None:
            return self._added.get(token_id, b"")
        if self._is_byte_level:
            return bytes(self._byte_of[char] for char in piece)
        fallback = _BYTE.fullmatch(piece)
        return bytes.fromhex(fallback[1]) if fallback else str(piece).replace("\u2581", " ").encode()


def _bytes_by_character() -> dict[str, int]:
    """Return the alphabet of byte-level tokenizers: the bytes that are no visible character follow from 256 on."""
    rest = [byte for byte in range(256) if byte not in _KEPT]
    return {chr(byte): byte for byte in _KEPT} | {chr(256 + place): byte for place, byte in enumerate(rest)}
