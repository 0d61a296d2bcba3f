"""Mixed precision under its old name."""
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

"""
FOUND = {
    "attribute": (["x = torch.rand(3)\nwith torch.cuda.amp.autocast():\n    x * 2"], 2, "torch.cuda.amp", "autocast"),
    "import": (["from torch.cuda.amp import GradScaler, autocast"], 1, "torch.cuda.amp", "GradScaler and autocast"),
    "nickname": (["from torch.cuda import amp\n\nscaler = amp.GradScaler(enabled=False)"], 3, "torch.cuda.amp", "GradScaler"),
    "renamed": (["import torch.cuda.amp as ca\n\nscaler = ca.GradScaler(enabled=False)"], 3, "torch.cuda.amp", "GradScaler"),
    "in a class": (["class Trainer:\n    def step(self, x):\n        with torch.cuda.amp.autocast():\n            return x"], 3, "torch.cuda.amp", "autocast"),
}  # fmt: skip
SILENT = {
    "new": "scaler = torch.amp.GradScaler('cpu')\nwith torch.autocast('cpu'):\n    torch.rand(3, 3) @ torch.rand(3, 3)",
    "comment": "# torch.cuda.amp.autocast is old\nx = 1",
    "text": "text = 'from torch.cuda.amp import autocast'",
    "own amp": "class amp:\n    GradScaler = 1\n\n\nx = amp.GradScaler  # not torch.cuda.amp",
}  # fmt: skip


def found(cells):
    everything = findings_in(START, *cells)
    return [finding for finding in everything if finding.slug == "cuda-amp-namespace"], everything


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
