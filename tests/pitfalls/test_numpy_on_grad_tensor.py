"""Arrays and numbers asked of the wrong tensor."""
# ruff: noqa: E501 - programs of several lines, each as one string, so that the table can be read

import pytest

from tests.cells import findings_in

START = """
import io

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
net, x = nn.Linear(3, 1), torch.rand(8, 3)
"""
FOUND = {
    "method": (["pred = net(x)\npred.numpy()"], 2, "pred", "requires grad"),
    "asarray": (["pred = net(x)\nnp.asarray(pred)"], 2, "pred", "requires grad"),
    "list of losses": (["losses = [net(x).mean() for _ in range(3)]\nnp.array(losses)"], 2, "", "losses"),
    "old index": (["loss = net(x).mean()\nprint(loss[0])"], 2, "loss", "loss[0]"),
    "old index of data": (["loss = net(x).mean()\nprint(loss.data[0])"], 2, "loss", "loss"),
    "item of many": (["right = (net(x) > 0).float()\nright.item()"], 2, "right", "(8, 1)"),
    "float of many": (["pred = net(x)\nshown = float(pred)"], 2, "pred", "(8, 1)"),
    "in a logger": (["class Log:\n    def add(self, value):\n        self.last = value.numpy()", "loss = net(x).mean()\nLog().add(loss)"], 3, "value", "`loss` in the call"),
}  # fmt: skip
SILENT = {
    "detach": "net(x).detach().numpy()",
    "no grad": "with torch.no_grad():\n    net(x).numpy()",
    "one number": "net(x).mean().item(), float(net(x[:1]))",
    "caught": "try:\n    net(x).numpy()\nexcept RuntimeError:\n    pass",
    "list index": "[1, 2][5]",
}  # fmt: skip


def found(cells):
    everything = findings_in(START, *cells)
    return [finding for finding in everything if finding.slug == "numpy-on-grad-tensor"], everything


@pytest.mark.parametrize("name", FOUND)
def test_found_with_names(name):
    cells, line, subject, mentions = FOUND[name]
    (finding,), everything = found(cells)
    assert (finding.line, finding.subject) == (line, subject)
    assert mentions in finding.message
    assert [one.slug for one in everything if one.severity == "error" and one is not finding] == []


@pytest.mark.parametrize("name", SILENT)
def test_silent(name):
    assert found([SILENT[name]])[0] == []
