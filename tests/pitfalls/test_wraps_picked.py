"""Small whole numbers that wrap where the text takes only those that do not, by a mask or the shorter way round."""

import pytest

from tests.cells import findings_in

SLUG = "uint8-arithmetic-wraps"
SETUP = """\
import torch
torch.manual_seed(0)
img, img2 = torch.randint(0, 256, (2, 3, 16, 16), dtype=torch.uint8)
a, b, n = img, img2, 50
"""


def severities(*cells):
    return {one.severity for one in findings_in(SETUP, *cells, slug=SLUG, fails=False)}


def a_function(*lines):
    return "def go(a, b):\n    " + "\n    ".join(lines) + "\nv = go(img, img2)"


@pytest.mark.parametrize(
    "cell",
    [
        a_function("c = a + b", "c[c < a] = 255", "return c.float().mean()"),
        a_function("x = a + 50", "x[a > 205] = 255", "return x.float().mean()"),
        a_function("x = 50 + a", "x = torch.where(x < 50, 255, x)", "return x.float().mean()"),
        a_function("ok = a <= 205", "x = a + 50", "return x[ok].float().mean()"),
        a_function("bad = ~a.le(205)", "x = a + 50", "return x[~bad].float().mean()"),
        a_function("ok = a <= 127", "x = a * 2", "return (x.float() * ok).sum() / ok.sum()"),
        a_function("x = a * 2", "return x.float().masked_select(a < 128).mean()"),
        a_function("lo = a + b", "carry = lo < a", "return (lo.float() + 256. * carry).mean()"),
        a_function("d = (a - b).float()", "return d[a >= b].mean()"),
        a_function("d = (a - b).float()", "keep = torch.gt(a, b)", "return d[keep].mean()"),
        a_function("d = a - 100", "m = d < 40", "return d[m].float().mean()"),
        "x = a + n\nx[a > 255 - n] = 255\nm = x.float().mean()",
        "def add(p, q):\n    return p + q\nc = add(img, img2)\nc[c < img] = 255\nm = c.float().mean()",
        "c = a + b\nover = c < a\nm = torch.where(over, torch.full_like(c, 255), c).float().mean()",
        "d = a - b\nm = torch.where(d > 127, d.int() - 256, d.int()).float().mean()",
        "d = a - b\nm = torch.minimum(d, 256 - d.int())",
        a_function("return torch.where(a + b < a, 255, a + b).float().mean()"),
        a_function("c, over = a + b, a.int() + b.int() > 255", "c[over] = 255", "return c.float().mean()"),
        a_function("x = (a + 50).masked_fill(a > 205, 255)", "return x.float().mean()"),
        a_function("ok = torch.logical_not(a > 205)", "x = a + 50", "return x.view(-1)[ok.view(-1)].float().mean()"),
        a_function("i = (a < 128).nonzero(as_tuple=True)", "x = a * 2", "return x[i].float().mean()"),
        "out = {'c': 0}\nout['c'] = a + b\nout['c'][out['c'] < a] = 255\nm = out['c'].float().mean()",
        "d1 = a - b\nd2 = b - a\nm = torch.minimum(d1, d2).float().mean()",
        "r = a - b\nm = torch.minimum(r, 0 - r)",
        "f = a - b\ncost = torch.minimum(f.int(), 256 - f.int()).sum()",
    ],
)
def test_only_what_fits_is_taken(cell):
    assert severities(cell) == set()


@pytest.mark.parametrize(
    "cell",
    [
        a_function("x = a + 50", "x[a == 0] = 0", "return x.float().mean()"),
        a_function("ok = a <= 205", "x = a + 50", "return x[~ok].float().mean()"),
        a_function("x = a + 50", "return x[a > 100].float().mean()"),
        a_function("x = a + n", "return x.float() * (n > 3)"),
        a_function("c = a + b", "return (c.float() * (a > b)).mean()"),
        a_function("x = a + 50", "return x.float() / 255 if a.dim() > 2 else x"),
        a_function("x = a + 50", "acc = (a == b).float().mean()", "return x.float().mean(), acc"),
        "d = a - b\nm = torch.where(d > 30, d.int() - 256, d.int()).float().mean()",
        "c = a + b\nbright = a > 128\nm = c[bright].float().mean()",
    ],
)
def test_a_mask_that_takes_what_does_not_fit(cell):
    assert severities(cell) == {"error"}
