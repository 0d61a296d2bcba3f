"""Expanded tensors whose gradient is larger than anything in forward, and those where it is not."""

import pytest

from tests.cells import a_notebook
from tests.fakes import a_backward, a_pattern, a_run, a_witness
from torch_inspector.pitfalls.memory.expand_backward_materialises import check

SETUP = """
import torch
from torch import nn
torch.manual_seed(0)
row = torch.randn(1, 150_000, requires_grad=True)
table = torch.randn(1, 3000, 50, requires_grad=True)
numbers = torch.randint(0, 3000, (20, 4, 1)).expand(-1, -1, 50)
"""
FOUND = {
    "means of rows": "row.expand(20, -1).mean(1).pow(2).sum().backward()",
    "largest": "row.expand(20, -1).amax(1).sum().backward()",
    "expand_as": "row.expand_as(torch.empty(20, 150_000)).norm(dim=1).sum().backward()",
    "broadcast_to": "loss = torch.broadcast_to(row, (20, 150_000)).mean()\nloss.backward()",
    "gather": "table.expand(20, -1, -1).gather(1, numbers).sum().backward()",
    "a slice": "row.expand(20, -1)[:, :40].tanh().sum().backward()",
}
SILENT = {
    "reduced first": "row.mean(1).expand(20).pow(2).sum().backward()",
    "a sum": "row.expand(20, -1).sum(1).pow(2).sum().backward()",
    "a product": "(row.expand(20, -1) * torch.rand(20, 1)).mean().backward()",
    "broadcasting": "(row * torch.rand(20, 1)).mean(1).sum().backward()",
    "few repetitions": "row.expand(5, -1).mean(1).pow(2).sum().backward()",
    "small": "row[:, :1000].expand(20, -1).mean(1).pow(2).sum().backward()",
    "a loss of pairs": "nn.functional.mse_loss(row.expand(20, -1), torch.rand(20, 150_000)).backward()",
    "joined": "torch.cat([row.expand(20, -1), torch.rand(20, 9)], dim=1).mean().backward()",
    "attention": "q = torch.randn(20, 4, 50)\n(q @ table.expand(20, -1, -1).mT).softmax(-1).amax().backward()",
    "no gradient": "w = torch.ones(20, requires_grad=True)\n(row.detach().expand(20, -1).mean(1) * w).sum().backward()",
}


def found(code):
    with a_notebook(min_bytes=0) as notebook:
        notebook.run(SETUP)
        run = notebook.run(code)
        assert notebook.errors == [None, None]
        return [one for one in run.findings if one.slug == "expand-backward-materialises"]


@pytest.mark.parametrize("name", FOUND)
def test_the_gradient_has_the_full_size(name):
    (finding,) = found(FOUND[name])
    assert (finding.line, finding.severity) == (1, "hint")
    assert "20 times" in finding.message
    assert "11.4 MB" in finding.message


@pytest.mark.parametrize("name", SILENT)
def test_expands_that_cost_nothing_more(name):
    assert found(SILENT[name]) == []


def test_each_expand_is_told_of_once():
    shapes = ((40, 1000, 100), (1, 1000, 100), (40, 8, 100))
    seen = a_pattern("expanded", nodes=("GatherBackward0", "ExpandBackward0"), shapes=shapes, nbytes=16 << 20)
    run = a_run(a_backward(witness=a_witness(seen)), a_backward(line=5, witness=a_witness(seen)))
    (finding,) = check(run)
    assert finding.subject == "loss"
    assert "before it is expanded" in finding.fix
    assert list(check(a_run(a_backward(witness=a_witness(seen)), min_nbytes=32 << 20))) == []
