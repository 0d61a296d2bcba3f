"""Layers that a module keeps in plain containers: to be trained, and kept apart on purpose."""

import pytest

from tests.cells import a_notebook

SLUG = "modules-in-plain-list"
START = """\
import torch
import torch.nn.functional as F
from torch import nn
x, y = torch.randn(32, 4), torch.randn(32, 1)"""
TRAIN = """\
for _ in range(4):
    opt.zero_grad()
    F.mse_loss(net(x), y).backward()
    opt.step()"""


def a_class(filling, use="for layer in self.layers: x = layer(x).relu()", base="nn.Module"):
    return f"""\
class Net({base}):
    def __init__(self, extra=None):
        super().__init__()
        self.head = nn.Linear(4, 1)
        {filling}
    def forward(self, x):
        {use}
        return self.head(x)"""


def found(*cells, slug=SLUG):
    with a_notebook() as notebook:
        for code in (START, *cells):
            notebook.run(code)
            assert notebook.errors[-1] is None, notebook.errors[-1]
        return [f for run in notebook.runs if run for f in run.findings if f.slug == slug]


OPT = "opt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
USES_DICT = "for layer in self.layers.values(): x = layer(x).relu()"


@pytest.mark.parametrize(
    ("filling", "use"),
    [
        ("self.layers = [nn.Linear(4, 4), nn.Linear(4, 4)]", None),
        ("self.layers = tuple(nn.Linear(4, 4) for _ in range(3))", None),
        ("self.layers = {'a': nn.Linear(4, 4), 'b': nn.Linear(4, 4)}", USES_DICT),
        ("self.layers = []\n        for _ in range(3): self.layers.append(nn.Linear(4, 4))", None),
        ("self.layers = [[nn.Linear(4, 4), nn.ReLU()] for _ in range(2)]", "for a, b in self.layers: x = b(a(x))"),
        ("self._layers = [nn.Linear(4, 4), nn.Linear(4, 4)]", "for layer in self._layers: x = layer(x)"),
    ],
)
def test_layers_in_a_container_of_python(filling, use):
    code = a_class(filling, *([use] if use else []))
    (built,) = found(code + "\nnet = Net()")
    assert (built.line, built.severity) == (5, "warning")
    assert "layers" in built.subject
    later = found(code, "net = Net()\n" + OPT, TRAIN)
    assert [(one.severity, one.cell) for one in later] == [("warning", 2), ("error", 2)]


def test_experts_are_told_once_with_their_number():
    code = a_class("self.layers = [nn.Linear(4, 4), nn.Linear(4, 4)]")
    whole = """
class Mixture(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.experts = nn.Linear(4, 3), nn.ModuleList([Net() for _ in range(3)])
    def forward(self, x):
        weights = self.gate(x).softmax(1)
        return sum(weights[:, i : i + 1] * expert(x) for i, expert in enumerate(self.experts))
net = Mixture()
"""
    (finding,) = found(code, whole + OPT + TRAIN)
    assert "3 modules of class Net" in finding.message


def test_a_model_inside_a_function():
    code = a_class("self.layers = [nn.Linear(4, 4), nn.Linear(4, 4)]")
    train = "def fit():\n    net = Net()\n    " + (OPT + TRAIN).replace("\n", "\n    ") + "\nfit()"
    (finding,) = found(code, train)
    assert (finding.severity, finding.line, finding.cell) == ("error", 5, 2)
    assert found(code, train, slug="parameters-missing-from-optimizer") == []


def test_a_part_of_a_part():
    code = a_class("self.layers = [nn.Linear(4, 4), nn.Linear(4, 4)]")
    (finding,) = found(code + "\nnet = nn.Sequential(nn.Linear(4, 4), Net())")
    assert finding.subject == "net[1].layers"


@pytest.mark.parametrize(
    "cells",
    [
        [a_class("self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(2))") + "\nnet = Net()\n" + OPT, TRAIN],
        [a_class("self.layers = [nn.ReLU(), nn.Dropout(0.1)]") + "\nnet = Net()\n" + OPT, TRAIN],
        [a_class("self.one = nn.Linear(4, 4); self.layers = [self.one, nn.ReLU()]") + "\nnet = Net()\n" + OPT, TRAIN],
        [
            a_class("self.layers = [nn.Linear(4, 4) for _ in range(2)]")
            + "\n        "
            + "\nnet = Net()\nopt = torch.optim.SGD([*net.parameters(), *(p for l in net.layers for p in "
            "l.parameters())], lr=0.1)",
            TRAIN,
        ],
        [
            a_class("self.layers = []\n        for n in range(2):\n            layer = nn.Linear(4, 4)\n"
            "            self.add_module(f'layer{n}', layer); self.layers.append(layer)")
            + "\nnet = Net()\n" + OPT,
            TRAIN,
        ],
        [a_class("self.layers = [l.requires_grad_(False) for l in (nn.Linear(4, 4), nn.Linear(4, 4))]")
         + "\nnet = Net()"],
        [
            "teacher = nn.Linear(4, 1)\n" + a_class("self.teachers = [extra, extra]", "self.teachers[0](x).detach()")
            + "\nnet = Net(teacher)\n" + OPT,
            TRAIN,
        ],
        [a_class("self.teacher = (nn.Linear(4, 1),)", "self.teacher[0](x).detach()") + "\nnet = Net()\n" + OPT, TRAIN],
        [("class Ensemble:\n    def __init__(self):\n        self.models = [nn.Linear(4, 1) for _ in range(3)]\n"
         "all_of_them = Ensemble()")],
        ["layers = [nn.Linear(4, 4), nn.Linear(4, 4)]\nnet = nn.Sequential(*layers, nn.Linear(4, 1))\n" + OPT, TRAIN],
    ],
)  # fmt: skip
def test_what_the_module_knows_or_is_not_to_know(cells):
    assert found(*cells) == []


@pytest.mark.parametrize(
    ("filling", "use", "fix"),
    [
        ("self.layers = [[nn.Linear(4, 4), nn.ReLU()] for _ in range(2)]", "for a, b in self.layers: x = b(a(x))",
         "self.layers = nn.ModuleList(nn.ModuleList(part) for part in self.layers)"),
        ("self.layers = {'a': (nn.Linear(4, 4), nn.Linear(4, 4))}", "for a, b in self.layers.values(): x = b(a(x))",
         "self.layers = nn.ModuleDict({key: nn.ModuleList(part) for key, part in self.layers.items()})"),
        ("self.layers = [(nn.Linear(4, 4), 2) for _ in range(2)]", "for a, n in self.layers: x = a(x) * n",
         "self.layers = nn.ModuleList(…)"),
        ("self.layers = {n: nn.Linear(4, 4) for n in range(2)}", USES_DICT,
         "self.layers_layers = nn.ModuleList(self.layers.values())"),
        ("self.layers = {n: nn.Linear(4, 4) for n in ('train', 'type')}", USES_DICT,
         "self.layers_layers = nn.ModuleList(self.layers.values())"),
        ("self.layers = {'a.b': [nn.Linear(4, 4)] * 2, 'c': [nn.Linear(4, 4)]}",
         "for some in self.layers.values(): x = some[0](x)",
         "self.layers_layers = nn.ModuleList(one for part in self.layers.values() for one in part)"),
    ],
)  # fmt: skip
def test_the_fix_registers_what_containers_in_it_hold(filling, use, fix):
    code = a_class(filling, use)
    (finding,) = found(code + "\nnet = Net()")
    assert finding.fix.startswith(fix + "  #")
    if "(…)" not in fix:
        assert found(a_class(filling + f"\n        {fix}", use) + "\nnet = Net()\n" + OPT, TRAIN) == []


USES = "x = x * self.layers[0] + self.layers[1]"


@pytest.mark.parametrize(
    ("filling", "fix"),
    [
        ("self.layers = [nn.Parameter(torch.ones(4)) for _ in range(2)]", "nn.ParameterList(self.layers)"),
        ("self.layers = {n: nn.Parameter(torch.ones(4)) for n in range(2)}", "nn.ParameterList(self.layers.values())"),
        (
            "self.layers = [nn.Parameter(torch.ones(4)), nn.Parameter(torch.ones(4)), torch.ones(4)]",
            "nn.ParameterList(p for p in self.layers if isinstance(p, nn.Parameter))",
        ),
    ],
)
def test_parameters_in_a_container_of_python(filling, fix):
    (finding,) = found(a_class(filling, USES) + "\nnet = Net()")
    assert (finding.line, finding.severity, finding.subject) == (5, "hint", "net.layers")
    assert fix in finding.fix
    mended = a_class(filling + f"\n        {finding.fix}", USES)
    assert found(mended + "\nnet = Net()\n" + OPT, TRAIN) == []


TWO = "self.layers = [nn.Parameter(torch.ones(4)) for _ in range(2)]"


@pytest.mark.parametrize(
    ("use", "more"),
    [
        ("pass", "def penalty(self): return sum(one.norm() for one in self.layers)"),
        ("x = self.scaled(x)", "def scaled(self, x):\n        for one in self.layers: x = x * one\n        return x"),
        ("pass", "def add(self, one):\n        self.layers.append(one)\n        return self"),
        ("pass", "def extra_repr(self): return f'{len(self.layers)} scales'"),
        ("pass", "def extra_repr(self): return f'{[tuple(w.shape) for w in self.layers]}'"),
        ("pass", "def count(self): return [w.numel() for w in self.layers]"),
        ("pass", "def far(self):\n        found = [w.norm() for w in self.layers]\n        return torch.stack(found)"),
        ("pass", "def far(self, t=0):\n        for w in self.layers: t += self.size(w)\n        return t"),
        ("pass", "def far(self):\n        t = []\n        for w in self.layers: t += [w.norm()]\n        return t"),
        ("pass", "def one(self, i): return self.layers[i]"),
        ("pass", "def reset(self):\n        for w in self.layers: nn.init.normal_(w); w.data.uniform_(-1, 1)"),
        ("pass", "def more(self): self.layers += [nn.Parameter(torch.ones(4))]"),
    ],
)
def test_methods_that_only_use_the_container_do_not_hand_it_out(use, more):
    (finding,) = found(f"{a_class(TWO, use)}\n    {more}\nnet = Net()")
    assert finding.severity == "hint"


@pytest.mark.parametrize(
    "filling",
    [
        "self.layers = [nn.Parameter(torch.eye(4)[i].clone()) for i in range(2)]",
        "rows = torch.eye(4)\n        self.layers = [nn.Parameter(row.clone()) for row in rows]",
        "self.layers = []\n        for i in range(2): self.layers.append(nn.Parameter(torch.randn(4).data))",
    ],
)
def test_copies_of_what_torch_has_just_made_are_of_no_module(filling):
    (finding,) = found(f"{a_class(filling, 'pass')}\nnet = Net()")
    assert finding.severity == "hint"


NAMED = "n, p in self.head.named_parameters()"
FILLED = "self.layers = {}\n        for {}: {}"
MOVED = "self.layers = [nn.Parameter(torch.zeros(4)), nn.Parameter(torch.zeros(4))]"


@pytest.mark.parametrize(
    ("filling", "more"),
    [
        (MOVED, "    def pull(self, g):\n        for d, one in zip(self.layers, g): d.data.add_(one, alpha=-0.1)"),
        (MOVED, "    @torch.no_grad()\n    def pull(self, g):\n        for d in self.layers: d -= 0.1 * g"),
        (MOVED, "    def pull(self, g): self.layers[0].data.lerp_(g, 0.1)"),
        (MOVED, "    @torch.no_grad()\n    def pull(self, g): torch._foreach_add_(self.layers, g)"),
        (MOVED, "def pull(net, g):\n    for d in net.layers:\n        d.data -= g"),
        (FILLED.format("{}", NAMED, "self.layers[n] = nn.Parameter(p.detach().clone())"), ""),
        (FILLED.format("{}", NAMED, "self.layers[n] = nn.Parameter(p.data.clone())"), ""),
        (FILLED.format("[]", "one in 2 * [self.head]", "self.layers.append(nn.Parameter(one.weight.data * 1.0))"), ""),
        ("self.layers = [nn.Parameter(torch.clone(self.head.weight)), nn.Parameter(torch.ones(1))]", ""),
        ("self.a = nn.Parameter(torch.ones(4)); self.layers = [self.a, self.head.bias]", ""),
        ("self.layers = [nn.Parameter(torch.ones(4))]", ""),
        ("self.layers = [torch.ones(4), torch.ones(4)]", ""),
        ("self.layers = [nn.Parameter(torch.ones(4)) for _ in range(2)]", "    def arch(self): return self.layers"),
        (
            "self.layers = [nn.Parameter(torch.ones(4)) for _ in range(2)]",
            "    def parameters(self, recurse=True): return [*super().parameters(), *self.layers]",
        ),
        (TWO, "    def parameters(self, recurse=True):\n        for one in self.layers: yield one"),
        (TWO, "    def arch(self): return self.layers + [self.head.bias]"),
        (TWO, "    def arch(self): return [p for p in self.layers]"),
        (TWO, "    def arch(self):\n        for p in self.layers: yield p"),
        ("self.layers = copy.deepcopy(list(self.head.parameters()))", ""),
        ("self.layers = []\n        for p in self.head.parameters(): self.layers.append(copy.deepcopy(p))", ""),
        ("self.layers = [nn.Parameter(p.clone()) for p in self.head.parameters()]", ""),
        (TWO, "    def own(self): return {'params': self.layers, 'lr': 0.1}"),
        (TWO, "    def own(self): return [(str(i), p) for i, p in enumerate(self.layers)]"),
        (TWO, "    def own(self):\n        out = []\n        for p in self.layers: out.append(p)\n        return out"),
        (TWO, "    def own(self):\n        out = []\n        for p in self.layers: out += [p]\n        return out"),
        (TWO, "    def own(self):\n        out: list = [1]\n        out += self.layers\n        return out"),
        (TWO, "    def own(self):\n        d = {}\n        for p in self.layers: d[0] = p\n        return d"),
        (TWO, "    def own(self): return torch.optim.SGD(self.layers, lr=0.1)"),
        (TWO, "    def own(self):\n        for i, p in enumerate(self.layers): yield str(i), p"),
    ],
)  # fmt: skip
def test_parameters_that_the_module_knows_or_hands_out(filling, more):
    assert found(f"import copy\n{a_class(filling, 'pass')}\n{more}\nnet = Net()") == []


@pytest.mark.parametrize(
    "given",
    [
        "other = nn.Linear(4, 1); net = Net(other.parameters())",
        "a, b = nn.Parameter(x), nn.Parameter(y); net = Net((a, b))",
    ],
)
def test_parameters_of_others(given):
    assert found(f"{a_class('self.layers = list(extra)', 'pass')}\n{given}") == []


def test_layers_of_a_class_that_lists_its_parameters_itself():
    more = "    def parameters(self, recurse=True): return [p for one in self.layers for p in one.parameters()]"
    code = a_class("self.layers = [nn.Linear(4, 4), nn.Linear(4, 4)]")
    assert found(f"{code}\n{more}\nnet = Net()", OPT + TRAIN) == []


def test_parameters_that_an_optimizer_of_their_own_has():
    code = a_class("self.layers = [nn.Parameter(torch.ones(4)) for _ in range(2)]", USES)
    assert found(code + "\nnet = Net()\n" + OPT + "\nothers = torch.optim.SGD(net.layers, lr=0.1)") == []


@pytest.mark.parametrize(
    ("filling", "use", "fix"),
    [
        ("self.layers = [nn.Linear(4, 4) for _ in range(2)]", "for a in self.layers: x = a(x)",
         "self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])"),
        ("self.layers = {'a': nn.Linear(4, 4), 'b': nn.Linear(4, 4)}", "for a in self.layers.values(): x = a(x)",
         "self.layers = nn.ModuleDict({'a': nn.Linear(4, 4), 'b': nn.Linear(4, 4)})"),
        ("self.layers = []\n        for _ in range(2): self.layers.append(nn.Linear(4, 4))",
         "for a in self.layers: x = a(x)", "self.layers = nn.ModuleList()"),
    ],
)  # fmt: skip
def test_the_fix_is_the_line_itself(filling, use, fix):
    (finding,) = found(a_class(filling, use) + "\nnet = Net()")
    assert finding.fix.partition("  #")[0] == fix
    line = filling.partition("\n")[0]
    assert found(a_class(filling.replace(line, fix), use) + "\nnet = Net()\n" + OPT, TRAIN) == []
