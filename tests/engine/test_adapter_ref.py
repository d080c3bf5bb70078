"""engine.adapter_ref: the names of adapter versions."""

from engine.adapter_ref import ZERO_ADAPTER, ZERO_LORA_INT_ID, AdapterRef


def test_every_version_has_a_name_of_its_own() -> None:
    """No two versions share a name, by which vLLM tells adapters apart."""
    refs = [AdapterRef("ana", 1, 1, "/a/1"), AdapterRef("ana", 2, 2, "/a/2"), AdapterRef("ben", 1, 3, "/b/1")]
    assert len({ref.name for ref in refs} | {ZERO_ADAPTER.name}) == 4


def test_the_zero_adapter_is_no_adapter_to_the_trainer() -> None:
    """The trainer gets None for the zero adapter, so that an update from it starts fresh."""
    assert ZERO_ADAPTER.to_dict() is None


def test_the_zero_adapters_id_is_one_vllm_can_hold_and_a_database_never_gives_out() -> None:
    """The zero adapter's id fits into int32, as vLLM keeps ids, and is above any database id."""
    assert 10**9 < ZERO_LORA_INT_ID < 2**31
