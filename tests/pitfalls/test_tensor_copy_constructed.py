"""Copies on the way to the loss."""
# ruff: noqa: E501 - programs of several lines, each as one string, so that the table can be read

import pytest

from tests.cells import findings_in

START = """
import io

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
net, x = nn.Linear(3, 1), torch.rand(8, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""
FOUND = {
    "list of losses": (["losses = [net(x).mean(), net(x).exp().mean()]\ntotal = torch.tensor(losses).sum()\ntotal.backward()"], 2, "losses", "`torch.tensor(losses)`"),
    "two in a function": (["def step(batch):\n    a, b = net(batch).mean(), net(batch).exp().mean()\n    loss = torch.tensor([a, b]).sum()\n    loss.backward()", "step(x)"], 3, "a", "[a, b]"),
    "made to want a gradient": (["for _ in range(2):\n    loss = net(x).pow(2).mean()\n    loss = torch.tensor(loss, requires_grad=True)\n    loss.backward()"], 3, "loss", "reaches no parameter"),
    "of an item": (["class Trainer:\n    def step(self, batch):\n        loss = torch.tensor(net(batch).mean().item(), requires_grad=True)\n        loss.backward()\n\n\nTrainer().step(x)"], 3, "net(batch).mean().item()", "torch.tensor"),
    "beside the rest": (["main, aux = net(x).pow(2).mean(), net(x).abs().mean()\nloss = main + torch.tensor(aux)\nloss.backward()"], 2, "aux", "does not go past it"),
}  # fmt: skip
SILENT = {
    "targets": "prices = [1.0] * 8\ny = torch.tensor(prices)\nloss = (net(x).squeeze(1) - y).pow(2).mean()\nloss.backward()",
    "report": "loss = net(x).mean()\nprint(torch.tensor([loss, loss]).mean())\nloss.backward()",
    "stack": "loss = torch.stack([net(x).mean(), net(x).exp().mean()]).sum()\nloss.backward()",
    "detached": "goal = net(x).detach()\ny = torch.tensor(goal.tolist())\nloss = (net(x) - y).pow(2).mean()\nloss.backward()",
    "leaf": "w = torch.tensor(2.0, requires_grad=True)\n(w * 3).backward()",
    "hyperparameter": "scale = 0.5\nfactor = torch.tensor(scale)\nloss = factor * net(x).mean()\nloss.backward()",
    "another error": "x.sum().backward()",
}  # fmt: skip


def found(cells):
    everything = findings_in(START, *cells)
    return [finding for finding in everything if finding.slug == "tensor-copy-constructed"], everything


@pytest.mark.parametrize("name", FOUND)
def test_found_with_names(name):
    cells, line, subject, mentions = FOUND[name]
    (finding,), everything = found(cells)
    assert (finding.line, finding.subject) == (line, subject)
    assert mentions in finding.message
    assert [one.slug for one in everything if one.severity == "error" and one is not finding] == []


@pytest.mark.parametrize("name", SILENT)
def test_silent(name):
    assert found([SILENT[name]])[0] == []


def test_what_left_torch_inside_a_function_is_to_go_before_the_copy():
    setup = (
        "import numpy as np, torch\nfrom torch import nn\nnet, x = nn.Linear(4, 1), torch.rand(8, 4)\n"
        "def score(out):\n    out = out.detach().numpy()\n    return np.abs(out).mean()"
    )
    code = "loss = torch.tensor(score(net(x)), requires_grad=True)\nloss.backward()"
    (finding,) = findings_in(setup, code, slug="tensor-copy-constructed")
    assert "`out.detach().numpy()` (line 5 of cell 1)" in finding.message
    assert finding.fix.startswith("use functions of torch in place of out.detach().numpy()")
