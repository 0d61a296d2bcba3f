"""Classes whose own class cannot be asked: `==` and `hash` of them raise, and the inspector asks neither."""

import ast
from pathlib import Path

import pytest
import torch

import torch_inspector
from tests.cells import a_notebook

OBSERVE = Path(torch_inspector.__file__).parent / "observe"
SETUP = """\
import sys
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
asked = []
def refuse():
    # Torch and Python ask some classes themselves.
    asked.append(sys._getframe(2).f_code.co_filename)
    if "/torch_inspector/" in asked[-1]:
        raise TypeError
class Meta(type):
    def __eq__(cls, other):
        refuse()
        return cls is other
    def __hash__(cls):
        refuse()
        return id(cls)
class Net(nn.Module, metaclass=Meta):
    def __init__(self):
        super().__init__()
        self.fc, self.plain, self.odd, self.kind = nn.Linear(3, 1), [nn.Linear(3, 3)], Odd(), Odd
    def forward(self, x, more=None):
        return self.fc(self.plain[0](x))
class Rows(Dataset, metaclass=Meta):
    def __init__(self):
        self.rows = Sorted(torch.arange(8))
    def __len__(self):
        return 8
    def __getitem__(self, i):
        return torch.randn(3), self.rows[i].float()
class Sorted(list, metaclass=Meta):
    pass
class Table(dict, metaclass=Meta):
    pass
class Odd(metaclass=Meta):
    pass
torch.manual_seed(0)
net, data, odd, kind = Net(), Rows(), Odd(), Odd
losses, table, both = Sorted(), Table(), [odd, Odd, (Sorted(), Odd())]
opt = torch.optim.SGD(net.parameters(), lr=0.01)
loader = DataLoader(data, batch_size=4)
"""
TRAIN = """\
def step(model, batch, extra, kind):
    x, y = batch
    loss = nn.functional.mse_loss(model(x, extra).squeeze(1), y)
    loss.backward()
    opt.step()
    return loss
for epoch in range(4):
    for batch in loader:
        losses.append(step(net, batch, odd, Odd))
        table[epoch] = {"net": net, "odd": odd, "kind": kind, "weight": net.fc.weight.detach()}
        best = net.fc.weight.data if odd else kind
"""
LATER = """\
rows = torch.arange(30).reshape(10, 3).byte()
seen = rows - 1
out = [float(row.sum()) for row in rows]
for row in both:
    row
found = net(torch.randn(4, 3), Sorted(both)) + torch.tensor(1.0)
wide = found.view(2, 2), odd, net.kind
del losses, table
"""
FAILS = "net(torch.randn(4, 5), odd)"


def test_classes_that_cannot_be_compared():
    with a_notebook() as notebook:
        for cell in (SETUP, TRAIN, LATER, FAILS):
            notebook.run(cell)
        assert [type(one).__name__ for one in notebook.errors] == ["NoneType", "NoneType", "NoneType", "RuntimeError"]
        assert not notebook.extension.session.failures.counts, notebook.extension.session.failures.recent
        assert "missing-zero-grad" in [slug for _, slug, _, _ in notebook.findings()]
        assert not [name for name in notebook.shell.user_ns["asked"] if "/torch_inspector/" in name]


OWN_FIELDS = """\
import sys
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader
asked = set()
FIELDS = "dtype device requires_grad is_leaf grad grad_fn shape is_meta layout ndim nbytes _version _base".split()
METHODS = "numel dim size element_size stride is_floating_point untyped_storage data_ptr detach item sum".split()
def note(name):
    code = sys._getframe(2).f_code
    if "/torch_inspector/" in code.co_filename:
        asked.add((name, code.co_filename, code.co_name))
def field(name):
    base = getattr(torch.Tensor, name)
    def get(self):
        note(name)
        return base.__get__(self)
    return property(get, base.__set__)
def method(name):
    def call(self, *args, **kwargs):
        note(name)
        return getattr(torch.Tensor, name)(self, *args, **kwargs)
    return call
own = {name: field(name) for name in FIELDS} | {name: method(name) for name in METHODS}
Own, Weight = type("Own", (torch.Tensor,), dict(own)), type("Weight", (nn.Parameter,), dict(own))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.norm, self.b = nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 3)
        self.mask, self.more = torch.ones(8).as_subclass(Own), [Weight(torch.ones(8)), Weight(torch.ones(8))]
        self.register_buffer("kept", torch.ones(8).as_subclass(Own))
        self.a.weight, self.norm.weight = Weight(torch.randn(8, 4)), Weight(torch.ones(8))
    def forward(self, x):
        return self.b(self.norm(self.a(x) * self.mask * self.more[0]).relu() * self.kept)
net, free = Net(), Weight(torch.ones(4))
x, y = torch.randn(16, 4).as_subclass(Own), torch.randint(0, 3, (16,))
opt = torch.optim.Adam(net.parameters())
"""
USED = """\
losses, outs = [], []
for xb, yb in DataLoader(list(zip(x, y)), batch_size=4):
    opt.zero_grad()
    out = net(xb.as_subclass(Own) * free)
    loss = F.cross_entropy(out, yb)
    loss.backward()
    opt.step()
    losses.append(loss), outs.append(out)
with torch.no_grad():
    found = net(x)
half, part = x.half(), torch.randn(1000, 1000).as_subclass(Own)[:2]
state = net.state_dict()
"""


def test_fields_that_a_class_of_tensors_overrides_are_not_asked():
    with a_notebook(min_bytes=0) as notebook:
        for cell in (
            OWN_FIELDS,
            USED,
            "%torchcheck",
            "F.nll_loss(F.softmax(net(x), 1), y).backward()",
            "net(x[:, :3])",
        ):
            notebook.run(cell)
        assert [type(one).__name__ for one in notebook.errors] == [*["NoneType"] * 4, "RuntimeError"]
        assert notebook.shell.user_ns["asked"] == set()


def asks(source: str) -> list[int]:
    """Lines that ask by `==` or `hash` whether the class of a thing is one of some."""
    found = [one for one in ast.walk(ast.parse(source)) if isinstance(one, ast.Compare)]
    sides = [(one, [one.left, *one.comparators]) for one in found if any(not isinstance(op, _IS) for op in one.ops)]
    return [one.lineno for one, parts in sides for part in parts if _is_type(part)]


_IS = (ast.Is, ast.IsNot)


def _is_type(node: ast.AST) -> bool:
    """True for `type(thing)` and `mro_of(kind)`; not for nodes of a syntax tree, which no cell makes."""
    if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "mro_of":
        return True
    call = isinstance(node, ast.Call) and ast.unparse(node.func) == "type" and len(node.args) == 1
    text = ast.unparse(node.args[0]) if call else ""  # type: ignore[attr-defined]
    return call and text.rpartition(".")[2] not in ("node", "op", "target", "callee", "None")


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("type(x) in (int, str)", True),
        ("type(x) == int", True),
        ("Base not in kinds.mro_of(kind)", True),
        ("type(x) is type(y) in (int, str)", True),
        ("type(x) is int", False),
        ("id(type(x)) in ATOMS", False),
        ("type(node.op) in SIGNS", False),
    ],
)
def test_what_asks_a_metaclass(line, wrong):
    assert bool(asks(line)) is wrong


def test_no_observer_asks_a_metaclass():
    found = {path.name: asks(path.read_text()) for path in sorted(OBSERVE.rglob("*.py"))}
    assert {name: lines for name, lines in found.items() if lines} == {}


COUNTED = """
calls = []
for name in ("item", "detach", "tolist"):
    def counted(*args, _name=name, _own=getattr(torch.Tensor, name), **kwargs):
        calls.append(_name)
        return _own(*args, **kwargs)
    setattr(torch.Tensor, name, counted)
"""
CALLED = """
opt.zero_grad()
loss = nn.functional.cross_entropy(net(x), y)
loss.backward()
torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
opt.step()
last = loss.item()
"""


def test_methods_that_the_program_counts_do_not_count_ours():
    names = ("item", "detach", "tolist")
    known = {name: torch.Tensor.__dict__.get(name) for name in names}
    setup = (
        "import torch\nfrom torch import nn\nnet = nn.Linear(3, 2)\nx, y = torch.rand(4, 3), torch.tensor([0, 0, 1, 1])"
    )
    try:
        with a_notebook() as notebook:
            notebook.run(f"{setup}\nopt = torch.optim.SGD(net.parameters(), lr=0.1)")
            notebook.run(COUNTED)
            for _ in range(2):
                notebook.run(CALLED)
            calls = list(notebook.shell.user_ns["calls"])
    finally:
        for name, own in known.items():
            if own is None:
                delattr(torch.Tensor, name)
            else:
                setattr(torch.Tensor, name, own)
    assert calls == ["item", "item"]
