"""engine.host.architectures: what a folder's config.json says, before anything is loaded."""

import json
from pathlib import Path
from typing import Any

import pytest

from engine.errors import ArchitectureNotSupported, ModelNotFoundError
from engine.host.architectures import NAMES, check


def folder_of(path: Path, **config: Any) -> Path:
    """Return a folder with a config.json."""
    (path / "config.json").write_text(json.dumps(config))
    return path


@pytest.mark.parametrize("architecture", NAMES)
def test_an_architecture_that_heed_trains_passes(tmp_path: Path, architecture: str) -> None:
    """The field's name of it comes back, and nothing stands against learning."""
    found = check(folder_of(tmp_path, architectures=[architecture]))
    assert (found.architecture, found.can_learn, found.reason, found.remedy) == (NAMES[architecture], True, "", "")


@pytest.mark.parametrize(
    ("architecture", "word"),
    [
        ("Qwen3MoeForCausalLM", "mixture of experts"),
        ("Gemma3ForConditionalGeneration", "reads images"),
        ("MambaForCausalLM", "MambaForCausalLM"),
        ("BertModel", "BertModel"),
    ],
)
def test_another_architecture_is_refused_by_name(tmp_path: Path, architecture: str, word: str) -> None:
    """The sentence says what the model is, what to choose instead and by which setting."""
    with pytest.raises(ArchitectureNotSupported, match=word) as refused:
        check(folder_of(tmp_path, architectures=[architecture]))
    sentence = str(refused.value)
    assert architecture in sentence
    assert all(name in sentence for name in NAMES.values())
    assert "HEED_MODEL" in sentence


@pytest.mark.parametrize("config", [{}, {"architectures": None}, {"architectures": []}, {"architectures": [7]}])
def test_a_folder_that_names_no_architecture_is_refused(tmp_path: Path, config: dict[str, Any]) -> None:
    """An adapter's folder, for example, has a configuration that names none."""
    with pytest.raises(ArchitectureNotSupported, match="names no architecture"):
        check(folder_of(tmp_path, **config))


@pytest.mark.parametrize(
    ("config", "method"),
    [
        ({"quantization_config": {"quant_method": "awq", "bits": 4}}, "AWQ"),
        ({"quantization_config": {"quant_method": "gptq", "bits": 4}}, "GPTQ"),
        ({"quantization_config": {"quant_method": "fp8"}}, "FP8"),
        ({"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True}}, "bitsandbytes"),
        ({"quantization_config": {"quant_method": "compressed-tensors"}}, "compressed-tensors"),
        ({"quantization_config": {"quant_method": "a new one"}}, "a new one"),
        ({"quantization_config": {"load_in_8bit": True}}, "by an unnamed method"),
        ({"compression_config": {"quant_method": "compressed-tensors"}}, "compressed-tensors"),
    ],
)
def test_a_quantised_checkpoint_is_served_and_not_trained(tmp_path: Path, config: dict[str, Any], method: str) -> None:
    """The person reads why nothing is trained, the operator what to choose."""
    found = check(folder_of(tmp_path, architectures=["LlamaForCausalLM"], **config))
    assert not found.can_learn
    assert found.reason == f"This model is quantised ({method}), so heed does not train it."
    assert "HEED_MODEL" in found.remedy


@pytest.mark.parametrize("name", ["quantize_config.json", "quant_config.json", "hf_quant_config.json"])
def test_the_files_of_older_quantisers_count_too(tmp_path: Path, name: str) -> None:
    """Some checkpoints say it in a file of its own."""
    (tmp_path / name).write_text("{}")
    assert not check(folder_of(tmp_path, architectures=["LlamaForCausalLM"])).can_learn


@pytest.mark.parametrize(
    ("config", "longest"),
    [
        ({}, None),
        ({"rope_scaling": None, "max_position_embeddings": 4096}, None),
        ({"rope_scaling": {"type": "longrope"}, "original_max_position_embeddings": 4096}, 4096),
        ({"rope_scaling": {"type": "su"}, "original_max_position_embeddings": 4096}, 4096),
        ({"rope_parameters": {"rope_type": "longrope", "original_max_position_embeddings": 2048}}, 2048),
        ({"rope_parameters": {"rope_type": "llama3", "original_max_position_embeddings": 8192}}, None),
        ({"rope_parameters": {"full_attention": {"rope_type": "default"}}}, None),
    ],
)
def test_longrope_is_served_as_far_as_it_has_one_set_of_frequencies(
    tmp_path: Path, config: dict[str, Any], longest: int | None
) -> None:
    """Behind that, vLLM and the trainer would rotate by different angles."""
    assert check(folder_of(tmp_path, architectures=["Phi3ForCausalLM"], **config)).longest_context == longest


@pytest.mark.parametrize(
    "config",
    [
        {"rope_scaling": {"type": "dynamic", "factor": 2.0}},
        {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0}},
        {
            "rope_parameters": {
                "full_attention": {"rope_type": "dynamic"},
                "sliding_attention": {"rope_type": "default"},
            }
        },
    ],
)
def test_dynamic_ntk_is_refused_by_name(tmp_path: Path, config: dict[str, Any]) -> None:
    """vLLM has one set of angles for all prompts, the trainer one for each length. A quantised model is only served."""
    with pytest.raises(ArchitectureNotSupported, match=r"dynamic NTK.*HEED_MODEL"):
        check(folder_of(tmp_path, architectures=["LlamaForCausalLM"], **config))
    served = check(
        folder_of(tmp_path, architectures=["LlamaForCausalLM"], quantization_config={"quant_method": "awq"}, **config)
    )
    assert not served.can_learn


@pytest.mark.parametrize("content", [None, "", "{", "[]", "\xff"])
def test_a_configuration_that_cannot_be_read_is_named(tmp_path: Path, content: str | None) -> None:
    """A half-downloaded folder is no architecture that heed lacks."""
    if content is not None:
        (tmp_path / "config.json").write_text(content, encoding="latin-1")
    with pytest.raises(ModelNotFoundError, match=r"config\.json"):
        check(tmp_path)


@pytest.mark.parametrize(
    ("settings", "packed"),
    [
        ({"quant_method": "awq", "bits": 4}, "AWQ"),
        ({"quant_method": "gptq", "bits": 4}, "GPTQ"),
        ({"quant_method": "compressed-tensors", "format": "pack-quantized"}, "compressed-tensors"),
        ({"quant_method": "compressed-tensors", "format": "int-quantized"}, ""),
        ({"quant_method": "fp8"}, ""),
    ],
)
def test_weights_packed_to_four_bits_are_told_apart(tmp_path: Path, settings: dict[str, Any], packed: str) -> None:
    """Not every processor multiplies them."""
    config = {"architectures": ["LlamaForCausalLM"], "quantization_config": settings}
    assert check(folder_of(tmp_path, **config)).packed == packed
