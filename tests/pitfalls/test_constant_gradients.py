"""Gradients taken without `create_graph` that a loss adds up as plain numbers."""

import pytest

from tests.cells import findings_in

SETUP = """\
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.Adam(critic.parameters())
real, fake = torch.randn(32, 2), torch.randn(32, 2)
{functions}"""
LOOP = """\
for _ in range(3):
    opt.zero_grad()
    {lines}
    loss.backward()
    opt.step()"""
PENALTY = """\
def penalty(net, a, b):
    mixed = (0.5 * a + 0.5 * b).requires_grad_(True)
    scores = net(mixed)
    grads = torch.autograd.grad(outputs=scores, inputs=mixed,
        grad_outputs=torch.ones_like(scores){more})[0]
    grads = grads.view(grads.size(0), -1)
    return ((grads.norm(2, dim=1) - 1) ** 2).mean()"""
TRAINER = """\
class Trainer:
    weight = 10.0
    def penalty(self, a):
        a = a.clone().requires_grad_()
        (grads,) = torch.autograd.grad(critic(a).sum(), a, retain_graph=True)
        return torch.mean((torch.sqrt(torch.sum(grads ** 2, dim=1) + 1e-12) - 1) ** 2)
    def loss(self, a, b):
        wasserstein = critic(b).mean() - critic(a).mean()
        return wasserstein + self.weight * self.penalty(a)
trainer = Trainer()"""
FORCES = """\
class Energy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = critic
    def forward(self, places):
        places.requires_grad_()
        energy = self.net(places).sum()
        forces = -torch.autograd.grad(energy, places, retain_graph=True)[0]
        return energy, forces
field = Energy()"""
START = "x = real.clone().requires_grad_(); "
CASES = {
    "a function": (
        PENALTY.format(more=""),
        "loss = critic(fake).mean() - critic(real).mean() + 10 * penalty(critic, real, fake)",
    ),
    "a method": (TRAINER, "loss = trainer.loss(real, fake)"),
    "an equation": (
        "",
        START + "u = critic(x); du = torch.autograd.grad(u.sum(), x, retain_graph=True)[0]; "
        "loss = (du[:, :1] + u).pow(2).mean()",
    ),
    "forces of a model": (
        FORCES,
        "energy, forces = field(real.clone()); loss = F.mse_loss(energy, real.sum()) + F.mse_loss(forces, fake)",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_gradient_that_is_added_up_as_a_number(case):
    functions, lines = CASES[case]
    (one,) = findings_in(SETUP.format(functions=functions), LOOP.format(lines=lines), slug="graph-cut", fails=False)
    assert one.subject == "loss"
    assert "create_graph=True" in one.fix
    assert "`critic`" in one.message or "`field`" in one.message


RIGHT = {
    "with the graph": (PENALTY.format(more=", create_graph=True"), CASES["a function"][1]),
    "a switch": (PENALTY.format(more=", create_graph=net.training"), CASES["a function"][1]),
    "a number for the log": (
        "",
        START + "loss = critic(x).mean(); size = torch.autograd.grad(loss, x, retain_graph=True)[0].norm()",
    ),
    "a factor": (
        "",
        START + "g = torch.autograd.grad(critic(x).sum(), x)[0].norm(); loss = g * critic(fake).mean()",
    ),
}


@pytest.mark.parametrize("case", RIGHT)
def test_what_is_right_is_left_alone(case):
    functions, lines = RIGHT[case]
    assert not findings_in(SETUP.format(functions=functions), LOOP.format(lines=lines), slug="graph-cut", fails=False)


EQUATION = """\
t = torch.linspace(0, 1, 8).reshape(-1, 1).requires_grad_()
net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
def residual():
    u = net(t)
    u_t = torch.autograd.grad({})[0]
    u_tt = torch.autograd.grad(u_t.sum(), t, create_graph=True)[0]
    return u_tt + u"""


FIRST_ONLY = "loss = (g.sum(1) - 1).pow(2).mean()\nloss.backward()"
DETACHED = "\n(g,) = torch.autograd.grad(critic(x).sum(), x)\ncritic(g).detach().sum().backward()"


@pytest.mark.parametrize(
    ("code", "line", "fix"),
    [
        (EQUATION.format("u.sum(), t") + "\nresidual()", 5, "torch.autograd.grad(u.sum(), t, create_graph=True)"),
        (
            START + "u = critic(x).sum()\n(g,) = torch.autograd.grad(u, x, retain_graph=True)\n" + FIRST_ONLY,
            2,
            "torch.autograd.grad(u, x, create_graph=True)",
        ),
    ],
    ids=["second derivative", "a loss of nothing else"],
)
def test_a_derivative_that_is_refused_is_told_of_the_first_one(code, line, fix):
    (finding,) = findings_in(SETUP.format(functions=""), code, slug="graph-cut")
    assert (finding.line, finding.fix) == (line, f"{fix}  # keeps the history of the gradient")
    assert "`create_graph=True`" in finding.message
    assert not findings_in(SETUP.format(functions=""), code, slug="nothing-to-train")


def test_second_derivatives_with_a_graph_and_other_refusals_are_not_told_so():
    code = EQUATION.format("u.sum(), t, create_graph=True") + "\nresidual().mean().backward()"
    assert not findings_in(SETUP.format(functions=""), code, slug="graph-cut")
    (finding,) = findings_in(SETUP.format(functions=""), START + DETACHED, slug="graph-cut")
    assert "create_graph" not in finding.message
