"""Measuring functions that ask a model in a comprehension, and samples that are drawn in one."""

import pytest

from tests.cells import findings_in

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
