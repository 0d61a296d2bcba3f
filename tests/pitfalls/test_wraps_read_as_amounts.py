"""Small whole numbers that wrap: mistakes where the text reads an amount, a hint where it may go round on purpose."""

import pytest

from tests.cells import findings_in

# ruff: noqa: E501

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
        "d = a - b\nm = d.type(torch.FloatTensor)",
        "ft = torch.float32\nd = a - b\nm = d.to(ft)",
        "d = a - b\nm = d.sum().item() / d.numel()",
        "d = a - b\nmotion = d > 30",
        "def diff(p, q):\n    return p - q, 1\nd, n = diff(a, b)\nm = d.float()",
        "def diff(p, q):\n    return {'d': p - q, 'q': q}\nout = diff(a, b)\nm = out['d'].float()",
        "rows = [a - b for _ in range(2)]\nm = torch.stack(rows).float()",
        "rows = []\nrows.append(a - b)\nm = torch.stack(rows).float()",
        "out = {}\nout['d'] = a - b\nm = out['d'].float().mean()",
        "if a.sum() > 0:\n    d = a - b\n    m = d.float().mean()",
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
        "lost = int(now - last)",
        "n = (a + b).sum()",
        "d = {'x': a - b, 'y': a}\nm = d['y'].float()",
        "c, d = a - b, b\nm = d.float()",
        "def f(a, b):\n    return a - b, b\nc, d = f(a, b)\nm = d.float()",
        "def f(a, b):\n    return a - b, b\nm = f(a, b)[1].float()",
        "c = (a - b, b)\nm = c[-1].float()",
        "c = [(a - b, b)]\nfor d, e in c:\n    m = e.float()",
        "d = {'x': a}\nd['y'] = a - b\nm = d['x'].float()",
        "letter = (a - 48) > 9",
        "late = (now - last) > 30",
        "late = (now - last).item() / 10",
        "newer = (a - b) > 127",
        "h = a + 64\nm = h.float() * (360 / 256)",
        "h = a + 100\nf = h.float()\nm = torch.cos(f / 128)",
        "h = a + 100\nm = h.float() / 256",
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
        ("def dec(c, b):\n    c -= b\n    return c", "c = a + b"),
        ("def dec(c, b):\n    return torch.sub(c, b)", "c = a.add(b)"),
        ("def dec(c, b):\n    return c - b", "c = a.clone()\nc += b", "d = dec(c, b)"),
    ],
)
def test_what_is_taken_back(cells):
    assert severities(*cells) == set()


def test_what_is_taken_back_and_measured_too_is_a_hint():
    enc = "def enc(m, b):\n    out = m + b\n    return out\ndef dec(out, b):\n    return (out - b).clone()"
    assert severities(enc, "c = enc(a, b)\nm = c.float().mean()") == {"hint"}


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
        "total = frames[0]\nfor frame in frames[1:]:\n    total = total + frame\nm = total / 12",
    ],
)
def test_turns_of_a_loop(cell):
    assert severities(LOADERS, cell) == {"error"}


def test_an_entry_of_a_list_may_have_been_another():
    assert severities(LOADERS, "m = blend(frames)") == {"hint"}


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


ONLY = """
import contextlib
from torch.utils.data import BatchSampler, DataLoader, SubsetRandomSampler, TensorDataset
rows, t = torch.randint(0, 256, (64, 8), dtype=torch.uint8), torch.zeros(64)
data = TensorDataset(rows, t)
class Dim(DataLoader):
    def __iter__(self):
        yield from ((x // 4, t) for x, t in super().__iter__())
def check(x):
    if x.max() > 127:
        raise ValueError
def dim_(x):
    x.floor_divide_(4)
def fill(x):
    x.fill_(200)
def spoil():
    rows.fill_(200)
def only(loader):
    m = 0
    for x, t in loader:
        {before}
        b = x * 2
        m += b.float().mean()
"""


def of_only(cell="only(loader)", before="pass", loader="DataLoader(data, batch_size=8)", rows=""):
    return severities(ONLY.replace("{before}", before) + f"{rows}\nloader = {loader}", cell)


@pytest.mark.parametrize("loader", ["DataLoader(data, 8, shuffle=True)", "DataLoader(data, 10, True, drop_last=True)"])
def test_rows_of_a_loader(loader):
    assert of_only(loader=loader) == {"error"}


@pytest.mark.parametrize(
    ("loader", "rows"),
    [
        ("DataLoader(data, batch_sampler=BatchSampler(SubsetRandomSampler(range(32)), 8, False))", "rows[:32] //= 4"),
        ("Dim(data, batch_size=8)", ""),
        ("DataLoader(data, 10, shuffle=True, drop_last=True)", "rows //= 2; rows[-1] = 200"),
        ("DataLoader(data, 10, drop_last=True)", "rows //= 2; rows[-1] = 200"),
    ],
)
def test_rows_that_a_loader_does_not_hand_out(loader, rows):
    assert of_only(loader=loader, rows=rows) == set()


@pytest.mark.parametrize("before", ["print(x.shape)", "assert x.dtype is torch.uint8", "f = x.float(); f //= 4"])
def test_a_loop_that_came_to_the_line(before):
    assert of_only(before=before) == {"error"}
    assert of_only("try:\n    only(loader)\nexcept KeyboardInterrupt:\n    pass", before=before) == {"error"}


@pytest.mark.parametrize(
    ("before", "cell"),
    [
        ("assert x.max() < 128", "try:\n    only(loader)\nexcept AssertionError:\n    pass"),
        ("check(x)", "try:\n    only(loader)\nexcept ValueError:\n    pass"),
        ("check(x)", "with contextlib.suppress(ValueError):\n    only(loader)"),
        ("pass", "if rows.sum() < 0:\n    only(loader)"),
        ("dim_(x)", "only(loader)"),
        ("torch.bitwise_and(x, 63, out=x)", "only(loader)"),
        ("v = x.view(-1); v //= 4", "only(loader)"),
        ("kept['x'] = x; dim_kept()", "kept = {}\ndef dim_kept():\n    kept['x'] //= 4\nonly(loader)"),
    ],
)
def test_a_loop_that_may_not_have_come_to_the_line_or_changed_the_batch(before, cell):
    assert of_only(cell, before) == set()


@pytest.mark.parametrize("late", ["fill(rows)", "spoil()", "rows.view(-1).fill_(200)", "data.tensors[0].fill_(200)"])
def test_rows_that_were_others_by_then(late):
    assert of_only(f"only(loader); {late}", rows="rows //= 2") == set()


@pytest.mark.parametrize(
    "cell",
    [
        "parity = frames[0]\nfor f in frames[1:]:\n    parity = parity + f",
        "def checksum(blocks):\n    s = blocks[0]\n    for b in blocks[1:]:\n        s = s + b\n    return s\nc = checksum(frames)",
        "total = frames[0].clone()\nfor f in frames[1:]:\n    total += f",
    ],
)
def test_sums_that_nobody_reads_as_amounts(cell):
    assert severities(LOADERS, cell) == {"hint"}


@pytest.mark.parametrize(
    "cell",
    [
        "if a.sum() < 0:\n    d = a - b\n    m = d.float().mean()",
        "try:\n    1 / 0\n    d = a - b\n    m = d.float().mean()\nexcept ZeroDivisionError:\n    pass",
        "def go(a, b):\n    d = a - b\n    yield d.float().mean()\ng = go(a, b)",
        "def dim(t):\n    t.floor_divide_(200)\ndef go(a):\n    x = a.clone()\n    dim(x)\n    y = x + 60\n    return y.float()\ngo(a)",
        "def go(a):\n    x = a.clone()\n    v = x.view(-1)\n    v //= 4\n    y = x + 60\n    return y.float()\ngo(a)",
    ],
)
def test_lines_that_may_not_have_run_or_had_other_numbers(cell):
    assert severities(cell) == set()


@pytest.mark.parametrize(
    ("cell", "severity"),
    [
        ("def enc(m):\n    return m + b\nc = enc(a)\nm = c.float().mean(), c.float().std()", "hint"),
        ("def mixed(m, k):\n    return torch.add(m, k)\nkey = b\nc = mixed(a, key)\nm = c.float().mean()", "hint"),
        ("cipher = a + b\nm = cipher.float().mean()", "hint"),
        ("key_frame = b\nc = a - key_frame\nm = c.float().mean()", "error"),
        ("def decoded(m):\n    return m + 100\nm = decoded(a).float().mean()", "error"),
        ("key = 3\nc = a * key\nm = c.float().mean()", "error"),
    ],
)
def test_what_a_name_calls_a_cipher_is_a_hint(cell, severity):
    assert severities(cell) == {severity}
