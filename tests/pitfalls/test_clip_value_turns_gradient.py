"""What clipping by value does is told in a cell that asks, and nowhere else."""

import pytest

from tests.cells import a_notebook

SETUP = """\
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Linear(6, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step(clip, limit=0.5):
    optimizer.zero_grad()
    model(torch.randn(8, 6)).pow(2).mean().backward()
    clip(model.parameters(), limit)
    optimizer.step()"""
CLIP = "nn.utils.clip_grad_value_(model.parameters(), 0.5)"
BACKWARD = "model(torch.randn(8, 6)).pow(2).mean().backward()\n"


def found(*cells):
    with a_notebook() as notebook:
        for source in (SETUP, *cells):
            notebook.run(source)
        assert notebook.errors == [None] * (len(cells) + 1)
        return [(cell, line, sev) for cell, slug, line, sev in notebook.findings() if slug.startswith("clip-value")]


@pytest.mark.parametrize("name", ["nn.utils.clip_grad_value_", "torch.nn.utils.clip_grad_value_"])
def test_told_where_a_cell_asks(name):
    cell = f"%%torchcheck\n{BACKWARD}{name}(model.parameters(), 0.5)\noptimizer.step()"
    assert found(cell) == [(1, 3, "hint")]


@pytest.mark.parametrize(
    "cell",
    [
        f"{BACKWARD}{CLIP}\noptimizer.step()",
        f"%%torchcheck\n{BACKWARD}{CLIP.replace('value', 'norm')}\noptimizer.step()",
        f"%%torchcheck\n{BACKWARD}{CLIP}",
        "step(nn.utils.clip_grad_value_)",
        "%%torchcheck\nstep(nn.utils.clip_grad_norm_)",
    ],
)
def test_silent_elsewhere(cell):
    assert found(cell) == []
