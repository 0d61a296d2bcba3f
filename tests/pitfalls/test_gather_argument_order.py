"""The index before the dimension."""
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
scores, chosen = torch.rand(8, 3), torch.zeros(8, 1, dtype=torch.long)
"""
FOUND = {
    "method": (["scores.gather(chosen, 1)"], 1, "chosen", "`scores.gather(chosen, 1)`"),
    "function": (["torch.gather(scores, chosen, 1)"], 1, "chosen", "chosen"),
    "keyword": (["torch.gather(scores, chosen, dim=-1)"], 1, "chosen", "chosen"),
    "no dimension": (["scores.gather(chosen)"], 1, "chosen", "chosen"),
    "in a function": (["def pick(q, a):\n    return q.gather(a.unsqueeze(1), 1)", "pick(scores, chosen[:, 0])"], 2, "a.unsqueeze(1)", "a.unsqueeze(1)"),
    "index_select": (["scores.index_select(chosen[:, 0], 1)"], 1, "chosen[:, 0]", "index_select"),
}  # fmt: skip
SILENT = {
    "right": "scores.gather(1, chosen)",
    "keywords": "torch.gather(scores, index=chosen, dim=1)",
    "shape": "scores.gather(1, chosen[:, 0])",
    "own": "def gather(x, dim):\n    raise TypeError('gather needs dim')\n\n\ngather(1, 2)",
    "caught": "try:\n    scores.gather(chosen, 1)\nexcept TypeError:\n    pass",
}  # fmt: skip


def found(cells):
    everything = findings_in(START, *cells)
    return [finding for finding in everything if finding.slug == "gather-argument-order"], everything


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
