"""Hooks that a layer has once or more."""

import pytest

from tests.cells import findings_in

SETUP = """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
x, seen = torch.randn(2, 4), []
"""
ATTACH = """
def note(layer, args, output):
    seen.append(tuple(output.shape))
for layer in net.modules():
    layer.register_forward_hook(note)
"""
RECORDER = """
class Recorder:
    def __init__(self, model):
        self.shapes = []
        for layer in model:
            layer.register_forward_hook(self.note)
    def note(self, layer, args, output):
        self.shapes.append(output.shape)
recorder = Recorder(net)
"""
FACTORY = """
def keep(name):
    return lambda layer, args, output: seen.append(name)
for name, layer in net.named_children():
    layer.register_forward_hook(keep(name))
"""
PARTIAL = """
import functools
def keep(name, layer, args, output):
    seen.append(name)
for name, layer in net.named_children():
    layer.register_forward_hook(functools.partial(keep, name))
"""
STEERED = """
import functools
def steer(by, layer, args, output):
    return output + by
for vector in torch.randn(3, 8):
    net[0].register_forward_hook(functools.partial(steer, vector));
"""
TWO = """
net[0].register_forward_hook(lambda m, a, o: None)
net[0].register_forward_hook(lambda m, a, o: seen.append(1));
"""
EACH_EPOCH = """
import functools
def compare(reference, layer, args, output):
    seen.append((output.detach() - reference).mean().item())
for epoch in range(4):
    net[0].register_forward_hook(functools.partial(compare, torch.randn(2, 8)))
    net(x).sum().backward()
"""
OBJECTS = RECORDER.replace("recorder = Recorder(net)", "")
HEATMAP = """
def heatmap(model, layer, batch):
    store = {}
    def save(module, inputs, output):
        store["out"] = output.detach()
    layer.register_forward_hook(save)
    model(batch)
    return store["out"]
"""
REMOVED = HEATMAP.replace("    layer.reg", "    handle = layer.reg").replace(
    "    return", "    handle.remove()\n    return"
)
EXTRACTOR = """
class Extractor:
    def __init__(self, model, layer):
        self.model = model
        layer.register_forward_hook(self.save)
    def save(self, module, inputs, output):
        self.out = output.detach()
    def __call__(self, batch):
        self.model(batch)
        return self.out
"""
MASKED = """
def train(model):
    for _ in range(4):
        mask = torch.rand(8, 4)
        model[0].weight.register_hook(lambda grad, mask=mask: grad * mask)
        model(x).sum().backward()
"""
ACCUMULATED = """
def note(weight):
    seen.append(weight.grad.norm())
for weight in net.parameters():
    weight.register_post_accumulate_grad_hook(note)
"""
FOUND = {
    "on a weight by a function": ([MASKED, "train(net)"], 1),
    "on weights, run again": ([ACCUMULATED, ACCUMULATED], 5),
    "by a function in a loop": (
        [HEATMAP, "maps = []\nfor k in range(5):\n    maps.append(heatmap(net, net[0], x))"],
        3,
    ),
    "by a function in a comprehension": ([HEATMAP, "maps = [heatmap(net, net[0], x) for _ in range(3)]"], 1),
    "by a function, line after line": ([HEATMAP, "a = heatmap(net, net[0], x)\nb = heatmap(net, net[0], x)"], 1),
    "by a function, cell after cell": ([HEATMAP, "a = heatmap(net, net[0], x)", "b = heatmap(net, net[0], x * 2)"], 1),
    "by objects in a loop": ([EXTRACTOR, "for _ in range(4):\n    made = Extractor(net, net[0])\n    made(x)"], 2),
    "in each epoch": ([EACH_EPOCH], 6),
    "in each epoch by a class": ([OBJECTS, "for epoch in range(4):\n    recorder = Recorder(net)\n    net(x);"], 2),
    "run again": ([ATTACH, ATTACH], 5),
    "run again with objects": ([RECORDER, RECORDER], 6),
    "run again with a factory": ([FACTORY, FACTORY], 5),
    "run again with a partial": ([PARTIAL, PARTIAL], 6),
    "in a loop": (["note = lambda m, a, o: None\nfor _ in range(3):\n    net[0].register_forward_hook(note)"], 3),
    "before": (
        [ATTACH.replace("forward_hook", "forward_pre_hook").replace("(layer, args, output)", "(m, output)")] * 2,
        5,
    ),
}
QUIET = {
    "on a weight, removed": [MASKED.replace("model[0].w", "h = model[0].w") + "        h.remove()\n", "train(net)"],
    "on each weight once": [ACCUMULATED, "net(x).sum().backward()"],
    "on a weight, a mask each": [
        "for mask in torch.rand(3, 8, 4):\n    net[0].weight.register_hook(lambda g, m=mask: g * m);"
    ],
    "by a function that removes": [REMOVED, "for _ in range(4):\n    heatmap(net, net[0], x)"],
    "by a function on a layer each": [HEATMAP, "for k in range(3):\n    heatmap(net, net[k], x)"],
    "in each epoch, removed": [
        EACH_EPOCH.replace("    net[0]", "    h = net[0]").replace("backward()", "backward()\n    h.remove()")
    ],
    "in each epoch, removed but the first": [
        EACH_EPOCH.replace("    net[0]", "    h = net[0]").replace("backward()", "backward()\n    epoch and h.remove()")
    ],
    "a layer in each turn": [EACH_EPOCH.replace("range(4)", "(0, 2)").replace("[0]", "[epoch]").replace("8", "1")],
    "once": [ATTACH, "net(x)", "net(x)"],
    "removed": [ATTACH.replace("    layer.reg", "    h = layer.reg") + "    h.remove()"] * 2,
    "a new model": [SETUP + ATTACH] * 2,
    "a name each": [FACTORY, "net[0].register_forward_hook(keep('other'));"],
    "a name each behind a partial": [PARTIAL, "net[0].register_forward_hook(functools.partial(keep, 'other'));"],
    "a vector each behind a partial": [STEERED],
    "two kinds": [TWO],
    "of torch": ["nn.utils.parametrizations.spectral_norm(net[0])\nnn.utils.parametrizations.weight_norm(net[2]);"],
    "nobody says it": ["y = net(x)"],
}


def found(*cells):
    return [(one.line, one.severity) for one in findings_in(SETUP, *cells, slug="hooks-registered-twice", fails=False)]


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    cells, line = FOUND[name]
    assert found(*cells) == [(line, "warning")]


@pytest.mark.parametrize("name", QUIET)
def test_silent(name):
    assert found(*QUIET[name]) == []


def test_each_run_that_adds_one_is_told():
    assert len(found(ATTACH, ATTACH, "net(x)", ATTACH)) == 2


def test_what_a_function_adds_is_told_with_its_line_and_the_layer():
    cell = "for _ in range(5):\n    heatmap(net, net[0], x)"
    (one,) = findings_in(SETUP, HEATMAP, cell, slug="hooks-registered-twice", fails=False)
    assert one.message.startswith("`net[0]` has the hook `save` 5 times: each call of `heatmap` adds it once more")
    assert "line 6 of cell 2" in one.message
    assert one.fix.startswith("net[0]._forward_hooks.clear()")
    assert "handle = layer.register_forward_hook(save)" in one.fix
    assert findings_in(SETUP, HEATMAP, cell, one.fix, slug="hooks-registered-twice", fails=False) == [one]


@pytest.mark.parametrize(("cells", "fix"), [([MASKED, "train(net)"], "net[0].weight._backward_hooks.clear()")])
def test_hooks_of_weights_are_taken_off(cells, fix):
    (one,) = findings_in(SETUP, *cells, slug="hooks-registered-twice", fails=False)
    assert one.fix.startswith(fix)
    again = f"{one.fix}\nprint(len(net[0].weight._backward_hooks))"
    assert len(findings_in(SETUP, *cells, again, "train(net)", slug="hooks-registered-twice", fails=False)) == 2


@pytest.mark.parametrize("off", ["_post_accumulate_grad_hooks"])
def test_hooks_of_all_weights_are_taken_off(off):
    (one,) = findings_in(SETUP, ACCUMULATED, ACCUMULATED, slug="hooks-registered-twice", fails=False)
    assert one.fix.splitlines()[1].strip().startswith(f"(weight.{off} or {{}}).clear()")
    empty = f"assert not any(w.{off} for w in net.parameters())"
    assert len(findings_in(SETUP, ACCUMULATED, ACCUMULATED, one.fix, empty, fails=False)) == 1


HELD = """
class Injector:
    def __init__(self, model):
        self.reference = torch.randn(500, 500)
        for layer in model:
            layer.register_forward_hook(self.note)
    def note(self, layer, args, output):
        return output
{by}
for _ in range(4):
    net(x)
    fi = Injector(net)
"""


@pytest.mark.parametrize(
    ("by", "last", "told"), [("", "del fi", "3.81 MB"), ("", "", "2.86 MB"), ("kept = []", "@", "")]
)
def test_what_only_the_hooks_keep_alive_is_told(by, last, told):
    cell = HELD.format(by=by) + (last if last != "@" else "    kept.append(fi.reference)")
    (finding,) = findings_in(SETUP, cell, slug="hooks-registered-twice", fails=False)
    assert finding.message.endswith(
        f"; it runs as often in each pass, and keeps {told} alive that no variable leads to."
        if told
        else "; it runs as often in each pass."
    )


def test_beside_a_traced_module():
    cell = f"{ATTACH}traced = torch.jit.trace(net, x)\nnet[0].register_forward_hook(note);"
    assert len(findings_in(SETUP, cell, slug="hooks-registered-twice")) == 1
