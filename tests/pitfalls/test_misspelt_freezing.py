"""Parts that were to be frozen by a field of another name."""

import pytest

from tests.pitfalls.test_parameters_missing_from_optimizer import found, loop

HEAD = "opt = torch.optim.SGD(decoder.parameters(), lr=0.1)\n" + loop("decoder(encoder(x))")


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        ("for p in encoder.parameters():\n    p.require_grad = False", "p.requires_grad = False  # line 2 of cell 2"),
        ("encoder[0].weight.requires_grad_ = False", "encoder[0].weight.requires_grad = False  # line 1 of cell 2"),
        ("for n, q in encoder.named_parameters():\n    q.requires_gard = False", "q.requires_grad = False  #"),
    ],
)
def test_the_line_that_froze_nothing_is_named(line, fix):
    (finding,) = found(line, HEAD)
    assert "freezes nothing" in finding.message
    assert finding.fix.startswith(fix)
    assert finding.severity == "warning"


@pytest.mark.parametrize(
    "line",
    [
        "for p in decoder.parameters():\n    p.require_grad = False",
        "encoder.require_grad = True",
        "kept = dict(require_grad=False)",
    ],
)
def test_others_are_told_as_before(line):
    (finding,) = found(line, HEAD)
    assert "freezes nothing" not in finding.message
    assert "add_param_group" in finding.fix
