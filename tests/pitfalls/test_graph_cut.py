"""Losses and parts that lost their way back to the parameters, and values that are meant to be without history."""

import pytest

from tests.cells import a_notebook, findings_in

SLUG = "graph-cut"
START = """\
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
x, y = torch.rand(16, 4), torch.rand(16, 1)
labels = (y > 0.5).long().squeeze(1)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
body, head = nn.Linear(4, 8), nn.Linear(8, 1)
opt = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
net_opt = torch.optim.SGD(net.parameters(), lr=0.1)
class Two(nn.Module):
    def __init__(self, cut=True):
        super().__init__()
        self.body, self.head, self.cut = nn.Linear(4, 8), nn.Linear(8, 1), cut
    def forward(self, x):
        h = self.body(x).relu()
        h = torch.tensor(h.tolist())
        return self.head(h)
def dice(pred, target):
    hard = pred.argmax(1).float()
    return 1 - (2 * hard * target).sum() / (hard.sum() + target.sum())"""


def found(*cells, slug=SLUG):
    with a_notebook() as notebook:
        for code in (START, *cells):
            notebook.run(code)
        return [f for run in notebook.runs if run for f in run.findings if f.slug == slug]


LOOP = """\
for _ in range(5):
    opt.zero_grad()
    loss = {}
    {}
    opt.step()"""


@pytest.mark.parametrize(
    ("code", "line", "words"),
    [
        ("pred = net(x).argmax(1).float()\nloss = (pred - labels).abs().mean()\nloss.backward()", 1, "argmax"),
        ("loss = dice(net(x), labels)\nloss.backward()", 2, "pred.argmax(1)"),
        ("loss = F.cross_entropy(net(x), labels).detach()\nloss.backward()", 1, "without their history"),
        ("out = net(x)\nout = out.data\nloss = out.pow(2).mean()\nloss.backward()", 2, "out.data"),
        ("scores = np.abs(net(x).detach().numpy())\nloss = torch.tensor(scores).mean()\nloss.backward()", 1, "NumPy"),
        ("with torch.no_grad():\n    out = net(x)\nloss = F.cross_entropy(out, labels)\nloss.backward()", 1, "no_grad"),
        (("losses = []\nfor a in x.split(4):\n    losses.append(net(a).sum().item())\n"
         "torch.tensor(losses).mean().backward()"), 3, "torch.tensor"),
        ("right = (net(x)[:, 1] > 0).float()\nloss = F.mse_loss(right, y[:, 0])\nloss.backward()", 1, "> 0"),
        (("@torch.no_grad()\ndef predict(batch):\n    return net(batch)\n"
         "F.cross_entropy(predict(x), labels).backward()"), 4, "`@torch.no_grad()`"),
        (("class Trainer:\n    def __init__(self, model): self.model = model\n    def loss(self, batch):\n"
         "        out = self.model(batch)\n        return out.max(1)[1].float().mean()\n"
         "    def step(self, batch):\n        loss = self.loss(batch)\n        loss.backward()\n"
         "Trainer(net).step(x)"), 5, "max(1)[1]"),
    ],
)  # fmt: skip
def test_a_loss_without_history(code, line, words):
    (finding,) = found(code)
    assert words in finding.message
    assert finding.line == line or "predict" in code
    assert found(code, slug="nothing-to-train") == []


WRAPPED = """\
from torch.autograd import Variable
@torch.no_grad()
def features(x):
    return x * 2
{}def loss_of(x):
    loss = net(features(x)).square().mean()
    {}
    return loss
for _ in range(3):
    net_opt.zero_grad()
    loss = loss_of(x)
    loss.backward()
    net_opt.step()"""


@pytest.mark.parametrize(
    ("before", "line", "place", "words", "fix"),
    [
        ("", "loss = Variable(loss, requires_grad=True)", 7, "", "# take this line out"),
        ("", "loss = Variable(2 * loss, requires_grad=True)", 7, "", "loss = 2 * loss  # without"),
        (
            "@torch.no_grad()\n",
            "loss = Variable(loss, requires_grad=True)",
            8,
            "no_grad()` (",
            "# take @torch.no_grad() away",
        ),
    ],
)
def test_a_variable_around_a_loss(before, line, place, words, fix):
    (finding,) = found(WRAPPED.format(before, line))
    assert (finding.line, "`Variable(" in finding.message) == (place, True)
    assert bool(words) == ("no_grad" in finding.message)
    assert fix in finding.fix


@pytest.mark.parametrize(
    ("lines", "fix"),
    [
        ("loss = Variable(ce(net(x)).data, requires_grad=True)", "loss = ce(net(x))  # without Variable() and .data"),
        ("loss = Variable(ce(net(x).detach()) / 2, requires_grad=True)", "loss = ce(net(x)) / 2  # without Variable()"),
        ("v = ce(net(x)).data\nloss = Variable(v, requires_grad=True)", "v = ce(net(x))\nloss = v  # without"),
        (
            "loss = net(x).mean()\nloss = loss.detach()\nloss = Variable(loss * 2, requires_grad=True)",
            "# take this line out: loss = loss.detach()\nloss = loss * 2  # without",
        ),
        (
            "loss = Variable((net(x) - body(x).mean().detach()).square().mean(), requires_grad=True)",
            "loss = (net(x) - body(x).mean().detach()).square().mean()  # without Variable(",
        ),
    ],
)
def test_a_variable_around_values_goes_with_what_lost_the_history(lines, fix):
    start = "from torch.autograd import Variable\nce = lambda out: F.cross_entropy(out, labels)\n"
    (finding,) = found(f"{start}{lines}\nloss.backward()\nnet_opt.step()")
    assert finding.fix.startswith(fix)


@pytest.mark.parametrize(
    "data",
    ["Variable(x)", "Variable(body(x))", "Variable(body(x), requires_grad=True)", "Variable(x, requires_grad=True)"],
)
def test_a_variable_around_data_is_not_blamed(data):
    cell = (
        "from torch.autograd import Variable\nwide = nn.Linear(8, 2)\n"
        f"def loss_of(x):\n    given = {data}\n    out = {'wide' if 'body' in data else 'net'}(given)\n"
        "    return torch.tensor(F.cross_entropy(out, labels).item(), requires_grad=True)\n"
        "loss = loss_of(x)\nloss.backward()\nnet_opt.step()"
    )
    (finding,) = found(cell)
    assert ("Variable" in finding.message, "item" in finding.message) == (False, True)


TIMED = """\
import functools
def timed(fn):
    @functools.wraps(fn)
    {}def wrapper(*given):
        {}
    return wrapper
class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 2)
    @timed
    def forward(self, x):
        return self.body(x)
own = Own()
F.cross_entropy(own(x), labels).backward()"""


@pytest.mark.parametrize(
    ("before", "inside", "line"),
    [
        ("@torch.no_grad()\n    ", "return fn(*given)", 4),
        ("", "with torch.no_grad(): return fn(*given)", 5),
    ],
)
def test_a_decorator_of_the_users_that_switches_gradients_off(before, inside, line):
    (finding,) = found(TIMED.format(before, inside))
    assert "torch.no_grad()` is around it" in finding.message
    assert (f"line {line}" in finding.message, "`wrapper` of `@timed`" in finding.message) == (True, bool(before))


def test_a_decorator_that_measures_without_gradients_is_not_blamed():
    inside = "with torch.no_grad(): given[1].norm()\n        return fn(*given).detach()"
    (finding,) = found(TIMED.format("", inside), slug="nothing-to-train")
    assert "what `own` gave has no history, though 2 of its parameters" in finding.message


@pytest.mark.parametrize(
    ("cells", "part", "line"),
    [
        ([LOOP.format("F.mse_loss(head(torch.tensor(body(x).tolist())), y)", "loss.backward()")], "body", 3),
        (
            [
                "two = Two()\nopt = torch.optim.SGD(two.parameters(), lr=0.1)\n"
                + LOOP.format("F.mse_loss(two(x), y)", "loss.backward()")
            ],
            "two.body",
            18,
        ),
    ],
)
def test_a_part_without_gradient(cells, part, line):
    (finding,) = found(*cells)
    assert (finding.subject, finding.line, finding.severity) == (part, line, "warning")


@pytest.mark.parametrize(
    "code",
    [
        LOOP.format("F.mse_loss(head(body(x)), y)", "loss.backward(); curve = loss.detach().item()"),
        LOOP.format("F.mse_loss(head(body(x)), head(body(x)).detach())", "loss.backward()"),
        "only = torch.optim.SGD(head.parameters(), lr=0.1)\n"
        + LOOP.format("F.mse_loss(head(body(x).detach()), y)", "loss.backward()").replace("opt.", "only."),
        "body.requires_grad_(False)\n" + LOOP.format("F.mse_loss(head(body(x).detach()), y)", "loss.backward()"),
        LOOP.format(
            "F.mse_loss(head(body(x)), y)",
            "loss.backward(); accuracy = (net(x).argmax(1) == labels).float().mean().item()",
        ),
        (
            "hard = (torch.sigmoid(body(x)) > 0.5).float()\nsoft = torch.sigmoid(body(x))\n"
            "(hard + soft - soft.detach()).sum().backward()"
        ),
        "picture = torch.rand(1, 4, requires_grad=True)\nnet.requires_grad_(False)\nnet(picture).sum().backward()",
        "w = torch.zeros(3, requires_grad=True)\n(w - 1).pow(2).sum().backward()",
        "score = torch.tensor(1.0, requires_grad=True)\nscore.backward()",
        (
            "log_p = torch.log_softmax(net(x), 1)\nwith torch.no_grad(): reward = (log_p.argmax(1) == labels).float()\n"
            "loss = -(reward * log_p.max(1).values).mean()\nloss.backward()\nnet_opt.step()"
        ),
    ],
)
def test_values_that_are_meant_to_have_none(code):
    assert found(code) == []


@pytest.mark.parametrize(
    ("copy", "kind"),
    [
        ("torch.tensor(net(x), requires_grad=True)", "makes a new tensor"),
        ("net(x).detach().requires_grad_()", "without their history"),
        ("torch.tensor([p.sum() for p in net(x)], requires_grad=True)", "makes a new tensor"),
    ],
)
def test_a_loss_that_ends_at_a_copy_of_what_the_model_gave(copy, kind):
    step = "net_opt.zero_grad(); loss.backward(); net_opt.step()"
    cell = f"for _ in range(3):\n    out = {copy}\n    loss = out.square().mean()\n    {step}"
    (finding,) = [f for f in findings_in(START, cell) if f.severity == "error"]
    assert (finding.slug, finding.line, finding.subject) == ("graph-cut", 2, "loss")
    assert "reaches no parameter of `net`" in finding.message
    assert kind in finding.message


def test_an_optimizer_of_another_model_beside_a_detached_one_is_told_as_such():
    cell = """\
for _ in range(3):
    out = head(body(x).detach())
    net_opt.zero_grad(); F.mse_loss(out, y).backward(); net_opt.step()
    (net(x).detach() - 1).square()"""
    (finding,) = [f for f in findings_in(START, cell) if f.severity == "error"]
    assert finding.slug == "optimizer-of-another-model"


def test_a_threshold_in_a_loss_of_the_users_own_class():
    loss = """\
class Overlap(nn.Module):
    def forward(self, scores, wanted):
        hard = (scores > 0.5).float().requires_grad_()
        return 1 - 2 * (hard * wanted).sum() / (hard.sum() + wanted.sum() + 1)
criterion = Overlap()"""
    cell = """\
for _ in range(3):
    loss = criterion(net(x)[:, :1], y)
    net_opt.zero_grad(); loss.backward(); net_opt.step()"""
    (finding,) = [f for f in findings_in(START, loss, cell) if f.severity == "error"]
    assert (finding.slug, finding.cell, finding.line) == ("graph-cut", 2, 3)
    assert "`scores > 0.5` gives true or false" in finding.message


FLAT = """\
for _ in range(3):
    opt.zero_grad(); net_opt.zero_grad()
    h = {hidden}
    loss = F.mse_loss(head(h), y){more}
    loss.backward(); opt.step(); net_opt.step()"""


@pytest.mark.parametrize("function", ["sign", "round", "floor", "ceil", "trunc"])
def test_the_only_way_leads_through_a_function_without_slope(function):
    (finding,) = found(FLAT.format(hidden=f"body(x).{function}()", more=""))
    assert (finding.subject, finding.line) == ("loss", 3)
    assert (
        f"the slope of `{function}` is 0 everywhere: 2 of the 4 parameters of `opt`, those of `body`" in finding.message
    )


def test_no_weight_at_all_is_told_once():
    cells = (
        START,
        "for _ in range(4):\n    net_opt.zero_grad()\n    net(x).round().mean().backward()\n    net_opt.step()",
    )
    with a_notebook() as notebook:
        runs = [notebook.run(code) for code in cells]
    assert [one.slug for one in runs[-1].findings] == [SLUG]


@pytest.mark.parametrize(
    ("hidden", "more"),
    [
        ("body(x)\n    h = h + (h.round() - h).detach()", ""),
        ("body(x)\n    h = h - h.floor()", ""),
        ("body(x)\n    h = h.sign() * h.abs().sqrt()", ""),
        ("body(x).sign()", " + body(x).square().mean()"),
        ("body(x).sign()", "\n    body(x).square().mean().backward()"),
        ("body(x).detach().round()", ""),
    ],
)
def test_another_way_brings_a_gradient_or_none_is_wanted(hidden, more):
    assert not any("slope" in one.message for one in found(FLAT.format(hidden=hidden, more=more)))


ANEW = """\
def simulate(rate):
    path, here = [], torch.tensor(1.0)
    for _ in range(5):
        here = here * rate
        path.append(here)
    return torch.tensor(path, requires_grad=True)"""


def test_a_function_makes_a_tensor_anew_in_each_step_and_the_model_was_never_called():
    loop = (
        "for _ in range(4):\n    own.zero_grad()\n    path = simulate(k)\n    miss = path.sum()\n"
        "    miss.backward()\n    own.step()"
    )
    cells = (ANEW, "k = nn.Parameter(torch.tensor(0.9))\nown = torch.optim.SGD([k], lr=0.1)", loop)
    with a_notebook() as notebook:
        runs = [notebook.run(code) for code in (START, *cells)]
    (finding,) = runs[-1].findings
    assert (finding.slug, finding.subject, finding.cell, finding.line) == (SLUG, "path", 2, 6)


MAML = """\
def adapt(inner):
    fast = [k]
    for _ in range(inner):
        support = (x[:, :1] * fast[0] - y[:, :1]).square().mean()
        grads = torch.autograd.grad(support, fast)
        fast = [(p - 0.1 * g){} for p, g in zip(fast, grads)]
    return fast[0]"""
OUTER = """\
for _ in range(4):
    own.zero_grad()
    query = (x[:, :1] * adapt(2) - y[:, :1]).square().mean()
    query.backward()
    own.step()"""


def test_weights_that_are_adapted_apart_are_told_by_the_line_that_cuts_them_off():
    make = (
        "k = nn.Parameter(torch.tensor(0.9))\nown = torch.optim.SGD([k], lr=0.1)\nz = torch.rand(2, requires_grad=True)"
    )
    with a_notebook() as notebook:
        for code in (START, make, MAML.format(".detach().requires_grad_(True)"), OUTER):
            run = notebook.run(code)
    (finding,) = (one for one in run.findings if one.slug == SLUG)
    assert (finding.subject, finding.cell, finding.line) == ("query", 3, 6)
    assert finding.fix == "take `.detach()` and `.requires_grad_()` out of this line"
    with a_notebook() as notebook:
        for code in (START, make, MAML.format(""), OUTER):
            run = notebook.run(code)
    assert not [one for one in run.findings if one.slug == SLUG]


@pytest.mark.parametrize(
    ("code", "fix"),
    [
        (
            "@torch.no_grad()\ndef step(a):\n    loss = net(a).sum()\n    loss.backward()\nstep(x)",
            "take @torch.no_grad() away from step()  # line 1",
        ),
        (
            "loss = net(x).sum()\ntotal = torch.zeros(1) + loss.item()\ntotal.backward()",
            "loss  # in place of loss.item()",
        ),
        (
            "loss = net(x).sum()\ntotal = torch.zeros(1) + float(loss)\ntotal.backward()",
            "loss  # in place of float(loss)",
        ),
        ("with torch.no_grad():\n    out = net(x)\nout.sum().backward()", "compute the training pass outside it"),
    ],
)
def test_the_fix_says_what_to_take_away(code, fix):
    assert found(code)[0].fix == fix


SUMMED = "total = 0\nfor _ in range(3):\n    total = total + net(x).sum(){}\n"


# The graph of a mean ends at the tensor that was made: only the step shows that nothing learns.
LISTED = """\
parts = []
for _ in range(3):
    parts.append(net(x).sum().item())
total = torch.tensor(parts, requires_grad=True).mean()
total.backward()
net_opt.step()"""


@pytest.mark.parametrize(
    ("code", "second"),
    [
        (
            SUMMED.format(".item()") + "total = torch.tensor(total / 3).requires_grad_(True)\ntotal.backward()",
            "total / 3  # in place of torch.tensor(total / 3), without requires_grad",
        ),
        (LISTED, "torch.stack(parts)  # in place of torch.tensor(parts, requires_grad=True), without requires_grad"),
    ],
)
def test_numbers_that_are_made_a_tensor_again_are_told_from_the_line_that_reads_them(code, second):
    (finding,) = found(code)
    assert finding.fix == f"net(x).sum()  # in place of net(x).sum().item()\n{second}"
    assert finding.line == 3
    assert "gives it no history" in finding.message


def test_a_sum_that_keeps_its_history_is_not_told_for_the_numbers_that_are_shown():
    assert not found(SUMMED.format("") + "seen = torch.tensor(total.item() / 3)\ntotal.backward()")


COX = """\
def cox(risk, time, event):
    r = risk.detach().numpy()
    order = np.argsort(-time.numpy())
    r = torch.from_numpy(r[order]).requires_grad_()
    return -((r - torch.logcumsumexp(r, 0)) * event[order]).mean()
"""
LOGS = """\
def cox(risk, time, event):
    logs = np.log1p(np.exp(risk.detach().cpu().numpy()))
    return torch.from_numpy(logs).requires_grad_().mean()
"""
UNKNOWN = LOGS.replace("np.exp(", "np.sinc(")
TURNS = """\
own = torch.optim.SGD(net.parameters(), lr=.1)
for _ in range(4):
    own.zero_grad()
    loss = cox(net(x).mean(1), torch.rand(len(x)), torch.ones(len(x)))
    loss.backward()
    own.step()"""


@pytest.mark.parametrize("code", [COX, LOGS])
def test_the_way_through_numpy_in_functions_of_torch(code):
    (finding,) = [one for one in found(code, TURNS) if one.slug == "graph-cut"]
    lines = code.splitlines()
    for one in finding.fix.splitlines():
        text, _, number = one.partition("  # line ")
        lines[int(number) - 1] = f"    {text}"
    assert "np." not in "\n".join(lines)
    assert found("\n".join(lines), TURNS) == []


def test_functions_that_torch_may_not_have_are_left_to_the_user():
    (finding,) = [one for one in found(UNKNOWN, TURNS) if one.slug == "graph-cut"]
    assert finding.fix.startswith("stay in PyTorch")


INNER = """\
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(2, 1)
def task(x):
    inner = net(x).pow(2).mean()
    grads = torch.autograd.grad(inner, tuple(net.parameters()), create_graph=True)
    w, b = (p - .1 * g for p, g in zip(net.parameters(), grads))
    return nn.functional.linear(x, w, b).pow(2).mean()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)"""
META = """\
for _ in range(4):
    total = 0.0
    for x in torch.randn(4, 8, 2):
        total += task(x){item}
    {loss}
    opt.zero_grad()
    total.backward()
    opt.step()"""
BY_HAND = """\
shift = torch.zeros(1, requires_grad=True)
for x in torch.randn(4, 8, 2):
    for p, g in zip(net.parameters(), torch.autograd.grad(net(x).pow(2).mean(), tuple(net.parameters()))):
        p.grad = g
    shift.sum().backward()
    opt.step()
    leaf = torch.tensor(net(x).mean().item(), requires_grad=True)
    leaf.backward()"""


@pytest.mark.parametrize("cut", ["torch.tensor(total / 4, requires_grad=True)", "torch.tensor(total).requires_grad_()"])
def test_gradients_that_are_asked_for_elsewhere_are_no_training(cut):
    cells = (INNER, META.format(item=".item()", loss=f"total = {cut}"))
    (finding,) = findings_in(*cells, slug="graph-cut", fails=False)
    assert finding.subject == "total"


@pytest.mark.parametrize("turns", [META.format(item="", loss="total = total / 4"), BY_HAND])
def test_gradients_that_are_asked_for_and_used(turns):
    assert findings_in(INNER, turns, slug="graph-cut", fails=False) == []


def test_the_variable_that_has_no_history_is_named():
    setup = "import torch\nfrom torch import nn\nnet, y = nn.Linear(3, 1), torch.rand(6)"
    cell = (
        "chosen = torch.tensor([net(torch.rand(3)) for _ in y])\nloss = (chosen - y).square().mean()\nloss.backward()"
    )
    (finding,) = findings_in(setup, cell, slug="graph-cut")
    assert finding.message.endswith("makes a new tensor from the values (`chosen`, line 1).")


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize(
    "code",
    [
        "t = teacher(x).data; loss = F.mse_loss(net(x), t); loss = Variable(loss.data, requires_grad=True)",
        "loss = F.mse_loss(net(x), teacher.requires_grad_(False)(x)).detach()",
        "with torch.no_grad(): t = teacher(x)\nloss = F.mse_loss(net(x), t).detach()",
    ],
)
def test_the_model_that_was_to_learn_is_named(code, held):
    start = "from torch.autograd import Variable\nteacher = nn.Linear(4, 2)\n"
    lines = f"{code}\nloss.backward()\nnet_opt.step()" if held else f"{code}\nloss.backward()"
    findings = found(start if held else f"{start}del net_opt", lines)
    assert all("reaches no parameter of `net`" in one.message for one in findings)
    assert findings or "Variable" in code


def test_of_two_models_with_optimizers_the_one_that_nothing_else_trains():
    judge = "d = nn.Linear(2, 1)\nd_opt = torch.optim.SGD(d.parameters(), lr=0.1)\n"
    first = "real = d(y.expand(-1, 2)).mean() + d(net(x).detach()).mean()\nreal.backward()\nd_opt.step()\n"
    (finding,) = found(f"{judge}{first}loss = -d(net(x)).mean().detach()\nloss.backward()")
    assert "reaches no parameter of `net`" in finding.message


PAIR = """\
from torch.distributions import Normal
class Gen(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 10)
    def chances(self, n):
        return self.lin(torch.randn(n, 4)).softmax(1)
    def sample(self, n):
        return torch.multinomial(self.chances(n), 1).squeeze(1)
class Actor(nn.Linear):
    def forward(self, x):
        return Normal(super().forward(x), 1.0)
gen, disc = Gen(), nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 1))
actor, critic = Actor(4, 10), nn.Linear(10, 1)
hyper, target = nn.Linear(4, 20), nn.Linear(10, 2, bias=False)
gen_opt, actor_opt = torch.optim.Adam(gen.parameters()), torch.optim.Adam(actor.parameters())
hyper_opt = torch.optim.Adam(hyper.parameters())"""
JUDGED = """\
other = torch.optim.Adam({judge}.parameters())
for _ in range(5):
    {first}
    loss = {loss}
    {opt}.zero_grad()
    loss.backward()
    {opt}.step()
    {then}"""
ALONE, BESIDE = "pass", "other.zero_grad(); {}.pow(2).mean().backward(); other.step()"


@pytest.mark.parametrize(
    ("names", "first", "loss", "fix"),
    [
        ("gen disc", "got = gen.sample(8)", "disc(got).mean()", "log_prob"),
        ("gen disc", "pass", "disc(gen.sample(8)).mean()", "log_prob"),
        ("actor critic", "a = actor(x).sample()", "-critic(a).mean()", "a = actor(x).rsample()"),
        ("actor critic", "pi = actor(x)", "-critic(pi.sample()).mean()", "critic(pi.rsample())"),
        ("hyper target", "target.weight = nn.Parameter(hyper(x[0]).view(2, 10))", "target(y.expand(16, 10)).mean()",
         "functional_call(target, {'weight': hyper(x[0]).view(2, 10)}, (y.expand(16, 10),))"),
        ("hyper target", "target.weight.data = hyper(x[0]).view(2, 10)", "target(y.expand(16, 10)).mean()",
         "functional_call(target, "),
    ],
)  # fmt: skip
@pytest.mark.parametrize("has_optimizer", [False, True])
def test_what_a_judge_is_given_without_history_is_told_in_place_of_the_optimizer(
    names, first, loss, fix, has_optimizer
):
    of, judge = names.split()
    asked = {"disc": "disc(torch.randint(10, (8,)))", "critic": "critic(torch.rand(8, 10))"}.get(judge, "")
    then = BESIDE.format(asked) if has_optimizer and asked else ALONE
    code = JUDGED.format(opt=f"{of}_opt", judge=judge, first=first, loss=loss, then=then)
    with a_notebook() as notebook:
        for one in (START, PAIR, code.replace("other =", "other =" if then != ALONE else "_ =")):
            notebook.run(one)
        assert notebook.errors[-1] is None, notebook.errors
        findings = [f for run in notebook.runs if run for f in run.findings if f.severity != "hint"]
    assert [f.slug for f in findings] == [SLUG]
    assert f"`{of}`" in findings[0].message
    assert fix in findings[0].fix


def test_a_teacher_of_which_the_optimizer_was_made_is_no_cut():
    loss = "F.cross_entropy(net(x), hyper(x).argmax(1) % 2)"
    code = JUDGED.format(opt="hyper_opt", judge="net", first="pass", loss=loss, then=ALONE)
    assert [f.slug for f in found(PAIR, code.replace("other =", "_ ="), slug="optimizer-of-another-model")]


def test_draws_whose_chances_reach_the_loss_are_right():
    first = "p = gen.chances(8); got = torch.multinomial(p, 1)"
    loss = "-(p.gather(1, got).log() * disc(got[:, 0]).detach()).mean()"
    assert found(PAIR, JUDGED.format(opt="gen_opt", judge="disc", first=first, loss=loss, then=ALONE)) == []


PROMPTED = """\
class Prompted(nn.Module):
    def __init__(self):
        super().__init__()
        self.prompt, self.body = nn.Linear(4, 4, bias=False), nn.Linear(4, 8)
    def forward(self, x):
        with torch.no_grad():
            seen = self.body(x)
            asked = self.body(self.prompt(x))
        return seen * asked
model = Prompted()
model.body.requires_grad_(False)"""


def test_of_a_frozen_model_the_few_that_want_a_gradient_are_named():
    step = "loss = model(x).mean()\nloss.backward()"
    (finding,) = found(PROMPTED, step)
    assert "no parameter of `model`, of which only `model.prompt.weight` wants a gradient: " in finding.message
    assert finding.fix == "asked = self.body(self.prompt(x))  # outside of torch.no_grad()"
    moved = PROMPTED.replace("            asked", "        asked")
    assert found(moved, step) == []
    (finding,) = found(PROMPTED.partition("\nmodel.body")[0], step)
    assert "want" not in finding.message


ASKED = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.own = nn.Linear(4, 1)
    def forward(self, x):
        return self.own(x)
    @torch.no_grad()
    def predict(self, batch):
        {}
model = Net()"""


@pytest.mark.parametrize(
    ("body", "fix"),
    [
        (
            "return self(batch)",
            "model(x[:2])  # in place of model.predict(x[:2]), line 1: @torch.no_grad() is around that",
        ),
        ("out = self(batch)\n        return out * 2", "take @torch.no_grad() away from predict()  # line 7 of cell 2"),
    ],
)
def test_a_method_that_is_for_using_the_model_is_named(body, fix):
    with a_notebook() as notebook:
        for code in (START, ASKED.format(body), "loss = model.predict(x[:2]).sum()\nloss.backward()"):
            run = notebook.run(code)
    (finding,) = (one for one in run.findings if one.slug == SLUG)
    assert "`@torch.no_grad()` is around it (`predict`, line 7 of cell 2)" in finding.message
    assert finding.fix.startswith(fix)
