"""Entries of `Out` that are told, once, and again when they come to hold more."""

import pytest

from tests.cells import a_notebook, findings_in

SLUG = "notebook-output-pins-tensor"
START = "import torch\nfrom torch import nn\nnet, x = nn.Conv2d(1, 32, 3), torch.randn({rows}, 1, 96, 96)"


@pytest.mark.parametrize("rows", [2, 30])
def test_the_input_of_a_graph_that_is_let_go_later_is_no_news(rows):
    found = findings_in(START.format(rows=rows), "net(x).relu()", "del net, x", slug=SLUG, fails=False)
    assert [one.line for one in found] == [1]
    assert [one.subject for one in found] == ["Out[2]"]


def test_what_comes_to_hold_more_is_told_again():
    more = "held, more = torch.ones(500, 1000), torch.ones(800, 1000)"
    found = findings_in(START.format(rows=1), more, "[held, more]", "del held", "del more", slug=SLUG, fails=False)
    assert [one.subject for one in found] == ["Out[3]", "Out[3]"]


def test_the_fix_can_be_pasted():
    (found,) = findings_in("import torch", "torch.ones(1000, 1000)", slug=SLUG, fails=False)
    with a_notebook() as notebook:
        for source in ("import torch", "torch.ones(1000, 1000)", found.fix):
            notebook.run(source)
        assert not notebook.shell.user_ns["Out"]
