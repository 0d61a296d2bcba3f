"""Small whole numbers that wrap in functions: an error only where what was read is proven to be what is there now."""

import pytest

from tests.cells import findings_in

# ruff: noqa: E501

SETUP = """\
import numpy as np
import torch
torch.manual_seed(0)
img = torch.randint(0, 256, (8, 8), dtype=torch.uint8)
low = np.full((8, 8), 20, dtype=np.uint8)
pool, fs, d = torch.stack([img // 2, img]), [img // 4, img // 2], {"a": img // 4}
def m(x):
    y = x[x >= 0]
    return (y * 2).float().mean()
def last(fs):
    x = fs[-1]
    return (x * 2).float().mean()
def of(d):
    x = d["a"]
    return (x * 2).float().mean()
def load(i, out):
    out.copy_(img // 2 if i == 0 else img)
    return out
class Store:
    def __init__(self):
        self.data, self.raw = torch.stack([img // 2, img]), False
    def put(self, i, x):
        self.data[i] = x
    def get(self, i):
        return self.data[i]
    def keep(self, x):
        self.x = x
    def halve(self):
        self.x //= 2
    def toggle(self):
        self.raw = not self.raw
    def f(self, x):
        if self.raw:
            return (x * 2).float().mean()
        return 0
s = Store()
"""
RING = """\
ring = torch.zeros(4, 8, 8, dtype=torch.uint8)
for t in range(4):
    ring[t] = img // 2
    cur = ring[t]
    r = m(cur)
    ring[t] = img"""


def severities(cell):
    return {one.severity for one in findings_in(SETUP, cell, slug="uint8-arithmetic-wraps", fails=False)}


@pytest.mark.parametrize(
    "cell",
    [
        RING,
        "cur = pool[0]\nr = m(cur)\npool[0] = img",
        "cur = s.get(0)\nr = m(cur)\ns.put(0, img)",
        "buf = torch.empty_like(img)\nf = load(0, buf)\nr = m(f)\ng = load(1, buf)",
        "t = torch.from_numpy(low)\nr = m(t)\nlow[:] = 255",
        "x = img // 2\nr = m(x)\nx.data.copy_(img)",
        "x = img // 2\nr = m(x)\nx.numpy()[:] = 255",
        "r = last(fs)\nfs.append(img)",
        "r = last(fs)\nfs[:] = [img]",
        "other = fs\nr = last(fs)\nother.append(img)",
        "r = of(d)\nd.update(a=img)",
        "r = of(d)\nd.pop('a')\nd['a'] = img",
        "def go(fs, new):\n    x = fs[-1]\n    fs.append(new)\n    return (x * 2).float().mean()\nr = go(fs, img)",
        "def go(fs):\n    y = fs[0][fs[0] >= 0]\n    return (y * 2).float()\nr = go(fs)\nfs.insert(0, img)",
        "def go(x):\n    k = 1\n    def set_k():\n        nonlocal k\n        k = 2\n    set_k()\n    q = x // k\n    return (q * 2).float().mean()\nr = go(img)",
        "def go(x):\n    y = x\n    def halve():\n        nonlocal y\n        y = y // 2\n    halve()\n    return (y * 2).float().mean()\nr = go(img)",
        "def go(x):\n    return (x // 2 * 2).float()\nr = go(img)\ndef go(x):\n    return (x * 2).float()",
        "r = s.f(img)\ns.toggle()",
        "def go(x, on):\n    return on and (x * 2).float().mean()\nr = go(img, False)",
        "x = img // 2\nr = m(x)\nexec('x = img')",
        "x = img // 2\nr = m(x)\nmatch [img]:\n    case [x]:\n        pass",
        "x = img // 2\ng = lambda: m(x)\nr = g()\nx = img",
        "class T:\n    def f(self, x):\n        return (x // 2).float()\nt = T()\nr = t.f(img)\nT.f = lambda self, x: (x * 2).float()",
        "both = [(img // 2, 0)]\nfor x, _ in both:\n    r = m(x)\nboth[0][0].copy_(img)",
    ],
)
def test_what_was_changed_after_it_was_read(cell):
    assert severities(cell) == set()


@pytest.mark.parametrize(
    "cell",
    [
        "def go(x):\n    y = x.clone()\n    s.keep(y)\n    s.halve()\n    return (y * 2).float().mean()\nr = go(img)",
        "def go(x, n):\n    for _ in range(n):\n        y = (x * 2).float()\nr = go(img, 0)",
        "x = torch.zeros(8, 8, dtype=torch.uint8)\nx[:] = img\nr = m(x)",
        "x = torch.from_numpy(low * 9)\nr = m(x)",
        "r = last([img])",
        "fs[-1] = img\nr = last(fs)",
    ],
)
def test_what_nobody_can_prove(cell):
    assert severities(cell) <= {"hint"}


@pytest.mark.parametrize(
    "cell",
    [
        "r = m(img)",
        "x = img.clone()\nr = m(x)\nlog = [r]\nlog.append(r)\npool[0] = 3",
        "for _ in range(2):\n    r = m(img)",
        "def go(x):\n    return m(x) + 1\nr = go(img)",
        "r = m(pool)",
        "for row in pool:\n    gap = img.flip(0) - row\nr = gap.float().mean()",
    ],
)
def test_what_is_proven(cell):
    assert severities(cell) == {"error"}


def test_a_cell_that_failed_proves_nothing():
    assert findings_in(SETUP, "1 / 0\nr = m(img)", slug="uint8-arithmetic-wraps", fails=True) == []
