"""Optimizers after training: with inference to come, and with more training to come."""

import pytest

from tests.cells import a_notebook

SLUG = "training-state-left"
START = """\
import torch
from torch import nn
net = nn.Linear(2048, 3072)
other = nn.Linear(2048, 3072)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-4)"""
TRAIN = """\
net.train()
optimizer.zero_grad()
net(torch.randn(4, 2048)).square().mean().backward()
optimizer.step()"""
PREDICT = "net.eval()\nwith torch.no_grad():\n    y = net(torch.randn(4, 2048))"
INFER = PREDICT.replace("no_grad", "inference_mode")


def found(*cells, min_bytes=None):
    with a_notebook(min_bytes=min_bytes) as notebook:
        for code in cells:
            notebook.run(code)
        return [f for run in notebook.runs if run for f in run.findings if f.slug == SLUG]


PREDICTS = "@torch.inference_mode()\ndef predict(x):\n    net.eval()\n    return net(x)"
ASKED = "y = predict(torch.randn(4, 2048))"


@pytest.mark.parametrize("name", ["predict", "generate", "evaluate"])
def test_a_function_under_inference_mode(name):
    cells = [one.replace("predict", name) for one in (PREDICTS, TRAIN, ASKED)]
    assert len(found(START, *cells, min_bytes=1 << 18)) == (name != "evaluate")
    assert found(START, *[one.replace("inference_mode", "no_grad") for one in cells], min_bytes=1 << 18) == []


BOTH = """\
def epoch(train):
    net.train(train)
    with torch.inference_mode(not train):
        loss = net(torch.randn(4, 2048)).square().mean()
    if train:
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()
def run(train):
    return epoch(train)"""


@pytest.mark.parametrize("name", ["epoch", "run"])
def test_a_function_that_has_trained_may_do_so_again(name):
    assert found(START, BOTH, f"{name}(True)", f"{name}(False)", f"{name}(False);", min_bytes=1 << 18) == []


@pytest.mark.parametrize(
    ("cells", "size"),
    [
        ([TRAIN, INFER], "72.0 MB"),
        ([TRAIN, PREDICT, PREDICT], "72.0 MB"),
        ([TRAIN + "\noptimizer.zero_grad()\nextra = net.weight.numel()", INFER], ""),
        ([START.replace("Adam(", "SGD(momentum=0.9, params="), TRAIN, TRAIN, INFER], ""),
    ],
)
def test_state_that_no_forward_pass_reads(cells, size):
    found_here = found(START, *cells, min_bytes=1 << 18)
    (finding,) = found_here
    assert (finding.subject, finding.line, finding.severity) == ("optimizer", 3, "hint")
    assert size in finding.message


@pytest.mark.parametrize(
    "cells",
    [
        [TRAIN, PREDICT],
        [TRAIN, PREDICT, TRAIN, PREDICT, PREDICT],
        [TRAIN, INFER, TRAIN, INFER][:1],
        [TRAIN, "optimizer.zero_grad()\ndel optimizer", INFER],
        [TRAIN, INFER.replace("net", "other")],
        [TRAIN, "net.train()\nwith torch.inference_mode():\n    y = net(torch.randn(4, 2048))"],
        [TRAIN + "\n" + INFER],
        [INFER],
        [TRAIN, INFER.replace("with torch.inference_mode()", "with torch.enable_grad()")],
        [START.replace("2048, 3072", "256, 128"), TRAIN.replace("2048", "256"), INFER.replace("2048", "256")],
    ],
)
def test_state_that_is_wanted_or_small(cells):
    assert found(START, *cells) == []


FIT = """\
def fit(model, opt=None):
    opt = opt or torch.optim.SGD(model.parameters(), lr=1e-4)
    opt.zero_grad()
    model.train()
    model(torch.randn(4, 2048)).square().mean().backward()
    opt.step()
    return model"""


@pytest.mark.parametrize("trained", ["fit(net);", "net = fit(nn.Sequential(nn.Linear(2048, 3072)))"])
def test_gradients_without_an_optimizer(trained):
    cells = [START, "del optimizer", FIT, trained, INFER]
    (finding,) = found(*cells, INFER, min_bytes=1 << 18)
    assert (finding.subject, finding.line, finding.severity) == ("net", 3, "hint")
    assert "24.0 MB of gradients" in finding.message
    assert found(*cells[:-1], finding.fix, INFER, min_bytes=1 << 18) == []


@pytest.mark.parametrize(
    ("trained", "after"),
    [
        ("fit(net);", PREDICT),
        ("fit(net).zero_grad()", INFER),
        ("fit(net).requires_grad_(False).zero_grad()", INFER),
        (
            "class Kept: pass\nkept = Kept()\nkept.opt = torch.optim.SGD(net.parameters(), 0.1)\nfit(net, kept.opt);",
            PREDICT,
        ),
        ("fit(other);", INFER),
        ("net.weight.grad = torch.zeros(3072, 2048)", INFER),
    ],
    ids=["may go on", "cleared", "frozen", "at hand", "another", "never trained"],
)
def test_gradients_that_are_wanted_or_gone(trained, after):
    assert found(START, "del optimizer", FIT, trained, after, min_bytes=1 << 18) == []


def test_it_is_said_once():
    assert len(found(START, TRAIN, INFER, INFER, PREDICT)) == 1


def test_it_is_not_said_where_training_has_gone_on():
    assert len(found(START, TRAIN, INFER, TRAIN, INFER, INFER)) == 1


def test_a_model_is_called_what_the_user_can_type():
    helper = """\
def serve(model):
    model.eval()
    with torch.inference_mode():
        return model(torch.randn(4, 2048))"""
    (finding,) = found(START, helper, TRAIN, "y = serve(net)", "z = serve(net)", min_bytes=1 << 18)
    assert finding.message.startswith("`net` only predicts here")
