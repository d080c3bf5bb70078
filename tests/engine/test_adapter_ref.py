"""The names of adapter versions."""

from engine.adapter_ref import ZERO_ADAPTER, ZERO_LORA_INT_ID, AdapterRef


def test_every_version_has_a_name_of_its_own() -> None:
    """vLLM tells adapters in a batch and in the prefix cache apart by name."""
    refs = [AdapterRef("ana", 1, 1, "/a/1"), AdapterRef("ana", 2, 2, "/a/2"), AdapterRef("ben", 1, 3, "/b/1")]
    assert len({ref.name for ref in refs} | {ZERO_ADAPTER.name}) == 4


def test_the_zero_adapter_is_no_adapter_to_the_trainer() -> None:
    """An update from it starts fresh."""
    assert ZERO_ADAPTER.to_dict() is None


def test_the_zero_adapters_id_is_one_vllm_can_hold_and_a_database_never_gives_out() -> None:
    """vLLM keeps ids in int32."""
    assert 10**9 < ZERO_LORA_INT_ID < 2**31
