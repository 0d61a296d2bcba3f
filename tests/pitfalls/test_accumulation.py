"""Windows of backward calls: undivided, with leftovers, and right."""

import ast
from unittest import mock

import pytest

from tests.cells import a_notebook
from torch_inspector.facts import hand_counters, syntax

SETUP = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
net = nn.Linear(3, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
adam = torch.optim.Adam(net.parameters())
data = [(torch.randn(8, 3), torch.randint(0, 2, (8,))) for _ in range(12)]
"""
LOOP = """
opt.zero_grad()
for i, (x, y) in enumerate(data{rest}):
    loss = {loss}
    {before}loss.backward()
    if (i + 1) % 4 == 0{test}:
        {step}
        opt.zero_grad()
{end}
"""
HAND = """
opt.zero_grad()
n, every = 0, 4
for x, y in data{rest}:
    loss = {loss}; loss.backward(); n += 1
    if n >= every:
        opt.step(); opt.zero_grad(); n = 0
"""
MEAN = "F.cross_entropy(net(x), y)"
EACH = "F.cross_entropy(net(x), y, reduction='none')"
AVERAGE = """
n = 0
def average(parameters, by):
    for one in parameters:
        one.grad.div_(by)
def finish(by):
    average(net.parameters(), by)
    opt.step()
"""


def loop(*, loss=MEAN, before="", step="opt.step()", rest="", test="", end=""):
    return LOOP.format(loss=loss, before=before, step=step, rest=rest, test=test, end=end)


TRAINER = """
class Trainer:
    def __init__(self, model, every=3):
        self.model, self.every, self.count = model, every, 0
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    def train_step(self, x, y):
        cost = F.mse_loss(self.model(x), F.one_hot(y, 2).float())
        cost.backward()
        self.count += 1
        if self.count % self.every == 0:
            self.optimizer.step()
            self.optimizer.zero_grad()
trainer = Trainer(net)
for batch in data:
    trainer.train_step(*batch)
"""
EPOCHS = """
for epoch in range(3):
    for i, (x, y) in enumerate(data[:10]):
        (F.cross_entropy(net(x), y) / 4).backward()
        if (i + 1) % 4 == 0:
            opt.step()
            opt.zero_grad()
"""
TASKS = """
for i, (x, y) in enumerate(data):
    opt.zero_grad()
    for k in range(2):
        F.cross_entropy(net(x) * (k + 1), y).backward()
    opt.step()
"""


def findings(source):
    with a_notebook() as notebook:
        for cell in (SETUP + AVERAGE, source):
            notebook.run(cell)
        assert all(error is None for error in notebook.errors)
        slugs = "accumulation-unscaled", "accumulation-remainder"
        return [(f.slug, f.line, f.severity) for f in notebook.runs[-1].findings if f.slug in slugs]


MICRO = """accumulation_steps = 4
x, y = data[0]
for it in range(3):
    for micro_step in range(accumulation_steps):
        {loss}.backward()
    opt.step()
    opt.zero_grad()
"""
PARTS = """
class Runner:
    def __init__(self, net, micro=2):
        self.net, self.micro = net, micro
        self.opt = torch.optim.SGD(net.parameters(), lr=0.1)
    def gradients(self, x, y):
        for i in range(0, len(x), self.micro):
            {loss}.backward()
    def step(self, x, y):
        self.opt.zero_grad()
        self.gradients(x, y)
        self.opt.step()
runner = Runner(net)
for x, y in data[:4]:
    runner.step(x, y)
runner.step(*(part[:6] for part in data[4]))
"""
PART = "F.cross_entropy(self.net(x[i:i + self.micro]), y[i:i + self.micro]{})"
WEIGHED = "{} * F.mse_loss(net(x), F.one_hot(y, 2).float()) + {} * F.cross_entropy(net(x), y)"
COUNTED = """
count, every = 0, 4
for x, y in data:
    {loss}.backward()
    count += 1
    if count {test}:
        opt.step()
        opt.zero_grad()
        {reset}
"""
FOUND = {
    "a sum of means": (loop(loss=WEIGHED.format(0.5, 0.5)), ("accumulation-unscaled", 5, "warning")),
    "counted by hand": (
        COUNTED.format(loss=MEAN, test=">= every", reset="count = 0"),
        ("accumulation-unscaled", 4, "warning"),
    ),
    "parts in a method": (PARTS.format(loss=PART.format("")), ("accumulation-unscaled", 8, "warning")),
    "cross entropy": (loop(), ("accumulation-unscaled", 5, "warning")),
    "a mean by hand": (
        loop(loss="(net(x) - F.one_hot(y, 2)).pow(2).mean()"),
        ("accumulation-unscaled", 5, "warning"),
    ),
    "parts in a loop": (MICRO.format(loss=MEAN), ("accumulation-unscaled", 5, "warning")),
    "no weight": (
        loop().replace("loss.backward()", "loss.backward(gradient=None)"),
        ("accumulation-unscaled", 5, "warning"),
    ),
    "a rate of its part": (
        "k = 4\nopt = torch.optim.SGD(net.parameters(), lr=0.1 / k)" + loop().replace("4", "k"),
        ("accumulation-unscaled", 6, "hint"),
    ),
    "a rate divided later": (
        "opt.param_groups[0]['lr'] /= 4" + loop(),
        ("accumulation-unscaled", 5, "hint"),
    ),
    "a rate divided by another": (
        "opt = torch.optim.SGD(net.parameters(), lr=0.1 / 3)" + loop(),
        ("accumulation-unscaled", 5, "warning"),
    ),
    "Adam": (loop(step="adam.step()"), ("accumulation-unscaled", 5, "hint")),
    "a trainer": (TRAINER, ("accumulation-unscaled", 8, "warning")),
    "a counter by hand": (HAND.format(loss=MEAN, rest=""), ("accumulation-unscaled", 5, "warning")),
    "a counter by hand, leftovers": (
        HAND.format(loss=f"{MEAN} / 4", rest="[:10]"),
        ("accumulation-remainder", 7, "hint"),
    ),
    "two terms": (loop(loss=f"0.3 * {MEAN} + 0.7 * net(x).square().mean()"), ("accumulation-unscaled", 5, "warning")),
    "masked": (loop(loss=f"((y >= 0) * {EACH}).mean()"), ("accumulation-unscaled", 5, "warning")),
    "two halves, and a sum that is shown": (
        loop(loss=f"0.5 * {MEAN} + {MEAN} / 2", before="shown = loss.item() / 4; "),
        ("accumulation-unscaled", 5, "warning"),
    ),
    "two halves": (loop(loss=f"0.5 * {MEAN} + {MEAN} / 2"), ("accumulation-unscaled", 5, "warning")),
    "a penalty": (loop(loss=f"{MEAN} + 1e-3 * net(x).square().mean()"), ("accumulation-unscaled", 5, "warning")),
    "leftovers": (loop(before="loss = loss / 4; ", rest="[:10]"), ("accumulation-remainder", 7, "hint")),
    "leftovers of each epoch": (EPOCHS, ("accumulation-remainder", 6, "hint")),
}
QUIET = {
    "a sum of means, each divided": loop(loss=WEIGHED.format(0.25, 0.25)),
    "a sum of means, divided": loop(loss=f"({WEIGHED.format(0.5, 0.5)}) / 4"),
    "a mean and a sum": loop(loss=f"{MEAN} + 1e-3 * net.weight.pow(2).sum()"),
    "counted by hand, divided": COUNTED.format(loss=f"({MEAN} / every)", test="== every", reset="count = 0"),
    "parts in a method, divided": PARTS.format(loss=f"({PART.format('')} * self.micro / len(x))"),
    "parts in a method, summed": PARTS.format(loss=f"{PART.format(', reduction=' + repr('sum'))}"),
    "parts in a method that say nothing of it": PARTS.format(loss=PART.format("")).replace("micro", "size"),
    "two terms, divided": loop(loss=f"(0.3 * {MEAN} + 0.7 * net(x).square().mean()) / 4"),
    "two terms, divided each": loop(loss=f"0.075 * {MEAN} + 0.7 * net(x).square().mean() / 4"),
    "a large weight, divided": loop(loss=f"4 * {MEAN} / 4 + net(x).square().mean() / 4"),
    "as many terms": loop(loss=" + ".join([f"{MEAN} / 4"] * 4)),
    "a counter by hand, divided": HAND.format(loss=f"{MEAN} / 4", rest=""),
    "a counter of an earlier cell": HAND.format(loss=f"{MEAN} / 4", rest="[:10]").replace(
        "n, every = 0, 4", "every = 4"
    ),
    "a counter that goes on": (
        "n = 0\ndef epoch():\n    global n\n    for x, y in data[:10]:\n"
        "        (F.cross_entropy(net(x), y) / 3).backward()\n"
        "        n += 1\n        if n == 3: opt.step(); opt.zero_grad(); n = 0\nepoch()\nepoch()"
    ),
    "parts that make up 1 when divided": loop(loss=f"{MEAN} / 4 + 2 * {MEAN} / 4 + net(x).square().mean() / 4"),
    "samples divided": loop(loss=f"({EACH} / 4).mean()"),
    "samples of two terms divided": loop(loss=f"({EACH} / 4).mean() + (net(x).pow(2) * 0.01 / 4).mean()"),
    "samples of two terms weighed": loop(loss=f"(w * {EACH}).mean() + (w * net(x).pow(2).sum(1)).mean()").replace(
        "\nopt", "\nw = torch.full((8,), 1 / 4)\nopt", 1
    ),
    "samples weighed": loop(loss=f"(w * {EACH}).mean()").replace("\nopt", "\nw = torch.full((8,), 1 / 4)\nopt", 1),
    "two terms weighted": loop(loss=f"{MEAN} + 1e-3 * net(x).square().mean()").replace(
        "loss.backward()", "loss.backward(torch.tensor(1 / 4))"
    ),
    "divided in a function": loop(step="average(net.parameters(), 4); opt.step()"),
    "divided in a function of a function": loop(step="finish(4)"),
    "divided": loop(before="loss = loss / 4; "),
    "divided at once": loop(loss=f"{MEAN} / 4"),
    "parts in a loop, divided": MICRO.format(loss=f"({MEAN} / accumulation_steps)"),
    "weighted": loop(loss=f"0.25 * {MEAN}"),
    "a sum": loop(loss="F.cross_entropy(net(x), y, reduction='sum')"),
    "divided later": loop(step="[p.grad.div_(4) for p in net.parameters()]; opt.step()"),
    "the rest too": loop(before="loss = loss / 4; ", rest="[:10]", test=" or i + 1 == 10"),
    "the rest afterwards": loop(before="loss = loss / 4; ", rest="[:10]", end="opt.step()"),
    "weighted by its gradient": loop().replace("loss.backward()", "loss.backward(torch.tensor(1 / 4))"),
    "weighted by keyword": loop().replace("loss.backward()", "loss.backward(gradient=torch.full((), 0.25))"),
    "weighted as a function": loop().replace(
        "loss.backward()", "torch.autograd.backward([loss], [torch.tensor(0.25)])"
    ),
    "every batch": loop().replace("% 4", "% 1"),
    "tasks": TASKS,
    "a gradient to begin with": loop().replace("loss.backward()", "loss.backward(gradient=torch.tensor(1 / 4))"),
    "the same by position": loop().replace("loss.backward()", "torch.autograd.backward(loss, torch.tensor(0.25))"),
    "logged": loop(before="loss = loss / 4; ").replace(
        "opt.zero_grad()\n\n", "opt.zero_grad()\n    if i % 5:\n        i\n"
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    source, told = FOUND[name]
    assert findings(source) == [told]


@pytest.mark.parametrize("name", QUIET)
def test_silent(name):
    assert findings(QUIET[name]) == []


def test_gradients_that_are_thrown_away_do_not_add_up():
    assert findings(loop(before="opt.zero_grad(); ")) == []  # told by `zero-grad-misplaced`


@pytest.mark.parametrize(
    "rate", ["k = 4\nopt = torch.optim.SGD(net.parameters(), 0.1 / k)", "for g in opt.param_groups: g['lr'] /= 4",
             "base_lr = 0.4\nlr = base_lr / 4\nopt = torch.optim.SGD(net.parameters(), lr=lr)"]
)  # fmt: skip
def test_a_rate_that_is_divided_may_be_meant_for_it(rate):
    assert [severity for _, _, severity in findings(rate + loop())] == ["hint"]
    other = rate.replace("4", "5")
    assert [severity for _, _, severity in findings(other + loop())] == ["warning"]


def test_the_fix_is_written_for_what_is_differentiated():
    with a_notebook() as notebook:
        notebook.run(SETUP)
        run = notebook.run(PARTS.format(loss="self.net(x[i:i + self.micro]).square().mean(1).mean()"))
        (finding,) = [f for f in run.findings if f.slug == "accumulation-unscaled"]
        assert finding.fix == "(self.net(x[i:i + self.micro]).square().mean(1).mean() / 4).backward()"


SCALED = """
scaler = torch.amp.GradScaler('cpu', enabled={enabled}, init_scale=2.0**10)
for i, (x, y) in enumerate(data):
    loss = {loss}
    {backward}
    if (i + 1) % 4 == 0:
        scaler.step(opt)
        scaler.update()
        opt.zero_grad()
"""


def scaled(loss=MEAN, backward="scaler.scale(loss).backward()", *, enabled=True):
    with a_notebook() as notebook:
        notebook.run(SETUP)
        run = notebook.run(SCALED.format(loss=loss, backward=backward, enabled=enabled))
        assert notebook.errors[-1] is None
        return [one.fix for one in run.findings if one.slug == "accumulation-unscaled"] if run else []


def test_with_a_loss_scaler():
    assert scaled() == scaled(enabled=False) == ["scaler.scale(loss / 4).backward()"]
    assert scaled(backward="big = scaler.scale(loss); big.backward()") == []  # one line, and not told apart
    assert scaled(backward="big = scaler.scale(loss)\n    big.backward()") == ["big = scaler.scale(loss / 4)"]


def test_the_whole_loss_is_divided_whatever_it_ends_with():
    choice = f"F.mse_loss(net(x), net(x)) if crit else {MEAN}"
    (fix,) = scaled(backward=f"crit = None\n    scaler.scale({choice}).backward()")
    assert fix == f"scaler.scale(({choice}) / 4).backward()"


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("loss", [f"{MEAN} / 4", f"{MEAN} * 0.25"])
def test_divided_before_the_loss_scaler(loss, enabled):
    assert not scaled(loss, enabled=enabled)
    assert not scaled(loss, "scaler.scale(loss * 1.0).backward()", enabled=enabled)
    assert not scaled(loss, f"scaler.scale({MEAN}).backward(gradient=torch.tensor(0.25))", enabled=enabled)


@pytest.mark.parametrize("clipped", ["", "nn.utils.clip_grad_norm_(net.parameters(), 1.0); "])
def test_leftovers_of_a_counter_by_hand_are_stepped_for_after_the_loop(clipped):
    source = HAND.format(loss=f"{MEAN} / 4", rest="[:10]").replace("opt.step()", f"{clipped}opt.step()")
    with a_notebook() as notebook:
        notebook.run(SETUP)
        (finding,) = [one for one in notebook.run(source).findings if one.slug == "accumulation-remainder"]
    assert finding.fix == f"if n: {clipped}opt.step(); opt.zero_grad()  # after the loop, for what is left"
    assert findings(source + finding.fix) == []


BEHIND = """
opt.zero_grad()
for epoch in range({}):
    for i, (x, y) in enumerate((data + data)[:{}]):
        loss = F.cross_entropy(net(x), y) / 4; loss.backward()
        if {}:
            opt.step(); opt.zero_grad()
"""


@pytest.mark.parametrize(
    ("epochs", "count", "test", "message", "left"),
    [
        (1, 16, "i % 4 == 0 and i > 0", "16 backward calls in windows of 4, the first of 5, leave 3 over", [3]),
        (2, 16, "i % 4 == 0 and i > 0", "follow 5 backward calls and others 8", []),
        (1, 18, "(i + 1) % 4 == 0", "18 backward calls in windows of 4 leave 2 over", [2]),
    ],
)
def test_what_is_left_behind_a_first_window_of_one_more(epochs, count, test, message, left):
    with a_notebook() as notebook:
        notebook.run(SETUP)
        found = notebook.run(BEHIND.format(epochs, count, test)).findings
    (finding,) = [one for one in found if one.slug == "accumulation-remainder"]
    assert message in finding.message
    assert [one.value for one in finding.evidence if one.label == "left over"] == left


@pytest.mark.parametrize(
    ("epochs", "count", "test"), [(3, 7, "(i + 1) % 4 == 0 or i == 6"), (1, 13, "i % 4 == 0 and i > 0")]
)
def test_nothing_is_left_of_windows_of_other_sizes(epochs, count, test):
    assert findings(BEHIND.format(epochs, count, test)) == []


TWICE = """
log = 4
def fit(k):
    for i, (x, y) in enumerate(data):
        loss = F.cross_entropy(net(x), y); loss.backward()
        if {}:
            opt.step(); opt.zero_grad()
fit(4)
"""


@pytest.mark.parametrize(
    ("test", "by"),
    [
        ("(i + 1) % log == 0 and (i + 1) % k == 0", "4"),
        ("(i + 1) % log == 0: print(i)\n        if (i + 1) % k == 0", "k"),
        ("(i + 1) % log == 0", "log"),
    ],
)
def test_the_fix_divides_by_what_the_test_of_the_step_divides_by(test, by):
    with a_notebook() as notebook:
        notebook.run(SETUP)
        found = notebook.run(TWICE.format(test)).findings
    (finding,) = [one for one in found if one.slug == "accumulation-unscaled"]
    assert finding.fix == f"(loss / {by}).backward()"


def test_tests_of_a_counter_ask_for_what_counts_it_once(monkeypatch):
    many = "n = 0\nn += 1\nif n == 3:\n    opt.step(); n = 0\n" + "if n == 0: w = 1\n" * 300
    asked = mock.Mock(side_effect=syntax.own_expressions)
    monkeypatch.setattr(syntax, "own_expressions", asked)
    assert [one.name for one in hand_counters.hand_counters(ast.parse(many))] == ["n"]
    assert asked.call_count < 5


INSIDE = """
class Trainer:
    def __init__(self, every):
        self.every = every
    def train(self, rows):
        opt.zero_grad()
        for i, (x, y) in enumerate(rows):
            loss = F.cross_entropy(net(x), y){}
            loss.backward()
            if i % self.every == 0{}:
                opt.step()
                opt.zero_grad()
Trainer(3).train(data)
"""


@pytest.mark.parametrize("rest", ["", " and i > 0"])
def test_a_first_window_of_another_size_does_not_count(rest):
    with a_notebook() as notebook:
        notebook.run(SETUP)
        found = [one for one in notebook.run(INSIDE.format("", rest)).findings if one.slug == "accumulation-unscaled"]
        divided = notebook.run(INSIDE.format(" / self.every", rest))
    assert [one.fix for one in found] == ["(loss / self.every).backward()"]
    assert "after 3 backward calls" in found[0].message
    assert divided.findings == ()
