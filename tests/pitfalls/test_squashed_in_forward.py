"""Softmax and sigmoid of a model's own `forward`: named by their line, with the statement that is right."""

import pytest

from tests.cells import findings_in

MODEL = """\
import torch
import torch.nn.functional as F
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.attend, self.out = nn.Linear(4, 4), nn.Linear(4, {width})
    def forward(self, x):
        x = x * {squash}(self.attend(x){dim})
        {returned}
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
def train(loss_of):
    for _ in range(4):
        loss = loss_of(net(torch.rand(6, 4)))
        opt.zero_grad()
        loss.backward()
        opt.step()"""
SOFT = MODEL.format(width=3, squash="torch.softmax", dim=", 1", returned="{}")
SIGMOID = MODEL.format(width=1, squash="torch.sigmoid", dim="", returned="{}")
GIVEN = "labels = torch.randint(0, 3, (6,))\ntrain(lambda p: {}(p, labels))"
BINARY = "train(lambda p: F.binary_cross_entropy_with_logits(p, torch.ones(6, 1)))"
CASES = {
    "cross-entropy": (
        "softmax-before-cross-entropy",
        SOFT.format("return torch.softmax(self.out(x), 1)"),
        GIVEN.format("F.cross_entropy"),
        "return self.out(x)",
    ),
    "nll": (
        "probabilities-in-nll-loss",
        SOFT.format("return torch.softmax(self.out(x), 1)"),
        GIVEN.format("F.nll_loss"),
        "return torch.log_softmax(self.out(x), 1)",
    ),
    "a method": (
        "softmax-before-cross-entropy",
        SOFT.format("return self.out(x).softmax(dim=-1)"),
        GIVEN.format("F.cross_entropy"),
        "return self.out(x)",
    ),
    "with logits": (
        "sigmoid-before-bce-logits",
        SIGMOID.format("return torch.sigmoid(self.out(x))"),
        BINARY,
        "return self.out(x)",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_last_line_of_forward_is_named_and_mended(name):
    slug, model, training, mended = CASES[name]
    (finding,) = findings_in(model, training, slug=slug)
    assert "line 10 of cell 1" in finding.message
    assert finding.fix.startswith(f"{mended}  # line 10 of cell 1")
    lines = model.splitlines()
    lines[9] = f"        {mended}"
    assert not findings_in("\n".join(lines), training)


def test_two_models_are_not_asked_which_of_them_it_was():
    model = SOFT.format("return torch.softmax(self.out(x), 1)").replace("opt =", "other = nn.Linear(4, 4)\nopt =")
    training = GIVEN.format("F.cross_entropy").replace("train(", "x = other(torch.rand(6, 4))\ntrain(")
    (finding,) = findings_in(model, training, slug="softmax-before-cross-entropy")
    assert finding.fix.startswith("#")


LAYERED = """\
import torch
from torch import nn
class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Sequential(nn.Linear(4, 1), nn.Sigmoid())
    def loss(self, x):
        return nn.functional.binary_cross_entropy_with_logits(self.token(x).squeeze(-1), torch.ones(6))
parts = nn.ModuleList([Part(), Part()])
opt = torch.optim.SGD(parts.parameters(), lr=0.1)"""
LOOP = "for _ in range(3):\n    {}\n    opt.zero_grad()\n    loss.backward()\n    opt.step()"
TERMS = {
    "of all": "loss = torch.stack([part.loss(torch.rand(6, 4)) for part in parts]).mean()",
    "of one": "term = parts[0].loss(torch.rand(6, 4))\n    loss = term.mean() * 2",
}


@pytest.mark.parametrize("name", TERMS)
def test_a_layer_in_a_method_of_a_part_is_told_once_with_its_line(name):
    (finding,) = findings_in(LAYERED, LOOP.format(TERMS[name]), slug="sigmoid-before-bce-logits")
    assert "(`nn.Sigmoid()`, line 6 of cell 1)" in finding.message
    mended = "self.token = nn.Sequential(nn.Linear(4, 1), nn.Identity())"
    assert finding.fix.startswith(mended)
    right = LAYERED.replace("self.token = nn.Sequential(nn.Linear(4, 1), nn.Sigmoid())", mended)
    assert not findings_in(right, LOOP.format(TERMS[name]))


IN_A_DICTIONARY = """\
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out, self.criterion = nn.Linear(4, 2), nn.BCEWithLogitsLoss()
    def forward(self, x):
        p = torch.sigmoid(self.out(x))
        return {"loss": 0.1 * self.criterion(p, torch.ones(6, 2)) + 0 * p.sum()}
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    output = net(torch.rand(6, 4))
    opt.zero_grad()
    output["loss"].backward()
    opt.step()"""


def test_a_loss_in_a_dictionary_is_told_once_and_by_its_own_name():
    (finding,) = findings_in(IN_A_DICTIONARY, slug="sigmoid-before-bce-logits", fails=False)
    assert (finding.subject, finding.line) == ("output['loss']", 15)
    assert finding.message.startswith("`output['loss']` applies sigmoid twice")


DRAWS = {
    "of the object": (
        "def act(self, x):\n        return Categorical(self(x)).sample()",
        "",
        "Categorical(logits=self(x))",
    ),
    "of a name": ("", "def act(x):\n    p = net(x)\n    return Categorical(probs=p).sample()", "Categorical(logits=p)"),
    "by number": (
        "",
        "def act(x):\n    return torch.multinomial(net(x), 1)",
        "torch.multinomial(net(x).softmax(-1), 1)",
    ),
    "by a short name": (
        "",
        "def act(x):\n    m = net(x)\n    return torch.multinomial(m, num_samples=1)",
        "torch.multinomial(m.softmax(-1), num_samples=1)",
    ),
    "with more": (
        "",
        "def act(x):\n    return Categorical(net(x), validate_args=False).sample()",
        "Categorical(logits=net(x), validate_args=False)",
    ),
    "another's": ("", "def act(x):\n    return Categorical(prior(x)).sample()", ""),
    "of scores": ("", "def act(x):\n    return Categorical(logits=net(x)).sample()", ""),
}


@pytest.mark.parametrize("name", DRAWS)
def test_what_draws_from_the_probabilities_is_mended_with_them(name):
    method, function, mended = DRAWS[name]
    last = "\n    ".join(["return torch.softmax(self.out(x), 1)", *([method] if method else [])])
    model = f"from torch.distributions import Categorical\n{SOFT.format(last)}\n{function}"
    (finding,) = findings_in(model, GIVEN.format("F.cross_entropy"), slug="softmax-before-cross-entropy")
    assert [line.partition("  # ")[0] for line in finding.fix.splitlines()[1:]] == ([mended] if mended else [])


TWO = """\
import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Categorical
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 3)
    def forward(self, x):
        return F.softmax(self.out(x), dim=-1)
class Prior(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 3)
    def forward(self, x):
        return self.out(x).sigmoid()
policy, prior = Policy(), Prior()
opt = torch.optim.SGD(policy.parameters(), 0.1)
x, y = torch.randn(8, 4), torch.randint(0, 3, (8,))"""
DRAWN = """\
first = Categorical(prior(x)).sample()
second = Categorical(policy(x)).sample()
for _ in range(4):
    opt.zero_grad()
    out = policy(x)
    loss = F.cross_entropy(out, y)
    loss.backward()
    opt.step()"""


def test_a_model_that_the_loss_does_not_go_through_keeps_its_probabilities():
    (finding,) = findings_in(TWO, DRAWN, slug="softmax-before-cross-entropy", fails=False)
    assert "Categorical(logits=policy(x))" in finding.fix
    assert "prior" not in finding.fix
