"""The answer of a tool: an output, if it did as asked, and if not, what to do about it."""

from dataclasses import dataclass

MOST_CHARS = 7_000  # of an output: what a model can read beside a conversation, and one text of it as JSON can hold

MOST_PREVIEW_CHARS = 150_000  # of a change that a person is asked about: they see all of it


@dataclass(frozen=True)
class ToolResult:
    """`output` is for the model and the person; `feedback` says what to do otherwise, after a success what to mind."""

    output: str
    success: bool = True
    feedback: str = ""

    @property
    def told(self) -> str:
        """Return what the model reads: line ends and quotes as they are, so that it can copy them."""
        said = self.output if self.success else f"That failed. {self.output}"
        return "\n".join(filter(None, [said.rstrip("\n"), self.feedback]))


TOO_LARGE = ToolResult("This change is too large to be shown. Make it in smaller steps.", success=False)


def cut(text: str, most_chars: int = MOST_CHARS) -> str:
    """Return a text without its middle, if it is longer than that."""
    half = most_chars // 2
    left_out = len(text) - 2 * half
    return text if left_out <= 0 else f"{text[:half]}\n... {left_out} characters ...\n{text[-half:]}"


def whole(preview: ToolResult) -> ToolResult:
    """Return a preview as it is, or that it is too large: what is cut out of it would be agreed to unseen."""
    return preview if len(preview.output) <= MOST_PREVIEW_CHARS else TOO_LARGE


class ToolFailed(Exception):
    """A tool could not do what was asked."""

    def __init__(self, output: str, feedback: str) -> None:
        """Both are sentences: what is the matter, and what to do."""
        super().__init__(output)
        self.result = ToolResult(output, success=False, feedback=feedback)
