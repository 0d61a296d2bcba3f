"""An optimizer that holds what was in a model before adapters were put around it."""

import pytest

from tests.cells import a_notebook

START = """
import torch
from torch import nn
torch.manual_seed(0)
class Adapter(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(2, base.in_features))
        self.up = nn.Parameter(torch.randn(base.out_features, 2))
    def forward(self, x):
        return self.base(x) + x @ self.down.T @ self.up.T
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
"""
MADE = "optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)"
PUT_IN = "for i in (0, 2):\n    net[i] = Adapter(net[i])"
TRAIN = """
for x in torch.randn(5, 8, 4):
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
"""


def found(*cells):
    with a_notebook() as notebook:
        for source in (START, *cells):
            notebook.run(source)
        assert all(error is None for error in notebook.errors), notebook.errors
        return [finding for run in notebook.runs if run for finding in run.findings]


def test_adapters_that_came_after_the_optimizer_are_named_once():
    (finding,) = found(MADE, PUT_IN, TRAIN)
    assert finding.slug == "optimizer-of-another-model"
    assert "holds frozen parameters of `net`, but the loss trains `net.0.down`, `net.0.up`" in finding.message
    assert "torch.optim.AdamW(net.parameters(), lr=1e-3)" in finding.fix


def test_adapters_that_came_before_it_are_right():
    assert (
        found(PUT_IN, MADE.replace("net.parameters()", "[p for p in net.parameters() if p.requires_grad]"), TRAIN) == []
    )


FOLDS = """
def new(): return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
own = new()
optimizer = torch.optim.Adam(own.parameters(), lr=3e-2)
for k in range(3):
    if k:
        own = new()
{again}    for x in torch.randn(6, 8, 4):
        optimizer.zero_grad()
        own(x).pow(2).mean().backward()
        optimizer.step()
"""


def test_a_model_for_each_fold_and_one_optimizer():
    (finding,) = [one for one in found(FOLDS.format(again="")) if one.slug == "optimizer-of-another-model"]
    assert finding.fix == "optimizer = torch.optim.Adam(own.parameters(), lr=3e-2)  # again, after the model"
    said = "the loss trains `own`: after 6 passes of that model in this cell, `optimizer.step()` changed nothing"
    assert said in finding.message


def test_an_optimizer_for_each_fold_is_right():
    again = "        optimizer = torch.optim.Adam(own.parameters(), lr=3e-2)\n"
    assert found(FOLDS.format(again=again)) == []


def test_an_optimizer_that_never_reached_anything_has_no_first_steps():
    new = "net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))"
    (finding,) = [one for one in found(MADE, new, TRAIN) if one.slug == "optimizer-of-another-model"]
    assert "trains `net`: `optimizer.step()` changed nothing" in finding.message


COPIES = """
params = [{} for p in net.parameters()]
optimizer = torch.optim.SGD(params, lr=0.1)
"""


@pytest.mark.parametrize(
    ("copy", "held"),
    [
        (
            "p.clone().detach().requires_grad_()",
            "`params`, copies of the parameters of `net`, but the loss trains `net`",
        ),
        ("torch.zeros(p.shape, requires_grad=True)", "`params`, but the loss trains `net`"),
    ],
)
def test_copies_of_the_weights_are_said_to_be_such(copy, held):
    (finding,) = found(COPIES.format(copy), TRAIN)
    assert (finding.slug, finding.fix.partition("  # ")[0]) == (
        "optimizer-of-another-model",
        "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)",
    )
    assert f"`optimizer` holds {held}" in finding.message


APART = """
enc, dec = nn.Linear(4, 4), nn.Linear(4, 4)
eo, do = torch.optim.Adam(enc.parameters()), torch.optim.Adam(dec.parameters())
def encoded(x):
    z = enc(x)
    return torch.autograd.Variable(z.data, requires_grad=True)
"""
APART_TURNS = """
for x in torch.randn(5, 8, 4):
    loss = (dec({given}) - x).pow(2).mean()
    eo.zero_grad(); do.zero_grad()
    loss.backward()
    {steps}
"""
BOTH = "eo.step(); do.step()"


@pytest.mark.parametrize("given", ["enc(x).detach()", "encoded(x)"])
def test_of_two_optimizers_the_one_whose_model_is_cut_off_is_no_wrong_one(given):
    (finding,) = found(APART, APART_TURNS.format(given=given, steps=BOTH))
    assert (finding.slug, finding.subject) == ("accidental-detach", "enc")
    assert "`eo` holds its 2 parameters" in finding.message


def test_of_two_optimizers_one_may_have_nothing_to_do_yet():
    assert found(APART, APART_TURNS.format(given="x", steps=BOTH)) == []


def test_the_optimizer_that_should_have_stepped_is_named():
    (finding,) = found(APART, APART_TURNS.format(given="x", steps="eo.step()"))
    assert "but the loss trains `dec`, which `do` holds" in finding.message
    assert finding.fix.startswith("do.step()  # in place of eo.step()")


RENEWED = """
class Folds:
    def __init__(self):
        self.renew()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)
    def renew(self):
        self.model = nn.Linear(4, 1)
    def run(self):
        for fold in range(3):
            if fold:
                self.renew()
                {}
            for x in torch.randn(3, 8, 4):
                self.optimizer.zero_grad()
                self.model(x).pow(2).mean().backward()
                self.optimizer.step()
trainer = Folds()
trainer.run()
"""


def test_a_model_that_only_a_method_knows_goes_with_the_optimizer_of_that_method():
    (finding,) = [one for one in found(RENEWED.format("pass")) if one.slug == "optimizer-of-another-model"]
    assert finding.message.startswith("`self.optimizer` holds")
    assert "the loss trains `self.model`" in finding.message
    assert finding.fix.startswith("self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)  #")
    assert not found(RENEWED.format(finding.fix.partition("  #")[0]))
