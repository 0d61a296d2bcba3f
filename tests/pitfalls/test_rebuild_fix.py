"""The fix for an optimizer of an older model is the user's own line, with the rate that was meant."""

import pytest

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


def test_several_lines_as_written():
    broken = OPTIMIZER.replace("SGD(net", "SGD(\n    net").replace(", momentum=0.9)  # plain", ",\n)")
    (finding,) = findings_in(MODEL, broken, TRAIN, MODEL, TRAIN, slug="optimizer-of-another-model")
    assert finding.fix == "opt = torch.optim.SGD(\n    net.parameters(), lr=0.1,\n)  # again, after the model"


GROUPS = """
opt = torch.optim.SGD([{"params": [net.weight], "weight_decay": 0.1}, {"params": [net.bias]}], lr=0.1)
sched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.9)
"""
MADE = {
    "written": (
        GROUPS.replace("[net.weight]", "[p for p in net.parameters() if p.dim() > 1]"),
        "again, after the model",
    ),
    "by a function": (
        "def make(net):" + GROUPS.replace("\n", "\n    ") + "return opt, sched\nopt, sched = make(net)",
        "again, after the model, with the 2 groups that it had",
    ),
    "by a function that is given it": (
        (
            "def make(of): return torch.optim.SGD([{'params': [of.weight]}, {'params': [of.bias]}], lr=0.1)\n"
            "opt = make(net)\nsched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.9)"
        ),
        "again, after the model",
    ),
}


@pytest.mark.parametrize("way", MADE)
def test_groups_are_kept_or_told(way):
    made, comment = MADE[way]
    (finding,) = findings_in(MODEL, made, TRAIN, MODEL, TRAIN, slug="optimizer-of-another-model")
    assert finding.fix.endswith(f"  # {comment}")
    assert findings_in(MODEL, made, TRAIN, MODEL, finding.fix, TRAIN, fails=False) == []


LEARNER = """
import copy
class Learner:
    def __init__(self, model, opt): self.model, self.opt = copy.deepcopy(model), opt
    def one_batch(self):
        self.opt.zero_grad()
        ((self.model(x) - y) ** 2).mean().backward()
        self.opt.step()
    def fit(self, turns):
        for _ in range(turns): self.one_batch()
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
learner = Learner(net, opt)
"""


def test_what_is_stepped_is_made_anew():
    (finding,) = findings_in(MODEL, LEARNER, "learner.fit(3)", slug="optimizer-of-another-model")
    written = "torch.optim.SGD(learner.model.parameters(), lr=0.1, momentum=0.9)"
    assert (finding.subject, finding.fix) == ("learner.opt", f"learner.opt = {written}  # again, after the model")
    assert findings_in(MODEL, LEARNER, finding.fix, "learner.fit(3)", fails=False) == []


FOUND_BY_HAND = """
for step in range(5):
    for g in opt.param_groups:
        g["lr"] = 1e-4 * 1.5 ** step
    opt.zero_grad()
    ((net(x) - y) ** 2).mean().backward()
    opt.step()
opt.param_groups[0]["lr"] = 0.3
"""


def test_the_rate_that_was_set_by_hand_is_kept_and_a_group_is_no_name():
    plain = "opt = torch.optim.SGD(net.parameters(), lr=1e-4)"
    train = TRAIN.replace("    sched.step()\n", "")
    (finding,) = findings_in(MODEL, plain, FOUND_BY_HAND, MODEL, train, slug="optimizer-of-another-model")
    assert "`g`" not in finding.message
    assert finding.fix == "opt = torch.optim.SGD(net.parameters(), lr=0.3)  # again, after the model"


BY_HAND = """
rate = 0.1
opt = {}
for step in range(3):
    opt.zero_grad()
    ((net(x) - y) ** 2).mean().backward()
    opt.step()
    for g in opt.param_groups:
        {}
"""
WRITTEN = "torch.optim.SGD(net.parameters(), lr=0.1)"


@pytest.mark.parametrize(
    ("made", "line", "fix"),
    [
        (WRITTEN, "g['lr'] *= 0.5", "SGD(net.parameters(), lr=0.0125)"),
        (WRITTEN, "g['lr'] -= 0.02", "SGD(net.parameters(), lr=0.04)"),
        (WRITTEN, "g.update(lr=g['lr'] / 2)", "SGD(net.parameters(), lr=0.0125)"),
        (WRITTEN, "g.update({'lr': 0.03})", "SGD(net.parameters(), lr=0.03)"),
        (WRITTEN, "g |= {'lr': 0.03}", "SGD(net.parameters(), lr=0.03)"),
        (WRITTEN, "g['lr'], g['momentum'] = 0.03, 0.5", "SGD(net.parameters(), lr=0.03)"),
        (WRITTEN, "key = 'lr'; g[key] = 0.03", "SGD(net.parameters(), lr=0.03)"),
        (WRITTEN, "pass", "SGD(net.parameters(), lr=0.1)"),
        ("torch.optim.SGD(net.parameters(), 0.1)", "g['lr'] *= 0.5", "SGD(net.parameters(), 0.0125)"),
        ("torch.optim.Adam(net.parameters())", "g['lr'] = 0.03", "Adam(net.parameters(), lr=0.03)"),
        ("torch.optim.Adam(net.parameters(), eps=0.1,)", "g['lr'] = 0.03", "Adam(net.parameters(), eps=0.1, lr=0.03)"),
        ("torch.optim.Adam(net.parameters())", "g['eps'] = 0.03", "Adam(net.parameters())"),
        ("torch.optim.SGD(net.parameters(), lr=rate)", "rate *= 0.5; g['lr'] = rate", "SGD(net.parameters(), lr=rate)"),
        ("torch.optim.SGD(net.parameters(), lr=rate)", "g['lr'] *= 0.5", "SGD(net.parameters(), lr=0.0125)"),
        ("torch.optim.SGD(net.parameters(), lr=rate)", "pass", "SGD(net.parameters(), lr=rate)"),
        (
            "torch.optim.SGD(\n    net.parameters(),  # é\n    lr=0.1, momentum=0.1)",
            "g['lr'] *= 0.5",
            "SGD(\n    net.parameters(),  # é\n    lr=0.0125, momentum=0.1)",
        ),
        (
            "torch.optim.SGD([{'params': net.parameters(), 'lr': 0.1}], lr=1)",
            "g['lr'] *= 0.5",
            "SGD([{'params': net.parameters(), 'lr': 0.1}], lr=1)",
        ),
    ],
)
def test_a_rate_that_went_down_by_hand_stays_there(made, line, fix):
    train = TRAIN.replace("    sched.step()\n", "")
    (finding,) = findings_in(MODEL, BY_HAND.format(made, line), MODEL, train, slug="optimizer-of-another-model")
    assert finding.fix == f"opt = torch.optim.{fix}  # again, after the model"
    assert not findings_in(MODEL, f"rate = 0.1\n{finding.fix}", train, slug="optimizer-of-another-model", fails=False)
