"""Fixes that name all that has to be changed, and one finding for one cause."""

import pytest

from tests.cells import findings_in

START = """\
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
net = nn.Linear(4, 5)
half = torch.rand(2, 4).half()"""
WRITES = "def fill(E):\n    E[:, 0::2] = 0\n    E[:, 1::2] = 1\n    E.mul_(2)\n    {}\nfill(net.weight)"


def of(slug, *cells):
    return [one for one in findings_in(START, *cells, fails=None) if one.slug == slug]


@pytest.mark.parametrize("last", ["E.requires_grad = False", "x = E + 1", "other = [0]; other[0] = 1"])
def test_all_changes_of_a_leaf_stand_in_the_block(last):
    (finding,) = of("inplace-on-leaf", WRITES.format(last))
    assert finding.fix == "with torch.no_grad():\n    E[:, 0::2] = 0\n    E[:, 1::2] = 1\n    E.mul_(2)"


@pytest.mark.parametrize(
    ("line", "number"),
    [
        ("half.masked_fill(half > 0.5, -1e10)", "-1e10"),
        ("half.masked_fill(half > 0.5, -100000)", "-100000"),
        ("low = -1e9\nhalf.masked_fill(half > 0.5, low)", "low"),
    ],
)
def test_the_number_that_float16_refuses_is_quoted_as_written(line, number):
    (finding,) = of("half-overflow", line)
    assert finding.fix.endswith(f"in place of {number}")


NLL = "aux = net(torch.rand(3, 4)).softmax(1)\nloss = F.nll_loss(aux, torch.tensor([0, 1, 2]))\n"


def test_a_loss_and_the_sum_that_it_is_part_of_are_one_mistake():
    setup = "opt = torch.optim.SGD(net.parameters(), lr=0.1)"
    train = f"{setup}\n{NLL}whole = loss + net.weight.square().mean()\nwhole.backward()\nopt.step()"
    (finding,) = of("probabilities-in-nll-loss", train)
    assert finding.line == 3


@pytest.mark.parametrize(
    ("target", "also"),
    [("[1, 5, 2]", "# or, if they go from 1 to 5: stars = stars - 1"), ("[1, 6, 2]", "")],
)
def test_classes_that_are_counted_from_one(target, also):
    code = f"stars = torch.tensor({target})\nF.cross_entropy(net(torch.rand(3, 4)), stars)"
    (finding,) = of("integer-one-hot-target", code)
    first, _, second = finding.fix.partition("\n")
    assert first.endswith("must go from 0 to 4")
    assert second == also


@pytest.mark.parametrize(("shape", "mixed"), [("(2, 4, 9, 8)", "positions and heads"), ("(2, 4, 8, 9)", "rows and")])
def test_what_a_view_mixes_is_called_by_its_axes(shape, mixed):
    (finding,) = of("view-where-permute-meant", f"t = torch.rand(2, 9, 4, 8)\nu = t.view{shape}")
    assert mixed in finding.message


MODEL = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 5)
    def forward(self, x):
        out = self.fc(x)
        return {}
model = Net()
def attend(a):
    return {}
loss = nn.CrossEntropyLoss()(model(torch.rand(3, 4)), torch.tensor([0, 1, 2]))
loss.backward()"""


@pytest.mark.parametrize("text", ["F.softmax(out, dim=1)", "out.softmax(dim=1)", "torch.softmax(out, 1)"])
def test_the_first_softmax_is_told_where_the_text_has_only_one(text):
    (finding,) = of("softmax-before-cross-entropy", MODEL.format(text, "a"))
    assert finding.fix == f"return out  # line 7, in place of {text}: the loss wants raw scores"
    assert f"(`{text}`, line 7)" in finding.message
    (finding,) = of("softmax-before-cross-entropy", MODEL.format(text, "a.softmax(0)"))
    assert finding.fix.startswith("return out")  # the model gives it back, whatever else there is
    (finding,) = of("softmax-before-cross-entropy", MODEL.format(f"({text} * 1.0)", "a.softmax(0)"))
    assert finding.fix.startswith("# give the loss the raw scores")
    assert not of("softmax-before-cross-entropy", MODEL.format("out", "a.softmax(0)"))


LOOP = """\
model = nn.Sequential(nn.Linear(4, 8), {}nn.Linear(8, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.rand(65, 4), torch.rand(65, 1)), batch_size=16)
for x, y in loader:
    opt.zero_grad()
    F.mse_loss(model(x), y).backward()
    opt.step()"""


def test_a_last_batch_that_made_no_step():
    assert not of("ragged-last-batch", LOOP.format("nn.BatchNorm1d(8), "))
    assert of("ragged-last-batch", LOOP.format(""))
