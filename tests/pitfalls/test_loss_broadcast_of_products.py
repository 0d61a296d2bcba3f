"""Losses, ratios and log probabilities (N,) that meet weights, advantages and masks (N, 1), or the other way round."""

import pytest

from tests.cells import findings_in

SETUP = """\
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
net, critic, actor, wide = nn.Linear(3, 1), nn.Linear(3, 1), nn.Linear(3, 4), nn.Linear(3, 3)
x, y, weight, adv = torch.randn(20, 3), torch.rand(20, 1), torch.rand(20, 1), torch.randn(20)
label, action, single = torch.randint(0, 4, (20,)), torch.randint(0, 4, (20, 1)), torch.rand(1, 3)
mask, kernel, old = weight > 0.5, torch.rand(20, 20), torch.randn(20)
def per_row():
    return F.cross_entropy(actor(x), label, reduction="none")
def policy():
    return torch.distributions.Normal(net(x), torch.ones(1))
def log_prob():
    return torch.distributions.Categorical(logits=actor(x)).log_prob(label)
def cox(risk, event):
    return -((risk - torch.logcumsumexp(risk, 0)) * event).sum() / event.sum()
def ppo(now, gain):
    ratio = (now - old[:, None]).exp()
    return -torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()"""

MISTAKES = [
    ("(per_row() * weight).mean()", "weight"),
    ("(weight * per_row()).sum() / weight.sum()", "weight"),
    ("(per_row() / weight).mean()", "weight"),
    ("torch.where(mask, per_row(), 0.0).sum()", "mask"),
    ("torch.mul(per_row(), weight).mean()", "weight"),
    ("cox(net(x).squeeze(1), weight)", "event"),
    ("cox(net(x).reshape(-1).sigmoid(), weight)", "event"),
    ("-(policy().log_prob(y) * adv).mean()", "adv"),
    ("(-policy().log_prob(y) * adv - 0.01 * policy().entropy()).mean()", "adv"),
    ("-(log_prob() * (adv[:, None] - critic(x).detach())).mean()", ""),
    ("-(log_prob() * (adv[:, None] - critic(x))).mean()", ""),
    ("-(torch.stack(log_prob()[:, None].unbind()) * adv).sum()", "adv"),
    ("ppo(policy().log_prob(y), adv)", "gain"),
    ("F.relu(1 - net(x) * adv.sign()).mean()", "adv.sign()"),
    ("(adv * policy().log_prob(y)).mean(dim=(0, 1))", "adv"),
]


def found(loss):
    return findings_in(SETUP, f"loss = {loss}\nloss.backward()", slug="loss-broadcast", fails=False)


@pytest.mark.parametrize(("loss", "name"), MISTAKES)
def test_a_column_times_a_row(loss, name):
    (finding,) = found(loss)
    assert "(20, 1)" in finding.message
    assert "stretched to (20, 20)" in finding.message
    assert name in finding.fix


def test_the_fix_is_pasted():
    loss = "(F.cross_entropy(actor(x), label, reduction='none') * weight).mean()"
    (finding,) = found(loss)
    assert finding.fix.startswith("weight = weight.squeeze(1)")
    fixed = f"{finding.fix}\nloss = {loss}\nloss.backward()"
    assert not findings_in(SETUP, fixed, slug="loss-broadcast", fails=False)


LEVELS = """\
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
net, x, y = nn.Linear(3, 1), torch.randn(5, 3), torch.randn(5, 1)
levels, weights, noise = torch.tensor([0.05, 0.25, 0.5, 0.75, 0.95]), torch.tensor([1.0, 0.5, 2, 4, 3]), torch.rand(5)
down, pairs = 1 / torch.rand(5).sort().values, torch.randn(5, 5)
def pinball(error, taus):
    return torch.maximum(taus * error, (taus - 1) * error).mean()"""
SAME_LENGTH = [
    ("pinball(y - net(x), levels)", False),
    ("pinball(y - net(x), weights)", False),
    ("pinball(y - net(x), taus=down)", False),
    ("F.softplus(-net(x) / weights).mean()", False),
    ("F.softplus(-net(x) / torch.tensor([2.0, 1.0, 4.0, 3.0, 5.0])).mean()", False),
    ("F.softplus(-net(x) / down).mean()", False),
    ("F.relu(pairs - net(x) * noise).mean()", False),
    ("F.relu(net(x) * noise + pairs).mean()", False),
    ("F.relu(1 - net(x) * noise).mean()", True),
    ("pinball(y - net(x), noise)", True),
]


@pytest.mark.parametrize(("loss", "is_said"), SAME_LENGTH)
def test_levels_that_are_as_many_as_the_samples(loss, is_said):
    code = f"loss = {loss}\nloss.backward()"
    assert bool(findings_in(LEVELS, code, slug="loss-broadcast", fails=False)) is is_said


@pytest.mark.parametrize(
    "loss",
    [
        "(per_row() * weight.squeeze(1)).mean()",
        "(per_row()[:, None] * weight).mean()",
        "(per_row()[:, None] * adv).mean()",  # made a column
        "(per_row() * weight).mean(0).max()",  # over one axis
        "((net(x) * net(x).squeeze(1)) - kernel).pow(2).mean()",
        "((net(x) * net(x).T) * kernel).mean()",
        "(net(x) * net(x).squeeze(1)).mean()",  # a tensor with itself
        "(net(x) * adv * kernel).mean()",  # pairs have weights of their own
        "torch.where(kernel > 0.5, net(x) * adv, 0).sum()",
        "(per_row() * weight - kernel).pow(2).mean()",
        "(net(x) * adv - kernel).abs().mean()",
        "(-net(x) * adv).exp().mean()",  # not straight
        "(net(x) * torch.linspace(0, 1, 20)).mean()",  # bins
        "(wide(single).squeeze(0) * torch.rand(3, 1)).sum()",  # three numbers of one sample
        "(F.softmax(actor(x), 1) * torch.rand(4)).sum()",  # class weights
        "(nn.Linear(3, 4)(x[:4]) * torch.rand(4)).sum()",  # class weights of as many classes as samples
        "(net(x) * torch.rand(20, 7)).mean()",  # a mask (B, 1) * (B, T)
        "(wide(x) * mask).sum() / mask.sum()",
        "(wide(x)[:, :1] * torch.rand(1, 20)).mean()",
        "(nn.Parameter(torch.ones(20, 1)) * per_row()).mean()",
        "(policy().log_prob(y).squeeze(1) * adv).mean()",
    ],
)
def test_products_that_fit_or_are_meant(loss):
    assert not found(loss)
