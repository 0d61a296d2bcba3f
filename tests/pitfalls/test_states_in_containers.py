"""Recurrent states that are kept in dictionaries and lists, with their graph."""

import pytest

from tests.cells import a_notebook, findings_in

SETUP = """
import torch
from collections import deque
from torch import nn
torch.manual_seed(0)
gru, head, lstm = nn.GRU(3, 8, batch_first=True), nn.Linear(8, 1), nn.LSTMCell(3, 8)
data = torch.rand(4, 2, 5, 3)
"""
LOSS = "head(y).exp().mean().backward()"
BY_KEY = f"""
class Forecaster:
    def __init__(self):
        self.states = {{"north": torch.zeros(1, 2, 8), "south": None}}

    def update(self, key, x):
        y, h = gru(x, self.states.get(key))
        self.states[key] = h
        {LOSS}

own = Forecaster()
"""
IN_MODULE = """
class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = nn.ModuleList(nn.LSTMCell(3, 3) for _ in range(2))
        self.states = [(torch.zeros(2, 3), torch.zeros(2, 3)) for _ in self.cells]

    def forward(self, x):
        for k, (cell, state) in enumerate(zip(self.cells, self.states)):
            self.states[k] = cell(x, state)
            x = self.states[k][0]
        return x

own = Stack()
"""
NAMED = """
class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru, self.states = nn.GRU(3, 8, batch_first=True), {}

    def forward(self, x, key="a"):
        y, self.states[key] = self.gru(x, self.states.get(key))
        return y

own = Stack()
"""
ADVANCE = f"""
states = {{}}
def advance(key, x):
    y, h = gru(x, states.get(key))
    states[key] = h
    {LOSS}
"""
GLOBAL = f"""
state = None
def advance(x):
    global state
    y, state = gru(x, state)
    {LOSS}
"""
FORWARD = """
def run(states, x):
    for k in range(2):
        states[k] = lstm(x[:, 0], states[k])
    return states[1][0]
"""

FOUND = {
    "by key, in an object": (BY_KEY, "for x in data:\n    own.update('north', x)", "self.states"),
    "pairs in a list": (IN_MODULE, "for x in data[:, :, 0]:\n    own(x).exp().mean().backward()", "own.states"),
    "a dictionary of a module": (NAMED, "for x in data:\n    own(x).exp().mean().backward()", "own.states"),
    "a dictionary outside a function": (ADVANCE, "for x in data:\n    advance('a', x)", "states"),
    "a global name": (GLOBAL, "for x in data:\n    advance(x)", "state"),
    "a list handed to a function": (
        FORWARD,
        "states = [(torch.zeros(2, 8),) * 2] * 2\nfor x in data:\n    run(states, x).exp().mean().backward()",
        "states",
    ),
    "in the loop": (
        "states = {}",
        f"for i, x in enumerate(data):\n    y, h = gru(x, states.get(0))\n    states[0] = h\n    {LOSS}",
        "states",
    ),
    "other things beside it": (
        "memory = {'h': None, 'count': 0}",
        f"for x in data:\n    y, memory['h'] = gru(x, memory['h'])\n    memory['count'] += 1\n    {LOSS}",
        "memory",
    ),
    "the last ones": (
        "past = deque([torch.zeros(1, 2, 8)] * 2, maxlen=2)",
        f"for x in data:\n    y, h = gru(x, past[-1] + past[-2])\n    past.append(h)\n    {LOSS}",
        "past",
    ),
    "a pair": (
        "state = None",
        "for x in data:\n    state = lstm(x[:, 0], state)\n    state[0].exp().mean().backward()",
        "state",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_it_is_named_and_the_fix_helps(name):
    setup, loop, subject = FOUND[name]
    (finding,) = findings_in(SETUP, setup, loop, fails=True)
    assert (finding.slug, finding.subject) == ("hidden-state-not-detached", subject)
    # Pasted where the loop calls what belongs to the object.
    fix = finding.fix.replace("self.", "own.")
    assert findings_in(SETUP, setup, f"{loop}\n    {fix}", fails=False) == []


CACHED = """
scales = {}
class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.cache = nn.Linear(3, 3), {}

    def forward(self, x, key="a"):
        if key not in self.cache:
            self.cache[key] = self.lin(torch.eye(3)).exp()
        return x @ self.cache[key]

own = Scaled()
for x in data:
    own(x).exp().mean().backward()
"""


def test_a_cache_of_results_is_to_be_computed_anew():
    (finding,) = findings_in(SETUP, CACHED, fails=True)
    assert (finding.slug, finding.subject) == ("hidden-state-not-detached", "own.cache")
    assert finding.fix.startswith("self.cache[key] = self.lin(torch.eye(3)).exp()")


@pytest.mark.parametrize(
    "code",
    [
        BY_KEY.replace("= h\n", "= h.detach()\n") + "for x in data:\n    own.update('south', x)",
        NAMED + "for x in data:\n    own.states.clear()\n    own(x).exp().mean().backward()",
        ADVANCE.replace("states.get(key)", "None") + "for x in data:\n    advance(0, x)",
        IN_MODULE + "loss = 0\nfor x in data:\n    loss = loss + own(x[:, 0]).exp().mean()\nloss.backward()",
    ],
    ids=["detached", "cleared", "not read", "one backward"],
)
def test_silent(code):
    assert findings_in(SETUP, code, fails=False) == []


def test_what_is_computed_once_and_kept_in_a_list_is_no_state():
    with a_notebook() as notebook:
        for source in (
            SETUP,
            "tables = [gru(data[0])[0].exp()]\nfor x in data:\n    (x.sum() * tables[0]).mean().backward()",
        ):
            run = notebook.run(source)
    (finding,) = run.findings
    assert finding.slug == "backward-twice"


def test_a_long_dictionary_is_mended_with_an_entry_a_line():
    start = (
        "import torch\nnet, x = torch.nn.Linear(2, 1), torch.ones(4, 2)\n"
        "opt = torch.optim.Adam(net.parameters(), lr=0.1)"
    )
    loop = (
        "for epoch in range(4):\n    opt.zero_grad()\n    net(x).pow(2).mean().backward()\n    opt.step()\n"
        "    if epoch < 2:\n        best = {'epoch': epoch, 'model': net.state_dict(), 'optimizer': opt.state_dict()}"
    )
    (finding,) = findings_in(start, loop, slug="state-dict-alias")
    assert "So does that of `opt` beside it." in finding.message
    fix = finding.fix.partition("\n")[2].partition("  #")[0]
    inner = fix.replace("\n", "\n        ")
    mended = loop.partition("        best")[0] + f"        {inner}"
    assert findings_in(f"import copy\n{start}", mended, slug="state-dict-alias", fails=False) == []
