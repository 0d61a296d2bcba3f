"""`torch.no_grad()` that stands alone switches nothing off, and is told with the graph that was recorded."""

import pytest

from tests.cells import findings_in

SETUP = """\
import torch
from torch import nn
net = nn.Sequential(nn.Linear(200, 4000), nn.ReLU(), nn.Dropout(), nn.Linear(4000, 2)).eval()
x = torch.randn(300, 200)"""
CELL = "{}kept = [net(x) for _ in range(4)]"


@pytest.mark.parametrize(("before", "said"), [("torch.no_grad()\n", True), ("# torch.no_grad()\n", False)])
def test_a_statement_that_does_nothing(before, said):
    found = findings_in(SETUP, CELL.format(before), slug="eval-without-no-grad", fails=False)
    assert [("Line 1 does nothing: `torch.no_grad()` needs `with`" in one.message) for one in found] == [said]


WHOLE = """class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(200, 4000), nn.ReLU(), nn.Dropout(), nn.Linear(4000, 2))
    def evaluate(self, rows):
        return nn.functional.mse_loss(self.layers(rows), rows[:, :2])
whole = Whole().eval()"""


def test_a_class_is_no_variable():
    found = findings_in(SETUP, WHOLE, "error = sum(whole.evaluate(x) for _ in range(4))", slug="eval-without-no-grad")
    (finding,) = found
    assert "Sequential of `whole`" in finding.message
    assert "Sequential(" not in finding.fix
    assert finding.fix.splitlines()[1].strip().startswith("error = ...")


@pytest.mark.parametrize(
    ("mode", "width", "found"), [("net.train()", 252, []), ("pass", 254, []), ("net.eval()", 256, ["out"])]
)
def test_a_scripted_model_is_asked_for_its_mode(mode, width, found):
    # Modules of one shape share what torch.jit makes of them, and from the third call on it hides what it saves.
    setup = f"import torch\nnet = torch.jit.script(torch.nn.Sequential(torch.nn.Linear(256, {width}), torch.nn.ReLU()))"
    told = findings_in(setup, f"{mode}\nout = [net(torch.ones(4096, 256)) for _ in range(2)]")
    assert [one.subject for one in told if one.slug == "eval-without-no-grad"] == found
