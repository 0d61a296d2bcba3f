"""A learning rate so high that the loss is not finite after the first step."""

import pytest

from tests.cells import findings_in

SETUP = """\
import torch
from torch import nn
torch.manual_seed(0)
x, y = torch.randn(64, 13) * 400, torch.rand(64, 1) * 50000
net = nn.Sequential(nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
opt = torch.optim.SGD(net.parameters(), lr={rate})"""
LOOP = """\
for _ in range(6):
    opt.zero_grad()
    {loss}
    loss.backward()
    opt.step()"""
LOSS = "loss = nn.functional.mse_loss(net(x), y)"


def slugs(rate, loss):
    found = findings_in(SETUP.format(rate=rate), LOOP.format(loss=loss), fails=False)
    return {one.slug: one for one in found}


def test_the_first_step_makes_the_weights_huge():
    found = slugs(0.1, LOSS)
    assert "nonfinite-loss" not in found
    one = found["learning-rate-divergence"]
    assert "at step 1 and inf at step 2, with weights up to" in one.message
    assert one.fix.startswith("opt with lr=0.01 or less; scale inputs and targets")


@pytest.mark.parametrize(
    "loss",
    ["loss = (net(x / 400) - 1e4).log().mean()", "loss = net(x / 400).mean() / (y < 0).sum()"],
)
def test_an_operation_that_cannot_take_its_numbers_is_told_itself(loss):
    found = slugs(0.001, loss)
    assert "learning-rate-divergence" not in found


def test_a_rate_that_fits():
    assert slugs(1e-3, "loss = nn.functional.mse_loss(net(x / 400), y / 50000)") == {}


def test_scores_that_the_first_step_made_huge_are_no_masked_row():
    tokens = "seq = torch.randint(0, 40, (60,))\ncell, head = nn.Linear(64, 32), nn.Linear(32, 40)"
    setup = f"import torch\nfrom torch import nn\ntorch.manual_seed(0)\n{tokens}\nemb = nn.Embedding(40, 32)"
    opt = "opt = torch.optim.SGD([*emb.parameters(), *cell.parameters(), *head.parameters()], lr=5.0)"
    steps = "for t in range(59):\n        h = cell(torch.cat([emb(seq[t]), h])).relu()"
    loss = (
        f"h, loss = torch.zeros(32), 0\n    {steps}\n        loss += nn.functional.cross_entropy(head(h), seq[t + 1])"
    )
    found = {one.slug: one for one in findings_in(setup, opt, LOOP.format(loss=loss), fails=False)}
    assert set(found) == {"learning-rate-divergence"}
    assert "at step 2, with weights up to" in found["learning-rate-divergence"].message


POLICY = """\
import torch
from torch import nn
torch.manual_seed(0)
p = nn.Linear(3, 2)
opt = torch.optim.Adam(p.parameters(), lr=0.1)
x = torch.randn(32, 3)
first = p(x).detach()"""


@pytest.mark.parametrize("beginning", [1e-8, 2e-3])
def test_a_loss_that_begins_near_zero_and_meets_the_spread_of_one_sample_has_not_grown(beginning):
    turns = f"""\
for n in (32, 32, 1):
    A = torch.randn(n)
    A = (A - A.mean()) / A.std()
    d = p(x[:n]) - first[:n]
    loss = (d**2).mean() + {beginning} + 0 * (A * d[:, 0]).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()"""
    found = findings_in(POLICY, turns, fails=False)
    assert "learning-rate-divergence" not in [one.slug for one in found]
    assert any(one.slug == "nonfinite-loss" and "one value has no spread" in one.message for one in found)
