"""Steps between the forward pass and its backward call, and orders that look like it."""

import pytest

from tests.cells import a_notebook

SLUG = "step-before-backward"
START = """\
import torch
import torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
x, y = torch.randn(32, 4), torch.randn(32, 1)
line, net = nn.Linear(4, 1), nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(line.parameters(), lr=0.1)
adam = torch.optim.Adam(net.parameters())"""


def loop(*lines, head="for _ in range(5):"):
    return "\n    ".join((head, *lines))


def found(*cells, failing=False):
    with a_notebook() as notebook:
        for code in (START, *cells):
            notebook.run(code)
            assert failing or notebook.errors[-1] is None, notebook.errors[-1]
        assert not failing or notebook.errors[-1] is not None
        return [(f, run) for run in notebook.runs if run for f in run.findings if f.slug == SLUG]


LOSS, NET_LOSS = "loss = F.mse_loss(line(x), y)", "loss = F.mse_loss(net(x), y)"
TRAINER = """\
class Trainer:
    def __init__(self, model):
        self.model, self.optimizer = model, torch.optim.Adam(model.parameters())
    def step(self, batch, target):
        self.optimizer.zero_grad()
        loss = F.mse_loss(self.model(batch), target)
        self.optimizer.step()
        loss.backward()
        return loss.item()
trainer = Trainer(net)
curve = [trainer.step(x, y) for _ in range(6)]"""


@pytest.mark.parametrize(
    ("cells", "line", "words"),
    [
        ([loop("opt.zero_grad()", LOSS, "opt.step()", "loss.backward()")], 4, "no step found a gradient"),
        ([loop(LOSS, "opt.step()", "loss.backward()", "opt.zero_grad()")], 3, "no weight has changed"),
        ([loop(LOSS, "opt.step()", "opt.zero_grad()", "loss.backward()")], 3, "of the round before"),
        ([loop("adam.zero_grad()", NET_LOSS, "adam.step()", "loss.backward()")] * 2, 4, "`adam.step()`"),
        ([TRAINER], 7, "`trainer.optimizer.step()`"),
        (["opt.zero_grad()\n" + LOSS + "\nopt.step()\nloss.backward()"], 3, "no step found a gradient"),
        (
            [
                ("def fit(model, steps):\n    optimizer = torch.optim.SGD(model.parameters(), 0.1)\n"
                "    for _ in range(steps):\n        optimizer.zero_grad()\n        error = F.mse_loss(model(x), y)\n"
                "        optimizer.step()\n        error.backward()\nfit(net, 4)")
            ],
            6,
            "`error.backward()`",
        ),
    ],
)  # fmt: skip
def test_the_step_comes_first(cells, line, words):
    findings = found(*cells)
    assert len(findings) == len(cells)
    for finding, run in findings:
        assert finding.line == line
        assert words in finding.message
        assert [one.slug for one in run.findings] == [SLUG]


JUDGED = """\
G, D = {}, nn.Linear(4, 1)
og, od = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())"""
DEEP, FLAT = "nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))", "nn.Linear(4, 4)"
METHODS = """\
class Trainer:
    def backward_G(self):
        self.loss = D(self.fake).mean()
        self.loss.backward()
    def step(self):
        self.fake = G(x)
        od.zero_grad()
        D(self.fake.detach()).mean().backward()
        od.step()
        og.zero_grad()
        og.step()
        self.backward_G()
trainer = Trainer()
for _ in range(4):
    trainer.step()"""


@pytest.mark.parametrize("net", [FLAT, DEEP])
def test_the_step_comes_first_and_the_loss_goes_back_through_a_judge(net):
    turns = loop("fake = G(x)", "og.step()", "og.zero_grad()", "loss = D(fake).mean()", "loss.backward()")
    ((finding, _),) = found(JUDGED.format(net), turns, failing=net == DEEP)
    assert (finding.subject, finding.line) == ("og", 3)
    assert "`og.step()` runs after `G` was called and before `loss.backward()`" in finding.message
    assert finding.fix == "loss.backward()\nog.step()  # in this order"


def test_the_method_that_goes_back_is_put_before_the_step():
    ((finding, run),) = found(JUDGED.format(DEEP), METHODS)
    assert (finding.line, finding.fix) == (11, "self.backward_G()\nog.step()  # in this order")
    assert "zero-grad-misplaced" not in {one.slug for one in run.findings}
    right = METHODS.replace("        og.step()\n", "").replace(
        "self.backward_G()\n", "self.backward_G()\n        og.step()\n"
    )
    assert found(JUDGED.format(DEEP), right) == []


def test_the_backward_call_that_fails_for_it():
    ((finding, run),) = found(loop(NET_LOSS, "adam.step()", "adam.zero_grad()", "loss.backward()"), failing=True)
    assert finding.line == 3
    assert "step-between-backwards" not in {one.slug for one in run.findings}


@pytest.mark.parametrize(
    "cells",
    [
        [loop(LOSS, "loss.backward()", "opt.step()", "opt.zero_grad()")],
        ["opt.step()\n" + loop("opt.zero_grad()", LOSS, "loss.backward()", "opt.step()")],
        [LOSS + "\nloss.backward()", "opt.step(); opt.zero_grad()\n" + LOSS + "\nloss.backward()"] * 3,
        [LOSS + "\nloss.backward()\nopt.zero_grad()\nopt.step()"],
        [
            loop(
                NET_LOSS + " + " + LOSS.removeprefix("loss = "),
                "loss.backward()",
                "for o in (opt, adam): o.step()",
                "for o in (opt, adam): o.zero_grad()",
            )
        ],
        [
            loop(
                "made = net(x)",
                "opt.zero_grad()",
                "line(x + made.detach()).square().mean().backward()",
                "opt.step()",
                "adam.zero_grad()",
                "line(x + made).mean().backward()",
                "adam.step()",
            )
        ],
        [
            "opt = torch.optim.LBFGS(line.parameters())\ndef closure():\n    opt.zero_grad()\n    "
            + LOSS
            + "\n    loss.backward()\n    return loss\n"
            + loop("opt.step(closure)")
        ],
        [
            ("for n, (a, b) in enumerate(zip(x.split(4), y.split(4))):\n    if n and n % 2 == 0:\n        opt.step()\n"
            "        opt.zero_grad()\n    F.mse_loss(line(a), b).backward()")
        ],
    ],
)  # fmt: skip
def test_other_orders(cells):
    assert found(*cells) == []


HOOKED = """\
class Steps:
    def on_loss(self, trainer):
        trainer.opt.zero_grad()
        trainer.opt.step()
class Trainer:
    def __init__(self, hooks):
        self.opt, self.hooks = opt, hooks
    def call(self, name):
        for one in self.hooks:
            getattr(one, name)(self)
    def fit(self):
        for _ in range(5):
            self.loss = F.mse_loss(line(x), y)
            {}
            {}"""


def test_the_names_of_a_fix_are_those_of_one_function():
    ((finding, _),) = found(HOOKED.format("self.call('on_loss')", "self.loss.backward()"), "Trainer([Steps()]).fit()")
    assert "before `self.loss.backward()` in `fit`" in finding.message
    assert finding.fix == "self.loss.backward()\nself.call('on_loss')  # in this order"


RIVALS = """\
def reset():
    opt.zero_grad()
    adam.zero_grad()
for _ in range(6):
    judged = F.mse_loss(line(net[:2](x)[:, :4].detach()), y)
    reset()
    {}
    made = line(net[:2](x)[:, :4]).mean()
    reset()
    made.backward()
    adam.step()"""


def test_what_another_loss_leaves_is_cleared_before_the_step():
    ((finding, _),) = found(RIVALS.format("opt.step()\n    judged.backward()"))
    assert (finding.line, finding.subject) == (7, "opt")
    assert finding.fix == "judged.backward()\nopt.step()  # in this order"
    assert not found(RIVALS.format("judged.backward()\n    opt.step()"))
