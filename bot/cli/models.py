"""`heed models`: what HEED_MODEL can name, and what each model needs here. Starts nothing and fetches nothing."""

from collections.abc import Iterator

from bot.app import engine_config
from bot.config import Settings
from engine.models import POCKET, NamedModel, named_models

HOW_TO_NAME = """\
HEED_MODEL=<name> make run starts heed with one of these. Further ways to name a model:
  a folder    HEED_MODEL=/path/to/folder, with config.json, *.safetensors, tokenizer.json and a chat template;
              folders in {folder} are listed here
  a hub name  HEED_MODEL=owner/name, such as Qwen/Qwen3-0.6B, downloaded at the first start
An uncalibrated model learns with estimated settings."""


def lines(settings: Settings) -> Iterator[str]:
    """Yield what `heed models` shows. Blocking."""
    for model in named_models(engine_config(settings.model_copy(update={"model": POCKET}))):
        mark = "*" if settings.model == model.name else " "
        yield f"{mark} {model.name}: {model.title}"
        yield f"    {'; '.join(_facts(model))}"
    yield ""
    yield from HOW_TO_NAME.format(folder=settings.data_dir / "models").splitlines()


def _facts(model: NamedModel) -> Iterator[str]:
    yield f"{_size(model.size)} on disk" if model.size else "size unknown"
    yield f"about {_size(model.memory)} of memory" if model.memory else "memory known once it is here"
    yield "here" if model.is_here else "fetched at the first start"
    yield f"licence {model.licence}" if model.licence else "licence: see its folder"
    yield "calibrated" if model.is_calibrated else "uncalibrated"


def _size(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"
