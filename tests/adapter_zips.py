"""Zip files with adapters in them: good ones, and everything that is wrong with the others."""

import hashlib
import io
import json
import stat
import warnings
import zipfile
from functools import cache
from typing import Any

import numpy as np
from safetensors.numpy import save

from engine.adapter_ref import CONFIG_FILE, TENSORS_FILE
from engine.adapters import zip_format
from engine.adapters.zip_format import MANIFEST_FILE, README_FILE

BASE_MODEL = "fake"
NAME = "base_model.model.model.layers.0.self_attn.q_proj.lora_{}.weight"


def directory(rank: int = 2, value: float = 0.5, dtype: Any = np.float32, alpha: int = 4) -> dict[str, bytes]:
    """An adapter's two files, for a model with one module of width 8."""
    from engine.training.lora_slot import (
        LoraShape,  # brings torch along: a heed that is killed forty times starts without it
    )

    tensors = {NAME.format("A"): np.full((rank, 8), value, dtype), NAME.format("B"): np.full((8, rank), value, dtype)}
    config = LoraShape(rank, alpha, ("q_proj",)).config("/somewhere/pocket")
    return {CONFIG_FILE: json.dumps(config).encode(), TENSORS_FILE: save(tensors)}


def packed(files: dict[str, bytes] | None = None, base_model: str = BASE_MODEL) -> bytes:
    """A good zip file."""
    return zip_format.pack(files or directory(), base_model, "pocket", 3)


def contents(content: bytes) -> dict[str, bytes]:
    """Return the names and contents in a zip file."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(files: dict[str, bytes], extra: list[tuple[zipfile.ZipInfo, bytes]] | None = None) -> bytes:
    """Files as a zip file, and entries of any kind behind them."""
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        warnings.simplefilter("ignore")  # of a name that comes twice
        for name, data in files.items():
            archive.writestr(name, data)
        for info, data in extra or []:
            archive.writestr(info, data)
    return buffer.getvalue()


def vouched(files: dict[str, bytes], **said: Any) -> bytes:
    """Return files with a manifest that vouches for them, valid or not."""
    sums = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    manifest = {"format": zip_format.FORMAT, "base_model": BASE_MODEL, "sha256": sums} | said
    return zipped({**files, MANIFEST_FILE: json.dumps(manifest).encode()})


def with_config(**said: Any) -> bytes:
    """A zip file whose configuration says something else."""
    files = directory()
    config = json.loads(files[CONFIG_FILE]) | said
    return vouched(files | {CONFIG_FILE: json.dumps(config).encode()})


def link(name: str) -> zipfile.ZipInfo:
    """An entry that is a symbolic link."""
    info = zipfile.ZipInfo(name)
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


def bomb(declared_bytes: int | None = None) -> bytes:
    """A manifest of ten megabytes of spaces; `declared_bytes` is what it pretends to be."""
    content = bytearray(zipped(directory() | {MANIFEST_FILE: b" " * (10 << 20)}))
    if declared_bytes is not None:
        for signature, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
            start = -1
            for _ in range(3):  # the manifest is the third entry
                start = content.index(signature, start + 1)
            content[start + offset : start + offset + 4] = declared_bytes.to_bytes(4, "little")
    return bytes(content)


@cache
def bad() -> dict[str, tuple[bytes, str]]:
    """Return zip files that are refused, each with the message that says why."""
    good, files = packed(), contents(packed())
    without = {f"without {name}": ({n: d for n, d in files.items() if n != name}, f"no {name}") for name in files}
    del without[f"without {README_FILE}"]
    extra = {
        "pickle": ("adapter_model.bin", "a pickle"),
        "pickle by another name": ("training/optimizer.PT", "a pickle"),
        "traversal": ("../../adapter_config.json", "leads out"),
        "windows traversal": ("..\\adapter_config.json", "leads out"),
        "absolute": ("/etc/passwd", "leads out"),
        "drive": ("C:/adapter_config.json", "leads out"),
        "stranger": ("run_me.py", "no part of an adapter"),
        "folder": ("adapter/", "a link or a folder"),
    }
    return {
        "empty": (b"", "no zip file"),
        "text": (b"PK, but no zip file at all", "no zip file"),
        "truncated": (good[: len(good) // 2], "no zip file"),
        "flipped": (good[:200] + bytes([good[200] ^ 0xFF]) + good[201:], ""),
        "declared bomb": (bomb(), "larger than"),
        "hidden bomb": (bomb(100), ""),
        "link": (zipped(files, [(link(README_FILE + "x"), b"/etc/passwd")]), "a link"),
        "link in place": (
            zipped(without[f"without {CONFIG_FILE}"][0], [(link(CONFIG_FILE), b"/etc/passwd")]),
            "a link",
        ),
        "twice": (zipped(files, [(zipfile.ZipInfo(README_FILE), b"x")]), "a file twice"),
        "changed": (zipped(files | {TENSORS_FILE: directory(value=0.25)[TENSORS_FILE]}), "SHA-256 differs"),
        "no manifest object": (zipped(files | {MANIFEST_FILE: b"[]"}), "not a JSON object"),
        "other manifest": (zipped(files | {MANIFEST_FILE: b"{}"}), "not one of a heed adapter"),
        "nonsense manifest": (zipped(files | {MANIFEST_FILE: b"\xff{"}), "not JSON"),
        "not finite": (vouched(directory(value=float("nan"))), "not a number"),
        "infinite": (vouched(directory(value=float("inf"))), "not a number"),
        "half precision": (vouched(directory(dtype=np.float16)), "F16"),
        "no tensors": (vouched(directory() | {TENSORS_FILE: save({})}), "holds no tensors"),
        "no safetensors": (vouched(directory() | {TENSORS_FILE: b"\x80\x04}"}), "cannot be read"),
        "rank differs": (with_config(r=4), "not of rank 4"),
        "rank is text": (with_config(r="2"), "r is '2'"),
        "rank 0": (with_config(r=0), "r is 0"),
        "not LoRA": (with_config(peft_type="IA3"), "peft_type is 'IA3'"),
        "dora": (with_config(use_dora=True), "does not know use_dora"),
        "bias": (with_config(bias="all"), "does not know bias"),
        "targets": (with_config(target_modules="all-linear"), "target_modules"),
        **{kind: (zipped(parts), words) for kind, (parts, words) in without.items()},
        **{kind: (zipped(files | {name: b"x"}), words) for kind, (name, words) in extra.items()},
    }
