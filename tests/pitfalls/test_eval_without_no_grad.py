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
    assert finding.fix.splitlines()[1].strip().startswith("return nn.functional.mse_loss(self.layers(rows)")


@pytest.mark.parametrize(
    ("mode", "width", "found"), [("net.train()", 252, []), ("pass", 254, []), ("net.eval()", 256, ["out"])]
)
def test_a_scripted_model_is_asked_for_its_mode(mode, width, found):
    # Modules of one shape share what torch.jit makes of them, and from the third call on it hides what it saves.
    setup = f"import torch\nnet = torch.jit.script(torch.nn.Sequential(torch.nn.Linear(256, {width}), torch.nn.ReLU()))"
    told = findings_in(setup, f"{mode}\nout = [net(torch.ones(4096, 256)) for _ in range(2)]")
    assert [one.subject for one in told if one.slug == "eval-without-no-grad"] == found


STEPS = """def answers(rows):
    for part in rows.split(100):
        yield net(part).argmax(1), net(part)
def step(rows):
    out = net(rows)
    return out.mean()
def loss_of(rows):
    return net(rows).mean()
def validate(rows):
    return loss_of(rows)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
net.train()
for _ in range(2):
    optimizer.zero_grad()
    loss_of(x).backward()
    optimizer.step()
net.eval()
"""
EARLIER = {
    "a statement": ("kept = [step(x) for _ in range(4)]", "out = net(rows)"),
    "a generator": (
        "kept = dict(enumerate(out for _, out in answers(x)))",
        "made = (net(part).argmax(1), net(part))\nyield made",
    ),
    "what training calls as well": ("kept = [validate(x) for _ in range(4)]", "return loss_of(rows)"),
    "a lambda": ("f = lambda rows: net(rows)\nkept = [f(x) for _ in range(4)]", "output = net(...)"),
}


@pytest.mark.parametrize("way", EARLIER)
def test_the_line_of_an_earlier_cell_is_quoted(way):
    cell, line = EARLIER[way]
    (finding,) = findings_in(SETUP, STEPS, cell, slug="eval-without-no-grad", fails=False)
    assert finding.fix == f"with torch.no_grad():\n    {line}"


WIDE = """\
import torch
from torch import nn
net = nn.Sequential(nn.Flatten(), nn.Linear(20_000, 400), nn.ReLU(), nn.Linear(400, 2)).eval()
class Total:
    value = torch.tensor(0.0)
def validate(total):
    for _ in range(8):
        rows = torch.randn(100, 20_000)
        total.value = total.value + net(rows).mean()
"""


def test_what_is_held_in_the_end_is_told_where_it_is_more():
    cell = "total = Total()\nvalidate(total)"
    (finding,) = findings_in(WIDE, cell, slug="eval-without-no-grad", min_bytes=100_000, fails=False)
    assert "a graph of 156 KB per call in eval mode" in finding.message
    assert "`total.value` still holds it, 62.3 MB with inputs and later results." in finding.message


def test_of_models_on_one_line_the_one_that_records_most_is_told():
    start = (
        "import torch\nfrom torch import nn\nfirst, second = nn.EmbeddingBag(9, 4).eval(), nn.Linear(4, 64).eval()\n"
        "third = nn.Sequential(second, nn.Tanh()).eval()\nids = torch.randint(0, 9, (32, 5))"
    )
    found = findings_in(
        start, "rows = third(first(ids))\nsim = rows @ rows.T", slug="eval-without-no-grad", min_bytes=0
    )
    assert [one.subject for one in found] == ["rows"]
    assert found[0].message.startswith("`third` recorded a graph of ")
