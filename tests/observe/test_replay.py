"""The second run under `%%torchcheck`: it names the layer, and nothing of the user's notices it."""

import pytest

from tests.cells import a_notebook

MODEL = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(300.0))
        self.calls = 0
    def forward(self, x):
        self.calls += 1
        return torch.exp(x * self.factor)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.1))
        self.scale = Scale()
        self.seen = []
    def forward(self, x):
        h = self.body(x)
        self.seen.append(h.shape)
        return self.scale(h).mean(1, keepdim=True)
net = Net()
x, y = torch.randn(32, 3), torch.randn(32, 1)
opt = torch.optim.Adam(net.parameters())
"""
STEP = """%%torchcheck
for _ in range(2):
    opt.zero_grad()
    loss = F.mse_loss(net(x), y)
    loss.backward()
    opt.step()
"""


def told(*cells, model=MODEL):
    with a_notebook() as notebook:
        for cell in (model, *cells):
            notebook.run(cell)
        assert [error for error in notebook.errors if error is not None] == []
        return [one for one in notebook.runs[-1].findings if one.slug == "nonfinite-loss"]


def test_it_names_the_layer_and_the_line():
    [finding] = told(STEP)
    assert "in `net.scale` `exp` gives" in finding.message
    assert "for operands up to" in finding.message
    assert ("operation at line", 13) in [(one.label, one.value) for one in finding.evidence]


FUNCTION = """
def step(model, batch, target):
    loss = F.mse_loss(model(batch), target)
    loss.backward()
step(net, x, y)
"""
TRAINER = """
class T:
    def __init__(self, model):
        self.model = model
    def fit(self, data):
        for a, b in data:
            pred = self.model(a.view(-1, 3))
            loss = F.mse_loss(pred, b)
            loss.backward()
T(net).fit([(x, y)])
"""
TOWER = """
class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])
    def norm(self, x):
        return x / x.norm(dim=1, keepdim=True)
    def forward(self, x):
        for i, part in enumerate(self.parts):
            x = F.relu(part(x) - 50)
        return self.norm(x)
tower = Tower()
loss = tower(x).sum()
loss.backward()
"""
LAYERS = """
m = nn.Sequential(nn.Linear(3, 3), nn.Softplus(), nn.Linear(3, 1))
with torch.no_grad():
    m[2].weight.fill_(3e38)
loss = m(x).pow(2).mean()
loss.backward()
"""
CALLS = {
    "by name": ("out = net(x)\nloss = F.mse_loss(out, y)\nloss.backward()", "in `net.scale` `exp`"),
    "in a function": (FUNCTION, "in `model.scale` `exp`"),
    "of a trainer": (TRAINER, "in `self.model.scale` `exp`"),
    "one in another": ("a, b = net.body, net.scale\nloss = b(a(x)).mean()\nloss.backward()", "in `b` `exp`"),
    "a list of layers": (TOWER, "in `tower` `/` was given 32 zeros to divide by"),
    "a layer of torch": (LAYERS, "in `m[2]` `addmm` gives"),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_that_can_be_run_again(name):
    code, text = CALLS[name]
    [finding] = told(f"%%torchcheck\n{code}")
    assert text in finding.message


STATE = """
def state():
    import copy
    kept = [t.clone() for t in (*net.state_dict().values(), x, y, torch.get_rng_state())]
    return kept + [t.clone() for s in opt.state.values() for t in s.values()]
after = state()
counts = (net.scale.calls, len(net.seen), [m.training for m in net.modules()], list(net._forward_hooks))
"""


def test_nothing_of_the_users_is_touched():
    """The same cells with and without the second look leave the same values, bit for bit."""
    states = []
    for cell in (STEP, STEP.removeprefix("%%torchcheck\n")):
        with a_notebook() as notebook:
            for source in (MODEL, cell, STATE):
                notebook.run(source)
            names = notebook.shell.user_ns
            states.append((names["after"], names["counts"], [p.grad.clone() for p in names["net"].parameters()]))
    (one, counts, gradients), (two, others, more) = states
    assert counts == others
    assert len(one) == len(two)
    for a, b in zip((*one, *gradients), (*two, *more), strict=True):
        assert (a == b).logical_or(a.isnan().logical_and(b.isnan())).all() if a.is_floating_point() else (a == b).all()


def test_the_run_is_not_counted():
    with a_notebook() as notebook:
        for source in (MODEL, STEP):
            notebook.run(source)
        assert [fact.count for fact in notebook.runs[-1].trace.counts if fact.kind == "forward"] == [2]


FORWARD = """
{before}
def forward(self, x{more}):
    {first}
    return self.scale({given}).mean(1, keepdim=True)
Net.forward = forward
"""


def a_forward(before="", more="", first="pass", given="self.body(x)"):
    return FORWARD.format(before=before, more=more, first=first, given=given)


TWICE = """
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return g * 2
"""
TALKS = """
class Talks(nn.Module):
    def speak(self, x):
        print(x.shape)
        return x
net.talks = Talks()
"""
REFUSED = {
    "a hook of the user's": "seen = []\nnet.scale.register_forward_hook(lambda m, a, r: seen.append(1))",
    "a function that prints": a_forward("def tell(h):\n    print(h.sum())\n    return h", given="tell(self.body(x))"),
    "a custom function": a_forward(TWICE, given="Twice.apply(self.body(x))"),
    "a counter outside": a_forward("total = [0]", first="total[0] += 1"),
    "a list of the class": "Net.log = []",
    "a method of a part that prints": a_forward(TALKS, first="t = self.talks", given="t.speak(self.body(x))"),
    "random numbers of python": a_forward("import random", given="self.body(x) + random.random()"),
    "a list that calls share": a_forward(more=", kept=[]", first="kept.append(1)"),
    "an object of the user's in it": "class Config:\n    pass\nnet.config = Config()",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_may_do_more_than_compute_is_not_run_again(name):
    code = REFUSED[name]
    [finding] = told(code, STEP)
    assert "net.scale" not in finding.message
    assert "`exp`" in finding.message  # what the graph tells


def test_names_that_have_another_value_by_now_are_not_used():
    [finding] = told("%%torchcheck\nh = x\nh = net(h)\nloss = F.mse_loss(h, y)\nloss.backward()")
    assert "net.scale" not in finding.message


def test_without_the_magic_nothing_is_run_again():
    [finding] = told(STEP.removeprefix("%%torchcheck\n"))
    assert "net.scale" not in finding.message


def test_a_finite_loss_is_not_run_again():
    assert told(STEP.replace("net(x)", "net(x * 0)")) == []
