"""An `nll_loss` that was given what a layer made, past an activation, a norm or a scale."""

import pytest

from tests.cells import findings_in

SETUP = """\
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
body, norm = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3)), nn.BatchNorm1d(3)
x, y = torch.randn(30, 10), torch.randint(0, 3, (30,))
opt = torch.optim.SGD(body.parameters(), 0.1)"""
STEP = "loss = {}\nloss.backward()\nopt.step()"


def found(loss):
    return findings_in(SETUP, STEP.format(loss), slug="probabilities-in-nll-loss", fails=False)


@pytest.mark.parametrize(
    "scores",
    ["F.elu(body(x))", "body(x).tanh()", "F.leaky_relu(body(x), 0.2)", "norm(body(x))", "(F.gelu(norm(body(x))) / 2)"],
)
def test_scores_past_an_activation(scores):
    (finding,) = found(f"F.nll_loss({scores}[:20], y[:20])")
    assert "raw scores" in finding.message


@pytest.mark.parametrize(
    "loss",
    [
        "F.nll_loss(F.log_softmax(F.elu(body(x)), 1), y)",
        "F.nll_loss(F.logsigmoid(body(x)), y)",
        "F.nll_loss(-F.softplus(body(x)), y)",
        "F.nll_loss(-F.relu(body(x)), y)",
        "F.nll_loss(F.elu(body(x)), y) + F.elu(body(x)).logsumexp(1).mean()",
        "F.nll_loss(F.log_softmax(body(x), 1) * 0.5, y)",
        "torch.log1p((1 + F.nll_loss(F.relu(body(x)), y)).abs())",
    ],
)
def test_logarithms_and_what_makes_them(loss):
    assert not found(loss)
