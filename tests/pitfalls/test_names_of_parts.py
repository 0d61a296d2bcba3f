"""Parts of a model that its own methods call are named by the way that leads to them."""

import pytest

from tests.cells import findings_in

SETUP = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.3))
        self.decoder = nn.Linear(8, 6)
    def encode(self, x):
        return self.encoder(x)
    def forward(self, x):
        return self.decoder(self.encode(x))
ae, x = Coder(), torch.randn(32, 6)
models = nn.ModuleList([ae])
opt = torch.optim.Adam(ae.parameters())
for _ in range(4):
    opt.zero_grad()
    F.mse_loss(ae(x), x).backward()
    opt.step()
"""


@pytest.mark.parametrize("call", ["ae.encode(x)", "ae.encoder(x)"])
def test_the_part_is_named(call):
    (finding,) = findings_in(SETUP, f"with torch.no_grad():\n    z = {call}", fails=False)
    assert (finding.slug, finding.subject) == ("eval-missing", "ae.encoder")


@pytest.mark.parametrize("call", ["ae.encode(x)", "ae.encoder(x)"])
def test_a_part_in_eval_mode_is_left_alone(call):
    assert findings_in(SETUP, f"ae.eval()\nwith torch.no_grad():\n    z = {call}", fails=False) == []


PAIR = """
import torch
from torch import nn
torch.manual_seed(0)
words, context = nn.Embedding(100_000, 50), nn.Embedding(100_000, 50)
params = [*words.parameters(), *context.parameters()]
optimizer = torch.optim.Adam(params)
def step():
    picked = torch.randint(0, 100_000, (64,))
    loss = (words(picked) * context(picked)).sum()
    optimizer.zero_grad(); loss.backward(); optimizer.step()"""


def test_a_parameter_has_the_name_of_its_module_and_not_its_place_in_a_list():
    found = findings_in(PAIR, "for _ in range(3):\n    step()", slug="dense-embedding-gradient", min_bytes=1000)
    assert {one.subject for one in found} == {"words.weight", "context.weight"}


TOWERS = """
class TwoTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.u, self.i = nn.Embedding(20, 4), nn.Embedding(20, 4)
    {decorator}
    def score(self, user, item):
        return (self.u(user) * self.i(item)).sum(-1)
towers, ids = TwoTower(), torch.arange(8)
"""


def test_the_model_is_named_whose_parts_its_method_calls():
    cut = TOWERS.format(decorator="@torch.no_grad()")
    (finding,) = findings_in(SETUP, cut, "towers.score(ids, ids).mean().backward()", slug="graph-cut", fails=True)
    assert "reaches no parameter of `towers`" in finding.message


def test_a_model_whose_parts_are_called_with_gradients_is_left_alone():
    assert not findings_in(SETUP, TOWERS.format(decorator=""), "towers.score(ids, ids).mean().backward()", fails=False)
