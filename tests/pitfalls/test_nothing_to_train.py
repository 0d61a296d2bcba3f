"""Frozen and empty: what cannot learn, and what is not meant to."""

import pytest

from tests.cells import findings_in

SLUG = "nothing-to-train"
START = """\
import torch
import torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
x, y = torch.rand(16, 4), torch.rand(16, 1)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
def frozen(module):
    for p in module.parameters():
        p.requires_grad = False
    return module"""
TRAIN = """\
for _ in range(4):
    opt.zero_grad()
    loss = F.mse_loss({}, y)
    loss.backward()
    opt.step()"""


def found(*cells):
    return findings_in(START, *cells, slug=SLUG)


@pytest.mark.parametrize(
    ("cells", "line", "words"),
    [
        (["frozen(net)", "loss = F.mse_loss(net(x), y)\nloss.backward()"], 2, "all 4 parameters of `net`"),
        (
            ["opt = torch.optim.SGD(frozen(net).parameters(), lr=0.1)", TRAIN.format("net(x)")],
            4,
            "`net` have `requires_grad=False`",
        ),
        (["w = torch.randn(4, 1)\nloss = F.mse_loss(x @ w, y)\nloss.backward()"], 3, "no tensor that it was computed"),
        (["opt = torch.optim.Adam(p for p in frozen(net).parameters() if p.requires_grad)"], 1, "no parameter at all"),
        (
            [
                "shift = torch.zeros(1, requires_grad=True)\nopt = torch.optim.SGD(frozen(net).parameters(), lr=0.1)",
                TRAIN.format("net(x) + shift"),
            ],
            5,
            "all 4 parameters of `opt`",
        ),
        (
            [("def fit(model):\n    for a, b in zip(x.split(4), y.split(4)):\n        error = F.mse_loss(model(a), b)\n"
             "        error.backward()\nfit(frozen(net))")],
            4,
            "`model`",
        ),
    ],
)  # fmt: skip
def test_nothing_wants_a_gradient(cells, line, words):
    (finding,) = found(*cells)
    assert finding.line == line
    assert words in finding.message


@pytest.mark.parametrize(
    "cells",
    [
        ["opt = torch.optim.SGD(net.parameters(), lr=0.1)", TRAIN.format("net(x)")],
        ["frozen(net[0])\nopt = torch.optim.SGD(net.parameters(), lr=0.1)", TRAIN.format("net(x)")],
        ["frozen(net)\nx.requires_grad_(True)\nnet(x).sum().backward()"],
        ["frozen(net)\nout = net(x)"],
        ["early, late = (torch.optim.SGD(net[i].parameters(), lr=0.1) for i in (0, 2))\nfrozen(net[0])\n"
         "opt = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)\n"
         + TRAIN.format("net(x)").replace("opt.step()", "early.step(); late.step()")],
        ["opt = torch.optim.SGD(frozen(net).parameters(), lr=0.1)\nfor _ in range(5): opt.step()"],
        [("opt = torch.optim.SGD(net.parameters(), lr=0.1)\nfrozen(net)\nfor p in net.parameters():\n"
         "    p.grad = torch.ones_like(p)\nfor _ in range(4): opt.step()")],
        ["loss = net(x).detach().sum()\nloss.backward()"],
        ["with torch.no_grad():\n    out = net(x)\nout.sum().backward()"],
        ["torch.set_grad_enabled(False)\nloss = net(x).sum()", "loss.backward()", "torch.set_grad_enabled(True)"],
        ["torch.set_grad_enabled(False)\nloss = (x @ net[0].weight.T).sum()", "torch.set_grad_enabled(True)",
         "loss.backward()"],
    ],
)  # fmt: skip
def test_something_does_or_nothing_is_to(cells):
    assert found(*cells) == []


IMAGE = """\
frozen(net)
img = torch.rand(3, 4)
opt = torch.optim.Adam([img], lr=0.1)"""
LOOP = """\
for _ in range(4):
    opt.zero_grad()
    loss = net(img).sum()
    loss.backward()
    opt.step()"""
KEPT = """\
class Painter:
    def __init__(self):
        self.img = torch.rand(3, 4)
        self.opt = torch.optim.LBFGS([self.img])
    def fit(self):
        def closure():
            self.opt.zero_grad()
            loss = net(self.img).sum()
            loss.backward()
            return loss
        self.opt.step(closure)
frozen(net)
Painter().fit()"""
GIVEN = """\
def fit(canvas):
    opt = torch.optim.Adam([canvas], lr=0.1)
    net(canvas).sum().backward()
    opt.step()
frozen(net)
fit(torch.rand(3, 4))"""


@pytest.mark.parametrize(
    ("cells", "name"),
    [((IMAGE, LOOP), "img"), ((KEPT,), "self.img"), ((GIVEN,), "canvas")],
    ids=["cell", "self", "local"],
)
def test_an_optimised_tensor_is_named_not_the_network_that_is_frozen_on_purpose(cells, name):
    (finding,) = found(*cells)
    assert finding.subject == name
    assert f"the optimizer holds `{name}`" in finding.message
    assert finding.fix == f"{name}.requires_grad_(True)  # before the optimizer is made"


def test_the_mended_image_learns_in_silence():
    assert not found(IMAGE.replace("opt =", "img.requires_grad_(True)\nopt ="), LOOP)


def test_a_tensor_beside_the_optimizer_is_not_blamed():
    (finding,) = found("frozen(net)\nimg = torch.rand(3, 4)\nopt = torch.optim.Adam(net.parameters())", LOOP)
    assert finding.subject == "net"


def test_an_image_without_gradient_before_a_network_that_has_them_is_named():
    (finding,) = found("img = torch.rand(3, 4)\nopt = torch.optim.Adam([img], lr=0.1)", LOOP)
    assert finding.fix == "img.requires_grad_(True)  # before the optimizer is made"


def test_a_method_in_place_of_parameters():
    (finding,) = found("opt = torch.optim.SGD(net.parameters, lr=0.1)")
    assert (finding.subject, finding.line) == ("net.parameters", 1)
    assert finding.fix == "opt = torch.optim.SGD(net.parameters(), lr=0.1)"
    assert not found("for one in net.forward:\n    pass")


PROMPTED = """\
class Prompted(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 8), nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 1))
        self.prompt = nn.Parameter(torch.zeros(4))
    def forward(self, x):
        return self.head(self.body(x + self.prompt))
model = frozen(Prompted())"""


@pytest.mark.parametrize(
    ("held", "fix"),
    [
        ("[model.prompt]", ["model.prompt.requires_grad_(True)  # opt holds it"]),
        ("model.head.parameters()", ["model.head.requires_grad_(True)  # opt holds it"]),
        ("[model.prompt, *model.head[1].parameters()]", [
            "model.prompt.requires_grad_(True)  # opt holds it", "model.head[1].requires_grad_(True)  # opt holds it"]),
        ("model.parameters()", ["model.requires_grad_(True)  # or of the part that is to learn"]),
    ],
)  # fmt: skip
def test_what_the_optimizer_holds_is_to_learn(held, fix):
    made = f"opt = torch.optim.SGD({held}, lr=.1)"
    (finding,) = found(PROMPTED, made, TRAIN.format("model(x)"))
    assert finding.fix.splitlines() == fix
    thawed = f"{finding.fix}\nassert all(p.requires_grad for g in opt.param_groups for p in g['params'])"
    assert found(PROMPTED, made, thawed, TRAIN.format("model(x)")) == []


PARTS = "parts = nn.ModuleDict({'body': nn.Sequential(nn.Linear(4, 8)), 'head': nn.Linear(8, 1)}).requires_grad_(False)"
HOLDER = """\
class Learner:
    def __init__(self):
        self.model = nn.ModuleDict({'body': nn.Linear(4, 8), 'head': nn.Linear(8, 1)}).requires_grad_(False)
    def loss(self):
        return F.mse_loss(self.model['head'](self.model['body'](x)), y)
learner = Learner()"""


@pytest.mark.parametrize(
    ("made", "loss", "name"),
    [
        (PARTS, "F.mse_loss(parts['head'](parts['body'](x)), y)", "parts"),
        (HOLDER, "learner.loss()", "learner.model"),
    ],
)
def test_a_model_of_which_only_parts_are_called_is_named_as_a_whole(made, loss, name):
    (finding,) = found(made, f"loss = {loss}\nloss.backward()")
    assert f"all 4 parameters of `{name}`" in finding.message
    assert (finding.subject, finding.fix.partition("  #")[0]) == (name, f"{name}.requires_grad_(True)")


WRONG_NAME = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.classifier = nn.Linear(4, 8), nn.Linear(8, 1)
    def forward(self, x):
        return self.classifier(self.body(x))
model = frozen(Net())
model.{} = nn.Linear(8, 1)"""


def test_a_new_layer_under_a_name_that_forward_does_not_use():
    loss = "loss = F.mse_loss(model(x), y)\nloss.backward()"
    (finding,) = found(WRONG_NAME.format("fc"), loss)
    assert finding.subject == "model"
    assert "of `model`, only `model.fc` wants a gradient, and no gradient reaches `model.fc`" in finding.message
    assert finding.fix.startswith("# forward() of model has to use model.fc")
    assert not found(WRONG_NAME.format("classifier"), loss)


@pytest.mark.parametrize(
    "used",
    [
        "if self.on:\n            x = x + self.fc(x)",
        "if self.on:\n            x = x + getattr(self, f'f{len(x)}')(x)",
        "for name in self._modules if self.on else ():\n            x = self._modules[name](x)",
    ],
)
def test_a_layer_that_forward_names_but_no_gradient_reaches(used):
    model = WRONG_NAME.format("fc").replace("        return", f"        {used}\n        return")
    model = model.replace("super().__init__()", "super().__init__()\n        self.on = False")
    (finding,) = found(model, "loss = F.mse_loss(model(x), y)\nloss.backward()")
    assert "no gradient reaches `model.fc`" in finding.message
    assert finding.fix == "# loss has to be computed from model.fc, with gradients switched on"


def test_what_an_earlier_cell_computed_with_is_named():
    (finding,) = found("frozen(net)\nloss = net(x).sum()", "loss.backward()")
    assert "all 4 parameters of `net`" in finding.message


def test_the_loss_of_a_function_is_not_that_of_an_earlier_cell():
    step = "def fit():\n    loss = (x @ torch.ones(4, 1)).mean()\n    loss.backward()\nfit()"
    (finding,) = found("with torch.no_grad():\n    loss = net(x).mean()", step)
    assert finding.line == 3


@pytest.mark.parametrize(
    ("cell", "name"),
    [
        ("opt = torch.optim.Adam(filter(lambda p: p.requires_grad, net.parameters()))", "net"),
        ("trainable = [p for p in net.parameters() if p.requires_grad]\nopt = torch.optim.Adam(trainable)", "net"),
        ("def fit(model):\n    torch.optim.Adam(p for p in model.parameters() if p.requires_grad)\nfit(net)", "model"),
    ],
)
def test_a_model_of_which_a_filter_leaves_nothing(cell, name):
    (finding,) = found("frozen(net)", cell)
    assert f"all 4 parameters of `{name}` have `requires_grad=False`" in finding.message
    assert finding.fix.startswith(f"{name}.requires_grad_(True)")


@pytest.mark.parametrize(
    ("test", "told"),
    [
        ("p.requires_grad is True", True),
        ("p.dim() > 1 and p.requires_grad", True),
        ("not p.requires_grad and p.dim() > 9", False),
        ("p.requires_grad or p.dim() > 9", False),
        ("p.requires_grad == (p.dim() > 9) and p.dim() > 9", False),
        ("p.dim() > 9", False),
    ],
)
def test_a_filter_of_something_else_is_not_said_to_be_for_gradients(test, told):
    for cell in ("[p for p in params if {}]", "filter(lambda p: {}, net.parameters())"):
        (finding,) = found(
            "frozen(net)", f"params = list(net.parameters())\nopt = torch.optim.Adam({cell.format(test)})"
        )
        assert ("only those with True were taken" in finding.message) == told


@pytest.mark.parametrize(
    "cell",
    [
        "rest = net.parameters()\nlist(rest)\nopt = torch.optim.Adam(p for p in rest if p.requires_grad)",
        "opt = torch.optim.Adam(p for p in net.parameters() if p.requires_grad and p.dim() > 9)",
    ],
)
def test_a_model_that_is_not_frozen_is_not_blamed(cell):
    (finding,) = found(cell)
    assert finding.subject == "optimizer"


@pytest.mark.parametrize(
    ("given", "fix"),
    [
        ("weights = net.parameters()\nfirst = len(list(weights))\nopt = torch.optim.SGD(weights, lr=0.1)",
         "weights = list(net.parameters())"),
        ("opt = torch.optim.SGD([], lr=0.1)", "params = list(model.parameters())"),
    ],
)  # fmt: skip
def test_an_iterator_that_is_used_up_is_a_list_in_its_own_name(given, fix):
    (finding,) = found(given)
    assert finding.fix.partition("  #")[0] == fix


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ("nn.Linear(4, 1)", "both parameters of `net` have `requires_grad=False`"),
        ("nn.Linear(4, 1, bias=False)", "the only parameter of `net` has `requires_grad=False`"),
    ],
)
def test_one_and_two_parameters_are_told_as_people_do(made, told):
    (finding,) = found(f"net = {made}\nfrozen(net)\nloss = net(x).sum()\nloss.backward()")
    assert told in finding.message
