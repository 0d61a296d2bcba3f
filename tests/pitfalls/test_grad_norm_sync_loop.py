"""Norms of gradients that are read one by one."""

import pytest

from tests.cells import a_notebook

SETUP = """
import torch
from torch import nn
net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
net(torch.ones(2, 3)).sum().backward()
"""


def findings(source):
    with a_notebook() as notebook:
        for cell in (SETUP, source):
            notebook.run(cell)
        assert all(error is None for error in notebook.errors)
        return [(f.line, f.severity) for f in notebook.runs[-1].findings if f.slug == "grad-norm-sync-loop"]


FUNCTION = """
def grad_norm(model):
    total = 0
    for p in model.parameters():
        if p.grad is not None:
            one = p.grad.detach().data.norm(2)
            total += one.item() ** 2
    return total ** 0.5
print(grad_norm(net))
"""
FOUND = {
    "a function": (FUNCTION, 7),
    "a sum": ("norm = sum(p.grad.norm().item() ** 2 for p in net.parameters()) ** 0.5", 1),
    "by name": ("t = 0\nfor n, p in net.named_parameters():\n    t += float(torch.norm(p.grad)) ** 2", 3),
}
QUIET = {
    "one read": "norm = torch.stack([p.grad.norm() for p in net.parameters()]).norm().item()",
    "by layer": "norms = {n: p.grad.norm().item() for n, p in net.named_parameters()}",
    "a list": "norms = [p.grad.norm().item() for p in net.parameters()]",
    "library": "norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0).item()",
    "weights": "total = sum(p.norm().item() ** 2 for p in net.parameters())",
    "counted": "count = 0\nfor p in net.parameters():\n    count += p.grad.numel()\n    p.grad.norm()",
}


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    source, line = FOUND[name]
    assert findings(source) == [(line, "hint")]


@pytest.mark.parametrize("name", QUIET)
def test_silent(name):
    assert findings(QUIET[name]) == []


@pytest.mark.parametrize(
    "code",
    [
        "total = 0\nfor n, p in net.named_parameters():\n    total += float(p.grad.norm()) ** 2\ntotal = total ** 0.5",
        "total = sum(p.grad.norm().item() ** 2 for p in net.parameters()) ** 0.5",
        "total = sum(p.grad.norm().item() for p in net.parameters() if p.grad is not None)",
        "total = sum([p.grad.norm().item() for p in net[1].parameters()])",
    ],
)
def test_the_fix_gives_the_same_number(code):
    with a_notebook() as notebook:
        notebook.run(SETUP)
        (finding,) = notebook.run(code).findings
        notebook.run(f"{finding.fix}\nassert abs(norm - total) < 1e-5, (norm, total)")
        assert notebook.errors == [None] * 3
