"""Norms in float16 that make rows zero, because the squares of their numbers are infinite."""

import pytest

from tests.cells import findings_in

SETUP = """\
import torch
from torch import nn
torch.manual_seed(0)
wide = torch.randn(2, 7, 32).half() * {scale}
def norm(h):
    return h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)
def unit(h):
    return h / (h ** 2).sum(-1, keepdim=True).sqrt()
def safe(h):
    return (h * torch.rsqrt(h.float().pow(2).mean(-1, keepdim=True) + 1e-6)).half()
def masked(h):
    mask = h.abs().amax(-1, keepdim=True) < 256
    return h * mask / h.float().pow(2).sum(-1, keepdim=True).sqrt()
class Norm(nn.Module):
    def __init__(self, scale=1.0):
        super().__init__()
        self.weight = nn.Parameter(torch.full((32,), scale))
    def forward(self, h):
        return self.weight * h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)
class Safe(Norm):
    def forward(self, h):
        wide = h.float()
        return self.weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(h.dtype)
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(32, 32)
    def forward(self, h):
        return torch.relu(-h.abs()) * h.float().pow(2).sqrt().to(h.dtype)
def rbf(h):
    return torch.exp(-h ** 2 / 2)
def cauchy(h):
    return 1 / (1 + h ** 4)
def biweight(h):
    return torch.where(h.abs() < 5, h * (1 - (h / 5) ** 2) ** 2, 0 * h)
def damped(h):
    return h * torch.exp(-h.float() ** 2).to(h.dtype)
def kept(h):
    return h * torch.isfinite((h ** 2).sum(-1, keepdim=True))
def root(h):
    return h * 0 * (h ** 2).mean(-1, keepdim=True) ** 0.5
layer, right, closed, block = Norm().half(), Safe().half(), Norm(0.0).half(), Block().half()
@torch.no_grad()
def predict(h, layer=layer):
    twice = h * 1
    return layer(twice)"""


def found(code, scale=400):
    return findings_in(SETUP.replace("{scale}", str(scale)), code, slug="half-overflow", fails=False)


@pytest.mark.parametrize(
    ("code", "subject"),
    [
        ("out = norm(wide)", "norm(wide)"),
        ("out = unit(wide)", "unit(wide)"),
        ("out = layer(wide)", "layer"),
        ("out = predict(wide)", "layer"),
    ],
)
def test_rows_that_are_zero(code, subject):
    (finding,) = found(code)
    assert finding.subject == subject
    assert "made 14 of 14 rows zero, which were not" in finding.message


def test_a_part_of_the_rows():
    (finding,) = found("some = wide.clone()\nsome[0] *= 0.001\nout = norm(some)")
    assert "made 7 of 14 rows zero" in finding.message


@pytest.mark.parametrize(
    "code",
    [
        "out = safe(wide)",
        "out = masked(wide)",
        "out = right(wide)",
        "out = closed(wide)",
        "out = block(wide)",
        "out = norm(wide * 0)",
        *(f"out = {name}(wide)" for name in ("rbf", "cauchy", "biweight", "damped", "kept")),
        "some = wide.clone()\nsome[0] *= 0.001\nout = norm(some)\nout[some.abs().amax(-1) > 255] = 0",
        "out = norm(wide)\nout = cauchy(wide)",
        "out = norm(wide.float())",
        "some = wide.clone() * 0.001\nsome[1] = 0\nout = norm(some)\nout = layer(some)",
        "out = norm(wide)\nout = norm(wide * 0.001)",
    ],
)
def test_rows_that_are_meant(code):
    assert found(code) == []


def test_squares_that_make_nan_are_no_zeros():
    (finding,) = found("out = root(wide)")
    assert "`h ** 2` goes up to" in finding.message


def test_numbers_that_fit():
    assert found("out = norm(wide)\nalso = layer(wide)", scale=20) == []


NUMBERS = """
class Named(nn.Module):
    def __init__(self, variance_epsilon=1e-6, scale=2.0):
        super().__init__()
        self.variance_epsilon, self.scale = variance_epsilon, scale
    def forward(self, h):
        return h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + self.variance_epsilon) * self.scale
named, nothing = Named(), Named(scale=0.0)
"""


def test_numbers_of_a_layer_that_are_not_zero():
    (finding,) = found(f"{NUMBERS}out = named(wide)")
    assert finding.subject == "out" or "made" in finding.message
    assert found(f"{NUMBERS}out = nothing(wide)") == []
