"""Maps (N, 1, H, W) against (N, H, W), and formulas of an input that has a gradient, in losses."""

import pytest

from tests.cells import findings_in

SETUP = """\
import warnings
import torch
from torch import nn
import torch.nn.functional as F
warnings.simplefilter("ignore")
torch.manual_seed(0)
conv, flat, rnn, line = nn.Conv2d(3, 1, 1), nn.Linear(5, 1), nn.LSTM(3, 1, batch_first=True), nn.Linear(1, 1)
image, depth, maps = torch.rand(4, 3, 6, 6), torch.rand(4, 6, 6), torch.rand(4, 1, 6, 6)
steps, seen = torch.rand(8, 8, 5), torch.rand(8, 8)"""

MISTAKES = [
    "F.mse_loss(conv(image), depth)",
    "F.smooth_l1_loss(conv(image), depth, reduction='sum')",
    "nn.HuberLoss()(conv(image), depth)",
    "nn.L1Loss()(flat(steps), seen)",
    "(conv(image).sigmoid() - depth).abs().mean()",
    "((conv(image).squeeze(1) - maps) ** 2).mean()",
    "F.mse_loss(rnn(steps[..., :3])[0], seen)",
]


def found(lines):
    return findings_in(SETUP, lines, slug="loss-broadcast", fails=False)


@pytest.mark.parametrize("loss", MISTAKES)
def test_one_axis_of_length_one_more(loss):
    (finding,) = found(f"loss = {loss}\nloss.backward()")
    assert finding.severity == "error"


def test_the_numbers_and_the_fix():
    (finding,) = found(f"loss = {MISTAKES[0]}\nloss.backward()")
    assert "compares (4, 1, 6, 6) with (4, 6, 6): both are stretched to (4, 4, 6, 6), 4 times" in finding.message
    assert "the best answer becomes the mean of 4 targets" in finding.message
    assert finding.fix.startswith("depth = depth.unsqueeze(1)")


@pytest.mark.parametrize(
    "loss",
    [
        "F.mse_loss(conv(image), depth[:, None])",
        "F.mse_loss(conv(image).squeeze(1), depth)",
        "F.mse_loss(conv(image)[:1], depth[:1])",  # one sample: nothing is stretched
        "F.mse_loss(conv(image), depth[:1])",  # one map for all
        "((flat(steps)[..., 0][:, None] - seen) ** 2).mean()",  # each with each
        "((flat(steps)[..., 0][:, None].tanh() - seen) ** 2).mean()",
        "((flat(steps)[..., 0] - seen[:, None].expand(8, 8, 8)) ** 2).mean()",
        "(conv(image) - depth).pow(2).mean((1, 2, 3)).amin()",
        "(-(conv(image) - depth).square().mean((2, 3))).exp().mean()",
    ],
)
def test_shapes_that_fit_or_are_meant(loss):
    assert not found(f"loss = {loss}\nloss.backward()")


EQUATION = """\
x = torch.rand(50, requires_grad=True)
u = line(x[:, None])
slope = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
residual = {residual}
loss = {loss}
loss.backward()"""


@pytest.mark.parametrize(
    ("residual", "loss"),
    [
        ("u - torch.sin(3 * x)", "residual.pow(2).mean()"),
        ("slope[:, None] * u - torch.sin(x)", "residual.abs().mean() + u.mean() ** 2"),
        ("(slope.cos() * u[:, 0])[:, None] - x.exp()", "residual.pow(2).mean()"),
    ],
)
def test_a_formula_of_the_input(residual, loss):
    (finding,) = found(EQUATION.format(residual=residual, loss=loss))
    assert "compares (50, 1) with (50,)" in finding.message


@pytest.mark.parametrize(
    ("residual", "loss"),
    [
        ("u - torch.sin(3 * x)[:, None]", "residual.pow(2).mean()"),
        ("u[:, 0] - torch.sin(3 * x)", "residual.pow(2).mean()"),
        ("u[:, 0][:, None] - torch.sin(u[:, 0])", "residual.pow(2).mean()"),  # both are predicted
        ("u[:, 0][:, None] - torch.sin(x)", "(residual.abs() - torch.rand(50, 50)).pow(2).mean()"),  # all distances
        ("u[:, 0][:, None] - torch.sin(x)", "torch.exp(-residual ** 2).mean()"),  # a kernel
    ],
)
def test_formulas_that_fit_or_are_meant(residual, loss):
    assert not found(EQUATION.format(residual=residual, loss=loss))


USED = """
def cost(x, wanted):
    value = flat(x)
    gap = {gap}
    return ((wanted - value) ** 2).mean() + 0 * gap.sum()
loss = cost(steps[0], seen[0])
loss.backward()"""


@pytest.mark.parametrize(
    ("gap", "fix"), [("wanted + 1", "wanted.unsqueeze(1)  # in place of wanted"), ("value", "wanted = ")]
)
def test_the_fix_leaves_other_uses_as_they_are(gap, fix):
    (finding,) = found(USED.format(gap=gap))
    assert finding.fix.startswith(fix)
