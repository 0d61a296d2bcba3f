"""Maps and heads that a view brings to (batch, time, …) inside of a module, and what is said of their axes."""

import pytest

from tests.cells import findings_in

SETUP = """\
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.pool = nn.Conv2d(2, 8, 3, padding=1), nn.BatchNorm2d(8), nn.MaxPool2d((1, 2))
        self.read, self.gru = nn.LazyLinear(5), nn.GRU(136, 5, batch_first=True)
        self.steps, self.cell = nn.LazyConv1d(5, 3), nn.GRUCell(136, 5)
        self.q, self.k, self.v, self.out = (nn.Linear(12, 12) for _ in range(4))
    def forward(self, x):
        {}
net = nn.Sequential(Net())"""
MAPS = "h = F.relu(self.norm(self.conv(x)))\n        B, C, T, W = h.shape\n        return {}"
HEADS = """B, T, _ = x.shape
        q, k, v = (f(x).view(B, T, 3, 4).transpose(1, 2) for f in (self.q, self.k, self.v))
        h = {}
        return self.out({})"""
BY_HAND = "(q @ k.transpose(-2, -1)).softmax(-1) @ v"
FUSED = "F.scaled_dot_product_attention(q, k, v)"
AGAIN = """B, L, _ = x.shape
        H = 3
        queries = self.q(x).view(B, L, H, -1)
        queries = {}
        return queries.mean(2)"""


def found(body, shape):
    code = f"loss = net(torch.rand({shape})).square().mean()\nloss.backward()"
    return findings_in(SETUP.format(body), code, slug="view-where-permute-meant", fails=False)


@pytest.mark.parametrize(
    ("body", "shape", "after"),
    [
        (MAPS.format("self.read(h.view(B, T, C * W))"), "4, 2, 30, 17", "(4, 30, 136)"),
        (MAPS.format("self.gru(h.view(B, T, -1))[0]"), "4, 2, 30, 17", "(4, 30, 136)"),
        (MAPS.format("self.gru(h.view(B, T, -1).transpose(0, 1))[0]"), "4, 2, 30, 17", "(4, 30, 136)"),
        (MAPS.format("self.steps(h.view(B, T, -1).transpose(1, 2))"), "4, 2, 30, 17", "(4, 30, 136)"),
        (MAPS.format("[self.cell(one) for one in h.view(B, T, -1).unbind(1)][-1]"), "4, 2, 30, 17", "(4, 30, 136)"),
        (MAPS.format("self.read((h.view(B, T, -1) + 1).mean(1))"), "4, 2, 30, 17", "(4, 30, 136)"),
        (MAPS.format("self.read(self.pool(h).reshape(B, T, -1))"), "4, 2, 30, 16", "(4, 30, 64)"),
        (HEADS.format(BY_HAND, "h.reshape(B, T, -1)"), "4, 10, 12", "(4, 10, 12)"),
        (HEADS.format(FUSED, "h.reshape(B, T, 12)"), "4, 10, 12", "(4, 10, 12)"),
    ],
)
def test_axes_that_are_merged_past_another(body, shape, after):
    (finding,) = found(body, shape)
    assert f"to {after} without moving a number: the axes 1 and 2 are mixed" in finding.message
    assert finding.fix == "# .transpose(1, 2).flatten(2) in place of the view"


def test_a_view_of_a_view():
    (finding,) = found(AGAIN.format("queries.view(B, H, L, -1)"), "5, 24, 12")
    assert (finding.subject, finding.fix) == ("queries", "queries = queries.transpose(1, 2)")
    assert "`queries.view(B, H, L, -1)` takes `queries` from (5, 24, 3, 4) to (5, 3, 24, 4)" in finding.message
    assert not found(AGAIN.format("queries.transpose(1, 2)"), "5, 24, 12")


GROUPS = """h = self.conv(x)
        g = h.reshape(len(h), 4, -1)
        return {}"""


@pytest.mark.parametrize(
    "made",
    [
        "self.read(((g - g.mean(-1, keepdim=True)) / (g.std(-1, keepdim=True) + 1e-5)).flatten(1))",
        "self.read(g.norm(dim=-1))",
        "self.read(F.layer_norm(g, (g.shape[-1],)).flatten(1))",
        "self.steps(g.softmax(-1).view(len(h), 8, -1))",
        "g @ g.transpose(1, 2)",
        "g",
    ],
)
def test_groups_as_many_as_rows(made):
    assert not found(GROUPS.format(made), "6, 2, 4, 6")


def test_groups_that_a_layer_reads_may_be_meant():
    (finding,) = found(GROUPS.format("self.read(g)"), "6, 2, 4, 6")
    assert finding.severity == "hint"


@pytest.mark.parametrize(
    ("body", "shape"),
    [
        (MAPS.format("self.read(h.transpose(1, 2).reshape(B, T, C * W))"), "4, 2, 30, 17"),
        (MAPS.format("self.read(h.permute(0, 2, 1, 3).flatten(2))"), "4, 2, 30, 17"),
        (MAPS.format("self.read(h.view(B, C, T * W))"), "4, 2, 30, 17"),
        (MAPS.format("self.read(h.view(B, C * T, W))"), "4, 2, 30, 17"),
        (MAPS.format("self.read(h.view(B, T, C * W))"), "4, 2, 8, 17"),  # as many steps as channels
        (HEADS.format(BY_HAND, "h.transpose(1, 2).reshape(B, T, 12)"), "4, 10, 12"),
        (HEADS.format(FUSED, "h.transpose(1, 2).flatten(2)"), "4, 10, 12"),
    ],
)
def test_axes_that_are_moved_or_stay(body, shape):
    assert not found(body, shape)
