"""engine.training.graphs: passes recorded by shape, with a recorder that computes them anew where there is no GPU."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from engine.training import graphs
from engine.training.graphs import Graphs


class Rerun:
    """A recording that does its work again in the places it had, as a graph does; made by doing it once."""

    def __init__(self, work: Callable[[], Any], _pool: Any) -> None:
        """Do the work, of which a gradient is zero then."""
        self._work = work
        self._has_gradients = torch.is_grad_enabled()
        self.result = work()

    def replay(self) -> None:
        """Do it on what stands in its inputs now."""
        with torch.set_grad_enabled(self._has_gradients):
            self.result = self._work()


class Scale:
    """A pass with one weight, which counts how often it was computed."""

    def __init__(self) -> None:
        self.weight = torch.tensor([3.0], requires_grad=True)
        self.weight.grad = torch.zeros(1)
        self.runs = 0

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        self.runs += 1
        return self.weight * x + y


def looked(found: Graphs, scale: Scale, x: Tensor, name: str = "scale") -> Tensor:
    """Return the result of a pass without a gradient."""
    with torch.no_grad():
        return found.run(name, scale, (x, x), scale.weight)


def test_a_pass_is_recorded_the_second_time_and_replayed_with_new_values() -> None:
    """The first time it is computed as it is; a result stays what it was when another pass follows."""
    found, scale = Graphs(Rerun), Scale()
    results = [looked(found, scale, torch.full((2,), float(value))) for value in range(4)]
    assert [result.tolist() for result in results] == [[4.0 * value] * 2 for value in range(4)]
    assert len(found._known) == 1


def test_shapes_and_names_have_graphs_of_their_own() -> None:
    """And so have passes that are sent back; what came once has none."""
    found, scale = Graphs(Rerun), Scale()
    for _ in range(2):
        looked(found, scale, torch.ones(2))
        looked(found, scale, torch.ones(3))
        looked(found, scale, torch.ones(3), "other")
        found.run("scale", scale, (torch.ones(2), torch.ones(2)), scale.weight)
    looked(found, scale, torch.ones(4))
    assert len(found._known) == 4


def test_gradients_go_back_to_what_it_was_computed_with() -> None:
    """Each time those of its own inputs; recording adds none."""
    found, scale = Graphs(Rerun), Scale()
    assert scale.weight.grad is not None
    for value in range(1, 4):
        x = torch.tensor([float(value), 2.0])
        result = found.run("scale", scale, (x, x), scale.weight)
        assert result.tolist() == [4.0 * value, 8.0]
        before = float(scale.weight.grad)
        result.backward(torch.tensor([1.0, 10.0]))
        assert float(scale.weight.grad) - before == value + 20.0


def test_the_graphs_that_were_used_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """And shapes that came once are forgotten in the end, so that neither grows without bound."""
    monkeypatch.setattr(graphs, "MOST_GRAPHS", 2)
    monkeypatch.setattr(graphs, "MOST_SHAPES", 3)
    found, scale = Graphs(Rerun), Scale()
    for size in (1, 2, 1, 3):
        for _ in range(2):
            looked(found, scale, torch.ones(size))
    assert [key[-1] for key in found._known] == [torch.Size([1]), torch.Size([3])]
    for size in range(10, 20):
        looked(found, scale, torch.ones(size))
    assert len(found._seen) == 3
    runs = scale.runs
    looked(found, scale, torch.ones(1))
    assert scale.runs == runs + 1


def test_what_cannot_be_recorded_is_computed_as_it_is() -> None:
    """And not tried again; its result and its gradients are right all the same."""
    tried = 0

    def record(_work: Callable[[], Any], _pool: Any) -> Rerun:
        nonlocal tried
        tried += 1
        raise torch.OutOfMemoryError("no room for a graph")

    found, scale = Graphs(record), Scale()
    assert scale.weight.grad is not None
    for _ in range(4):
        x = torch.tensor([2.0])
        result = found.run("scale", scale, (x, x), scale.weight)
        assert result.tolist() == [8.0]
        result.sum().backward()
    assert tried == 1
    assert float(scale.weight.grad) == 8.0
