"""engine.training.adapted_linear: PEFT's own layer, in one operation."""

import pytest
import torch
from peft import LoraConfig, get_peft_model
from torch import Tensor, nn

from engine.training import adapted_linear

ROWS, INPUTS, OUTPUTS = (3, 5), 8, 6


def wrapped(dtype: torch.dtype = torch.float32) -> nn.Module:
    """Return a PEFT model over one linear layer, its adapter in float32 and not zero."""
    torch.manual_seed(0)
    inner = nn.Sequential()
    inner.add_module("linear", nn.Linear(INPUTS, OUTPUTS).to(dtype).requires_grad_(False))
    model = get_peft_model(inner, LoraConfig(r=2, lora_alpha=4, target_modules=["linear"]), adapter_name="one")
    layer = model.base_model.model.linear
    nn.init.normal_(layer.lora_B["one"].weight)
    return model


def passed(model: nn.Module, x: Tensor) -> list[Tensor]:
    """Return the output and the gradients of x, A and B."""
    layer = model.base_model.model.linear
    x = x.clone().requires_grad_()
    a, b = layer.lora_A["one"].weight, layer.lora_B["one"].weight
    a.grad = b.grad = None
    out = model(x)
    (out * torch.arange(out.numel()).view_as(out)).sum().backward()
    return [out, x.grad, a.grad, b.grad]


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 3e-2)])
def test_values_and_gradients_are_peft_s(dtype: torch.dtype, tolerance: float) -> None:
    """To rounding; values and gradients of the adapter stay float32."""
    model, x = wrapped(dtype), torch.randn(*ROWS, INPUTS, dtype=dtype)
    wanted = passed(model, x)
    adapted_linear.install(model.base_model.model.linear)
    found = passed(model, x)
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == other.dtype
        scale = float(other.abs().max())
        assert float((one - other).abs().max()) <= tolerance * scale
    assert found[2].dtype == found[3].dtype == torch.float32


def test_without_an_active_adapter_it_is_the_base() -> None:
    """As PEFT has it."""
    model, x = wrapped(), torch.randn(*ROWS, INPUTS)
    layer = model.base_model.model.linear
    adapted_linear.install(layer)
    with model.disable_adapter():
        assert torch.equal(model(x), layer.base_layer(x))
    assert not torch.equal(model(x), layer.base_layer(x))
