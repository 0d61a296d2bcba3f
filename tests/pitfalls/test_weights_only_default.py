"""Files that hold more than tensors."""
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
def saved(thing):
    file = io.BytesIO()
    torch.save(thing, file)
    file.seek(0)
    return file
"""
FOUND = {
    "model": (["file = saved(nn.Linear(3, 1))\nmodel = torch.load(file, weights_only=True)"], 2, "torch.nn.modules.linear.Linear", "file"),
    "number of numpy": (["torch.load(saved({'best': np.float64(1)}), weights_only=True)"], 1, "numpy._core.multiarray.scalar", "numpy"),
    "own class": (["class Config:\n    pass", "torch.load(saved(Config()), weights_only=True)"], 1, "__main__.Config", "Config"),
    "in a function": (["def restore(file):\n    return torch.load(file, weights_only=True)", "restore(saved(nn.ReLU()))"], 2, "torch.nn.modules.activation.ReLU", "ReLU"),
}  # fmt: skip
SILENT = {
    "plain": "torch.load(saved({'w': torch.rand(3), 'epoch': 3}), weights_only=True)",
    "trusted": "torch.load(saved(nn.ReLU()), weights_only=False)",
    "broken": "torch.load(io.BytesIO(b'nothing'), weights_only=False)",
    "caught": "try:\n    torch.load(saved(nn.ReLU()), weights_only=True)\nexcept Exception:\n    pass",
}  # fmt: skip


def found(cells):
    everything = findings_in(START, *cells)
    return [finding for finding in everything if finding.slug == "weights-only-default"], everything


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
