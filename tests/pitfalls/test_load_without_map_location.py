"""Files from another machine."""
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
from unittest import mock


def saved(thing, tag='cuda:7'):
    file = io.BytesIO()
    with mock.patch('torch.serialization.location_tag', lambda storage: tag):
        torch.save(thing, file)
    file.seek(0)
    return file
"""
FOUND = {
    "state": (["file = saved({'w': torch.rand(3)})\nstate = torch.load(file)"], 2, "torch.load(file)", "CUDA"),
    "in a function": (["def restore(file):\n    return torch.load(file, weights_only=True)", "restore(saved(torch.rand(3)))"], 2, "torch.load(file, weights_only=True)", "CUDA"),
    "in a call": (["net = nn.Linear(3, 1)\nnet.load_state_dict(torch.load(saved(net.state_dict())))"], 2, "torch.load(saved(net.state_dict()))", "CUDA"),
    "whole model": (["torch.load(saved(nn.Linear(3, 1)), weights_only=False)"], 1, "torch.load(saved(nn.Linear(3, 1)), weights_only=False)", "CUDA"),
}  # fmt: skip
SILENT = {
    "mapped": "torch.load(saved(torch.rand(3)), map_location='cpu')",
    "from the host": "torch.load(saved(torch.rand(3), 'cpu'))",
    "missing": "torch.load('nowhere.pt')",
    "caught": "try:\n    torch.load(saved(torch.rand(3)))\nexcept RuntimeError:\n    pass",
}  # fmt: skip


def found(cells):
    everything = findings_in(START, *cells)
    return [finding for finding in everything if finding.slug == "load-without-map-location"], everything


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
