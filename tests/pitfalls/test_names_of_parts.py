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
