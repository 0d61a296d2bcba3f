"""A divisor that was 0: kept from it as what it is, a tensor, a number or an array; and NaN that came before all."""

import pytest

from tests.cells import a_notebook, findings_in

SETUP = """\
import torch
from torch import nn
w, mask, items = torch.ones(3, requires_grad=True), torch.zeros(3), []
class Mean:
    n = 0
    def of(self, w): return (w * 2).sum() / self.n
def mean(w, n): return (w * 2).sum() / n
def masked(w, m): return (w * m).sum() / m.sum()
"""
LOSS = "loss = (w * mask).sum() / {}\nloss.backward()"


@pytest.mark.parametrize(
    ("before", "divisor", "bounded"),
    [
        ("n = 0", "n", "max(n, 1)"),
        ("n = 0.0", "n", "max(n, 1e-08)"),
        ("h = 0", "(h ** 0.5)", "max(h ** 0.5, 1e-08)"),
        ("", "len(items)", "max(len(items), 1)"),
        ("", "sum(mask.tolist())", "max(sum(mask.tolist()), 1e-08)"),
        ("", "mask.sum().item()", "max(mask.sum().item(), 1e-08)"),
        ("", "(mask.shape[0] - 3)", "max(mask.shape[0] - 3, 1)"),
        ("", "mask.sum()", "mask.sum().clamp_min(1e-08)"),
        ("total = mask.sum()", "total", "total.clamp_min(1e-08)"),
    ],
)
def test_what_divides_is_mended_as_what_it_is(before, divisor, bounded):
    setup = SETUP.partition("class")[0]
    with a_notebook() as notebook:
        notebook.run(setup + before)
        (finding,) = notebook.run(LOSS.format(divisor)).findings
        assert bounded in finding.fix
        assert notebook.run(f"w.grad = None\n{finding.fix}\nloss.backward()").findings == ()
        assert notebook.errors[-1] is None


@pytest.mark.parametrize(
    ("loss", "bounded"),
    [
        ("Mean().of(w)", "max(self.n, 1)"),
        ("mean(w, 0)", "max(n, 1)"),
        ("masked(w, mask)", "m.sum().clamp_min(1e-08)"),
    ],
)
def test_in_a_function_as_far_as_the_graph_tells(loss, bounded):
    others = [part for part in SETUP.split("\ndef ") if part.partition("(")[0] in loss]
    setup = SETUP.partition("class")[0] if others else SETUP.partition("def mean")[0]
    (finding,) = findings_in(setup + "".join(f"def {one}\n" for one in others), f"loss = {loss}\nloss.backward()")
    assert bounded in finding.fix


RAW = "import torch, numpy as np\nfrom torch import nn\nnet, raw = nn.Linear(2, 1), torch.tensor([[1.0, 2], [{}, 3]])"
END = "\nloss = net(x).square().mean()\nloss.backward()"


@pytest.mark.parametrize(
    ("lines", "said", "fix"),
    [
        ("scale = 10.0\nx = raw / scale", "`raw` holds 1 nan among 4 values, and `x` is made of it", "nan_to_num(raw)"),
        ("y = raw - 1\nx = 2 * y", "`raw` holds 1 nan among 4 values, and", "nan_to_num(raw)"),
        ("def half(t): return t / 2\nx = half(raw)", "and `x` is made of it", "nan_to_num(raw)"),
    ],
)
def test_numbers_that_held_nan_before_they_were_divided(lines, said, fix):
    (finding,) = findings_in(RAW.format("float('nan')"), lines + END, slug="nonfinite-loss")
    assert said in finding.message
    assert finding.fix.endswith(fix)
    assert "clamp" not in finding.fix


@pytest.mark.parametrize(
    ("lines", "fix"),
    [
        ("sd = raw.std(0)\nx=(raw - raw.mean(0)) / sd", "/ sd.clamp_min(1e-08)"),
        ("a = raw.numpy()\nsd = a.std(0)\nx = torch.tensor((a - a.mean(0)) / sd)", "/ np.maximum(sd, 1e-08)"),
    ],
)
def test_columns_without_a_spread(lines, fix):
    (finding,) = findings_in(RAW.format("1.0"), lines + END, slug="nonfinite-loss")
    assert fix in finding.fix


def test_a_number_that_is_not_in_the_loss_is_not_to_blame():
    cell = "best = torch.tensor(float('nan'))\n" + LOSS.format("mask.sum()")
    (finding,) = findings_in(SETUP.partition("class")[0], cell, slug="nonfinite-loss")
    assert "`/` was given 1 zero" in finding.message
