"""States that go from step to step with their graph."""
# ruff: noqa: E501, ISC004 - programs of several lines, each as one string, so that the table can be read

import pytest

from tests.cells import a_notebook

START = """
import torch
from torch import nn

torch.manual_seed(0)
rnn, head = nn.GRU(3, 8, batch_first=True), nn.Linear(8, 1)
cell = nn.LSTMCell(3, 8)
opt = torch.optim.SGD([*rnn.parameters(), *head.parameters(), *cell.parameters()], lr=0.1)
data = torch.rand(4, 2, 5, 3)
"""
MODEL = """
class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.out, self.memory = nn.GRU(3, 8, batch_first=True), nn.Linear(8, 1), None

    def forward(self, x):
        y, self.memory = self.rnn(x, self.memory)
        return self.out(y)


class Trainer:
    def __init__(self, model):
        self.model = model

    def step(self, x):
        loss = self.model(x).pow(2).mean()
        loss.backward()

    def fit(self, data):
        for x in data:
            self.step(x)


trainer = Trainer(Tagger())
"""

FOUND = {
    "loop": (
        ["h = None\nfor x in data:\n    y, h = rnn(x, h)\n    loss = head(y).pow(2).mean()\n    loss.backward()"], "h",
    ),
    "two names": (
        ["h = c = torch.zeros(2, 8)\nfor x in data:\n    h, c = cell(x[:, 0], (h, c))\n    head(h).pow(2).sum().backward()"],
        "h",
    ),
    "cell run twice": (
        ["h = None", *["y, h = rnn(data[0], h)\nhead(y).pow(2).mean().backward()"] * 2], "h",
    ),
    "attribute of a model": ([MODEL, "trainer.fit(data)"], "self.model.memory"),
    "kept graph and a step": (
        ["h = None\nfor x in data:\n    y, h = rnn(x, h)\n    loss = head(y).pow(2).mean()\n"
         "    loss.backward(retain_graph=True)\n    opt.step()"],
        "h",
    ),
    "through a function": (
        ["def train_step(x, state):\n    y, state = rnn(x, state)\n    head(y).exp().mean().backward()\n    return state",
         "state = None\nfor x in data:\n    state = train_step(x, state)"],
        "state",
    ),
    "attribute of a trainer": (
        ["class Trainer:\n    state = None\n\n    def step(self, x):\n        y, self.state = rnn(x, self.state)\n        head(y).exp().mean().backward()\n\n\ntrainer = Trainer()",
         "for x in data:\n    trainer.step(x)"],
        "self.state",
    ),
    "in a dictionary": (
        ["memory = {'h': None}\nfor x in data:\n    y, memory['h'] = rnn(x, memory['h'])\n    head(y).exp().mean().backward()"],
        "memory",
    ),
}  # fmt: skip

SILENT = {
    "detached": (
        "h = None\nfor x in data:\n    y, h = rnn(x, h)\n    head(y).exp().mean().backward()\n    h = h.detach()"
    ),
    "detached at the start": (
        "h = torch.zeros(1, 2, 8)\nfor x in data:\n    y, h = rnn(x, h.detach())\n    head(y).exp().mean().backward()"
    ),
    "one backward at the end": (
        "h, loss = None, 0\nfor x in data:\n    y, h = rnn(x, h)\n    loss = loss + head(y).exp().mean()\nloss.backward()"
    ),
    "a new state for each batch": "for x in data:\n    y, h = rnn(x)\n    head(y).exp().mean().backward()",
    "without a graph": "h = None\nwith torch.no_grad():\n    for x in data:\n        y, h = rnn(x, h)",
    "stepped before": (
        "for x in data:\n    h = rnn(x)[1]\n    loss = head(h).pow(2).mean()\n    opt.zero_grad()\n    loss.backward()\n"
        "    opt.step()"
    ),
}


def found(cells):
    with a_notebook() as notebook:
        for source in (START, *cells):
            run = notebook.run(source)
        return [finding for finding in run.findings if finding.severity == "error"]


@pytest.mark.parametrize("name", FOUND)
def test_the_state_is_named(name):
    cells, subject = FOUND[name]
    (finding,) = found(cells)
    assert (finding.slug, finding.subject) == ("hidden-state-not-detached", subject)
    assert f"`{subject}`" in finding.message
    assert "backward" in finding.code


@pytest.mark.parametrize("name", SILENT)
def test_silent(name):
    assert found([SILENT[name]]) == []


def test_of_two_states_only_the_one_that_is_not_detached_is_named():
    code = (
        "h = c = torch.zeros(1, 2, 8)\nfor x in data:\n    y, (h, c) = lstm(x, (h, c))\n"
        "    head(y).exp().mean().backward()\n    h = h.detach()"
    )
    (finding,) = found(["lstm = nn.LSTM(3, 8, batch_first=True)", code])
    assert (finding.subject, finding.fix) == ("c", "c = c.detach()  # at the end of each step")


CACHE = """\
class Bias(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.cache = nn.Linear(3, 3), None

    def forward(self, x):
        if self.cache is None:
            self.cache = self.lin(torch.eye(3)).exp()
        return x @ self.cache


net = Bias()
own = torch.optim.SGD(net.parameters(), lr=0.1)
"""
STEPS = """\
for x in data:
    own.zero_grad()
    net(x).exp().mean().backward({})
    own.step()"""


def test_a_cached_result_of_parameters_is_to_be_computed_anew_not_detached():
    with a_notebook() as notebook:
        for source in (START, CACHE, STEPS.format("")):
            run = notebook.run(source)
    (finding,) = (one for one in run.findings if one.slug == "hidden-state-not-detached")
    assert (finding.subject, finding.line) == ("net.cache", 8)
    assert finding.fix.startswith("self.cache = self.lin(torch.eye(3)).exp()  # in each pass")


@pytest.mark.parametrize(
    "code",
    [
        CACHE.replace("if self.cache is None:", "if True:"),
        CACHE.replace("exp()", "exp().detach()").replace("@ self.cache", "@ self.cache + self.lin(x)"),
        CACHE.replace("self.lin(torch.eye(3)).exp()", "torch.rand(3, 3)").replace(
            "@ self.cache", "@ self.cache + self.lin(x)"
        ),
    ],
    ids=["each pass", "detached", "numbers"],
)
def test_what_is_computed_in_each_pass_or_not_of_parameters_is_silent(code):
    with a_notebook() as notebook:
        for source in (START, code, STEPS.format("")):
            run = notebook.run(source)
        assert notebook.errors[-1] is None
        assert not [one for one in run.findings if one.slug == "hidden-state-not-detached"]


def test_a_state_that_is_made_where_there_is_none_stays_a_state():
    code = "h = None\nfor x in data:\n    if h is None:\n        h = torch.zeros(1, 2, 8)\n    y, h = rnn(x, h)\n    head(y).exp().mean().backward()"
    with a_notebook() as notebook:
        for source in (START, code):
            run = notebook.run(source)
    (finding,) = (one for one in run.findings if one.slug == "hidden-state-not-detached")
    assert finding.fix == "h = h.detach()  # at the end of each step"


KEEPING = """
rnn = nn.RNN(3, 4, batch_first=True)
step = torch.optim.SGD(rnn.parameters(), lr=0.1)
def repackage(state):
    {cut}
    return state
"""
WINDOWS = """
h = torch.zeros(1, 2, 4)
for _ in range(3):
    out, h = rnn(torch.randn(2, 5, 3), repackage(h))
    step.zero_grad()
    out.pow(2).mean().backward()
    step.step()
"""


def test_a_detached_tensor_that_nothing_keeps_is_told():
    (finding,) = found([KEEPING.format(cut="state.detach()"), WINDOWS])
    assert "`state.detach()` (line 5 of cell 2) gives a new tensor, which nothing keeps." in finding.message


def test_a_detached_tensor_that_is_kept_is_left_alone():
    assert found([KEEPING.format(cut="state = state.detach()"), WINDOWS]) == []


HELD = """\
import torch
from torch import nn
class Leaky(nn.Module):
    def __init__(self):
        super().__init__()
        self.mem = 0
    def forward(self, x):
        self.mem = 0.9 * self.mem + x
        return torch.tanh(self.mem)"""
NETS = {
    "nn.ModuleList([nn.Linear(3, 3), Leaky()])": ("net[1](net[0](x))", "net[1].mem"),
    "nn.Sequential(nn.Linear(3, 3), Leaky())": ("net(x)", "net[1].mem"),
    "nn.ModuleDict({'lin': nn.Linear(3, 3), 'leaky': Leaky()})": ("net['leaky'](net['lin'](x))", "net['leaky'].mem"),
}


@pytest.mark.parametrize("made", NETS)
def test_the_state_of_a_part_is_named_so_that_it_can_be_typed(made):
    called, path = NETS[made]
    loop = f"for _ in range(3):\n    x = torch.rand(2, 3)\n    loss = {called}.sum()\n    loss.backward()"
    with a_notebook() as notebook:
        for source in (HELD, f"net = {made}"):
            notebook.run(source)
        (finding,) = notebook.run(loop).findings
        assert (finding.subject, finding.fix) == (path, f"{path} = {path}.detach()  # at the end of each step")
        assert f"`{path}`" in finding.message
        notebook.run(f"net = {made}")
        assert not notebook.run(f"{loop}\n    {finding.fix}").findings


INNER = """\
class Memory:
    def __init__(self):
        self.state = torch.zeros(8, 8)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.store, self.cell = Memory(), nn.GRUCell(3, 8)
    def forward(self, x):
        self.store.state = self.cell(x, self.store.state){}
        return self.store.state
class Runner:
    def __init__(self):
        self.store, self.cell = Memory(), nn.GRUCell(3, 8)
    def __call__(self, x):
        self.store.state = self.cell(x, self.store.state){}
        return self.store.state
made = {}()
for x in torch.rand(3, 8, 3):
    loss = made(x).exp().mean()
    loss.backward(){}"""


@pytest.mark.parametrize("kind", ["Net", "Runner"])
def test_a_state_in_an_object_that_a_model_or_an_object_has_is_named(kind):
    (finding,) = found([INNER.format("", "", kind, "")])
    assert (finding.slug, finding.subject) == ("hidden-state-not-detached", "made.store.state")
    assert finding.fix.startswith("made.store.state = made.store.state.detach()")


def test_such_a_state_that_is_detached_is_silent():
    detached = "\n    made.store.state = made.store.state.detach()"
    assert found([INNER.format("", "", "Net", detached)]) == []


PARENT = """\
class Block(nn.Module):
    def __init__(self, parent):
        super().__init__()
        self.cell, self.h = nn.GRUCell(3, 4), torch.zeros(2, 4)
        object.__setattr__(self, "parent", parent)
    def forward(self, x):
        self.h = self.cell(x, self.h)
        return self.h
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(self) for _ in range(2)])
    def forward(self, x):
        return sum(block(x) for block in self.blocks)
net = Net()
for _ in range(3):
    net(torch.randn(2, 3)).mean().backward()"""
RECORDED = """\
class Recorder:
    feat = None
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.rec = nn.Linear(3, 4), Recorder()
    def forward(self, x):
        self.rec.feat = self.body(x).tanh()
        return self.rec.feat
net, one, two = Net(), nn.Linear(4, 1), nn.Linear(4, 1)
f = net(torch.randn(2, 3))
main = one(f).mean()
main.backward()
two(f).mean().backward()"""


def test_a_layer_that_knows_its_model_is_gone_into_once():
    (finding,) = found([PARENT])
    assert (finding.slug, finding.subject) == ("hidden-state-not-detached", "net.blocks[0].h")


def test_what_a_recorder_keeps_of_a_variable_is_no_state():
    (finding,) = found([RECORDED])
    assert finding.slug == "backward-twice"
    assert "`f`" in finding.message
