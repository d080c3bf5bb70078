"""engine.adapters.zip_format: an adapter as a zip file, there and back, and what is refused."""

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.adapter_ref import CONFIG_FILE, TENSORS_FILE
from engine.adapters import zip_format
from engine.adapters.zip_format import KNOWN_FILES, MANIFEST_FILE, README_FILE
from engine.errors import AdapterRefused
from tests import adapter_zips

LIMIT = 1 << 22
BAD = adapter_zips.bad()


def test_what_is_packed_comes_out_again() -> None:
    """The same tensors and configuration, with where they came from; the README names what they were made for."""
    files = adapter_zips.directory()
    content = zip_format.pack(files, "abcd", "pocket", 3)
    package = zip_format.unpack(content, LIMIT)
    assert (package.tensors, package.base_model) == (files[TENSORS_FILE], "abcd")
    assert package.origin == "v3 of an adapter for pocket"
    inside = adapter_zips.contents(content)
    assert sorted(inside) == sorted(KNOWN_FILES)
    assert all(words in inside[README_FILE].decode() for words in ("`pocket`", "abcd", "version 3", "rank 2"))


def test_nothing_of_this_machine_leaves() -> None:
    """The folder that the model lies in stays here, and so does whatever else the directory holds."""
    files = adapter_zips.directory() | {"optimizer.safetensors": b"state"}
    inside = adapter_zips.contents(adapter_zips.packed(files))
    assert b"/somewhere" not in b"".join(inside.values())
    assert json.loads(inside[CONFIG_FILE])["base_model_name_or_path"] == "pocket"
    assert sorted(inside) == sorted(KNOWN_FILES)


@pytest.mark.parametrize("kind", BAD)
def test_what_is_wrong_is_said_in_one_line(kind: str) -> None:
    """Pickles, links, ways out, bombs, broken files, values that are no numbers: each refused with its reason."""
    content, words = BAD[kind]
    with pytest.raises(AdapterRefused) as refused:
        zip_format.unpack(content, LIMIT)
    assert words in str(refused.value)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 400


def test_what_unpacks_to_too_much_is_refused_unread() -> None:
    """The declared sizes decide before a byte is unpacked."""
    with pytest.raises(AdapterRefused, match="unpacks to more than 100 bytes"):
        zip_format.unpack(adapter_zips.packed(), 100)


@settings(max_examples=200, deadline=None)
@given(place=st.floats(0, 1, exclude_max=True), change=st.integers(1, 255))
@example(place=0.99609375, change=1)  # an offset that points before the file's beginning
def test_a_changed_byte_is_refused_or_harmless(place: float, change: int) -> None:
    """One changed byte is refused or leaves the content as it was."""
    content = bytearray(adapter_zips.packed())
    content[int(place * len(content))] ^= change
    try:
        package = zip_format.unpack(bytes(content), LIMIT)
    except AdapterRefused:
        return
    assert package.tensors == adapter_zips.directory()[TENSORS_FILE]
    assert package.config["r"] == 2


@given(st.binary(max_size=400))
def test_any_bytes_are_refused(content: bytes) -> None:
    """No other error escapes."""
    with pytest.raises(AdapterRefused):
        zip_format.unpack(content, LIMIT)


def test_a_manifest_vouches_for_both_files() -> None:
    """One that leaves a file out is no manifest."""
    files = adapter_zips.contents(adapter_zips.packed())
    manifest = json.loads(files[MANIFEST_FILE])
    del manifest["sha256"][CONFIG_FILE]
    with pytest.raises(AdapterRefused, match=f"{CONFIG_FILE} is not what"):
        zip_format.unpack(adapter_zips.zipped(files | {MANIFEST_FILE: json.dumps(manifest).encode()}), LIMIT)
