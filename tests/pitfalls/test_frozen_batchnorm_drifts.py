"""Frozen normalisation that goes on with its statistics, and what looks like it."""

import pytest

from tests.cells import findings_in

SETUP = """
import torch
from torch import nn
torch.manual_seed(0)
x, y = torch.randn(64, 8), torch.randint(0, 2, (64,))
def make():
    return nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))
def fit(net, opt, epochs=2):
    for _ in range(epochs):
        for i in range(0, 64, 16):
            opt.zero_grad()
            nn.functional.cross_entropy(net(x[i:i + 16]), y[i:i + 16]).backward()
            opt.step()
net = make()
"""
ALL_BUT_HEAD = """
for p in net.parameters():
    p.requires_grad = False
net[3] = nn.Linear(16, 2)
fit(net, torch.optim.Adam(net[3].parameters()))
"""
IN_ALL = """
for name, p in net.named_parameters():
    p.requires_grad = name.startswith("3")
opt = torch.optim.Adam(net.parameters())
net.train()
fit(net, opt)
"""
WHOLE = """
body, head = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16)), nn.Linear(16, 2)
body.requires_grad_(False)
opt = torch.optim.SGD(head.parameters(), lr=.1)
for _ in range(4):
    opt.zero_grad()
    with torch.no_grad():
        features = body(x)
    nn.functional.cross_entropy(head(features), y).backward()
    opt.step()
"""
CLASS = """
class Tuner(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16))
        self.head = nn.Linear(16, 2)
        for p in self.body.parameters():
            p.requires_grad_(False)
    def forward(self, x):
        return self.head(self.body(x))
tuner = Tuner()
fit(tuner, torch.optim.Adam(filter(lambda p: p.requires_grad, tuner.parameters())))
"""
OVERRIDDEN = CLASS.replace(
    "    def forward", "    def train(self, mode=True):\n        super().train(mode)\n        self.body.eval()\n"
    "        return self\n    def forward",
).replace("tuner = Tuner()", "tuner = Tuner().train()")  # fmt: skip
GAN = """
gen = nn.Sequential(nn.Linear(4, 8))
critic = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))
g_opt, c_opt = torch.optim.Adam(gen.parameters()), torch.optim.Adam(critic.parameters())
for _ in range(4):
    critic.requires_grad_(False)
    g_opt.zero_grad()
    (-critic(gen(torch.randn(16, 4))).mean()).backward()
    g_opt.step()
    critic.requires_grad_(True)
    c_opt.zero_grad()
    (critic(gen(torch.randn(16, 4)).detach()).mean() - critic(x[:16]).mean()).backward()
    c_opt.step()
"""
NO_WEIGHTS = """
net[1] = nn.BatchNorm1d(16, affine=False)
net[0].requires_grad_(False)
fit(net, torch.optim.SGD(net.parameters(), lr=.1))
"""
FOUND = {
    "all but the head": ([ALL_BUT_HEAD], (12, "warning")),
    "in the optimizer all the same": ([IN_ALL], (12, "warning")),
    "a body on its own": ([WHOLE], (8, "warning")),
    "a class": ([CLASS], (12, "warning")),
    "only the normalisation": (
        ["net[1].requires_grad_(False)\nfit(net, torch.optim.SGD(net.parameters(), lr=.1))"],
        (12, "hint"),
    ),
}
QUIET = {
    "asleep": [ALL_BUT_HEAD.replace("fit(", "net[1].eval()\nfit(")],
    "train overridden": [OVERRIDDEN],
    "nothing frozen": ["fit(net, torch.optim.SGD(net.parameters(), lr=.1))"],
    "without statistics": ["net[1] = nn.BatchNorm1d(16, track_running_stats=False)" + ALL_BUT_HEAD],
    "layer norm": ["net[1] = nn.LayerNorm(16)" + ALL_BUT_HEAD],
    "in turns": [GAN],
    "statistics on purpose": ["net.requires_grad_(False)\nfor _ in range(3):\n    net(x)\nnet.eval();"],
    "without own weights": [NO_WEIGHTS],
}


def found(*cells):
    return [(one.line, one.severity) for one in findings_in(SETUP, *cells, slug="frozen-batchnorm-drifts", fails=False)]


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    cells, expected = FOUND[name]
    assert found(*cells) == [expected]


@pytest.mark.parametrize("name", QUIET)
def test_silent(name):
    assert found(*QUIET[name]) == []


BODY = "body = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU())\nbody.requires_grad_(False)\n"
JOINED = "model = nn.Sequential(body, nn.Linear(16, 2))\nopt = torch.optim.Adam(model[1].parameters())\nmodel.train()\n"
TUNED = CLASS.replace("def __init__(self)", "def __init__(self, body)").replace(
    "self.body = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16))", "self.body = body"
)


def said(*cells):
    (finding,) = findings_in(SETUP, *cells, slug="frozen-batchnorm-drifts", fails=False)
    return finding


@pytest.mark.parametrize(
    ("cell", "name", "layer"),
    [
        (JOINED + "fit(model, opt)", "model", "model[0][1]"),
        (TUNED.replace("Tuner()", "Tuner(body)"), "tuner", "tuner.body[1]"),
    ],
)
def test_the_frozen_part_has_the_name_of_its_variable_and_the_fix_sends_it_to_sleep(cell, name, layer):
    finding = said(BODY, cell)
    assert f"in `body`, which is a part of `{name}` (`{layer}`)" in finding.message
    assert finding.fix == f"{name}.train()  # each epoch, then\nbody.eval()"
    assert found(BODY, cell.replace("fit(", f"{finding.fix}\nfit(")) == []


MORE = BODY + "norm = nn.BatchNorm1d(16).requires_grad_(False)\nbody.append(norm)\n"


@pytest.mark.parametrize(
    ("cell", "part"),
    [
        (BODY + JOINED + "del body\n", "model[0]"),
        (MORE + JOINED, "body"),
        (BODY + "wrapped = nn.Sequential(body)\n" + JOINED.replace("(body", "(wrapped"), "wrapped"),
        (BODY + JOINED.replace("(body", "(nn.Sequential(body)"), "body"),
        (BODY + "body[0].requires_grad_(True)\n" + JOINED, ""),
        (BODY + JOINED + "model[1] = nn.Sequential(nn.BatchNorm1d(16).requires_grad_(False), model[1])\n", ""),
    ],
)
def test_a_part_is_frozen_as_a_whole_and_has_all_such_layers(cell, part):
    finding = said(cell + "fit(model, opt)")
    assert (f"in `{part}`, which" in finding.message) if part else ("in `model` (" in finding.message)
    assert (f"\n{part}.eval()" in finding.fix) if part else ("for layer in model" in finding.fix)
