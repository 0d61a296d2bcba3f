"""Tensors as plain attributes of modules."""

import pytest

from tests.cells import findings_in

SETUP = """
import torch
from torch import nn
torch.manual_seed(0)
class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 4)
        self.make()
    def make(self):
        pass
"""
NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 4)
        self.const = {const}
    def forward(self, x):
        return self.out(x) + {use}
net = Net()
x = torch.randn(8, 4)
"""
FIT = """
opt = torch.optim.SGD(net.parameters(), lr=.1)
for _ in range(1):
    opt.zero_grad()
    net(x).pow(2).mean().backward()
    opt.step()
"""
LEARNED = "torch.zeros(4, requires_grad=True)"
CACHE = """
class Cache(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 4)
    def forward(self, x):
        self.seen = x.detach()
        return self.out(self.seen)
net = Cache()
net(torch.randn(2, 4))
net.to("meta");
"""


def net(const="torch.ones(4)", use="self.const"):
    return NET.format(const=const, use=use)


def made_in(method, call="self.build()", more=""):
    """The same with the tensor made in a method that `__init__` calls."""
    start, end = (
        "        self.const = torch.ones(4)\n",
        f"    def {method}:\n        self.const = torch.ones(4)\n{more}",
    )
    return net().replace(start, f"        {call}\n{end}")


FOUND = {
    "a method of __init__": ([made_in("build(self)"), "net.to('meta');"], (8, "hint")),
    "a private one": ([made_in("__build(self)", "self.__build()"), "net.to('meta');"], (8, "hint")),
    "moved away": ([net(), "net.to('meta');"], (6, "warning")),
    "as a part": ([net(), "whole = nn.Sequential(net)\ndel net\nwhole = whole.to('meta')"], (6, "warning")),
    "to be learned": ([net(LEARNED), FIT], (6, "warning")),
    "a list": ([net("[torch.ones(4), torch.zeros(4)]", "self.const[0]"), "net.to('meta');"], (6, "warning")),
    "a dict": ([net("{'a': torch.ones(4)}", "self.const['a']"), "net.to('meta');"], (6, "warning")),
    "a list to be learned": ([net(f"[{LEARNED}]", "self.const[0]"), FIT], (6, "warning")),
    "an index": ([net("torch.arange(4)"), "net.to('meta');"], (6, "hint")),
}
QUIET = {
    "a method that knows the device": [
        made_in("build(self)", more="        if self.out.weight.device.type == 'meta': self.const = None\n"),
        "net.to('meta');",
    ],
    "a method that goes by a parameter": [
        made_in("build(self)").replace("torch.ones(4)", "torch.zeros_like(self.out.bias)"),
        "net.to('meta');",
    ],
    "a method that goes by a parameter, after a placeholder": [
        made_in("build(self)", "self.const = None\n        self.build()").replace(
            "torch.ones(4)", "self.out.bias.new_zeros(4)"
        ),
        "net.to('meta');",
    ],
    "a method that the cells call": [made_in("reset(self)", "self.reset()"), "net.to('meta')\nnet.reset()"],
    "a method that is given something": [made_in("build(self, x=None)"), "net.to('meta');"],
    "a method that others call": [
        made_in("build(self)", more="    def again(self):\n        self.build()\n"),
        "net.to('meta');",
    ],
    "a list of others": [net("[torch.ones(4), 2]", "self.const[1]"), "net.to('meta');"],
    "a record": [
        net("[torch.ones(4)]", "self.const[0]").replace(
            "        return", "        self.const.append(x)\n        return"
        ),
        "net.to('meta');",
    ],
    "same device": [net(), "y = net(x)"],
    "moved in forward": [net(use="self.const.to(x.device)"), "net.to('meta');"],
    "a number": [net("torch.tensor(2.0)"), "net.to('meta');"],
    "a buffer": [net("nn.Buffer(torch.ones(4))"), "net.to('meta');"],
    "a parameter": [net("nn.Parameter(torch.zeros(4))"), FIT],
    "learned by hand": [net(LEARNED), FIT.replace("net.parameters()", "[*net.parameters(), net.const]")],
    "never read": [net(use="0"), "net.to('meta');"],
    "left by forward": [CACHE],
}


def found(*cells):
    return [
        (one.line, one.severity) for one in findings_in(SETUP, *cells, slug="tensor-attribute-not-buffer", fails=False)
    ]


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    cells, expected = FOUND[name]
    assert expected in found(*cells)


@pytest.mark.parametrize("name", QUIET)
def test_silent(name):
    assert found(*QUIET[name]) == []


def test_the_fix_names_the_method():
    cells = (SETUP, made_in("build(self)"), "net.to('meta');")
    (one,) = findings_in(*cells, slug="tensor-attribute-not-buffer", fails=False)
    assert "in build of Net" in one.fix


def test_it_is_said_once():
    assert len(found(net(), "net.to('meta');", "1 + 1;", "print(net.out.weight.device)\nnet.to('meta');")) == 1


MOVED_BY_A_FUNCTION = """
def place(model):
    return model.to("meta")
"""


def test_a_move_in_a_function_of_an_earlier_cell_is_seen():
    assert found(net(), MOVED_BY_A_FUNCTION, "net = place(net)") == [(6, "warning")]


@pytest.mark.parametrize(
    ("const", "use"),
    [
        ("[torch.ones(4), torch.zeros(4)]", "self.const[0]"),
        ("(torch.ones(4),)", "self.const[0]"),
        ("{4: torch.ones(4), 8: torch.zeros(4)}", "self.const[x.size(1)]"),
    ],
)
def test_the_fix_of_a_container_moves_it_with_the_module(const, use):
    (finding,) = findings_in(SETUP, net(const, use), "net.to('meta');", slug="tensor-attribute-not-buffer")
    pasted = "".join(f"    {line}\n" for line in finding.fix.splitlines())
    mended = net(const, use).replace("net = Net()", f"{pasted}net = Net()")
    assert findings_in(SETUP, mended, "net.to('meta')\ny = net(x.to('meta'))", fails=False) == []


@pytest.mark.parametrize("key", ["x.size(1)", "x.shape[-1]", "len(x)"])
def test_an_entry_is_named_whose_key_is_a_size(key):
    cells = (SETUP, net("{4: torch.ones(4), 8: torch.zeros(4)}", f"self.const[{key}]"))
    found = findings_in(*cells, "net.to('meta')\nnet(x.to('meta'))", slug="device-mismatch", fails=True)
    assert [one.subject for one in found] == [f"self.const[{key}]"]


SCALED = """
class Scaled(nn.Module):
    def __init__(self, size=4):
        super().__init__()
        self.mean = torch.zeros(size)
        self.out = nn.Linear(4, 1)
    def fit(self, x):
        self.mean = x.mean(0)
    def forward(self, x):
        return self.out(x - self.mean)
x = torch.randn(8, 4) + 3
net, again = Scaled(), Scaled()
"""
FITTED = f"{SCALED}net.fit(x)"
LOADED = "again.load_state_dict(net.state_dict())\n"
LOST = "again.mean"
TOLD = (
    SCALED.replace("size=4", "mean=None").replace("        self.mean = torch.zeros(size)", "{}")
    + "net.mean, again = x.mean(0), Scaled(x.mean(0) + 1)"
)


NAMES = ("init_stats", "start_from", "set_sample_stats", "initialize", "samples_seen")


@pytest.mark.parametrize(
    "start", [FITTED, f"{SCALED}net.mean = x.mean(0)", *(FITTED.replace("fit", name) for name in NAMES)]
)
@pytest.mark.parametrize("loads", [(f"{LOADED}again(x)",), (LOADED, "for _ in range(2): again(x)")])
def test_what_a_load_does_not_bring_is_told(start, loads):
    found = findings_in(SETUP, start, *loads, slug="tensor-attribute-not-buffer", fails=False)
    assert [(one.subject, one.severity, one.line) for one in found] == [(LOST, "hint", 5)]
    assert found[0].fix.startswith('self.register_buffer("mean", torch.zeros(size))')


QUIET_LOADS = {
    "a buffer": FITTED.replace("self.mean = torch.zeros(size)", "self.register_buffer('mean', torch.zeros(size))"),
    "given to both": f"{FITTED}\nagain.fit(x)",
    "given to the loaded one": f"{FITTED}\nagain.mean = x.mean(0) + 1",
    "given in a function": f"{FITTED}\ndef give(model):\n    model.mean = x.mean(0) - 1\ngive(again)",
    "a state of the pass": SCALED.replace("        return", "        self.mean = x.mean(0)\n        return") + "net(x)",
    "a number": FITTED.replace("torch.zeros(size)", "torch.tensor(1.0)").replace(".mean(0)", ".mean()"),
    "given by the constructor": SCALED.replace("zeros(size)", "ones(4) * size").replace("Scaled(), ", "Scaled(2), "),
    "told when made": TOLD.format("        self.mean = mean if mean is not None else torch.zeros(4)"),
    "told by a default": TOLD.format(
        "        if mean is None:\n            mean = torch.zeros(4)\n        self.mean = mean"
    ),
    "told in one branch": TOLD.format(
        "        self.mean = torch.zeros(4)\n        if mean is not None: self.mean = torch.as_tensor(mean)"
    ),
    "in each turn": f"{SCALED}for _ in range(2):\n    net.mean = x.mean(0)",
    "noise": FITTED.replace("fit", "reset_noise"),
    "a sample": FITTED.replace("fit", "sampleWeights"),
    "what goes on from step to step": FITTED.replace("fit", "init_hidden"),
    "made of nothing": FITTED.replace("fit", "start").replace("= x.mean(0)", "= x.new_zeros(4) + 2"),
    "a fresh state": f"{SCALED}net.mean = torch.randn(4)",
    "for training alone": FITTED.replace("x - self.mean", "x"),
}


@pytest.mark.parametrize("name", QUIET_LOADS)
def test_attributes_that_are_meant_to_differ_are_silent(name):
    slug = "tensor-attribute-not-buffer"
    assert findings_in(SETUP, QUIET_LOADS[name], f"{LOADED}again(x)", slug=slug, fails=False) == []


def test_models_that_are_both_called_are_compared():
    slug = "tensor-attribute-not-buffer"
    assert findings_in(SETUP, FITTED, f"{LOADED}again(x) - net(x)", slug=slug, fails=False) == []


def test_models_of_other_weights_are_not_compared():
    later = f"{LOADED}torch.nn.init.ones_(again.out.weight)\nagain(x)"
    assert findings_in(SETUP, FITTED, later, slug="tensor-attribute-not-buffer", fails=False) == []


HELPERS = """
def extract(table, x):
    return table.to(x.device)
def given(table, like):
    return torch.as_tensor(table, device=like.device)
def prepared(x):
    return x.to("cpu")
"""
MOVED = [
    "extract(self.const, x)",
    "given(self.const, x)",
    "torch.as_tensor(self.const, device=x.device)",
    "self.spread(self.const, x)",
    "(self.out.weight.cpu() - self.const).norm()",
    "self.const[0].item()",
]
STATE = """
class Rnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 4)
        self.reset_state()
    def reset_state(self):
        self.h = torch.zeros(1, 4)
    def forward(self, x):
        self.h = x.new_zeros(len(x), 4)
        self.once(x)
        return self.h
    def once(self, x):
        self.h = self.out(x) + self.h
rnn = Rnn()
"""


@pytest.mark.parametrize("use", MOVED)
def test_moved_by_others(use):
    spread = "    def spread(self, table, x):\n        return table.to(x.device)\n    def forward"
    cell = net(use=use).replace("    def forward", spread)
    assert found(HELPERS, cell, "net.to('meta');") == []


def test_set_by_forward_before_it_is_read():
    assert found(STATE, "rnn.to('meta');") == []


def test_others_are_moved():
    assert found(HELPERS, net(use="prepared(x) + self.const"), "net.to('meta');") == [(6, "warning")]


def test_a_method_that_calls_its_object_otherwise():
    cells = (SETUP, made_in("build(self)").replace("self", "me"), "net.to('meta');")
    (one,) = findings_in(*cells, slug="tensor-attribute-not-buffer", fails=False)
    assert (one.line, one.fix.partition("(")[0]) == (8, "me.register_buffer")
