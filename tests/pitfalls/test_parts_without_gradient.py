"""Parameters that an optimizer holds and no gradient reaches, of codebooks and of methods that are not `forward`."""

import pytest

from tests.cells import findings_in

SETUP = """
import torch
from torch import nn
torch.manual_seed(0)
enc, dec = nn.Linear(20, 8), nn.Linear(8, 20)
"""
QUANTIZER = """
class Quantizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.codebook = nn.Embedding(32, 8)

    def forward(self, x):
        idx = torch.cdist(x, self.codebook.weight).argmin(1)
        z = self.codebook(idx)
        return x + (z - x).detach(), z

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec, self.vq = nn.Linear(20, 8), nn.Linear(8, 20), Quantizer()

    def loss(self, x):
        z_e = self.enc(x)
        z_q, z = self.vq(z_e)
        return nn.functional.mse_loss(self.dec(z_q), x) + nn.functional.mse_loss(z_q, z_e.detach())

model = Model()
opt = torch.optim.Adam(model.parameters())
"""
LOSSES = """
for _ in range(6):
    opt.zero_grad()
    loss = model.loss(torch.randn(64, 20))
    loss.backward()
    opt.step()
"""
VARIABLE = """
codebook = nn.Parameter(torch.randn(32, 8))
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters(), codebook])
"""
STEPS = """
for _ in range(6):
    x = torch.randn(64, 20)
    z_e = enc(x)
    idx = torch.cdist(z_e, codebook).argmin(1)
    z_q = PASSED
    loss = nn.functional.mse_loss(dec(z_q), x)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
TRAINER = """
class Trainer:
    def __init__(self):
        self.codebook = nn.Parameter(torch.randn(32, 8))
        self.opt = torch.optim.Adam([*enc.parameters(), *dec.parameters(), self.codebook])

    def step(self, x):
        z_e = enc(x)
        z = self.codebook[torch.cdist(z_e, self.codebook).argmin(1)]
        loss = nn.functional.mse_loss(dec(z_e + z.detach() - z_e.detach()), x)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()

trainer = Trainer()
"""
FOUND = {
    "a method": ([QUANTIZER, LOSSES], "model.vq.codebook"),
    "forward": (
        [QUANTIZER.replace("def loss", "def forward"), LOSSES.replace(".loss", "")],
        "model.vq.codebook",
    ),
    "a variable": ([VARIABLE, STEPS.replace("PASSED", "z_e + (codebook[idx] - z_e).detach()")], "codebook"),
    "no gradients": (
        [VARIABLE, STEPS.replace("PASSED", "z_e + (codebook[idx] - z_e).data")],
        "codebook",
    ),
    "in an object": ([TRAINER, "for _ in range(6):\n    trainer.step(torch.randn(64, 20))"], "trainer.codebook"),
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_it_is_named_with_a_loss_of_its_own(name):
    cells, subject = FOUND[name]
    (finding,) = findings_in(SETUP, *cells, fails=False)
    assert (finding.slug, finding.subject) == ("accidental-detach", subject)
    assert "nn.functional.mse_loss(" in finding.fix


def test_the_loss_helps():
    cell = STEPS.replace("PASSED", "z_e + (codebook[idx] - z_e).detach()")
    (finding,) = findings_in(SETUP, VARIABLE, cell)
    mended = cell.replace("    opt.zero_grad()", f"    {finding.fix}\n    opt.zero_grad()")
    assert findings_in(SETUP, VARIABLE, mended, fails=False) == []


def test_a_choice_of_the_nearest():
    cell = STEPS.replace("z_q = PASSED", "z_q = z_e * nn.functional.one_hot(idx, 32).sum(1, keepdim=True).float()")
    (finding,) = findings_in(SETUP, VARIABLE, cell, fails=False)
    assert (finding.slug, finding.subject) == ("graph-cut", "codebook")
    assert "argmin" in finding.message


AVERAGE = "    with torch.no_grad():\n        codebook.lerp_(torch.randn(32, 8), 0.01)\n    opt.step()"
PASSED = "z_e + (codebook[idx] - z_e).detach()"
TARGET = """
class Learner(nn.Module):
    def __init__(self):
        super().__init__()
        self.online, self.goal = nn.Linear(20, 8), nn.Linear(20, 8)

    def loss(self, x):
        return (self.online(x) - self.goal(x).detach()).pow(2).mean()

    def follow(self):
        for p, q in zip(self.online.parameters(), self.goal.parameters()):
            q.data.mul_(0.99).add_(p.data, alpha=0.01)

model = Learner()
opt = torch.optim.Adam(model.parameters())
"""


@pytest.mark.parametrize(
    "cells",
    [
        [QUANTIZER.replace("z_q, z_e.detach()", "z, z_e.detach()"), LOSSES],
        [VARIABLE, STEPS.replace("PASSED", PASSED).replace("    opt.step()", AVERAGE)],
        [VARIABLE, STEPS.replace("PASSED", PASSED).replace("    loss =", "    loss = codebook.pow(2).mean() +")],
        [VARIABLE, STEPS.replace("PASSED", "z_e + codebook[idx]"), STEPS.replace("PASSED", PASSED)],
        [VARIABLE, STEPS.replace("PASSED", "z_e")],
        [VARIABLE + "codebook.requires_grad_(False)", STEPS.replace("PASSED", PASSED)],
        [VARIABLE, STEPS.replace("PASSED", PASSED).replace("range(6)", "range(2)")],
        [TARGET, LOSSES + "    model.follow()"],
        [QUANTIZER.replace("self.vq(z_e)", "z_e, z_e"), LOSSES],
    ],
    ids=["trained", "average", "regularised", "earlier", "measured", "frozen", "two steps", "target", "unused"],
)
def test_silent(cells):
    assert findings_in(SETUP, *cells, fails=False) == []


ACTOR = """\
import numpy as np
import torch
from torch import nn
torch.manual_seed(0)
class Env:
    def reset(self):
        return torch.zeros(4)
    def step(self, action):
        seen = torch.randn(4)
        return seen, float(action == (seen[0] > 0).long()), False
class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk, self.pi, self.v = nn.Linear(4, 8), nn.Linear(8, 2), nn.Linear(8, 1)
    def forward(self, seen):
        z = self.trunk(seen).tanh()
        return torch.distributions.Categorical(logits=self.pi(z)), self.v(z)
env, agent = Env(), Agent()
opt = torch.optim.Adam(agent.parameters(), lr=1e-3)"""
EPISODES = """\
for episode in range(6):
    seen, picked, rewards, values = env.reset(), [], [], []
    for _ in range(5):
        dist, value = agent(seen)
        action = dist.sample()
        picked.append(dist.log_prob(action))
        seen, reward, done = env.step(action)
        rewards.append(reward)
        values.append(value)
    returns = {returns}
    loss = -(torch.stack(picked) * returns).sum()
    opt.zero_grad(); loss.backward(); opt.step()"""


@pytest.mark.parametrize(
    "returns",
    [
        "torch.tensor(rewards).flip(0).cumsum(0)",
        "torch.from_numpy(np.array(rewards, dtype=np.float32).cumsum())",
        "torch.tensor([float(one) for one in rewards])",
        "sum(rewards) / len(rewards)",
    ],
)
def test_rewards_of_an_environment_cut_nothing_off(returns):
    assert findings_in(ACTOR, EPISODES.format(returns=returns), slug="graph-cut", fails=False) == []


@pytest.mark.parametrize(
    "returns", ["torch.tensor([v.item() for v in values])", "torch.tensor(np.array([v.item() for v in values]))"]
)
def test_values_that_are_made_anew_are_a_cut(returns):
    (one,) = findings_in(ACTOR, EPISODES.format(returns=returns), slug="graph-cut", fails=False)
    assert one.subject == "agent.v"
