"""Gradients cleared too early: between two losses of one step, and what uses them before they are cleared."""

import pytest

from tests.cells import findings_in

SETUP = """\
import torch
from torch import nn
torch.manual_seed(0)
x = torch.randn(8, 4)
body, one, two = nn.Linear(4, 4), nn.Linear(4, 1), nn.Linear(4, 1)
opt = torch.optim.SGD([*body.parameters(), *one.parameters(), *two.parameters()], lr=0.1)"""


def found(*cells):
    return findings_in(SETUP, *cells, slug="zero-grad-misplaced", fails=False)


def test_between_two_losses_of_one_step():
    (finding,) = found(
        """\
for _ in range(4):
    z = body(x)
    opt.zero_grad()
    one(z).square().mean().backward(retain_graph=True)
    opt.zero_grad()
    two(z).square().mean().backward()
    opt.step()"""
    )
    assert (finding.line, finding.subject, finding.severity) == (5, "opt", "error")
    assert "called after 2 backward calls" in finding.message


MICRO = """\
for i in range(1, 17):
    {}
    (one(body(x)).square().mean() / 4).backward()
    {}"""


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("late", [0, 1])
def test_cleared_right_before_the_last_micro_batch(count, late):
    there = f"if (i - {late}) % {count} == 0: "
    (finding,) = found(MICRO.format(f"{there}opt.zero_grad()", f"{there}opt.step()"))
    assert (finding.line, finding.subject) == (2, "opt")
    assert f"called after {count} backward calls" in finding.message
    assert f"those of {count - 1} are thrown away" in finding.message


@pytest.mark.parametrize(
    ("clear", "step"),
    [
        ("if i % 4 == 1: opt.zero_grad()", "if i % 4 == 0: opt.step()"),
        # Bad batches: what was added up so far is left out.
        ("if i in (4, 12): opt.zero_grad()", "if i % 4 == 0: opt.step(); opt.zero_grad()"),
        ("if i % 4 == 0: norm = one.weight.grad.norm(); opt.zero_grad()", "if i % 4 == 0: opt.step()"),
    ],
)
def test_micro_batches_that_are_added_up_or_left_out(clear, step):
    assert not found(MICRO.format(clear, step))


@pytest.mark.parametrize(
    "first",
    [
        # The gradient of the input is what the first pass is for.
        "attacked = x.clone().requires_grad_(); one(body(attacked)).mean().backward()",
        # Another network learns from it.
        "one(body(other(x))).mean().backward(); other_opt.step()",
    ],
)
def test_a_first_pass_for_something_else(first):
    assert not found(
        f"""\
other = nn.Linear(4, 4); other_opt = torch.optim.SGD(other.parameters(), lr=0.1)
for _ in range(4):
    {first}
    opt.zero_grad()
    two(body(x)).square().mean().backward()
    opt.step()"""
    )


@pytest.mark.parametrize("read", ["[p.grad.clone() for p in held]", "sum(p.grad.norm() for p in held)"])
def test_gradients_that_are_read_before(read):
    cell = """\
held = list(body.parameters())
for _ in range(4):
    kept = []
    for head in (one, two):
        opt.zero_grad()
        head(body(x)).square().mean().backward()
        {}
    opt.step()"""
    (finding,) = found(cell.format("pass"))
    assert finding.line == 5
    assert not found(cell.format(f"kept.append({read})"))


def test_a_hook_may_have_read_them():
    cell = """\
seen = []
handle = body.weight.register_hook(lambda g: seen.append(g.norm()))
for _ in range(4):
    one(body(x)).mean().backward()
    opt.zero_grad()
    two(body(x)).square().mean().backward()
    opt.step()
handle.remove()"""
    assert not found(cell)
    (finding,) = found(
        cell.replace("handle = body.weight.register_hook(lambda g: seen.append(g.norm()))", "pass")[:-16]
    )
    assert finding.line == 5


def test_how_many_steps_found_nothing_is_told():
    (finding,) = found("for _ in range(4):\n    body(x).sum().backward()\n    opt.zero_grad()\n    opt.step()")
    assert (
        "every step that was looked at, from the first on, found nothing to follow in 6 parameters" in finding.message
    )


EVERY_FOURTH = """\
for i in range(16):
    opt.zero_grad()
    (two(body(x)).square().mean() / 4).backward()
    {}
    if (i + 1) % 4 == 0:
        {}
        opt.step()"""


def test_every_micro_batch_is_cleared_and_gradients_are_read_at_the_step():
    at_step = EVERY_FOURTH.format("pass", "norm = body.weight.grad.norm().item()")
    (finding,) = found(at_step)
    assert (finding.line, finding.subject) == (2, "opt")
    assert "those of 3 are thrown away" in finding.message
    assert not found(EVERY_FOURTH.format("norm = body.weight.grad.norm().item()", "pass"))
    # The other branch runs for the micro-batches that are thrown away.
    assert not found(at_step + "\n    else:\n        norm = body.weight.grad.norm().item()")


def test_the_fix_is_for_the_place_of_its_line():
    (finding,) = found(
        "class Trainer:\n    def __init__(self): self.opt = opt\n    def step(self):\n"
        "        one(body(x)).mean().backward()\n        self.opt.zero_grad()\n        self.opt.step()",
        "del opt\ntrainer = Trainer.__new__(Trainer); trainer.opt = torch.optim.SGD(body.parameters(), lr=0.1)",
        "for _ in range(3): trainer.step()",
    )
    assert finding.subject == "trainer.opt"
    assert finding.fix.startswith("self.opt.step()\nself.opt.zero_grad()")


CLIPS = ["nn.utils.clip_grad_norm_(body.parameters(), 0.01)", "nn.utils.clip_grad_value_(body.parameters(), 0.01)"]


@pytest.mark.parametrize("clip", CLIPS)
def test_clipping_at_the_step_takes_the_gradients_as_they_are(clip):
    (finding,) = found(EVERY_FOURTH.format("pass", clip))
    assert "those of 3 are thrown away" in finding.message
    (finding,) = found(f"def clipped():\n    {clip}\n    {clip}", EVERY_FOURTH.format("pass", "clipped()"))
    assert (finding.line, finding.subject) == (2, "opt")
    # What was collected by hand is put in before the clip.
    assert not found(
        "def put(held):\n    torch._foreach_mul_(held, 2.0)",
        EVERY_FOURTH.format("kept = list(body.parameters())", f"put([p.grad for p in kept]); {clip}"),
    )
    cleared_after_steps = EVERY_FOURTH.replace("opt.zero_grad()", "i % 4 == 0 and opt.zero_grad()")
    assert not found(cleared_after_steps.format("pass", clip))
    # The norm may be what the micro-batches are for.
    assert not found(EVERY_FOURTH.format(clip, "pass"))


SKIPS = """\
def guard(n):
    if n > 1:
        opt.zero_grad()
def skip():
    opt.zero_grad()
for t in range(8):
    xb = x * (1e4 if t in {bad} else 1)
    loss = one(body(xb)).square().mean()
    loss.backward()
    n = nn.utils.clip_grad_norm_(body.parameters(), 1.0)
    {skip}
    opt.step(); opt.zero_grad()"""


@pytest.mark.parametrize("bad", [(0,), (2,), (0, 2, 5)])
@pytest.mark.parametrize(
    "skip",
    [
        "if n > 100: opt.zero_grad()",
        "if n > 100:\n        print(n)\n        opt.zero_grad()",
        "if n < 100:\n        pass\n    else:\n        opt.zero_grad()",
        "n > 100 and opt.zero_grad()",
        "opt.zero_grad() if n > 100 else None",
        "guard(n / 100)",
        "if n > 100: skip()",
        "if loss > 100: opt.zero_grad()",
    ],
)
def test_a_bad_batch_is_left_out(skip, bad):
    assert not found(SKIPS.format(bad=bad, skip=skip))


def test_one_step_under_a_test_is_no_loop():
    assert not found("n = 200\none(body(x)).mean().backward()\nif n > 100: opt.zero_grad()\nopt.step()")
    assert found("one(body(x)).mean().backward()\nopt.zero_grad()\nopt.step()")


@pytest.mark.parametrize("skip", ["opt.zero_grad()", "if t >= 0: opt.zero_grad()", "skip()", "guard(2)"])
def test_a_clearing_that_all_steps_meet(skip):
    assert found(SKIPS.format(bad=(), skip=skip))
    # The test is around the step as well.
    assert found("if True:\n    one(body(x)).mean().backward()\n    opt.zero_grad()\n    opt.step()")


IN_CLOSURE = """\
def closure():
    {}
    loss = body(x).square().mean()
    loss.backward()
    {}
    return loss
for _ in range({}): own.step(closure)"""
LBFGS, SGD = (
    "own = torch.optim.LBFGS(body.parameters(), max_iter=2)",
    "own = torch.optim.SGD(body.parameters(), lr=0.1)",
)


@pytest.mark.parametrize(
    ("made", "clears", "count"),
    [(LBFGS, "own.zero_grad()", 1), (SGD, "body.zero_grad()", 3), (LBFGS, "own.zero_grad(set_to_none=False)", 3)],
)
def test_at_the_end_of_a_closure(made, clears, count):
    (finding,) = found(made, IN_CLOSURE.format("pass", clears, count))
    assert (finding.line, finding.subject, finding.severity) == (5, "own", "error")
    assert finding.fix == "own.zero_grad()  # in closure(), before loss.backward()"
    assert not found(made, IN_CLOSURE.format("own.zero_grad()", "pass", count))


@pytest.mark.parametrize(
    ("made", "clears"),
    [
        (LBFGS + "; own.register_step_post_hook(lambda one, *a: one.zero_grad())", "pass"),
        (SGD.replace("0.1", "0.0"), "pass"),
        # It has come to its end before the first step, and is cleared after it.
        ("nn.init.zeros_(body.weight); nn.init.zeros_(body.bias)\n" + LBFGS
         + "; own.register_step_post_hook(lambda one, *a: one.zero_grad())", "pass"),
        (SGD, "if not loss.isfinite(): own.zero_grad()"),
        # An optimizer of one's own takes its steps in the closure.
        (SGD, "with torch.no_grad(): body.weight.sub_(body.weight.grad); own.zero_grad()"),
    ],
)  # fmt: skip
def test_a_closure_whose_gradients_were_used(made, clears):
    assert not found(made, IN_CLOSURE.format("own.zero_grad()", clears, 4))
