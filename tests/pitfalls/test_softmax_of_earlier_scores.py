"""A softmax along the samples, of scores that an earlier cell made, whose classes are read along the other axis."""

import pytest

from tests.cells import findings_in

# ruff: noqa: ISC004

SETUP = """\
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
net, x = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4)), torch.randn(20, 6)
with torch.no_grad():
    logits = net(x)
q, y = torch.randn(20, 4), torch.randint(0, 4, (20,))
logits2 = net(x).detach()"""


def found(cell):
    return findings_in(SETUP, cell, slug="softmax-over-batch", fails=False)


@pytest.mark.parametrize("made", ["F.softmax(logits, dim=0)", "logits2.softmax(0)", "nn.Softmax(dim=0)(logits)"])
@pytest.mark.parametrize(
    "read", ["c, p = probs.max(1)", "p = probs.argmax(dim=1)", "p = torch.max(probs, 1).indices", "p = probs.max(1)[1]"]
)
def test_classes_are_read_along_the_other_axis(made, read):
    (finding,) = found(f"probs = {made}\n{read}\nprint((p == y).float().mean())")
    assert "`probs` runs along dim 0, the 20 samples" in finding.message


@pytest.mark.parametrize(
    "cell",
    [
        "probs = F.softmax(logits, dim=1)\np = probs.argmax(1)",
        "probs = F.softmax(logits, dim=0)\np = probs.argmax(0)",
        "probs = F.softmax(logits[0], dim=0)\np = probs.argmax()",
        "weights = F.softmax(logits, dim=0)\npooled = weights.T @ q",
        "probs = F.softmax(q @ q.T, dim=0)\np = probs.argmax(1)",
        "probs = nn.Softmax(dim=1)(logits)\np = probs.max(1)",
    ],
)
def test_other_axes_and_other_scores(cell):
    assert found(cell) == []


BAG = "attn = nn.Sequential(nn.Linear(6, 4), nn.Softmax(dim=0))\nwith torch.no_grad():\n    a = attn(x)\n"


@pytest.mark.parametrize(
    "cell",
    [
        # The sample of each class that is most like it; heads that look at a bag.
        "probs = net(x).softmax(1).t()\nprint(probs.argmax(1))",
        f"{BAG}bag = a.t() @ x\nimportance, head = a.max(1)",
        f"{BAG}print(a.max(1), (a.argmax(1) == y).sum())",
        # Slots that compete; columns and rows that are scaled in turns; one sample of many positions.
        "slots = torch.randn(5, 6)\na = (slots @ x.t()).softmax(0)\nprint(a.argmax(1))",
        "a = net(x).exp()\nfor _ in range(3):\n    a = a / a.sum(1, keepdim=True)\n    a = a / a.sum(0, keepdim=True)\n"
        "print((a.argmax(1) == y).sum())",
        "p = nn.Conv1d(6, 3, 1)(x.t()).softmax(0)\nprint(p.argmax(0), p.argmax(1))",
        # Agents or queries that pick a row each.
        "probs = F.softmax(net(x), 0)\nprint(probs.argmax(0), probs.max(1).indices)",
        "probs = net(x).softmax(0)\nprint(probs.topk(1, dim=0).values, probs.max(1).values.mean())",
        "probs = net(x).softmax(0)\nprint(probs.argmax(0), (probs.argmax(1) == y).sum())",
        "s = net(x)\na = F.softmax(s, dim=0)\npooled = (a * s).sum(0)\nprint(a.max(dim=1).values.topk(3))",
    ],
)
def test_rows_that_are_members_of_a_set(cell):
    assert found(cell) == []


TRAINED = """\
def fit(steps):
    for _ in range(steps):
        out = net(x)
        loss = F.cross_entropy(out, y)
        loss.backward()
fit(2)"""
PREDICT = "def predict(model, rows):\n    p = model(rows).softmax(0)\n    return p.argmax(1)\npredict(net, x)"


@pytest.mark.parametrize("cell", ["p = F.softmax(net(x), dim=0)\nprint(p.max(1))", PREDICT])
def test_of_a_model_that_a_cross_entropy_trains(cell):
    (finding,) = findings_in(SETUP, TRAINED, cell, slug="softmax-over-batch", fails=False)
    assert finding.severity == "hint"
    assert not found(cell)
    assert not findings_in(SETUP, TRAINED, cell.replace("p =", "att =").replace("p.", "att."), fails=False)
    other = TRAINED.replace("net(x)", "nn.Linear(4, 4)(net(x))")
    assert not findings_in(SETUP, other, cell, slug="softmax-over-batch", fails=False)


def test_what_is_called_a_confidence():
    (finding,) = found("probs = F.softmax(logits, dim=0)\nconfidence, predicted = probs.max(dim=1)")
    assert finding.severity == "hint"
    assert not found("probs = F.softmax(logits, dim=1)\nconfidence, predicted = probs.max(dim=1)")
    assert not found("attention = net\na = F.softmax(attention(x), dim=0)\nconfidence, class_of = a.max(1)")


BAG_OF = "with torch.no_grad():\n    w = F.softmax({}(x), dim=0)\n    print(w.max(dim=1).values)"
GIVEN = """\
def train(other, rows, y):
    return F.cross_entropy(other(rows), y)
def train_local(rows, y):
    other = nn.Linear(6, 4)
    return F.cross_entropy(other(rows), y)
train(net, x, y), train_local(x, y)"""


@pytest.mark.parametrize(
    "cells",
    [
        (TRAINED.replace("net", "other"), "other = nn.Linear(6, 4)", BAG_OF.format("other")),
        (TRAINED.replace("net", "other"), "other = nn.Linear(6, 4)\n" + BAG_OF.format("other")),
        (TRAINED.replace("net", "other") + "\nother = nn.Linear(6, 4)", BAG_OF.format("other")),
        (GIVEN, BAG_OF.format("other")),
        ("loss = F.cross_entropy(other(x), y)\nother = nn.Linear(6, 4)", BAG_OF.format("other")),
    ],
)
def test_another_model_of_the_same_name(cells):
    setup = f"{SETUP}\nother = nn.Linear(6, 4)"
    assert not findings_in(setup, *cells, slug="softmax-over-batch", fails=False)


def test_the_model_of_that_name():
    setup, trained = f"{SETUP}\nother = nn.Linear(6, 4)", TRAINED.replace("net", "other")
    assert findings_in(setup, trained, BAG_OF.format("other"), slug="softmax-over-batch", fails=False)
