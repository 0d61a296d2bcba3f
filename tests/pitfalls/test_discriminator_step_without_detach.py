"""Two networks in turn: where one goes back through the other for nothing, and where it has to."""

import pytest

from tests.cells import findings_in

SLUG = "discriminator-step-without-detach"
START = """\
import torch
import torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
real, z = torch.rand(16, 3), torch.randn(16, 2)
G = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 3))
D = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
opt_g, opt_d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())"""
GAN = """\
for _ in range(4):
    fake = G(torch.randn(16, 2))
    opt_d.zero_grad()
    d_loss = F.softplus(D({})).mean() + F.softplus(-D(real)).mean()
    d_loss.backward({})
    opt_d.step()
    {}.zero_grad()
    g_loss = F.softplus(-D({})).mean()
    g_loss.backward()
    opt_g.step()"""


def found(*cells):
    return findings_in(START, *cells, slug=SLUG, fails=False)


@pytest.mark.parametrize(
    "code",
    [
        GAN.format("fake", "retain_graph=True", "opt_g", "fake"),
        GAN.format("fake", "", "opt_g", "G(torch.randn(16, 2))"),
        GAN.format("fake", "", "G", "G(torch.randn(16, 2))"),
    ],
)
def test_the_judge_goes_back_through_the_maker(code):
    for cell, line in ((code, 5), ("def play():\n    " + code.replace("\n", "\n    ") + "\nplay()", 6)):
        (finding,) = found(cell)
        assert (finding.subject, finding.line, finding.severity) == ("G", line, "hint")
        assert "4 of the 8 gradients" in finding.message


@pytest.mark.parametrize(
    "code",
    [
        GAN.format("fake.detach()", "", "opt_g", "fake"),
        GAN.format("G(torch.randn(16, 2)).detach()", "", "opt_g", "fake"),
        (
            "for _ in range(4):\n    opt_g.zero_grad()\n    D(G(z)).mean().neg().backward()\n    opt_g.step()\n"
            "    opt_d.zero_grad()\n    D(G(torch.randn(16, 2)).detach()).mean().backward()\n    opt_d.step()"
        ),
        (
            "for _ in range(4):\n    opt_g.zero_grad(); opt_d.zero_grad()\n    D(G(z)).pow(2).mean().backward()\n"
            "    opt_d.step(); opt_g.step()"
        ),
        (
            "for _ in range(4):\n    opt_d.zero_grad()\n    with torch.no_grad(): fake = G(torch.randn(16, 2))\n"
            "    D(fake).mean().backward()\n    opt_d.step()\n    opt_g.zero_grad()\n"
            "    D(G(torch.randn(16, 2))).mean().neg().backward()\n    opt_g.step()"
        ),
    ],
)
def test_where_it_does_not_or_has_to(code):
    assert found(code) == []


CRITIC = """\
for _ in range(4):
    for _ in range(3):
        opt_d.zero_grad()
        loss = D(G(torch.randn(16, 2)){}).mean() - D(real).mean()
        loss.backward()
        opt_d.step()
    opt_g.zero_grad()
    loss = -D(G(torch.randn(16, 2))).mean()
    loss.backward()
    opt_g.step()"""


def test_a_critic_that_steps_several_times():
    (finding,) = found(CRITIC.format(""))
    assert (finding.subject, finding.line) == ("G", 5)
    assert not found(CRITIC.format(".detach()"))


def test_a_part_that_steps_every_other_time():
    code = (
        "for i in range(8):\n    opt_d.zero_grad(); opt_g.zero_grad()\n    loss = D(G(z)).pow(2).mean()\n"
        "    loss.backward()\n    opt_d.step()\n    if i % 2:\n        opt_g.step()"
    )
    assert not found(code)
