"""Fixes and lines where the texts have one expression only that can be meant."""

import pytest

from tests.cells import findings_in

SETUP = """\
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
x, y = torch.randn(20, 4), torch.arange(20) % 3
net = nn.Linear(4, 3)
opt = torch.optim.SGD(net.parameters(), lr=.1)"""
FUNCTIONS = """\
def distance(a, b):
    d = ((a - b) ** 2).sum(1).sqrt()
    return d.mean()

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)
    def forward(self, x):
        x = self.fc(x)
        return F.log_softmax(x, dim=0)
class Scores(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)
    def forward(self, x):
        return self.fc(x).softmax(-1)"""
TWO = "def other(v):\n    return torch.sqrt(v) + F.log_softmax(v, 0)"


def found(slug, *cells):
    return findings_in(SETUP, *cells, slug=slug)


def test_the_root_of_a_function_in_an_earlier_cell():
    call = "a = net(x)\nloss = distance(a, a.detach().clone())\nloss.backward()\nopt.step()"
    (finding,) = found("nonfinite-gradient", FUNCTIONS, call)
    assert (finding.cell, finding.line) == (2, 2)
    assert finding.fix == "d = (((a - b) ** 2).sum(1) + 1e-12).sqrt()"
    (finding,) = found("nonfinite-gradient", FUNCTIONS, TWO, call)
    assert (finding.cell, finding.line) != (2, 2)
    mended = FUNCTIONS.replace("d = ((a - b) ** 2).sum(1).sqrt()", "d = (((a - b) ** 2).sum(1) + 1e-12).sqrt()")
    assert found("nonfinite-gradient", mended, call) == []


def test_negative_numbers_are_kept_from_the_root_before_it():
    cell = """\
power = nn.Parameter(torch.tensor([.5, -1., 2.]))
opt = torch.optim.SGD([power], lr=.1)
loss = torch.where(power > 0, torch.sqrt(power), torch.zeros_like(power)).sum()
loss.backward()
opt.step()"""
    (finding,) = found("nonfinite-gradient", cell)
    assert (finding.line, finding.fix) == (3, "power.clamp_min(1e-12).sqrt()  # in place of torch.sqrt(power)")
    assert found("nonfinite-gradient", cell.replace("torch.sqrt(power)", finding.fix.split("  #")[0])) == []


def test_the_logarithm_of_zeros():
    cell = "p = torch.softmax(net(x) * 1000, dim=1)\nloss = -(F.one_hot(y, 3) * p.log()).sum(1).mean()\nloss.backward()"
    (finding,) = found("nonfinite-loss", cell)
    assert finding.line == 2
    assert finding.fix.startswith("p.clamp_min(1e-12).log()  # in place of p.log(); or F.log_softmax")


@pytest.mark.parametrize("more", [(), (TWO,)])
def test_the_softmax_of_a_forward(more):
    train = "model = Net()\nloss = F.nll_loss(model(x), y)\nloss.backward()"
    (finding,) = found("softmax-over-batch", FUNCTIONS, *more, train)
    assert "log_softmax(" in finding.fix
    if not more:
        assert (finding.cell, finding.line) == (2, 11)
        assert finding.fix.startswith("F.log_softmax(x, dim=-1)  # in place of F.log_softmax(x, dim=0)")
    else:
        assert finding.cell == 4


def test_weights_that_a_lost_eps_spoiled_are_told_once():
    cell = """\
half = nn.Linear(4, 1).half()
adam = torch.optim.Adam(half.parameters())
data = x.half()
for step in range(4):
    adam.zero_grad()
    loss = half(data).pow(2).mean() * 1e-3 + 0 * half(data[:0]).sum()
    loss.backward()
    half.bias.grad.zero_()
    adam.step()"""
    slugs = [one.slug for one in findings_in(SETUP, cell) if one.slug in ("half-without-scaler", "nonfinite-loss")]
    assert slugs == ["half-without-scaler"]


def test_one_infinite_value_of_a_sum():
    cell = "a = torch.full((64,), 200.).half()\ntotal = (a ** 2).sum()"
    (finding,) = found("half-overflow", cell)
    assert finding.message.startswith("`total` is infinite:")
    assert "q /" not in finding.fix


BATCHES = "norm = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))\n"


@pytest.mark.parametrize(
    ("cell", "fix"),
    [
        ("for row in x:\n    loss = norm(row[None]).sum()\n    loss.backward()", "two samples or more"),
        ("for row in torch.utils.data.DataLoader(x, 1):\n    norm(row).sum().backward()", "two samples or more"),
        ("for row in torch.utils.data.DataLoader(x[:9], 4):\n    norm(row).sum().backward()", "drop_last=True"),
        ("seen = norm(x[:1])", "norm.eval()"),
    ],
)
def test_a_batch_of_one_in_training_is_not_for_eval_mode(cell, fix):
    (finding,) = found("batchnorm-single-sample", BATCHES + cell)
    assert fix in finding.fix


LITTLE = """\
class Little(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)
    def forward(self, x):
        return self.fc(x).softmax(-1)
    def training_step(self, batch):
        y_hat = self(batch[0])
        return {"loss": F.cross_entropy(y_hat, batch[1])}
class Focal(nn.Module):
    def forward(self, logits, targets):
        p = torch.sigmoid(logits)
        ce = F.binary_cross_entropy_with_logits(p, targets, reduction="none")
        return ((1 - p) ** 2 * ce).mean()"""
STEP = "lit = Little()\nout = lit.training_step((x, y))\nout['loss'].backward()"


def test_the_only_loss_of_a_method_is_where_softmax_is_applied_twice():
    (finding,) = found("softmax-before-cross-entropy", LITTLE, STEP)
    assert (finding.cell, finding.line, finding.subject) == (2, 9, "y_hat")
    (finding,) = found(
        "softmax-before-cross-entropy", LITTLE, "def also(a, b):\n    return F.cross_entropy(a, b)", STEP
    )
    assert finding.cell == 4
    assert found("softmax-before-cross-entropy", LITTLE.replace(".softmax(-1)", ""), STEP) == []


def test_the_same_function_for_probabilities():
    cell = "loss = Focal()(net(x), F.one_hot(y, 3).float())\nloss.backward()"
    (finding,) = found("sigmoid-before-bce-logits", LITTLE, cell)
    assert finding.fix.startswith("ce = F.binary_cross_entropy(p, targets, reduction='none')  # the sigmoid stays")
    weighed = LITTLE.replace("targets, reduction", "targets, pos_weight=torch.ones(3), reduction")
    (finding,) = found("sigmoid-before-bce-logits", weighed, cell)
    assert finding.fix.startswith("nn.BCELoss()")


def test_two_losses_of_one_layer_are_told_once():
    cell = """\
disc = nn.Sequential(nn.Linear(4, 1), nn.Sigmoid())
bce = nn.BCEWithLogitsLoss()
loss_d = bce(disc(x), torch.ones(20, 1)) + bce(disc(-x), torch.zeros(20, 1))
loss_d.backward()
loss_g = bce(disc(x), torch.ones(20, 1))
loss_g.backward()"""
    (finding,) = found("sigmoid-before-bce-logits", cell)
    assert finding.message.endswith("So does `loss_d`.")
    assert found("sigmoid-before-bce-logits", cell.replace(", nn.Sigmoid()", "")) == []


HEADS = """\
class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads, self.size = 3, 5
        self.wq, self.wk, self.wv = (nn.Linear(15, 15) for _ in range(3))
    def forward(self, x):
        b, t, _ = x.shape
        q = self.wq(x).view(b, t, self.heads, self.size)
        k = self.wk(x).view(b, t, self.heads, self.size)
        v = self.wv(x).view(b, t, self.heads, self.size)
        q = q.view(b, self.heads, t, self.size)
        k = k.view(b, self.heads, t, self.size)
        v = v.view(b, self.heads, t, self.size)
        return (q @ k.mT).softmax(-1) @ v"""


def test_heads_that_are_cut_alike_are_told_once():
    cell = "heads = Heads()\nloss = heads(torch.rand(2, 10, 15)).square().mean()\nloss.backward()"
    (finding,) = found("view-where-permute-meant", HEADS, cell)
    assert finding.message.endswith("So are `k` and `v`.")
    assert finding.fix.splitlines() == [f"{name} = {name}.permute(0, 2, 1, 3)" for name in "qkv"]
    mended = HEADS
    for line in finding.fix.splitlines():
        mended = mended.replace(f"{line[0]} = {line[0]}.view(b, self.heads, t, self.size)", line)
    assert found("view-where-permute-meant", mended, cell) == []


ADVANTAGES = """\
critic = nn.Linear(4, 1)
returns = torch.randn(20)
values = critic(x)
advantages = returns - values.detach()
ratio = net(x)[:, 0].exp()
loss = -{}.mean()
loss.backward()"""


@pytest.mark.parametrize(
    "worst",
    [
        "torch.min(ratio * advantages, ratio.clamp(.8, 1.2) * advantages)",
        "torch.max(advantages * ratio, torch.clamp(ratio, .8, 1.2) * advantages)",
        "(ratio * advantages).min(ratio.clamp(.8, 1.2) * advantages)",
        "torch.minimum(ratio * advantages, ratio.clamp(.8, 1.2) * advantages)",
    ],
)
def test_the_smaller_of_two_tables_is_no_use_of_an_axis(worst):
    cell = ADVANTAGES.format(worst)
    (finding,) = found("silent-broadcast", cell)
    assert (finding.line, finding.subject) == (4, "advantages")
    mended = cell.replace("advantages = returns - values.detach()", finding.fix)
    assert found("silent-broadcast", mended) == []


@pytest.mark.parametrize(
    "nearest",
    ["torch.min(advantages.abs(), 1)[0]", "advantages.abs().min(0)[0]", "torch.min(advantages, advantages.T)"],
)
def test_a_table_of_all_pairs_that_is_read_along_an_axis(nearest):
    assert found("silent-broadcast", ADVANTAGES.format(nearest)) == []
