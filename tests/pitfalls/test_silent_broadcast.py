"""Columns that meet rows in metrics and calculations, and tables that are meant."""

import pytest

from tests.cells import a_notebook

SETUP = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
net = nn.Linear(10, 1)
x, y = torch.randn(60, 10), torch.randint(0, 2, (60,)).float()
loader = DataLoader(TensorDataset(x, y), batch_size=16)
"""
FOUND = {
    "a comparison": ("with torch.no_grad():\n    pred = net(x) > 0\nacc = (pred == y).float().mean()", 3),
    "a method": ("pred = torch.sigmoid(net(x)).detach().round()\nright = pred.eq(y).sum().item()", 2),
    "classes": (
        """def score(model, x, y):
    with torch.no_grad():
        pred = model(x).argmax(dim=1)
    return (pred == y).float().mean()
labels = torch.randint(0, 3, (60, 1))
s = score(nn.Linear(10, 3), x, labels)""",
        4,
    ),
    "a row of means": ("with torch.no_grad():\n    gap = net(x) - x.mean(1)", 2),
    "a bool target": ("with torch.no_grad():\n    acc = ((net(x) > 0) == y.bool()).float().mean()", 2),
    "residuals": ("with torch.no_grad():\n    residual = y - net(x)", 2),
    "a function": (
        """def accuracy(model, x, y):
    with torch.no_grad():
        out = model(x)
    pred = (out > 0.5).float()
    return (pred == y).float().mean().item()
acc = accuracy(net, x, y)""",
        5,
    ),
    "a metric of predictions": (
        "def rmse(p, t):\n    return ((p - t) ** 2).mean().sqrt()\nwith torch.no_grad():\n    r = rmse(net(x), y)",
        2,
    ),
    "a method of a class": (
        """class Judge:
    def __init__(self, model):
        self.model = model
    @torch.no_grad()
    def error(self, x, y):
        p = self.model(x)
        return (p - y).abs().mean().item()
e = Judge(net).error(x, y)
judge = Judge(net)
e = judge.error(x, y)""",
        7,
    ),
    "batches": (
        """total = 0
with torch.no_grad():
    for start in range(0, 60, 20):
        xb, yb = x[start:start + 20], y[start:start + 20]
        total += (net(xb).round() == yb).sum().item()""",
        5,
    ),
    "a loader": (
        """@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    correct = 0
    for i, (xb, yb) in enumerate(loader):
        out = model(xb)
        correct += ((out > 0.5).float() == yb).sum().item()
    return correct / len(loader.dataset)
acc = evaluate(net, loader)""",
        7,
    ),
    "a target of the same critic": (
        "with torch.no_grad():\n    target = y + 0.9 * net(x).squeeze(1)\n    error = target - net(x)",
        3,
    ),
    "into a vector": ("total = torch.zeros(60)\nwith torch.no_grad():\n    total = total + (net(x) - y)", 3),
    "weights": ("column = torch.rand(60, 1)\nweighted = column * y", 2),
}
SILENT = {
    "squeezed": "with torch.no_grad():\n    pred = net(x).squeeze(1) > 0\nacc = (pred == y).float().mean()",
    "written out": "same = y.unsqueeze(1) == y\nd = y[:, None] - y\nt = y.view(-1, 1) * y",
    "a grid": "c = torch.arange(60).reshape(60, 1)\ntable = c * y\n"
    "bins = torch.linspace(0, 1, 60)\nd = net(x).detach() - bins",
    "statistics": "z = (x - x.mean(0)) / x.std(0)\nw = x * y[:, None]\nb = net(x).detach() + net.bias.detach()",
    "kept axis": "total = x.abs().sum(1, keepdim=True)\nshare = total / y.sum()\nz = x / total\nq = total - y",
    "a name of another value before": """with torch.no_grad():
    pred = net(x)
pred = pred.squeeze(1)
acc = ((pred > 0) == y).float().mean()
pred = pred.unsqueeze(1)""",
    "reduced and kept": "with torch.no_grad():\n    gap = net(x) - x.mean(dim=1, keepdim=True)\n"
    "    gap = net(x) - x.amax(1)[:, None]\n    gap = net(x).sum(-1) - x.sum(dim=1)",
    "sizes": "k = x.size(dim=1)\np = net(x).detach()\nz = p * k\nw = p - x.mean()",
    "matrix product": "p = net(x).detach()\nq = p.T @ y\nr = y @ p",
    "one sample": "p, t = net(x[:1]).detach(), y[:1]\nd = p - t",
    "a kernel": "def kernel(a, b):\n    return torch.exp(-(a - b) ** 2)\nk = kernel(y[:, None], y)",
    "a column and its own row": """with torch.no_grad():
    s = net(x)
    flat = s.flatten()
    gaps, same, gini = s - s.squeeze(1), s - flat, (s - s.squeeze().detach()).abs().mean()""",
    "two batches of one model": """def hinge(good, bad):
    return torch.relu(1 - (good - bad)).mean()
with torch.no_grad():
    gap = net(x) - net(x + 1).squeeze(1)
    loss = hinge(net(x), net(x + 1).squeeze(1))""",
    "which is larger": "with torch.no_grad():\n    auc = (net(x) > y).float().mean() + (y <= net(x)).float().mean()",
    "into a table": """n = 60
W, V, M = torch.zeros(60, 60), torch.zeros(n, n), torch.eye(60)
post, pre = torch.rand(60, 1), torch.rand(60)
W += 0.1 * (post * pre - W)
V = 0.9 * V + post * pre
M = M - post * pre
T = post + pre + 0.1 * torch.randn(60, 60)""",
    "no tensors": "import numpy as np\na, b = np.zeros((5, 1)), np.zeros(5)\nc = a - b\nd = 'x' * 3\ne = [1] + [2]",
}


def found(source):
    with a_notebook(min_bytes=0) as notebook:
        notebook.run(SETUP)
        run = notebook.run(source)
        assert notebook.errors == [None, None]
        return [finding for finding in run.findings if finding.slug == "silent-broadcast"]


@pytest.mark.parametrize("name", FOUND)
def test_a_column_that_met_a_row(name):
    source, line = FOUND[name]
    (finding,) = found(source)
    assert (finding.cell, finding.line) == (2, line)
    assert "others instead of its own" in finding.message


@pytest.mark.parametrize("name", SILENT)
def test_tables_that_are_meant(name):
    assert found(SILENT[name]) == []


def test_a_function_of_an_earlier_cell_is_blamed_where_it_stands():
    with a_notebook() as notebook:
        notebook.run(SETUP)
        notebook.run("def error(p, t):\n    return (p - t).abs().mean()")
        run = notebook.run("with torch.no_grad():\n    out = net(x)\n    e = error(out, y)")
    (finding,) = [one for one in run.findings if one.slug == "silent-broadcast"]
    assert (finding.cell, finding.line) == (2, 2)


def test_lines_behind_a_failure_are_not_judged():
    with a_notebook() as notebook:
        notebook.run(SETUP)
        run = notebook.run("p = net(x).detach()\n1 / 0\nd = p - y")
    assert run.findings == ()


@pytest.mark.parametrize("later", ["m.mu.unsqueeze_(1)", "m.mu = m.mu[:, None]"])
@pytest.mark.parametrize("inside", [True, False])
def test_a_field_that_is_a_column_later(inside, later):
    head = "import torch\nclass M: pass\nm, x = M(), torch.randn(6)\nm.mu = torch.randn(6)\n"
    code = f"def gap(m):\n    m.d = x - m.mu\n    {later if inside else 'pass'}\ngap(m)\n{'' if inside else later}"
    assert found(head + code) == []


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        (
            "a comparison",
            "acc = (pred.squeeze(1) == y).float().mean()  # both sides need the same shape; or y.unsqueeze(1)",
        ),
        ("residuals", "residual = y - net(x).squeeze(1)  # both sides need the same shape; or y.unsqueeze(1)"),
    ],
)
def test_the_fix_is_the_line_itself(name, fix):
    (finding,) = found(FOUND[name][0])
    assert finding.fix == fix
