"""Numbers that are not finite and on which nobody called `backward()`."""

import pytest

from tests.cells import findings_in

SETUP = """
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 2))
x, y = torch.randn(16, 8), torch.randint(0, 2, (16,))
gap = x.clone()
gap[3, 2] = float("nan")
criterion = nn.CrossEntropyLoss()
scores = torch.randn(6, 2, 5).log_softmax(-1).requires_grad_()
"""

BAD = {
    "a loss of data with a gap": (
        "loss = F.cross_entropy(net(gap), y)\nprint(loss.item())",
        1,
        "`gap`, which was given",
    ),
    "a loss that the cell shows": ("criterion(net(gap), y)", 1, "`Out[2]` is nan"),
    "a loss under no_grad": (
        "with torch.no_grad():\n    out = net(gap)\n    val = criterion(out, y)",
        3,
        "`val` is nan: `out`, which was given to it, holds",
    ),
    "a logarithm of zero": (
        "p = (net(x) * 1e4).softmax(-1)\nloss = -(p.log() * p).sum(-1).mean()",
        2,
        "`loss` is nan: `log` was given",
    ),
    "targets that are all ignored": (
        "loss = F.cross_entropy(net(x), torch.full((16,), -100))",
        1,
        "no target of `cross_entropy` counts",
    ),
    "a zero beside a best that is still infinite": (
        "best_loss, w = torch.tensor(float('inf')), torch.zeros(16, 1)\nloss = (w * net(x)).sum() / w.sum()",
        2,
        "`/` was given 1 zero",
    ),
    "targets with a gap": (
        "t = gap[:, 1:3].clone()\nloss = F.mse_loss(net(x), t)",
        2,
        "`loss` is nan: nan is in what its first operation was given",
    ),
    "targets with a gap, alone": (
        "pred, want = net(x), torch.tensor([[float('nan'), 1.0]] * 16)\nloss = F.mse_loss(pred, want)",
        2,
        "`want`, which was given to it, holds 16 nan",
    ),
    "a mean of nothing": ("rest = F.mse_loss(net(x)[:0], gap[:0, :2])", 1, "`mean` was taken of no values"),
    "targets that are too long": (
        "ctc_loss = F.ctc_loss(scores, torch.ones(2, 8).long(), (6, 6), (8, 8))",
        1,
        "`ctc_loss` finds no alignment for 2 of 2 targets",
    ),
}
SILENT = {
    "who asks for it": "loss = F.cross_entropy(net(gap), y)\nif torch.isnan(loss):\n    print('skipped')",
    "an inner value": "rows = net(gap).sum(1)\nloss = rows[:3].mean()",
    "a number that marks what is missing": "best = torch.tensor(float('nan'), requires_grad=True)",
    "the likelihood of what cannot be": (
        "with torch.no_grad():\n    pass\np = net(x).softmax(-1) * torch.tensor([1.0, 0.0])\nlog_p = p[0, 1].log()"
    ),
    "a step that is skipped": (
        "opt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "for data in (x, gap):\n"
        "    loss = criterion(net(data), y)\n"
        "    if not loss.isfinite():\n        continue\n"
        "    opt.zero_grad()\n    loss.backward()\n    opt.step()"
    ),
    "a mean of NaN without a loss": "with torch.no_grad():\n    mean = net(gap).mean()",
    "who compares it with itself": "loss = F.cross_entropy(net(gap), y)\nif loss != loss:\n    print('skipped')",
    "who asks whether it is below": "loss = (net(x) * 1e38).exp().mean()\nif not loss < 1e30:\n    print('stop')",
    "a bound that is infinite by definition": (
        "kl_loss = torch.distributions.kl_divergence(\n"
        "    torch.distributions.Uniform(net(x).sum() * 0, 2.0), torch.distributions.Uniform(0.5, 3.0)\n)"
    ),
    "infinite without being a loss": "bound = (net(x).sum() * 0 + 1) / 0",
}


@pytest.mark.parametrize("name", BAD)
def test_it_is_told_with_its_origin(name):
    cell, line, said = BAD[name]
    (found,) = [one for one in findings_in(SETUP, cell) if one.slug == "nonfinite-loss"]
    assert (found.line, found.severity) == (line, "hint")
    assert said in found.message


@pytest.mark.parametrize("name", SILENT)
def test_nothing_is_said_of(name):
    assert [one for one in findings_in(SETUP, SILENT[name]) if one.slug == "nonfinite-loss"] == []


def test_a_line_that_did_not_run_is_not_told():
    first = "with torch.no_grad():\n    loss = criterion(net(gap), y) + 0"
    later = "done = True\nif not done:\n    loss = criterion(gap, y)"
    told = findings_in(SETUP, first, later)
    assert not [one for one in told if one.slug == "nonfinite-loss" and one.cell == 3]


def test_a_number_of_an_earlier_cell_is_not_told_again():
    told = findings_in(SETUP, "loss = criterion(net(gap), y)", "more = loss + 1", "last = more * 2")
    assert [one.cell for one in told if one.slug == "nonfinite-loss"] == [2]


def test_the_text_of_a_cell_is_gone_through_once():
    from unittest import mock

    import torch

    from torch_inspector.facts import syntax
    from torch_inspector.observe.graph import GraphReader
    from torch_inspector.observe.namespace import Names
    from torch_inspector.observe.results import results
    from torch_inspector.observe.snapshot import Look

    w = torch.ones(1, requires_grad=True)
    tensors = [(f"r{i}", (w * i).sum()) for i in range(200)]
    code = "\n".join(f"{name} = (w * {i}).sum()" for i, (name, _) in enumerate(tensors))
    look = Look({}, {}, 1e9, code=code)
    with mock.patch.object(syntax, "own_statements", wraps=syntax.own_statements) as walked:
        assert results(Names(tensors=tensors), look, 1, GraphReader(), frozenset()) == ()
    assert 1 <= walked.call_count <= 3


def test_weights_that_are_bad_are_the_reason():
    spoil = "with torch.no_grad():\n    net[0].weight[0, 0] = float('nan')"
    slugs = {one.slug for one in findings_in(SETUP, spoil, "loss = criterion(net(x), y)")}
    assert "nonfinite-loss" not in slugs


def test_no_result_is_kept_alive():
    import weakref

    from tests.cells import a_notebook

    with a_notebook() as notebook:
        notebook.run(SETUP)
        notebook.run("loss = F.cross_entropy(net(gap), y)")
        result = weakref.ref(notebook.shell.user_ns["loss"])
        notebook.run("del loss")
        assert result() is None


def test_a_row_that_is_masked_throughout_is_the_mask_not_the_data():
    mask = "mask = torch.zeros(2, 3)\nmask[1] = float('-inf')\nh = torch.ones(2, 3)"
    code = "a = torch.softmax(h + mask, -1)\nloss = (net[2](torch.ones(3, 4)).T @ a.T).mean()"
    (finding,) = findings_in(SETUP + mask, code, slug="nonfinite-loss", fails=False)
    assert "as the softmax of a row has in which `mask` is minus infinity throughout" in finding.message
    assert finding.fix.startswith("leave one score of each row unmasked")
