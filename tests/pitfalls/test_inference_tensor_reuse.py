"""Tensors of inference mode that come into training."""
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
body, head = nn.Linear(3, 4), nn.Linear(4, 1)


@torch.inference_mode()
def embed(x):
    return body(x)
"""
FOUND = {
    "to a layer": (["features = embed(torch.rand(8, 3))", "head(features).sum().backward()"], 1, "features", "features"),
    "in a module": (["class Head(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(4, 1)\n\n    def forward(self, z):\n        return self.fc(z)", "features = embed(torch.rand(8, 3))\nHead()(features)"], 7, "z", "`features`"),
    "as a target": (["goal = embed(torch.rand(8, 3))\nF.mse_loss(body(torch.rand(8, 3)), goal)"], 2, "goal", "line 1"),
    "changed": (["features = embed(torch.rand(8, 3))", "features -= features.mean(0)"], 1, "features", "features"),
    "made a parameter": (["start = embed(torch.rand(8, 3))\nw = nn.Parameter(start)"], 2, "start", "start"),
    "in a dictionary": (["cache = {'z': embed(torch.rand(8, 3))}\nhead(cache['z'])"], 2, "cache['z']", "cache"),
}  # fmt: skip
SILENT = {
    "clone": "features = embed(torch.rand(8, 3)).clone()\nhead(features).sum().backward()",
    "evaluation": "with torch.inference_mode():\n    features = body(torch.rand(8, 3))\n    features += 1\n    shown = head(features).tolist()",
    "no_grad": "with torch.no_grad():\n    features = body(torch.rand(8, 3))\nhead(features).sum().backward()",
    "no graph": "features = embed(torch.rand(8, 3))\nwith torch.no_grad():\n    head(features)",
    "caught": "features = embed(torch.rand(8, 3))\ntry:\n    head(features)\nexcept RuntimeError:\n    head(features.clone())",
}  # fmt: skip


def found(cells):
    everything = findings_in(START, *cells)
    return [finding for finding in everything if finding.slug == "inference-tensor-reuse"], everything


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
