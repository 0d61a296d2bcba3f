"""Causes of NaN that general words about `log` and `sqrt` do not fit: eps=0, equal eigenvalues, ends of float16."""

import re

import pytest

from tests.cells import findings_in

TABLES = """\
import torch
from torch import nn
torch.manual_seed(0)
table, x = nn.Embedding(40, 4), torch.randint(0, 20, (8,))
opt = {}
def step():
    loss = (table(x) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss"""


def found(slug, *cells):
    return findings_in(*cells, slug=slug, fails=False)


BARE = ["Adam(table.parameters(), eps=0)", "AdamW(table.parameters(), eps=0.0)"]


@pytest.mark.parametrize("made", BARE)
@pytest.mark.parametrize(
    ("slug", "between"), [("nonfinite-parameter", ""), ("nonfinite-loss", "    x = torch.randint(0, 40, (8,))\n")]
)
def test_a_divisor_without_eps(made, slug, between):
    setup, steps = TABLES.format(f"torch.optim.{made}"), f"for _ in range(4):\n{between}    loss = step()"
    (finding,) = found(slug, setup, steps)
    assert "`opt` has eps=0, and divides 0 by 0" in finding.message
    assert finding.fix.startswith("for group in opt.param_groups: group['eps'] = 1e-8")
    assert not found(slug, setup, f"{finding.fix}\n{steps}")


def test_other_weights_that_are_not_finite():
    spoil = "with torch.no_grad():\n    table.weight[x[0]] = float('nan')\nloss = step()\nloss = step()"
    setup = TABLES.format("torch.optim.Adam(table.parameters())")
    assert not any("eps" in one.message for one in findings_in(setup, spoil, fails=False))


TOO_FAST = """\
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 1))
opt = torch.optim.{}
for step in range(5):
    loss = net(torch.randn(8, 4)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()"""


@pytest.mark.parametrize(
    "made", ["Adam(net.parameters(), lr=1e20, eps=0)", "RMSprop(net.parameters(), lr=1e30, eps=0)"]
)
def test_a_divisor_that_was_never_zero(made):
    findings = findings_in(TOO_FAST.format(made), fails=False)
    assert findings
    assert not any(re.search(r"\beps\b", one.message + one.fix) for one in findings)


ROTATED = """\
import torch
from torch import nn
torch.manual_seed(0)
w, y = nn.Parameter(torch.eye(4){}), torch.randn(6, 4)
opt = torch.optim.SGD([w], lr=0.1)"""
ROTATE = "A = w @ w.T\n{}\nloss = (y @ basis).pow(2)[:, 0].mean()\nloss.backward()\nopt.step()"
MADE = ["values, basis = torch.linalg.eigh(A)", "basis, sizes, _ = torch.linalg.svd(A)"]


@pytest.mark.parametrize("made", MADE)
def test_vectors_of_equal_values(made):
    (finding,) = found("nonfinite-gradient", ROTATED.format(""), ROTATE.format(made))
    name = "eigh" if "eigh" in made else "svd"
    assert f"`{name}` was given 3 equal eigenvalues among 4 values" in finding.message
    assert "sqrt" not in finding.fix


@pytest.mark.parametrize("made", MADE)
def test_vectors_of_values_that_differ(made):
    noise = " + torch.randn(4, 4) * 0.1"
    assert not found("nonfinite-gradient", ROTATED.format(noise), ROTATE.format(made))


def test_the_fix_of_equal_eigenvalues():
    (finding,) = found("nonfinite-gradient", ROTATED.format(""), ROTATE.format(MADE[0]))
    code = ROTATE.format(f"values, basis = {finding.fix.partition(': ')[2]}")
    assert not found("nonfinite-gradient", ROTATED.format(""), code)
    several = ROTATED.format("").replace("torch.eye(4)", "torch.eye(4).repeat(5, 1, 1)")
    assert not found("nonfinite-gradient", several, code.replace(".T", ".mT"))


CHAIN = """\
import torch
steps = torch.full((4, 40), 0.2).half()
def chain(p):
    a = p[:, 0]
    for t in range(1, 40):
        a = a * p[:, t]
    return a{}"""


def test_a_logarithm_of_what_has_become_zero():
    (finding,) = found("half-overflow", CHAIN.format(".log()"), "cost = -chain(steps).mean()")
    assert "makes 0 of what is below 6e-08" in finding.message
    assert "logsumexp" in finding.fix


def test_numbers_that_are_too_large():
    (finding,) = found("half-overflow", CHAIN.format(""), "cost = chain(steps * 50)")
    assert "6e-08" not in finding.message


ATTENTION = """\
import torch
from torch import nn
torch.manual_seed(0)
net, x = nn.Linear(8, 8), torch.randn(4, 8) * 900
def attend(x):
    q = net(x)
    s = q.{0}() @ q.{0}().T
    return (s - s.mean()).softmax(-1).float()"""
ATTENDED = "loss = attend(x).pow(2).mean()\nloss.backward()"


def test_the_fix_of_a_product_in_float16():
    (finding,) = found("half-overflow", ATTENTION.format("half"), ATTENDED)
    assert finding.fix.startswith("# .bfloat16() in place of .half()")
    assert not found("half-overflow", ATTENTION.format("bfloat16"), ATTENDED)
    assert not found("nonfinite-loss", ATTENTION.format("bfloat16"), ATTENDED)


HINGE = """\
import torch
from torch import nn
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
def hinge(x):
    over = torch.relu(net(x) - 1000)
    return {}
loss = hinge(torch.randn(8, 4))
loss.backward()"""


def test_a_division_by_a_count_that_is_zero():
    (finding,) = found("nonfinite-loss", HINGE.format("over.sum() / (over > 0).sum()"))
    assert "`/` was given 1 zero to divide by" in finding.message
    fix = finding.fix.partition("  # ")[0]
    assert fix == "over.sum() / (over > 0).sum().clamp_min(1)"
    assert not found("nonfinite-loss", HINGE.format(fix))


@pytest.mark.parametrize(("made", "least"), [("torch.tensor([3, 0])", "1"), ("torch.tensor([3.0, 0.0])", "1e-08")])
def test_a_divisor_of_whole_numbers_is_at_least_1(made, least):
    cell = f"k = {made}\nloss = (net(torch.randn(2, 4))[:, 0].square() / k).mean()\nloss.backward()"
    (finding,) = found("nonfinite-loss", HINGE.partition("def")[0] + cell)
    assert f"/ k.clamp_min({least})" in finding.fix


ENTROPY = """\
import torch
from torch import nn
net, x = nn.Linear(4, 3), torch.randn(6, 4)
pick = torch.zeros(6, 1, dtype=torch.long)"""


@pytest.mark.parametrize(
    ("other", "told"),
    [("p.gather(1, pick).log().mean()", True), ("q.log().mean()", False), ("p[:, 0].log().sum()", True)],
)
def test_the_logarithm_of_a_variable_with_as_many_numbers(other, told):
    cell = (
        "p = net(x).masked_fill(x[:, :3] > 9, 0).softmax(1)\nq = p.clone()\np = p * (torch.arange(3) < 2)\n"
        f"loss = (p * p.log()).sum() + {other}\nloss.backward()"
    )
    (finding,) = findings_in(ENTROPY, cell, slug="nonfinite-loss", fails=False)
    assert ("p.clamp_min(1e-12).log()" in finding.fix) is told


NEIGHBOURS = """\
import torch
from torch import nn
lin, x, adj = nn.Linear(6, 3), torch.randn(5, 3), torch.ones(5, 5)
adj[2] = 0
degree = adj.sum(1, keepdim=True)"""


@pytest.mark.parametrize(
    ("cell", "fix"),
    [
        ("h = adj @ x\nh = h / degree\nloss = lin(torch.cat([x, h], 1)).mean()", "h = h / degree.clamp_min(1e-08)"),
        ("loss = lin(torch.cat([x, adj @ x / degree], 1)).mean()", "adj @ x / degree.clamp_min(1e-08)"),
        ("h = adj @ x / degree\nh = h / x.norm()\nloss = lin(torch.cat([x, h], 1)).mean()", ""),
    ],
)
def test_a_division_before_the_graph_begins(cell, fix):
    (finding,) = findings_in(NEIGHBOURS, f"{cell}\nloss.backward()", slug="nonfinite-loss", fails=False)
    assert fix in finding.fix
    assert ("degree.clamp_min" in finding.fix) is bool(fix)


ROWS_OF_NAN = """\
import torch
from torch import nn
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
x, y = torch.randn(8, 4), 100 * torch.ones(8, 1)
x[2] = float("nan")
known = ~x.isnan().any(1)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127)"""


@pytest.mark.parametrize(
    "loss", ["(net(x)[known] - y[known]).pow(2).mean()", "(net(x[known]) - y[known]).pow(2).mean()"]
)
@pytest.mark.parametrize(
    ("calls", "count"),
    [
        ("(loss * 2.0**127).backward()", 1),
        ("scaled = loss * 2.0**127\nscaled.backward()\nopt.step()", 1),
        ("scaler.scale(loss).backward()\nopt.step()", 1),
        ("scaler.scale(loss).backward()", 0),
        ("scaled = scaler.scale(loss)\nscaled.backward()", 0),
        ("scaler.scale(loss).backward()\nscaler.step(opt)\nscaler.update()", 0),
    ],
)
def test_no_loss_is_infinite_for_nan_in_the_data(loss, calls, count):
    findings = found("nonfinite-loss", ROWS_OF_NAN, f"loss = {loss}\n{calls}")
    assert len(findings) == count
    assert all("multiplied by 1.701e+38" in one.message and "`x`" not in one.message for one in findings)
    assert all(one.fix.startswith("multiply by less") for one in findings)


def test_a_loss_is_nan_for_nan_in_the_data():
    (finding,) = found("nonfinite-loss", ROWS_OF_NAN, "loss = (net(x) - y).pow(2).mean()\n(loss * 2.0**16).backward()")
    assert "`x`, which was given to it, holds 4 nan" in finding.message
