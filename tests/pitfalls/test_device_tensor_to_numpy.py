"""Arrays of tensors that are not on the host; the device `meta` stands for a GPU."""

import pytest

from tests.cells import findings_in

START = """
import io

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
far = torch.empty(8, 3, device='meta')
"""
FOUND = {
    "method": (["far.numpy()"], 1, "far", "meta"),
    "asarray": (["np.asarray(far)"], 1, "far", "(8, 3)"),
    "in a function": (["def show(values):\n    return values.numpy()", "show(far)"], 2, "values", "`far` in the call"),
    "list": (["rows = [far[0], far[1]]\nnp.stack([row.numpy() for row in rows])"], 2, "row", "meta"),
    "detached": (["far.detach().numpy()"], 1, "far", "meta"),
}  # fmt: skip
SILENT = {
    "host": "torch.rand(3).numpy()",
    "cpu": "torch.rand(3).cpu().numpy()",
    "caught": "try:\n    far.numpy()\nexcept TypeError:\n    pass",
    "another error": "raise TypeError('cannot convert meta tensor to numpy')",
}  # fmt: skip


def found(cells):
    everything = findings_in(START, *cells)
    return [finding for finding in everything if finding.slug == "device-tensor-to-numpy"], everything


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
