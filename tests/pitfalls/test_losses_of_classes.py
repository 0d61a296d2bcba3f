"""Losses that a class of an earlier cell computes: the variable that was squashed is named, if it is the only one."""

import pytest

from tests.cells import findings_in

SETUP = (
    "import torch\nfrom torch import nn\nimport torch.nn.functional as F\nnet = nn.Linear(4, 3)\nx = torch.randn(8, 4)"
)
LOSS = """\
class Loss(nn.Module):
    def forward(self, scores, y):
        p = torch.{maker}(scores{axis})
        return F.{reader}(p, y)
criterion = Loss()"""
STEP = "loss = criterion(net(x), {target})\nloss.backward()"
CASES = [
    ("softmax-before-cross-entropy", "softmax", ", -1", "cross_entropy", "torch.zeros(8).long()"),
    ("sigmoid-before-bce-logits", "sigmoid", "", "binary_cross_entropy_with_logits", "torch.zeros(8, 3)"),
]


@pytest.mark.parametrize(("slug", "maker", "axis", "reader", "target"), CASES)
def test_the_variable_and_its_line(slug, maker, axis, reader, target):
    cell = LOSS.format(maker=maker, axis=axis, reader=reader)
    (finding,) = findings_in(SETUP, cell, STEP.format(target=target), slug=slug, fails=False)
    assert "(`p`, line 4 of cell 2)" in finding.message


@pytest.mark.parametrize(("slug", "maker", "axis", "reader", "target"), CASES)
def test_of_two_that_may_be_meant_none_is_named(slug, maker, axis, reader, target):
    cell = LOSS.format(maker=maker, axis=axis, reader=reader)
    (finding,) = findings_in(SETUP, cell + "\n" + cell, STEP.format(target=target), slug=slug, fails=False)
    assert "`p`" not in finding.message
