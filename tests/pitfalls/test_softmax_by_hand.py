"""Softmax written out with exp and sum, in front of cross-entropy and in its right places."""

import pytest

from tests.cells import findings_in

SETUP = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
net = nn.Linear(6, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(16, 6), torch.randint(0, 4, (16,))
"""
TRAIN = """
for _ in range(3):
    opt.zero_grad()
    out = net(x)
    {probs}
    loss = {loss}
    loss.backward()
    opt.step()
"""
CLASS = """
def softmax(z):
    z = z - z.max(1, keepdim=True).values
    e = z.exp()
    return e / e.sum(1, keepdim=True)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 4)
    def forward(self, x):
        return softmax(self.fc(x))
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""
CE = "F.cross_entropy(p, y)"
FOUND = {
    "keepdim": (TRAIN.format(probs="e = torch.exp(out); p = e / e.sum(1, keepdim=True)", loss=CE),),
    "unsqueezed": (TRAIN.format(probs="e = out.exp(); p = e / e.sum(dim=-1).unsqueeze(1)", loss=CE),),
    "guarded": (TRAIN.format(probs="e = out.exp(); p = e / (e.sum(1, keepdim=True) + 1e-9)", loss=CE),),
    "of a logarithm": (TRAIN.format(probs="p = F.log_softmax(out, -1).exp()", loss=CE),),
    "shifted, in a model": (CLASS, TRAIN.format(probs="p = out", loss="nn.CrossEntropyLoss()(p, y)")),
}
QUIET = {
    "entropy beside it": TRAIN.format(
        probs="p = out; log_p = F.log_softmax(out, 1)", loss=CE + " - 0.1 * (log_p.exp() * log_p).sum(1).mean()"
    ),
    "of a logarithm over the other axis": TRAIN.format(probs="p = F.log_softmax(out, 0).exp()", loss=CE),
    "its logarithm": TRAIN.format(probs="e = out.exp(); p = e / e.sum(1, keepdim=True)", loss="F.nll_loss(p.log(), y)"),
    "attention": TRAIN.format(probs="s = out @ out.T; e = s.exp(); p = (e / e.sum(1, keepdim=True)) @ out", loss=CE),
    "divided by another sum": TRAIN.format(probs="e = out.exp(); p = e / out.exp().sum(0, keepdim=True)", loss=CE),
    "divided by its norm": TRAIN.format(probs="e = out.exp(); p = e / e.norm(dim=1, keepdim=True)", loss=CE),
    "shown only": TRAIN.format(probs="p = out; e = out.exp(); shown = e / e.sum(1, keepdim=True)", loss=CE),
    "over the other axis": TRAIN.format(probs="e = out.exp(); p = e / e.sum(0, keepdim=True)", loss=CE),
    "sharpened scores": TRAIN.format(probs="e = out.exp(); p = 10 * (e / e.sum(1, keepdim=True))", loss=CE),
}


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    (finding,) = findings_in(SETUP, *FOUND[name], fails=False)
    assert (finding.slug, finding.severity) == ("softmax-before-cross-entropy", "error")
    assert "loss" in finding.message


@pytest.mark.parametrize("name", QUIET)
def test_silent(name):
    assert findings_in(SETUP, QUIET[name], slug="softmax-before-cross-entropy", fails=False) == []
