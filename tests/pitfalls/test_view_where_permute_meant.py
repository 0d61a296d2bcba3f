"""Views that re-cut what a model computes, where no loss is made of it."""

import pytest

from tests.cells import a_notebook

HEADS = """\
import torch
from torch import nn
class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.heads = nn.Linear(32, 32), 4
    def forward(self, x):
        batch, time, width = x.shape
        q = self.query(x){cut}
        return (q @ q.transpose(-1, -2)).softmax(-1)
heads = Heads()"""
WRONG = ".view(batch, self.heads, time, width // self.heads)"
RIGHT = ".view(batch, time, self.heads, width // self.heads).transpose(1, 2)"


def found(cut, code):
    with a_notebook() as notebook:
        notebook.run(HEADS.format(cut=cut))
        return notebook.run(code).findings


@pytest.mark.parametrize("code", ["out = heads(torch.randn(2, 10, 32))", "seen = [heads(torch.randn(2, 10, 32))]"])
def test_a_kept_result_shows_it_at_the_line_of_the_class(code):
    (finding,) = [one for one in found(WRONG, code) if one.slug == "view-where-permute-meant"]
    assert (finding.cell, finding.line) == (1, 9)
    assert finding.fix.endswith(".view(2, 10, 4, 8).transpose(1, 2)")


def test_sizes_that_the_text_does_not_tell_show_in_the_graph_at_the_line_of_the_view():
    (finding,) = found(".view(*[batch, self.heads, time, width // self.heads])", "out = heads(torch.randn(2, 10, 32))")
    assert (finding.slug, finding.subject, finding.cell, finding.line) == ("view-where-permute-meant", "out", 1, 9)


def test_a_view_of_an_earlier_cell_that_does_not_run_is_not_blamed():
    with a_notebook() as notebook:
        notebook.run(HEADS.format(cut=".unflatten(2, (4, 8)).flatten(1).unflatten(1, (self.heads, time, 8))"))
        notebook.run("flat = torch.rand(2, 10, 32).view(20, 32)")
        found = notebook.run("out = heads(torch.randn(2, 10, 32))").findings
    assert all(one.cell == 3 for one in found)


def test_the_right_order_is_silent():
    assert found(RIGHT, "out = heads(torch.randn(2, 10, 32))") == ()
