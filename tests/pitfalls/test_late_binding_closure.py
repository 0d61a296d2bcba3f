"""Functions made in a loop: the fix is the function itself, with the name bound."""

import pytest

from tests.cells import findings_in

SETUP = "import torch\nmade, layers = [], [torch.relu, torch.tanh, torch.neg]\nx = torch.ones(2)"
DEF = "for layer in layers:\n    {}\n        return layer(v)\n    made.append(one)"


@pytest.mark.parametrize(
    ("function", "fix"),
    [
        ("lambda v: layer(v)", "lambda v, layer=layer: layer(v)"),
        ("lambda: layer(x)", "lambda layer=layer: layer(x)"),
        ("lambda *a: layer(a[0])", "lambda *a, layer=layer: layer(a[0])"),
        ("lambda v, /, w=1, **more: layer(v * w)", "lambda v, /, w=1, layer=layer, **more: layer(v * w)"),
        ("lambda v, *, w=1: layer(v * w)", "lambda v, *, w=1, layer=layer: layer(v * w)"),
    ],
)
def test_a_lambda_is_written_out(function, fix):
    for cell in (f"for layer in layers:\n    made.append({function})", f"made = [{function} for layer in layers]"):
        (finding,) = findings_in(SETUP, cell, slug="late-binding-closure", fails=False)
        assert finding.fix == f"{fix}  # a default argument is bound now"
        assert findings_in(SETUP, cell.replace(function, fix), slug="late-binding-closure", fails=False) == []


@pytest.mark.parametrize(
    ("head", "fix"),
    [
        ("def one(v):", "def one(v, layer=layer):"),
        ("def one(v, scale=2) -> torch.Tensor:", "def one(v, scale=2, layer=layer) -> torch.Tensor:"),
        ("def one(v, *rest):", "def one(v, *rest, layer=layer):"),
    ],
)
def test_the_first_line_of_a_def_is_written_out(head, fix):
    (finding,) = findings_in(SETUP, DEF.format(head), slug="late-binding-closure", fails=False)
    assert finding.fix == f"{fix}  # a default argument is bound now"
    assert findings_in(SETUP, DEF.format(fix), slug="late-binding-closure", fails=False) == []
