"""Losses and gradients that are not finite: the operation is named from the graph."""

import pytest

from tests.cells import findings_in
from tests.pitfalls.test_nonfinite import findings

LOOP = """
for _ in range(2):
    opt.zero_grad()
    out = net(x)
{body}
    cost.backward()
    opt.step()
"""


def loop(*lines):
    return LOOP.format(body="\n".join(f"    {line}" for line in lines))


LOSSES = {
    "log of zero": (loop("p = torch.relu(out - 100)", "cost = -torch.log(p).mean()"), "`log` was given 32 zeros"),
    "log of a softmax that ran out": (
        loop("p = torch.cat([out * 1e4, out * -1e4], 1).softmax(1)", "cost = -(p[:, 0].log()).mean()"),
        "`log` was given",
    ),
    "exp": (loop("cost = (out * 1e4).abs().exp().mean()"), "first seen in what `exp` gives"),
    "a count of zero": (
        loop("mask = (y > 100).float()", "cost = (((out - y) ** 2) * mask).sum() / mask.sum()"),
        "`/` was given 1 zero to divide by",
    ),
    "a norm of zero": (
        loop("d = torch.relu(out - 100)", "cost = (d / d.norm(dim=1, keepdim=True)).sum()"),
        "`/ norm` was given 32 zeros to divide by among 32 values",
    ),
    "a root of negative numbers": (loop("cost = (out - 100).sqrt().mean()"), "`sqrt` was given 32 negative numbers"),
    "a power of negative numbers": (loop("cost = ((out - 100) ** 0.5).mean()"), "`**` was given 32 negative numbers"),
    "targets that are all ignored": (
        loop("cost = nn.functional.cross_entropy(torch.cat([out, -out], 1), torch.full((32,), -100))"),
        "no target of `cross_entropy` counts",
    ),
    "targets that all have no weight": (
        loop(
            "scores = torch.cat([out, -out], 1).log_softmax(1).exp().log()",
            "cost = nn.functional.nll_loss(scores, torch.zeros(32).long(), torch.tensor([0.0, 1.0]))",
        ),
        "no target of `nll_loss` counts",
    ),
    "a row without a score": (
        loop(
            "scores = (out @ out.T).masked_fill(torch.eye(32).bool().logical_or(torch.arange(32)[:, None] == 3),"
            " float('-inf'))",
            "cost = (scores.softmax(1) @ out).pow(2).mean()",
        ),
        "32 nan among 1024 values are first seen in what `softmax` gives",
    ),
}
VECTOR = "w = torch.zeros(3, requires_grad=True)\nsgd = torch.optim.SGD([w], lr=0.1)\n"
IN_A_FUNCTION = """
def distance(a, b):
    return (a - b).pow(2).sum(-1).sqrt()
table = nn.Embedding(4, 2)
sgd = torch.optim.SGD(table.parameters(), lr=0.1)
for _ in range(2):
    sgd.zero_grad()
    z = table(torch.tensor([0, 1, 2]))
    loss = distance(z[:, None], z[None]).mean()
    loss.backward()
    sgd.step()
"""
GRADIENTS = {
    "sqrt": (
        f"{VECTOR}d = ((w * 2) ** 2).sum().sqrt()\nd.backward()\nsgd.step()",
        "`sqrt` was given 1 zero, where it has no finite slope",
    ),
    "a power": (f"{VECTOR}d = (w ** 0.5).sum()\nd.backward()\nsgd.step()", "`**` was given 3 zeros among 3 values"),
    "where": (
        f"{VECTOR}loss = torch.where(w > 0, w.log(), torch.zeros(3)).sum()\nloss.backward()\nsgd.step()",
        "`log` was given 3 zeros",
    ),
    "in a function": (IN_A_FUNCTION, "`sqrt` was given 3 zeros among 9 values"),
}


@pytest.mark.parametrize("name", LOSSES)
def test_the_operation_behind_a_loss(name):
    cell, text = LOSSES[name]
    told = findings(cell)
    assert [one.slug for one in told] == ["nonfinite-loss"]
    assert text in told[0].message
    assert "set_detect_anomaly" not in told[0].fix


@pytest.mark.parametrize("name", GRADIENTS)
def test_the_operation_behind_a_gradient(name):
    cell, text = GRADIENTS[name]
    told = findings(cell)
    assert [one.slug for one in told] == ["nonfinite-gradient"]
    assert text in told[0].message


def test_data_are_not_blamed_on_an_operation():
    told = findings("x[3, 1] = float('nan')\nupdate()")
    assert "`a`" in told[0].message


def test_a_mask_of_minus_infinity_is_no_origin():
    mask = "mask = torch.zeros(2, 32).index_fill(1, torch.arange(3), float('-inf'))"
    told = findings(
        loop(
            mask,
            "p = torch.log_softmax(torch.cat([out, -out], 1).T + mask, 1)",
            "cost = p.exp().sum() / (out * 0).sum()",
        )
    )
    assert "`/` was given 1 zero to divide by" in told[0].message


FIXES = {
    "log1p": ("F.mse_loss((net(x) - 3).log1p(), y)", "log1p()"),
    "a root as a power": ("((net(x) - 3) ** 0.45 - y).abs().mean()", ".pow(p)"),
    "a vector of zeros": ("((v := net(x) * 0) / v.norm(dim=1, keepdim=True)).mean()", "F.normalize(v, dim=-1)"),
    "a count of zero": ("net(x).sum() / (net(x) * 0).sum()", ".sum().clamp_min(1e-08)"),
}
FIXED = """
import torch.nn.functional as F
torch.manual_seed(0)
x, y, net = torch.randn(8, 3), torch.rand(8, 2), nn.Linear(3, 2)
loss = {loss}
loss.backward()"""


@pytest.mark.parametrize("name", FIXES)
def test_the_fix_is_about_the_operation(name):
    loss, fix = FIXES[name]
    (told,) = [one for one in findings(FIXED.format(loss=loss)) if one.slug == "nonfinite-loss"]
    assert fix in told.fix


def test_the_slope_of_log1p():
    cell = f"{VECTOR}loss = (w - 1).log1p().exp().sum() + 1\nloss.backward()\nsgd.step()"
    (told,) = [one for one in findings(cell) if one.slug == "nonfinite-gradient"]
    assert "log1p()" in told.fix


ONE = """
net = nn.Linear(3, 1)
def update(x, gains):
    gains = (gains - gains.mean()) / ({spread} + 1e-8)
    loss = (net(x)[:, 0] * gains).sum()
    loss.backward()
update(torch.rand({count}, 3), torch.tensor({values}))"""


@pytest.mark.parametrize("spread", ["gains.std()", "torch.std(gains)"])
def test_one_value_has_no_spread(spread):
    (told,) = findings(ONE.format(values="[2.0]", spread=spread, count=1))
    assert "one value has no spread" in told.message
    assert "correction=0" in told.fix


@pytest.mark.parametrize(("values", "spread"), [("[2.0]", "gains.std(correction=0)"), ("[2.0, 1.0]", "gains.std()")])
def test_values_with_a_spread(values, spread):
    assert not findings(ONE.format(values=values, spread=spread, count=len(values.split(","))))


def test_one_value_that_is_no_number_itself():
    (told,) = findings(ONE.format(values="[float('nan')]", spread="1", count=1))
    assert "spread" not in told.message


def test_the_exponent_is_limited_in_its_own_names():
    cell = loop("hazard = torch.exp((out * 1e4).abs())", "cost = hazard.mean()")
    (finding,) = [one for one in findings(cell) if one.slug == "nonfinite-loss"]
    line, _, remark = finding.fix.partition("  # ")
    assert line == "hazard = (out * 10000.0).abs().clamp_max(10).exp()"
    assert "torch.logsumexp" in remark
    assert findings(cell.replace("hazard = torch.exp((out * 1e4).abs())", line)) == []


FEATURES = """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(3, 1)
raw = torch.cat([torch.randn(20, 2), torch.full((20, 1), {value})], 1)
class Scale:
    def __init__(self, t):
        self.mean, self.std = t.mean(0), t.std(0)
    def __call__(self, t):
        return (t - self.mean) / self.std
scale = Scale(raw)
for x in scale(raw).split(10):
    loss = nn.functional.mse_loss(net(x), torch.zeros(10, 1))
    loss.backward()
"""


def test_a_column_of_equal_values_is_divided_by_a_spread_that_is_kept_from_zero():
    code = FEATURES.format(value="7.0")
    (finding,) = findings_in(code, slug="nonfinite-loss", fails=False)
    statement = finding.fix.partition("  #")[0]
    assert statement == "return (t - self.mean) / self.std.clamp_min(1e-8)"
    mended = code.replace("return (t - self.mean) / self.std", statement)
    assert not findings_in(mended, slug="nonfinite-loss", fails=False)


def test_columns_that_differ_are_left_alone():
    code = FEATURES.replace("torch.full((20, 1), {value})", "torch.randn(20, 1)")
    assert not findings_in(code, slug="nonfinite-loss", fails=False)


EXPONENTIALS = """\
import torch
from torch import nn
torch.manual_seed(0)
enc = nn.Linear(4, 4)
def sample(logvar):
    return torch.exp(0.5 * logvar)
def divergence(logvar):
    return {}
x = torch.randn(8, 4) * 1000"""


@pytest.mark.parametrize(
    ("other", "line", "fix"),
    [
        ("(logvar + 1).exp() * 0", 6, "(0.5 * logvar).clamp_max(10).exp()"),
        ("logvar.exp() * 0", None, "limit the exponent"),
        ("(logvar * 0).exp()", None, "limit the exponent"),
    ],
)
def test_of_two_calls_the_one_is_named_whose_operand_is_made_alike(other, line, fix):
    training = "h = enc(x)\ncost = sample(h).mean() + divergence(h * 0).mean()\ncost.backward()"
    (finding,) = findings_in(EXPONENTIALS.format(other), training, slug="nonfinite-loss", fails=False)
    assert finding.fix.startswith(fix)
    assert line is None or (finding.cell, finding.line) == (1, line)


def test_a_division_is_mended_in_its_own_names():
    setup = "import torch\nnet, mask = torch.nn.Linear(4, 1), torch.zeros(3)"
    cell = "gap = net(torch.ones(3, 4))[:, 0]\nloss = (gap * mask).sum() / {}\nloss.backward()"
    (finding,) = findings_in(setup, cell.format("mask.sum()"), slug="nonfinite-loss", fails=False)
    assert finding.fix.startswith("loss = (gap * mask).sum() / mask.sum().clamp_min(1e-08)  #")


@pytest.mark.parametrize(
    ("weights", "least"),
    [
        ("w = (torch.zeros(3) > 0).float()", "clamp_min(1)"),
        ("w = torch.zeros(3, dtype=torch.bool).float()", "clamp_min(1e-08)"),
        ("w = torch.zeros(3)", "clamp_min(1e-08)"),
        ("w = torch.rand(3) * torch.zeros(3)", "clamp_min(1e-08)"),
    ],
)
def test_only_counts_are_at_least_one(weights, least):
    """A sum of weights may be 0.3 in the next batch."""
    setup = f"import torch\nnet = torch.nn.Linear(4, 1)\n{weights}"
    cell = f"{weights}\nloss = (net(torch.ones(3, 4))[:, 0] * w).sum() / {{}}\nloss.backward()"
    (finding,) = findings_in(setup, cell.format("w.sum()"), slug="nonfinite-loss", fails=False)
    assert finding.fix.startswith(f"loss = (net(torch.ones(3, 4))[:, 0] * w).sum() / w.sum().{least}  #")
    assert not findings_in(setup, cell.format(f"w.sum().{least}"), slug="nonfinite-loss", fails=False)


def test_a_count_of_a_variable_that_is_a_mask():
    setup = "import torch\nnet, w = torch.nn.Linear(4, 1), torch.zeros(3, dtype=torch.bool)"
    cell = "loss = (net(torch.ones(3, 4))[:, 0] * w).sum() / w.float().sum()\nloss.backward()"
    (finding,) = findings_in(setup, cell, slug="nonfinite-loss", fails=False)
    assert "w.float().sum().clamp_min(1)" in finding.fix


@pytest.mark.parametrize("loss", ["(pred / b).square().mean()", "(pred * b.reciprocal()).square().mean()"])
def test_no_lower_bound_for_what_has_both_signs(loss):
    setup = "import torch\nnet, b = torch.nn.Linear(4, 1), torch.tensor([-2.0, 0.0, 3.0], requires_grad=True)"
    cell = f"pred = net(torch.ones(3, 4))[:, 0]\nloss = {loss}\nloss.backward()"
    (finding,) = findings_in(setup, cell, slug="nonfinite-loss", fails=False)
    assert "clamp_min(" not in finding.fix
    assert "where " in finding.fix


@pytest.mark.parametrize("loss", ["(pred * (1 / d)).mean()", "(pred * d**-1).mean()"])
def test_no_bound_is_advised_for_a_constant_of_both_signs(loss):
    setup = "import torch\nnet, d = torch.nn.Linear(4, 1), torch.tensor([-2.0, 0.0, 3.0])"
    cell = f"pred = net(torch.ones(3, 4))[:, 0]\nloss = {loss}\nloss.backward()"
    (finding,) = findings_in(setup, cell, slug="nonfinite-loss", fails=False)
    assert "clamp" not in finding.fix
    assert "apart from 0" in finding.fix


HALF = """\
import torch
from torch import nn
torch.manual_seed(0)
m = nn.Linear(3, 1).half()
x = torch.randn(8, 3).half() * 200"""


@pytest.mark.parametrize(
    ("made", "fix"),
    [
        ("p = torch.sigmoid(m(x))\nloss = -torch.log(p + 1e-15).mean()", "(p + 1e-15).clamp_min(1e-4).log()"),
        ("z = (m(x) * 0)[:, 0].abs()\nw = x[:, 0] / z\nloss = w.sum()", "w = x[:, 0] / z.clamp_min(0.0001)"),
        ("v = m(x) * 0\nloss = (v / v.norm(dim=1, keepdim=True)).sum()", "F.normalize(v, dim=-1, eps=1e-4)"),
    ],
)
def test_the_small_number_of_a_fix_is_none_that_float16_takes_for_zero(made, fix):
    (finding,) = findings_in(HALF, f"{made}\nloss.backward()", slug="nonfinite-loss", fails=False)
    assert finding.fix.startswith(fix)


FLOW = """\
import torch
from torch import nn
torch.manual_seed(0)
class Coupling(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(2, 4)
    def forward(self, x):
        a, b = x.chunk(2, 1)
        s, t = self.net(a * 9).chunk(2, 1)
        return torch.cat([b * {factor} + t, a], 1), s.sum(1)
class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Coupling() for _ in range(6)])
    def forward(self, x):
        total = 0
        for layer in self.layers:
            x, more = layer(x)
            total = total + more
        return (x.square().sum(1) - total).mean()
flow = Flow()"""


@pytest.mark.parametrize(
    ("factor", "fix"),
    [("torch.exp(s)", "s = torch.tanh(s)  # before torch.exp(s)"), ("(2 * s).exp()", "(2 * s).tanh().exp()")],
)
def test_a_scale_that_many_layers_multiply_is_bounded_on_both_sides(factor, fix):
    turn = "x = torch.randn(32, 4) * 9\nloss = flow(x)\nloss.backward()"
    (finding,) = findings_in(FLOW.format(factor=factor), turn, slug="nonfinite-loss", fails=False)
    assert finding.fix.startswith(fix)
    mended = FLOW.format(factor="torch.tanh(s).exp()" if "tanh(s)" in fix else "(2 * s).tanh().exp()")
    assert not findings_in(mended, turn, slug="nonfinite-loss", fails=False)


CLAMPED = """\
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1), nn.Sigmoid())
opt = torch.optim.Adam(net.parameters(), lr=0.01)
x = torch.randn(128, 8) * 30
y = (x[:, 0] > 0).float()
def focal(p, y, eps=1e-8):
    p = torch.clamp(p, eps, 1 - eps)
    {}
    more = (1 - y) * torch.pow(p, 0.0) * torch.log(1 - p)
    return -(y * torch.pow(1 - p, 0.0) * torch.log(p) + more).mean()"""
CLAMPED_TURNS = """\
values = []
for it in range(25):
    opt.zero_grad()
    loss = focal(net(x).squeeze(1), y)
    loss.backward()
    opt.step()
    values.append(loss.item())"""


def test_a_list_of_losses_that_ends_in_nan_names_the_logarithm_that_may_be_to_blame():
    (finding,) = findings_in(CLAMPED.format("pass"), CLAMPED_TURNS, slug="nonfinite-loss", fails=False)
    assert "`values[5]` is nan" in finding.message
    assert "it goes through `log` (line 11 of cell 1, line 12 of cell 1)" in finding.message
    fix = finding.fix.partition("  # ")[0]
    assert fix == "p = p.clamp(1e-6, 1 - 1e-6)"
    assert not findings_in(CLAMPED.format(fix), CLAMPED_TURNS, fails=False)
