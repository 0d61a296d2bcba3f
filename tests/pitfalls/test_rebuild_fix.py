"""The fix for an optimizer of an older model is the user's own line, with the rate that was meant."""

from tests.cells import findings_in

MODEL = """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(4, 1)
x, y = torch.randn(32, 4), torch.randn(32, 1)
"""
OPTIMIZER = """
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)  # plain
sched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.9)
"""
TRAIN = """
for _ in range(3):
    opt.zero_grad()
    ((net(x) - y) ** 2).mean().backward()
    opt.step()
    sched.step()
"""


def test_the_line_as_written():
    (finding,) = findings_in(MODEL, OPTIMIZER, TRAIN, MODEL, TRAIN, slug="optimizer-of-another-model")
    assert finding.fix == "opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)  # again, after the model"


def test_a_line_that_is_broken_is_put_together():
    broken = OPTIMIZER.replace("SGD(net", "SGD(\n    net").replace(", momentum=0.9)  # plain", ",\n)")
    (finding,) = findings_in(MODEL, broken, TRAIN, MODEL, TRAIN, slug="optimizer-of-another-model")
    assert finding.fix.startswith("opt = torch.optim.SGD(net.parameters(), lr=0.0")
