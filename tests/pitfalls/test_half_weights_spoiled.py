"""Weights in float16 that Adam made nan: one error, which says since when."""

import pytest

from tests.cells import findings_in

SETUP = """\
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3)).half()
opt = torch.optim.Adam(net.parameters(){more})
x, y = torch.randn(64, 10).half(), torch.randint(0, 3, (64,))
losses = []"""
LOOP = """\
for _ in range(10):
    opt.zero_grad()
    loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()
    opt.step()
    {keep}"""


@pytest.mark.parametrize("keep", ["losses.append(loss.item())", "print(loss.item())", "pass"])
def test_it_says_since_when(keep):
    (finding,) = findings_in(SETUP.format(more=""), LOOP.format(keep=keep), fails=False)
    assert (finding.slug, finding.severity) == ("half-without-scaler", "error")
    assert finding.message.endswith("The weights are nan since step 1.")
    assert finding.fix.endswith("; or at least eps=1e-4 for opt")


def test_a_larger_eps_is_a_warning():
    (finding,) = findings_in(SETUP.format(more=", eps=1e-4"), LOOP.format(keep="pass"), fails=False)
    assert (finding.slug, finding.severity) == ("half-without-scaler", "warning")
    assert "nan since" not in finding.message
    assert "eps" not in finding.fix
