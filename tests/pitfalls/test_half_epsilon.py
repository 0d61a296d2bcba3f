"""Numbers such as 1e-8 that are zero in float16."""

import pytest

from tests.cells import findings_in

START = """\
import torch
torch.manual_seed(0)
x = torch.randn(6, 4).half()
x[4:] = 0
norm = x.pow(2).sum(1, keepdim=True).sqrt()
p = torch.tensor([0.0, 0.5]).half()"""


def found(code):
    return [one for one in findings_in(START, code) if one.slug == "half-underflow"]


@pytest.mark.parametrize(
    ("code", "fix"),
    [
        ("unit = x / (norm + 1e-8)", "norm + 1e-4  # in place of norm + 1e-8"),
        ("unit = x / norm.clamp(min=1e-12)", "norm.clamp(min=1e-4)  # in place of"),
        ("unit = x / (x.norm(dim=1, keepdim=True) + 1e-8)", "x.norm(dim=1, keepdim=True) + 1e-4"),
        ("unit = x / (x.pow(2).sum(1, keepdim=True).sqrt() + 1e-8)", "x.pow(2).sum(1, keepdim=True).sqrt() + 1e-4"),
        ("low = torch.log(p + 1e-10)", "p + 1e-4"),
        ("unit = x / (x.norm(dim=-1, keepdim=True) + 1e-15)", "x.norm(dim=-1, keepdim=True) + 1e-4"),
        ("unit = x / (x.var(-1, keepdim=True).sqrt() + 1e-8)", "x.var(-1, keepdim=True).sqrt() + 1e-4"),
        ("unit = x / (x.std(-1, keepdim=True) + 1e-8)", "x.std(-1, keepdim=True) + 1e-4"),
        (
            "unit = x / ((x * x).sum(-1, keepdim=True) + 1e-8)\nmean = unit[0].mean()",
            "(x * x).sum(-1, keepdim=True) + 1e-4",
        ),
    ],
)
def test_a_number_that_is_zero(code, fix):
    (finding,) = found(code)
    assert finding.fix.startswith(fix)
    assert finding.line == 1


@pytest.mark.parametrize(
    "code",
    [
        "unit = x / (norm + 1e-4)",
        "unit = x.float() / (norm.float() + 1e-8)",
        "unit = x[:4] / (norm[:4] + 1e-8)",
        "unit = x.bfloat16() / (norm.bfloat16() + 1e-8)",
        "x[0, 0] = float('nan')\nunit = x / (x.new_ones(1) + 1e-8)",
        "unit = x / (norm + 1e-8)\nunit = unit.log()",
        "var = x.sum(1, keepdim=True)\nout = x / (var.sqrt() + 1e-8)",
        "q = x[:4] - 0\nout = q / (q.log() + 1e-8)",
        "unit = x[:4] / ((x[:4] ** 3).mean(-1, keepdim=True) ** 0.5 + 1e-8)",
        "unit = torch.where(norm > 0, x / (norm + 1e-8), 0)",
        "unit = x / (norm + 1e-8)\nsafe = torch.where(norm > 0, unit, 0)",
        "unit = x / (norm + 1e-8)\nsafe = unit.nan_to_num(0)",
        "unit = x / (norm + 1e-8)\nkept = unit[~unit.isnan()]",
        "def safe(v):\n    return torch.nan_to_num(v)\nunit = x / (norm + 1e-8)\nkept = safe(unit)",
        "def safe(v, n):\n    return v[n.flatten() > 0]\nunit = x / (norm + 1e-8)\nkept = safe(v=unit, n=norm)",
        "one = x[4:, :1]\nunit = one / (one.var(-1, keepdim=True) + 1e-8)",
        "x[0] = 300\nw = 1 - torch.eye(4)[0].half()\nunit = x / ((w * x.pow(2)).sum(-1, keepdim=True) + 1e-8)",
        "y = x[:4] * 0 + 300\nw = 1 - torch.eye(4)[0].half()\nunit = y / ((w * y.pow(2)).sum(-1, keepdim=True) + 1e-8)",
    ],
)
def test_numbers_that_are_not_and_results_that_are_finite(code):
    assert not found(code)


FUNCTIONS = """\
EPS, TWO = 1e-4, 2
EPS = 1e-15
SMALL = 1e-9
def unit(v, eps=1e-8):
    return v / (v.norm(dim=-1, keepdim=True) + eps)
def by_hand(v):
    length = v.pow(2).sum(-1, keepdim=True).sqrt()
    return v / (length + SMALL)
def floored(v):
    return v / v.norm(dim=-1, keepdim=True).clamp(min=1e-12)
def two_names(v):
    return v / (v.norm(dim=-1, keepdim=True) + EPS)
def scaled(v):
    return v.log() / (v.norm(dim=-1, keepdim=True) + SMALL)
def shifted(v):
    v = v - v.mean()
    return v / (v.norm(dim=-1, keepdim=True) + SMALL)
def wide(v):
    return (v.float() / (v.float().norm(dim=-1, keepdim=True) + SMALL)).half()
def cubed(v):
    return v / ((v ** 3).mean(-1, keepdim=True).sqrt() + SMALL)
def other(v):
    return v / ((v * v.abs()).mean(-1, keepdim=True).sqrt() + SMALL)
def squared(v):
    return v / ((v * v).mean(-1, keepdim=True).sqrt() + SMALL)
class Unit(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.eps = 1e-12
    def forward(self, v):
        return v / (v.norm(dim=-1, keepdim=True) + self.eps)
layer = Unit()"""


@pytest.mark.parametrize(
    ("code", "line", "number"),
    [
        ("out = unit(x)", 5, "`eps`, which is 1e-08, is zero"),
        ("out = unit(x, 1e-9)", 5, "`eps`, 1e-09, is below"),
        ("out = unit(x, eps=1e-3)", None, ""),
        ("out = by_hand(x)", 8, "`SMALL`, which is 1e-09, is zero"),
        ("out = floored(x)", 10, "1e-12 is zero"),
        ("out = two_names(x)", 12, "`EPS`, 1e-15, is below"),
        ("out = scaled(x)", None, ""),
        ("out = shifted(x)", None, ""),
        ("out = wide(x)", None, ""),
        ("out = unit(x.float()).half()", None, ""),
        ("out = cubed(x)", None, ""),
        ("out = other(x)", None, ""),
        ("out = squared(x)", 25, "`SMALL`, which is 1e-09, is zero"),
        ("out = layer(x)", 31, "`self.eps`, which is 1e-12, is zero"),
        ("out = x / (x.norm(dim=-1, keepdim=True) + SMALL)", 1, "`SMALL`, which is 1e-09, is zero"),
    ],
)
def test_numbers_with_a_name_and_in_functions(code, line, number):
    found = [one for one in findings_in(START, FUNCTIONS, code) if one.slug == "half-underflow"]
    assert [one.line for one in found] == ([line] if line else [])
    assert all(number in one.message for one in found)
    assert all(one.cell == (2 if line > 1 else 3) for one in found)


HEAD = """\
import torch
from torch import nn
torch.manual_seed(0)
class Unit(nn.Module):
    def __init__(self, eps=1e-8):
        super().__init__()
        self.eps = eps
    def forward(self, v):
        return v / (v.norm(dim=1, keepdim=True) + self.eps)
head = nn.Sequential(nn.Linear(4, 6, bias=False), Unit({eps})).half()
x = torch.randn(5, 4).half()
x[3] = 0"""
PLAIN = HEAD.split("class Unit", maxsplit=1)[0] + HEAD[HEAD.index("head =") :].replace(", Unit({eps})", "")
LOSS = "z = head(x)\nloss = nn.functional.cross_entropy((z @ z.t()).float(), torch.arange(5))"


@pytest.mark.parametrize(("eps", "told"), [("", ["half-underflow"]), ("eps=1e-3", [])])
def test_a_layer_inside_that_divides_zero_by_zero(eps, told):
    findings = findings_in(HEAD.format(eps=eps), LOSS, fails=False)
    assert [one.slug for one in findings if one.slug.startswith("half")] == told
    assert all("`self.eps`, which is 1e-08, is zero in float16" in one.message for one in findings)


@pytest.mark.parametrize("code", ["z = head(x)", "z = head[0](x)\nz = z / (z.norm(dim=1, keepdim=True) + 1e-8)"])
def test_what_divided_is_known_without_a_loss(code):
    (finding,) = findings_in(
        HEAD.format(eps="") if "head(" in code else PLAIN, code, slug="half-underflow", fails=False
    )
    assert "`z` has 6 nan of 30 values" in finding.message


def test_without_a_graph_both_reasons_are_named():
    code = "with torch.no_grad():\n    z = head(x)"
    (finding,) = findings_in(HEAD.format(eps=""), code, slug="half-overflow", fails=False)
    assert "; or `v.norm(dim=1, keepdim=True) + self.eps`, line 9 of cell 1, is zero" in finding.message


def test_nan_that_is_replaced_later_is_no_mistake():
    code = "z = head[0](x)\nz = z / (z.norm(dim=1, keepdim=True) + 1e-8)\nz = torch.nan_to_num(z)\nz.sum().backward()"
    rest = "raw = head[0](x)\nunit = raw / (raw.norm(dim=1, keepdim=True) + 1e-8)\nsafe = unit.nan_to_num(0)"
    for one in (code, rest):
        findings = findings_in(PLAIN, one, fails=False)
        assert not [found for found in findings if found.slug in ("half-underflow", "half-overflow")]


UNITS = """\
def unit(v):
    return v / (v.norm(dim=-1, keepdim=True) + 1e-8)
hits, seen, few = (torch.tensor(one).half() for one in ([0.0, 1.0], [0.0, 2.0], [1.0, 0.0]))
few.requires_grad_()"""


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("rate = head[0](unit(x[:2])).sum(1) * hits / seen", 0),
        ("rate = unit(head[0](x[:2])).sum(1) * hits / seen", 0),
        ("both = few + seen - 1\nrate = unit(head[0](x[:2])).sum(1) * hits / both", 0),
        ("both = few + (seen - 1)\nrate = unit(head[0](x[:2])).sum(1) * hits / both", 0),
        ("rate = unit(head[0](x)).sum(1) / few.new_ones(1)", 1),
    ],
)
def test_the_division_that_is_named_is_the_one_by_zeros(code, told):
    assert len(findings_in(f"{PLAIN}\n{UNITS}", code, slug="half-underflow", fails=False)) == told
