"""Steps that change nothing, and steps that are only small, late or for show."""

import pytest

from tests.cells import findings_in

SLUG = "weights-unchanged"
START = """\
import torch
import torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
x, y = torch.randn(32, 4), torch.randn(32, 1)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)"""
LOOP = """\
for step in range({}):
    opt.zero_grad()
    loss = {}
    {}
    opt.step()"""
LOSS = "F.mse_loss(net(x), y)"


def loop(turns=6, loss=LOSS, call="loss.backward()"):
    return LOOP.format(turns, loss, call)


def found(*cells):
    return findings_in(START, *cells, slug=SLUG, fails=False)


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ([loop(call="history = loss.item()")], "`backward()` was never called"),
        (["def train():\n    " + loop(call="pass").replace("\n", "\n    ") + "\ntrain()"], "never called"),
        (["opt = torch.optim.Adam(net.parameters(), lr=1 // 1000)", loop()], "learning rate `lr` is 0"),
        (["for group in opt.param_groups: group['lr'] = 0.0", loop()], "learning rate `lr` is 0"),
        ([loop(loss=LOSS + " * 0")], "the loss is 0 each time it was read, and so is every gradient"),
        (["opt.param_groups[0]['lr'] = 1e-14", loop()], "1e-14"),
    ],
)
def test_steps_that_do_nothing(cells, words):
    (finding,) = found(*cells)
    assert words in finding.message
    assert "6 steps of `opt`" in finding.message


@pytest.mark.parametrize(
    "cells",
    [
        [loop()],
        ["opt = torch.optim.SGD(net.parameters(), lr=0.0)", loop()],
        [loop(turns=2, call="pass")],
        ["rates = []\nfor _ in range(20):\n    opt.step()\n    rates.append(0.1)"],
        [
            "warm = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: s / 3)\n"
            + loop()
            + "\n    warm.step()"
        ],
        ["table = nn.Embedding(5000, 4)\nopt = torch.optim.SGD(table.parameters(), lr=0.1)\n"
         + loop(loss="table(torch.tensor([step + 7])).square().sum()")],
        ["net.requires_grad_(False)\nw = nn.Parameter(torch.randn(6))\nopt = torch.optim.SGD([w], lr=0.1)\n"
         + loop(loss="w.square().sum()")],
        [
            ("for step in range(6):\n    opt.zero_grad()\n    with torch.no_grad():\n        net(x)\n"
            "    for p in net.parameters(): p.grad = torch.randn_like(p)\n    opt.step()")
        ],
        [
            "opt = torch.optim.LBFGS(net.parameters(), max_iter=2)\ndef closure():\n    opt.zero_grad()\n    loss = "
            + LOSS
            + "\n    loss.backward()\n    return loss\nfor _ in range(4): opt.step(closure)"
        ],
        [
            "opt = torch.optim.SGD([{'params': net[0].parameters(), 'lr': 0.0}, {'params': net[2].parameters()}], "
            "lr=0.1)\n" + loop()
        ],
    ],
)  # fmt: skip
def test_steps_that_do_something_or_are_for_show(cells):
    assert found(*cells) == []


def test_a_cross_entropy_of_one_class_is_always_zero():
    one = "one = nn.Linear(4, 1)\nopt = torch.optim.SGD(one.parameters(), lr=0.1)\nnone = torch.zeros(32).long()\n"
    (finding,) = found(one + loop(loss="F.cross_entropy(one(x), none)"))
    assert "scores of shape (32, 1) has one class" in finding.message
    assert "BCEWithLogitsLoss" in finding.fix


NAMED = loop().replace("opt.step()", "opt.step")
FORGOTTEN = loop().replace("    opt.step()", "    print(loss.item())")
TRAIN = "def train(model, optimizer, x, y):\n    for epoch in range(5):\n        optimizer.zero_grad()\n"
TRAIN += "        F.mse_loss(model(x), y).backward()\n        optimizer.step"
SCHEDULED = "sched = torch.optim.lr_scheduler.StepLR(opt, 3)\n" + FORGOTTEN + "\n    opt._step_count = 1; sched.step()"


@pytest.mark.parametrize(
    ("cells", "line", "words"),
    [
        ([NAMED], 5, "`opt.step` without parentheses"),
        ([TRAIN, "train(net, opt, x, y)"], 5, "`optimizer.step` without parentheses"),
        (
            ["for part in range(4):\n    opt.zero_grad()\n    net(x).sum().backward()\n    opt.step\nprint('done')"],
            4,
            "calls",
        ),
        ([FORGOTTEN], 4, "`opt.step()` was never called"),
        ([SCHEDULED], 5, "`opt.step()` was never called"),
        (["def epoch():\n    " + FORGOTTEN.replace("\n", "\n    "), "epoch()"], 5, "`opt.step()` was never called"),
    ],
)
def test_losses_without_steps(cells, line, words):
    (finding,) = found(*cells)
    assert words in finding.message
    assert finding.line == line
    assert ".step()" in finding.fix


@pytest.mark.parametrize(
    "cells",
    [
        [loop(), FORGOTTEN],
        [NAMED.replace("range(6)", "range(1)")],
        [loop() + "\nopt.step"],
        [FORGOTTEN + "\n    norms = [p.grad.norm() for p in net.parameters()]"],
        [FORGOTTEN + "\n    with torch.no_grad():\n        for p in net.parameters(): p.sub_(p.grad)"],
        ["import time\nstart = time.perf_counter()\n" + FORGOTTEN],
        [FORGOTTEN + "\n    if step % 100 == 99: opt.step()"],
        [FORGOTTEN.replace("opt.zero_grad()", "net.zero_grad()")],
        [FORGOTTEN.replace("loss.backward()", "g = torch.autograd.grad(loss, [net[0].weight])")],
    ],
)
def test_losses_without_steps_for_something_else(cells):
    assert found(*cells) == []


CLOSURE = """\
def closure():
    opt.zero_grad()
    misfit = F.mse_loss(net(x), y)
    {}
    return misfit
{}
for turn in range(4): opt.step(closure)"""
LBFGS = "opt = torch.optim.LBFGS(net.parameters(), max_iter=2)"


@pytest.mark.parametrize("made", [LBFGS, "opt = torch.optim.SGD(net.parameters(), lr=0.1)"])
def test_a_closure_without_backward(made):
    (finding,) = found(made, CLOSURE.format("pass", "pass"))
    assert (finding.line, finding.severity) == (7, "error")
    assert "`closure()` never calls `backward()`" in finding.message
    assert finding.fix.startswith("misfit.backward()")


@pytest.mark.parametrize(
    "cells",
    [
        [LBFGS, CLOSURE.format("misfit.backward()", "pass")],
        [LBFGS, CLOSURE.format("for p, g in zip(net.parameters(), torch.autograd.grad(misfit, [*net.parameters()])):\n"
         "        p.grad = g", "pass")],
        # An optimizer of one's own may need no gradient.
        [("class Walk(torch.optim.Optimizer):\n    def step(self, closure):\n        before = closure()\n"
         "        for p in self.param_groups[0]['params']: p.data.add_(torch.randn_like(p) * 0.01)\n"
         "opt = Walk(net.parameters(), {})"), CLOSURE.format("pass", "pass")],
        [LBFGS, "def evaluate(f):\n    loss = f(); loss.backward(); return loss",
         CLOSURE.format("pass", "pass").replace("step(closure)", "step(lambda: evaluate(closure))")],
    ],
)  # fmt: skip
def test_closures_that_have_their_gradients(cells):
    assert found(*cells) == []


WARM = (
    "opt = torch.optim.SGD(net.parameters(), lr=0.25)\nwarm = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: s / 9)"
)
SPENT = WARM.replace("s / 9", "max(0.0, 1 - s)") + "\nopt.step(); warm.step()"


def test_a_schedule_that_begins_at_zero_and_is_never_stepped():
    (finding,) = found(WARM, loop())
    assert "where the schedule `warm` begins" in finding.message
    assert finding.fix.startswith("warm.step()")


def test_a_schedule_that_has_come_to_zero():
    (finding,) = found(SPENT, loop())
    assert "begins" not in finding.message
    assert finding.fix.startswith("opt.param_groups[0]['lr'] = 0.25")


WARMUP = "def warmup(step, n=1000):\n    return min(1, step // n)"
MADE = "sched = torch.optim.lr_scheduler.LambdaLR(opt, {})"
TURN = loop(turns=9) + "\n    sched.step()"
BY_HAND = "opt.param_groups[0]['lr'] = 0.1\n"


@pytest.mark.parametrize(
    ("before", "made", "old", "new"),
    [
        (WARMUP, MADE.format("warmup"), "step // n", "(step + 1) / n"),
        ("pass", MADE.format("lambda s: s // (2 * 500)"), "s // (2 * 500)", "(s + 1) / (2 * 500)"),
        ("W = 200", MADE.format("lambda k: min(1, (k + 1) // W)"), "(k + 1) // W", "(k + 1) / W"),
        ("k = 500", MADE.format("lr_lambda=[lambda it: min(1.0, int(it / k))]"), "int(it / k)", "(it + 1) / k"),
    ],
)
@pytest.mark.parametrize("first", ["", BY_HAND])
def test_a_schedule_that_whole_numbers_keep_at_zero(before, made, old, new, first):
    (finding,) = found(before, made, first + TURN)
    assert finding.message.startswith("8 further steps of `opt`" if first else "9 steps of `opt`")
    assert "the schedule `sched` (LambdaLR) sets" in finding.message
    assert finding.fix.startswith(f"{new}  # in place of {old}, line ")
    assert found(before.replace(old, new), made.replace(old, new), first + TURN) == []


def test_a_schedule_that_gives_zero_without_a_division():
    given = "0.0 if s < 1000 else 1.0"
    (finding,) = found(MADE.format(f"lambda s: {given}"), TURN)
    assert finding.fix == f"max(0.01, {given})  # in place of {given}, line 1 of cell 2"
    assert found(MADE.format(f"lambda s: max(0.01, {given})"), TURN) == []
    (finding,) = found("sched = torch.optim.lr_scheduler.LinearLR(opt, 1.0, 0.0, 2)", TURN.replace("9", "3"), TURN)
    assert "(LinearLR) sets" in finding.message
    assert finding.fix.startswith("make `sched` anew")


def test_a_schedule_that_is_made_anew_where_the_one_before_left_a_rate_of_zero():
    cell = "sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 6)\n" + loop() + "\n    sched.step()"
    (finding,) = found(cell, cell)
    assert finding.cell == 3
    assert "was 0 already when the schedule `sched` (CosineAnnealingLR) was made" in finding.message
    assert findings_in(START, cell, f"{finding.fix}\n{cell}", slug=SLUG, fails=False) == []


def test_a_schedule_that_comes_to_zero_within_the_cell_is_a_schedule():
    assert found(MADE.format("lambda s: max(0, 1 - s / 4)"), TURN) == []


COARSE = """\
net = nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 1)).to(torch.{kind})
with torch.no_grad():
    net[1].weight.fill_(0.5); net[1].bias.fill_(0.5); net[0].bias.fill_(1)
x = x.to(torch.{kind})
opt = torch.optim.{optimizer}(net.parameters(), lr={lr})"""
WIDE = "F.mse_loss(net(x).float(), y)"


@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
def test_a_step_that_weights_of_16_bits_round_away(kind):
    (one,) = found(COARSE.format(kind=kind, optimizer="SGD", lr="1e-6"), loop(12, WIDE))
    assert one.message.startswith(
        "the 4 steps of `opt` that were looked at, of 12, have changed no weight: gradients arrive"
    )
    assert kind in one.message
    mended = f"{one.fix}\nx = x.float()"
    assert found(COARSE.format(kind=kind, optimizer="SGD", lr="1e-6"), mended, loop(12, WIDE)) == []


@pytest.mark.parametrize(
    ("kind", "optimizer", "lr", "turns"),
    [("bfloat16", "SGD", "0.1", 12), ("bfloat16", "Adam", "1e-2", 12), ("bfloat16", "SGD", "1e-6", 4)],
)
def test_weights_of_16_bits_that_move_or_have_hardly_begun(kind, optimizer, lr, turns):
    assert found(COARSE.format(kind=kind, optimizer=optimizer, lr=lr), loop(turns, WIDE)) == []


def test_one_number_of_16_bits_that_moves_is_enough():
    small = "with torch.no_grad(): net[1].weight[0, 3] = 0.0"
    assert found(COARSE.format(kind="bfloat16", optimizer="Adam", lr="1e-4"), small, loop(12, WIDE)) == []


FAKE = """
from torch._subclasses.fake_tensor import FakeTensorMode
with FakeTensorMode():
    half = torch.nn.Linear(4, 2, dtype={dtype})
    opt = torch.optim.SGD(half.parameters(), lr=0.1)
    for _ in range(3):
        opt.zero_grad()
        half(torch.randn(8, 4, dtype={dtype})).square().mean().backward()
        opt.step()
"""


@pytest.mark.parametrize("dtype", ["torch.float32", "torch.bfloat16"])
def test_tensors_that_have_shapes_and_no_numbers_are_not_read(dtype):
    assert findings_in("import torch", FAKE.format(dtype=dtype)) == []


@pytest.mark.parametrize("clear", ["opt.zero_grad(set_to_none=False)", "net.zero_grad(set_to_none=False)"])
def test_gradients_cleared_before_the_step_are_told_once(clear):
    cell = f"for _ in range(6):\n    loss = {LOSS}\n    loss.backward()\n    {clear}\n    opt.step()"
    (finding,) = findings_in(START, cell, fails=False)
    assert finding.slug == "zero-grad-misplaced"


def test_gradients_cleared_by_hand_before_the_step():
    cell = f"for _ in range(6):\n    {LOSS}.backward()\n    for p in net.parameters(): p.grad.zero_()\n    opt.step()"
    (finding,) = found(cell)
    assert "`p.grad.zero_()` (line 3) sets the gradients to 0" in finding.message
    after = f"for _ in range(6):\n    {LOSS}.backward()\n    opt.step()\n    for p in net.parameters(): p.grad.zero_()"
    assert not findings_in(START, after, fails=False)


@pytest.mark.parametrize(
    ("lines", "fix"),
    [
        ("for p in net.parameters(): p.grad.zero_()", "for p in net.parameters():\n    p.grad.zero_()"),
        (
            "for p in net.parameters():\n        if p.grad is not None:\n            p.grad.zero_()",
            "for p in net.parameters():\n    if p.grad is not None:\n        p.grad.zero_()",
        ),
        ("for p in net.parameters():\n        seen.append(1)\n        p.grad.detach().zero_()", "opt.zero_grad()"),
    ],
)
def test_the_fix_clears_all_that_was_cleared(lines, fix):
    cell = f"seen = []\nfor _ in range(6):\n    {LOSS}.backward()\n    {lines}\n    opt.step()\n"
    (finding,) = found(cell)
    assert finding.fix.startswith(f"{fix}  # after opt.step()")
    pasted = finding.fix.replace("\n", "\n    ")
    assert not findings_in(START, cell.replace(f"    {lines}\n", "") + f"    {pasted}\n", fails=False)


@pytest.mark.parametrize(
    ("clip", "fix"),
    [
        ("nn.utils.clip_grad_norm_(net.parameters(), {})", "nn.utils.clip_grad_norm_(net.parameters(), 1.0)"),
        (
            "nn.utils.clip_grad_value_(net.parameters(), clip_value={})",
            "nn.utils.clip_grad_value_(net.parameters(), clip_value=1.0)",
        ),
    ],
)
def test_a_clip_to_nothing_is_the_reason(clip, fix):
    (finding,) = found(loop(call=f"loss.backward()\n    {clip.format(0)}"))
    assert f"{clip[9:].partition('(')[0]}` (line 5) clips every gradient to 0" in finding.message
    assert finding.fix == f"{fix}  # or leave the line out, for no clipping"
    assert not found(loop(call=f"loss.backward()\n    {clip.format(1e-3)}"))


COMPARED = """
import copy
import torch
from torch import nn
student = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2))
teacher = {}
opt = torch.optim.Adam(student.parameters())
"""
LEARNS = """
for _ in range(6):
    x = torch.randn(8, 4)
    with torch.no_grad():
        y = teacher(x)
    opt.zero_grad()
    nn.functional.mse_loss(student(x), y).backward()
    opt.step()
"""


@pytest.mark.parametrize(
    ("teacher", "told"), [("student", ["state-dict-alias"]), ("copy.deepcopy(student)", ["weights-unchanged"])]
)
def test_a_model_that_learns_from_itself_is_told_by_its_names(teacher, told):
    found = findings_in(COMPARED.format(teacher), LEARNS, fails=False)
    assert [one.slug for one in found] == told


HINGE = """\
x, y = torch.cat([torch.randn(16, 4) + 9, torch.randn(16, 4) - 9]), torch.arange(32) // 16
net = nn.Linear(4, 2)
nn.init.zeros_(net.weight)
opt = torch.optim.SGD(net.parameters(), lr=0.1)"""


@pytest.mark.parametrize("factor", ["", " * 0"])
def test_what_an_earlier_cell_has_learned_needs_no_more_steps(factor):
    loss = f"F.multi_margin_loss(net(x), y){factor}"
    assert bool(found(HINGE, loop(20, loss), loop(6, loss))) == bool(factor)


def test_losses_that_float16_made_0_are_told_by_another_pitfall():
    half = "net = net.half()\nx, y = x.half() * 0, y.half() * 0\nopt = torch.optim.SGD(net.parameters(), lr=0.1)"
    assert found(half, loop(loss="((net(x) - net(x).detach() - y) * 1e-3).square().mean()")) == []


FIT = """\
def fit(turns):
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(turns):
        opt.zero_grad()
        loss = F.multi_margin_loss(net(x), y)
        loss.backward()
        opt.step()"""


def test_what_an_earlier_optimizer_has_learned_needs_no_more_steps():
    assert found(f"{HINGE}\n{FIT}\nfit(20)", "fit(6)") == []
