"""Small whole numbers that wrap: mistakes where the text reads an amount, a hint where it may go round on purpose."""

import pytest

from tests.cells import findings_in

SETUP = """\
import torch
torch.manual_seed(0)
a = torch.randint(0, 256, (3, 16, 16), dtype=torch.uint8)
b = torch.randint(0, 256, (3, 16, 16), dtype=torch.uint8)
now, last = torch.tensor(3, dtype=torch.uint8), torch.tensor(250, dtype=torch.uint8)"""


def severities(*cells):
    found = findings_in(SETUP, *cells, slug="uint8-arithmetic-wraps", fails=False)
    return {one.severity for one in found}


@pytest.mark.parametrize(
    "cell",
    [
        "m = (a + b) // 2",
        "m = (a - b).cpu().float().mean()",
        "m = (a - b).numpy().astype(float).mean()",
        "m = torch.sum(a * b)",
        "m = (a * b).sum()",
        "m = torch.cat([a - b, b]).float()",
        "m = torch.maximum(a - b, b).float()",
        "d = {'x': a - b}\nm = d['x'].float().mean()",
        "d = a - b\nfor i, row in enumerate(d):\n    m = row.float().mean()",
        "d = a - b\nm = [row.float().mean() for row in d]",
        "d = a - b\nm = d.type_as(torch.ones(1))",
        "d = (a - b).to(dtype=torch.float32)",
        "m = (a - b).int().abs()",
        "m = (a.flip(0) - a).float()",
        "m = (a[..., 0] * 4).float()",
        "a += 40\nprint(a.float().mean())",
    ],
)
def test_what_is_read_as_an_amount(cell):
    assert severities(cell) == {"error"}


@pytest.mark.parametrize(
    "cell",
    [
        "c = a + b\nn = torch.bincount(c.int().flatten(), minlength=256)",
        "c = a + b\nn = torch.histc(c.float(), 256)",
        "c = a + b\nn = torch.nn.functional.one_hot(c.long(), 256)",
        "f = a - b\ncost = torch.minimum(f.int(), 256 - f.int()).sum()",
        "lost = int(now - last)",
        "n = (a + b).sum()",
        "d = {'x': a - b, 'y': a}\nm = d['y'].float()",
        "c, d = a - b, b\nm = d.float()",
        "def f(a, b):\n    return a - b, b\nc, d = f(a, b)\nm = d.float()",
    ],
)
def test_what_may_go_round_on_purpose(cell):
    assert severities(cell) == {"hint"}


@pytest.mark.parametrize(
    "cells",
    [
        ("m = (a.float() + b) / 2", "d = a - b"),
        ("m = a.float()\nn = (m + b) / 2\nd = a - b",),
        ("def change(a, b):\n    return a.int() - b\nd = a + b",),
        ("def mix(a, b):\n    return (a.float() + b) / 2\ndef change(x, b):\n    return x - b\nd = change(a, b)",),
    ],
)
def test_the_opposite_of_something_else_takes_nothing_back(cells):
    assert severities(*cells) == {"hint"}


@pytest.mark.parametrize(
    "cells",
    [
        ("def enc(m, b):\n    return m + b\ndef dec(c, b):\n    return (c - b).reshape(3, 16, 16)", "c = enc(a, b)"),
        ("def enc(m):\n    return m + b\nc = enc(a)\nd = c - b",),
        ("enc = lambda m: m + b\ndec = lambda c: c - b\nd = dec(enc(a))",),
        ("c = a + b\nd = c - b",),
    ],
)
def test_what_is_taken_back(cells):
    assert severities(*cells) == set()


LOADERS = """
from torch.utils.data import DataLoader, TensorDataset
rows = torch.randint(0, 256, (12, 3, 4, 4), dtype=torch.uint8)
loader = DataLoader(TensorDataset(rows, torch.arange(12)), batch_size=4, shuffle=True)
frames = [one for one in rows]
def blend(frames):
    total = frames[0]
    for frame in frames[1:]:
        total = total + frame
    return total / len(frames)"""


@pytest.mark.parametrize(
    "cell",
    [
        "for b, t in loader:\n    b = (b - 128) / 128",
        "def fit(data):\n    for i, (b, t) in enumerate(data):\n        b = (b - 128) / 128\nfit(loader)",
        "m = blend(frames)",
        "total = frames[0]\nfor frame in frames[1:]:\n    total = total + frame\nm = total / 12",
    ],
)
def test_turns_of_a_loop(cell):
    assert severities(LOADERS, cell) == {"error"}


@pytest.mark.parametrize(
    "cell",
    [
        "for b, t in loader:\n    b = b.float()\n    b = (b - 128) / 128",
        "for b, t in loader:\n    b = b / 255 * 2 - 1",
        "for b, t in loader:\n    b[:] = 200\n    b = (b - 128) / 128",
        "for b, t in loader:\n    b.clamp_(128, 255)\n    b = (b - 128) / 128",
        "for b, t in loader:\n    if b.is_floating_point():\n        b = (b - 128) / 128",
        "for b, t in loader:\n    t = t - 128",
        "for b, t in loader:\n    b = (b - 128) / 128\n    break\nrows.clamp_(0, 100)",
        "total = frames[0].float()\nfor frame in frames[1:]:\n    total = total + frame\nm = total / 12",
        "small = [one // 16 for one in frames]\nm = blend(small)",
    ],
)
def test_turns_in_which_all_fits_or_nobody_knows(cell):
    assert severities(LOADERS, cell) == set()
