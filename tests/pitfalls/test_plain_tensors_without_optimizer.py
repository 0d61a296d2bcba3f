"""Plain tensors that a loss trains and no optimizer holds, and those that want gradients for other reasons."""

import pytest

from tests.cells import a_notebook

SLUG = "parameters-missing-from-optimizer"
START = """\
import torch
import torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(32, 4), torch.randint(0, 2, (32,))"""
CE = "F.cross_entropy({}, y)"


def loop(loss, *, before="", after=""):
    return f"""\
{before}
for _ in range(5):
    opt.zero_grad()
    loss = {loss}
    loss.backward()
    opt.step()
    {after}"""


def leaf(name, value):
    return f"{name} = {value[:-1]}, requires_grad=True)"


def found(*cells):
    with a_notebook() as notebook:
        for code in (START, *cells):
            notebook.run(code)
            assert notebook.errors[-1] is None, notebook.errors[-1]
        return [f for run in notebook.runs if run for f in run.findings if f.slug == SLUG]


OF_A_MODULE = """\
class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.gain = nn.Linear(4, 2), torch.ones(1, requires_grad=True)
    def forward(self, x):
        return self.linear(x) * self.gain
scaled = Scaled()
opt = torch.optim.SGD(scaled.parameters(), lr=0.1)"""
OF_A_TRAINER = """\
class Trainer:
    def __init__(self):
        self.temperature, self.opt = torch.ones(1, requires_grad=True), opt
    def fit(self):
        for _ in range(5):
            self.opt.zero_grad()
            F.cross_entropy(net(x) / self.temperature, y).backward()
            self.opt.step()
trainer = Trainer()
trainer.fit()"""


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (loop(CE.format("net(x) / t.unsqueeze(1).expand(32, 2)"), before=leaf("t", "torch.ones(1)")), "`t`"),
        (loop(CE.format("net(x) * gain['log'].exp()"), before="gain = {'log': torch.zeros((), requires_grad=True)}"),
        "`gain['log']`"),
        (loop(f"(torch.exp(-s) * {CE.format('net(x)')} + s).sum()", before=leaf("s", "torch.zeros(1)")), "`s`"),
        (loop("(torch.exp(-s) * (net(x) - x[:, :2]).square().mean(0) + s).sum()", before=leaf("s", "torch.zeros(2)")),
        "`s`"),
        (loop(CE.format("(x @ w + b).relu() @ v"), before=leaf("w", "torch.randn(4, 8)") + "\n"
        + leaf("b", "torch.zeros(8)") + "\n" + leaf("v", "torch.randn(8, 2)") + "\nopt = torch.optim.SGD([w, v], 0.1)"),
        "`b`"),
        (loop(CE.format("(x @ w).relu() @ v"), before=leaf("w", "torch.randn(4, 8)") + "\n"
        + leaf("v", "torch.randn(8, 2)") + "\nopt = torch.optim.SGD([w], 0.1)"), "`v`"),
        (OF_A_MODULE + loop(CE.format("scaled(x)")), "a plain tensor, which `scaled.parameters()` leaves out"),
        (OF_A_TRAINER, "`trainer.temperature`"),
    ],
)  # fmt: skip
def test_what_was_left_out(code, name):
    (finding,) = found(code)
    assert finding.severity == "hint"
    assert name in finding.message
    assert "or an optimizer of its own; or, if it is not to learn: " in finding.fix


def test_tensors_of_one_line_are_told_together():
    code = leaf("mean", "torch.zeros(())") + "\n" + leaf("spread", "torch.ones(())")
    (finding,) = found(loop(CE.format("(net(x) - mean) / spread"), before=code))
    assert "`mean`, `spread`" in finding.message or "`spread`, `mean`" in finding.message
    assert "they keep their values" in finding.message


@pytest.mark.parametrize(
    "cells",
    [
        [loop(CE.format("net(x)"), before="x.requires_grad_()")],
        [loop("F.mse_loss(net(x), target)", before=leaf("target", "torch.randn(32, 2)"))],
        [loop("((w * a - b) ** 2).mean()", before=leaf("a", "torch.rand(3)") + "\n" + leaf("b", "torch.rand(3)") + "\n"
        + leaf("w", "torch.ones(1)") + "\nopt = torch.optim.SGD([w], 0.1)")],
        [loop(CE.format("data @ w"), before=leaf("data", "torch.randn(32, 4)") + "\n"
        + leaf("w", "torch.randn(4, 2)") + "\nopt = torch.optim.SGD([w], 0.1)")],
        [loop(CE.format("net(torch.rand(32, 32) @ x)"), before="x.requires_grad_()")],
        [loop("rnn(x.view(4, 8, 4), state)[0].square().mean()", before=leaf("state", "torch.zeros(1, 8, 3)")
        + "\nrnn = nn.RNN(4, 3)\nopt = torch.optim.SGD(rnn.parameters(), 0.1)")],
        [loop(CE.format("net(x + shift)"), before=leaf("shift", "torch.zeros(1, 4)"))],
        [loop(CE.format("net(image.expand(32, 4))"), before=leaf("image", "torch.rand(1, 4)"))],
        [loop("(F.cross_entropy(net(x), y, reduction='none') * each).mean()", before=leaf("each", "torch.ones(32)"))],
        [loop("((net(x) - x[:, :2]).square().mean(1) * each).mean()", before=leaf("each", "torch.ones(32)"))],
        [loop(CE.format("net(x) + b"), before=leaf("b", "torch.zeros(2)"), after="b.data -= 0.1 * b.grad")],
        [leaf("b", "torch.zeros(2)") + "\nF.cross_entropy(net(x) + b, y).backward()\nprint(b.grad)",
        loop(CE.format("net(x) + b"))],
        [loop(CE.format("net(x) * m"), before=leaf("m", "torch.ones(2)"),
        after="with torch.no_grad(): m.clamp_(0, 1)")],
        [loop(CE.format("net(x) / t"), before=leaf("t", "torch.ones(1)") + "\nother = torch.optim.LBFGS([t])")],
        [("for _ in range(5):\n    t = torch.ones(1, requires_grad=True)\n    opt.zero_grad()\n"
        "    F.cross_entropy(net(x) / t, y).backward()\n    opt.step()")],
        [loop(CE.format("net(x)")), leaf("t", "torch.ones(1)") + "\nopt = torch.optim.SGD([t], 0.1)"
        + loop(CE.format("net(x) / t"))],
    ],
)  # fmt: skip
def test_what_is_meant(cells):
    assert found(*cells) == []


def test_the_text_of_a_function_is_gone_through_once():
    import ast
    from unittest import mock

    from tests.fakes import a_run
    from torch_inspector.facts import Place, left_alone, syntax

    def passes(count):
        body = "".join(
            f"def fn{i}(x, w, k):\n    c = x - k\n    return fn{i}(w, c) + fn0(w, 1)\n" for i in range(count)
        )
        run = a_run(source=f"# {count}\n{body}")
        walks, texts = mock.Mock(wraps=syntax.walk), mock.Mock(wraps=ast.unparse)
        with mock.patch.object(syntax, "walk", walks), mock.patch.object(ast, "unparse", texts):
            assert not left_alone.is_written(run, "w")
            assert left_alone.left_alone(run, "w", Place(1, 1))
        return walks.call_count, texts.call_count

    walked, written = passes(400)
    assert walked == passes(40)[0]
    # Of each call of one name its name, and of each function the whole.
    assert written < 4 * 400
    assert left_alone.is_written(a_run(source="".join(f"fn{i}(w)\n" for i in range(2000))), "w")
