"""A sigmoid before a loss with logits: what to do depends on whether its probabilities are used elsewhere too."""

import pytest

from tests.cells import findings_in

SETUP = """\
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(5, 1), nn.Sigmoid())
x, mask = torch.randn(8, 5), torch.randint(0, 2, (8, 1)).float()
crit = nn.BCEWithLogitsLoss()"""
DICE = "1 - 2 * (p * mask).sum() / (p.sum() + mask.sum())"


def fix_of(given, other):
    cell = f"p = {given}\nloss = crit(p, mask) + {other}\nloss.backward()"
    (finding,) = findings_in(SETUP, cell, slug="sigmoid-before-bce-logits", fails=False)
    return finding.fix


@pytest.mark.parametrize("given", ["net(x)", "net(x).clamp(0.01, 0.99)", "torch.sigmoid(net[0](x))"])
def test_probabilities_that_a_dice_loss_needs_stay(given):
    assert fix_of(given, DICE).startswith("nn.BCELoss()")


@pytest.mark.parametrize("other", ["0", "net[0].weight.square().sum()"])
def test_probabilities_of_one_loss_only(other):
    assert "nn.Identity()" in fix_of("net(x)", other)
    assert "raw scores" in fix_of("torch.sigmoid(net[0](x))", other)


MODEL = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(5, 1)
    def forward(self, x):
        h = self.fc(x)
        {}
model = Net()
"""


@pytest.mark.parametrize(
    ("last", "new"),
    [
        ("return torch.sigmoid(h)", "return h"),
        ("return h.sigmoid()", "return h"),
        ("return nn.functional.sigmoid(h * 2)", "return (h * 2)"),
        ("h = torch.sigmoid(h); return h", "# take this line out: h = torch.sigmoid(h)"),
    ],
)
@pytest.mark.parametrize(
    "loss", ["crit(model(x), mask)", "nn.functional.binary_cross_entropy_with_logits(model(x), mask)"]
)
def test_the_sigmoid_of_a_forward_is_named(last, new, loss):
    model, cell = MODEL.format(last), f"loss = {loss}\nloss.backward()"
    (finding,) = findings_in(SETUP, model, cell, slug="sigmoid-before-bce-logits", fails=False)
    assert "line 7 of cell 2" in finding.message
    statement = finding.fix.partition("  # ")[0]
    assert statement == new
    mended = MODEL.format(statement if statement.startswith("return") else "return h")
    assert findings_in(SETUP, mended, cell, slug="sigmoid-before-bce-logits", fails=False) == []


def test_a_sigmoid_that_may_be_another_is_not_named():
    model = MODEL.format("h = torch.sigmoid(h); return h") + "def gate(v):\n    return torch.sigmoid(v)"
    (finding,) = findings_in(
        SETUP, model, "loss = crit(model(x), mask)\nloss.backward()", slug="sigmoid-before-bce-logits", fails=False
    )
    assert finding.fix.startswith("# give the loss raw scores")


HEAD = """\
raw = nn.Linear(5, 6)(x)
out = torch.cat([{}], 1)
loss = crit({}, torch.ones(8, 4))
loss.backward()"""


@pytest.mark.parametrize(
    ("parts", "read", "count"),
    [
        ("raw[:, :2], raw[:, 2:].sigmoid()", "out[:, 2:]", 1),
        ("raw[:, :2], raw[:, 2:].sigmoid()", "out.split([2, 4], 1)[1]", 1),
        # The chances are those of another part than the loss reads.
        ("raw[:, :2].sigmoid(), raw[:, 2:]", "out[:, 2:]", 0),
        ("raw[:, :2].sigmoid(), raw[:, 2:]", "out.split([2, 4], 1)[1]", 0),
    ],
)
def test_a_part_of_what_was_joined(parts, read, count):
    assert len(findings_in(SETUP, HEAD.format(parts, read), slug="sigmoid-before-bce-logits", fails=False)) == count
