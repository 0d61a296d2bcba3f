"""Losses, gradients and weights that are not finite: each has one cause, and is told once."""

from dataclasses import replace
from math import isnan

import pytest

from tests.cells import a_notebook
from tests.fakes import a_backward, a_count, a_run, a_step, an_optimizer
from torch_inspector.facts import SeriesFact
from torch_inspector.pitfalls import all_pitfalls

SETUP = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
x, y = torch.randn(32, 3), torch.randn(32, 1)
def update(a=x, b=y):
    opt.zero_grad()
    out = net(a)
    loss = F.mse_loss(out, b)
    loss.backward()
    opt.step()
    return loss.item()
"""
OURS = {
    "learning-rate-divergence",
    "nonfinite-loss",
    "nonfinite-gradient",
    "nonfinite-parameter",
    "clip-spreads-nan",
    "half-overflow",
    "half-underflow",
}


def findings(*cells):
    with a_notebook() as notebook:
        for cell in (SETUP, *cells):
            notebook.run(cell)
        assert all(error is None for error in notebook.errors)
        assert vars(notebook.extension.session.failures).get("counts", {}) == {}
        return [f for run in notebook.runs for f in run.findings if f.slug in OURS]


LATE = """
history = []
for step in range(100):
    batch = x.clone()
    if step == 37:
        batch[0, 0] = float("nan")
    history.append(update(batch))
"""
RATE = """
opt = torch.optim.SGD(net.parameters(), lr=30.0)
losses = [update() for _ in range(40)]
"""
TRAINER = """
class Trainer:
    def __init__(self, model):
        self.model, self.losses = model, []
        self.optimizer = torch.optim.SGD(model.parameters(), lr=100.0)
    def fit(self, epochs):
        for _ in range(epochs):
            self.optimizer.zero_grad()
            loss = F.mse_loss(self.model(x), y * 100)
            loss.backward()
            self.optimizer.step()
            self.losses.append(loss.item())
trainer = Trainer(net)
trainer.fit(20)
"""
WHERE = """
w = torch.zeros(3, requires_grad=True)
sgd = torch.optim.SGD([w], lr=0.1)
loss = torch.where(w > 0, w.log(), torch.zeros(3)).sum()
loss.backward()
sgd.step()
"""
LOG = """
def objective(model, a):
    p = torch.relu(model(a))
    return -torch.log(p).mean()
for _ in range(3):
    opt.zero_grad()
    cost = objective(net, x)
    cost.backward()
    opt.step()
"""
DISTANCE = """
w = torch.ones(2, 3, requires_grad=True)
adam = torch.optim.Adam([w])
for _ in range(3):
    adam.zero_grad()
    d = ((w[0] - w[1]) ** 2).sum().sqrt()
    d.backward()
    adam.step()
"""
CLIP = """
w = torch.zeros(3, requires_grad=True)
both = torch.optim.SGD([w, *net.parameters()], lr=0.1)
for _ in range(3):
    both.zero_grad()
    (w.sqrt().sum() * 0 + F.mse_loss(net(x), y)).backward()
    torch.nn.utils.clip_grad_norm_([w, *net.parameters()], 1.0)
    both.step()
"""
FOUND = {
    "a gap in the data": (["x[3, 1] = float('nan')\nupdate()"], "nonfinite-loss", "`a`"),
    "a late batch": ([LATE], "nonfinite-loss", "history[37]"),
    "a logarithm": ([LOG], "nonfinite-loss", "cost"),
    "too long steps": ([RATE], "learning-rate-divergence", "30"),
    "a trainer": ([TRAINER], "learning-rate-divergence", "net"),
    "where": ([WHERE], "nonfinite-gradient", "`w.grad`"),
    "a distance of zero": ([DISTANCE], "nonfinite-gradient", "sqrt"),
    "one gradient spoils all": ([CLIP], "clip-spreads-nan", "`w`"),
    "written by hand": (
        ["with torch.no_grad():\n    net[0].bias /= 0", "out = net(x)"],
        "nonfinite-parameter",
        "net",
    ),
    "weights of an earlier cell": (
        ["with torch.no_grad():\n    net[2].weight.fill_(float('nan'))", "for _ in range(3):\n    update()"],
        "nonfinite-parameter",
        "net",
    ),
    "half scores": (
        ["q = torch.full((8, 64), 60.0).half()\nscores = q @ q.T\nprobs = scores.softmax(-1)"],
        "half-overflow",
        "`scores`",
    ),
    "half conversion": (["big = torch.tensor([1.0, 70000.0])\nsmall = big.half()"], "half-overflow", "`small`"),
    "half loss": (
        [
            (
                "n = nn.Linear(3, 1).half()\no = torch.optim.SGD(n.parameters(), 0.1)\nfor _ in range(2):\n"
                "    o.zero_grad()\n    loss = ((n(x.half()) * 1000) ** 2).sum()\n    loss.backward()\n    o.step()"
            )
        ],
        "half-overflow",
        "loss",
    ),
    "half gradients": (
        [
            (
                "for _ in range(3):\n    opt.zero_grad()\n    with torch.autocast('cpu', dtype=torch.float16):\n"
                "        out = net(x)\n    loss = (out.float() * 1e-5).pow(2).mean()\n    loss.backward()\n"
                "    opt.step()"
            )
        ],
        "half-underflow",
        "net",
    ),
}
QUIET = {
    "ordinary": ["losses = [update() for _ in range(50)]"],
    "a bad batch is skipped": [
        (
            "for i in range(5):\n    opt.zero_grad()\n    loss = F.mse_loss(net(x / (0 if i == 1 else 1)), y)\n"
            "    loss.backward()\n    if torch.isfinite(loss):\n        opt.step()"
        )
    ],
    "best so far": ["best = float('inf')\ndone = [float('inf')]\nfor _ in range(5):\n    best = min(best, update())"],
    "losses that fall and rise": ["losses = [update(x, y * s) for s in (1, 5, 20, 5, 1, 1, 1)]"],
    "a mask": [
        (
            "scores = torch.randn(4, 4).half()\nmask = torch.ones(4, 4).triu(1).bool()\n"
            "scores = scores.masked_fill(mask, float('-inf'))"
        )
    ],
    "a clip that checks": [
        CLIP.replace("    torch.nn", "    norm = torch.nn").replace(
            "    both.step()", "    if norm.isfinite():\n        both.step()"
        )
    ],
    "a scaler skips": [
        (
            "scaler = torch.amp.GradScaler('cpu', init_scale=1e38)\nfor _ in range(4):\n    opt.zero_grad()\n"
            "    scaler.scale(F.mse_loss(net(x), y * 100)).backward()\n    scaler.step(opt)\n    scaler.update()"
        )
    ],
    "a maximum is sought": [
        (
            "z = torch.ones(3, requires_grad=True)\nup = torch.optim.SGD([z], lr=0.5, maximize=True)\n"
            "for _ in range(9):\n    up.zero_grad()\n    z.sum().backward()\n    up.step()"
        )
    ],
    "a metric without a value": ["ratios = [update() for _ in range(5)] + [float('nan')]"],
    "the last batch is skipped": [
        (
            "for s in (1, 1, 0):\n    opt.zero_grad()\n    loss = F.mse_loss(net(x / s), y)\n    loss.backward()\n"
            "    if not loss.isnan():\n        opt.step()"
        )
    ],
    "numbers with gaps": ["gaps = [1.0, float('nan'), 2.0]\nupdate()"],
    "a total of all losses": [
        "total = 0\nfor _ in range(30):\n    total = total + F.mse_loss(net(x), y)\ntotal.backward()\nopt.step()"
    ],
    "relu that is off": [
        (
            "with torch.no_grad():\n    net[2].weight.zero_()\nfor _ in range(3):\n    opt.zero_grad()\n"
            "    (net(x) * 0).sum().backward()\n    opt.step()"
        )
    ],
}


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    cells, slug, text = FOUND[name]
    told = findings(*cells)
    assert [one.slug for one in told] == [slug]
    assert text in told[0].message
    assert told[0].line is not None


@pytest.mark.parametrize("name", QUIET)
def test_silent(name):
    assert findings(*QUIET[name]) == []


def on_a_device(path, *values):
    """A run whose losses lie on a device, so that only the user's own list is known."""
    bad = next((i for i, value in enumerate(values) if isnan(value)), None)
    finite = values[:bad]
    series = SeriesFact(path, len(values), bad, finite[0], finite[-1], min(finite), "nan" if bad is not None else "")
    run = a_run(a_backward(device="cuda"), a_step(), a_count("step", len(values)), after=[series, an_optimizer()])
    return {one.slug for pitfall in all_pitfalls() if pitfall.slug in OURS for one in stamped(pitfall, run)}


def stamped(pitfall, run):
    return [replace(finding, slug=pitfall.slug) for finding in pitfall.check(run)]


def test_a_list_of_numbers_tells_what_happened_on_a_device():
    nan = float("nan")
    assert on_a_device("losses", 1.0, 0.9, 0.8, nan, nan) == {"nonfinite-loss"}
    assert on_a_device("log['loss']", 1.0, 30.0, 9e5, nan) == {"learning-rate-divergence"}
    assert on_a_device("losses", 1.0, 0.9, 0.8) == set()
    assert on_a_device("speeds", 1.0, 0.9, nan) == set()
