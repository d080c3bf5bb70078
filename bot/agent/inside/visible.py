"""Text as a person may safely be shown it: nothing in it moves a cursor, hides itself or runs the other way."""

import re

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
# Controls but tab and line feed; marks of direction; what has no width; the tags that spell text nobody sees.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def visible(text: str) -> str:
    """Return a text in which what cannot be seen stands by its number, such as <U+202E>."""
    return _UNSEEN.sub(lambda found: f"<U+{ord(found[0]):04X}>", text)


def printed(text: str) -> str:
    """Return the output of a program without colours and with plain line ends, everything else visible."""
    return visible(_COLOURS.sub("", text).replace("\r\n", "\n"))
