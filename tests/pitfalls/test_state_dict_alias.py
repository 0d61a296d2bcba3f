"""State dicts that were kept, with and without a copy."""

import pytest

from tests.cells import a_notebook, findings_in

SETUP = """
import copy, io
import torch
from torch import nn
torch.manual_seed(0)
x, y = torch.randn(50, 5), torch.randn(50, 1)
net = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
def step():
    opt.zero_grad()
    loss = nn.functional.mse_loss(net(x), y)
    loss.backward()
    opt.step()
    return loss.item()
"""
BEST = """
best, state = 1e9, None
for _ in range(6):
    loss = step()
    if loss < best:
        best, state = loss, net.state_dict()
step();
"""
RETURNED = """
def fit(model, epochs):
    lowest, kept = 1e9, None
    for _ in range(epochs):
        loss = step()
        if loss < lowest:
            lowest, kept = loss, model.state_dict()
    step()
    model.load_state_dict(kept)
fit(net, 5)
"""
STOPPER = """
class Stopper:
    def __init__(self):
        self.best_state = None
    def __call__(self, model):
        self.best_state = model.state_dict()
stopper = Stopper()
step()
stopper(net)
step();
"""
GENERATOR = """
def snapshots():
    for _ in range(4):
        step()
        yield net.state_dict()
kept = list(snapshots())
"""
SAVED = """
for e in range(4):
    step()
    if e % 2:
        state = net.state_dict()
        torch.save(state, io.BytesIO())
"""
WITH_THE_REST = """
lowest = 1e9
for e in range(6):
    loss = step()
    if loss < lowest:
        lowest = loss
        parcel = {
            'weights': net.state_dict(),
            'optimizer': opt.state_dict(),
            'epoch': e,
            'loss': loss,
        }
        print('lower than before:', loss)
        HAND_ON
step();
"""
TWIN = """
twin = copy.deepcopy(net)
for _ in range(3):
    step()
    twin.load_state_dict(net.state_dict())
"""
EACH = """
states = []
for _ in range(3):
    m = nn.Linear(5, 1)
    o = torch.optim.SGD(m.parameters(), lr=.1)
    m(x).mean().backward()
    o.step()
    states.append(m.state_dict())
"""
SECOND = """
lowest, best_model = 1e9, None
for turn in range(6):
    loss = step()
    if turn < 4 and loss < lowest:
        lowest = loss
        best_model = net
        HAND_ON
"""
IN_FUNCTION = """
def fit(model, epochs):
    lowest, best = 1e9, model
    for _ in range(epochs):
        loss = step()
        if loss < lowest:
            lowest, best = loss, model
    return best
kept = fit(net, 5)
"""
TRAINER = """
class Trainer:
    def __init__(self, model):
        self.model = model
    def fit(self):
        self.lowest = 1e9
        for _ in range(6):
            loss = step()
            if loss < self.lowest:
                self.lowest, self.best_model = loss, self.model
trainer = Trainer(net)
trainer.fit()
"""
SWEEP = """
lowest, best_model = 1e9, None
for rate in (0.1, 0.2, 0.3):
    model = nn.Linear(5, 1)
    o = torch.optim.SGD(model.parameters(), lr=rate)
    for _ in range(4):
        o.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        o.step()
    if loss < lowest:
        lowest, best_model = loss.item(), model
"""
RESET = TRAINER.replace("for _ in range(6):", "for _ in range(6):\n            self.reset()")
RESET = RESET.replace(
    "    def fit(self)", "    def reset(self):\n        self.model = nn.Linear(5, 1)\n    def fit(self)"
)
EMPTY = SECOND.replace("        HAND_ON\n", "")
MOMENTS = "adam = torch.optim.Adam(net.parameters())\ndef adam_step():\n    net(x).mean().backward()\n    adam.step()\n"
KEPT = MOMENTS + "adam_step()\nkept = {'opt': adam.state_dict()}\n"
BY_HAND = """
before = net.state_dict()
for _ in range(2):
    net.zero_grad()
    nn.functional.mse_loss(net(x), y).backward()
    for p in net.parameters():
        p.data -= 0.01 * p.grad.data
"""
BY_LIST = """
before = net.state_dict()
grads = torch.autograd.grad(nn.functional.mse_loss(net(x), y), list(net.parameters()))
with torch.no_grad():
    for p, g in zip(net.parameters(), grads):
        p -= 0.01 * g
"""
NAMED_TOO = """
kept = []
for _ in range(3):
    step()
    weights = net.state_dict()
    kept.append(weights)
"""
BEST_BY_HAND = """
lowest, best = 1e9, None
for _ in range(3):
    net.zero_grad()
    loss = nn.functional.mse_loss(net(x), y)
    loss.backward()
    if loss < lowest:
        lowest, best = loss.item(), net.state_dict()
    STEP
"""
LOOP = "for p in net.parameters(): p.data -= 0.001 * p.grad"
HELPER = """
other, w = nn.Linear(5, 1), torch.zeros(5, 1, requires_grad=True)
def sgd(params):
    for p in params:
        p.data -= 0.001 * p.grad
def fit(model):
    model.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    sgd(model.parameters())
class Fitter:
    def __init__(self, model):
        self.model = model
    def go(self):
        fit(self.model)
"""
# One step of another tensor by hand, in an earlier cell.
OTHERS = f"{HELPER}\n(x @ w).sum().backward()\nwith torch.no_grad():\n    w -= 0.1 * w.grad"
SALIENCY = (
    "before = net.state_dict()\nnet(x.clone().requires_grad_()).sum().backward()\nDO\nnet[0].weight.data.mul_(0.5);"
)
SPOILED = """
net[0].weight.data[0, 0] = float("nan")
before = net[0].state_dict()
net[0](x).sum().backward()
net[0].load_state_dict(before)
"""
SAVER = """
class Saver:
    def fit(self):
        self.lowest = 1e9
        for _ in range(4):
            loss = step()
            if loss < self.lowest:
                self.lowest = loss
                self.best_state = net.state_dict()
                HAND_ON
saver = Saver()
saver.fit()
step();
"""
LOOK = "print(sum(v.numel() for v in before.values()))"
FOUND = {
    "the best of an object, which is not saved": ([SAVER.replace("HAND_ON", "print('lower')")], (9, "warning")),
    "saved after the steps": (["best = net.state_dict()\nstep()\ntorch.save(best, io.BytesIO())"], (1, "warning")),
    "looked at before and after": ([f"before = net.state_dict(); {LOOK}; step(); {LOOK}"], (1, "warning")),
    "looked at, and again in the next turn": (
        [f"before = {{}}\nfor _ in range(3):\n    {LOOK}\n    before = net.state_dict()\n    {LOOK}\n    step()"],
        (4, "warning"),
    ),
    "given back by a function": (
        ["def now():\n    start = net.state_dict()\n    return start\nstart = now()\nstep();"],
        (2, "warning"),
    ),
    "given back by a lambda": (["now = lambda: net.state_dict()\ninitial = now()\nstep();"], (1, "warning")),
    "given another name": (["initial = net.state_dict()\nkept = initial\nstep();"], (1, "warning")),
    "steps by hand after the best": ([BEST_BY_HAND.replace("STEP", LOOP)], (8, "warning")),
    "steps of a helper": ([HELPER, BEST_BY_HAND.replace("STEP", "sgd(net.parameters())")], (8, "warning")),
    "steps of an object": ([HELPER, "before = net.state_dict()\nFitter(net).go()"], (1, "warning")),
    "steps of a later cell": ([HELPER, "before = net.state_dict()", "fit(net)"], (1, "warning")),
    "steps by hand": ([BY_HAND], (2, "warning")),
    "steps by hand, loaded back": ([BY_HAND + "net.load_state_dict(before)"], (2, "error")),
    "steps of a list of gradients": ([BY_LIST], (2, "warning")),
    "a list, the last of which has a name": ([NAMED_TOO], (5, "error")),
    "a second name": ([EMPTY], (7, "warning")),
    "a shallow copy of the model": ([EMPTY.replace("= net", "= copy.copy(net)")], (7, "warning")),
    "a shallow copy by its own name": (
        ["from copy import copy", EMPTY.replace("= net", "= copy(net)")],
        (7, "warning"),
    ),
    "a second name of the last turn": ([EMPTY.replace("turn < 4 and ", "")], (7, "hint")),
    "a second name in a function": ([IN_FUNCTION], (7, "warning")),
    "a second name in a trainer": ([TRAINER], (10, "warning")),
    "the parameters": ([EMPTY.replace("= net", "= dict(net.named_parameters())")], (7, "warning")),
    "the parameters, put in": (
        [EMPTY.replace("None", "{}").replace("best_model = net", "best_model.update(w=list(net.parameters()))")],
        (7, "warning"),
    ),
    "an optimizer": ([KEPT + "adam_step()\nadam.load_state_dict(kept['opt'])"], (8, "warning")),
    "the best": ([BEST], (6, "warning")),
    "in a dict": (["kept = {}\nstep()\nkept['best'] = net.state_dict()\nstep();"], (3, "warning")),
    "a list": (
        ["all_states = []\nfor _ in range(3):\n    step()\n    all_states.append(net.state_dict())"],
        (4, "error"),
    ),
    "a comprehension": (["log = [(step(), net.state_dict())[1] for _ in range(3)]"], (1, "error")),
    "a generator": ([GENERATOR], (5, "error")),
    "by epoch": (["by = {}\nfor e in range(3):\n    step()\n    by[e] = net.state_dict()"], (4, "error")),
    "over cells": (["initial = net.state_dict()", "step();"], (1, "warning")),
    "a shallow copy": (["before = dict(net.state_dict())\nstep();"], (1, "warning")),
    "another shallow copy": (["before = {k: v.cpu() for k, v in net.state_dict().items()}\nstep();"], (1, "warning")),
    "loaded back in a function": ([RETURNED], (9, "error")),
    "an object": ([STOPPER], (6, "warning")),
    "another one saved": (
        [WITH_THE_REST.replace("HAND_ON", "torch.save(opt.state_dict(), io.BytesIO())")],
        (8, "warning"),
    ),
    "saved in another block": (
        [WITH_THE_REST.replace("HAND_ON", "pass") + "if loss < 0:\n    torch.save(parcel, io.BytesIO())"],
        (8, "warning"),
    ),
    "loaded back": (["sd = net.state_dict()\nstep()\nnet.load_state_dict(sd);"], (3, "error")),
}
QUIET = {
    "the best of an object, saved": [SAVER.replace("HAND_ON", "torch.save(self.best_state, io.BytesIO())")],
    "a name that stays, saved": ["best = net.state_dict()\ntorch.save(best, io.BytesIO()); step()"],
    "saved in a cell of its own": ["snapshot = net.state_dict()", "torch.save(snapshot, io.BytesIO())", "step();"],
    "saved with the rest, a name that stays": [
        "best = {'net': net.state_dict()}\nfile = io.BytesIO()\ntorch.save(best, file)\nstep();"
    ],
    "loaded elsewhere": ["twin = copy.deepcopy(net)\nstart = net.state_dict(); twin.load_state_dict(start); step()"],
    "a name that stays, looked at": [f"before = net.state_dict(); {LOOK}; step();"],
    "loaded elsewhere before steps by hand": [
        HELPER,
        "twin = copy.deepcopy(net)\nbefore = net.state_dict()\ntwin.load_state_dict(before)\nfit(net)",
    ],
    "a number that is none": [
        OTHERS,
        SPOILED,
    ],
    "steps of earlier": [OTHERS, SALIENCY.replace("DO", "pass")],
    "steps of another tensor": [OTHERS, SALIENCY.replace("DO", "w.data -= 0.1 * w.grad")],
    "steps of another model": [OTHERS, SALIENCY.replace("DO", "fit(other)\nFitter(other).go()")],
    "steps before it": [HELPER, "fit(net)\nbefore = net.state_dict()\nnn.init.zeros_(net[0].weight);"],
    "steps by hand, a copy": [BY_HAND.replace("net.state_dict()", "copy.deepcopy(net.state_dict())")],
    "steps by hand, new memory": [BY_HAND.replace("p.data -= 0.01", "p.data = p.data - 0.01")],
    "gradients looked at": [BY_HAND.replace("p.data -= 0.01 * p.grad.data", "print(p.grad.norm())")],
    "one state twice": ["step()\nsd = net.state_dict()\nparts = {'model': sd, 'ema': sd}\nstep();"],
    "a copy": [EMPTY.replace("= net", "= copy.deepcopy(net)")],
    "a second name, saved": [SECOND.replace("HAND_ON", "torch.save(net.state_dict(), io.BytesIO())")],
    "a second name, and the end": [SECOND.replace("HAND_ON", "break")],
    "a second name before": ["best_model = net\nfor _ in range(3):\n    step()"],
    "a model for each rate": [SWEEP],
    "a model for each turn": [RESET],
    "another name": [EMPTY.replace("best_model", "current")],
    "cloned parameters": [EMPTY.replace("= net", "= dict((n, p.detach().clone()) for n, p in net.named_parameters())")],
    "an optimizer's copy": [
        KEPT.replace("adam.state_dict()", "copy.deepcopy(adam.state_dict())")
        + "adam_step()\nadam.load_state_dict(kept['opt'])"
    ],
    "an optimizer's, given back at once": [KEPT + "adam.load_state_dict(kept['opt'])\nadam_step()"],
    "an optimizer's, given to another": [
        KEPT + "adam_step()\ntorch.optim.Adam(net.parameters()).load_state_dict(kept['opt'])"
    ],
    "an optimizer without moments": ["kept = opt.state_dict()\nstep()\nopt.load_state_dict(kept)"],
    "a deep copy": [BEST.replace("net.state_dict()", "copy.deepcopy(net.state_dict())"), "net.load_state_dict(state);"],
    "clones": ["best = {k: v.clone() for k, v in net.state_dict().items()}\nstep()\nnet.load_state_dict(best);"],
    "saved": [SAVED],
    "saved with the rest": [WITH_THE_REST.replace("HAND_ON", "torch.save(parcel, io.BytesIO())")],
    "saved by a function": [
        "def save_parcel(what, file):\n    torch.save(what, file)",
        WITH_THE_REST.replace("HAND_ON", "save_parcel(file=io.BytesIO(), what=parcel)"),
    ],
    "handed to a copy": [TWIN],
    "nothing after it": ["step()\nbest = net.state_dict()"],
    "looked at": ["sd = net.state_dict()\nprint(list(sd))\nstep();"],
    "loaded at once": ["sd = net.state_dict()\nnet.load_state_dict(sd)\nstep();"],
    "a model each": [EACH],
    "of the optimizer": ["best = opt.state_dict()\nstep();"],
    "parameters": ["best = dict(net.named_parameters())\nstep();"],
}


def found(*cells):
    with a_notebook() as notebook:
        for source in (SETUP, *cells):
            notebook.run(source)
        assert all(error is None for error in notebook.errors), notebook.errors
        runs = [run for run in notebook.runs if run is not None]
        return [(f.line, f.severity) for run in runs for f in run.findings if f.slug == "state-dict-alias"]


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    cells, expected = FOUND[name]
    assert found(*cells) == [expected]


@pytest.mark.parametrize("name", QUIET)
def test_silent(name):
    assert found(*QUIET[name]) == []


PLAIN = SETUP.replace("import copy, io", "import io")
DECORATED = """
def fit(model, epochs):
    best = {"loss": 1e9, "weights": None}
    for epoch in range(epochs):
        loss = step()
        if loss < best["loss"]:
            best = {"loss": loss, "weights": model.state_dict()}
    step()
    return best
best = fit(net, 5)
"""
LISTED = """
snapshots = []
for _ in range(4):
    step()
    snapshots.append(net.state_dict())
"""


@pytest.mark.parametrize("cell", [BEST, STOPPER, DECORATED, LISTED])
@pytest.mark.parametrize("first", ["", "import copy", "from copy import deepcopy"])
def test_the_statement_with_a_copy_takes_the_place_of_its_line(cell, first):
    (finding,) = findings_in(f"{first}\n{PLAIN}", cell, slug="state-dict-alias", fails=False)
    *imports, statement = finding.fix.partition("  # line ")[0].splitlines()
    assert imports == ([] if first else ["import copy"])
    assert finding.line is not None
    lines = cell.splitlines()
    old = lines[finding.line - 1]
    lines[finding.line - 1] = old[: len(old) - len(old.lstrip())] + statement
    assert findings_in(f"{first}\n{PLAIN}", "\n".join([*imports, *lines]), slug="state-dict-alias", fails=False) == []


def test_all_of_a_list_are_counted():
    (finding,) = findings_in(SETUP, NAMED_TOO, slug="state-dict-alias", fails=False)
    assert finding.message.startswith("All 3 state dicts in `kept` are no copies")


def test_a_load_of_itself_names_the_line_that_kept():
    load = "step();\nnet.load_state_dict(kept)"
    (finding,) = findings_in(PLAIN, "step()\nkept = net.state_dict()", load, slug="state-dict-alias", fails=False)
    assert finding.fix == "import copy\nkept = copy.deepcopy(net.state_dict())  # line 2 of cell 2"


FOLDS = "for fold in range(3):\n    net.load_state_dict(initial)\n    step()"
BACK = "\n\n\nnet.load_state_dict(state)"


@pytest.mark.parametrize(
    ("cells", "line", "loaded"),
    [
        (["initial = net.state_dict()", FOLDS], 1, 2),
        ([BEST + BACK], 6, 11),
        ([BEST.replace("net.state_dict()", "{k: v for k, v in net.state_dict().items()}") + BACK], 6, 11),
    ],
)
def test_one_finding_for_a_state_that_is_kept_and_loaded_again(cells, line, loaded):
    (finding,) = findings_in(SETUP, *cells, slug="state-dict-alias", fails=False)
    assert (finding.line, finding.severity) == (line, "error")
    assert "changes nothing" in finding.message
    assert ("loaded in line", loaded) in [(one.label, one.value) for one in finding.evidence]
    copied = [cell.replace("net.state_dict()", "copy.deepcopy(net.state_dict())") for cell in cells]
    assert findings_in(SETUP, *copied, slug="state-dict-alias", fails=False) == []


@pytest.mark.parametrize(
    "shallow", ["net.state_dict().copy()", "dict(net.state_dict())", "copy.copy(net.state_dict())"]
)
def test_a_deep_copy_takes_the_place_of_a_shallow_one(shallow):
    with a_notebook() as notebook:
        for source in (SETUP, f"import copy\nbest = {shallow}\nstep()\nnet.load_state_dict(best);"):
            run = notebook.run(source)
    (finding,) = [one for one in run.findings if one.slug == "state-dict-alias"]
    assert finding.fix.partition("  #")[0] == "best = copy.deepcopy(net.state_dict())"


ADAM = f"{SETUP}opt = torch.optim.Adam(net.parameters(), lr=0.01)\n"
BOTH = "start = {'m': net.state_dict(), 'o': opt.state_dict()}"


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        ((BOTH, "step();"), False),
        ((f"{BOTH}\nfor _ in range(3): step()",), False),
        (("step();", BOTH, "step();"), True),
        ((f"step()\n{BOTH}\nstep();",), True),
        (
            (f"other = torch.optim.Adam([x.clone().requires_grad_()])\nother.step()\n{BOTH}\nstep();",),
            False,
        ),
    ],
)
def test_an_optimizer_beside_has_moments_after_its_first_step_only(cells, told):
    found = findings_in(ADAM, *cells, slug="state-dict-alias", fails=False)
    assert ["So does that of `opt` beside it." in one.message for one in found] == [told]


def test_the_fix_is_where_the_loaded_state_was_kept():
    first, best = "step()\nfirst = {'m': net.state_dict()}", "step()\n\nbest = {'m': net.state_dict()}"
    found = findings_in(SETUP, first, best, "step();", "net.load_state_dict(best['m'])", slug="state-dict-alias")
    (loaded,) = [one for one in found if "changes nothing" in one.message]
    assert loaded.fix == "best = {'m': copy.deepcopy(net.state_dict())}  # line 3 of cell 3"


@pytest.mark.parametrize(
    "first", ["from copy import copy", "from copy import copy, error", "def copy(x):\n    return x"]
)
def test_the_fix_leaves_another_copy_alone(first):
    (finding,) = findings_in(PLAIN, first, BEST, slug="state-dict-alias", fails=False)
    *imports, statement = finding.fix.partition("  # line ")[0].splitlines()
    assert (imports, statement) == (
        ["from copy import deepcopy"],
        "best, state = (loss, deepcopy(net.state_dict()))",
    )
