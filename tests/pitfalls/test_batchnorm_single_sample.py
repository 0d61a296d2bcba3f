"""Batches with one value per channel."""

import pytest
import torch
from torch import nn

from tests.cells import findings_in

SETUP = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
x, y = torch.randn(33, 4), torch.randint(0, 2, (33,))
net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
opt = torch.optim.SGD(net.parameters(), lr=.1)
def epoch(model, loader):
    for a, b in loader:
        opt.zero_grad()
        nn.functional.cross_entropy(model(a), b).backward()
        opt.step()
def loader(**options):
    return DataLoader(TensorDataset(x, y), batch_size=16, **options)
"""
CLASS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.ModuleDict({"norm": nn.BatchNorm2d(4)})
    def forward(self, x):
        return self.body["norm"](x)
model = Net()
out = model(torch.randn(1, 4, 1, 1))
"""
FOUND = {
    "last batch": (["epoch(net, loader())"], 12, "`net`|`model`", "drop_last"),
    "one sample": (["net(x[:1])"], 1, "`net`", "eval()"),
    "pooled to one pixel": ([CLASS], 7, "`self.body.norm` (BatchNorm2d)|`model.body.norm` (BatchNorm2d)", "eval()"),
    "by a function": (["m, v = torch.zeros(4), torch.ones(4)\nnn.functional.batch_norm(x[:1], m, v, training=True)"],
                      2, "BatchNorm", "eval()"),
}  # fmt: skip
QUIET = {
    "dropped": ["epoch(net, loader(drop_last=True))"],
    "in eval mode": ["net.eval()\nnet(x[:1])"],
    "positions count": ["nn.BatchNorm2d(3)(torch.randn(1, 3, 4, 4));"],
    "group norm": ["nn.GroupNorm(4, 4)(torch.randn(1, 4))"],
    "caught": ["try:\n    net(x[:1])\nexcept ValueError:\n    pass"],
    "without statistics in eval mode": ["nn.BatchNorm1d(4, track_running_stats=False).eval()(x[:1])"],
}


def found(*cells):
    return findings_in(SETUP, *cells, slug="batchnorm-single-sample")


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    cells, line, text, fix = FOUND[name]
    (finding,) = found(*cells)
    assert (finding.line, finding.severity) == (line, "error")
    assert any(part in finding.message for part in text.split("|"))
    assert fix in finding.fix


@pytest.mark.parametrize("name", QUIET)
def test_silent(name):
    assert found(*QUIET[name]) == []


def test_the_loader_is_named_that_gave_the_last_batch():
    made = "import torch.utils.data as data\nsmall = data.DataLoader(torch.rand(5, 4), batch_size=2)"
    loop = "opt = torch.optim.SGD(net.parameters(), lr=0.1)\nfor row in small:\n    net(row).sum().backward()"
    (finding,) = found(made, loop)
    assert finding.fix == (
        "small = data.DataLoader(torch.rand(5, 4), batch_size=2, drop_last=True)"
        "  # for small: its last batch had one sample"
    )


@pytest.mark.parametrize(
    ("call", "subject", "fix"),
    [
        ("pooled = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.InstanceNorm2d(4))\npooled(torch.randn(2, 4, 8, 8))",
         "pooled[1]", "nn.GroupNorm(1, 4)"),
        ("nn.functional.instance_norm(torch.randn(2, 3, 1))", "", "nn.functional.group_norm(x, 1)"),
        ("norm = nn.InstanceNorm1d(4)\nnorm(torch.randn(4, 1))", "norm",
         "nn.Sequential(nn.Unflatten(0, (1, 4)), nn.GroupNorm(1, 4), nn.Flatten(0, 1))"),
        ("norm = nn.InstanceNorm2d(1)\nnorm(torch.randn(2, 1, 1, 1))", "norm",
         "leave the normalisation out there: each sample has one number"),
    ],
)  # fmt: skip
def test_maps_of_one_place_are_refused_whatever_the_batch(call, subject, fix):
    (finding,) = found(call)
    assert (finding.severity, finding.subject, finding.fix.partition("  #")[0]) == ("hint", subject, fix)
    assert "more samples change nothing" in finding.message


@pytest.mark.parametrize("shape", [(8, 1), (8, 1, 1)])
def test_what_is_offered_for_one_sample_takes_it(shape):
    (finding,) = found(f"norm = nn.InstanceNorm{len(shape) - 1}d(8)\nnorm(torch.randn{shape})")
    layer = eval(finding.fix.partition("  #")[0], {"nn": nn})  # noqa: S307
    assert layer(torch.randn(shape)).shape == shape
