"""Measuring functions that ask a model in a comprehension, and samples that are drawn in one."""

import pytest

from tests.cells import findings_in

# ruff: noqa: E501

SETUP = """\
import torch
from torch import nn
torch.manual_seed(0)
pairs = [(torch.randn(4, 5), torch.randn(4, 1)) for _ in range(6)]
mse = nn.functional.mse_loss
def train_one(net, opt, pairs):
    net.train()
    for x, y in pairs:
        opt.zero_grad()
        mse(net(x), y).backward()
        opt.step()
def evaluate(net, pairs):
    with torch.no_grad():
        return {expression}
net = nn.Sequential(nn.Linear(5, 8), {layer}, nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.01)"""
EPOCHS = """\
for epoch in range(3):
    train_one(net, opt, pairs)
    print({})"""
ASKS = {
    "generator": "sum(mse(net(x), y).item() for x, y in pairs) / len(pairs)",
    "list": "torch.cat([net(x) for x, _ in pairs]).mean()",
    "dictionary": "{i: net(x).mean().item() for i, (x, _) in enumerate(pairs)}",
}
SAMPLES = {
    "list": "torch.stack([net(pairs[0][0]) for _ in range(20)]).std()",
    "batches in it": "torch.stack([torch.cat([net(x) for x, _ in pairs]) for _ in range(20)]).std()",
}


def setup(expression, layer="nn.Dropout(0.5)"):
    return SETUP.replace("{expression}", expression).replace("{layer}", layer)


def found(expression, layer, last):
    return findings_in(setup(expression, layer), last, slug="eval-missing", fails=False)


@pytest.mark.parametrize("layer", ["nn.Dropout(0.5)", "nn.BatchNorm1d(8)"])
@pytest.mark.parametrize("asks", ASKS)
def test_found_at_the_expression(asks, layer):
    (finding,) = found(ASKS[asks], layer, EPOCHS.format("evaluate(net, pairs)"))
    assert (finding.line, finding.subject, finding.severity) == (14, "net", "warning")


@pytest.mark.parametrize("samples", SAMPLES)
@pytest.mark.parametrize("last", [EPOCHS.format("evaluate(net, pairs)"), "evaluate(net, pairs)"])
def test_samples_are_left_alone_after_an_epoch_too(samples, last):
    cells = (setup(SAMPLES[samples]), "train_one(net, opt, pairs)", last)
    assert not [one for one in findings_in(*cells, slug="eval-missing", fails=False) if one.severity == "warning"]


def test_in_eval_mode_nothing_is_said():
    assert not found(
        "sum(mse(net.eval()(x), y).item() for x, y in pairs)", "nn.Dropout(0.5)", EPOCHS.format("evaluate(net, pairs)")
    )


LOOPED = """\
import types
opt_level, options = "O1", types.SimpleNamespace(samples=20)
x = torch.randn(64, 5)
def go(net):
    for x, y in pairs:
        opt.zero_grad()
        mse(net(x), y).backward()
        opt.step()
def predict(net, x, opt=None):
    outs = []
    for xb in x.split(32):
        outs.append(net(xb))
    return torch.cat(outs)
def one(net, x, opt):
    return net(x)
go(net)"""
SAMPLED = {
    "comprehension in a loop": "runs = []\nfor _ in range(20):\n    runs.append(torch.cat([net(xb) for xb in x.split(32)]))",
    "parts first": "runs = []\nfor _ in range(20):\n    parts = [net(xb) for xb in x.split(32)]\n    runs.append(torch.cat(parts))",
    "loop in a loop": "runs = []\nfor _ in range(20):\n    for xb in x.split(32):\n        runs.append(net(xb))",
    "function with a loop": "runs = [predict(net, x) for _ in range(20)]",
    "options": "runs = [one(net, x, opt=options) for _ in range(20)]",
    "options called opt": "held, opt = opt, options\nruns = [one(net, x, opt) for _ in range(20)]\nopt = held",
    "a level": "runs = []\nfor _ in range(20):\n    print(opt_level)\n    runs.append(net(x))",
    "a look at it": "runs = []\nfor _ in range(20):\n    text = repr(opt)\n    runs.append(net(x))",
}
EPOCHS_OF = {
    "function with a loop": "predict(net, x)",
    "comprehension": "torch.cat([net(xb) for xb in x.split(32)])",
    "loop": "[0]\n        for xb in x.split(32):\n            out = net(xb)",
}


def looped(text):
    cells = (setup("0"), LOOPED, text)
    return [one for one in findings_in(*cells, slug="eval-missing", fails=False) if one.severity == "warning"]


@pytest.mark.parametrize("sampled", SAMPLED)
def test_samples_in_loops(sampled):
    body = "\n".join(f"    {line}" for line in SAMPLED[sampled].split("\n"))
    assert not looped(f"with torch.no_grad():\n{body}")


@pytest.mark.parametrize("epochs", EPOCHS_OF)
def test_epochs_that_train_by_a_function_of_any_name(epochs):
    (finding,) = looped(
        f"for _ in range(6):\n    go(net)\n    with torch.no_grad():\n        out = {EPOCHS_OF[epochs]}"
    )
    assert finding.subject == "net"
