"""engine.worker.punica: every row of a batch gets the product of its own adapter only."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.adapter_ref import ZERO_LORA_INT_ID
from engine.worker.punica import MIN_ROWS, GroupedPunicaWrapper, RowGroups, forget, install

SLOTS, RANK, INPUTS, OUTPUTS = 7, 3, 6, (4, 2)
IDS = [101, 102, 103, ZERO_LORA_INT_ID, 104, 105, None]  # adapter id by slot


def seeded(*shape: int, seed: int) -> Any:
    """Return a random tensor."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def stacks(seed: int = 0) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return A and B of all slots for a fused layer of two parts."""
    a = tuple(seeded(SLOTS, 1, RANK, INPUTS, seed=seed + i) for i in range(2))
    b = tuple(seeded(SLOTS, 1, n, RANK, seed=seed + 10 + i) for i, n in enumerate(OUTPUTS))
    return a, b


def wrapper_for(ids: list[int], slots: list[int | None] = IDS) -> GroupedPunicaWrapper:
    """Return a wrapper that knows each token's adapter."""
    wrapper = GroupedPunicaWrapper(8 * 40, 17, "cpu")
    update(wrapper, ids, slots)
    return wrapper


def update(wrapper: GroupedPunicaWrapper, ids: list[int], slots: list[int | None] = IDS) -> None:
    """Update the wrapper as vLLM does before each forward pass."""
    mapping = SimpleNamespace(index_mapping=tuple(ids), prompt_mapping=tuple(ids), is_prefill=True)
    wrapper.update_metadata(mapping, slots, SLOTS + 1, 1000)


def expected(ids: list[int], x: Any, a: tuple[Any, ...], b: tuple[Any, ...], y: Any) -> Any:
    """Return the result of the formula, row by row."""
    out = y.clone()
    for row, lora_id in enumerate(ids):
        if lora_id in (0, ZERO_LORA_INT_ID):
            continue
        slot = IDS.index(lora_id)
        delta = [b_i[slot, 0] @ (a_i[slot, 0] @ x[row]) for a_i, b_i in zip(a, b, strict=True)]
        out[row] += torch.cat(delta)
    return out


@given(
    st.lists(st.tuples(st.sampled_from([0, 101, 102, 103, 104, 105, ZERO_LORA_INT_ID]), st.integers(1, 9)), max_size=8)
)
def test_every_row_gets_its_own_adapter(runs: list[tuple[int, int]]) -> None:
    """Any mixture of adapters, the base and the zero adapter gives the result of the formula."""
    ids = [lora_id for lora_id, length in runs for _ in range(length)] or [101]
    x, y = seeded(len(ids), INPUTS, seed=1), seeded(len(ids), sum(OUTPUTS), seed=2)
    a, b = stacks()
    out = y.clone()
    wrapper_for(ids).add_lora_linear(out, x, a, b, 1.0, OUTPUTS)
    assert torch.allclose(out, expected(ids, x, a, b, y), atol=1e-4)


def test_a_base_row_among_adapter_rows_is_left_exactly_as_it_is() -> None:
    """A row of the base model stays as it is; vLLM's own wrapper changes it (vLLM pull request 48421)."""
    ids = [101, 0, 102, ZERO_LORA_INT_ID, 103]
    a, b = stacks()
    y = seeded(len(ids), sum(OUTPUTS), seed=2)
    out = y.clone()
    wrapper_for(ids).add_lora_linear(out, seeded(len(ids), INPUTS, seed=1), a, b, 1.0, OUTPUTS)
    assert torch.equal(out[[1, 3]], y[[1, 3]])
    assert not torch.allclose(out[[0, 2, 4]], y[[0, 2, 4]])


def test_values_that_are_no_numbers_in_another_slot_stay_there() -> None:
    """An adapter of enormous values in the batch spoils only its own rows."""
    ids = [101, 102, 104, 105, 103]
    a, b = stacks()
    for tensor in a:
        tensor[2] = float("inf")
    out = torch.zeros(5, sum(OUTPUTS))
    wrapper_for(ids).add_lora_linear(out, seeded(5, INPUTS, seed=1), a, b, 1.0, OUTPUTS)
    assert torch.isfinite(out[:4]).all()


def test_a_slot_that_changes_hands_is_read_again() -> None:
    """The matrices of a slot are read anew as soon as it holds another adapter."""
    ids = [101, 102]
    a, b = stacks()
    x = seeded(2, INPUTS, seed=1)
    wrapper = wrapper_for(ids)
    wrapper.add_lora_linear(torch.zeros(2, sum(OUTPUTS)), x, a, b, 1.0, OUTPUTS)
    for tensor in b:
        tensor[0] += 1.0
    moved: list[int | None] = [106, *IDS[1:]]
    update(wrapper, [106, 102], moved)
    out = torch.zeros(2, sum(OUTPUTS))
    wrapper.add_lora_linear(out, x, a, b, 1.0, OUTPUTS)
    assert torch.allclose(out, expected(ids, x, a, b, torch.zeros_like(out)), atol=1e-4)


def test_an_adapter_that_is_loaded_again_is_read_again() -> None:
    """In the same slot, by the same tokens, of which vLLM tells once: it served zeros for what it could not read."""
    a, b = stacks()
    whole = [tensor[0].clone() for tensor in a]
    for tensor in a:
        tensor[0] = 0.0
    x, wrapper = seeded(1, INPUTS, seed=1), wrapper_for([101])
    wrapper.add_lora_linear(torch.zeros(1, sum(OUTPUTS)), x, a, b, 1.0, OUTPUTS)
    forget(101)
    for tensor, values in zip(a, whole, strict=True):
        tensor[0] = values
    out = torch.zeros(1, sum(OUTPUTS))
    wrapper.add_lora_linear(out, x, a, b, 1.0, OUTPUTS)
    assert torch.allclose(out, expected([101], x, a, b, torch.zeros_like(out)), atol=1e-4)
    assert out.abs().max() > 0


def test_the_scale_is_applied_once() -> None:
    """The interface's scale is applied, though vLLM passes 1."""
    a, b = stacks()
    x = seeded(1, INPUTS, seed=1)
    single, double = torch.zeros(1, sum(OUTPUTS)), torch.zeros(1, sum(OUTPUTS))
    wrapper = wrapper_for([101])
    wrapper.add_lora_linear(single, x, a, b, 1.0, OUTPUTS)
    wrapper.add_lora_linear(double, x, a, b, 2.0, OUTPUTS)
    assert torch.allclose(double, 2 * single, atol=1e-5)


def test_an_adapter_with_many_tokens_gets_products_of_its_own() -> None:
    """A prompt beside single decode steps makes one group, and the rest shares a batched pair of products."""
    slot_of = {101: 0, 102: 1, 103: 2, 104: 4, 105: 5}
    rows = RowGroups.of([101] * MIN_ROWS + [102, 103, 102, 104, 105], slot_of, SLOTS)
    assert rows.groups == [(0, slice(0, MIN_ROWS))]
    assert rows.shared is not None
    assert rows.shared.rows == slice(MIN_ROWS, MIN_ROWS + 5)
    assert rows.shared.filling_SM[rows.shared.places_R].tolist() == [*range(MIN_ROWS, MIN_ROWS + 5)]


def test_few_adapters_in_a_batch_leave_the_other_slots_unread() -> None:
    """Products of all slots are worth it from several adapters on; before, each has its own."""
    rows = RowGroups.of([101, 102, 101], {101: 0, 102: 1}, SLOTS)
    assert rows == RowGroups([(0, rows.groups[0][1]), (1, slice(1, 2))])


def test_a_batch_of_the_base_alone_costs_nothing() -> None:
    """A batch of the base model and the zero adapter has no groups."""
    rows = RowGroups.of([0, ZERO_LORA_INT_ID], {ZERO_LORA_INT_ID: 3}, SLOTS)
    assert rows == RowGroups()


def test_vllm_takes_it_on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The platform names heed's class after `install`."""
    from vllm.platforms.cpu import CpuPlatform
    from vllm.utils.import_utils import resolve_obj_by_qualname

    monkeypatch.setattr(CpuPlatform, "get_punica_wrapper", CpuPlatform.get_punica_wrapper)
    install()
    assert resolve_obj_by_qualname(CpuPlatform.get_punica_wrapper()) is GroupedPunicaWrapper
