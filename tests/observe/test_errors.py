"""The exception that ended a cell."""

import pytest

from tests.cells import a_notebook
from torch_inspector.observe.errors import error_fact

SETUP = """
import torch
from torch import nn
net = nn.Linear(3, 2)
x = torch.randn(8, 4)
"""


def error_of(code, *before):
    with a_notebook() as notebook:
        notebook.run(SETUP)
        for cell in before:
            notebook.run(cell)
        return notebook.run(code).error


def test_where_and_what():
    fact = error_of("1\nnet(x)")
    assert (fact.kind, fact.place.line, fact.interrupted) == ("RuntimeError", 2, False)
    assert fact.message.startswith("mat1 and mat2")
    assert {(o.path, o.kind, o.shape) for o in fact.operands} == {("net", "Linear", None), ("x", "tensor", (8, 4))}


def test_the_innermost_line_of_the_users():
    fact = error_of("f(x)", "def f(value):\n    own = value + 1\n    return net(own)")
    assert tuple(fact.place) == (2, 3, "f")
    assert {o.path for o in fact.operands} == {"net", "own"}


def test_attributes_are_looked_up_without_running_properties():
    code = (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.w = nn.Parameter(torch.ones(3, 2))\n"
        "        self.inner = nn.Linear(2, 2)\n        self.register_buffer('b', torch.ones(5))\n"
        "    @property\n    def bad(self):\n        touched.append(1)\n        return torch.ones(1)\n"
        "    def forward(self, x):\n        return self.inner(x[:, 1:] @ self.w).add(self.b, alpha=self.bad)\n"
        "touched = []"
    )
    fact = error_of("try:\n    Net()(x)\nfinally:\n    assert touched == [1]", code)
    assert {(o.path, o.nested) for o in fact.operands} == {
        *(("self.b", False), ("self.inner", True), ("self.w", True), ("x", True))
    }


def test_names_that_are_no_tensors_are_left_out():
    assert error_of("n = 3\nx[n, n, n]").operands != ()
    assert [o.path for o in error_of("n, s = 3, 'a'\nn + s").operands] == []


NESTED = """
n = torch.nested.nested_tensor([torch.randn(2, 3), torch.randn(4, 3)])
table = {2: torch.randn(2, 4)}
class Odd(torch.Tensor):
    shape = property(lambda self: touched.append(1))
touched, odd = [], torch.randn(2, 4).as_subclass(Odd)
"""


@pytest.mark.parametrize("code", ["net(table[n.size(0)])", "net(table[n.shape[2]])", "net(n.double())", "net(odd)"])
def test_sizes_that_torch_does_not_tell_cost_nothing(code):
    fact = error_of(code, NESTED)
    assert "n.shape" in code or "net" in {one.path for one in fact.operands}


def test_no_error_no_fact():
    assert error_of("1") is None


def test_syntax_errors_have_no_place():
    fact = error_of("x = = 1")
    assert fact.kind == "SyntaxError"
    assert fact.operands == ()


def test_an_interrupt():
    assert error_of("raise KeyboardInterrupt").interrupted


LOUD = """
class Loud(Exception):
    def __str__(self):
        touched.append(1)
        return ''
    __repr__ = __str__
    args = property(lambda self: touched.append(2))
class Hidden(Exception):
    __traceback__ = property(lambda self: touched.append(4))
class Lying(Exception):
    __class__ = property(lambda self: touched.append(3) or Exception)
touched = []
def caught(error):
    try:
        raise error
    except Exception as raised:
        return raised
"""


def touched_by(error):
    """What looking at this exception runs of the user's code."""
    with a_notebook() as notebook:
        notebook.run(LOUD)
        notebook.run(f"error = caught({error})\ntouched.clear()")
        names = notebook.shell.user_ns
        fact = error_fact(names["error"], notebook.extension._places)
        return (fact.kind, fact.message, names["touched"])


@pytest.mark.parametrize("arguments", ["3", "'a', 'b'", "", "Loud()"])
def test_no_code_of_the_exception_runs(arguments):
    assert touched_by(f"Loud({arguments})") == ("Loud", "", [])


def test_the_class_of_the_exception_is_not_asked_for():
    assert touched_by("Lying()") == ("Lying", "", [])
    assert touched_by("Hidden()") == ("Hidden", "", [])


def test_a_long_message_is_cut():
    assert len(error_of("raise ValueError('x' * 10_000)").message) == 2_000


PLACES = """
device = torch.device("meta")
far, near = torch.ones(8, 3, device="meta"), torch.ones(8, 3)
far_net = nn.Linear(3, 3).to(device)
batch, pair = {"x": near, "y": far}, (near, far)
"""


@pytest.mark.parametrize(
    ("code", "operands"),
    [
        ("far_net(batch['x'])", {("far_net", "meta"), ("batch['x']", "cpu")}),
        ("far_net(pair[0])", {("far_net", "meta"), ("pair[0]", "cpu")}),
        ("far + pair[-2]", {("far", "meta"), ("pair[-2]", "cpu")}),
        ("i = 0\nfar + pair[i]", {("far", "meta"), ("pair[i]", "cpu")}),
        ("far_net(near.to(device)) + near", {("far_net", "meta"), ("near.to(device)", "meta"), ("near", "cpu")}),
        ("far_net(near.to(torch.float))", {("far_net", "meta"), ("near", "cpu")}),
        ("far[:, :near.size(1)] + near.view(8, 3)", {("far", "meta"), ("near", "cpu")}),
        ("far + torch.ones(near.shape)", {("far", "meta")}),
        ("torch.cat([far, near])", {("far", "meta"), ("near", "cpu")}),
        ("far_net(far) + (lambda: near)()", {("far_net", "meta"), ("far", "meta")}),
        ("nn.Sequential(far_net)[0](far, near)", {("far", "meta"), ("near", "cpu"), ("far_net", "meta")}),
    ],
)
def test_what_the_failing_expression_names(code, operands):
    fact = error_of(code, PLACES)
    assert {(o.path, *o.devices) for o in fact.operands} == operands
    assert fact.device_names == (("device", "meta"),)


def test_parts_of_a_module_on_two_devices():
    fact = error_of("far_net(far)", PLACES, "far_net.bias = nn.Parameter(torch.ones(3))")
    (net,) = (o for o in fact.operands if o.kind != "tensor")
    assert net.parts == (("bias", "cpu"), ("weight", "meta"))


def test_a_loss_is_known_by_its_buffers():
    fact = error_of("loss(far, far[:, 0].long())", PLACES, "loss = nn.CrossEntropyLoss(weight=torch.ones(3))")
    assert [o.parts for o in fact.operands if o.path == "loss"] == [(("weight", "cpu"),)]


def test_a_local_that_cannot_be_read_is_not_taken_for_a_global_of_its_name():
    fact = error_of("f(far)", PLACES, "def f(near):\n    locals()\n    return far_net(x + near)")
    assert {o.path for o in fact.operands} <= {"x", "far_net", "near"}
    assert all(o.devices == ("meta",) for o in fact.operands if o.path == "near")
