"""A column against a row in losses of functions and methods, whose variables are gone when the cell is done."""

import pytest

from tests.cells import a_notebook, findings_in

SETUP = """\
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(3, 1)
crit = {loss}
opt = torch.optim.SGD(net.parameters(), lr=0.01)
def fit(inputs, wanted):
    for i in range(0, len(inputs), 16):
        loss = crit(net(inputs[i:i + 16]), {target})
        opt.zero_grad()
        loss.backward()
        opt.step()"""


def found(target, cell, loss="nn.MSELoss()"):
    warnings = "import warnings\nwarnings.simplefilter('ignore')"
    setup = SETUP.format(loss=loss, target=target)
    return findings_in(warnings, setup, cell, slug="loss-broadcast", fails=False)


@pytest.mark.parametrize("loss", ["nn.MSELoss()", "nn.L1Loss()", "nn.SmoothL1Loss()"])
def test_what_only_the_call_knows(loss):
    """The caller's text has the call, and not the tensors: the frame that runs has them."""
    (finding,) = found("wanted[i:i + 16]", "fit(torch.randn(64, 3), torch.randn(64))", loss)
    assert (finding.cell, finding.line, finding.severity) == (2, 9, "error")
    assert "compares (16, 1) with (16,)" in finding.message


@pytest.mark.parametrize(
    ("target", "cell"),
    [
        ("wanted[i:i + 16]", "fit(torch.randn(64, 3), torch.randn(64, 1))"),
        ("wanted[i:i + 16, None]", "fit(torch.randn(64, 3), torch.randn(64))"),
    ],
)
def test_sizes_that_fit(target, cell):
    assert not found(target, cell)


BOOTSTRAP = """\
import torch
from torch import nn
torch.manual_seed(0)
critic, opt = nn.Linear(4, 1), None
opt = torch.optim.SGD(critic.parameters(), lr=0.01)
state, later, reward, done = torch.randn(24, 4), torch.randn(24, 4), torch.randn(24), torch.zeros(24)
def update(loss):
    opt.zero_grad()
    loss.backward()
    opt.step()
def learn(state, later, reward, done):
    with torch.no_grad():
        target = {target}
    error = target - critic(state)
    loss = error.pow(2).mean()
    update(loss)"""


@pytest.mark.parametrize(
    "target",
    ["reward + 0.9 * critic(later) * (1 - done)", "reward + 0.9 * critic(later).detach()", "critic(later) + reward"],
)
def test_a_target_that_is_a_table_already(target):
    (finding,) = findings_in(BOOTSTRAP.format(target=target), "learn(state, later, reward, done)", fails=False)
    assert (finding.slug, finding.line) == ("loss-broadcast", 9)
    assert "compares (24, 1) with (24, 24): a row met a column where `target` was computed" in finding.message
    assert "target has to be (N, 1)" in finding.fix


@pytest.mark.parametrize(
    "target",
    ["reward.unsqueeze(1) + 0.9 * critic(later)", "reward + 0.9 * critic(later).squeeze(1).detach()[:, None]",
     "torch.cdist(state, later) + 0 * reward", "reward[:, None] + 0 * done[None]"],
)  # fmt: skip
def test_tables_that_may_be_meant(target):
    assert not findings_in(BOOTSTRAP.format(target=target), "learn(state, later, reward, done)", fails=False)


def test_a_difference_apart_from_the_loss_is_told_once():
    cell = "for _ in range(3):\n    gap = critic(state) - reward\n    loss = gap.abs().mean()\n    update(loss)"
    (finding,) = findings_in(BOOTSTRAP.format(target="reward"), cell, fails=False)
    assert finding.slug == "loss-broadcast"


WEIGHTS = """\
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
net, actor = nn.Linear(3, 1), nn.Linear(3, 4)
x, y, weight = torch.randn(20, 3), torch.rand(20, 1), torch.rand(20)
action = torch.randint(0, 4, (20, 1))
each = nn.BCEWithLogitsLoss(reduction='none')"""


@pytest.mark.parametrize(
    "loss",
    [
        "(weight * (net(x) - y) ** 2).mean()",
        "(each(net(x), y) * weight).sum()",
        "-(F.log_softmax(actor(x), 1).gather(1, action) * weight).mean()",
    ],
)
def test_weights_that_meet_a_column(loss):
    (finding,) = findings_in(WEIGHTS, f"loss = {loss}\nloss.backward()", fails=False)
    assert finding.slug == "loss-broadcast"
    assert "multiplies (20, 1) with (20,)" in finding.message


@pytest.mark.parametrize(
    "loss",
    [
        "(weight[:, None] * (net(x) - y) ** 2).mean()",
        "(weight * ((net(x) - y) ** 2).squeeze(1)).mean()",
        "(torch.linspace(0.1, 0.9, 20) * (net(x) - y).abs()).mean()",
        "((net(x) - y).abs() * weight[None] - torch.rand(20, 20)).square().mean()",
        "((net(x) - y).abs() * weight[None]).mean(1).max()",
    ],
)
def test_weights_that_fit(loss):
    assert not findings_in(WEIGHTS, f"loss = {loss}\nloss.backward()", fails=False)


def test_the_fix_is_written_with_names_that_exist():
    code = (
        "import torch\nfrom torch import nn\nmodel = nn.Linear(3, 1)\n"
        "rooms, price = torch.rand(64, 3), torch.rand(64)\n"
        "predicted = model(rooms)\nloss = ((predicted - price) ** 2).mean()\nloss.backward()"
    )
    with a_notebook() as notebook:
        (finding,) = notebook.run(code).findings
        assert finding.fix.startswith("price = price.unsqueeze(1)")
        notebook.run(finding.fix)
        assert notebook.errors[-1] is None


UNREAD = """\
import warnings
import torch
from torch import nn
warnings.simplefilter("default")
torch.manual_seed(0)
critic, later = nn.Linear(4, 3), nn.Linear(4, 3)
def td_loss(batch, gamma=0.99):
    state, action, reward, following = batch
    known = critic(state).gather(1, action)
    target = reward{reward} + gamma * later(following).max(1{keep})[0].detach()
    return nn.functional.mse_loss(known, target)"""
UNREAD_STEP = """\
batch = torch.randn(9, 4), torch.ones(9, 1).long(), torch.randn(9), torch.randn(9, 4)
loss = td_loss(batch)
loss.backward()"""


def test_sides_that_the_text_does_not_tell_are_told_by_torch():
    (finding,) = findings_in(UNREAD.format(reward="", keep=""), UNREAD_STEP, fails=False)
    assert (finding.slug, finding.line) == ("loss-broadcast", 2)
    assert "compares (9, 1) with (9,)" in finding.message


def test_sides_that_the_text_does_not_tell_and_fit():
    code = UNREAD.format(reward="[:, None]", keep=", keepdim=True")
    assert not findings_in(code, UNREAD_STEP, fails=False)


BOOTSTRAPPED = """\
import torch
from torch import nn
torch.manual_seed(0)
critic, later = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)), nn.Linear(4, 3)
state, following = torch.randn(2, 9, 4)
action, reward, over = torch.ones(9, 1).long(), torch.randn(9), torch.zeros(9)
def td_loss(state, action, reward, following, over, gamma=0.99):
    known = critic(state).gather(1, action)
    with torch.no_grad():
        best = {best}
    target = reward + gamma * best * (1 - over)
    return ((known - target) ** 2).mean()"""
BOOTSTRAPPED_STEP = "loss = td_loss(state, action, {reward}, following, {over})\nloss.backward()"
BESTS = (
    "critic(following).max(1)[0]",
    "critic(following).max(dim=1).values",
    "later(following).amax(-1)",
    "critic(following).mean(1)",
)


@pytest.mark.parametrize("best", BESTS)
def test_a_target_of_the_best_of_each_row(best):
    step = BOOTSTRAPPED_STEP.format(reward="reward", over="over")
    (finding,) = findings_in(BOOTSTRAPPED.format(best=best), step, fails=False)
    assert (finding.slug, finding.fix[:26]) == ("loss-broadcast", "target = target.unsqueeze(")


@pytest.mark.parametrize("best", ["critic(following).max(1, keepdim=True)[0]", "later(following).amax(-1)[:, None]"])
def test_a_target_of_the_best_of_each_row_that_fits(best):
    step = BOOTSTRAPPED_STEP.format(reward="reward[:, None]", over="over[:, None]")
    assert not findings_in(BOOTSTRAPPED.format(best=best), step, fails=False)


SPREAD = """\
import torch
import torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
net, wide = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1)), nn.Linear(3, 4)
bias = nn.Parameter(torch.zeros(16, 1))
x, y = torch.randn(16, 3), torch.randn(16, 4)
import warnings
warnings.simplefilter('ignore')"""


@pytest.mark.parametrize("loss", ["F.mse_loss(net(x), y)", "nn.L1Loss()(net(x), y)", "F.huber_loss(net(x), y)"])
def test_one_number_for_several_targets(loss):
    (finding,) = findings_in(SPREAD, f"loss = {loss}\nloss.backward()", fails=False)
    assert (finding.slug, finding.severity, finding.line) == ("loss-broadcast", "warning", 1)
    assert "spreads predictions (16, 1) over targets (16, 4)" in finding.message
    assert "y[:, :1]" in finding.fix


@pytest.mark.parametrize(
    "loss",
    [
        "F.mse_loss(net(x), y[:, :1])",
        "F.mse_loss(wide(x), y[:, :1])",
        "((net(x) - y) ** 2).mean()",
        "F.mse_loss(bias, y)",
        "F.l1_loss(net(x).expand(16, 4), y)",
    ],
)
def test_spread_on_purpose(loss):
    assert not findings_in(SPREAD, f"loss = {loss}\nloss.backward()", slug="loss-broadcast", fails=False)


@pytest.mark.parametrize("entry", ["b['y']", "b[1]"])
def test_an_entry_of_a_batch_is_mended_in_its_line(entry):
    made = "{'x': x, 'y': y}" if "'" in entry else "(x, y)"
    given = "b['x']" if "'" in entry else "b[0]"
    setup = "import torch\nnet, x, y = torch.nn.Linear(3, 1), torch.randn(8, 3), torch.randn(8)"
    line = f"loss = (net({given}) - {entry}).abs().mean()"
    loop = f"for b in [{made}] * 2:\n    {line}\n    loss.backward()"
    (finding,) = findings_in(setup, loop, slug="loss-broadcast", fails=False)
    mended = f"loss = (net({given}) - {entry}.unsqueeze(1)).abs().mean()"
    assert finding.fix.startswith(f"{mended}  # or .squeeze(1) on what it meets")


ACTIONS = """\
import torch
from torch import nn
torch.manual_seed(0)
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = nn.Linear(6, 4)
    def forward(self, x):
        dist = torch.distributions.Normal(self.mean(x), 1.0)
        action = dist.rsample()
        log_prob = dist.log_prob(action)
        return action, log_prob{summed}
actor, critic, target = Policy(), nn.Linear(6, 1), nn.Linear(6, 1)
opt = torch.optim.SGD(critic.parameters(), lr=0.1)
states, reward = torch.randn(16, 6), torch.randn(16, 1)
with torch.no_grad():
    wanted = reward + target(states) - 0.2 * actor(states)[1]
loss = nn.functional.mse_loss(critic(states), wanted)
loss.backward()"""


def test_logarithms_of_actions_are_added_up():
    (finding,) = findings_in(ACTIONS.format(summed=""), slug="loss-broadcast", fails=False)
    assert finding.fix.startswith("return (action, log_prob.sum(1, keepdim=True))  # line 12")
    assert not findings_in(ACTIONS.format(summed=".sum(1, keepdim=True)"), slug="loss-broadcast", fails=False)


@pytest.mark.parametrize(
    ("made", "summed"),
    [
        ("wanted = torch.randn(16, 4)", False),
        ("wanted = target(states).expand(16, 4).detach() * 2", False),
        (
            "def aim(policy):\n    return reward - policy(states)[1]\nwith torch.no_grad():\n    wanted = aim(actor)",
            True,
        ),
    ],
)
def test_logarithms_of_actions_that_the_target_comes_from(made, summed):
    text = ACTIONS.format(summed="").partition("with torch")[0] + made
    loss = "loss = nn.functional.mse_loss(critic(states), wanted)\nloss.backward()"
    (finding,) = findings_in(text, loss, slug="loss-broadcast", fails=False)
    assert finding.fix.startswith("return (action, log_prob.sum(1" if summed else "# 4 outputs of the last layer")


HEADS = """\
import warnings; warnings.simplefilter("ignore")
import torch
from torch import nn
torch.manual_seed(0)
class Head(nn.Linear):
    def score(self, out, {given}):
        return nn.functional.mse_loss(out.squeeze(), {target})
class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleList([Head(3, 1), Head(3, 1)])
    def forward(self, x, **others):
        return [head(x) for head in self.heads]
    def score(self, outs, **kw):
        return sum(head.score(one, **kw) for head, one in zip(self.heads, outs))
model = Both()
head = model.heads[0]
opt = torch.optim.SGD(model.parameters(), 0.01)"""
TURNS = """\
for _ in range(3):
    batch = {{"x": torch.randn(16, 3), "y": torch.randn({size})}}
    loss = {loss}
    opt.zero_grad(); loss.backward(); opt.step()"""
CALLS = [
    "head.score(head(batch['x']), **batch)",
    "head.score(head(batch['x']), y=batch['y'])",
    "model.score(model(**batch), **batch)",
    "sum(h.score(h(batch['x']), **batch) for h in [head])",
]


@pytest.mark.parametrize("loss", CALLS)
@pytest.mark.parametrize(("given", "target"), [("**kw", "kw['y'].float()"), ("x=None, **kw", "kw.get('y')")])
def test_a_target_that_is_handed_on_by_name(loss, given, target):
    for size, wrong in (("16, 1", True), ("16", False)):
        cells = HEADS.format(given=given, target=target), TURNS.format(size=size, loss=loss)
        findings = findings_in(*cells, slug="loss-broadcast", fails=False)
        assert [one.severity for one in findings] == ["error"] * wrong
        assert all("compares (16,) with (16, 1)" in one.message for one in findings)


FOLDED = """\
import torch, warnings
from torch import nn
warnings.simplefilter("ignore")
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(3, 4), nn.Linear(8 * 4, 5)
    def forward(self, x):
        return self.head(self.body(x).view(-1, 8 * 4))
net, many, few = Net(), torch.randn(8, 5), torch.randn(1, 3)
one = nn.Linear(3, 5)
class Set(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = one
    def forward(self, x):
        return self.body(x).mean(0, keepdim=True)
eight, gru = torch.randn(8, 3), nn.GRU(3, 5)
"""
JOINT = (
    FOLDED
    + """
class Joint(Net):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(4))
    def forward(self, x):
        h = self.body(x)
        return self.head({})
def joined(h, n=8):
    return {}
net = Joint()
"""
)


@pytest.mark.parametrize(
    ("line", "row", "severities"),
    [
        ("h = h * torch.sigmoid(h.mean(0))", "h.view(-1, 32)", ["warning"]),
        ("h = (h - h.mean(0)) / (h.std(0) + 1e-5)", "h.view(-1, 32)", ["warning"]),
        ("first = h[0]; h = h + first", "h.reshape(-1, 32)", ["warning"]),
        ("m = h.mean(0, keepdim=True)", "h.view(-1, 32)) * m.mean() + self.head(m.repeat(1, 8)", []),
        ("h = (h * torch.softmax(h.view(-1, 32).view(8, 4), 0)).sum(0, keepdim=True)", "h.repeat(1, 8)", []),
    ],
)
def test_a_mean_over_the_batch_before_a_view_folds_it(line, row, severities):
    code = JOINT.format(row, "h").replace("h = self.body(x)", f"h = self.body(x)\n        {line}")
    cell = "loss = nn.functional.mse_loss(net(eight), many)\nloss.backward()"
    assert [one.severity for one in findings_in(code, cell, slug="loss-broadcast", fails=False)] == severities


@pytest.mark.parametrize(
    ("line", "row", "severity"),
    [
        ("rows = len(h) // 8", "h.view(rows, -1)", "hint"),
        ("rows = 1", "h.view(rows, -1)", "hint"),
        ("shape = (1, -1)", "h.view(shape)", "hint"),
        ("shape = (1, -1)", "h.view(*shape)", "hint"),
        ("self.rows = 1", "h.view(self.rows, 32)", "hint"),
        ("rows, _ = h.shape", "h.view(rows, -1).view(-1, 32)", "warning"),
        ("rows = h.shape[0]; more = rows * 2", "h.view(more, -1).view(8, 4).view(-1, 32)", "warning"),
        ("rows = 8", "h.view(rows, -1).view(-1, 32)", "warning"),
        ("shape = (-1, 32)", "h.view(shape)", "warning"),
    ],
)
def test_rows_that_are_counted_may_be_one(line, row, severity):
    code = JOINT.format(row, "h").replace("h = self.body(x)", f"h = self.body(x)\n        {line}")
    cell = "loss = nn.functional.mse_loss(net(eight), many)\nloss.backward()"
    (found,) = findings_in(code, cell, slug="loss-broadcast", fails=False)
    assert found.severity == severity


@pytest.mark.parametrize(
    ("row", "helper", "severity"),
    [
        ("h.view(1, -1)", "h", "hint"),
        ("torch.reshape(h, (1, 8 * 4))", "h", "hint"),
        ("joined(h)", "h.reshape([1, -1])", "hint"),
        ("joined(h)", "h.reshape(-1, 32)", "warning"),
        ("(h * self.gain.view(1, -1)).view(-1, 32)", "h", "warning"),
        ("h.view(-1, 32)", "h.view(1, -1)", "warning"),
        ("h.reshape(shape=(1, -1))", "h", "hint"),
        ("torch.reshape(h, shape=(1, -1))", "h", "hint"),
        ("h.view(len(h) // 8, -1)", "h", "hint"),
        ("h.view(-1, h.numel())", "h", "hint"),
        ("joined(h)", "h.view(1 if len(h) else 0, -1)", "hint"),
        ("joined(h, 1)", "h.view(n, -1)", "hint"),
        ("joined(h, (1, -1))", "h.view(n)", "hint"),
        ("joined(h)", "h.view(-1, 32) if n else h.view(len(h), -1)", "warning"),
        ("h.view(h.size(0) * 2, -1).view(8, 4).view(-1, 32)", "h", "warning"),
        ("h.view(h.shape[0], -1).view(-1, 32)", "h", "warning"),
        ("h.reshape(shape=(-1, 32))", "h", "warning"),
    ],
)
def test_one_row_that_the_text_asks_for_may_be_meant(row, helper, severity):
    cell = "loss = nn.functional.mse_loss(net(eight), many)\nloss.backward()"
    (found,) = findings_in(JOINT.format(row, helper), cell, slug="loss-broadcast", fails=False)
    assert found.severity == severity


@pytest.mark.parametrize(
    ("loss", "severities"),
    [
        ("nn.functional.mse_loss(net(torch.randn(8, 3)), many)", ["warning"]),
        ("nn.L1Loss()(one(few), many)", ["hint"]),
        ("nn.MSELoss()(nn.Linear(3, 1)(few), many[:, :1])", ["hint"]),
        ("nn.functional.mse_loss(one(few).expand_as(many), many)", []),
        ("nn.functional.mse_loss(one(eight).mean(0, keepdim=True), many)", []),
        ("nn.functional.mse_loss(Set()(eight), many)", []),
        ("nn.functional.mse_loss(one(eight)[-1:], many)", []),
        ("nn.functional.mse_loss(gru(eight)[1], many)", []),
        ("nn.functional.mse_loss(nn.Linear(24, 5)(eight.view(-1, 24)), many)", ["hint"]),
        ("(one(few) - many).square().mean()", []),
        ("nn.functional.mse_loss(net(torch.randn(8, 3)), many[:1])", []),
    ],
)
def test_one_row_for_many_targets(loss, severities):
    found = findings_in(FOLDED, f"loss = {loss}\nloss.backward()", slug="loss-broadcast", fails=False)
    assert [one.severity for one in found] == severities


@pytest.mark.parametrize(
    ("loss", "name"),
    [
        ("((guessed - price) ** 2).mean()", "guessed"),
        ("(price - guessed).abs().mean()", "guessed"),
        ("nn.functional.mse_loss(net(rooms), price)", "net(rooms)"),
        ("nn.functional.mse_loss(\n    net(rooms), price)", "net(rooms)"),
        ("(price / 2 - guessed).abs().mean()", "guessed"),
        ("nn.functional.mse_loss(guessed, price) + (guessed * price).mean() * 0", "guessed"),
        ("nn.functional.mse_loss(guessed, price) + (price * rooms[0, 0]).mean()", "one side"),
    ],
)
def test_sides_have_the_names_that_the_loss_gives_them(loss, name):
    setup = "import torch\nfrom torch import nn\nnet, rooms, price = nn.Linear(3, 1), torch.rand(64, 3), torch.rand(64)"
    cell = f"import warnings\nwarnings.simplefilter('ignore')\nguessed = net(rooms)\nloss = {loss}\nloss.backward()"
    (finding,) = findings_in(setup, cell, slug="loss-broadcast", fails=False)
    labels = [fact.label for fact in finding.evidence]
    assert labels[0] == name
    assert labels[1:] == ["price / 2" if "/" in loss else "price", "stretched to"]


def test_fix_of_a_side_that_is_computed_is_code():
    setup = "import torch\nfrom torch import nn\nnet, rooms, price = nn.Linear(3, 1), torch.rand(64, 3), torch.rand(64)"
    cell = "guessed = net(rooms)\nloss = (price / 2 - guessed).abs().mean()\nloss.backward()"
    (finding,) = findings_in(setup, cell, slug="loss-broadcast", fails=False)
    assert finding.fix.startswith(("loss = ((price / 2).unsqueeze(1) - guessed)", "(price / 2).unsqueeze(1)  #"))
