"""A variable in float16 that is NaN: the step that went past an end of it, in the cell, a function or a module."""

import pytest

from tests.cells import findings_in

SETUP = """\
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
p, t, z = torch.full((9, 4), 4e4).half(), torch.tensor([2.0, 2.0]).half(), torch.zeros(3, 4).half()
low = torch.full((4, 4), -65504.0).half()
def dice(a, b, eps=1e-7):
    both = torch.sum(a * b)
    return 2 * both / (torch.sum(a + b)).clamp_min(eps)
class Dice(nn.Module):
    def __init__(self, scale=1.0):
        super().__init__()
        self.scale = scale
    def forward(self, a, b):
        assert a.size() == b.size()
        return 1 - dice(a.view(-1), b.view(-1)) * self.scale
class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 4).half()
    def forward(self, x, y):
        eps = 1e-8
        y = (y - y.min()) / (y.max() - y.min() + eps)
        return (self.net(x).sum() - y).mean()
ones, criterion, norm = torch.ones(70000).half(), Dice(), Norm()"""


def found(cell, slug):
    return findings_in(SETUP, cell, slug=slug, fails=False)


@pytest.mark.parametrize(
    ("cell", "step", "line"),
    [
        ("out = p.sum(0) / p.sum(0)", "`p.sum(0)` goes up to 360,000", 1),
        ("loss = 1 - dice(ones, ones)", "`torch.sum(a * b)` goes up to 70,000 (line 8 of cell 1)", 8),
        ("loss = criterion(ones, ones)", "`torch.sum(a * b)` goes up to 70,000 (line 8 of cell 1)", 8),
        ("loss = Dice()(ones, ones)\nprint(loss)", "nan", None),
        ("s = p * 2\nout = (s.float() - s).half()", "`p * 2` goes up to 80,000", 1),
        ("with torch.no_grad():\n    out = torch.softmax(p * 2, 1)", "`p * 2` goes up to 80,000", 2),
    ],
)
def test_a_step_beyond_the_end(cell, step, line):
    findings = found(cell, "half-overflow")
    if line is not None:
        (finding,) = findings
        assert step in finding.message or "infinite" in finding.message
    assert not found(cell.replace("p.", "z.").replace("p *", "z *").replace("ones", "t"), "half-overflow")


CAUSAL = """
def attend(q):
    n, m = q.shape[-2:]
    rows, columns = torch.arange(n)[:, None], torch.arange(m)
    mask = (rows >= columns).to(q.dtype)
    return torch.softmax(q * mask - torch.tensor({}, dtype=q.dtype) * (1 - mask), -1)
def rotate(rows, eps=1e-12):
    length = rows.norm(p=2, dim=-1, keepdim=True).clamp(min=eps)
    a, b, c, d = (rows / length).unbind(-1)
    return torch.stack([1 - 2 * a * b, c * d, torch.ones_like(a)], -1).view(*a.shape, 3)
"""


def test_a_mask_that_is_a_comparison():
    (finding,) = findings_in(SETUP + CAUSAL.format("1e10"), "q = low * 0", "out = attend(q)", slug="half-overflow")
    assert finding.message.startswith(
        "`out` has 16 nan of 16 values: `torch.tensor(10000000000.0, dtype=q.dtype)` goes up"
    )
    assert finding.fix.startswith("# a number that float16 holds, such as 1e4")
    assert findings_in(SETUP + CAUSAL.format("1e4"), "q = low * 0", "out = attend(q)", slug="half-overflow") == []


@pytest.mark.parametrize(
    ("cell", "text", "number"),
    [
        ("n = z.norm(dim=-1, keepdim=True).clamp(min=1e-12)\nout = z / n", "z.norm(dim=-1, keepdim=True)", "1e-12"),
        ("size = z.abs().sum(-1, keepdim=True)\nn = size + 1e-9\nout = z / n", "size", "1e-9"),
        ("out = rotate(z)", "rows.norm(p=2, dim=-1, keepdim=True)", "eps"),
    ],
)
def test_a_divisor_that_an_earlier_statement_has_made(cell, text, number):
    (finding,) = findings_in(SETUP + CAUSAL, cell, slug="half-underflow")
    assert f"`{text}" in finding.message
    assert number in finding.message.replace("e-0", "e-")
    assert "1e-4" in finding.fix
    healthy = (
        cell.replace("z", "(z + 1)") if "rotate" in cell else cell.replace("1e-12", "1e-4").replace("1e-9", "1e-4")
    )
    assert findings_in(SETUP + CAUSAL, healthy, slug="half-underflow") == []


def test_a_divisor_that_is_zero_in_any_precision():
    cell = "n = z.norm(dim=-1, keepdim=True)\nout = z / n"
    assert findings_in(SETUP, cell, slug="half-underflow") == []


def test_masks_that_add_up_are_a_hint():
    (finding,) = found("att = (low + low).softmax(-1)", "half-overflow")
    assert finding.severity == "hint"
    assert "`low + low` goes down to -131,008" in finding.message
    (finding,) = found("loss = (low + low).softmax(-1).sum()", "half-overflow")
    assert finding.severity == "error"


@pytest.mark.parametrize(
    ("cell", "number", "fix"),
    [
        ("t = torch.tensor([2.0, 2.0]).half()\nt = (t - t.min()) / (t.max() - t.min() + 1e-8)", "1e-08", "+ 1e-4"),
        ("out = F.normalize(z, dim=-1)", "1e-12", "F.normalize(z, dim=-1, eps=1e-4)"),
        ("out = norm(z, t)", "`eps`, 1e-08", "+ 1e-4"),
    ],
)
def test_a_number_that_is_zero_in_float16(cell, number, fix):
    (finding,) = found(cell, "half-underflow")
    assert number in finding.message
    assert fix in finding.fix
    assert not found(cell, "half-overflow")


@pytest.mark.parametrize(
    "cell",
    [
        "out = z / z.sum()",  # 0 / 0 in any precision
        "out = (z - float('inf')).softmax(-1)",
        "out = torch.full((4, 4), float('-inf')).half().softmax(-1)",
        "q = p.clone()\nout = q.sum() / q.sum()\nq.zero_()",  # what it was made of is gone
        "q = p + torch.rand(9, 4).half()\nout = q.sum() / q.sum()\nq = z",
        "q = p.clone()\nq.zero_()\nout = q.sum() / q.sum()\nq = z",
        "q = p.clone()\nq *= 0\nout = q.sum() / q.sum()\nq = z",
        "for q in (p, z):\n    out = q.sum() / q.sum()",
        "out = p.float().sum(0) / p.float().sum(0)",
    ],
)
def test_what_has_another_reason_or_none_that_is_known(cell):
    assert not [one for slug in ("half-overflow", "half-underflow") for one in found(cell, slug)]


def test_an_operation_of_a_graph():
    cell = "w = (torch.ones(4) * 20).half().requires_grad_()\nloss = (torch.exp(w) / torch.exp(w).sum()).mean()"
    (finding,) = found(cell, "half-overflow")
    assert "exp" in finding.message
