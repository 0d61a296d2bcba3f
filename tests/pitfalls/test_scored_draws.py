"""Losses of log-probabilities that were copied: the copy is the mistake, not the draw."""

import pytest

from tests.cells import findings_in

START = """\
import torch
from torch import nn
torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
"""
EPISODE = """\
kept, rewards = [], []
for t in range(6):
    dist = torch.distributions.Categorical(logits=policy(torch.randn(4)))
    action = dist.sample()
    kept.append({kept})
    rewards.append(float(action))
returns = torch.tensor(rewards).flip(0).cumsum(0).flip(0)
loss = -({loss} * returns).sum()
optimizer.zero_grad()
loss.backward()
optimizer.step()
"""


@pytest.mark.parametrize(
    ("kept", "loss", "slug", "line"),
    [
        ("dist.log_prob(action)", "torch.tensor(kept)", "tensor-copy-constructed", 8),
        ("dist.log_prob(action)", "torch.FloatTensor(kept)", "graph-cut", 8),
        ("dist.log_prob(action).item()", "torch.tensor(kept)", "graph-cut", 5),
        ("dist.log_prob(action).detach()", "torch.stack(kept)", "graph-cut", 5),
    ],
)
def test_the_copy_is_told_and_not_the_draw(kept, loss, slug, line):
    findings = [one for one in findings_in(START, EPISODE.format(kept=kept, loss=loss)) if one.severity != "hint"]
    assert [(one.slug, one.line) for one in findings] == [(slug, line)]
    assert "sample" not in findings[0].message + findings[0].fix


def test_a_draw_without_its_probability_is_told():
    (finding,) = findings_in(START, EPISODE.format(kept="action.float()", loss="torch.stack(kept)"))
    assert finding.slug == "graph-cut"
    assert "draws numbers" in finding.message
