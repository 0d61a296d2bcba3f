"""Training steps as cells make them."""

import pytest

from tests.cells import a_notebook

SETUP = """
import torch
from torch import nn
from torch.nn import functional as F
model = nn.Linear(3, 2)
other = nn.Linear(3, 2)
opt = torch.optim.SGD(model.parameters(), lr=.1)
opt2 = torch.optim.SGD(other.parameters(), lr=.1)
x, y = torch.randn(8, 3), torch.randint(0, 2, (8,))
def loss_of(net):
    return F.cross_entropy(net(x), y)
"""


def steps_of(*cells, setup=SETUP):
    """The steps of all these cells, and what was found in them."""
    with a_notebook() as notebook:
        notebook.run(setup)
        runs = [notebook.run(cell) for cell in cells]
    assert notebook.errors == [None] * (len(cells) + 1)
    return [step for run in runs for step in run.trace.steps], [f.slug for run in runs for f in run.findings]


def kept(*cells):
    return [step.kept_gradients for step in steps_of(*cells)[0]]


FORGOTTEN = {
    "plain": ["for i in range(3):\n    loss_of(model).backward()\n    opt.step()"],
    "over two cells": ["loss_of(model).backward(); opt.step()"] * 3,
    "in a function": ["def step():\n    loss_of(model).backward()\n    opt.step()\nfor i in range(3): step()"],
    "the other one cleared": [
        "for i in range(3):\n    opt2.zero_grad()\n    loss_of(model).backward()\n    opt.step()"
    ],
    "clipped": [
        (
            "for i in range(3):\n    loss_of(model).backward()\n"
            "    nn.utils.clip_grad_norm_(model.parameters(), 1e9)\n    opt.step()"
        )
    ],
}
CLEARED = {
    "first": "opt.zero_grad()\nBACKWARD\nopt.step()",
    "last": "BACKWARD\nopt.step()\nopt.zero_grad()",
    "to zero": "opt.zero_grad(set_to_none=False)\nBACKWARD\nopt.step()",
    "model": "model.zero_grad()\nBACKWARD\nopt.step()",
    "by hand, None": "BACKWARD\nopt.step()\nfor p in model.parameters(): p.grad = None",
    "by hand, zero_": "BACKWARD\nopt.step()\nfor p in model.parameters(): p.grad.zero_()",
    "by hand, detach": "BACKWARD\nopt.step()\nfor p in model.parameters(): p.grad.detach_().zero_()",
    "by hand, zeros": "BACKWARD\nopt.step()\nfor p in model.parameters(): p.grad = torch.zeros_like(p)",
    "by hand, *=": "BACKWARD\nopt.step()\nfor p in model.parameters(): p.grad *= 0.5",
    "grad()": "gs = torch.autograd.grad(loss_of(model), list(model.parameters()))\n"
    "for p, g in zip(model.parameters(), gs): p.grad = g\nopt.step()",
}


def looped(body):
    return "for i in range(4):\n" + "\n".join("    " + line for line in body.splitlines())


@pytest.mark.parametrize("name", FORGOTTEN)
def test_gradients_are_kept(name):
    assert kept(*FORGOTTEN[name]) == [False, True, True]


@pytest.mark.parametrize("name", CLEARED)
def test_gradients_are_cleared(name):
    assert kept(looped(CLEARED[name].replace("BACKWARD", "loss_of(model).backward()"))) == [False] * 4


@pytest.mark.parametrize(
    "clear",
    ["p.grad.data.zero_()", "p.grad.data = torch.zeros_like(p)", "p.grad.data.fill_(0)", "p.grad.numpy().fill(0)"],
)
def test_gradients_are_cleared_through_data(clear):
    body = f"loss_of(model).backward()\nopt.step()\nfor p in model.parameters(): {clear}"
    assert kept(looped(body)) == [False] * 4


def test_a_closure_clears_inside():
    code = "def closure():\n    opt.zero_grad()\n    loss = loss_of(model)\n    loss.backward()\n    return loss\n"
    steps, found = steps_of(code + "for i in range(3): opt.step(closure)")
    assert [(step.has_closure, step.kept_gradients) for step in steps] == [(True, False)] * 3
    assert found == []


def test_lbfgs():
    code = (
        "opt = torch.optim.LBFGS(model.parameters(), max_iter=3)\ndef closure():\n    opt.zero_grad()\n"
        "    loss = loss_of(model)\n    loss.backward()\n    return loss\nfor i in range(3): opt.step(closure)"
    )
    steps, found = steps_of(code)
    assert [step.optimizer_kind for step in steps] == ["LBFGS"] * 3
    assert found == []


def test_none_is_no_closure():
    assert kept(looped("loss_of(model).backward()\nopt.step(None)")) == [False, True, True, True]


def test_accumulation_is_several_backward_calls_per_step():
    code = (
        "for i in range(8):\n    (loss_of(model) / 4).backward()\n    if i % 4 == 3:\n        opt.step()\n"
        "        opt.zero_grad()"
    )
    steps, found = steps_of(code)
    assert [(step.backward_count, step.kept_gradients) for step in steps] == [(4, False)] * 2
    assert found == []


def test_two_optimizers_have_their_own_gradients():
    code = (
        "for i in range(3):\n    opt.zero_grad(); opt2.zero_grad()\n    (loss_of(model) + loss_of(other)).backward()\n"
        "    opt.step(); opt2.step()"
    )
    steps, found = steps_of(code)
    assert [step.backward_count for step in steps] == [1] * 6
    assert not any(step.kept_gradients for step in steps)
    assert len({step.optimizer for step in steps}) == 2
    assert found == []


GAN = """
for i in range(4):
    opt2.zero_grad()
    (loss_of(other) + other(model(x)DETACH).mean()).backward()
    opt2.step()
    opt.zero_grad()
    other(model(x)).mean().backward()
    opt.step()
"""


@pytest.mark.parametrize("detach", ["[:, [0, 1, 0]].detach()", "[:, [0, 1, 0]]"])
def test_gan(detach):
    steps, found = steps_of(
        GAN.replace("model(x)DETACH", f"model(x){detach}").replace("(model(x))", "(model(x)[:, [0, 1, 0]])")
    )
    assert not any(step.kept_gradients for step in steps)
    assert found == ([] if "detach" in detach else ["discriminator-step-without-detach"])


def test_a_step_without_gradients():
    (step,), _ = steps_of("opt.step()")
    assert (step.empty_gradients, step.backward_count) == (True, 0)


def test_cleared_between_backward_and_step():
    steps, _ = steps_of("for i in range(2):\n    loss_of(model).backward()\n    opt.zero_grad()\n    opt.step()")
    assert [(step.empty_gradients, step.cleared_at.line, step.backward_at.line) for step in steps] == [(True, 3, 2)] * 2


def test_cleared_to_zero_between_backward_and_step():
    steps, _ = steps_of("loss_of(model).backward()\nmodel.zero_grad(set_to_none=False)\nopt.step()")
    assert [(step.empty_gradients, step.cleared_at.line) for step in steps] == [(False, 2)]


def test_thrown_away_gradients():
    code = "for i in range(4):\n    opt.zero_grad()\n    loss_of(model).backward()\nopt.step()"
    (step,), _ = steps_of(code)
    assert (step.discarded_count, step.discarded_at.line) == (3, 2)


def test_an_optimizer_that_the_loss_does_not_reach():
    steps, _ = steps_of("loss_of(other).backward()\nopt.step()")
    assert [step.unreached for step in steps] == [True]


def test_a_scaler():
    code = (
        "scaler = torch.amp.GradScaler('cpu', init_scale=8.)\nfor i in range(3):\n    opt.zero_grad()\n"
        "    scaler.scale(loss_of(model)).backward()\n    scaler.unscale_(opt)\n    scaler.step(opt)\n"
        "    scaler.update()"
    )
    with a_notebook() as notebook:
        notebook.run(SETUP)
        run = notebook.run(code)
    assert {name: run.trace.count(name) for name in ("scaler.step", "scaler.unscale_", "scaler.update", "step")} == {
        "scaler.step": 3,
        "scaler.unscale_": 3,
        "scaler.update": 3,
        "step": 3,
    }
    assert [step.place.line for step in run.trace.steps] == [6] * 3
    assert run.findings == ()


def test_a_scaler_that_forgets_to_clear():
    code = (
        "scaler = torch.amp.GradScaler('cpu', init_scale=8.)\nfor i in range(3):\n"
        "    scaler.scale(loss_of(model)).backward()\n    scaler.step(opt)\n    scaler.update()"
    )
    steps, found = steps_of(code)
    assert [step.kept_gradients for step in steps] == [False, True, True]
    assert found == ["missing-zero-grad"]


def test_a_scaler_that_skips_for_inf():
    code = (
        "scaler = torch.amp.GradScaler('cpu', init_scale=8.)\nfor i in range(3):\n    opt.zero_grad()\n"
        "    scaler.scale(loss_of(model) * float('inf')).backward()\n    scaler.step(opt)\n    scaler.update()"
    )
    assert steps_of(code) == ([], [])


def test_schedules_are_counted_once():
    code = (
        "s = torch.optim.lr_scheduler.SequentialLR(opt, [torch.optim.lr_scheduler.ConstantLR(opt),"
        " torch.optim.lr_scheduler.StepLR(opt, 1)], [2])\nopt.step()\nfor i in range(4):\n    s.step()"
    )
    with a_notebook() as notebook:
        notebook.run(SETUP)
        run = notebook.run(code)
    assert run.trace.count("scheduler") == 4


def test_a_scheduler_and_its_optimizer_have_the_right_lines():
    code = (
        "s = torch.optim.lr_scheduler.StepLR(opt, 1)\nfor i in range(2):\n    opt.zero_grad()\n"
        "    loss_of(model).backward()\n    opt.step()\n    s.step()"
    )
    with a_notebook() as notebook:
        notebook.run(SETUP)
        run = notebook.run(code)
    assert {(fact.kind, fact.place.line, fact.count) for fact in run.trace.counts} >= {
        ("zero_grad", 3, 2),
        ("backward", 4, 2),
        ("step", 5, 2),
        ("scheduler", 6, 2),
    }


def test_steps_are_looked_at_now_and_then():
    steps, _ = steps_of("for i in range(400):\n    opt.zero_grad()\n    loss_of(model).backward()\n    opt.step()")
    assert 6 <= len(steps) <= 40
    assert steps[-1].index <= 400
    assert not any(step.kept_gradients for step in steps)


def test_a_mistake_that_begins_late_is_found():
    code = "for i in range(400):\n    if i < 100: opt.zero_grad()\n    loss_of(model).backward()\n    opt.step()"
    steps, found = steps_of(code)
    assert any(step.kept_gradients for step in steps)
    assert found == ["missing-zero-grad"]


def test_gradients_by_grad():
    with a_notebook() as notebook:
        notebook.run(SETUP)
        run = notebook.run("g = torch.autograd.grad(loss_of(model), list(model.parameters()))")
    (fact,) = run.trace.backwards
    assert fact.is_grad_call
    assert run.trace.count("grad") == 1
    assert run.trace.count("backward") == 0


@pytest.mark.parametrize(
    "call",
    ["loss.backward()", "torch.autograd.backward(loss)", "torch.autograd.backward([loss])", "loss.backward(None)"],
)
def test_every_way_to_call_backward(call):
    with a_notebook() as notebook:
        notebook.run(SETUP)
        run = notebook.run(f"loss = loss_of(model)\n{call}")
    (fact,) = run.trace.backwards
    assert (fact.root, fact.place.line, fact.made_at.line, fact.shape) == ("loss", 2, 1, ())
    assert len(fact.witness.leaf_keys) == 2


def test_retain_graph_is_noted():
    with a_notebook() as notebook:
        notebook.run(SETUP)
        run = notebook.run("loss = loss_of(model)\nloss.backward(retain_graph=True)\nloss.backward()")
    assert [fact.retain_graph for fact in run.trace.backwards] == [True, False]


def test_hooks_of_the_optimizer_are_gone_afterwards():
    from torch.optim import optimizer

    before = (dict(optimizer._global_optimizer_pre_hooks), dict(optimizer._global_optimizer_post_hooks))
    steps_of("loss_of(model).backward(); opt.step()")
    assert (dict(optimizer._global_optimizer_pre_hooks), dict(optimizer._global_optimizer_post_hooks)) == before
