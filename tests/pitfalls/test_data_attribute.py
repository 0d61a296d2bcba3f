"""Changes through `.data` and when they are made."""
# ruff: noqa: E501 - programs of several lines, each as one string, so that the table can be read

import ast
from unittest import mock

import pytest

from tests.cells import findings_in
from torch_inspector.observe import data_edits

START = """
import io

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
net, x = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)), torch.rand(8, 3)
w = torch.ones(3, requires_grad=True)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""
FOUND = {
    "tensor": (["y = (x * w).exp().sum()\nw.data.mul_(5)\ny.backward()"], 2, "w", "(line 1)"),
    "augmented": (["y = (x * w).exp().sum()\nw.data *= 5\ny.backward()"], 2, "w", "`w.data *= 5`"),
    "element": (["y = (x * w).exp().sum()\nw.data[0] = 5\ny.backward()"], 2, "w", "w"),
    "parameters in a function": (["def step():\n    loss = net(x).pow(2).mean()\n    for p in net.parameters():\n        p.data.clamp_(-0.1, 0.1)\n    loss.backward()", "step()"], 4, "p", "before backward() (line 5)"),
    "a result": (["for _ in range(2):\n    h = torch.sigmoid(x * w)\n    h.data.clamp_(0.2, 0.8)\n    loss = (h - 1).pow(2).mean()\n    loss.backward()"], 3, "h", "`sigmoid` (line 2)"),
    "a result in one step": (["h = w.exp()\nh.data *= 2\nh.sum().backward()"], 2, "h", "`exp` (line 1)"),
    "one weight in a loop": (["for _ in range(2):\n    loss = net(x).pow(2).mean()\n    net[0].bias.data.zero_()\n    opt.zero_grad()\n    loss.backward()"], 3, "net[0].bias", "net[0].bias.data.zero_()"),
}  # fmt: skip
SILENT = {
    "a result without history": "h = torch.sigmoid(x)\nh.data.clamp_(0.2, 0.8)\n(h * w).sum().backward()",
    "a result that is not kept": "h = torch.relu(x * w)\nh.data.clamp_(0.2, 0.8)\nh.sum().backward()",
    "a result with a new tensor": "h = torch.sigmoid(x * w)\nh.data = h.data.round()\nh.sum().backward()",
    "a result behind a condition": "h = torch.sigmoid(x * w)\nif h.isnan().any():\n    h.data.zero_()\nh.sum().backward()",
    "a result that is only shown": "h = torch.sigmoid(x * w)\nloss = (x * w).sum()\nh.data.round_()\nloss.backward()",
    "before its pass": "loss = net(x).mean()\nw.data.mul_(2)\ntotal = loss + (x * w).exp().sum()\ntotal.backward()",
    "after backward": "y = (x * w).exp().sum()\ny.backward()\nw.data.mul_(5)",
    "first values": "w.data.fill_(2)\n(x * w).sum().backward()",
    "clipped critic": "for _ in range(2):\n    loss = net(x).mean()\n    opt.zero_grad()\n    loss.backward()\n    opt.step()\n    for p in net.parameters():\n        p.data.clamp_(-1, 1)",
    "gradient": "loss = net(x).mean()\nif w.grad is not None:\n    w.grad.data.zero_()\nloss.backward()",
    "read": "loss = net(x).mean()\nshown = loss.data * 2\nloss.backward()",
    "another tensor": "shadow = torch.zeros(3)\nloss = net(x).mean()\nshadow.data.add_(1)\nloss.backward()",
    "average of another model": "import copy\nslow = copy.deepcopy(net)\nloss = net(x).mean()\nfor s, p in zip(slow.parameters(), net.parameters()):\n    s.data.mul_(0.9).add_(p.data, alpha=0.1)\nloss.backward()",
    "sharpness": "loss = net(x).mean()\nloss.backward()\nfor p in net.parameters():\n    p.data.add_(p.grad)\nloss = net(x).mean()\nloss.backward()\nfor p in net.parameters():\n    p.data.sub_(p.grad)",
}  # fmt: skip


def found(cells):
    everything = findings_in(START, *cells)
    return [finding for finding in everything if finding.slug == "data-attribute"], everything


@pytest.mark.parametrize("name", FOUND)
def test_found_with_names(name):
    cells, line, subject, mentions = FOUND[name]
    (finding,), everything = found(cells)
    assert (finding.line, finding.subject) == (line, subject)
    assert mentions in finding.message
    assert [one.slug for one in everything if one.severity == "error" and one is not finding] == []


def test_the_fix_gives_the_result_a_new_value():
    (finding,), _ = found(["h = torch.sigmoid(x * w)\nh.data.clamp_(0.2, 0.8)\nh.sum().backward()"])
    assert finding.fix.startswith("h = h.clamp(0.2, 0.8)  #")


@pytest.mark.parametrize("name", SILENT)
def test_silent(name):
    assert found([SILENT[name]])[0] == []


def test_each_change_is_looked_at_once_however_many_backward_calls_follow():
    steps = ["y = (x * w).sum()\nw.data.mul_(5)\ny.backward()"] * 20
    with mock.patch.object(data_edits, "_owners", wraps=data_edits._owners) as owners:
        assert len(data_edits.data_edits(ast.parse("\n".join(steps)), 0)) == 20
    assert owners.call_count == 20


def test_a_change_that_comes_too_early_is_written_for_later():
    made = "import torch\nx, w = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)\n"
    (finding,) = findings_in(f"{made}y = (x * w).sum()\nw.data.mul_(5)\ny.backward()", slug="data-attribute")
    assert finding.fix == "with torch.no_grad():  # after backward()\n    w.mul_(5)"
