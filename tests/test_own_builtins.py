"""A cell that puts something else in the place of a builtin: it meets the user's code and torch, not ours."""

import builtins
import sys

import pytest

import torch_inspector
from tests.cells import a_notebook

SETUP = """
import builtins
import torch
weight = torch.ones(3, requires_grad=True)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
kept = dict(vars(builtins))
def refuse(*args, **kwargs):
    raise RuntimeError("not for you")
"""
# One statement: between two, IPython itself asks for builtins.
REPLACED = """
if True:
    builtins.{name} = refuse
    try:
        {line}
    finally:
        builtins.{name} = kept["{name}"]
"""
MISTAKE = """
for _ in range(3):
    loss = model(torch.randn(8, 4)).square().mean()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("name", ["max", "hash", "bool", "id", "any"])
def test_the_users_own_call_runs_and_the_next_cell_is_judged(name):
    with a_notebook() as notebook:
        notebook.run(SETUP)
        notebook.run(REPLACED.format(name=name, line="(weight * 2).sum().backward()"))
        notebook.run(MISTAKE)
        assert notebook.errors == [None, None, None]
        assert [slug for _, slug, *_ in notebook.findings()] == ["missing-zero-grad"]


def test_functions_of_numpy_in_their_place_to_the_end():
    with a_notebook() as notebook:
        notebook.run(SETUP + "import numpy as np")
        try:
            notebook.run(
                "for name in ('max', 'min', 'all', 'any', 'round'):\n    setattr(builtins, name, getattr(np, name))"
            )
            notebook.run("(weight * 2).sum().backward()")
            notebook.run("assert max([1, 2]) == 2 and type(max([1, 2])) is np.int64")
        finally:
            notebook.run("vars(builtins).update(kept)")
        assert notebook.errors == [None] * 5


def test_every_module_has_them():
    own = vars(torch_inspector.recent)["__builtins__"]
    assert own is not vars(builtins)
    loaded = {name: vars(one) for name, one in sys.modules.items() if name.startswith("torch_inspector.")}
    others = [name for name, names in loaded.items() if names.get("__builtins__") is not own and names.get("__file__")]
    assert len(loaded) > 100
    assert others == ["torch_inspector.own_builtins"]
