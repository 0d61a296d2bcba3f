"""Trees and lists both ways that a function made and left, and those that something holds or that are no circle."""

import pytest

from tests.cells import findings_in

SETUP = """
import gc, weakref
import torch
"""
SEGMENTS = """
class Segment:
    def __init__(self, frames, prev=None):
        self.frames, self.prev, self.next = frames, prev, None
        if prev is not None:
            prev.next = self
def play(n):
    last = None
    for _ in range(n):
        last = Segment(torch.zeros(300_000), last)
    return n
"""
TREE = """
class Node:
    def __init__(self, points, parent=None):
        self.points, self.parent, self.children = points, parent, []
    def split(self):
        for part in self.points.chunk(2):
            self.children.append(Node(part.clone(), parent=self))
def build():
    root = Node(torch.zeros(300_000, 2))
    root.split()
    return len(root.children)
def rounds(n):
    return [build() for _ in range(n)]
"""
LISTENER = """
class Bus:
    def __init__(self):
        self.listeners = []
class Recorder:
    def __init__(self, bus):
        self.bus, self.log = bus, torch.zeros(600_000)
        bus.listeners.append(self)
def record():
    return Recorder(Bus()).log.mean().item()
"""
AWAITED = """
class Awaited:
    def __init__(self, rows):
        self.rows = rows
        self.calls = {calls}
    def turned(self, rows):
        return rows.flip(0)
    def wait(self):
        return [call(self.rows) for call in self.calls][-1]
def lookup():
    return Awaited(torch.zeros(600_000)).wait().mean().item()
"""
CALLBACK = """
class History:
    def follow(self, trainer):
        self.trainer = {followed}
class Trainer:
    def __init__(self):
        self.rows, self.callbacks = torch.zeros(300_000), {"all": History()}
        {line}
def folds():
    trainer = Trainer()
    return [len(Trainer().callbacks) for _ in range(3)]
"""


NET = """
class Net(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = torch.nn.Linear(600, width)
        self.shown = {shown}
def trial(width):
    net = Net(width)
    return net.body.weight.numel()
"""
BY_LAMBDA = NET.replace("{shown}", "lambda: self.body")
DELETED = "for width in (1000, 1200):\n    net = Net(width)\n    del net"


def linked_by(line, followed="trainer"):
    return CALLBACK.replace("{line}", line).replace("{followed}", followed)


pytestmark = pytest.mark.usefixtures("no_collection_by_chance")


@pytest.mark.parametrize(
    ("code", "use", "kind", "line"),
    [
        (SEGMENTS, "scores = [play(4) for _ in range(2)]", "Segment", 1),
        (TREE, "n = 3\nprint(rounds(n))", "Node", 2),
        (LISTENER, "record()", "Recorder", 1),
        (AWAITED.replace("{calls}", "[self.turned]"), "means = [lookup() for _ in range(3)]", "Awaited", 1),
        (AWAITED.replace("{calls}", "[lambda rows: self.turned(rows)]"), "lookup()", "Awaited", 1),
        (linked_by("self.callbacks['all'].trainer = self"), "folds()", "Trainer", 1),
        (linked_by("setattr(self.callbacks['all'], 'trainer', self)"), "folds()", "Trainer", 1),
        (linked_by("self.callbacks['all'].follow(self)").replace("follow(", "set_trainer("), "folds()", "Trainer", 1),
        (BY_LAMBDA, DELETED, "Net", 2),
        (BY_LAMBDA, "sizes = [trial(width) for width in (1000, 1200)]", "Net", 1),
        (
            NET.replace("{shown}", "self.forward").replace("def trial", "    def forward(self): pass\ndef trial"),
            DELETED,
            "Net",
            2,
        ),
    ],
    ids=[
        *("both ways", "tree", "listener", "own method", "lambda", "later", "by name", "by a method"),
        *("modules", "module of a function", "bound method"),
    ],
)
def test_the_class_is_named(code, use, kind, line):
    (finding,) = findings_in(SETUP, code, use, fails=False)
    assert (finding.slug, finding.subject, finding.line) == ("cycle-holds-tensors", kind, line)
    assert f"{kind}." in finding.fix


@pytest.mark.parametrize(
    "cells",
    [
        [SEGMENTS, "play(4)\ngc.collect()"],
        [SEGMENTS.replace("prev.next = self", "prev.next = weakref.ref(self)"), "play(4)"],
        [SEGMENTS.replace("return n", "return last"), "last = play(4)"],
        [SEGMENTS.replace("return n", "kept.append(last)"), "kept = []\nplay(4)"],
        [TREE.replace("parent=self", "parent=None"), "build()"],
        [TREE.replace("return len(root.children)", "return lambda: root"), "get = build()"],
        [SEGMENTS.replace("300_000", "30"), "play(4)"],
        [
            AWAITED.replace("{calls}", "[self.turned(rows)]").replace("call(self.rows)", "call"),
            "lookup()",
        ],
        [
            AWAITED.replace("{calls}", "[weakref.WeakMethod(self.turned)]").replace("call(self", "call()(self"),
            "lookup()",
        ],
        [linked_by("self.callbacks['all'].trainer = weakref.ref(self)"), "folds()"],
        [NET.replace("{shown}", "lambda: width"), DELETED],
        [BY_LAMBDA, f"{DELETED}\n    gc.collect();"],
        [BY_LAMBDA, "nets = [Net(width) for width in (1000, 1200)]\ntrial(1)"],
        [BY_LAMBDA, "net = torch.nn.Sequential(Net(1000))\ntrial(1)"],
        [linked_by("self.callbacks['all'].set_trainer(self)", "None").replace("follow(", "set_trainer("), "folds()"],
    ],
    ids=[
        "collected",
        "weak",
        "returned",
        "kept",
        "no parent",
        "closure",
        "small",
        "called",
        "weak method",
        "weak field",
        "lambda without self",
        "modules collected",
        "modules in a list",
        "part of a module",
        "not kept",
    ],
)
def test_silent(cells):
    assert findings_in(SETUP, *cells, fails=False) == []


def test_it_is_told_once():
    found = findings_in(SETUP, SEGMENTS, "play(4)", "x = torch.zeros(3).sum()", fails=False)
    assert len(found) == 1


def test_models_of_a_loop_are_told_once():
    (finding,) = findings_in(SETUP, BY_LAMBDA, DELETED.replace("del net", "net.body.weight.sum().item()"), fails=False)
    assert finding.slug == "old-model-still-alive"
