"""engine.worker.punica: every row of a batch gets the product of its own adapter only."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.adapter_ref import ZERO_LORA_INT_ID
from engine.worker.punica import MIN_ROWS, GroupedPunicaWrapper, RowGroups, install, make_room
from engine.worker.slot_matrices import MIN_RANK

SLOTS, RANK, INPUTS, OUTPUTS = 7, 3, 6, (4, 2)
MOST_RANK = 32
IDS = [101, 102, 103, ZERO_LORA_INT_ID, 104, 105, None]  # adapter id by slot


def seeded(*shape: int, seed: int) -> Any:
    """Return a random tensor."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def values(seed: int = 0) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return A and B of all slots for a fused layer of two parts."""
    a = tuple(seeded(SLOTS, 1, RANK, INPUTS, seed=seed + i) for i in range(2))
    b = tuple(seeded(SLOTS, 1, n, RANK, seed=seed + 10 + i) for i, n in enumerate(OUTPUTS))
    return a, b


def adopted(
    wrapper: GroupedPunicaWrapper, a: tuple[Any, ...], b: tuple[Any, ...], dtype: torch.dtype = torch.float32
) -> Any:
    """Return a layer of vLLM's whose slots the wrapper keeps, with these values in them."""
    layer = SimpleNamespace(
        lora_a_stacked=tuple(torch.zeros(SLOTS, 1, MOST_RANK, INPUTS, dtype=dtype) for _ in OUTPUTS),
        lora_b_stacked=tuple(torch.zeros(SLOTS, 1, n, MOST_RANK, dtype=dtype) for n in OUTPUTS),
    )
    wrapper.adopt(layer)
    for stack, part in zip(layer.lora_a_stacked, a, strict=True):
        stack[:, :, :RANK].copy_(part)
    for stack, part in zip(layer.lora_b_stacked, b, strict=True):
        stack[..., :RANK].copy_(part)
    return layer


def add(wrapper: GroupedPunicaWrapper, layer: Any, y: Any, x: Any, scale: float = 1.0) -> None:
    """Have a layer add its adapters' products, as vLLM does."""
    wrapper.add_lora_linear(y, x, layer.lora_a_stacked, layer.lora_b_stacked, scale, OUTPUTS)


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
    st.lists(
        st.tuples(
            st.sampled_from([0, 101, 102, 103, 104, 105, ZERO_LORA_INT_ID]), st.integers(1, 9) | st.just(MIN_ROWS)
        ),
        max_size=8,
    )
)
def test_every_row_gets_its_own_adapter(runs: list[tuple[int, int]]) -> None:
    """Any mixture of adapters, the base and the zero adapter gives the result of the formula."""
    ids = [lora_id for lora_id, length in runs for _ in range(length)] or [101]
    x, y = seeded(len(ids), INPUTS, seed=1), seeded(len(ids), sum(OUTPUTS), seed=2)
    a, b = values()
    out, wrapper = y.clone(), wrapper_for(ids)
    add(wrapper, adopted(wrapper, a, b), out, x)
    assert torch.allclose(out, expected(ids, x, a, b, y), atol=1e-4)


def test_a_base_row_among_adapter_rows_is_left_exactly_as_it_is() -> None:
    """A row of the base model stays as it is; vLLM's own wrapper changes it (vLLM pull request 48421)."""
    ids = [101, 0, 102, ZERO_LORA_INT_ID, 103]
    y = seeded(len(ids), sum(OUTPUTS), seed=2)
    out, wrapper = y.clone(), wrapper_for(ids)
    add(wrapper, adopted(wrapper, *values()), out, seeded(len(ids), INPUTS, seed=1))
    assert torch.equal(out[[1, 3]], y[[1, 3]])
    assert not torch.allclose(out[[0, 2, 4]], y[[0, 2, 4]])


def test_values_that_are_no_numbers_in_another_slot_stay_there() -> None:
    """An adapter of enormous values in the batch spoils only its own rows."""
    ids = [101, 102, 104, 105, 103]
    a, b = values()
    for tensor in a:
        tensor[2] = float("inf")
    out, wrapper = torch.zeros(5, sum(OUTPUTS)), wrapper_for(ids)
    add(wrapper, adopted(wrapper, a, b), out, seeded(5, INPUTS, seed=1))
    assert torch.isfinite(out[:4]).all()


def test_what_vllm_writes_is_what_is_multiplied() -> None:
    """A slot that changes hands needs no word to the wrapper."""
    ids = [101, 102]
    a, b = values()
    x, wrapper = seeded(2, INPUTS, seed=1), wrapper_for(ids)
    layer = adopted(wrapper, a, b)
    add(wrapper, layer, torch.zeros(2, sum(OUTPUTS)), x)
    for stack, part in zip(layer.lora_b_stacked, b, strict=True):
        part[0] += 1.0
        stack[0, 0, :, :RANK].copy_(part[0, 0])
    update(wrapper, [106, 102], [106, *IDS[1:]])
    out = torch.zeros(2, sum(OUTPUTS))
    add(wrapper, layer, out, x)
    assert torch.allclose(out, expected(ids, x, a, b, torch.zeros_like(out)), atol=1e-4)


def test_room_for_a_greater_rank_is_made_in_every_layer() -> None:
    """The adapters in the slots stay, and vLLM writes into the new stacks."""
    a, b = values()
    x, wrapper = seeded(1, INPUTS, seed=1), wrapper_for([102])
    layers = [adopted(wrapper, a, b), adopted(wrapper, *values(seed=50))]
    make_room(MOST_RANK)
    out = torch.zeros(1, sum(OUTPUTS))
    add(wrapper, layers[0], out, x)
    assert torch.allclose(out, expected([102], x, a, b, torch.zeros_like(out)), atol=1e-4)
    for layer in layers:
        assert layer.lora_a_stacked[0].shape == (SLOTS, 1, MOST_RANK, INPUTS)
        assert [part.shape for part in layer.lora_b_stacked] == [(SLOTS, 1, n, MOST_RANK) for n in OUTPUTS]
    layers[0].lora_b_stacked[0][1, 0, :, RANK] = 1.0
    layers[0].lora_a_stacked[0][1, 0, RANK] = 1.0
    wider = torch.zeros(1, sum(OUTPUTS))
    add(wrapper, layers[0], wider, x)
    assert torch.allclose((wider - out)[0, : OUTPUTS[0]], x.sum().expand(OUTPUTS[0]), atol=1e-4)


def test_the_scale_is_applied_once() -> None:
    """The interface's scale is applied, though vLLM passes 1."""
    x = seeded(1, INPUTS, seed=1)
    single, double = torch.zeros(1, sum(OUTPUTS)), torch.zeros(1, sum(OUTPUTS))
    wrapper = wrapper_for([101])
    layer = adopted(wrapper, *values())
    add(wrapper, layer, single, x)
    add(wrapper, layer, double, x, scale=2.0)
    assert torch.allclose(double, 2 * single, atol=1e-5)


def test_an_adapter_with_many_tokens_gets_products_of_its_own() -> None:
    """A prompt beside single decode steps makes one group; every other row is by itself."""
    slot_of = {101: 0, 102: 1, 103: 2, 104: 4, 105: 5}
    rows = RowGroups.of([101] * MIN_ROWS + [102, 103, 102, 104, 105], slot_of)
    assert rows.groups == [(0, slice(0, MIN_ROWS))]
    assert rows.lone is not None
    assert rows.lone.rows == slice(MIN_ROWS, MIN_ROWS + 5)
    assert rows.lone.slots_R.tolist() == [1, 2, 1, 4, 5]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_row_by_itself_is_the_same_whatever_else_is_in_the_batch(dtype: torch.dtype) -> None:
    """To the bit: what its adapter adds does not depend on who else is answered."""
    ids = [101, 102, 101, 105, 103]
    a, b = values()
    x = seeded(len(ids), INPUTS, seed=1).to(dtype)
    together, wrapper = torch.zeros(len(ids), sum(OUTPUTS), dtype=dtype), wrapper_for(ids)
    layer = adopted(wrapper, a, b, dtype)
    add(wrapper, layer, together, x)
    for row, lora_id in enumerate(ids):
        alone = torch.zeros(1, sum(OUTPUTS), dtype=dtype)
        update(wrapper, [lora_id])
        add(wrapper, layer, alone, x[row : row + 1])
        assert torch.equal(alone[0], together[row])


def test_a_batch_of_the_base_alone_costs_nothing() -> None:
    """A batch of the base model and the zero adapter has no groups."""
    rows = RowGroups.of([0, ZERO_LORA_INT_ID], {ZERO_LORA_INT_ID: 3})
    assert rows == RowGroups()


def test_vllm_takes_it_on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The platform names heed's class after `install`, and linear layers give it their slots."""
    from vllm.lora.layers.base_linear import BaseLinearLayerWithLoRA
    from vllm.platforms.cpu import CpuPlatform
    from vllm.utils.import_utils import resolve_obj_by_qualname

    monkeypatch.setattr(CpuPlatform, "get_punica_wrapper", CpuPlatform.get_punica_wrapper)
    monkeypatch.setattr(BaseLinearLayerWithLoRA, "set_mapping", BaseLinearLayerWithLoRA.set_mapping)
    install()
    assert resolve_obj_by_qualname(CpuPlatform.get_punica_wrapper()) is GroupedPunicaWrapper
    layer = SimpleNamespace(
        lora_a_stacked=(torch.zeros(SLOTS, 1, MOST_RANK, INPUTS),),
        lora_b_stacked=(torch.zeros(SLOTS, 1, 4, MOST_RANK),),
    )
    wrapper = wrapper_for([101])
    BaseLinearLayerWithLoRA.set_mapping(layer, wrapper)
    assert layer.punica_wrapper is wrapper
    assert layer.lora_a_stacked[0].shape == (SLOTS, 1, MIN_RANK, INPUTS)
