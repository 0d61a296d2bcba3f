"""Losses that keep the sign of each difference, and objectives that are meant to have no lowest value."""

import pytest

from tests.cells import findings_in

SLUG = "signed-sum-loss"
START = """\
import torch
import torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
x, y = torch.rand(16, 4), torch.rand(16, 1)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.5)"""
LOOP = """\
for _ in range(6):
    opt.zero_grad()
    {}
    loss.backward()
    opt.step()"""


def found(*cells):
    return findings_in(START, *cells, slug=SLUG, fails=False)


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (LOOP.format("loss = (net(x) - y).sum()"), 3),
        (LOOP.format("out = net(x)\n    error = out.squeeze(1) - y.squeeze(1)\n    loss = torch.mean(error)"), 5),
        (LOOP.format("loss = (net(x) - y).sum() / len(y)"), 3),
        (LOOP.format("loss = torch.sub(net(x), y).sum(1).mean()"), 3),
        (
            "def my_loss(pred, target):\n    return (pred - target).mean()\n"
            + LOOP.format("loss = my_loss(net(x), y)"),
            5,
        ),
        (
            "class Off(nn.Module):\n    def forward(self, p, t): return torch.mean(p - t)\noff = Off()\n"
            + LOOP.format("loss = off(net(x), y)"),
            6,
        ),
        (
            (
                "class Trainer:\n    def __init__(self, m): self.m, self.o = m, torch.optim.Adam(m.parameters(), 0.1)\n"
                "    def step(self):\n        self.o.zero_grad()\n        diff = (self.m(x) - y).sum()\n"
                "        diff.backward()\n        self.o.step()\nt = Trainer(net)\nfor _ in range(5): t.step()"
            ),
            5,
        ),
        (
            "w = torch.zeros(1, requires_grad=True); opt = torch.optim.SGD([w], lr=1.0)\n"
            + LOOP.format("loss = (w - 3).sum()"),
            4,
        ),
    ],
)
def test_a_loss_with_signs(code, line):
    (finding,) = found(code)
    assert (finding.line, finding.severity) == (line, "warning")
    assert " to -" in finding.message


def test_one_that_is_not_negative_yet_is_a_hint():
    (finding,) = found("y = y - 9\n" + LOOP.format("loss = (net(x) - y).mean()").replace("6", "3"))
    assert finding.severity == "hint"


@pytest.mark.parametrize(
    "code",
    [
        LOOP.format("loss = ((net(x) - y) ** 2).mean()"),
        LOOP.format("loss = (net(x) - y).abs().sum()"),
        LOOP.format("loss = (net(x) - y).pow(2).sum().sqrt()"),
        LOOP.format("loss = (net(x) - y).clamp(min=0).mean()"),
        LOOP.format("e = y - net(x)\n    loss = torch.max(0.9 * e, -0.1 * e).mean()"),
        LOOP.format("loss = (net(x) - net(x.flip(0))).mean()"),
        LOOP.format("loss = net(x).mean() - y.mean()"),
        LOOP.format("loss = ((net(x) - y).mean()) ** 2"),
        LOOP.format("loss = (net(x) - y).mean().abs()"),
        LOOP.format("loss = -torch.distributions.Normal(net(x), 1.0).log_prob(y).mean()"),
        LOOP.format("loss = ((net(x) - y) ** 2 - 0.1).mean()"),
        LOOP.format("p = net(x).exp()\n    loss = (p - y * p.log()).mean()"),
        LOOP.format("loss = (F.logsigmoid(net(x)) - 0.5).neg().mean()"),
        LOOP.format("advantage = y - 0.5\n    loss = (net(x) - advantage).mean()"),
        LOOP.format("loss = F.softplus(net(x) - y).mean()"),
        "(net(x) - y).sum().backward()",
        "bias = (net(x) - y).mean().item()",
        "picture = torch.rand(1, 4, requires_grad=True)\n(net(picture) - 1).sum().backward()",
    ],
)
def test_losses_that_are_meant(code):
    assert found(code) == []
