"""Deep copies that torch refuses; the fix is pasted and the copy made again."""

import pytest

from tests.cells import a_notebook

SETUP = """\
import copy
from copy import deepcopy
import torch
from torch import nn
h = torch.ones(2, requires_grad=True) * 2
class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(2, 3, batch_first=True)
        self.hidden = None
    def forward(self, x):
        out, self.hidden = self.rnn(x, self.hidden)
        return out
def snapshot(m): return deepcopy(m)
net = Recurrent()
net(torch.zeros(1, 2, 2))
history = {"loss": [1.0], "last": [h.sum()]}"""
CASES = {
    "g = copy.deepcopy(h)": ("h", 5, "g = h.detach().clone()"),
    "ema = copy.deepcopy(net)": ("net.hidden", 12, "net.hidden = net.hidden.detach()"),
    "old = deepcopy(history)": ("history['last'][0]", None, "history['last'][0] = history['last'][0].detach()"),
    "best = snapshot(net)": ("m.hidden", 12, ""),
}


@pytest.mark.parametrize("cell", CASES)
def test_what_is_computed_is_named_and_detached(cell):
    subject, made, fix = CASES[cell]
    with a_notebook() as notebook:
        notebook.run(SETUP)
        (finding,) = [one for one in notebook.run(cell).findings if one.slug == "deepcopy-of-result"]
        assert finding.subject == subject
        assert made is None or f"in line {made} of cell 1" in finding.message
        assert finding.fix.startswith(fix)
        if fix:
            assert notebook.run(finding.fix).error is None
            assert notebook.run(cell if not fix.startswith("g = ") else "pass").error is None


@pytest.mark.parametrize("cell", ["copy.deepcopy(net.rnn)", "raise RuntimeError('a deepcopy')"])
def test_other_cells(cell):
    with a_notebook() as notebook:
        notebook.run(SETUP)
        assert not [one for one in notebook.run(cell).findings if one.slug == "deepcopy-of-result"]
