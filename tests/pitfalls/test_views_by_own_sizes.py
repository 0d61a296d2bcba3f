"""Views that the text or the sizes alone prove: clips to pictures, tokens to maps, heads; and what mends them."""

import pytest

from tests.cells import findings_in

SETUP = """\
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
def cut(x):
    {}
"""


def found(body, given):
    return findings_in(SETUP.format(body), f"seen = cut({given})", slug="view-where-permute-meant", fails=False)


CLIPS = "B, T, H, W, C = x.shape\n    return x{}"
ROWS = "b, c, t = x.shape\n    return x{}"
MAPS = "b, c, h, w = 2, 5, 6, 9\n    return x.softmax(-1){}"


@pytest.mark.parametrize(
    ("body", "sizes", "mended"),
    [
        (CLIPS.format(".reshape(B * T, C, H, W)"), "2, 4, 6, 5, 3", ".permute(0, 1, 4, 2, 3).reshape(B * T, C, H, W)"),
        (CLIPS.format(".reshape(B * T, C, H, W)"), "2, 1, 6, 5, 3", ".permute(0, 1, 4, 2, 3).reshape(B * T, C, H, W)"),
        ("return x.view(-1, 3, 6, 5)", "2, 4, 6, 5, 3", ".permute(0, 1, 4, 2, 3).reshape(-1, 3, 6, 5)"),
        ("return x.view(2, 4, 3, 6, 5)", "8, 6, 5, 3", ".permute(0, 3, 1, 2).reshape(2, 4, 3, 6, 5)"),
        ("return x.reshape(3, 6, 5)", "1, 6, 5, 3", ".squeeze(0).permute(2, 0, 1)"),
        (ROWS.format(".reshape(b * t, c)"), "4, 6, 5", ".transpose(1, 2).reshape(b * t, c)"),
        (ROWS.format(".reshape(x.size(0) * t, -1)"), "4, 6, 5", ".transpose(1, 2).reshape(x.size(0) * t, -1)"),
        (ROWS.format(".reshape(-1, c)"), "4, 6, 5", ".transpose(1, 2).reshape(-1, c)"),
        (MAPS.format(".view(b, c, h, w)"), "2, 54, 5", ".transpose(1, 2).reshape(b, c, h, w)"),
        (MAPS.format(".view(-1, c, h, w)"), "2, 54, 5", ".transpose(1, 2).reshape(-1, c, h, w)"),
    ],
)
def test_axes_that_would_have_to_move(body, sizes, mended):
    (finding,) = found(body, f"torch.rand({sizes})")
    assert finding.severity == "warning"
    assert finding.fix.partition("  #")[0].removeprefix("return ").endswith(mended)
    assert not found(
        f"{body.rpartition('.view' if '.view' in body else '.reshape')[0]}{mended}", f"torch.rand({sizes})"
    )


def test_arrays_are_moved_as_numpy_names_it():
    setup = SETUP.format("return torch.from_numpy(x.reshape(-1, 3, 6, 5))") + "clips = np.ones((2, 4, 6, 5, 3))"
    (finding,) = findings_in(setup, "seen = cut(clips)", slug="view-where-permute-meant", fails=False)
    assert "x.transpose(0, 1, 4, 2, 3).reshape(-1, 3, 6, 5)" in finding.fix


AT_ONCE = "q, k, v = lin(x).reshape(B, T, 3, 3, 4).permute(2, 0, 3, 1, 4)"
CHUNKS = """q, k, v = lin(x).chunk(3, dim=-1)
    q = q.view(B, T, 3, -1).transpose(1, 2)
    k = k.view(B, T, 3, -1).transpose(1, 2)
    v = v.view(B, T, 3, -1).transpose(1, 2)"""
BY_HAND = "weights = (q @ k.transpose(-2, -1)).softmax(-1)\n    out = weights @ v"
FUSED = "out = F.scaled_dot_product_attention(q, k, v, is_causal=True).contiguous()"
NAMED = "out = torch.einsum('bhqk,bhkd->bhqd', torch.einsum('bhqd,bhkd->bhqk', q, k), v)"


def of_heads(split, product, merged):
    setup = SETUP.format(f"B, T, C = x.shape\n    {split}\n    {product}\n    return {merged}")
    calls = "with torch.no_grad():\n    seen = cut(torch.randn(2, 7, 12))"
    return findings_in(f"{setup}\nlin = nn.Linear(12, 36)", calls, slug="view-where-permute-meant", fails=False)


@pytest.mark.parametrize("split", [AT_ONCE, CHUNKS])
@pytest.mark.parametrize("product", [BY_HAND, FUSED, NAMED])
@pytest.mark.parametrize("sizes", ["B, T, C", "B, T, 3 * 4", "B, T, -1"])
def test_heads_without_gradients(split, product, sizes):
    (finding,) = of_heads(split, product, f"out.reshape({sizes})")
    assert "positions and heads are mixed" in finding.message
    assert finding.fix.startswith(f"out.transpose(1, 2).reshape({sizes})")


FLAT = "q = lin(x).view(6, 7, 12)\n    out = torch.bmm(torch.bmm(q, q.mT), q)"


def test_heads_beside_the_batch():
    (finding,) = of_heads(FLAT, "pass", "out.view(B, T, 36)")
    assert finding.fix.startswith("out.view(B, 3, 7, 12).transpose(1, 2).reshape(B, T, 36)")


@pytest.mark.parametrize(
    ("split", "product", "merged"),
    [
        (AT_ONCE, BY_HAND, "out.transpose(1, 2).reshape(B, T, C)"),
        (CHUNKS, FUSED, "out.permute(0, 2, 1, 3).flatten(2)"),
        (AT_ONCE, NAMED.replace("bhqd'", "bqhd'"), "out.reshape(B, T, C)"),
        (AT_ONCE, BY_HAND, "out.reshape(B * 3, T, 4)"),
        (FLAT, "pass", "out.view(B, 3, T, 12).transpose(1, 2).reshape(B, T, 36)"),
        (FLAT, "out = out.transpose(0, 1)", "out.reshape(7, B, 36)"),
        (FLAT, "out = lin(x).view(B, 7, 3, 12).transpose(0, 1)", "out.reshape(7, B, 36)"),
    ],
)
def test_heads_that_are_brought_back(split, product, merged):
    assert not of_heads(split, product, merged)


SHIFTED = """b, h, i, j = x.shape
    padded = {}
    padded = padded.view(b, h, j + 1, i)
    return padded[:, :, 1:].view(b, h, i, j)"""


@pytest.mark.parametrize("padded", ["torch.cat([torch.zeros(b, h, i, 1), x], dim=-1)", "F.pad(x, (1, 0))"])
@pytest.mark.parametrize("given", ["torch.rand(2, 3, 7, 9)", "nn.Linear(9, 9)(torch.rand(2, 3, 7, 9))"])
def test_rows_that_are_shifted_against_each_other(padded, given):
    assert not found(SHIFTED.format(padded), given)


@pytest.mark.parametrize(
    ("body", "sizes"),
    [
        (CLIPS.format(".permute(0, 1, 4, 2, 3).reshape(B * T, C, H, W)"), "2, 4, 6, 5, 3"),
        (CLIPS.format(".reshape(B * T, H * W, C)"), "2, 4, 6, 5, 3"),
        (CLIPS.format(".view(B * T, H, W, C).movedim(-1, 1).reshape(B, T, C, H, W)"), "2, 4, 6, 5, 3"),
        (ROWS.format(".reshape(b * c, t)"), "4, 6, 5"),
        (ROWS.format(".reshape(b * t, c)"), "4, 5, 5"),
        (ROWS.format(".transpose(0, 1).reshape(c, b * t)"), "4, 6, 5"),
        (MAPS.format(".view(b, h, w, c)"), "2, 54, 5"),
        ("return x.view(2, 4, 3, 4)", "2, 12, 4"),
        (
            "return x.view(-1, 4, 4, 6).view(2, 2, 3, 4, 4, 6).permute(0, 1, 3, 2, 4, 5).reshape(2, 8, 12, 6)",
            "12, 16, 6",
        ),
        ("x = x.view(2, 3, 2, 5, 7)\n    return x.transpose(1, 2).contiguous().view(2, -1, 5, 7)", "2, 6, 5, 7"),
        ("return (x @ torch.rand(4, 5)).transpose(1, 2).reshape(2, 10, 30)", "2, 6, 10, 4"),
    ],
)
def test_axes_that_are_moved_split_or_merged_with_a_neighbour(body, sizes):
    assert not found(body, f"torch.rand({sizes})")
