"""A part that was put into eval mode for predictions, and the part that was not."""

import pytest

from tests.cells import findings_in

SETUP = """\
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(10, 20), nn.BatchNorm1d(20), nn.ReLU())
        self.head = nn.Sequential(nn.Dropout(0.5), nn.Linear(20, 4))
    def forward(self, x):
        return self.head(self.body(x))
net = Net()
net.body.requires_grad_(False).eval()
opt = torch.optim.SGD(net.head.parameters(), lr=0.1)
x = torch.randn(32, 10)
for _ in range(3):
    opt.zero_grad()
    net(x).pow(2).mean().backward()
    opt.step()"""
PREDICT = "with torch.no_grad():\n    p = net(x).argmax(1)"
FUNCTION = """\
def predict(model, batches):
    model.body.eval()
    with torch.no_grad():
        return torch.cat([model(one).argmax(1) for one in batches])
p = predict(net, x.split(8))"""
SLEEP = "for part in net.modules():\n    if isinstance(part, nn.BatchNorm1d):\n        part.eval()\n"


def found(cell):
    return findings_in(SETUP, cell, slug="eval-missing", fails=False)


@pytest.mark.parametrize(
    "cell",
    [
        f"net.body.eval()\n{PREDICT}",
        FUNCTION,
        f"net.body.eval()\nparts = []\n{PREDICT}\n    parts.append(p)\nwhole = torch.cat([p for p in parts])",
    ],
)
def test_the_part_that_was_left_is_named(cell):
    (finding,) = found(cell)
    assert finding.severity == "hint"
    assert "1 Dropout in `net.head`, where `" in finding.message
    assert "net.head.train()" in finding.fix


@pytest.mark.parametrize(
    "cell",
    [
        "net.body.eval()\nwith torch.no_grad():\n    p = torch.stack([net(x) for _ in range(4)]).mean(0)",
        "net.body.eval()\nwith torch.no_grad():\n    many = [[net(b) for b in x.split(8)] for _ in range(4)]",
        f"net.body.eval()\n# one sample\n{PREDICT}",
        "net.body.eval()\nwith torch.no_grad():\n    p = net(x.repeat(30, 1)).softmax(1).view(30, 32, 4).mean(0)",
        "many = torch.cat([x] * 30)\nnet.body.eval()\nwith torch.no_grad():\n    p = net(many).view(30, 32, 4).mean(0)",
        "net.body.eval()\nmany = x[None].expand(9, 32, 10).flatten(0, 1)\nwith torch.no_grad():\n    p = net(many)",
        "net.body.eval()\nwith torch.no_grad():\n    p = net(torch.cat([x for _ in range(9)])).view(9, 32, 4).mean(0)",
        f"net.eval()\nnet.head.train()\n{PREDICT}",
        f"net.body.eval()\nnet.head.eval()\n{PREDICT}",
        f"net.body.eval()\nnet.head[0].eval()\n{PREDICT}",
        f"{SLEEP}{PREDICT}",
    ],
)
def test_samples_and_what_is_chosen_layer_by_layer_are_silent(cell):
    assert found(cell) == []
