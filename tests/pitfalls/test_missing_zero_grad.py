"""What is said of gradients that are cleared now and then."""

from tests.cells import findings_in

SETUP = """\
import torch
from torch import nn
net, x = nn.Linear(3, 1), torch.rand(4, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)"""
EPOCHS = """\
for epoch in range(2):
    {}
    for _ in range(4):
        net(x).mean().backward()
        opt.step()"""


def said(first):
    (finding,) = findings_in(SETUP, EPOCHS.format(first), slug="missing-zero-grad", fails=False)
    return finding.message


def test_once_in_an_epoch_is_told_apart_from_never():
    assert "since they were last cleared" in said("opt.zero_grad()")
    assert "(all 8 steps): each step followed the sum of all gradients so far" in said("pass")
