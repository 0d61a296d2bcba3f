"""Schedules that are stepped too early, and calls that look like it."""

import pytest

from tests.cells import a_notebook, findings_in

SETUP = """
import torch
from torch import nn
from torch.optim import lr_scheduler
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=1.0)
sched = lr_scheduler.ExponentialLR(opt, gamma=0.5)
def update(o=None):
    (o or opt).zero_grad()
    net(torch.ones(4, 3)).pow(2).mean().backward()
    (o or opt).step()
"""


def found(*cells):
    with a_notebook() as notebook:
        for source in (SETUP, *cells):
            notebook.run(source)
        assert all(error is None for error in notebook.errors)
        return [
            (line, finding.subject)
            for run in notebook.runs
            for finding in run.findings
            if finding.slug == "scheduler-before-optimizer"
            for line in [finding.line]
        ]


TRAINER = """
class Trainer:
    def __init__(self):
        self.opt = torch.optim.Adam(net.parameters(), lr=0.1)
        self.plan = lr_scheduler.LambdaLR(self.opt, lambda e: 1 / (1 + e))
    def epoch(self):
        self.plan.step()
        for _ in range(3):
            update(self.opt)
    def fit(self):
        for _ in range(4):
            self.epoch()
Trainer().fit()
"""
FOUND = {
    "top of the loop": ("for e in range(4):\n    sched.step()\n    update()", (2, "sched")),
    "between backward and step": (
        (
            "for e in range(4):\n    opt.zero_grad()\n    net(torch.ones(2, 3)).sum().backward()\n    sched.step()\n"
            "    opt.step()"
        ),
        (4, "sched"),
    ),
    "batches inside": ("for e in range(3):\n    sched.step()\n    for b in range(5):\n        update()", (2, "sched")),
    "a trainer": (TRAINER, (7, "self.plan")),
    "in a function": (
        "def fit(optimizer, s):\n    for e in range(3):\n        s.step()\n        update(optimizer)\nfit(opt, sched)",
        (3, "s"),
    ),
}
SCALED = (
    "s = torch.amp.GradScaler('cpu', init_scale=2.0)\nfor e in range(5):\n    opt.zero_grad()\n{}"
    "    s.scale(net(torch.ones(2, 3)).sum()).backward()\n{}    s.step(opt)\n    s.update()\n{}"
)
FOUND["before a scaler"] = SCALED.format("    sched.step()\n", "", ""), (4, "sched")
FOUND["between backward and a scaler"] = SCALED.format("", "    sched.step()\n", ""), (5, "sched")
QUIET = {
    "after": "for e in range(4):\n    update()\n    sched.step()",
    "wound on": "for e in range(3):\n    sched.step()\nfor e in range(3):\n    update()\n    sched.step()",
    "wound on by one": "for e in range(1):\n    sched.step()\nfor e in range(3):\n    update()\n    sched.step()",
    "drawn": "rates = []\nfor e in range(9):\n    rates.append(sched.get_last_lr()[0])\n    sched.step()",
    "told": "for e in range(4):\n    sched.step(e)\n    update()",
    "from zero": (
        "warm = lr_scheduler.LambdaLR(opt, lambda s: s / 10)\nfor i in range(4):\n    warm.step()\n    update()"
    ),
    "plateau": (
        "p = lr_scheduler.ReduceLROnPlateau(opt)\nfor e in range(4):\n    p.step(1.0)\n    update()\n    sched.step()"
    ),
    "scaler": (
        "s = torch.amp.GradScaler('cpu', init_scale=1e38)\nfor e in range(5):\n    opt.zero_grad()\n"
        "    s.scale(net(torch.ones(2, 3)).sum() * 1e9).backward()\n    s.step(opt)\n    s.update()\n    sched.step()"
    ),
    **{
        f"scaler of a wrapper with {inner}": (
            "class Wrap(torch.optim.Optimizer):\n    def __init__(self, o):\n"
            f"        self.inner, self.param_groups, self.state = {inner}, o.param_groups, o.state\n"
            "    def step(self, closure=None): opt.step()\n"
            "s, wrap = torch.amp.GradScaler('cpu', init_scale=1e38), Wrap(opt)\nfor e in range(5):\n"
            "    opt.zero_grad()\n    s.scale(net(torch.ones(2, 3)).sum() * 1e9).backward()\n    s.step(wrap)\n"
            "    s.update(2.0)\n    sched.step()"
        )
        for inner in ("o", "[o]")
    },
    "after a scaler": SCALED.format("", "", "    sched.step()\n"),
    "chained": (
        "both = lr_scheduler.ChainedScheduler([sched, lr_scheduler.StepLR(opt, 2)])\nfor e in range(4):\n    update()\n"
        "    both.step()"
    ),
}


@pytest.mark.parametrize("name", FOUND)
@pytest.mark.filterwarnings("ignore")
def test_found(name):
    source, place = FOUND[name]
    assert found(source) == [place]


@pytest.mark.parametrize("name", QUIET)
@pytest.mark.filterwarnings("ignore")
def test_silent(name):
    assert found(QUIET[name]) == []


def test_the_message_names_the_rates():
    with a_notebook() as notebook:
        notebook.run(SETUP)
        run = notebook.run(FOUND["top of the loop"][0])
    assert "`sched.step()` ran before the first `opt.step()`" in run.findings[0].message
    assert "1, was never used, and training began with 0.5" in run.findings[0].message


WARM_UP = """
warm = lr_scheduler.LambdaLR(opt, lambda s: s / 4)
net(torch.ones(2, 3)).sum().backward()
for turn in range(4):
    opt.zero_grad()
    FIRST
    net(torch.ones(2, 3)).sum().backward()
    BETWEEN
    opt.step()
    LAST
"""


@pytest.mark.parametrize("place", ["BETWEEN", "FIRST", "LAST"])
@pytest.mark.filterwarnings("ignore")
def test_a_warm_up_from_zero_is_a_hint_where_it_comes_between_backward_and_step(place):
    source = WARM_UP.replace(place, "warm.step()")
    for other in ("BETWEEN", "FIRST", "LAST"):
        source = source.replace(other, "pass")
    told = findings_in(SETUP, source, slug="scheduler-before-optimizer", fails=False)
    assert [(one.line, one.severity) for one in told] == [(8, "hint")] * (place == "BETWEEN")


@pytest.mark.parametrize(("factor", "severity"), [(1e-6, "hint"), (0.5, "warning")])
@pytest.mark.filterwarnings("ignore")
def test_a_warm_up_from_next_to_nothing_is_a_hint(factor, severity):
    made = f"lr_scheduler.LinearLR(opt, start_factor={factor}, total_iters=5)"
    source = WARM_UP.replace("lr_scheduler.LambdaLR(opt, lambda s: s / 4)", made).replace("BETWEEN", "warm.step()")
    source = source.replace("FIRST", "pass").replace("LAST", "pass")
    (told,) = findings_in(SETUP, source, slug="scheduler-before-optimizer", fails=False)
    assert told.severity == severity


def test_the_fix_has_the_scaler():
    (fix,) = fixes(FOUND["between backward and a scaler"][0])
    assert fix.splitlines()[:2] == ["s.step(opt)", "s.update()"]


def fixes(*cells):
    with a_notebook() as notebook:
        for source in (SETUP, *cells):
            notebook.run(source)
        return [f.fix for run in notebook.runs for f in run.findings if f.slug == "scheduler-before-optimizer"]


STEPS = "    sched.step()\n    for _ in range(3):\n        net(torch.ones(4, 3)).sum().backward(); opt.step()"


def test_the_fix_says_where_the_line_goes():
    (fix,) = fixes("def epoch():\n" + STEPS, "for _ in range(3): epoch()")
    assert fix == "sched.step()  # move this line behind the loop with opt.step() of line 4, at the end of epoch()"
    (fix,) = fixes("for _ in range(3):\n" + STEPS)
    assert fix.endswith(" of line 4, at the end of each turn of `for _`, line 1")
    (fix,) = fixes("for _ in range(3):\n    sched.step()\n    update()")
    assert fix == "sched.step()  # move this line behind the calls of update(), which makes the steps"
    (fix,) = fixes("for _ in range(3):\n    sched.step()\n    net(torch.ones(4, 3)).sum().backward(); opt.step()")
    assert fix.splitlines()[0] == "opt.step()"


EPOCHS = """\
def fit(epochs):
    for epoch in range(epochs):
        sched.step()
        for _ in range(3):
            opt.zero_grad()
            net(torch.ones(4, 3)).pow(2).mean().backward()
            opt.step()
"""


def test_the_loop_over_epochs_is_named_where_the_line_belongs_to_its_end():
    (finding,) = findings_in(SETUP, EPOCHS, "fit(4)", slug="scheduler-before-optimizer")
    end = "line 7, at the end of each turn of `for epoch`, line 2"
    assert finding.fix == f"sched.step()  # move this line behind the loop with opt.step() of {end}"
    mended = EPOCHS.replace("        sched.step()\n", "") + "        sched.step()\n"
    assert findings_in(SETUP, mended, "fit(4)", slug="scheduler-before-optimizer", fails=False) == []


OTHERS = {
    "warm restarts": "lr.CosineAnnealingWarmRestarts(opt, T_0=10)",
    "sequential": "lr.SequentialLR(opt, [lr.LinearLR(opt, 0.5), lr.ExponentialLR(opt, 0.9)], milestones=[5])",
    "chained": "lr.ChainedScheduler([lr.LinearLR(opt, 0.5), lr.ExponentialLR(opt, 0.9)], opt)",
}
LOOP = """
lr = torch.optim.lr_scheduler
sched = MADE
for _ in range(4):
    FIRST
    update()
    LAST
"""


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.filterwarnings("ignore")
def test_schedules_that_do_not_count_their_calls(name):
    source = LOOP.replace("MADE", OTHERS[name])
    (finding,) = findings_in(SETUP, source.replace("FIRST", "sched.step()").replace("LAST", "pass"), fails=False)
    assert (finding.slug, finding.subject) == ("scheduler-before-optimizer", "sched")
    assert findings_in(SETUP, source.replace("FIRST", "pass").replace("LAST", "sched.step()"), fails=False) == []


@pytest.mark.filterwarnings("ignore")
def test_a_restart_that_is_told_the_epoch_or_goes_on_is_silent():
    source = LOOP.replace("MADE", OTHERS["warm restarts"]).replace("LAST", "pass")
    assert findings_in(SETUP, source.replace("FIRST", "sched.step(_)"), fails=False) == []
    resumed = source.replace("\nfor _", "\nsched.load_state_dict({**sched.state_dict(), 'last_epoch': 5})\nfor _")
    assert findings_in(SETUP, resumed.replace("FIRST", "sched.step()"), fails=False) == []


CALLBACKS = """
class Decay:
    def __init__(self, plan): self.plan = plan
    def begin(self): self.plan.step()
    def end(self): pass
class Trainer:
    def __init__(self, callbacks): self.callbacks = callbacks
    def tell(self, what): [getattr(one, what)() for one in self.callbacks]
    def turn(self): sched.step()
    def fit(self, epochs):
        for epoch in range(epochs):
            self.tell("begin")
            for _ in range(2):
                opt.zero_grad()
                net(torch.ones(4, 3)).pow(2).mean().backward()
                opt.step()
            self.tell("end")
"""
BEHIND = "behind the loop with opt.step() of line 16, at the end of each turn of `for epoch`, line 11"


def test_a_callback_at_the_start_of_an_epoch():
    (finding,) = findings_in(SETUP, CALLBACKS, "Trainer([Decay(sched)]).fit(3)", slug="scheduler-before-optimizer")
    assert finding.fix == f"self.plan.step()  # move this line from begin() to what fit() calls {BEHIND}"
    mended = CALLBACKS.replace("pass", "self.plan.step()").replace("begin(self): self.plan.step()", "begin(self): pass")
    assert findings_in(SETUP, mended, "Trainer([Decay(sched)]).fit(3)", fails=False) == []


def test_a_method_that_is_called_at_the_start_of_an_epoch():
    source = CALLBACKS.replace('self.tell("begin")', "self.turn()").replace('self.tell("end")', "pass")
    (finding,) = findings_in(SETUP, source, "Trainer([]).fit(3)", slug="scheduler-before-optimizer")
    assert finding.fix == f"sched.step()  # move this line from turn() to fit(), {BEHIND}"


def test_a_function_that_is_called_before_the_step_of_the_same_loop():
    turn = "def turn(): sched.step()"
    loop = "for _ in range(3):\n    turn()\n    net(torch.ones(4, 3)).sum().backward()\n    opt.step()"
    (finding,) = findings_in(SETUP, turn, loop, slug="scheduler-before-optimizer")
    assert finding.fix == "sched.step()  # move this line from turn() to the cell, behind opt.step() of line 4"


IN_A_LIST = """
class Model:
    def __init__(self):
        self.opt = torch.optim.Adam(net.parameters(), lr=0.1)
        self.plans = [lr_scheduler.ExponentialLR(self.opt, gamma=0.5)]
    def lower(self):
        for s in self.plans:
            s.step()
    def learn(self):
        update(self.opt)
model = Model()
"""


def test_of_a_schedule_in_a_list_the_list_is_named_and_the_call_moves():
    cell = "for _ in range(4):\n    model.lower()\n    model.learn()"
    (finding,) = findings_in(SETUP, IN_A_LIST, cell, slug="scheduler-before-optimizer")
    assert finding.message.startswith("`s.step()`, of each `s` in `self.plans`, ran before the first")
    assert finding.fix.startswith("s.step()  # move this line behind the calls of update()")
    own = IN_A_LIST.replace("update(self.opt)", "net(torch.ones(4, 3)).mean().backward(); self.opt.step()")
    (finding,) = findings_in(SETUP, own, cell, slug="scheduler-before-optimizer")
    assert finding.fix.startswith("model.lower()  # move this line behind the calls of learn()")
