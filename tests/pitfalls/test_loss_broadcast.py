"""A column against a row in losses of functions and methods, whose variables are gone when the cell is done."""

import pytest

from tests.cells import findings_in

SETUP = """\
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(3, 1)
crit = {loss}
opt = torch.optim.SGD(net.parameters(), lr=0.01)
def fit(inputs, wanted):
    for i in range(0, len(inputs), 16):
        loss = crit(net(inputs[i:i + 16]), {target})
        opt.zero_grad()
        loss.backward()
        opt.step()"""


def found(target, cell, loss="nn.MSELoss()"):
    warnings = "import warnings\nwarnings.simplefilter('ignore')"
    setup = SETUP.format(loss=loss, target=target)
    return findings_in(warnings, setup, cell, slug="loss-broadcast", fails=False)


@pytest.mark.parametrize("loss", ["nn.MSELoss()", "nn.L1Loss()", "nn.SmoothL1Loss()"])
def test_what_only_the_call_knows(loss):
    """The caller's text has the call, and not the tensors: the frame that runs has them."""
    (finding,) = found("wanted[i:i + 16]", "fit(torch.randn(64, 3), torch.randn(64))", loss)
    assert (finding.cell, finding.line, finding.severity) == (2, 9, "error")
    assert "compares (16, 1) with (16,)" in finding.message


@pytest.mark.parametrize(
    ("target", "cell"),
    [
        ("wanted[i:i + 16]", "fit(torch.randn(64, 3), torch.randn(64, 1))"),
        ("wanted[i:i + 16, None]", "fit(torch.randn(64, 3), torch.randn(64))"),
    ],
)
def test_sizes_that_fit(target, cell):
    assert not found(target, cell)
