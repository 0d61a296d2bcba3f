"""Probabilities that a fixed matrix turned into other probabilities, as votes for classes, before cross-entropy."""

import pytest

from tests.cells import findings_in

SETUP = """\
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
net, y = nn.Linear(8, 7), torch.randint(0, 5, (16,))
x, labels = torch.randn(16, 8), F.one_hot(torch.arange(7) % 5, 5).float()
each = labels.expand(16, 7, 5)"""
CELL = "w = net(x).softmax(1)\npreds = {}\nloss = F.cross_entropy(preds, y)\nloss.backward()"
WRONG = [
    "torch.bmm(w.unsqueeze(1), each).squeeze(1)",
    "w @ labels",
    "(labels.T @ w.T).T",
    "torch.einsum('bk,kc->bc', w, labels)",
    "torch.einsum('bk,bkc->bc', w, each)",
    "torch.einsum('bkc,bk->bc', each, w)",
    "torch.full((16, 16), 1 / 16) @ w @ labels",
    "w @ torch.rand(7, 5).softmax(1)",
]
RIGHT = [
    "w @ labels * 20",
    "w @ labels / 0.05",
    "w @ torch.randn(7, 5)",
    "w @ (labels * 10)",
    "w @ labels.T.contiguous().T[:, :4].repeat(1, 2)",
    "(torch.full((16, 16), 1 / 15) @ w) @ labels",
    "w @ nn.Parameter(labels)",
    "net(x).softmax(0) @ labels",
    "net(x).sigmoid() @ labels",
]


def found(preds):
    return findings_in(SETUP, CELL.format(preds), slug="softmax-before-cross-entropy", fails=False)


@pytest.mark.parametrize("preds", WRONG)
def test_votes_are_probabilities(preds):
    (finding,) = found(preds)
    assert (finding.line, finding.severity) == (3, "error")
    assert finding.fix.startswith("loss = F.nll_loss((preds + 1e-06).log(), y)  # these are")


@pytest.mark.parametrize("preds", RIGHT)
def test_scores_are_not(preds):
    assert not found(preds)


def test_logarithms_of_votes_are_right():
    lines = "preds = net(x).softmax(1) @ labels\nloss = F.nll_loss((preds + 1e-6).log(), y)\nloss.backward()"
    assert not findings_in(SETUP, lines, slug="softmax-before-cross-entropy", fails=False)


MODEL = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 7)
    def forward(self, x, y):
        preds = self.net(x).softmax(1) @ labels
        return (preds.argmax(1) == y).float().mean(), F.cross_entropy(preds, y)
model = Net()"""


def test_a_loss_within_a_model_is_named():
    lines = "share, loss = model(x, y)\nloss.backward()"
    (finding,) = findings_in(SETUP, MODEL, lines, slug="softmax-before-cross-entropy", fails=False)
    assert "preds" in finding.message
    assert finding.fix.startswith("F.nll_loss((preds + 1e-06).log(), y)  # in place of F.cross_entropy(preds, y)")
