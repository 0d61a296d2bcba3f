"""How a module is called that was asked as a part of one with a name."""

import pytest

from tests.cells import findings_in

START = """
import copy
import torch
from torch import nn
torch.manual_seed(0)
x, y = torch.randn(32, 4), torch.randn(32, 8)
base = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 8))
class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = copy.deepcopy(base[:3])
        self.head = nn.Linear(8, 8)
    def features(self, x):
        return self.base(x)
    def forward(self, x):
        return self.head(self.features(x))
wide = Wide()
opt = torch.optim.SGD(wide.parameters(), lr=0.1)
for _ in range(3):
    opt.zero_grad()
    nn.functional.mse_loss(wide(x), y).backward()
    opt.step()
"""


@pytest.mark.parametrize("ask", ["wide.features(x)", "wide.base(x)"])
def test_a_part_of_which_one_layer_has_parameters(ask):
    (one,) = findings_in(START, f"with torch.no_grad():\n    print({ask})", slug="eval-missing")
    assert one.fix.startswith("wide.base.eval()")
