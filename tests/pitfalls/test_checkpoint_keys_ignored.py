"""Loads with `strict=False`."""

import pytest

from tests.cells import a_notebook

SETUP = """
import torch
from torch import nn
torch.manual_seed(0)
def make():
    return nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 2))
source = {k: v.clone() for k, v in make().state_dict().items()}
net = make()
"""
RESTORE = """
def restore(model, state):
    model.load_state_dict(state, strict=False)
    return model.eval()
net = restore(net, {"module." + k: v for k, v in source.items()})
"""
PREFIXED = "state = {'model.' + k: v for k, v in source.items()}\n"
SOME = """
state = {"0.bias": source["0.bias"], **{"x." + k: v for k, v in source.items()}}
net.load_state_dict(state, strict=False);
"""
NEW_HEAD = """
net[2] = nn.Linear(6, 3)
source = {k: v for k, v in source.items() if k[0] == "0"}
net.load_state_dict(source, strict=False);
"""
REFUSED = """
try:
    net.load_state_dict({"model." + k: v for k, v in source.items()})
except RuntimeError:
    pass
"""
FOUND = {
    "a prefix": (PREFIXED + "net.load_state_dict(state, strict=False)", 2, "error"),
    "by place": ("net.load_state_dict({'model.' + k: v for k, v in source.items()}, False);", 1, "error"),
    "in a function": (RESTORE, 3, "error"),
    "a prefix too few": ("net = nn.Sequential(net)\nnet.load_state_dict(source, strict=False);", 2, "error"),
    "nothing given": ("net.load_state_dict({}, strict=False);", 1, "error"),
    "one of four": (SOME, 3, "warning"),
}
QUIET = {
    "all": "net.load_state_dict(source)",
    "all, not strict": "net.load_state_dict(source, strict=False);",
    "a new head": NEW_HEAD,
    "looked at": PREFIXED + "missing, unexpected = net.load_state_dict(state, strict=False)",
    "more than needed": "net.load_state_dict({**source, 'head.weight': torch.ones(1)}, strict=False);",
    "an adapter": "net.load_state_dict({'2.bias': torch.zeros(2)}, strict=False);",
    "refused": REFUSED,
}


def findings(cell):
    with a_notebook() as notebook:
        notebook.run(SETUP)
        notebook.run(cell)
        assert notebook.errors == [None, None]
        return [f for run in notebook.runs if run for f in run.findings if f.slug == "checkpoint-keys-ignored"]


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    cell, line, severity = FOUND[name]
    assert [(f.line, f.severity) for f in findings(cell)] == [(line, severity)]


def test_the_prefix_is_named():
    (finding,) = findings(RESTORE)
    assert finding.fix == '{k.removeprefix("module."): v for k, v in state.items()}'
    assert "`net`" in finding.message
    assert "strict" in finding.message


@pytest.mark.parametrize("name", QUIET)
def test_silent(name):
    assert findings(QUIET[name]) == []
