"""Shapes of results where torch does not tell them: never a wrong one."""

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from torch_inspector.observe import private, saved, told_shapes

WANTED = {
    "classifier": lambda x: F.cross_entropy(nn.Linear(4, 5)(x).softmax(1), torch.zeros(6, dtype=torch.long)),
    "stretched": lambda x: F.mse_loss(nn.Linear(4, 1)(x).expand(6, 6), torch.rand(6, 6)),
    "by hand": lambda x: ((nn.Linear(4, 1)(x) - torch.rand(6)) ** 2).mean(),
    "no mean": lambda x: F.huber_loss(x.tanh(), torch.rand(6, 4), reduction="none").sum(),
    "moved": lambda x: (x.T[:, :3].unsqueeze(1).abs() @ torch.rand(3, 2)).reshape(-1).sqrt().sum(),
    "several results": lambda x: torch.cat([one.exp() for one in x.split(2)]).max(0).values.log().mean(),
    "images": lambda x: nn.Conv2d(1, 2, 3)(x.view(1, 1, 6, 4).clamp(0, 1)).relu().flatten().sum(),
}


@pytest.mark.parametrize("name", WANTED)
def test_no_shape_is_another_than_the_real_one(name, monkeypatch):
    blocks = saved.HookedBlocks()
    blocks.install()
    monkeypatch.setattr(saved, "hooked", blocks)
    real = {}

    def keep(function, args, kwargs):
        result = function(*args, **kwargs)
        for one in (
            [result] if isinstance(result, torch.Tensor) else result if isinstance(result, (tuple, list)) else []
        ):
            if isinstance(one, torch.Tensor) and one.grad_fn is not None and one.output_nr == 0:
                real[one.grad_fn] = tuple(one.shape)
        return result

    class Watch(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, _, args=(), kwargs=None):
            return keep(function, args, kwargs or {})

    try:
        with Watch():
            loss = WANTED[name](torch.rand(6, 4, requires_grad=True) * 1)
        noted: dict[Any, tuple[int, ...]] = {}
        monkeypatch.setattr(private, "output_shape", lambda node, number=0: None if number else noted.get(node))
        monkeypatch.setattr(private, "note_shape", noted.__setitem__)
        monkeypatch.setattr(told_shapes, "_tells", lambda _: False)
        told_shapes.note_shapes(_behind(loss.grad_fn))
    finally:
        blocks.remove()
    assert len(noted.keys() & real.keys()) > 1
    assert {node: noted[node] for node in noted.keys() & real.keys()} == {
        node: real[node] for node in noted.keys() & real.keys()
    }


def _behind(node):
    found, stack = {node}, [node]
    while stack:
        for parent, _ in stack.pop().next_functions:
            if parent is not None and parent not in found:
                found.add(parent)
                stack.append(parent)
    return found
