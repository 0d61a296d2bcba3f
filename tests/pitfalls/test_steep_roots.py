"""Roots without a slope at zero, in a step whose graph is not read any more."""

import pytest

from tests.cells import findings_in

SETUP = """\
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(4, 2)
opt = torch.optim.Adam(net.parameters(), lr=.01)
pairs = [(torch.randn(8, 4), torch.randn(8, 4)) for _ in range({count})]
pairs[{bad}][1][0] = pairs[{bad}][0][0]
def apart(a, b):
    d = (net(a) - net(b)).pow(2).sum(1)
    return {far}
"""
LOOP = """\
for a, b in pairs:
    loss = torch.relu(1 - apart(a, b)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()"""


def found(count, bad, far):
    return findings_in(SETUP.format(count=count, bad=bad, far=far), LOOP)


@pytest.mark.parametrize(
    ("count", "bad", "slug"),
    [(4, 3, "nonfinite-gradient"), (4, 2, "nonfinite-gradient"), (40, 20, "nonfinite-parameter")],
)
@pytest.mark.parametrize(
    ("far", "fix"),
    [
        ("d.sqrt()", "(d + 1e-12).sqrt()  # in place of d.sqrt()"),
        ("torch.sqrt(d)", "(d + 1e-12).sqrt()  # in place of torch.sqrt(d)"),
        ("d.abs() ** 0.4", "(d.abs() + 1e-12) ** 0.4  # in place of d.abs() ** 0.4"),
    ],
)
def test_the_root_is_named_that_has_no_slope(count, bad, slug, far, fix):
    (finding,) = [one for one in found(count, bad, far) if one.slug.startswith("nonfinite")]
    assert finding.slug == slug
    assert ("`**`" if "**" in far else "`sqrt`") in finding.message
    assert finding.fix.startswith(fix)


def test_a_root_that_is_kept_from_zero_is_not_suspected():
    spoiled = "with torch.no_grad():\n    net.weight[0, 0] = float('nan')"
    findings = findings_in(SETUP.format(count=8, bad=3, far="(d + 1e-9).sqrt()"), f"{LOOP}\n{spoiled}")
    (finding,) = [one for one in findings if one.slug == "nonfinite-parameter"]
    assert "sqrt" not in finding.message + finding.fix


DATA = """\
import torch
from torch import nn
torch.manual_seed(0)
batches = [(torch.randn(6, 4), torch.randn(6, 4)) for _ in range(40)]
batches[30][0][0] = float("nan")
four = torch.tensor(4.0)
class Norm(nn.Module):
    def forward(self, x):
        return x / x.pow(2).mean(-1, keepdim=True).sqrt()
def gradient_norm():
    return sum(p.grad.pow(2).sum() for p in net.parameters()).sqrt()"""
OPTIMIZER = "opt = torch.optim.SGD(net.parameters(), lr=.01)"
TURN = """for a, b in batches:
    {before}
    loss = (net(a) / {by} - b).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    {after}"""


@pytest.mark.parametrize(
    ("net", "before", "by", "after"),
    [
        ("nn.Linear(4, 4)", "", "1", "norm = gradient_norm()"),
        ("nn.Linear(4, 4)", "a = (a - a.mean(0)) / a.std(0)", "1", ""),
        ("nn.Linear(4, 4)", "a = a / a.pow(2).sum(1, keepdim=True).sqrt()", "1", ""),
        ("nn.Linear(4, 4)", "", "torch.sqrt(four)", ""),
        ("nn.Sequential(Norm(), nn.Linear(4, 4))", "", "1", ""),
    ],
)
def test_roots_that_no_gradient_passes_through_are_not_named(net, before, by, after):
    findings = findings_in(
        f"{DATA}\nnet = {net}\n{OPTIMIZER}", TURN.format(before=before, by=by, after=after), slug="nonfinite-parameter"
    )
    assert [one.fix for one in findings] == ["make `net` again or load an earlier state; steps cannot repair it"]
    assert "slope" not in findings[0].message


def test_a_root_of_the_loss_and_nan_in_a_batch_are_both_possible():
    setup = f"{DATA}\nnet = nn.Sequential(nn.Linear(4, 4), Norm())\n{OPTIMIZER}"
    (finding,) = findings_in(setup, TURN.format(before="", by="1", after=""), slug="nonfinite-parameter")
    assert "a batch with nan is enough, and so is one step in which `sqrt` (line 9 of cell 1)" in finding.message


def test_two_operations_at_their_edges_are_both_named():
    setup = "import torch\nw = torch.zeros(3, requires_grad=True)\nopt = torch.optim.SGD([w], lr=0.1)"
    (finding,) = findings_in(setup, "loss = (w.sqrt() + w.abs() ** 0.5).sum()\nloss.backward()\nopt.step()")
    assert "`sqrt` was given 3 zeros among 3 values, and `**` was given 3 zeros" in finding.message


@pytest.mark.parametrize(("far", "named"), [("d.sqrt()", True), ("(d + 1e-12).sqrt()", False)])
def test_a_list_of_losses_tells_of_the_weights_and_of_the_root(far, named):
    cells = [SETUP.format(count=40, bad=20, far=far), f"curve = []\n{LOOP}\n    curve.append(loss.item())"]
    if not named:
        cells[0] += "pairs[20][1][0] = float('nan')\n"
    (finding,) = findings_in(*cells, slug="nonfinite-loss")
    assert "and weights of `net` are not finite either" in finding.message
    assert ("`sqrt` (line 10 of cell 1)" in finding.message) is named
    assert finding.fix.startswith("(d + 1e-12).sqrt()") is named
    assert ("clip gradients" in finding.fix) is not named
