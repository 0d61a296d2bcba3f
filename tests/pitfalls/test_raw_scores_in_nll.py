"""An `nll_loss` that was given what a layer made, past an activation, a norm or a scale."""

import pytest

from tests.cells import findings_in
from torch_inspector.observe import opposed

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


@pytest.mark.parametrize(
    "loss",
    [
        # The two halves of a cross-entropy.
        "F.nll_loss(s, y) + s.logsumexp(1).mean()",
        "F.nll_loss(s / 2, y) + (s / 2).exp().sum(1).log().mean()",
        "F.nll_loss(F.softplus(s), y) + F.softplus(s).exp().sum(1).log().mean()",
        "F.nll_loss(body(x), y) + body(x).logsumexp(1).mean()",
        # Margins: the perceptron's, and that of Crammer and Singer.
        "F.nll_loss(s, y) + s.max(1).values.mean()",
        'torch.mean(F.nll_loss(s, y, reduction="none") + (s + 1 - F.one_hot(y, 3)).max(1).values)',
        # A critic rates one set of samples high and another one low.
        "F.nll_loss(s, y) - F.nll_loss(body(-x), y)",
        "-F.nll_loss(body(-x), y) + F.nll_loss(s, y)",
        "F.nll_loss(s, y) + 0.5 * s.square().mean()",
    ],
)
def test_scores_that_something_else_holds(loss):
    assert not found(f"(s := body(x), {loss})[1]")


@pytest.mark.parametrize(
    "loss",
    [
        "F.nll_loss(s, y) + F.nll_loss(body(-x), y)",
        "F.nll_loss(s, y) + 0.1 * sum(one.square().sum() for one in body.parameters())",
        "0.5 * F.nll_loss(s, y) + 0.5 * F.nll_loss(s, y.flip(0))",
        # What a softmax gives stays the same where all scores rise.
        "F.nll_loss(s, y) + (s.softmax(1) * s.log_softmax(1)).sum(1).mean()",
    ],
)
def test_scores_that_nothing_holds(loss):
    assert found(f"(s := body(x), {loss})[1]")


@pytest.mark.parametrize(
    ("lines", "severity"),
    [
        ("reg = s.logsumexp(1).mean()\nloss.backward(retain_graph=True)\nreg.backward()\nopt.step()", "hint"),
        ("low = -F.nll_loss(body(-x), y)\nlow.backward()\nloss.backward()\nopt.step()", "hint"),
        ("part = body[0](x).square().mean()\nloss.backward()\npart.backward()\nopt.step()", "error"),
        ("loss.backward()\nopt.step()\nright = F.cross_entropy(body(x), y)\nright.backward()\nopt.step()", "error"),
    ],
)
def test_scores_that_another_call_may_hold(lines, severity):
    cell = f"s = body(x)\nloss = F.nll_loss(s, y)\n{lines}"
    one = [one for one in findings_in(SETUP, cell, slug="probabilities-in-nll-loss") if one.line == 2]
    assert [(finding.severity or "error") for finding in one] == [severity]


@pytest.mark.parametrize(("other", "count"), [("F.nll_loss(body(-x), y)", 1), ("-F.nll_loss(body(-x), y)", 0)])
def test_each_call_of_a_layer_is_followed_once(monkeypatch, other, count):
    asked, follow = [], opposed._losses_above

    def followed(layer, *others):
        asked.append(layer)
        return follow(layer, *others)

    monkeypatch.setattr(opposed, "_losses_above", followed)
    assert len(found(f"sum(F.nll_loss(body(x), y) for _ in range(20)) + {other}")) == count
    assert 1 < len(asked) <= 2 * 21
