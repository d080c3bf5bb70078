"""The mean of two trainings that began at the same weights: `python -m engine.pocket.mean A B [--share S] --out FILE`.

Weights that were trained further from common ones lie in one valley of the loss, and their mean often does better than
either at what each is good at (Wortsman et al. 2022, "Model soups", arXiv 2203.05482; Wortsman et al. 2022, "Robust
fine-tuning of zero-shot models", arXiv 2109.01903). Files are `model.safetensors` of one architecture.
"""

import argparse
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor


def mean(one: dict[str, Tensor], other: dict[str, Tensor], share: float = 0.5) -> dict[str, Tensor]:
    """Return the mean of each tensor, in its own type, with this share of `one`.

    Raises ValueError if the names or shapes differ.
    """
    if {name: value.shape for name, value in one.items()} != {name: value.shape for name, value in other.items()}:
        raise ValueError("The two files hold weights of different architectures.")
    return {
        name: (share * value.double() + (1 - share) * other[name].double()).to(value.dtype)
        for name, value in one.items()
    }


def write_mean(one: Path, other: Path, out: Path, share: float = 0.5) -> None:
    """Write the mean of two files, with this share and the metadata of the first."""
    with safe_open(one, "pt") as file:
        metadata = file.metadata()
    save_file(mean(load_file(one), load_file(other), share), out, metadata)


def main() -> None:
    """Read the command line and write the mean."""
    parser = argparse.ArgumentParser(description="write the mean of two files of weights")
    parser.add_argument("one", type=Path)
    parser.add_argument("other", type=Path)
    parser.add_argument("--share", type=float, default=0.5, help="of the first")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    with torch.no_grad():
        write_mean(options.one, options.other, options.out, options.share)


if __name__ == "__main__":
    main()
