"""Targets and averages that follow another part, parts that a second loss trains, and words that look like them."""

import pytest

from tests.cells import a_notebook

START = """\
import copy
import torch
import torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
x, y = torch.rand(16, 4), torch.randint(0, 2, (16,))
{follow}
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.head, self.dec = nn.Linear(4, 8), nn.Linear(8, 2), nn.Linear(8, 4)
        self.slow = copy.deepcopy(self.enc)
    def {name}(self, a):
        return F.cross_entropy(self.head(self.enc(a) + self.slow(a).detach()), y) + self.dec(self.enc(a)).mean()
    def sync(self):
        {sync}
net = Net()
opt = torch.optim.Adam(net.parameters(), 1e-3)
for _ in range(6):
    opt.zero_grad()
    net{call}(x).backward()
    opt.step()
    {after}"""
BY_NAME, BY_CALL = {"name": "loss", "call": ".loss"}, {"name": "forward", "call": ""}
LOOP = "for p, q in zip(self.enc.parameters(), self.slow.parameters()): "
FUNCTION = """\
def follow(src, dst):
    with torch.no_grad():
        for p, q in zip(src.parameters(), dst.parameters()):
            q.mul_(0.9).add_(p, alpha=0.1)"""
MOVES = [
    {"sync": "self.slow.load_state_dict(self.enc.state_dict())"},
    {"sync": LOOP + "q.data = 0.9 * q.data + 0.1 * p.data"},
    {"sync": LOOP + "q.data += 0.1 * (p.data - q.data)"},
    {"sync": "torch._foreach_lerp_([*self.slow.parameters()], [*self.enc.parameters()], 0.1)"},
    {"follow": FUNCTION, "after": "follow(net.enc, net.slow)"},
    {"follow": FUNCTION, "after": "follow(net.enc, dst=net.slow)"},
    {"follow": "def reset_slow(m):\n    m.slow.weight.data[0] = 0.0"},
]
PLAIN = {"follow": "", "sync": "pass", "after": "pass"}


def found(*cells):
    with a_notebook() as notebook:
        for code in cells:
            notebook.run(code)
        assert notebook.errors == [None] * len(cells)
        return [f for run in notebook.runs if run for f in run.findings if f.slug == "accidental-detach"]


@pytest.mark.parametrize("way", [BY_NAME, BY_CALL], ids=["method", "call"])
@pytest.mark.parametrize("moved", MOVES)
def test_what_follows_another_part(moved, way):
    assert found(START.format(**{**PLAIN, **moved, **way})) == []


WORDS = ["# the remaining semantic schema", "schema_of, remap, EMAIL, SCHEMA = 1, 2, 3, 4", "# an EMA was tried before"]


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("way", [BY_NAME, BY_CALL], ids=["method", "call"])
def test_what_follows_nothing(word, way):
    (finding,) = found(START.format(**{**PLAIN, **way, "follow": word}))
    assert (finding.subject, finding.severity) == ("net.slow", "hint")


@pytest.mark.parametrize("word", ["class ModelEMA: pass", "EMA_RATE = 0.9", "def ema_step(m): pass"])
def test_words_of_an_average(word):
    assert found(START.format(**{**PLAIN, **BY_CALL, "follow": word})) == []


STAGES = """\
import torch
import torch.nn.functional as F
from torch import nn
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.head, self.dec = nn.Linear(4, 4), nn.Linear(4, 2), nn.Linear(4, 4)
    def rebuilt(self, x):
        return F.mse_loss(self.dec(self.enc(x)), x)
    def {name}(self, x, y):
        return F.cross_entropy(self.head(self.enc(x).detach()), y)
m, x, y = Model(), torch.rand(16, 4), torch.randint(0, 2, (16,))
opt = torch.optim.Adam(m.parameters(), 1e-3)
for _ in range(6):
    opt.zero_grad()
    m{call}(x, y).backward()
    opt.step()"""


@pytest.mark.parametrize("way", [BY_NAME, BY_CALL], ids=["method", "call"])
def test_a_part_that_another_loss_may_train_is_a_hint(way):
    later = "for _ in range(6):\n    opt.zero_grad()\n    m.rebuilt(x).backward()\n    opt.step()"
    (finding,) = found(STAGES.format(**way), later)
    assert (finding.subject, finding.severity) == ("m.enc", "hint")


SHADOW = """\
import torch
from torch import nn
scale, net, x = nn.Parameter(torch.ones(1)), nn.Linear(4, 4), torch.rand(16, 4)
opt = torch.optim.Adam([*net.parameters(), scale], 1e-3)
def loss_of(out{argument}):
    {local}
    return (out / scale.detach()).pow(2).mean()
for _ in range(6):
    opt.zero_grad()
    loss_of(net(x){given}).backward()
    opt.step()"""
LOCALS = [
    {"argument": "", "local": "scale = out.std(0)", "given": ""},
    {"argument": ", scale", "local": "pass", "given": ", torch.ones(4)"},
]


@pytest.mark.parametrize("names", LOCALS)
def test_a_variable_of_the_function_is_not_that_of_the_cell(names):
    assert found(SHADOW.format(**names)) == []


def test_the_variable_of_the_cell():
    (finding,) = found(SHADOW.format(argument="", local="pass", given=""))
    assert (finding.subject, finding.severity) == ("scale", "hint")
