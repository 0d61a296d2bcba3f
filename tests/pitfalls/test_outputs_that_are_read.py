"""Predictions of a trained model with neither `eval()` nor `no_grad()`, whose outputs are kept and only read."""

import pytest

from tests.cells import findings_in

SETUP = """\
import torch
from torch import nn
torch.manual_seed(0)
x, y = torch.randn(64, 10), torch.randint(0, 3, (64,))
plain = nn.Sequential(nn.Linear(10, 200), nn.Tanh(), nn.Linear(200, 3))
dropped = nn.Sequential(nn.Linear(10, 200), nn.Dropout(0.5), nn.Linear(200, 3))
for net in (plain, dropped):
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        opt.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        opt.step()"""


def found(cell):
    cells = (SETUP, cell)
    return [
        f for f in findings_in(*cells, min_bytes=0, fails=False) if f.slug in ("eval-missing", "eval-without-no-grad")
    ]


@pytest.mark.parametrize(
    ("net", "slug"), [("plain", "eval-without-no-grad"), ("dropped", "eval-missing")], ids=["plain", "dropped"]
)
@pytest.mark.parametrize(
    "read",
    [
        "out = {}(x)\nguess = out.argmax(1)",
        "out = {}(x)\nprint(out.detach().numpy().mean())",
        "outs = [{}(part) for part in x.split(16)]\nouts = torch.cat(outs)\n_, guess = torch.max(outs, 1)",
    ],
)
def test_they_are_a_hint(net, slug, read):
    (finding,) = found(read.format(net))
    assert (finding.slug, finding.severity, finding.line) == (slug, "hint", 1)


@pytest.mark.parametrize("net", ["plain", "dropped"])
@pytest.mark.parametrize(
    "cell",
    [
        "out = {}(x)\nprint(out.shape)",
        "out = {}(x)\nloss = nn.functional.cross_entropy(out, y)\nprint(out.argmax(1)[:3])",
        "out = {}(x)\nguess = out.argmax(1)\nnn.functional.cross_entropy(out, y).backward()",
        "out = {}(x)\neach = nn.functional.cross_entropy(out, y, reduction='none')\nworst = each.topk(8).indices",
        "out = {}(x)  # out.argmax(1) comes later",
    ],
)
def test_a_loss_may_follow(net, cell):
    assert not found(cell.format(net))
