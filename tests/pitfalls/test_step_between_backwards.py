"""Backward calls that fail because of a step, and those that fail or succeed otherwise."""

import pytest

from tests.cells import a_notebook

SLUG = "step-between-backwards"
START = """\
import torch
import torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
x = torch.randn(16, 4)
G = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4))
D = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt_g = torch.optim.Adam(G.parameters())
opt_d = torch.optim.Adam(D.parameters())"""


def found(*cells):
    with a_notebook() as notebook:
        for code in (START, *cells):
            notebook.run(code)
        failed = notebook.errors[-1] is not None
        return failed, [f for run in notebook.runs if run for f in run.findings if f.slug == SLUG]


GAN = """\
for _ in range(3):
    fake = G(torch.randn(16, 4))
    score = D(fake)
    d_loss, g_loss = F.softplus(score).mean() + F.softplus(-D(x)).mean(), F.softplus(-score).mean()
    opt_d.zero_grad()
    d_loss.backward(retain_graph=True)
    opt_d.step()
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()"""
TWICE = """\
loss = D(x).square().mean()
for _ in range(3):
    loss.backward(retain_graph=True)
    opt_d.step()"""


@pytest.mark.parametrize(
    ("code", "subject", "line", "words"),
    [
        (GAN, "g_loss", 9, "`g_loss` was computed before `opt_d.step()`, which has changed 4 of the parameters"),
        (TWICE, "loss", 3, "`opt_d.step()`"),
        ("def step():\n    " + GAN.replace("\n", "\n    ") + "\nstep()", "g_loss", 10, "`opt_d.step()`"),
    ],
)
def test_a_loss_from_before_the_step(code, subject, line, words):
    failed, (finding,) = found(code)
    assert failed
    assert (finding.subject, finding.line) == (subject, line)
    assert words in finding.message


@pytest.mark.parametrize(
    "code",
    [
        "h = torch.sigmoid(G(x))\nh += x\nh.sum().backward()",
        "D(x).sum().backward(); opt_d.step()\nh = torch.sigmoid(D(x)); h.mul_(2)\nh.sum().backward()",
        GAN.replace("d_loss.backward(retain_graph=True)\n    opt_d.step()", "pass"),
        GAN.replace("    opt_d.step()\n", "").replace("    opt_g.step()", "    opt_g.step(); opt_d.step()"),
        (
            "for _ in range(3):\n    opt_d.zero_grad(); D(G(x).detach()).mean().backward(); opt_d.step()\n"
            "    opt_g.zero_grad(); D(G(x)).mean().neg().backward(); opt_g.step()"
        ),
        "scale = torch.ones(1, requires_grad=True)\ny = scale.exp()\ny.add_(1)\ny.sum().backward()",
    ],
)
def test_other_changes_and_other_orders(code):
    assert found(code)[1] == []


AGAIN = "compute {} again after opt_d.step(), from a new call of the model"
TWO_LOSSES = """\
for _ in range(3):
    score = D(x)
    one, two = score.square().mean(), score.exp().mean()
    opt_d.zero_grad()
    one.backward(retain_graph=True)
    opt_d.step()
    two.backward()
    opt_d.step()"""


@pytest.mark.parametrize(
    ("code", "fix"),
    [
        (GAN, AGAIN.format("g_loss")),
        (TWICE, AGAIN.format("loss")),
        (TWO_LOSSES, "two.backward()  # before opt_d.step(); or " + AGAIN.format("two")),
    ],
)
def test_the_gradient_of_another_optimizer_is_not_to_come_before_the_step(code, fix):
    assert found(code)[1][0].fix == fix
