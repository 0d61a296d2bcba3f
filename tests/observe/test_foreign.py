"""Functions of torch that somebody else has replaced before the extension is loaded: called as they want to be."""

from functools import wraps

import pytest
import torch

from tests.cells import a_notebook

SETUP = """
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=.01)
"""
LOOP = "for x in torch.randn(9, 8, 3):\n    loss = model(x).square().mean()\n    loss.backward()\n    opt.step()"


def narrow_backward(original, calls):
    """Says by `wraps` that it takes what torch's takes, and takes less."""

    @wraps(original)
    def backward(tensors, *others, inputs=None):
        assert len(others) == 3
        calls.append(inputs)
        return original(tensors, *others, inputs=inputs)

    return backward


def own_call(original, calls):
    def call(module, *args, **kwargs):
        calls.append(type(module))
        return original(module, *args, **kwargs)

    return call


@pytest.mark.parametrize(
    ("owner", "name", "make"),
    [(torch.autograd, "backward", narrow_backward), (torch.nn.Module, "__call__", own_call)],
)
def test_what_it_does_is_still_seen(monkeypatch, owner, name, make):
    calls: list[object] = []
    theirs = make(owner.__dict__[name], calls)
    monkeypatch.setattr(owner, name, theirs)
    with a_notebook() as notebook:
        notebook.run(SETUP)
        notebook.run(LOOP)
        assert notebook.errors == [None, None]
        (run,) = [run for run in notebook.runs[1:] if run]
    assert len(calls) == 9
    assert [(one.slug, one.line) for one in run.findings] == [("missing-zero-grad", 4)]
    (call,) = run.trace.forwards
    assert (call.count, run.trace.count("backward", run.trace.backwards[0].place)) == (9, 9)
    assert owner.__dict__[name] is theirs
