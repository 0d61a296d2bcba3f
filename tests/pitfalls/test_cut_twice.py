"""Losses that are cut off twice: the fix says all of it, and leaves a teacher alone."""

import pytest

from tests.cells import findings_in

SETUP = """\
import torch
from torch import nn
import torch.nn.functional as F
from torch.autograd import Variable
torch.manual_seed(0)
teacher, net = nn.Linear(4, 3), nn.Linear(4, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(8, 4), torch.randint(0, 3, (8,))"""
END = "\nopt.zero_grad()\nloss.backward()\nopt.step()"
BLOCK = "with torch.no_grad():\n    out = net(x)\n"
WRAPPED = "loss = Variable({}, requires_grad=True)"


def found(code):
    (finding,) = findings_in(SETUP, code + END, slug="graph-cut")
    return finding


@pytest.mark.parametrize(
    "code",
    [
        f"{BLOCK}loss = F.cross_entropy(out.data, y)\n{WRAPPED.format('loss')}",
        f"{BLOCK}loss = F.cross_entropy(out, y)\n{WRAPPED.format('loss.data')}",
        f"{BLOCK}loss = F.cross_entropy(out, y).detach()",
    ],
)
def test_a_block_without_gradients_around_the_model_goes_too(code):
    finding = found(code)
    assert "`torch.no_grad()` (line 1) is around what these come from" in finding.message
    assert finding.fix.startswith("out = net(x)\n")
    mended = finding.fix if "loss = F." in finding.fix else f"out = net(x)\n{code.splitlines()[2]}"
    assert not findings_in(SETUP, mended + END, fails=False)


@pytest.mark.parametrize(
    ("code", "comment"),
    [
        ("with torch.no_grad():\n    loss = F.cross_entropy(net(x).data, y)", "# outside of torch.no_grad() (line 1)"),
        (
            f"@torch.no_grad()\ndef ask():\n    return net(x)\n{WRAPPED.format('F.cross_entropy(ask(), y).data')}",
            "# take @torch.no_grad() away from ask()",
        ),
    ],
)
def test_a_block_around_the_cut_itself_is_named_in_the_fix(code, comment):
    finding = found(code)
    assert "torch.no_grad()` (line 1) is around what these come from" in finding.message
    assert comment in finding.fix


@pytest.mark.parametrize("end", [WRAPPED.format("loss.data"), "loss = loss.detach()"])
def test_a_block_around_the_teacher_stays(end):
    finding = found(f"with torch.no_grad():\n    t = teacher(x)\nloss = F.mse_loss(net(x), t)\n{end}")
    assert "reaches no parameter of `net`" in finding.message
    assert "no_grad" not in finding.message + finding.fix
