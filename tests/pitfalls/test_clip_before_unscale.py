"""Clips of scaled gradients, and clips that only look like it."""

import pytest

from tests.cells import a_notebook, findings_in

SETUP = """
import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_, clip_grad_value_
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
def loss():
    return net(torch.ones(4, 3)).pow(2).mean()
"""
LOOP = """
for i in range(4):
    opt.zero_grad()
    scaler.scale(loss()).backward()
    {middle}
    scaler.step(opt)
    scaler.update()
"""
TRAINER = """
class Trainer:
    def __init__(self):
        self.scaler = torch.amp.GradScaler("cpu")
        self.optimizer = torch.optim.AdamW(net.parameters())
    def fit(self):
        for i in range(3):
            self.optimizer.zero_grad()
            self.scaler.scale(loss()).backward()
            clip_grad_value_(net.parameters(), 0.5)
            self.scaler.step(self.optimizer)
            self.scaler.update()
Trainer().fit()
"""


def findings(*cells):
    with a_notebook() as notebook:
        for cell in (SETUP, *cells):
            notebook.run(cell)
        assert all(error is None for error in notebook.errors)
        return [f for run in notebook.runs for f in run.findings if f.slug == "clip-before-unscale"]


FOUND = {
    "by norm": "clip_grad_norm_(net.parameters(), 1.0)",
    "by keyword": "nn.utils.clip_grad_norm_(list(net.parameters()), max_norm=5)",
    "by value": "torch.nn.utils.clip_grad_value_(net.parameters(), clip_value=0.1)",
    "unscaled too late": "clip_grad_norm_(net.parameters(), 1.0); scaler.unscale_(opt)",
    "by value, unscaled too late": "clip_grad_value_(net.parameters(), 0.5); scaler.unscale_(opt); norm = 3",
}
QUIET = {
    "unscaled": "scaler.unscale_(opt); clip_grad_norm_(net.parameters(), 1.0)",
    "limit scaled": "clip_grad_norm_(net.parameters(), 1.0 * scaler.get_scale())",
    "measured": "clip_grad_norm_(net.parameters(), float('inf'))",
    "nothing": "pass",
    "clipped twice": (
        "scaler.unscale_(opt); clip_grad_value_(net.parameters(), 5); clip_grad_norm_(net.parameters(), 1.0)"
    ),
    "limit scaled, unscaled later": (
        "clip_grad_norm_(net.parameters(), 1.0 * scaler.get_scale()); scaler.unscale_(opt)"
    ),
    "another model, unscaled later": (
        "critic = nn.Linear(3, 1); critic(torch.ones(1, 3)).sum().backward(); "
        "clip_grad_norm_(critic.parameters(), 1.0); scaler.unscale_(opt)"
    ),
    "another model": (
        "critic = nn.Linear(3, 1); critic(torch.ones(1, 3)).sum().backward(); clip_grad_norm_(critic.parameters(), 1.0)"
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    (finding,) = findings(LOOP.format(middle=FOUND[name]))
    assert (finding.line, finding.subject, finding.severity) == (5, "opt", "error")
    assert "unscale_" in finding.message
    assert ("takes the place of the later unscale_()" in finding.fix) is ("too late" in name)


def test_found_in_a_trainer():
    (finding,) = findings(TRAINER)
    assert finding.line == 10
    assert "self.scaler.unscale_(self.optimizer)" in finding.fix


@pytest.mark.parametrize("name", QUIET)
def test_silent(name):
    assert findings(LOOP.format(middle=QUIET[name])) == []


def test_silent_without_an_active_scaler():
    off = "scaler = torch.amp.GradScaler('cpu', enabled=False)"
    assert findings(off, LOOP.format(middle=FOUND["by norm"])) == []


def test_silent_for_a_part_in_full_precision():
    plain = (
        "for i in range(3):\n    opt.zero_grad()\n    loss().backward()\n    clip_grad_norm_(net.parameters(), 1.0)\n"
        "    opt.step()\n"
    )
    assert findings(plain + LOOP.format(middle="pass")) == []


def test_the_fix_is_for_the_place_of_its_line():
    (finding,) = findings(TRAINER.replace("Trainer().fit()", "trainer = Trainer()\ntrainer.fit()"))
    assert finding.subject == "trainer.optimizer"
    assert finding.fix.startswith("self.scaler.unscale_(self.optimizer)")


CALLBACKS = """
class Engine:
    def __init__(self): self.scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    def step(self, optimizer):
        self.scaler.step(optimizer); self.scaler.update()
class Callback:
    def __init__(self, clip): self.clip = clip
    def end(self, runner):
        if self.clip is not None:
            self.clip(runner.net.parameters())
        else:
            clip_grad_norm_(runner.net.parameters(), 1.0)
        runner.engine.step(runner.optimizer)
class Runner:
    def __init__(self): self.net, self.engine, self.optimizer = net, Engine(), opt
runner = Runner()
"""
RUN = """
for _ in range(3):
    runner.optimizer.zero_grad()
    runner.engine.scaler.scale(loss()).backward()
    callback.end(runner)
"""


@pytest.mark.parametrize(
    ("clip", "line", "where"),
    [("None", 12, ""), ("lambda ps: clip_grad_norm_(ps, 1.0)", 1, ", which line 10 of cell 2 leads to")],
)
def test_the_fix_is_in_the_names_of_the_clip(clip, line, where):
    made = f"callback = Callback({clip})"
    (finding,) = findings(CALLBACKS, made, RUN)
    assert finding.line == line
    assert finding.fix == f"runner.engine.scaler.unscale_(runner.optimizer)  # right before the clip{where}"
    mended = CALLBACKS.replace("        if self.clip", f"        {finding.fix}\n        if self.clip")
    assert findings(mended, made, RUN) == []


BY_HAND = """\
import torch
from torch import nn
net, other = nn.Linear(3, 2), nn.Linear(2, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12, enabled={})"""
TURNS = """\
for _ in range(4):
    opt.zero_grad()
    scaler.scale(other(net(torch.ones(5, 3))).square().mean()).backward()
    {}
    scaler.step(opt)
    scaler.update()"""


@pytest.mark.parametrize(
    "line",
    [
        "for p in net.parameters(): p.grad.data.clamp_(-1, 1)",
        "for n, p in net.named_parameters(): p.grad = p.grad.clip(min=-1.0, max=1.0)",
        "[p.grad.clamp_(-0.1, 0.1) for p in net.parameters() if p.grad is not None]",
        "for p in filter(lambda p: p.requires_grad, net.parameters()): torch.clamp_(p.grad, -1, 1)",
        "for p in opt.param_groups[0]['params']: p.grad.data = torch.clamp(p.grad.data, -1, 1)",
        "net.weight.grad.clamp_(-1, 1)",
    ],
)
def test_a_clip_by_hand(line):
    (finding,) = findings_in(BY_HAND.format(True), TURNS.format(line), slug="clip-before-unscale")
    assert (finding.line, finding.subject) == (4, "opt")
    assert "the loss scale of 4,096" in finding.message


def test_a_clip_by_hand_of_what_has_a_gradient():
    line = "for p in net.parameters():\n        if p.grad is not None:\n            p.grad.clamp_(-1, 1)"
    (finding,) = findings_in(BY_HAND.format(True), TURNS.format(line), slug="clip-before-unscale")
    assert finding.line == 6


@pytest.mark.parametrize(
    ("enabled", "line"),
    [
        (False, "for p in net.parameters(): p.grad.clamp_(-1, 1)"),
        (True, "scaler.unscale_(opt); [p.grad.clamp_(-1, 1) for p in net.parameters()]"),
        (True, "for p in net.parameters(): p.grad.clamp_(-65504, 65504)"),
        (True, "for p in other.parameters(): p.grad.clamp_(-1e-6, 1e-6)"),
        (True, "if False: net.weight.grad.clamp_(-1, 1)"),
        (True, "[p.grad.clamp_(-1, 1) for p in net.parameters()] if False else None"),
        (True, "False and [p.grad.clamp_(-1, 1) for p in net.parameters()]"),
        (True, "for p in []: p.grad.clamp_(-1, 1)"),
        (True, "shown = [p.grad.clamp(-1, 1) for p in net.parameters()]"),
        (True, "for p in other.parameters(): p.grad = torch.clamp(p.grad, -1, 1)"),
        (True, "s = 4096\n    for p in net.parameters(): p.grad.div_(s).clamp_(-1, 1); p.grad.mul_(s)"),
        (True, "s = 4096\n    for p in net.parameters(): p.grad.div_(s); p.grad.clamp_(-1, 1); p.grad.mul_(s)"),
    ],
)
def test_clips_by_hand_that_are_right(enabled, line):
    assert not findings_in(BY_HAND.format(enabled), TURNS.format(line), slug="clip-before-unscale")


SMALL = TURNS.replace(".mean())", ".mean() * 1e-5)")


@pytest.mark.parametrize(
    "line",
    [
        "for p in net.parameters(): p.grad.clamp_(-1, 1)",
        "s = 4096\n    for p in net.parameters(): p.grad.div_(s); p.grad.clamp_(-1, 1); p.grad.mul_(s)",
        "scaler.unscale_(critic); [p.grad.clamp_(-1, 1) for p in other.parameters()]; scaler.step(critic)",
    ],
)
def test_small_gradients_prove_no_clip(line):
    setup = BY_HAND.format(True) + "\ncritic = torch.optim.SGD(other.parameters(), lr=0.1)"
    assert not findings_in(setup, SMALL.format(line), slug="clip-before-unscale", fails=False)


def test_gradients_without_elements_are_passed_over():
    setup = BY_HAND.format(True) + "\nempty = nn.Parameter(torch.zeros(0, 3))\nopt.add_param_group({'params': [empty]})"
    line = "empty.grad = torch.zeros(0, 3)\n    for p in [empty, *net.parameters()]: p.grad.clamp_(-1, 1)"
    (finding,) = findings_in(setup, TURNS.format(line), slug="clip-before-unscale")
    assert finding.line == 5


@pytest.mark.parametrize(
    ("clip", "words"),
    [
        ("clip_grad_norm_(net.parameters(), 1.0)", "first, then clip"),
        ("for one in (net,):\n        clip_grad_norm_(one.parameters(), 1.0)", "before the loop that clips"),
    ],
)
@pytest.mark.parametrize(
    "step", ["for one_opt in opts:\n        scaler.step(one_opt)", "[scaler.step(o) for o in opts]"]
)
def test_a_name_that_a_later_loop_gives_is_given_by_the_fix(clip, words, step):
    code = "opts = [opt]\ndef finish():\n    {}\n    {}\n"
    (finding,) = findings(code.format(clip, step) + LOOP.format(middle="finish()").replace("scaler.step(opt)", "pass"))
    name = "o" if step.startswith("[") else "one_opt"
    assert finding.fix.startswith(f"for {name} in opts:\n    scaler.unscale_({name})  # ")
    assert words in finding.fix
