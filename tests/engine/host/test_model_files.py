"""engine.host.model_files: a folder, a name, or a clear refusal."""

import json
import shutil
from pathlib import Path

import pytest

from engine.errors import ModelNotFoundError, TokenizerMismatch
from engine.host.model_files import TOKENIZER_FILE, local_model_folder, teacher_folder, vocabulary
from tests.tiny_model import save_tiny_model

NOWHERE = Path("no-such-data")


def test_a_folder_is_taken_as_it_is(tiny_model: Path) -> None:
    """A folder is found as an absolute path."""
    assert local_model_folder(str(tiny_model), NOWHERE) == tiny_model.resolve()


def test_a_relative_folder_works(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative folder is found from the current folder."""
    monkeypatch.chdir(tiny_model.parent)
    assert local_model_folder(tiny_model.name, NOWHERE) == tiny_model.resolve()


@pytest.mark.parametrize("model", ["/no/such/folder", "./missing", "~/missing-model", "missing", "a/b/c"])
def test_a_folder_that_is_not_there_is_named(model: str) -> None:
    """A missing folder is refused and not taken for a name to download."""
    with pytest.raises(ModelNotFoundError, match=r"HEED_MODEL"):
        local_model_folder(model, NOWHERE)


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    """The refusal of a folder without a model names the missing file."""
    with pytest.raises(ModelNotFoundError, match=r"config\.json"):
        local_model_folder(str(tmp_path), NOWHERE)


def test_a_teacher_with_the_same_tokenizer_is_taken(tiny_model: Path, pocket: Path, tmp_path: Path) -> None:
    """A teacher has the same tokens by the same ids; without a teacher there is no folder."""
    other = save_tiny_model(tmp_path / "other", num_layers=2, seed=1)
    copy = Path(shutil.copytree(pocket, tmp_path / "copy"))
    assert teacher_folder(str(copy), pocket, NOWHERE) == copy.resolve()
    assert teacher_folder(str(other), tiny_model, NOWHERE) == other.resolve()
    assert teacher_folder("", tiny_model, NOWHERE) is None


def test_a_teacher_with_another_tokenizer_is_refused_naming_both(tiny_model: Path, pocket: Path) -> None:
    """A teacher with other tokens is refused, and the error names one that differs."""
    with pytest.raises(TokenizerMismatch, match="HEED_HOST_TEACHER_MODEL") as caught:
        teacher_folder(str(pocket), tiny_model, NOWHERE)
    assert (str(pocket.resolve()) in str(caught.value), str(tiny_model) in str(caught.value)) == (True, True)


def test_one_token_that_was_moved_is_enough(tiny_model: Path, tmp_path: Path) -> None:
    """A difference among the added tokens is found, too."""
    other = save_tiny_model(tmp_path / "other")
    raw = json.loads((other / TOKENIZER_FILE).read_text())
    first, second, *_ = list(raw["model"]["vocab"])[-2:]
    vocab = raw["model"]["vocab"]
    vocab[first], vocab[second] = vocab[second], vocab[first]
    (other / TOKENIZER_FILE).write_text(json.dumps(raw))
    with pytest.raises(TokenizerMismatch, match="2 tokens differ"):
        teacher_folder(str(other), tiny_model, NOWHERE)


@pytest.mark.parametrize("content", [None, "{", "[]", '{"model": {}}', '{"model": {"vocab": [[]]}}'])
def test_a_tokenizer_that_cannot_be_read_is_named(tmp_path: Path, content: str | None) -> None:
    """A missing or broken tokenizer is refused with its folder."""
    if content is not None:
        (tmp_path / TOKENIZER_FILE).write_text(content)
    with pytest.raises(ModelNotFoundError, match=str(tmp_path)):
        vocabulary(tmp_path)


def test_a_list_of_pieces_is_a_vocabulary_too(tmp_path: Path) -> None:
    """Tokens of a unigram model have their place as id."""
    raw = {"model": {"vocab": [["a", -1.0], ["b", -2.0]]}, "added_tokens": [{"content": "<s>", "id": 7}]}
    (tmp_path / TOKENIZER_FILE).write_text(json.dumps(raw))
    assert vocabulary(tmp_path) == {"a": 0, "b": 1, "<s>": 7}
