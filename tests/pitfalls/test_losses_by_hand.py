"""Fixes of losses that are written by hand, in the user's own names; and what is told in other words."""

import pytest

from tests.cells import a_notebook, findings_in

SOFTMAX = """\
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
x, y = torch.randn(40, 6) * 300, torch.randint(0, 3, (40,))
net = nn.Linear(6, 3)
recon, target = torch.sigmoid(nn.Linear(6, 1)(x)), y[:, None].clamp(max=1).float()
"""
OWN = """\
e = torch.exp(net(x))
p = e / e.sum(1, keepdim=True)
loss = -torch.log(p[range(len(y)), y]).mean()
loss.backward()"""
BCE = """\
loss = -(target * torch.log(recon) + (1 - target) * torch.log(1 - recon)).mean()
loss.backward()"""


def fix_of(cell, slug="nonfinite-loss"):
    (finding,) = findings_in(SOFTMAX, cell, slug=slug, fails=False)
    return finding.fix


def test_a_softmax_of_exponentials():
    fix = fix_of(OWN)
    assert fix.startswith("log_p = torch.log_softmax(net(x), 1)  # and log_p[range(len(y)), y] in place of ")
    assert fix.endswith("or F.cross_entropy(net(x), y)")


def test_a_softmax_without_a_logarithm():
    cell = "e = net(x).exp()\np = e / e.sum(1, keepdim=True)\nloss = (p * torch.arange(3.)).sum()\nloss.backward()"
    assert fix_of(cell).startswith("torch.softmax(net(x), 1)  # in place of exp and sum")


def test_exponentials_that_are_not_divided_by_their_sum():
    assert fix_of("e = net(x).exp()\nloss = (e / e).mean()\nloss.backward()").startswith(
        "e = net(x).clamp_max(10).exp()"
    )


def test_a_cross_entropy_of_two_logarithms():
    fix = fix_of(BCE)
    assert (
        fix == "recon = recon.clamp(1e-6, 1 - 1e-6)  # before the logarithms, or F.binary_cross_entropy(recon, target)"
    )


def test_no_placeholder_is_a_name_of_the_user():
    fix = fix_of("z = net(x).relu()\nloss = (z.log() + (z + 1).log()).mean()\nloss.backward()")
    assert "x.clamp_min" not in fix
    assert "….clamp_min(1e-12).log()" in fix


ADVANTAGES = """\
for n in ({sizes}):
    adv = net(torch.randn(n, 6)).sum(1)
    adv = (adv - adv.mean()) / (adv.std({given}) + 1e-8)
    loss = adv.pow(2).mean()
    loss.backward()"""


def test_the_spread_of_one_value():
    (finding,) = findings_in(SOFTMAX, ADVANTAGES.format(sizes="8, 8, 1", given=""), slug="nonfinite-loss", fails=False)
    assert "1 nan is first seen in what `std` gives; one value has no spread" in finding.message
    assert finding.fix.startswith("adv = (adv - adv.mean()) / (adv.std(correction=0) + 1e-08)")
    assert (
        findings_in(
            SOFTMAX, ADVANTAGES.format(sizes="8, 8, 1", given="correction=0"), slug="nonfinite-loss", fails=False
        )
        == []
    )


HALF = """\
net = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4)).half()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(128, 16, dtype=torch.float16) * 0.1
for step in range(10):
    opt.zero_grad()
    loss = 1e-5 * (net(x) ** 2).mean()
    loss.backward()
    opt.step()"""


def test_a_scaler_is_not_offered_for_weights_in_float16():
    fix = fix_of(HALF, "half-underflow")
    assert fix.startswith("net.float()  # and compute under torch.autocast with a GradScaler; or net.bfloat16()")
    assert "scaler.scale" not in fix


TWICE = "loss = F.cross_entropy({scores}, y)\nloss.backward()"


def test_a_logarithm_twice_says_where_the_first_is():
    (finding,) = findings_in(SOFTMAX, TWICE.format(scores="F.log_softmax(net(x), dim=1)"), fails=False)
    assert "`log_softmax` twice (`F.log_softmax(net(x), dim=1)`, line 1)" in finding.message
    assert findings_in(SOFTMAX, TWICE.format(scores="net(x)"), fails=False) == []


@pytest.mark.parametrize(
    ("view", "fix"),
    [
        ("images.view(-1, 3, 8, 8)", "images = images.permute(0, 3, 1, 2)"),
        ("images.float().reshape(16, 3, 8, 8)", "images = images.float().permute(0, 3, 1, 2)"),
    ],
)
def test_a_view_is_told_once_and_with_its_axes(view, fix):
    with a_notebook(min_bytes=0) as notebook:
        notebook.run(f"import torch\nimages = torch.rand(16, 8, 8, 3)\nimages = {view}")
        notebook.run("conv = torch.nn.Conv2d(3, 4, 3)\nout = conv(images)")
        notebook.run("out = conv(images)")
        found = [run.findings for run in notebook.runs]
    assert [len(one) for one in found] == [1, 0, 0]
    assert found[0][0].fix == fix
