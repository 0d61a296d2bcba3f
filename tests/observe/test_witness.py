"""The graph behind a loss, and what the user calls it."""

import pytest
import torch

from tests.cells import a_notebook
from torch_inspector.observe.witness import roots_of

TELLS_SHAPES = hasattr(torch.ones(1, requires_grad=True).sum().grad_fn, "_input_metadata")
SETUP = """
import torch
from torch import nn
from torch.nn import functional as F
model = nn.Linear(3, 1)
x, y = torch.randn(8, 3), torch.randn(8)
"""


def first_backward(*cells):
    with a_notebook() as notebook:
        notebook.run(SETUP)
        for cell in cells:
            run = notebook.run(cell)
    assert notebook.errors == [None] * (len(cells) + 1)
    return run.trace.backwards[0]


@pytest.mark.parametrize(
    ("cells", "root", "made_at"),
    [
        (["loss = model(x).sum()\nloss.backward()"], "loss", (2, 1)),
        (["def f():\n    l = model(x).sum()\n    l.backward()\n    return 1\nf()"], "l", (2, 2)),
        (["def f():\n    l = model(x).sum()\n    l.backward()", "f()"], "l", (2, 2)),
        (["model(x).sum().backward()"], "", (2, 1)),
        (["losses = [model(x).sum()]\nlosses[0].backward()"], "", (2, 2)),
        (["model.loss = model(x).sum()\nmodel.loss.backward()"], "model.loss", (2, 1)),
        (["for i in range(2):\n    loss = model(x).sum()\n    loss = loss / 2\n    loss.backward()"], "loss", (2, 3)),
    ],
)
def test_name_and_line_of_the_loss(cells, root, made_at):
    fact = first_backward(*cells)
    assert (fact.root, tuple(fact.made_at)[:2]) == (root, made_at)


def test_a_loss_made_in_an_earlier_cell_is_placed_at_the_call():
    fact = first_backward("loss = model(x).sum()", "loss.backward()")
    assert (fact.root, tuple(fact.made_at)[:2]) == ("loss", (3, 1))


def test_leaves_bytes_and_patterns():
    fact = first_backward("pred = model(x)\nloss = ((pred - y) ** 2).mean()\nloss.backward()")
    assert len(fact.witness.leaf_keys) == 2
    assert fact.witness.complete
    assert fact.witness.saved_nbytes == 8 * 3 * 4 + 8 * 8 * 4
    (pattern,) = fact.witness.patterns
    assert (pattern.name, pattern.operands) == ("stretched-operands", ("y",))


STRETCHED = {
    "a function": "def mse(a, b):\n    return ((a - b) ** 2).mean()\nmse(model(x), y).backward()",
    "a function with names": "def mse(a, b):\n    d = b\n    return (a - d).abs().mean()\nmse(model(x), b=y).backward()",  # noqa: E501
    "a lambda": "mse = lambda a, b: ((a - b) ** 2).mean()\nmse(model(x), y).backward()",
    "a loss module": (
        "class L(nn.Module):\n    def forward(self, a, b):\n        return (a - b).cosh().log().mean()\n"
        "crit = L()\ncrit(model(x), y).backward()"
    ),
    "a method": (
        "class T:\n    def step(self, batch):\n        a, b = batch\n        return ((model(a) - b) ** 2).mean()\n"
        "T().step((x, y)).backward()\nt = T()\nt.step((x, y)).backward()"
    ),
    "an entry": "batch = {'y': y}\n((model(x) - batch['y']) ** 2).mean().backward()",
    "an item": "batch = [x, y]\n((model(batch[0]) - batch[1]) ** 2).mean().backward()",
    "rows": "i, big = 8, torch.randn(32)\n((model(x) - big[i:i + 8]) ** 2).mean().backward()",
    "a column of a table": "table = torch.randn(8, 4)\nF.l1_loss(model(x), table[:, 3]).backward()",
    "an attribute": "model.y = y\n(model(x) - model.y).pow(2).sum().backward()",
    "torch.sub": "torch.sub(model(x), y).square().mean().backward()",
    "a cast": "ti = y.long()\n((model(x) - ti.float()) ** 2).mean().backward()",
    "a squeezed target": "t = y.unsqueeze(1).clone()\nF.mse_loss(model(x), t.squeeze()).backward()",
    "a loss layer": "nn.HuberLoss()(model(x), y[:]).backward()",
    "a column as target": "t, p = y[:, None], model(x)[:, 0]\nnn.MSELoss()(p, t).backward()",
    "log likelihood": "b = (y > 0).float()\np = model(x).sigmoid()\n(-(b * p.log() + (1 - b) * (1 - p).log())).mean().backward()",  # noqa: E501
    "weighted": "(model(x) * y).mean().backward()",
    "poisson": "nn.PoissonNLLLoss()(model(x), y.abs()).backward()",
}
SILENT = {
    "a row on purpose": "F.mse_loss(model(x), y[None]).backward()",
    "a row in the formula": "((model(x) - y[None]) ** 2).mean().backward()",
    "a grid": "bins = torch.linspace(0, 1, 8)\n(model(x) - bins).abs().mean().backward()",
    "a grid as a buffer": (
        "model.register_buffer('bins', torch.arange(8) / 8)\n(model(x) - model.bins).abs().mean().backward()"
    ),
    "itself": "s = model(x)\nr = s.detach().squeeze(1)\n((s - r) ** 2).mean().backward()",
    "a table made in another pair": "y0 = model(x).squeeze(1) - y\nt = model(x) - y[None]\n(t ** 2).mean().backward()",
    "unknown": "def target():\n    return y[None]\n((model(x) - target()) ** 2).mean().backward()",
    "a parameter made anew": "def f(a, b):\n    b = b[None]\n    return (a - b).abs().mean()\nf(model(x), y).backward()",  # noqa: E501
    "outer product": "(model(x) * y - torch.ones(8, 8)).square().mean().backward()",
}


def stretched_in(code):
    fact = first_backward("import warnings; warnings.simplefilter('ignore')", code)
    return [pattern.shapes for pattern in fact.witness.patterns]


UNTOLD = () if TELLS_SHAPES else ("a loss module", "log likelihood", "poisson")


@pytest.mark.parametrize("name", STRETCHED)
def test_a_column_against_a_row_wherever_it_is_written(name):
    if name in UNTOLD:
        pytest.skip("this torch does not tell the shapes of results")
    (shapes,) = stretched_in(STRETCHED[name])
    assert set(shapes) == {(8, 8), (8, 1), (8,)}


@pytest.mark.parametrize("name", SILENT)
def test_tables_that_may_be_meant(name):
    assert stretched_in(SILENT[name]) == []


def test_nothing_of_the_user_runs_when_operands_are_read():
    code = """
class Sly:
    def __getattr__(self, name): raise SystemExit
    def __getitem__(self, key): raise SystemExit
    @property
    def y(self): calls.append(1); return y
calls, sly = [], Sly()
((model(x) - sly.y) ** 2).mean().backward()
assert calls == [1]
"""
    assert stretched_in(code) == []


def test_only_the_first_calls_of_a_line_are_read():
    with a_notebook() as notebook:
        notebook.run(SETUP)
        run = notebook.run("for i in range(50):\n    model(x).sum().backward()")
    assert [fact.index for fact in run.trace.backwards] == [1, 2, 3]
    assert run.trace.count("backward") == 50


@pytest.mark.parametrize("given", [((), {}), ((3,), {}), ((None,), {}), ((torch.ones(1),), {})])
def test_no_roots(given):
    assert roots_of(*given) == []


def test_roots_however_they_are_given():
    one, two = torch.ones(1, requires_grad=True) * 2, torch.ones(1, requires_grad=True) * 2
    assert roots_of((one,), {}) == [one]
    assert len(roots_of(([one, two, 3],), {})) == 2
    assert roots_of((), {"tensors": (one,)}) == [one]
    assert roots_of((), {"outputs": one}) == [one]
