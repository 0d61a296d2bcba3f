"""Roots without a slope at zero, in a step whose graph is not read any more."""

import pytest

from tests.cells import findings_in

SETUP = """\
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(4, 2)
opt = torch.optim.Adam(net.parameters(), lr=.01)
pairs = [(torch.randn(8, 4), torch.randn(8, 4)) for _ in range({count})]
pairs[{bad}][1][0] = pairs[{bad}][0][0]
def apart(a, b):
    d = (net(a) - net(b)).pow(2).sum(1)
    return {far}
"""
LOOP = """\
for a, b in pairs:
    loss = torch.relu(1 - apart(a, b)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()"""


def found(count, bad, far):
    return findings_in(SETUP.format(count=count, bad=bad, far=far), LOOP)


@pytest.mark.parametrize(
    ("count", "bad", "slug"),
    [(4, 3, "nonfinite-gradient"), (4, 2, "nonfinite-gradient"), (40, 20, "nonfinite-parameter")],
)
@pytest.mark.parametrize(
    ("far", "fix"),
    [("d.sqrt()", "return (d + 1e-12).sqrt()"), ("torch.sqrt(d)", "return (d + 1e-12).sqrt()")],
)
def test_the_root_is_named_that_has_no_slope(count, bad, slug, far, fix):
    (finding,) = [one for one in found(count, bad, far) if one.slug.startswith("nonfinite")]
    assert finding.slug == slug
    assert f"`{far}`" in finding.message
    assert finding.fix.startswith(fix)


def test_a_root_that_is_kept_from_zero_is_not_suspected():
    spoiled = "with torch.no_grad():\n    net.weight[0, 0] = float('nan')"
    findings = findings_in(SETUP.format(count=8, bad=3, far="(d + 1e-9).sqrt()"), f"{LOOP}\n{spoiled}")
    (finding,) = [one for one in findings if one.slug == "nonfinite-parameter"]
    assert "sqrt" not in finding.message + finding.fix
