"""Views and recurrent states of another size; fixes are pasted and run."""

import pytest

from tests.cells import a_notebook

SETUP = """\
import torch
import torch.nn.functional as F
from torch import nn
a, notes = torch.randn(3, 4), torch.randn(8, 5, 4)
state = torch.zeros(1, 32, 3)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
    def forward(self, x):
        x = F.max_pool2d(self.conv(x), 2)
        return x.view(-1, 8 * 30 * 30)
class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 3, batch_first=True)
        self.h = (torch.zeros(1, 4, 3), torch.zeros(1, 4, 3))
    def forward(self, x):
        return self.lstm(x, self.h)
gru, lstm, time_first = nn.GRU(4, 3, batch_first=True), nn.LSTM(4, 3, batch_first=True), nn.GRU(4, 3)
reader = Reader()"""
VIEWS = {
    "Net()(torch.randn(2, 3, 32, 32))": ("x", "of shape (2, 8, 15, 15) has 3,600 numbers", "return x.flatten(1)"),
    "b = a.view(5, -1)": ("a", "and [5, -1] wants a multiple of 5.", ""),
    "b = a.reshape(2, 3, 4)": ("a", "and [2, 3, 4] wants 2 * 3 * 4 = 24.", ""),
    "b = torch.reshape(a, (-1, 5))": ("a", "wants a multiple of 5.", "b = a.flatten(1)"),
}
STATES = {
    "out, _ = gru(notes, state)": (
        "state",
        "for a batch of 32, and reads its input as a batch of 8",
        "out, _ = gru(notes)",
    ),
    "out, _ = lstm(notes, (state, state))": ("state", "for a batch of 32", "out, _ = lstm(notes)"),
    "out, _ = time_first(notes, torch.zeros(1, 8, 3))": ("time_first", "batch of 5", "time_first.batch_first = True"),
    "reader(notes)": (None, "`reader.lstm` got a state of shape (1, 4, 3)", ""),
    "gru(notes, torch.zeros(2, 8, 3))": ("gru", "and takes (1, 8, 3): layers times directions", "torch.zeros(1, 8, 3)"),
}


def told(notebook, cell, slug):
    found = notebook.run(cell).findings
    (finding,) = [one for one in found if one.slug == slug]
    assert len(found) == 1
    return finding


@pytest.mark.parametrize("cell", VIEWS)
def test_a_view_says_how_many_numbers_there_are(cell):
    subject, said, fix = VIEWS[cell]
    with a_notebook() as notebook:
        notebook.run(SETUP)
        finding = told(notebook, cell, "view-of-another-size")
        assert finding.subject == subject
        assert said in finding.message
        assert finding.fix.startswith(fix) if fix else not finding.fix
        if fix.startswith("b = "):
            assert notebook.run(finding.fix).error is None


@pytest.mark.parametrize("cell", STATES)
def test_a_state_is_told_by_its_axis(cell):
    subject, said, fix = STATES[cell]
    with a_notebook() as notebook:
        notebook.run(SETUP)
        finding = told(notebook, cell, "state-of-another-size")
        assert subject is None or finding.subject == subject
        assert said in finding.message
        assert finding.fix.startswith(fix)
        if fix.startswith(("out", "time")):
            assert notebook.run(finding.fix).error is None
            assert notebook.run(cell if fix.startswith("time") else "pass").error is None
