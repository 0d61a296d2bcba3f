"""Parameters that a loss reaches and no optimizer holds: forgotten, added later, and left alone on purpose."""

import ast
from unittest import mock

import pytest

from tests.cells import a_notebook, findings_in
from tests.fakes import a_run
from torch_inspector.facts import syntax
from torch_inspector.facts.gradient_reads import collects_gradients, logs_gradients

SLUG = "parameters-missing-from-optimizer"
START = """\
import copy, itertools
import torch
import torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
x, y = torch.randn(32, 4), torch.randn(32, 1)
encoder, decoder = nn.Sequential(nn.Linear(4, 8), nn.ReLU()), nn.Linear(8, 1)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.neck, self.head = nn.Linear(4, 8), nn.Linear(8, 8), nn.Linear(8, 1)
        self.scale = nn.Parameter(torch.ones(1))
    def forward(self, x):
        return self.head(self.neck(self.body(x).relu()).relu()) * self.scale
net = Net()"""
LOOP = """\
for _ in range({turns}):
    {opt}.zero_grad()
    loss = F.mse_loss({out}, y)
    loss.backward()
    {opt}.step()"""


def loop(out="net(x)", opt="opt", turns=6):
    return LOOP.format(out=out, opt=opt, turns=turns)


def inside(code):
    return code.replace("\n", "\n    ")


def found(*cells, slug=SLUG):
    with a_notebook() as notebook:
        for code in (START, *cells):
            notebook.run(code)
            assert notebook.errors[-1] is None, notebook.errors[-1]
        return [f for run in notebook.runs if run for f in run.findings if f.slug == slug]


TRAINER = """\
class Trainer:
    def __init__(self, enc, dec):
        self.enc, self.dec = enc, dec
        self.optimizer = torch.optim.Adam(self.dec.parameters(), lr=1e-2)
    def fit(self):
        for batch, target in itertools.repeat((x, y), 6):
            self.optimizer.zero_grad()
            loss = F.mse_loss(self.dec(self.enc(batch)), target)
            loss.backward()
            self.optimizer.step()
Trainer(encoder, decoder).fit()"""
MARGIN = """\
class Margin(nn.Module):
    def __init__(self):
        super().__init__()
        self.centres = nn.Parameter(torch.randn(1, 1))
    def forward(self, out, target):
        return (out - target - self.centres).square().mean()
criterion = Margin()
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(5):
    opt.zero_grad()
    criterion(net(x), y).backward()
    opt.step()"""


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (["opt = torch.optim.SGD(decoder.parameters(), lr=0.1)", loop("decoder(encoder(x))")], ["encoder"]),
        ([TRAINER], ["enc", "self.optimizer.step()"]),
        ([MARGIN], ["criterion.centres"]),
        (
            [
                "opt = torch.optim.Adam(net.parameters())\nlog_var = nn.Parameter(torch.zeros(1))\n"
                + loop("net(x)").replace("y)", "y) * torch.exp(-log_var) + log_var").replace("loss.b", "loss.sum().b")
            ],
            ["log_var"],
        ),
        (
            [
                ("opt = torch.optim.Adam([{'params': net.body.parameters()}, {'params': net.head.parameters()}, "
                "{'params': [net.scale]}])"),
                loop(),
            ],
            ["net.neck.weight", "net.neck.bias"],
        ),
        (
            [
                ("net.body.requires_grad_(False)\nopt = torch.optim.SGD((p for p in net.parameters() if "
                "p.requires_grad), lr=0.1)"),
                loop(),
                "for p in net.body.parameters():\n    p.requires_grad = True\n" + loop(),
            ],
            ["net.body.weight", "gradients were still off"],
        ),
        (
            [
                "opt = torch.optim.SGD(net.parameters(), lr=0.1)",
                "net.gate = nn.Linear(4, 1)",
                loop("net(x) * net.gate(x)"),
            ],
            ["net.gate", "got them after `opt` was made"],
        ),
        (
            [
                "def train(steps):\n    front, back = nn.Linear(4, 8), nn.Linear(8, 1)\n"
                "    opt = torch.optim.SGD(back.parameters(), lr=0.1)\n    "
                + inside(loop("back(front(x))", turns="steps"))
                + "\ntrain(8)"
            ],
            ["front", "opt.step()"],
        ),
        (
            [
                ("def step(batch):\n    opt.zero_grad()\n    loss = F.mse_loss(decoder(encoder(batch)), y)\n"
                "    loss.backward()\n    opt.step()\n    return loss.item()\n"
                "opt = torch.optim.SGD(encoder.parameters(), lr=0.1)\nlosses = [step(x) for _ in range(6)]")
            ],
            ["decoder"],
        ),
    ],
)  # fmt: skip
def test_what_was_left_out(cells, words):
    (finding,) = found(*cells)
    assert finding.severity == "error"
    assert [word for word in words if word not in finding.message] == []


def test_a_head_of_a_new_model_alone_is_a_hint():
    (finding,) = found("opt = torch.optim.SGD(net.head.parameters(), lr=0.1)", loop())
    assert finding.severity == "hint"
    assert "`net.body.weight`" in finding.message


@pytest.mark.parametrize(
    ("parts", "severity"),
    [("body neck", "hint"), ("neck head scale", "hint"), ("body neck head", "error"), ("body head", "error")],
)
def test_of_several_parts_the_first_or_last_may_be_left_for_another_optimizer(parts, severity):
    given = ", ".join(f"net.{one}" if one == "scale" else f"*net.{one}.parameters()" for one in parts.split())
    (finding,) = found(f"opt = torch.optim.SGD([{given}], lr=0.1)", loop())
    assert finding.severity == severity


def test_it_is_said_at_the_step():
    (finding,) = found("opt = torch.optim.SGD(decoder.parameters(), lr=0.1)\n" + loop("decoder(encoder(x))"))
    assert (finding.line, finding.cell) == (6, 2)


TWO = "a = torch.optim.SGD(encoder.parameters(), lr=0.1)\nb = torch.optim.SGD(decoder.parameters(), lr=0.1)"


@pytest.mark.parametrize(
    "cells",
    [
        [
            TWO
            + "\nfor _ in range(5):\n    for o in (a, b): o.zero_grad()\n"
            + "    F.mse_loss(decoder(encoder(x)), y).backward()\n    for o in (a, b): o.step()"
        ],
        [
            TWO
            + "\nfor turn in range(8):\n    o = (a, b)[turn % 2]\n    o.zero_grad()\n"
            + "    F.mse_loss(decoder(encoder(x)), y).backward()\n    o.step()"
        ],
        [
            "encoder.requires_grad_(False)\nopt = torch.optim.SGD(decoder.parameters(), lr=0.1)\n"
            + loop("decoder(encoder(x))")
        ],
        ["encoder.eval()\nopt = torch.optim.SGD(decoder.parameters(), lr=0.1)\n" + loop("decoder(encoder(x))")],
        [
            "encoder.load_state_dict({k: v + 0 for k, v in encoder.state_dict().items()})\n"
            "opt = torch.optim.SGD(decoder.parameters(), lr=0.1)\n" + loop("decoder(encoder(x))")
        ],
        [
            "opt = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.1)\n"
            + loop("decoder(encoder(x))"),
            "opt = torch.optim.SGD(decoder.parameters(), lr=0.1)\n" + loop("decoder(encoder(x))"),
        ],
        [
            "opt = torch.optim.SGD(decoder.parameters(), lr=0.1)\n"
            + loop("decoder(encoder(x))")
            + "\n    for p in encoder.parameters():\n        p.data.sub_(0.1 * p.grad)\n        p.grad = None"
        ],
        [
            "opt = torch.optim.SGD(decoder.parameters(), lr=0.1)\n"
            + loop("decoder(encoder(x))")
            + "\n    with torch.no_grad():\n        for p in encoder.parameters():\n            p -= 0.1 * p.grad"
        ],
        ["opt = torch.optim.SGD(decoder.parameters(), lr=0.1)\n" + loop("decoder(encoder(x))", turns=1)],
        ["opt = torch.optim.SGD(decoder.parameters(), lr=0.1)\n" + loop("decoder(encoder(x).detach())")],
        [
            "teacher = copy.deepcopy(net)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
            + loop("net(x)").replace("y)", "teacher(x).detach())")
        ],
        [
            "latent = torch.zeros(32, 8, requires_grad=True)\n"
            "opt = torch.optim.SGD([*decoder.parameters()], lr=0.1)\n" + loop("decoder(latent)")
        ],
        [
            "opt = torch.optim.SGD(net.head.parameters(), lr=0.1)\n"
            "for part in (net.body, net.neck):\n    opt.add_param_group({'params': part.parameters()})\n"
            "opt.add_param_group({'params': [net.scale]})\n" + loop()
        ],
        [
            "tied = nn.Linear(8, 8, bias=False)\nnet.neck.weight = tied.weight\n"
            "opt = torch.optim.SGD(net.parameters(), lr=0.1)\n" + loop("net(x) + tied(encoder(x).detach()).mean() * 0")
        ],
        [
            "torch.nn.utils.parametrizations.spectral_norm(net.neck)\n"
            "opt = torch.optim.SGD(net.parameters(), lr=0.1)\n" + loop()
        ],
        [
            (
                "opt = torch.optim.LBFGS(net.parameters(), max_iter=3)\ndef closure():\n    opt.zero_grad()\n"
                "    loss = F.mse_loss(net(x), y)\n    loss.backward()\n    return loss\n"
                "for _ in range(3):\n    opt.step(closure)"
            )
        ],
        [
            "opt = torch.optim.SGD(decoder.parameters(), lr=0.1)  # the encoder stays fixed\n"
            + loop("decoder(encoder(x))")
        ],
        [
            "class Plain:\n    def __init__(self, params): self.params = list(params)\n    def step(self):\n"
            "        for p in self.params:\n            p.data.add_(p.grad, alpha=-0.1)\n            p.grad = None\n"
            "mine, opt = Plain(encoder.parameters()), torch.optim.SGD(decoder.parameters(), lr=0.1)\n"
            + loop("decoder(encoder(x))")
            + "\n    mine.step()"
        ],
        [
            "opts = {'a': torch.optim.SGD(encoder.parameters(), lr=0.1)}\n"
            "opt = torch.optim.SGD(decoder.parameters(), lr=0.1)\n" + loop("decoder(encoder(x))")
        ],
    ],
)
def test_what_is_meant(cells):
    assert found(*cells) == []


OF_A_TRAINER = """\
class Trainer:
    def __init__(self, model):
        self.model = model
        self.opt = torch.optim.Adam(self.model.body.parameters())
    def fit(self):
        for _ in range(6):
            self.opt.zero_grad()
            F.mse_loss(self.model(x), y).backward()
            self.opt.step()
trainer = Trainer(Net())
trainer.fit()"""


def test_what_a_trainer_holds_has_the_name_of_the_notebook():
    with a_notebook() as notebook:
        for cell in (START, OF_A_TRAINER):
            run = notebook.run(cell)
    subjects = {one.subject for one in run.findings if one.slug == SLUG}
    assert subjects == {"trainer.model"}


PROMPTED = """\
class Prompted(nn.Module):
    def __init__(self):
        super().__init__()
        self.prompts = [nn.Parameter(torch.randn(4)) for _ in range(3)]
        self.head = nn.Linear(4, 1)
    def forward(self, x):
        return self.head(x + sum(self.prompts))
net = Prompted()
opt = torch.optim.SGD(net.parameters(), lr=0.001)"""
NAMED = PROMPTED.replace("[nn.Param", "{str(n): nn.Param").replace("_ in range(3)]", "n in range(3)}")
NAMED = NAMED.replace("sum(self.prompts)", "sum(self.prompts.values())")


MIXED = PROMPTED.replace("range(3)]", "range(3)] + [torch.ones(4)]")
METHODS = NAMED.replace("str(n)", "n").replace("range(3)", "('train', 'type', 'to')")


@pytest.mark.parametrize(
    ("cell", "made"),
    [
        (PROMPTED, "net.prompts = nn.ParameterList(net.prompts)"),
        (NAMED, "net.prompts = nn.ParameterDict(net.prompts)"),
        (
            MIXED,
            "net.prompts_parameters = nn.ParameterList(p for p in net.prompts if isinstance(p, nn.Parameter))",
        ),
        (METHODS, "net.prompts_parameters = nn.ParameterList(net.prompts.values())"),
    ],
)
def test_parameters_in_a_plain_container_are_told_once(cell, made):
    with a_notebook() as notebook:
        for source in (START, cell, loop()):
            run = notebook.run(source)
        (finding,) = [one for one in run.findings if one.slug == SLUG]
        assert finding.subject == "net.prompts"
        assert "`net.parameters()` leaves out" in finding.message
        assert finding.fix.startswith(f"{made}  # now; and in __init__: {made.replace('net.', 'self.')}\n")
        notebook.run(finding.fix)
        assert not notebook.run(loop()).findings
        assert notebook.errors == [None] * 5


GATED = """\
class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head, self.gate = nn.Linear(4, 8), nn.Linear(8, 1), nn.Parameter(torch.ones(8))
    def forward(self, x):
        return self.head(self.body(x).relu() * self.gate)
net = Gated()
opt = torch.optim.SGD([*net.body.parameters(), *net.head.parameters()], lr=0.001)"""
MASKS = """\
net = nn.Linear(4, 1)
masks = [nn.Parameter(torch.ones(4)) for _ in range(2)]
opt = torch.optim.SGD(net.parameters(), lr=0.1)"""
TABLE = f"{MASKS}\nkept, table = {{}}, {{'first': masks[0], 'second': masks[1]}}"
MASKED = "net(x * masks[0] * masks[1])"


def collecting(out, what):
    return f"imp, norms = torch.zeros(()), []\n{loop(out)}\n    {what}"


@pytest.mark.parametrize(
    ("cell", "out", "what"),
    [
        (GATED, "net(x)", "imp = imp + net.gate.grad.abs()"),
        (GATED, "net(x)", "g = torch.autograd.grad(F.mse_loss(net(x), y), net.gate)"),
        (MASKS, MASKED, "scores = [m.grad.abs() for m in masks]"),
        (MASKS, MASKED, "for i, m in enumerate(masks):\n        imp = imp + (m * m.grad).abs()"),
        (f"{MASKS}\ndef score(p):\n    return (p * p.grad).sum()", MASKED, "imp = score(masks[0])"),
        (MASKS.replace("net = ", "own = list()\nnet = "), MASKED, "own.append(masks[0].grad.clone())"),
        (TABLE, MASKED, "kept.update({k: v.grad.clone() for k, v in table.items()})"),
        (f"{TABLE}\npairs = list(table.items())", MASKED, "kept = [v.grad for k, v in pairs]"),
        (f"{TABLE}\ndef keep(t):\n    return [v.grad for v in t.values()]", MASKED, "kept = keep(table)"),
        (GATED, "net(x)", "n = net.gate.grad.norm().item()\n    norms.append(n)\n    imp = imp + norms[-1]"),
    ],
)
def test_gradients_that_are_collected_say_that_nobody_is_to_step(cell, out, what):
    assert found(cell, collecting(out, what)) == []


@pytest.mark.parametrize(
    ("cell", "out", "what"),
    [
        (GATED, "net(x)", "print(net.gate.grad.norm())"),
        (GATED, "net(x)", "imp = imp + net.body.weight.grad.norm()"),
        (MASKS, MASKED, "imp = imp + sum(p.grad.norm() for p in net.parameters())"),
        (MASKS, MASKED, "masks[0].grad = None"),
    ],
)
def test_gradients_of_others_or_only_shown_say_nothing(cell, out, what):
    (finding,) = found(cell, collecting(out, what))
    assert finding.severity == "error"


@pytest.mark.parametrize(
    "what",
    [
        "norms.append(net.gate.grad.norm().item())\nprint(norms[-1])",
        "n = torch.norm(net.gate.grad)\n    norms.append(float(n))\n    print(n)",
    ],
)
def test_a_norm_that_is_only_watched_is_a_hint(what):
    (finding,) = found(GATED, collecting("net(x)", what))
    assert finding.severity == "hint"


@pytest.mark.parametrize(
    ("given", "severity"),
    [("net.head.parameters()", "hint"), ("net.parameters()", "error"), ("list(net.head.parameters())", "hint")],
)
@pytest.mark.parametrize(
    "cell", [PROMPTED, PROMPTED.replace("= [nn.P", "= nn.ParameterList([nn.P").replace(")]", ")])")]
)
def test_what_is_left_for_another_phase(cell, given, severity):
    made = cell.replace("net.parameters()", given)
    severities = [one.severity for one in found(made, loop())]
    assert severities == ([severity] if "List" not in cell or severity == "hint" else [])


def test_parameters_in_a_list_of_the_notebook_are_told_once():
    shifts = (
        "shifts = [nn.Parameter(torch.zeros(1)) for _ in range(3)]\nopt = torch.optim.SGD(net.parameters(), lr=0.1)"
    )
    with a_notebook() as notebook:
        for source in (START, shifts, loop(out="net(x) + sum(shifts)")):
            run = notebook.run(source)
        (finding,) = [one for one in run.findings if one.slug == SLUG]
        assert finding.fix == 'opt.add_param_group({"params": [shifts[0], shifts[1], shifts[2]]})'


GROUPS = 'opt = torch.optim.Adam([{"params": own}, {"params": decoder.parameters()}])'


@pytest.mark.parametrize("use", ["count = sum(p.numel() for p in own)", "for p in own:\n    pass", "names = list(own)"])
def test_a_generator_that_was_used_up(use):
    made = f"own = encoder.parameters()\n{use}"
    (one,) = found(made, GROUPS, loop("decoder(encoder(x))"))
    assert "`own` is a generator, and line 2 of cell 2 had used it up" in one.message
    assert one.fix.startswith("own = list(encoder.parameters())")
    assert found(one.fix, GROUPS, loop("decoder(encoder(x))")) == []


def test_a_generator_that_is_made_anew_is_not_used_up():
    made = "own = encoder.parameters()\ncount = sum(p.numel() for p in own)\nown = encoder.parameters()"
    assert found(made, GROUPS, loop("decoder(encoder(x))")) == []


LAZY = """\
class Lazy(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj, self.out = None, nn.Linear(8, 1)
    def forward(self, x):
        if self.proj is None:
            self.proj = nn.Linear(x.shape[-1], 8)
        return self.out(torch.tanh(self.proj(x)))
net = Lazy()
opt = torch.optim.RMSprop(net.parameters(), lr=1e-2)"""
LOW_RANK = """\
class LowRank(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.A = nn.Parameter(torch.randn(base.in_features, 2) * 0.1)
        self.B = nn.Parameter(torch.randn(2, base.out_features) * 0.1)
    def forward(self, x):
        return self.base(x) + x @ self.A @ self.B
opt = torch.optim.SGD(net.parameters(), lr=0.01)
"""
GATE = "opt = torch.optim.SGD(net.parameters(), lr=0.01)\nnet.gate = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))"
ONE = "net.head = LowRank(net.head)"
BOTH = "net.head, net.neck = LowRank(net.head), LowRank(net.neck)"
ALL = f"{BOTH}\nnet.body = LowRank(net.body)"
GROUPED = "opt = torch.optim.SGD([{'params': [*net.body.parameters(), *net.head.parameters()]}], lr=0.01)"
UNFROZEN = (
    "net.body.requires_grad_(False)\nopt = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.01)"
)


@pytest.mark.parametrize(
    ("cells", "out", "first"),
    [
        ([LAZY], "net(x)", 'opt.add_param_group({"params": net.proj.parameters()})  # once they are there;'),
        ([GATE], "net(x) * net.gate(x)", 'opt.add_param_group({"params": net.gate.parameters()})'),
        ([LOW_RANK, ONE], "net(x)", 'opt.add_param_group({"params": [net.head.A, net.head.B]})'),
        (
            [LOW_RANK, BOTH],
            "net(x)",
            'opt.add_param_group({"params": [net.neck.A, net.neck.B, net.head.A, net.head.B]})',
        ),
        ([LOW_RANK, ALL], "net(x)", 'held = {id(p) for group in opt.param_groups for p in group["params"]}'),
        ([GROUPED], "net(x)", 'opt.add_param_group({"params": [*net.neck.parameters(), net.scale]})  # or, of what'),
        (
            [UNFROZEN, "net.body.requires_grad_()"],
            "net(x)",
            'opt.add_param_group({"params": net.body.parameters()})  # once they are to learn',
        ),
        (
            ["opt = torch.optim.SGD(decoder.parameters(), lr=0.1)"],
            "decoder(encoder(x))",
            (
                'opt.add_param_group({"params": encoder.parameters()})  '
                "# or, if it is not to learn: encoder.requires_grad_(False)"
            ),
        ),
    ],
)
def test_the_fix_gives_the_optimizer_what_it_lacks(cells, out, first):
    with a_notebook() as notebook:
        for source in (START, *cells, loop(out)):
            run = notebook.run(source)
        (finding,) = [one for one in run.findings if one.slug == SLUG]
        assert finding.fix.startswith(first)
        notebook.run(finding.fix)
        run = notebook.run(loop(out))
        assert notebook.errors == [None] * (len(cells) + 4)
        assert not run or not [one for one in run.findings if one.slug == SLUG]


@pytest.mark.parametrize("one", ["encoder", "en"])
def test_an_optimizer_that_is_a_copy_of_the_other(one):
    made = "{}_opt = torch.optim.SGD(encoder.parameters(), lr=0.01)"
    cell = (
        f"for _ in range(6):\n    {one}_opt.zero_grad()\n    decoder.zero_grad()\n"
        f"    F.mse_loss(decoder(encoder(x)), y).backward()\n    {one}_opt.step()\n    decoder_opt.step()"
    )
    (finding,) = found(made.format(one), made.format("decoder"), cell)
    assert f"`{one}_opt` and `decoder_opt` hold the same parameters" in finding.message
    assert finding.fix.startswith("decoder_opt = torch.optim.SGD(decoder.parameters(), lr=0.01)")
    assert not found(made.format(one), finding.fix, cell)


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        # One after the other, with the same parameters on purpose.
        (("warm", "main"), "warm if i < 4 else main"),
        (("adam", "decoder_opt"), "adam if i < 4 else decoder_opt"),
    ],
)
def test_optimizers_that_take_turns_keep_their_model(names, chosen):
    made = "\n".join(f"{name} = torch.optim.SGD(encoder.parameters(), lr=0.01)" for name in names)
    cell = (
        f"for i in range(8):\n    now = {chosen}\n    now.zero_grad()\n    decoder.zero_grad()\n"
        "    F.mse_loss(decoder(encoder(x)), y).backward()\n    now.step()"
    )
    (finding,) = found(made, cell)
    assert ".add_param_group(" in finding.fix
    assert "hold the same" not in finding.message


def test_an_optimizer_named_for_nothing_keeps_its_model():
    made = "a = torch.optim.SGD(encoder.parameters(), lr=0.01)\nb = torch.optim.SGD(encoder.parameters(), lr=0.1)"
    (finding,) = found(made, loop("decoder(encoder(x))", "a") + "\n    b.step()\n    decoder.zero_grad()")
    assert ".add_param_group(" in finding.fix


def test_an_optimizer_that_takes_one_group():
    """`LBFGS.add_param_group` raises nothing and changes nothing."""
    made = "opt = torch.optim.LBFGS(encoder.parameters(), lr=0.1, max_iter=3)"
    cell = loop("decoder(encoder(x))").replace("step()", "step(lambda: loss)")
    (finding,) = found(made, cell)
    wanted = "torch.optim.LBFGS([*encoder.parameters(), *decoder.parameters()], lr=0.1, max_iter=3)"
    assert finding.fix.startswith(f"opt = {wanted}"), finding.fix
    assert not found(finding.fix, cell)


TRAIN = """\
def train(model, {optimizer}):
    for _ in range(6):
        opt.zero_grad()
        F.mse_loss(model(x), y).backward()
        opt.step()"""
BODY = "opt = torch.optim.SGD({}.body.parameters(), lr=0.1)"


@pytest.mark.parametrize(
    ("cells", "name"),
    [
        (
            [BODY.format("net").replace("opt =", "mine ="), TRAIN.format(optimizer="opt"), "train(net, mine)"],
            ("mine", "net"),
        ),
        (
            [TRAIN.format(optimizer="_=0").replace(":\n", f":\n    {BODY.format('model')}\n", 1), "train(net)"],
            ("opt", ""),
        ),
    ],
)
def test_the_fix_names_what_can_be_typed_where_it_goes(cells, name):
    optimizer, module = name
    (finding,) = found(*cells)
    assert finding.fix.startswith(f"{optimizer}.add_param_group")
    assert f"*{module}.neck.parameters()" in finding.fix if module else ".neck.parameters()" in finding.fix


LOGS = {
    "one variable": ["    n = gate.grad.norm()", *["    n = n * n\n    log.append(n)"]],
    "a variable each": ["    a{i} = gate.grad.norm()\n    log.append(a{i})"],
    "one for all": ["    n = gate.grad.norm()", "    a{i} = n\n    log.append(a{i}); print(n)"],
    "a loop": ["    for p{i} in [gate]: log.append(p{i}.grad.norm())"],
}


@pytest.mark.parametrize("name", LOGS)
def test_a_text_is_gone_through_once_however_many_norms_it_logs(name):
    def rounds(count):
        *first, line = LOGS[name]
        text = "\n".join(["log = []", "for _ in range(5):", *first, *(line.format(i=i) for i in range(count))])
        run = a_run(source=f"{text}\nprint(log[-1])")
        with mock.patch.object(syntax, "walk", wraps=syntax.walk) as walk:
            told = collects_gradients(run, "gate", of_module=False), logs_gradients(run, "gate", of_module=False)
        return told, sum(isinstance(call.args[0], ast.Module) for call in walk.call_args_list)

    told, few = rounds(5)
    # A variable that is handed on to itself without end is more than a log.
    assert told == ((True, False) if name == "one variable" else (False, True))
    assert rounds(50) == (told, few)


TOWERS = """\
from dataclasses import dataclass
@dataclass
class Tower:
    first: nn.Linear
    last: nn.Linear
class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = (Tower(nn.Linear(4, 3), nn.Linear(3, 1)) for _ in range(2))
        self.scale = nn.Parameter(torch.ones(1))
        {}
    def forward(self, x):
        return (self.a.last(self.a.first(x)) + self.b.last(self.b.first(x))) * self.scale
two = Two()
optimizer = torch.optim.SGD(two.parameters(), lr=0.1)"""
TURNS = """\
for _ in range(6):
    optimizer.zero_grad()
    F.mse_loss(two(x), y).backward()
    optimizer.step()"""


def test_layers_in_objects_that_are_no_modules_have_one_cause():
    (finding,) = findings_in(START, TOWERS.format("pass"), TURNS)
    assert "`two.a` and `two.b` are no nn.Module, so that `two.parameters()`, `.to()`" in finding.message
    lines = finding.fix.partition("  # ")[0].replace("\n", "\n        ")
    assert lines.startswith("self.a_layers = nn.ModuleList([self.a.first, self.a.last])")
    assert not findings_in(START, TOWERS.format(lines), TURNS)
