"""Parts that are cut off from the loss while an optimizer steps them, and cuts that are meant."""

import pytest

from tests.cells import a_notebook

SLUG = "accidental-detach"
START = """\
import torch
import torch.nn.functional as F
from contextlib import nullcontext
from torch import nn
torch.manual_seed(0)
x, y = torch.rand(16, 4), torch.rand(16, 1)
body, head = nn.Linear(4, 8), nn.Linear(8, 1)
opt = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
def loop(model, count=4, **kw):
    own = torch.optim.Adam(model.parameters(), **kw)
    for _ in range(count):
        own.zero_grad()
        F.mse_loss(model(x), y).backward()
        own.step()"""
NET = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 1)
        {}
    def forward(self, x):
        {}
        return self.last(h)
net = Net()
loop(net)"""
STEP = """\
for _ in range(5):
    opt.zero_grad()
    {}
    loss.backward()
    opt.step()"""


def found(*cells):
    with a_notebook() as notebook:
        for code in (START, *cells):
            notebook.run(code)
        assert notebook.errors == [None] * (len(cells) + 1)
        return [f for run in notebook.runs if run for f in run.findings if f.slug in (SLUG, "graph-cut")]


@pytest.mark.parametrize(
    ("code", "part", "line"),
    [
        (STEP.format("z = body(x)\n    z = z.detach()\n    loss = F.mse_loss(head(z), y)"), "body", 4),
        (STEP.format("with torch.no_grad():\n        z = body(x)\n    loss = F.mse_loss(head(z), y)"), "body", 3),
        ("both = lambda a: head(body(a).detach())\n" + STEP.format("loss = F.mse_loss(both(x), y)"), "body", 1),
        ("def feats(a):\n    return body(a).relu().data\ndef predict(a):\n    return head(feats(a))\n"
         + STEP.format("loss = F.mse_loss(predict(x), y)"), "body", 2),
        (NET.format("pass", "h = torch.relu(self.first(x)).data"), "net.first", 7),
        (NET.format("pass", "h = self.first(x).clone().detach().requires_grad_()"), "net.first", 7),
        (NET.format("self.w = nn.Parameter(torch.rand(4, 8))", "h = self.first(x) + (x @ self.w).detach()"),
         "net.w", 7),
        (NET.format("self.blocks = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))",
                    "for block in self.blocks: x = block(x).detach()\n        h = self.first(x)"), "net.blocks", 7),
        (NET.format("self.blocks = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))",
                    "for i in range(3): x = self.blocks[i](x.detach())\n        h = self.first(x)"),
         "net.blocks[0]", 7),
        (("class Enc(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
          "        self.lin, self.out = nn.Linear(4, 8), nn.Linear(8, 8)\n"
          "    def forward(self, a):\n        return self.out(self.lin(a).detach())\n")
         + NET.format("self.enc = Enc()", "h = self.first(x) + self.enc(x)"), "net.enc.lin", 6),
        (("class Top(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
          "        self.fc = nn.Linear(8, 8)\n"
          "    def forward(self, a):\n        return self.fc(a.detach())\n")
         + NET.format("self.top = Top()", "h = self.top(self.first(x))"), "net.first", 6),
        (("class Trainer:\n    def __init__(self, enc, dec):\n        self.enc, self.dec = enc, dec\n"
          "        self.opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()])\n"
          "    def loss(self, a):\n        z = self.enc(a)\n        return F.mse_loss(self.dec(z.detach()), y)\n"
          "    def fit(self):\n        for _ in range(4):\n            self.opt.zero_grad()\n"
          "            self.loss(x).backward()\n            self.opt.step()\nTrainer(body, head).fit()"), "body", 7),
    ],
)  # fmt: skip
def test_a_part_that_never_learns(code, part, line):
    (finding,) = found(code)
    assert (finding.slug, finding.subject, finding.line) == (SLUG, part, line)


def test_no_grad_around_a_part_is_a_hint():
    (finding,) = found(NET.format("pass", "with torch.no_grad():\n            h = self.first(x)"))
    assert (finding.severity, finding.subject) == ("hint", "net.first")
    assert "`torch.no_grad()` in line 7" in finding.message


GROUPS = """\
first, last = net.first.parameters(), net.last.parameters()
own = torch.optim.AdamW([{{"params": first, "lr": {}}}, {{"params": last, "lr": 0.1}}])
for _ in range(4):
    own.zero_grad()
    F.mse_loss(net(x), y).backward()
    own.step()"""


@pytest.mark.parametrize(("rate", "severity"), [("1e-4", "warning"), ("0.0", "hint")])
def test_a_part_with_a_learning_rate_of_its_own_is_meant_to_learn(rate, severity):
    net = NET.format("pass", "with torch.no_grad():\n            h = self.first(x)").removesuffix("loop(net)")
    (finding,) = found(net, GROUPS.format(rate))
    assert (finding.severity, finding.subject) == (severity, "net.first")


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        (
            "h = torch.round(self.first(x) * 4).detach()",
            "(self.first(x) * 4) + (torch.round(self.first(x) * 4) - (self.first(x) * 4)).detach()",
        ),
        ("z = self.first(x); h = z.sign().detach()", "z + (z.sign() - z).detach()"),
        (
            "z = self.first(x); q = z.round().clamp(-7, 7)\n        h = q.detach()",
            "z.clamp(-7, 7) + (q - z.clamp(-7, 7)).detach()",
        ),
        ("z = self.first(x); h = (z > 0).float().detach()", "let the slope past it: soft + (hard - soft).detach()"),
        ("z = self.first(x); h = (z * (z > 0)).detach()", "take `detach()` out of this line"),
        ("z = self.first(x); h = (z * z.sign()).detach()", "take `detach()` out of this line"),
    ],
)
def test_the_slope_goes_past_what_has_none(line, fix):
    (finding,) = found(NET.format("pass", line))
    assert finding.fix.startswith(fix)


def test_a_decorator_is_to_be_taken_away():
    encode = "@torch.no_grad()\ndef encode(a):\n    return body(a)\n"
    (finding,) = found(encode + STEP.format("loss = F.mse_loss(head(encode(x)), y)"))
    assert finding.fix.startswith("take @torch.no_grad() away from the function; if `body`")


def test_a_part_in_the_second_of_two_losses():
    code = STEP.format("F.mse_loss(head(torch.ones(16, 8)), y).backward()\n    loss = head(body(x).data).mean()")
    assert [f.subject for f in found(code)] == ["body"]


@pytest.mark.parametrize(
    "code",
    [
        NET.format("self.first.requires_grad_(False)", "h = self.first(x).detach()"),
        NET.format("self.stop = True", "h = self.first(x)\n        h = h.detach() if self.stop else h"),
        NET.format("self.stop = True", "h = self.first(x)\n        if self.stop:\n            h = h.detach()"),
        NET.format("self.aux = nn.Linear(8, 8)", "h = self.first(x)\n        h = h + self.aux(h.detach())"),
        NET.format("self.aux = nn.Linear(8, 8)", "h = self.first(x); self.seen = h.detach()"),
        NET.format("self.code = nn.Embedding(8, 8)", "z = self.first(x)\n        h = z + (z.round() - z).detach()"),
        NET.format(
            "self.tune = False",
            "with nullcontext() if self.tune else torch.no_grad():\n            h = self.first(x)\n        h = h",
        ),
        "only = torch.optim.SGD(head.parameters(), lr=0.1)\n"
        + STEP.format("loss = F.mse_loss(head(body(x).detach()), y)").replace("opt.", "only."),
        STEP.format("loss = F.mse_loss(head(body(x)), y) + F.mse_loss(head(body(x)), head(body(x)).detach())"),
        STEP.format(
            "h = body(x)\n    F.mse_loss(h, h.detach().flip(0)).backward()\n    loss = head(h.detach()).mean()"
        ),
        (
            "h = torch.zeros(16, 8)\n"
            + STEP.format("h = torch.tanh(body(x) + h.detach())\n    loss = F.mse_loss(head(h), y)")
        ),
        (
            "pred = []\n"
            + STEP.format("out = head(body(x)); pred.append(out.detach())\n    loss = F.mse_loss(out, y)")
            + "\nwith torch.no_grad(): score = F.mse_loss(head(body(x)), y).item()"
        ),
        (
            "for phase in range(2):\n    for _ in range(4):\n        opt.zero_grad()\n        z = body(x)\n"
            "        z = z.detach() if phase == 0 else z\n        F.mse_loss(head(z), y).backward()\n        opt.step()"
        ),
    ],
)
def test_cuts_that_are_meant(code):
    assert found(code) == []


TWO = """\
maker, judge = nn.Linear(4, 4), nn.Linear(4, 1)
by_maker, by_judge = torch.optim.Adam(maker.parameters()), torch.optim.Adam(judge.parameters())
def train_judge():
    by_judge.zero_grad()
    (judge(x) - judge(maker(x).detach())).square().mean().backward()
    by_judge.step()
def train_maker():
    by_maker.zero_grad()
    made = maker(x){}
    judge(made).mean().backward()
    by_maker.step()
for _ in range(4):
    train_judge()
    train_maker()"""


def test_a_whole_model_whose_optimizer_never_finds_a_gradient():
    (finding,) = found(TWO.format(".detach()"))
    assert (finding.subject, finding.line, finding.severity) == ("maker", 9, "warning")


def test_a_model_that_is_cut_off_in_the_other_step_only():
    assert found(TWO.format("")) == []


GAN = """\
G, D = nn.Linear(4, 4), nn.Linear(4, 1)
opt_g, opt_d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
for _ in range(5):
    {made}
    {first}
    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()
    g_loss = F.softplus(-D(fake)).mean()
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()"""
FIRST = "d_loss = F.softplus(D(fake)).mean() + F.softplus(-D(x)).mean()"


@pytest.mark.parametrize(
    ("made", "first"),
    [
        ("fake = G(x).detach()", FIRST),
        ("fake = G(x).data", FIRST),
        ("fake = G(x).detach()", "out = D(fake)\n    d_loss = F.softplus(out).mean()"),
        ("with torch.no_grad():\n        fake = G(x)", FIRST),
        ("fake = G(x).detach()", FIRST.replace("D(fake)", "D(fake.detach())")),
    ],
)
def test_of_two_losses_the_first_goes_without_the_history(made, first):
    (finding,) = found(GAN.format(made=made, first=first))
    whole, half = finding.fix.split("\n")
    assert whole.startswith("fake = G(x)  # line ")
    assert "D(fake.detach())" in half
    lines = first.split("\n    ")
    mended = "\n    ".join([half, *lines[1:]])
    assert found(GAN.format(made=whole, first=mended)) == []


def test_of_two_cuts_the_one_behind_the_loss_of_the_step_is_told():
    cell = GAN.format(made="fake = G(x)", first=FIRST.replace("D(fake)", "D(fake.detach())"))
    (finding,) = found(cell.replace("-D(fake)", "-D(fake.detach())"))
    assert cell.splitlines()[finding.line - 1].startswith("    g_loss = ")
    assert found(cell) == []


OWN_CLASS = """\
seen = []
class Tracked(nn.Parameter):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        seen.append(func)
        return super().__torch_function__(func, types, args, kwargs or {})
w, unused = nn.Parameter(torch.rand(4, 1)), Tracked(torch.rand(3))
own = torch.optim.SGD([w, unused], 0.1)
for _ in range(6):
    own.zero_grad()
    F.mse_loss(x @ w, y).backward()
    own.step()
count = len(seen)"""


def test_parameters_of_a_class_of_the_user_are_looked_at_unseen():
    assert found(OWN_CLASS, "assert len(seen) == count") == []


WRAPPED = """\
class Features(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 8)
    def forward(self, x):
        out = self.body(x)
        {}
class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.features, self.last = Features(), nn.Linear(8, 1)
    def training_step(self, x):
        return F.mse_loss(self.last(self.features(x)), y)
whole = Whole()
whole_opt = torch.optim.Adam(whole.parameters())"""
STEPS_OF_WHOLE = """\
for _ in range(5):
    loss = whole.training_step(x)
    whole_opt.zero_grad()
    loss.backward()
    whole_opt.step()"""


def test_what_a_method_of_the_whole_cuts_off_stays_a_hint():
    other = WRAPPED.format("return out").replace("self.features(x))", "self.features(x).detach())")
    with a_notebook() as notebook:
        for source in (START, other):
            notebook.run(source)
        findings = notebook.run(STEPS_OF_WHOLE).findings
    assert [one.severity for one in findings] == ["hint"]


@pytest.mark.parametrize(
    ("line", "result", "severity"),
    [
        ("h = self.first(x).detach()", "", "warning"),
        ("h = torch.relu(self.first(x).detach())", "", "warning"),
        ("h = torch.relu(self.first(x))\n        h = h.detach()", "", "warning"),
        ("h = self.first(x).detach()\n        h = torch.relu(h)\n        h = torch.tanh(h)", "", "warning"),
        ("h = self.first(x).detach()\n        if self.training: h = torch.relu(h)", "", "hint"),
        ("h = x.repeat(1, 2); adv = 1 - self.first(x)[:, :1].detach()", " * adv", "hint"),
        ("h = x.repeat(1, 2); base = self.first(x)[:, :1].detach()", " - base", "hint"),
        ("h = x.repeat(1, 2)\n        for _ in range(2): h = torch.tanh(self.first(x) + h).detach()", "", "hint"),
    ],
)
def test_a_warning_only_where_the_value_goes_into_layers_to_the_result(line, result, severity):
    (finding,) = found(NET.replace("self.last(h)", f"self.last(h){result}").format("pass", line))
    assert (finding.severity, finding.subject) == (severity, "net.first")


@pytest.mark.parametrize(
    "start",
    [
        "self.first = copy.deepcopy(old)",
        "self.first.load_state_dict(old.state_dict())",
        "self.first = old_layer()",
        "self.first = nn.Sequential(*two[:1])",
        "self.first = nn.Sequential(two[0], nn.ReLU())",
        "part = nn.Linear(4, 8); self.first = nn.Sequential(part)",
        "self.first = nn.ModuleList(); self.first.append(two[0]); self.first = self.first[0]",
        "pass  # random features: only the last layer is trained",
    ],
)
def test_a_part_that_is_not_made_to_learn(start):
    made = "import copy\nold, two = nn.Linear(4, 8), [nn.Linear(4, 8)]\ndef old_layer(): return copy.deepcopy(old)\n"
    (finding,) = found(made, NET.format(start, "h = self.first(x).detach()"))
    assert finding.severity == "hint"


@pytest.mark.parametrize("start", ["layer(8)", "nn.Sequential(*[nn.Linear(4, 4) for _ in '12'], nn.Linear(4, 8))"])
def test_a_part_that_is_made_to_learn(start):
    made = "def layer(width): return nn.Sequential(nn.Linear(4, width), nn.ReLU())"
    (finding,) = found(made, NET.format(f"self.first = {start}", "h = self.first(x).detach()"))
    assert finding.severity == "warning"


def test_a_part_that_has_learned_in_an_earlier_cell():
    whole = NET.format("pass", "h = self.first(x).detach()").removesuffix("loop(net)")
    before = "def start(part):\n    part(x).mean().backward()\nstart(net.first)\nnet.zero_grad()"
    (finding,) = found(whole, before, "loop(net)")
    assert finding.severity == "hint"


RESIDUAL = """\
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.back, self.fore = nn.Linear(4, 4), nn.Linear(4, 1)
    def forward(self, x):
        return self.back(x), self.fore(x)
class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(2))
    def forward(self, x):
        forecast = 0
        for block in self.blocks:
            b, f = block(x)
            x, forecast = x - b, forecast + f
        return x, forecast
net = Stack()
own = torch.optim.Adam(net.parameters())
for _ in range(5):
    own.zero_grad()
    _, forecast = net(x)
    loss = F.mse_loss(forecast, y)
    loss.backward()
    own.step()
    with torch.no_grad():
        _, forecast = net(x)"""


def test_a_pass_without_gradients_is_not_why_one_part_of_it_does_not_learn():
    assert [f for f in found(RESIDUAL) if "no_grad" in f.message] == []


GATED = """\
class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head, self.gate = nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 1)
    def forward(self, x):
        h = self.body(x)
        with torch.no_grad():
            share = self.gate(h)
        return self.head(h) * share.sigmoid()
net = Gated()
own = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(5):
    own.zero_grad()
    loss = F.mse_loss(net(x), y)
    loss.backward()
    own.step()"""


def test_a_part_that_is_called_without_gradients_with_what_another_part_gave():
    (finding,) = found(GATED)
    assert "`net.gate`: `torch.no_grad()` in line 7" in finding.message
