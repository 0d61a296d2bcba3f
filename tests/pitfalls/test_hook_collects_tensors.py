"""Hooks that pile up tensors, and those that only look."""

import pytest

from tests.cells import a_notebook

SLUG = "hook-collects-tensors"
START = """\
import collections, functools
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
batches = torch.randn(6, 128, 64)
acts = []
"""
TRAIN = """\
for batch in batches:
    optimizer.zero_grad()
    net(batch).square().mean().backward()
    optimizer.step()"""
EVALUATE = """\
with torch.no_grad():
    total = sum(net(batch).sum().item() for batch in batches)"""


def found(*cells):
    with a_notebook() as notebook:
        for code in (START, *cells):
            notebook.run(code)
        assert not [error for error in notebook.errors if error]
        return [(index, f) for index, run in enumerate(notebook.runs) if run for f in run.findings if f.slug == SLUG]


FACTORY = """\
class Watch:
    def __init__(self, module):
        self.kept = {}
        self.handles = [m.register_forward_hook(self.make(n)) for n, m in module.named_children()]
    def make(self, name):
        def hook(module, inputs, output):
            self.kept.setdefault(name, []).append(output.detach().clone())
        return hook
watch = Watch(net)"""


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("def keep(m, i, o):\n    acts.append(o.detach().clone())\nh = net[0].register_forward_hook(keep)", "`acts`"),
        ("h = net[0].register_forward_hook(lambda m, i, o: acts.append((i[0], o.detach().clone())))", "a lambda"),
        (
            (
                "def keep(kept, m, i, o):\n    kept += [o.detach()]\n"
                "h = net[1].register_forward_hook(functools.partial(keep, acts))"
            ),
            "`keep`",
        ),
        ("h = net[1].register_forward_pre_hook(lambda m, i: acts.append(i[0].detach().clone()))", "`acts`"),
        ("h = net[2].weight.register_hook(lambda g: acts.append(g.repeat(256, 1)))", "net[2].weight"),
        (
            "def keep(m, gi, go):\n    acts.append(go[0].clone())\nh = net[0].register_full_backward_hook(keep)",
            "`keep`",
        ),
        (FACTORY, "watch.kept"),
        (
            (
                "class Keeper:\n    def __init__(self):\n        self.seen = collections.deque()\n"
                "    def __call__(self, m, i, o):\n        self.seen.append(o.detach())\n"
                "keeper = Keeper()\nh = net[1].register_forward_hook(keeper)"
            ),
            "keeper.seen",
        ),
        (
            (
                "def attach(layer):\n    store = []\n    def note(m, i, o):\n        store.append(o.detach())\n"
                "    return layer.register_forward_hook(note)\nh = attach(net[1])"
            ),
            "nothing but the hook",
        ),
        (
            "steps = {}\ndef keep(m, i, o):\n    steps[len(steps)] = o.detach()\nnet[1].register_forward_hook(keep);",
            "`steps`",
        ),
    ],
)
def test_piles_of_training(code, name):
    ((cell, finding),) = found(code, TRAIN)
    assert (cell, finding.line, finding.severity) == (2, 3, "warning")
    assert name in finding.message
    assert "MB" in finding.message


def test_the_handle_is_named():
    ((_, finding),) = found("tap = net[1].register_forward_hook(lambda m, i, o: acts.append(o.detach()))", TRAIN)
    assert finding.fix.startswith("tap.remove()")


def test_training_in_a_function_of_an_earlier_cell():
    function = "def fit():\n" + "\n".join("    " + line for line in TRAIN.splitlines())
    hook = "net[1].register_forward_hook(lambda m, i, o: acts.append(o.detach()))"
    ((cell, finding),) = found(function, hook + "\nfit()")
    assert (cell, finding.line) == (2, 4)


def test_a_hook_left_on_is_a_hint():
    hook = "h = net[1].register_forward_hook(lambda m, i, o: acts.append(o))"
    collect = hook + "\n" + EVALUATE + "\nfeatures = torch.cat(acts)"
    ((cell, finding),) = found(collect, EVALUATE, EVALUATE)
    assert (cell, finding.severity, finding.line) == (2, "hint", 2)


def test_what_only_the_hook_knows_is_found_without_training():
    code = """\
def spy(model):
    store = {"out": []}
    model[1].register_forward_hook(lambda m, i, o: store["out"].append(o))
spy(net)"""
    ((cell, finding),) = found(code, EVALUATE)
    assert (cell, finding.severity) == (2, "warning")
    assert "its `store`" in finding.message


@pytest.mark.parametrize(
    "cells",
    [
        ["kept = {}\ndef keep(m, i, o):\n    kept['a'] = o.detach()\nnet[1].register_forward_hook(keep);", TRAIN],
        ["h = net[1].register_forward_hook(lambda m, i, o: acts.append(o.detach().mean()))", TRAIN],
        [
            "h = net[1].register_forward_hook(lambda m, i, o: acts.append(o.detach()))\n" + EVALUATE,
            "h.remove()\nfeatures = torch.cat(acts)",
            TRAIN,
        ],
        ["h = net[1].register_forward_hook(lambda m, i, o: acts.append(o))\n" + EVALUATE + "\nf = torch.cat(acts)"],
        [
            (
                "acts = collections.deque(maxlen=5)\n"
                "h = net[1].register_forward_hook(lambda m, i, o: acts.append(o.detach()))"
            ),
            TRAIN,
        ],
        [
            "def keep(m, i, o):\n    acts.append(o.detach())\n    del acts[:-2]\nnet[1].register_forward_hook(keep);",
            TRAIN,
        ],
        [
            "h = net[1].register_forward_hook(lambda m, i, o: acts.append(o))",
            TRAIN.replace("    optimizer.step()", "    optimizer.step()\n    acts.clear()"),
        ],
        [
            "losses = []\ndef keep(m, i, o):\n    m.count = len(losses)\nnet[1].register_forward_hook(keep);",
            TRAIN + "\n    losses.append(torch.zeros(64, 1024))",
        ],
        [
            "h = net[1].register_forward_hook(lambda m, i, o: acts.append(o))\n" + EVALUATE,
            "test = []\nacts.clear()\n" + EVALUATE + "\ntest = torch.cat(acts)",
        ],
        [
            "h = net[1].register_forward_hook(lambda m, i, o: acts.append(o.detach()))",
            TRAIN + "\ncourse = torch.stack(acts)",
        ],
        [
            (
                "class Tap:\n    def __init__(self, m):\n        m.register_forward_hook(self.keep)\n"
                "    def keep(self, m, i, o):\n        self.out = o\ntap = Tap(net[1])"
            ),
            TRAIN,
        ],
        [
            "def keep(m, i, o):\n    if not m.training:\n        acts.append(o)\nnet[1].register_forward_hook(keep);",
            TRAIN + "\nnet.eval()\n" + EVALUATE + "\nnet.train();",
        ],
        [
            (
                "outs = {}\ndef make(n):\n    def hook(m, i, o):\n        outs[n] = (i, o.detach())\n    return hook\n"
                "hs = [m.register_forward_hook(make(n)) for n, m in net.named_children()]"
            ),
            TRAIN,
        ],
        [
            (
                "def spy(model):\n    store = []\n    model[1].register_forward_hook(lambda m, i, o: store.append(o))\n"
                "    return lambda: store\nread = spy(net)"
            ),
            EVALUATE,
        ],
    ],
)
def test_hooks_that_keep_in_bounds_or_what_is_used(cells):
    assert found(*cells) == []


TAP = """\
class Tap:
    def __init__(self, layer):
        self.acts = []
        self.handle = layer.register_forward_hook(self.keep)
    def keep(self, m, i, o):
        self.acts.append(o.detach())
tap = Tap(net[1])"""
STEPS = "steps = {}\ndef keep(m, i, o):\n    steps[len(steps)] = o.detach()\nh = net[1].register_forward_hook(keep)"
APPENDS = "net[1].register_forward_hook(lambda m, i, o: acts.append(o.detach()))"


@pytest.mark.parametrize(
    ("kept", "fix"),
    [
        (TAP, "tap.handle.remove()  # as soon"),
        (f"handles = [{APPENDS}]", "handles[0].remove()  # as soon"),
        (STEPS, "h.remove()  # or keep one per layer: steps[name]"),
        (f"{APPENDS};", "handle.remove()  # as soon"),
    ],
)
def test_the_fix_names_the_handle_where_it_is_kept(kept, fix):
    ((_, finding),) = found(kept, TRAIN)
    assert finding.fix.startswith(fix)
    assert ("where handle is what" in finding.fix) == fix.startswith("handle.")


SPY = """\
class Spy:
    def __init__(self, model, layers):
        self.store = {}
        for name in layers:
            model.get_submodule(name).register_forward_hook(self.make(name))
    def make(self, name):
        def hook(m, i, o):
            self.store.setdefault(name, []).append(o)
        return hook
def look(model):
    spy = Spy(model, ["0", "1"])
    with torch.no_grad():
        for batch in batches: model(batch)
    return len(spy.store)"""


def test_hooks_of_one_function_are_one_finding_and_the_line_that_registers_them_is_given():
    first, second = found(SPY, "look(net)", "look(net)")
    assert (first[0], second[0]) == (2, 3)
    fix = second[1].fix.partition("  # ")[0]
    assert fix == "handles = [model.get_submodule(name).register_forward_hook(self.make(name)) for name in layers]"
    loop = "for name in layers:\n            model.get_submodule(name).register_forward_hook(self.make(name))"
    mended = SPY.replace(loop, f"self.{fix}").replace(
        "    return len", "    for h in spy.handles: h.remove()\n    return len"
    )
    assert found(mended, "look(net)", "look(net)") == []


def test_a_single_hook_that_is_registered_in_a_function():
    code = """\
def spy(model):
    store = []
    model[1].register_forward_hook(lambda m, i, o: store.append(o))
spy(net)"""
    ((_, finding),) = found(code, EVALUATE)
    registered = "model[1].register_forward_hook(lambda m, i, o: store.append(o))"
    assert finding.fix == f"handle = {registered}  # line 3 of cell 2; when it is done: handle.remove()"


LAST = """\
class Tap:
    def __init__(self):
        self.kept = {{}}
    def look(self, module, args, output):
        self.kept["in"], self.kept["out"] = args[0], {0}
{1}
"""
TAKE = "{}net[0].register_forward_hook(Tap().look)\n"
RUN_ONCE = "with torch.no_grad():\n    total = net(torch.randn(1024, 64)).sum()"
CLOSURE = """\
def tap(layer):
    kept = {}
    def look(module, args, output):
        kept["out"] = output.detach()
    layer.register_forward_hook(look)
tap(net[0])"""


@pytest.mark.parametrize("code", [LAST.format("output", "") + TAKE.format(""), CLOSURE])
def test_what_nobody_can_read_is_told_once(code):
    ((index, finding),) = found(code, RUN_ONCE, RUN_ONCE)
    assert (index, finding.severity, finding.subject) == (2, "hint", "net[0]")
    assert finding.message.endswith("no variable leads to them.")
    assert "remove()" in finding.fix


@pytest.mark.parametrize(
    "code",
    [
        LAST.format("output", "") + "tap = Tap()\nnet[0].register_forward_hook(tap.look)",
        LAST.format("output", "    def last(self):\n        return self.kept") + TAKE.format(""),
        LAST.format("output", "    def last(self):\n        return (lambda: self.kept)()") + TAKE.format(""),
        LAST.format("output", "    @property\n    def last(self):\n        return self.kept") + TAKE.format(""),
        LAST.format("output", "    @staticmethod\n    def last(one):\n        return one.kept") + TAKE.format(""),
        CLOSURE.replace("(look)", "(look)\n    layer.read = lambda: kept"),
        CLOSURE.replace(
            "    layer.",
            "    def read(module, args, output):\n        print(len(kept))\n"
            "    layer.register_forward_hook(read)\n    layer.",
        ),
        CLOSURE.replace("(look)", "(look)\n    total = layer(torch.randn(1024, 64))\n    print(locals().keys())"),
        LAST.format("output - self.kept.get('out', 0)", "") + TAKE.format(""),
        LAST.format("output.mean()", "").replace("args[0]", "None") + TAKE.format(""),
        CLOSURE.replace("(look)", "(look)\n    return lambda: kept").replace("tap(net", "read = tap(net"),
        CLOSURE.replace("    kept =", "    global kept\n    kept ="),
    ],
)
def test_what_can_be_read_is_silent(code):
    assert found(code, RUN_ONCE, RUN_ONCE) == []
