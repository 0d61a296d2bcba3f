"""Results that `forward` leaves on the module with their history."""

import pytest

from tests.cells import findings_in

SLUG = "graph-retained-in-list"
NET = """\
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(8, 64), nn.Linear(64, 1)
        self.seen = None
    def forward(self, x):
        h = self.body(x).relu()
        self.seen = h
        return self.head(h)
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.01)"""
FIT = """\
for _ in range(3):
    opt.zero_grad()
    loss = net(torch.randn(32, 8)).pow(2).mean()
    loss.backward()
    opt.step()"""


def found(*cells, slug=SLUG):
    return findings_in(*cells, slug=slug, min_bytes=0, fails=False)


def test_what_nobody_reads_is_told_once():
    (finding,) = found(NET, FIT, FIT)
    assert (finding.subject, finding.severity, finding.line) == ("net.seen", "hint", 10)
    assert finding.fix == "self.seen = h.detach()"
    assert not found(NET.replace("self.seen = h", finding.fix), FIT, FIT)
    assert "no cell so far reads it" in finding.message
    imported = "import copy\nfrom statistics import mean\nearlier = copy.deepcopy(net)\naverage = mean([1.0])"
    assert len(found(NET, f"{imported}\n{FIT}\nrate = getattr(net, 'rate', None)", "1 + 1", "2 + 1")) == 1


@pytest.mark.parametrize(
    ("net", "fit"),
    [
        (NET, FIT.replace(".mean()", ".mean() + net.seen.abs().mean()")),
        (NET, f"{FIT}\nprint(net.seen.mean())"),
        (NET, f"{FIT}\ndef look(model):\n    return getattr(model, 'seen')"),
        (NET.replace("self.head(h)", "self.head(self.seen)"), FIT),
        (
            NET,
            f"{FIT}\nfrom statistics import mean\ndef look(model):\n    return mean(model)\nif not opt:\n    look(net)",
        ),
        (NET, f"import statistics\n{FIT}\nif not opt:\n    statistics.mean(net)"),
        (NET, f"{FIT}\ntotal = len(vars(net))"),
        (NET, f"{FIT}\nkept = getattr(net, 'se' + 'en')"),
        (NET, "net(torch.randn(32, 8));"),
        (NET.replace("self.seen = h", "self.seen = h.shape"), FIT),
    ],
)
def test_what_is_read_or_has_no_history_is_silent(net, fit):
    assert not found(net, fit, f"{fit}\n")


@pytest.mark.parametrize("reads", ["net.seen.mean()", "torch.autograd.grad(net(torch.randn(2, 8)).sum(), net.seen)"])
def test_what_the_next_cell_reads_is_silent(reads):
    assert not found(NET, FIT)
    assert not found(NET, FIT, f"value = {reads}", FIT)
