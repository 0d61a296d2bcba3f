"""Targets that a loss refuses, and errors that are about something else."""

import pytest

from tests.cells import a_notebook, findings_in

SETUP = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
net = nn.Linear(5, 3)
x, y = torch.randn(4, 5), torch.tensor([0, 1, 2, 0])
scores, hot = net(x), F.one_hot(y, 3)
"""
FOUND = {
    "one-hot": ("F.cross_entropy(scores, hot)", 1, "`hot`", "argmax"),
    "float": ("t = y.float()\nloss = nn.CrossEntropyLoss()(net(x), t)", 2, "`t`", "long()"),
    "int32": ("t = y.int()\nF.cross_entropy(scores, t)", 2, "`t`", "long()"),
    "a column": ("column = y[:, None]\nF.cross_entropy(scores, column)", 2, "`column`", "squeeze(1)"),
    "one-hot for nll": ("F.nll_loss(scores.log_softmax(1), hot)", 1, "`hot`", "argmax(1)"),
    "too large": ("labels = y + 1\nF.cross_entropy(scores, labels)", 2, "holds 3", "0 to 2"),
    "grey values": (
        (
            "mask = torch.tensor([0, 128, 255])[torch.randint(1, 3, (2, 4, 4))]\n"
            "F.cross_entropy(nn.Conv2d(1, 3, 1)(torch.rand(2, 1, 4, 4)), mask)"
        ),
        2,
        "`mask`",
        "unique()",
    ),
    "a channel axis": (
        "mask = torch.zeros(2, 1, 4, 4).long()\nout = torch.rand(2, 3, 4, 4)\nF.cross_entropy(out, mask)",
        3,
        "`mask`",
        "squeeze(1)",
    ),
    "binary": ("yes = y % 2\nF.binary_cross_entropy(scores[:, 0].sigmoid(), yes)", 2, "`yes`", "float()"),
    "binary scores": ("yes = y % 2\nnn.BCEWithLogitsLoss()(scores[:, 0], yes)", 2, "`yes`", "float()"),
    "a trainer": (
        (
            "class Trainer:\n    def step(self, x, target):\n        out = net(x)\n"
            "        return F.cross_entropy(out, target)\nTrainer().step(x, hot)"
        ),
        4,
        "`target`",
        "argmax",
    ),
}
STEPS = "tags, words = torch.zeros(4, 6).long(), torch.rand(4, 6, 5)\n"
FOUND |= {
    "classes last, of a module": (
        STEPS + "nn.CrossEntropyLoss()(nn.Linear(5, 9)(words) if 0 else net(words), tags)",
        2,
        "`tags`",
        "(batch, classes, …)",
    ),
    "classes last, of a call": (
        STEPS + "nn.CrossEntropyLoss()(net(words), tags)",
        2,
        "with scores (4, 6, 3)",
        "net(words).transpose(1, 2)",
    ),
    "classes last, of a name": (
        STEPS + "out = net(words)\nF.cross_entropy(out, tags)",
        3,
        "with scores (4, 6, 3)",
        "out.transpose(1, 2)",
    ),
    "a row for a column": (
        "ones = torch.ones(4)\nnn.BCEWithLogitsLoss()(scores[:, :1], ones)",
        2,
        "(4, 1)",
        "unsqueeze(-1)",
    ),
    "a column for a row": (
        "ones = torch.ones(4, 1)\nF.binary_cross_entropy(scores[:, 0].sigmoid(), ones)",
        2,
        "(4,)",
        "squeeze(-1)",
    ),
    "classes for scores": ("nn.BCEWithLogitsLoss()(scores, y)", 1, "`y`", "one_hot(y.long(), 3)"),
    "classes last": (
        "steps, words = torch.randn(2, 7, 5), torch.ones(2, 7).long()\nF.cross_entropy(steps, words)",
        2,
        "axis 1",
        "transpose(1, 2)",
    ),
    "a merged batch": ("o = torch.randn(24, 3)\nF.cross_entropy(o, y)", 2, "24 samples", "o.shape"),
}
FOUND |= {
    "signs": (
        "t = (y > 0).float() * 2 - 1\nloss = nn.BCEWithLogitsLoss()(net(x)[:, 0], t)\nloss.backward()",
        2,
        "-1 to 1",
        "(t + 1)",
    ),
    "grey masks": (
        "t = (y > 0).float() * 255\nl = F.binary_cross_entropy_with_logits(net(x)[:, 0], t)\nl.backward()",
        2,
        "`t`",
        "255",
    ),
}
BOXES = "boxes, kinds = torch.randn(2, 7, 5), torch.ones(2, 7).long() * 5\n"
FOUND |= {
    "classes last, merged": (f"{BOXES}F.cross_entropy(boxes.view(-1, 5), kinds.view(-1))", 2, "holds 5", "from 0 to 4"),
    "classes in the middle": (f"{BOXES}F.cross_entropy(boxes.mT, kinds)", 2, "holds 5", "from 0 to 4"),
    "classes that are not told": (
        f"{BOXES}F.cross_entropy(torch.cat([boxes, boxes], 1).view(-1, 5)[:14], kinds.flatten())",
        2,
        "holds 5",
        "from 0 to the number of classes less 1",
    ),
    "classes beside a batch": (
        f"{BOXES}some = kinds[:, :1]\nF.cross_entropy(boxes[:, 0], some.flatten())",
        3,
        "holds 5",
        "from 0 to the number of classes less 1",
    ),
}
SILENT = {
    "left out": "t = y - 1.0\nl = nn.BCEWithLogitsLoss(reduction='none')(net(x)[:, 0], t)\nl[t >= 0].sum().backward()",
    "softened labels": "t = torch.rand(4) * 0.5 + 0.7\nF.binary_cross_entropy_with_logits(net(x)[:, 0], t).backward()",
    "right": "F.cross_entropy(scores, y)\nF.cross_entropy(scores, hot.float())",
    "sizes": "F.cross_entropy(scores, y[:3])",
    "an index": "x[7]",
    "an embedding": "nn.Embedding(3, 2)(y + 1)",
    "another error": "raise RuntimeError('Target of the year is out of reach')",
    "a linear layer": "net(y)",
}


def found(source):
    with a_notebook() as notebook:
        notebook.run(SETUP)
        run = notebook.run(source)
        return [finding for finding in run.findings if finding.slug == "integer-one-hot-target"]


@pytest.mark.parametrize("name", FOUND)
def test_the_target_is_named(name):
    source, line, said, fix = FOUND[name]
    (finding,) = found(source)
    assert (finding.cell, finding.line) == (2, line)
    assert said in finding.message
    assert fix in finding.fix


@pytest.mark.parametrize("name", SILENT)
def test_other_errors_are_left_alone(name):
    assert found(SILENT[name]) == []


@pytest.mark.parametrize(
    ("loss", "subject", "name"),
    [
        ("nn.CrossEntropyLoss()(scores, numbers.long())", "numbers", "numbers.long()"),
        ("F.nll_loss(scores, target=batch['y'].to(torch.long) - 1)", "batch['y']", "(batch['y'].to(torch.long) - 1)"),
        ("F.cross_entropy(scores, batch['y'].clone().long())", "batch['y']", "batch['y'].clone().long()"),
    ],
)
def test_a_target_that_the_line_makes_is_named_with_what_it_is_made_of(loss, subject, name):
    start = (
        "import torch\nfrom torch import nn\nimport torch.nn.functional as F\nscores = torch.rand(4, 3)\n"
        "numbers = torch.tensor([-1.0, 0, 1, 2])\nbatch = {'y': numbers}"
    )
    (finding,) = findings_in(start, loss, slug="integer-one-hot-target", fails=True)
    assert finding.subject == subject
    assert f"`{name}`, made of `{subject}` (4,) float32: it holds -" in finding.message
    assert finding.fix.startswith(f"{name}.unique()  #")
    assert not findings_in(start.replace("-1.0, ", "1.0, "), loss.replace(" - 1", ""), slug="integer-one-hot-target")


@pytest.mark.parametrize(
    ("loss", "said", "fix"),
    [
        ("F.cross_entropy(scores, y + 1)", "`(y + 1)`, made of `y` (4,) int64: it holds 3", "(y + 1).unique()"),
        ("F.cross_entropy(scores, target=y - 1)", "`(y - 1)`, made of `y` (4,) int64: it holds -1", "(y - 1).unique()"),
        ("nn.CrossEntropyLoss()(net(x), torch.add(y, 1))", "`torch.add(y, 1)`, made of", "torch.add(y, 1).unique()"),
        ("def f(a): return F.cross_entropy(net(x), a.mul(2))\nf(y)", "`a.mul(2)`, made of `a`", "a.mul(2).unique()"),
        ("F.cross_entropy(scores, y + hot[:, 2])", "`(y + hot[:, 2])`: it holds 3", "(y + hot[:, 2]).unique()"),
        ("F.cross_entropy(scores, y.float())", "`y.float()`, made of `y`", "F.cross_entropy(scores, y.float().long())"),
        (
            "F.binary_cross_entropy(scores[:, 0].sigmoid(), (y > 1).long())",
            "`(y > 1).long()`, made of `y` (4,) int64: it is of whole numbers",
            "F.binary_cross_entropy(scores[:, 0].sigmoid(), (y > 1).long().float())",
        ),
    ],
)
def test_of_a_target_that_the_line_computes_no_more_is_said_than_is_known(loss, said, fix):
    (finding,) = found(loss)
    assert said in finding.message
    assert fix in finding.fix
    assert "y - 1  #" not in finding.fix
    assert "y = y - 1" not in finding.fix


@pytest.mark.parametrize(
    ("loss", "fix"),
    [
        ("nn.CrossEntropyLoss()(net(x[:2]), column[:2])", "column = column.squeeze(1)"),
        (
            "for i in range(2):\n    F.cross_entropy(net(x[i:i + 2]), target=column[i:i + 2])",
            "F.cross_entropy(net(x[i:i + 2]), target=column.squeeze(1)[i:i + 2])",
        ),
        ("F.nll_loss(scores[1:], hot[1:].long())", "hot = hot.argmax(1)"),
    ],
)
def test_rows_of_a_target_have_as_many_axes_as_it(loss, fix):
    start = f"{SETUP}\ncolumn = y[:, None]"
    (finding,) = findings_in(start, loss, slug="integer-one-hot-target", fails=True)
    assert finding.fix.partition("  #")[0] == fix
    mended = loss if fix.startswith(("column = ", "hot = ")) else f"{loss.splitlines()[0]}\n    {fix}"
    before = [fix] if mended == loss else []
    assert not findings_in("\n".join([start, *before]), mended)


def test_of_a_part_of_another_shape_nothing_is_said():
    assert not found("F.cross_entropy(scores, hot[:, :1])")


def test_of_an_axis_that_the_line_adds_nothing_is_said():
    assert not found("F.cross_entropy(scores, y.unsqueeze(1))")
    assert "if they go from 1 to 3: y = y - 1" in found("y += 1\nF.cross_entropy(scores, y.long().view(-1))")[0].fix


WIDE = """\
import torch
from torch import nn
scores = torch.zeros(4, requires_grad=True)
bce = nn.BCEWithLogitsLoss()
y = torch.tensor({})"""


@pytest.mark.parametrize(
    ("values", "loss", "fix"),
    [
        ([1.0, 2.0, 2.0, 1.0], "bce(scores, y)", "y = (y > 1).float()  # 0 to 1"),
        ([-2.0, -1.0, -1.0, -2.0], "bce(scores, y)", "y = (y > -2).float()"),
        ([0.0, 2.0, 1.0, 2.0], "bce(scores, y)", "y = (y > 0).float()"),
        ([0.0, 255.0, 255.0, 0.0], 'bce(scores, {"y": y}["y"])', "/ 255"),
        ([0.0, 255.0, 255.0, 0.0], "bce(scores, target=y)", "y = y / 255"),
        ([0.0, 255.0, 255.0, 0.0], "bce(scores.clamp(-9, 9), y + 0)", "divide the targets by 255; for"),
        ([2.0, 2.0, 2.0, 2.0], "bce(scores, y)", "make the targets 0 and 1; for"),
    ],
)
def test_targets_of_a_binary_loss_are_brought_inside_by_what_they_are(values, loss, fix):
    (finding,) = findings_in(WIDE.format(values), f"loss = {loss}\nloss.backward()", slug="integer-one-hot-target")
    assert fix in finding.fix
    if finding.fix.startswith("y = "):
        assert not findings_in(WIDE.format(values) + f"\n{finding.fix}", f"loss = {loss}\nloss.backward()")
