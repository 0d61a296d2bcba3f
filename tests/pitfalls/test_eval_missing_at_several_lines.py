"""Several lines of a cell that ask one model in train mode are one mistake."""

import pytest

from tests.cells import a_notebook

SETUP = """\
import torch
from torch import nn
torch.manual_seed(0)
net, other = (nn.Sequential(nn.Linear(3, 4), nn.Dropout(), nn.Linear(4, 2)) for _ in range(2))
x, y = torch.randn(32, 3), torch.randint(0, 2, (32,))
opt = torch.optim.SGD([*net.parameters(), *other.parameters()], lr=0.1)
for _ in range(5):
    opt.zero_grad()
    (nn.functional.cross_entropy(net(x), y) + nn.functional.cross_entropy(other(x), y)).backward()
    opt.step()"""
ASKED = """\
with torch.no_grad():
    first = net(x[:1]){}
    second = {}(x[:2]){}
    third = net(x[:3]){}"""


def found(cell):
    with a_notebook() as notebook:
        notebook.run(SETUP)
        notebook.run(cell)
        assert notebook.errors == [None, None]
        findings = [f for run in notebook.runs for f in run.findings if f.slug == "eval-missing"]
    return [
        (f.line, f.subject, next((e.value for e in f.evidence if e.label == "also at lines"), "")) for f in findings
    ]


@pytest.mark.parametrize("end", ["", ".softmax(1)"])
def test_one_model_is_told_once_with_its_lines(end):
    assert found(ASKED.format(end, "net", end, end)) == [(2, "net", "3, 4")]


def test_each_model_is_told():
    assert found(ASKED.format("", "other", "", "")) == [(2, "net", "4"), (3, "other", "")]


ESTIMATE = """\
def get_batch():
    return torch.randn(8, 3), torch.randint(0, 2, (8,))
@torch.no_grad()
def estimate(turns=4):
    out = {{}}
    for split in ("train", "val"):
        losses = torch.zeros(turns)
        for k in range(turns):
            {}
            losses[k] = nn.functional.cross_entropy(net(xb), yb).item()
        out[split] = losses.mean().item()
    return out
shown = estimate()"""


@pytest.mark.parametrize("drawn", ["xb, yb = get_batch()", "xb, yb = torch.randn(8, 3), torch.randint(0, 2, (8,))"])
def test_batches_that_are_drawn_in_the_inner_loop_are_no_samples_of_one_input(drawn):
    assert found(ESTIMATE.format(drawn)) == [(10, "net", "")]
