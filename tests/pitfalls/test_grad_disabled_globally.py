"""Gradients left off: with training after it, and without."""

import pytest

from tests.cells import a_notebook

SETUP = """
import torch
from torch import nn
torch.manual_seed(0)
x, y = torch.randn(32, 4), torch.randn(32, 1)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
def train(epochs=2):
    for _ in range(epochs):
        opt.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        opt.step()
def evaluate():
    torch.set_grad_enabled(False)
    return nn.functional.mse_loss(net(x), y).item()
class Trainer:
    def fit(self, epochs):
        for _ in range(epochs):
            torch.set_grad_enabled(True)
            train(1)
            self.score = evaluate()
"""
FORCED = """
for _ in range(2):
    opt.zero_grad()
    loss = nn.functional.mse_loss(net(x), y)
    loss.requires_grad_()
    loss.backward()
    opt.step()
"""
EVOLUTION = """
for _ in range(3):
    noise = torch.randn_like(net.weight)
    net.weight.grad = noise * nn.functional.mse_loss(net(x), y)
    opt.step()
"""


def found(*cells):
    with a_notebook() as notebook:
        for source in (SETUP, *cells):
            notebook.run(source)
        notebook.run("torch.set_grad_enabled(True);")
        return [(cell, line, sev) for cell, slug, line, sev in notebook.findings() if slug == "grad-disabled-globally"]


FOUND = {
    "by a function": (["score = evaluate()", "train()"], [(2, 12, "error")]),
    "on the top": (["torch.set_grad_enabled(False);", "train()"], [(2, 12, "error")]),
    "same cell": (["torch.set_grad_enabled(False)\ntrain()"], [(1, 12, "error")]),
    "each epoch": (["for _ in range(3):\n    train(1)\n    score = evaluate()"], [(1, 12, "error")]),
    "entered by hand": (["guard = torch.no_grad()\nguard.__enter__();", "train()"], [(2, 12, "error")]),
    "forced": (["score = evaluate()", FORCED], [(2, 4, "error")]),
    "after training": (["train()", "torch.set_grad_enabled(False);"], [(2, 1, "hint")]),
}
QUIET = {
    "switched on again": ["score = evaluate()", "torch.set_grad_enabled(True)\ntrain()"],
    "never trained": ["torch.set_grad_enabled(False);", "p = net(x)\nq = net.eval()(x)"],
    "a context": ["with torch.set_grad_enabled(False):\n    p = net(x)\ntrain()"],
    "a switch per phase": ["for phase in (True, False):\n    with torch.set_grad_enabled(phase):\n        net(x)"],
    "no weights at all": ["torch.set_grad_enabled(False);", "m = torch.randn(3, 3) @ torch.randn(3, 3)"],
    "evolution": ["torch.set_grad_enabled(False);", EVOLUTION],
    "another reason": ["with torch.no_grad():\n    loss = net(x).mean()\nloss.backward()"],
    "frozen by hand": ["net.requires_grad_(False)\nnet(x).mean().backward()"],
}


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    cells, expected = FOUND[name]
    assert found(*cells) == expected


@pytest.mark.parametrize("name", QUIET)
def test_silent(name):
    assert found(*QUIET[name]) == []


def test_a_trainer_that_switches_itself_is_right():
    assert [one for one in found("t = Trainer()\nt.fit(3)") if one[2] != "hint"] == []


def test_the_function_that_did_it_is_named_with_its_line():
    with a_notebook() as notebook:
        notebook.run(SETUP)
        notebook.run("def look():\n    torch.set_grad_enabled(False)\n    return net(x)")
        notebook.run("train()")
        first, later = notebook.run("shown = look()"), notebook.run("train()")
        notebook.run("torch.set_grad_enabled(True);")
    said = [
        one.message for run in (first, later) if run for one in run.findings if one.slug == "grad-disabled-globally"
    ]
    did = "Gradients were switched off by `torch.set_grad_enabled(...)` in `look()` (line 2 of cell 2), called"
    assert said[0] == f"{did} here, and are still off at the end of the cell."
    assert said[1].startswith(f"{did} in cell 4, and not on again")


@pytest.mark.parametrize(
    "last", [["torch.set_grad_enabled(True)\nloss.backward()"], ["torch.set_grad_enabled(True);", "loss.backward()"]]
)
def test_a_loss_from_before_they_were_on_again_is_told_of(last):
    with a_notebook() as notebook:
        for source in (SETUP, "torch.set_grad_enabled(False);", "loss = net(x).sum()", *last):
            notebook.run(source)
        run = notebook.runs[-1]
        notebook.run("torch.set_grad_enabled(True);")
    (finding,) = run.findings
    assert "`loss` was computed in cell 3 while gradients were off" in finding.message


LEFT = """
import torch
net, x = torch.nn.Linear(4, 1), torch.randn(8, 4)
def look():
    torch.set_grad_enabled(False)
    net(x)
"""


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("    net.train()\n", [("hint", 5)]),
        ("opt = torch.optim.SGD(net.parameters(), lr=0.1)\n", [("hint", 5)]),
        ("", []),
        ("    net.train()\ndef fit():\n    torch.set_grad_enabled(True)\n", []),
        ("    torch.set_grad_enabled(True)\n    net.train()\n", []),
    ],
)
def test_a_function_that_leaves_them_off_where_there_is_something_to_train(more, expected):
    with a_notebook() as notebook:
        run = notebook.run(f"{LEFT}{more}look()")
        notebook.run("torch.set_grad_enabled(True);")
    slug = "grad-disabled-globally"
    assert [(one.severity, one.line) for one in run.findings if one.slug == slug] == expected


ON, OFF = "torch.set_grad_enabled(True)\n", "torch.set_grad_enabled(False)\n"
LATE = {
    "by the cell itself": ([f"{OFF}loss = net(x).sum()", f"{ON}loss.backward()"], "cell 2", "(line 1 of cell 2)"),
    "by a function": (
        [f"def off():\n    {OFF}", "off()\nloss = net(x).sum()", f"{ON}loss.backward()"],
        "cell 3",
        "(line 2 of cell 2)",
    ),
    "bound again": ([f"{OFF}loss = net(x).sum()", f"{ON}loss += 0\nloss.backward()"], "cell 2", "(line 1 of cell 2)"),
    "in the same cell": ([OFF, f"loss = net(x).sum()\n{ON}loss.backward()"], "here", "after the line"),
}


@pytest.mark.parametrize("name", LATE)
def test_a_cell_that_would_switch_them_off_again_is_not_only_run_once_more(name):
    cells, where, how = LATE[name]
    with a_notebook() as notebook:
        for source in (SETUP, *cells):
            notebook.run(source)
        run = notebook.runs[-1]
        notebook.run(ON)
    (finding,) = run.findings
    assert where in finding.message
    assert "though they are on again" in finding.message
    assert how in finding.fix


COMES = {
    "a name between": ([f"{OFF}pred = net(x)", f"{ON}loss = ((pred - y) ** 2).mean()\nloss.backward()"], "`pred`"),
    "two names": ([f"{OFF}out = net(x)", f"{ON}flat = out.squeeze()\nloss = flat.sum()\nloss.backward()"], "`out`"),
    "without a name": ([f"{OFF}pred = net(x)", f"{ON}nn.functional.mse_loss(pred, y).backward()"], "`pred`"),
    "in a function": (
        [
            "def step(scale):\n    loss = nn.functional.mse_loss(pred, y) * scale\n    loss.backward()",
            f"{OFF}pred = net(x)",
            f"{ON}step(2)",
        ],
        "`pred`",
    ),
    "both before": ([f"{OFF}pred = net(x)", "loss = pred.mean()", f"{ON}loss.backward()"], "`pred`"),
}
OTHER = {
    "weights of plain tensors": "w = torch.randn(4, 3)\nl2 = nn.functional.cross_entropy(x @ w, val)\nl2.backward()",
    "data alone": "loss = nn.functional.mse_loss(x, torch.zeros_like(x))\nloss.backward()",
    "without a name": "nn.functional.mse_loss(x, torch.zeros_like(x)).backward()",
    "in a function": "def step(out):\n    loss = (x * out).sum()\n    loss.backward()\nstep(1)",
}


@pytest.mark.parametrize("name", COMES)
def test_the_variable_that_was_computed_while_they_were_off_is_named(name):
    cells, what = COMES[name]
    with a_notebook() as notebook:
        for source in (SETUP, *cells):
            notebook.run(source)
        run = notebook.runs[-1]
        notebook.run(ON)
    (finding,) = (one for one in run.findings if one.slug == "grad-disabled-globally")
    assert f"comes from {what}, which was computed in cell" in finding.message


@pytest.mark.parametrize("name", OTHER)
@pytest.mark.parametrize("cut", ["", "\n"])
def test_a_loss_of_which_no_such_model_is_part_has_another_reason(name, cut):
    before = f"{OFF}val, out = net(x).argmax(1), net(x)"
    cells = [f"{before}\n{ON}{OTHER[name]}"] if cut else [before, f"{ON}{OTHER[name]}"]
    assert [one for one in found(*cells) if one[2] != "hint"] == []


def test_a_number_to_which_nothing_was_added_is_another_mistake():
    cells = f"{OFF}score = net(x).sum()\nloss = torch.tensor(0.0)", f"{ON}loss += 0\nloss.backward()"
    assert [one for one in found(*cells) if one[2] != "hint"] == []


PRIOR = """
class Prior(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)
    def slope(self, x):
        {on}
        x = x.detach().requires_grad_()
        g = torch.autograd.grad(self.body(x).sum(), x)[0]
        {off}
        return g
    def forward(self, x):
        return x - self.slope(x)
prior = Prior()
"""
STOPPED = """
def validate(model):
    torch.set_grad_enabled(False)
    assert x.shape == y.shape
    torch.set_grad_enabled(True)
def fit(model):
    own = torch.optim.SGD(model.parameters(), lr=0.1)
    model(x).square().mean().backward()
    own.step()
    validate(model)
"""


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        ([PRIOR.format(on=ON.strip(), off=OFF.strip()), "out = prior(x)"], "`slope()` (line 10 of cell 2)"),
        ([STOPPED, "fit(net)"], "`validate()` (line 3 of cell 2)"),
    ],
)
def test_a_function_that_leaves_them_off_is_named(cells, told):
    with a_notebook() as notebook:
        for source in (SETUP.partition("opt = ")[0], *cells):
            run = notebook.run(source)
        notebook.run("torch.set_grad_enabled(True);")
    (finding,) = (one for one in run.findings if one.slug == "grad-disabled-globally")
    assert (finding.severity, f"in {told}, called here," in finding.message) == ("hint", True)


OUTSIDE = """
import types
helpers = types.ModuleType("helpers")
exec("import torch\\ndef off(fail):\\n    torch.set_grad_enabled(False)\\n    assert not fail", helpers.__dict__)
def measure(model):
    torch.set_grad_enabled(False)
    score = model(x).mean().item()
    torch.set_grad_enabled(True)
    return score
"""


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("train()\nhelpers.off(True)", "in this cell"),  # it was not called
        ("train()\nmeasure(net)\nhelpers.off(False)", "in this cell"),  # it came to its end
        ("train()\nmeasure(lambda x: net(x[:, 1:]))", "in `measure()` (line 6 of cell 2), called here,"),
    ],
)
def test_a_function_that_was_not_called_or_came_to_its_end_is_not_blamed(cell, said):
    with a_notebook() as notebook:
        for source in (SETUP, OUTSIDE, cell):
            run = notebook.run(source)
        notebook.run(ON)
    (finding,) = (one for one in run.findings if one.slug == "grad-disabled-globally")
    assert said in finding.message


@pytest.mark.parametrize(
    ("on", "off", "last"),
    [
        ("was = torch.is_grad_enabled(); torch.set_grad_enabled(True)", "torch.set_grad_enabled(was)", "prior(x);"),
        ("torch.set_grad_enabled(True)", "torch.set_grad_enabled(False)", f"prior(x)\n{ON}"),
        ("torch.set_grad_enabled(True)", "torch.set_grad_enabled(False)", "x.sum()"),
    ],
)
def test_a_function_that_asks_what_they_were_is_right(on, off, last):
    assert found(PRIOR.format(on=on, off=off), last) == []


FROZEN = "for p in {}.parameters():\n    p.requires_grad_(False)\n"
OTHER_NET = "other = nn.Linear(4, 1).requires_grad_(False)\nhead = nn.Linear(1, 1).requires_grad_(False)"


@pytest.mark.parametrize(
    ("before", "after", "slug"),
    [
        ("out = net(x)", f"{FROZEN.format('net')}loss = (out - net(x)).square().mean()", "nothing-to-train"),
        ("del opt\nout = net(x)", "loss = (out - other(x)).square().mean()", "nothing-to-train"),
        ("del opt\nout = net(x)", "loss = head(out).mean()", "nothing-to-train"),
        ("out = net(x)", "loss = head(out).mean()", "grad-disabled-globally"),
    ],
)
def test_of_a_frozen_model_and_one_without_gradients_one_is_the_reason(before, after, slug):
    with a_notebook() as notebook:
        for source in (SETUP, OTHER_NET, f"{OFF}{before}", ON, f"{after}\nloss.backward()"):
            run = notebook.run(source)
        notebook.run(ON)
    assert [one.slug for one in run.findings if one.severity == "error"] == [slug]


BARE = SETUP[: SETUP.index("class Trainer")].replace("torch.set_grad_enabled(False)", "pass")
DETECTOR = """
class Detector:
    def __init__(self, size=3):
        torch.set_grad_enabled({state})
        self.net = nn.Linear(4, size)
    def __call__(self, rows):
        return self.net(rows)
class Small(Detector):
    pass
"""
OFF_BY_ITSELF = DETECTOR.replace("{state}", "False")


@pytest.mark.parametrize(
    ("state", "cell"),
    [
        ("False", "detector = Detector()\nboxes = detector(x)"),
        ("False", "detector = Small()"),
        ("mode=False", "def load():\n    return [Detector()]\ndetectors = load()"),
    ],
)
def test_a_constructor_that_leaves_them_off(state, cell):
    cells = [BARE, DETECTOR.replace("{state}", state), cell]
    with a_notebook() as notebook:
        run = [notebook.run(one) for one in cells][-1]
        notebook.run("torch.set_grad_enabled(True);")
    (finding,) = (one for one in run.findings if one.slug == "grad-disabled-globally")
    assert finding.severity == "hint"
    assert "in `Detector.__init__()` (line 4 of cell 2), called here," in finding.message


@pytest.mark.parametrize(
    "cells",
    [
        [OFF_BY_ITSELF, "torch.set_grad_enabled(False);\ndetector = Detector()"],
        [OFF_BY_ITSELF, "def off():\n    torch.set_grad_enabled(False)", "off()"],
        [OFF_BY_ITSELF, "del opt\ndetector = Detector()"],
        [OFF_BY_ITSELF, "with torch.enable_grad():\n    detector = Detector()\ny = 1"],
        [DETECTOR.replace("{state}", "True"), "torch.set_grad_enabled(False);"],
    ],
    ids=["by the cell", "by a function", "nothing to train", "put back", "on"],
)
def test_constructors_that_are_not_what_left_them_off(cells):
    with a_notebook() as notebook:
        for source in (BARE, *cells):
            notebook.run(source)
        notebook.run("torch.set_grad_enabled(True);")
        assert notebook.findings() == []
