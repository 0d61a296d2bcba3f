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
        ("low = torch.log(p + 1e-10)", "p + 1e-4"),
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
        "unit = torch.where(norm > 0, x / (norm + 1e-8), 0)",
    ],
)
def test_numbers_that_are_not_and_results_that_are_finite(code):
    assert not found(code)
