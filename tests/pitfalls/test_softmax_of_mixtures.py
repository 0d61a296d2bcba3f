"""Weights of a mixture whose softmax runs along the samples: in `logsumexp`, in a likelihood, in parts added up."""

import pytest

from tests.cells import findings_in

SETUP = """\
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
x, y = torch.randn(12, 10), torch.randn(12, 1)
z, mean = nn.Linear(10, 5), nn.Linear(10, 5)
rnn, first = nn.GRU(10, 10), nn.Parameter(torch.randn(5))
parts = [nn.Linear(10, 3) for _ in range(5)]
d = lambda: torch.distributions.Normal(mean(x), 1.0).log_prob(y)"""
DENSITIES = [
    "-torch.logsumexp(F.log_softmax(z(x), {}) + d(), dim=1).mean()",
    "-(d() + torch.log_softmax(z(x), dim={})).logsumexp(-1).mean()",
    "-torch.log((torch.softmax(z(x), {}) * d().exp()).sum(1) + 1e-9).mean()",
    "-(F.log_softmax(z(x).view(3, 4, 5), {}) + d().view(3, 4, 5)).logsumexp(-1).mean()",
    "-torch.logsumexp(torch.softmax(z(x), {}).log() - (mean(x) - y) ** 2, 1).mean()",
]
SUMS = [
    "w = F.softmax(z(x), {})\nout = sum(w[:, i : i + 1] * part(x) for i, part in enumerate(parts))",
    "w = z(x).softmax({})\nout = sum(w[:, i, None] * part(x) for i, part in enumerate(parts))",
    "w = z(x).softmax({})\nout = 0\nfor i in range(5):\n    out = out + parts[i](x) * w[..., i].unsqueeze(-1)",
]


def found(lines):
    return findings_in(SETUP, lines, slug="softmax-over-batch", fails=False)


@pytest.mark.parametrize("loss", DENSITIES)
def test_densities_of_each_sample(loss):
    (finding,) = found(f"loss = {loss.format(0)}\nloss.backward()")
    assert finding.severity == "error"
    assert "5 parts along dim" in finding.message
    assert "along the parts" in finding.fix
    assert not found(f"loss = {loss.format(-1)}\nloss.backward()")


@pytest.mark.parametrize("lines", SUMS)
def test_parts_that_are_added_one_by_one(lines):
    (finding,) = found(f"{lines.format(0)}\nout.square().mean().backward()")
    assert "`w` runs along dim 0, the 12 samples; a sum then adds up 5 parts along dim 1" in finding.message
    assert not found(f"{lines.format(1)}\nout.square().mean().backward()")
    assert not found(f"{lines.format(0)}\nout.sum(0).square().mean().backward()")  # heads that look at one set


@pytest.mark.parametrize(
    "loss",
    [
        # Words given a topic, topics of each word's context.
        "(F.log_softmax(z(x), 0) + F.log_softmax(first, 0)).logsumexp(1).mean()",
        "(F.log_softmax(z(x), 0)[None] + torch.randn(4, 1, 5, requires_grad=True)).logsumexp(2).mean()",
        # A step of a chain: from each state to each other one.
        "(F.log_softmax(z(x), 1) + mean(x)[:, :1]).logsumexp(0).mean()",
        # Rows and columns of one table.
        "(F.log_softmax(z(x), 0) + F.log_softmax(z(x), 1)).logsumexp(1).mean()",
        "(z(x).softmax(0) * z(x).softmax(1)).sum(1).log().mean()",
        # Shares along the parts, summed up there.
        "(F.log_softmax(z(x), 0) + d()).logsumexp(0).mean()",
        # The parts stand first, the samples second.
        "(z(x).T.softmax(0) * torch.rand(5, 12)).sum(1).mean()",
        "((z.weight @ x.T).softmax(0) * torch.rand(5, 12)).sum(1).mean()",
        "(z(x).T.log_softmax(0) + d().T).logsumexp(1).mean()",
        # Some columns only.
        "sum(z(x).softmax(0)[:, i, None] * parts[i](x) for i in range(3)).mean()",
        # Words of a text given topics, whose shares are those of the whole text.
        "(z(x).softmax(0) * torch.rand(5)).sum(1).log().mean()",
        "(z(x).softmax(0) * first.softmax(0).repeat(12, 1)).sum(1).square().mean()",
        "sum(z(x).softmax(0)[:, i] * first.softmax(0)[i] for i in range(5)).log().mean()",
        "(F.log_softmax(z(x), 0) + first.expand(12, 5)).logsumexp(1).mean()",
        "(z(x).softmax(0) * torch.rand(5) * torch.rand(12, 1)).sum(1).square().mean()",
        # Weights of steps that a recurrent layer gave, time first.
        "sum(z(rnn(x[:, None])[0][:, 0]).softmax(0)[:, i, None] * parts[i](x) for i in range(5)).mean()",
    ],
)
def test_tables_that_are_right(loss):
    assert not found(f"loss = {loss}\nloss.backward()")


@pytest.mark.parametrize("loss", ["({} * torch.randn(12, 5)).sum(1).mean()", "-(mean(x) * {}).sum(-1).mean()"])
def test_an_expectation_of_each_sample_is_a_hint(loss):
    (finding,) = found(f"p = F.softmax(z(x), dim=0)\nloss = {loss.format('p')}\nloss.backward()")
    assert finding.severity == "hint"
    assert "is right if the 12 samples are to share each weight" in finding.message
    assert not found(f"p = F.softmax(z(x), dim=1)\nloss = {loss.format('p')}\nloss.backward()")
    assert not found(f"p = F.softmax(z(x), dim=0)\nloss = {loss.format('p')} + (p.T @ x).mean()\nloss.backward()")
    assert not found(
        f"p = F.softmax(z(x), dim=0)\nloss = {loss.format('p').replace('mean()', 'sum()')}\nloss.backward()"
    )
    assert not found("p = F.softmax(z(x), dim=0)\nloss = (p * torch.randn(5)).sum(1).mean()\nloss.backward()")
