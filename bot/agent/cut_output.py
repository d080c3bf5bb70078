"""The output of a program, of any length, kept in little room: its beginning and its end."""

import codecs


class CutOutput:
    """Takes bytes in pieces; more than `most_chars` lose their middle."""

    def __init__(self, most_chars: int) -> None:
        self._half = most_chars // 2
        self._begin = self._end = ""
        self._num_cut = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def text(self) -> str:
        """The beginning and the end, and how much is cut between them."""
        middle = f"\n... {self._num_cut} characters ...\n" if self._num_cut else ""
        return f"{self._begin}{middle}{self._end}"

    def take(self, data: bytes) -> None:
        """Take another piece."""
        text = self._decoder.decode(data)
        room = self._half - len(self._begin)
        self._begin += text[:room]
        self._end += text[room:]
        if len(self._end) > self._half:
            self._num_cut += len(self._end) - self._half
            self._end = self._end[-self._half :]
