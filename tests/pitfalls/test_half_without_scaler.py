"""Training in float16 without a scaler, and what needs none."""

import pytest

from tests.cells import a_notebook

SETUP = """
import torch
from torch import nn
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 8), nn.Linear(8, 1)
    def forward(self, x):
        return self.b(torch.relu(self.a(x)))
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.01)
x, y = torch.randn(16, 3), torch.randn(16, 1)
scaler = torch.amp.GradScaler("cpu")
"""


def findings(source):
    with a_notebook() as notebook:
        for cell in (SETUP, source):
            notebook.run(cell)
        assert all(error is None for error in notebook.errors)
        return [f for f in notebook.runs[-1].findings if f.slug == "half-without-scaler"]


LOOP = """
for i in range(3):
    opt.zero_grad()
    with torch.autocast("cpu", dtype=torch.{dtype}):
        out = net(x)
        loss = {loss}
    {backward}
"""
PURE = """
net.half()
for i in range(3):
    opt.zero_grad()
    ((net(x.half()) - y.half()) ** 2).mean().backward()
    opt.step()
"""
ACCUMULATED = """
def train_step(model, batch):
    with torch.autocast("cpu", dtype=torch.float16):
        objective = nn.functional.mse_loss(model(batch), y) / 2
    objective.backward()
for i in range(4):
    train_step(net, x)
    if i % 2:
        opt.step()
        opt.zero_grad()
"""
FOUND = {
    "a factor below 1": (PURE.replace(".mean()", ".mean().mul(0.5)"), 5),
    "autocast": (
        LOOP.format(dtype="float16", loss="((out - y) ** 2).mean()", backward="loss.backward(); opt.step()"),
        7,
    ),
    "binary": (
        LOOP.format(
            dtype="float16",
            loss="nn.functional.binary_cross_entropy_with_logits(out, y.sigmoid())",
            backward="loss.backward(); opt.step()",
        ),
        7,
    ),
    "weights": (PURE, 5),
    "divided": (ACCUMULATED, 5),
}
QUIET = {
    "bfloat16": LOOP.format(dtype="bfloat16", loss="out.pow(2).mean()", backward="loss.backward(); opt.step()"),
    "scaler": LOOP.format(
        dtype="float16",
        loss="out.pow(2).mean()",
        backward="scaler.scale(loss).backward(); scaler.step(opt); scaler.update()",
    ),
    "own scale": LOOP.format(dtype="float16", loss="out.pow(2).mean()", backward="(loss * 512.0).backward()"),
    "one gradient": LOOP.format(dtype="float16", loss="out.pow(2).mean()", backward="loss.backward()"),
    "inference": "net.half()\nwith torch.no_grad():\n    out = net(x.half())",
    "full precision": "for i in range(3):\n    opt.zero_grad()\n    net(x).pow(2).mean().backward()\n    opt.step()",
}


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    source, line = FOUND[name]
    (finding,) = findings(source)
    assert finding.line == line
    assert "`net`" in finding.message or "`model`" in finding.message


@pytest.mark.parametrize("name", QUIET)
def test_silent(name):
    assert findings(QUIET[name]) == []


@pytest.mark.parametrize(("eps", "said"), [("", True), (", eps=1e-4", False)])
def test_an_eps_that_float16_does_not_hold(eps, said):
    cell = (
        f"half = Net().half()\nadam = torch.optim.Adam(half.parameters(), lr=1e-3{eps})\nfor _ in range(3):\n"
        "    adam.zero_grad()\n    loss = (half(x.half()).float() - y).square().mean()\n    loss.backward()\n"
        "    adam.step()"
    )
    (finding,) = findings(cell)
    assert ("`eps=1e-08` of `adam` is 0 there" in finding.message) is said


SCALED = """
scaler = {}
for i in range(3):
    opt.zero_grad()
    with torch.autocast("cpu", dtype=torch.{}):
        loss = nn.functional.mse_loss(net(x), y)
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
"""


@pytest.mark.parametrize(
    ("made", "fix"),
    [
        ("torch.amp.GradScaler('cpu', enabled=False)", "scaler = torch.amp.GradScaler('cpu')  #"),
        (
            "torch.amp.GradScaler('cpu', init_scale=256.0, enabled=len(x) > 99)",
            "scaler = torch.amp.GradScaler('cpu', init_scale=256.0)  #",
        ),
    ],
)
def test_a_scaler_that_is_switched_off_scales_nothing(made, fix):
    (finding,) = findings(SCALED.format(made, "float16"))
    assert "`scaler` is switched off" in finding.message
    assert finding.fix.startswith(fix)
    assert findings(SCALED.format(made, "bfloat16")) == []
    assert findings(SCALED.format(finding.fix.partition("  #")[0].partition(" = ")[2], "float16")) == []


TRAINER = """
class Runner:
    def __init__(self):
        self.opt, self.rate = torch.optim.SGD(net.parameters(), lr=0.1), 0.1
        self.scaler = torch.amp.GradScaler("cpu")

    def train(self):
        for i in range(3):
            self.opt.zero_grad()
            with torch.autocast("cpu", dtype=torch.float16):
                loss = nn.functional.mse_loss(net(x), y)
            {backward}
            {step}


Runner().train()
"""


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        (TRAINER, ["self.scaler.scale(loss).backward()", "self.scaler.step(self.opt)", "self.scaler.update()"]),
        (
            LOOP.format(dtype="float16", loss="out.pow(2).mean()", backward="loss.backward(); opt.step()"),
            ["scaler.scale(loss).backward()", "scaler.step(opt)", "scaler.update()"],
        ),
    ],
)
def test_a_scaler_that_is_there_already_is_used(source, lines):
    start = "" if source is TRAINER else 'scaler = torch.amp.GradScaler("cpu")\n'
    cell = start + source.replace("{backward}", "loss.backward()").replace("{step}", "self.opt.step()")
    (finding,) = findings(cell)
    assert [line.partition("  # ")[0] for line in finding.fix.splitlines()] == lines
    mended = source.replace("{backward}", lines[0]).replace("{step}", "; ".join(lines[1:]))
    if source is TRAINER:
        assert findings(mended) == []
