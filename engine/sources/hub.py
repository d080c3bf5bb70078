"""A model by its name on a hub: downloaded by huggingface_hub into its cache, with its progress bar.

Invariant: files that are there whole are not downloaded again, so that a download that broke off goes on.
"""

import errno
from collections.abc import Callable
from pathlib import Path

from engine.errors import ModelFetchError, ModelNotFoundError

Progress = Callable[[str], None]
NEEDED_FILES = ["*.json", "*.safetensors", "*.jinja", "*.txt", "*.model"]
_AGAIN = "Start heed again, and the download goes on where it was; HEED_MODEL=pocket needs none."


def download(model: str, progress: Progress) -> Path:
    """Return the folder of a model such as "Qwen/Qwen3-8B". Blocking: for gigabytes, if it is not in the cache.

    Raises ModelNotFoundError and ModelFetchError.
    """
    from huggingface_hub import errors, snapshot_download

    progress(f"downloading {model} from the hub, unless it is here")
    try:
        return Path(snapshot_download(model, allow_patterns=NEEDED_FILES))
    except errors.GatedRepoError as error:
        raise ModelNotFoundError(
            f"The model {model} is handed out only to people who have agreed to its terms: agree on its page on the "
            "hub, then set HF_TOKEN to a token of that account."
        ) from error
    except (errors.RepositoryNotFoundError, errors.HFValidationError) as error:
        raise ModelNotFoundError(
            f"The hub has no model {model}, or not for everyone: check the name in HEED_MODEL, or set HF_TOKEN to a "
            "token of an account that may read it."
        ) from error
    except errors.HTTPError as error:  # type: ignore[attr-defined]  # of the HTTP library that this version uses
        raise ModelFetchError(f"The download of {model} broke off ({_line(error)}). {_AGAIN}") from error
    except OSError as error:
        raise ModelFetchError(_reason(model, error)) from error


def _reason(model: str, error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return (
            f"There is no room on the disk for the model {model}. Free some, or set HF_HOME to a folder elsewhere, and "
            "start heed again: the download goes on where it was."
        )
    return f"The model {model} is not here and cannot be downloaded ({_line(error)}). Check the network. {_AGAIN}"


def _line(error: Exception) -> str:
    """Return the first line of an error's message."""
    return next((line.strip().rstrip(".") for line in str(error).splitlines() if line.strip()), type(error).__name__)
