"""Entries of a dictionary that a function updates, and that take a graph from one step to the next."""

from tests.cells import findings_in

SETUP = """
import torch
from torch import nn
torch.manual_seed(0)
net, x = nn.Linear(6, 1), torch.randn(32, 6)
"""
STATE = """
state = {"h": torch.zeros(32, 1)}
def advance(state, x):
    state["h"] = torch.tanh(net(x) + KEPT)
    return state["h"].pow(2).mean()
for _ in range(3):
    loss = advance(state, x)
    loss.backward()
"""
TOTAL = """
stats = {"total": 0.0}
def note(stats, loss):
    stats["total"] = stats["total"] + loss
for _ in range(3):
    note(stats, net(x).pow(2).mean())
    stats["total"].backward()
"""


def test_a_state():
    (finding,) = findings_in(SETUP, STATE.replace("KEPT", 'state["h"]'), fails=True)
    assert (finding.slug, finding.subject) == ("hidden-state-not-detached", "state")


def test_a_total():
    (finding,) = findings_in(SETUP, TOTAL, fails=True)
    assert finding.slug == "backward-twice"
    assert "`stats` still adds up" in finding.message


def test_detached_entries_are_fine():
    assert findings_in(SETUP, STATE.replace("KEPT", 'state["h"].detach()'), fails=False) == []
