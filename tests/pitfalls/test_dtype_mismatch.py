"""Number types that do not go together."""
# ruff: noqa: E501 - programs of several lines, each as one string, so that the table can be read

import pytest

from tests.cells import a_notebook, findings_in

START = """
import io

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
net, exact = nn.Linear(3, 1), torch.from_numpy(np.random.rand(8, 3))
"""
FOUND = {
    "layer": (["net(exact)"], 1, "exact", "float64"),
    "loader in a trainer": (["class Trainer:\n    def __init__(self, model):\n        self.model = model\n\n    def fit(self, batches):\n        for features in batches:\n            self.model(features)", "Trainer(net).fit(exact.split(4))"], 7, "features", "`self.model` has float32"),
    "recurrent": (["rnn = nn.LSTM(3, 2)\nrnn(exact)"], 2, "exact", "rnn"),
    "pictures": (["pictures = torch.zeros(2, 3, 8, 8, dtype=torch.uint8)\nconv = nn.Conv2d(3, 1, 3)\nconv(pictures)"], 3, "pictures", "uint8"),
    "weights by hand": (["w = torch.rand(3, requires_grad=True)\ny = exact @ w"], 2, "exact", "`w` has float32"),
    "loss": (["F.binary_cross_entropy(torch.sigmoid(net(exact.float())), exact[:, :1])"], 1, "exact", "float64"),
    "made in the call": (["net(torch.tensor(np.ones((2, 3))))"], 1, "net", "torch.tensor(np.ones((2, 3)))"),
    "assignment": (["kept = torch.zeros(8, 3)\nkept[torch.tensor([0, 1])] = exact[:2]"], 2, "exact", "`kept` has float32"),
    "positions": (["table, ids = nn.Embedding(4, 2), torch.tensor([1.0, 2.0])\ntable(ids)"], 2, "ids", "int64"),
    "argument": (["def act(o):\n    return net(o)", "act(exact)"], 2, "o", "`exact` in the call"),
    "exact model": (["net.double()\nx = torch.rand(2, 3)\nnet(x)"], 3, "x", "`net` has float64"),
}  # fmt: skip
CLASSES = "y, share = torch.tensor([0, 1, 0, 1]), torch.from_numpy(np.array([1.0, 3.0]))\nx = torch.randn(4, 2)"
WEIGHTS = {
    "cross-entropy": ("crit = nn.CrossEntropyLoss(weight=share)\nloss = crit(x, y)", "crit.weight"),
    "likelihood": ("crit = nn.NLLLoss(share)\nloss = crit(x.log_softmax(1), y)", "crit.weight"),
    "in a trainer": (
        "class T:\n    def __init__(self):\n        self.crit = nn.CrossEntropyLoss(share)\n    def run(self, x, y):\n        return self.crit(x, y)\nT().run(x, y)",
        "self.crit.weight",
    ),
    "function": ("loss = F.cross_entropy(x, y, weight=share)", "share"),
}
Q = "q, a = torch.rand(4, 3), torch.zeros(4, 1)\n"
INDEXES = {
    "gather": (Q + "q.gather(1, a)", "a = a.long()"),
    "gather of torch": (Q + "torch.gather(q, 1, index=a)", "a = a.long()"),
    "with an axis more": (Q + "c = a[:, 0]\nq.gather(1, c.unsqueeze(1))", "c = c.long()"),
    "of a computed input": ("s, a = torch.rand(4, 3), torch.zeros(4, 1)\nnet(s).gather(1, a)", "a = a.long()"),
    "scatter": (Q + "onehot = torch.zeros(4, 3).scatter_(1, a, 1.0)", "a = a.long()"),
    "one-hot": ("labels = torch.tensor([0.0, 2.0])\nF.one_hot(labels, 3)", "labels = labels.long()"),
    "one-hot of int32": ("b = torch.tensor([0, 2], dtype=torch.int32)\nF.one_hot(b, 3)", "b = b.long()"),
    "rows": (Q + "i = torch.tensor([0.0, 1.0])\nq[i]", "i = i.long()"),
    "rows and columns": (Q + "i = torch.tensor([0.0, 1.0])\nq[torch.arange(2), i]", "i = i.long()"),
    "select": (Q + "i = torch.tensor([0.0, 1.0])\nq.index_select(0, i)", "i = i.long()"),
    "in a dictionary": ("d = {'q': torch.rand(4, 3), 'a': torch.zeros(4, 1)}\nd['q'].gather(1, d['a'])", "d['a'] = d['a'].long()"),
    "mask": (Q + "m = torch.ones(4, 3)\nq[m]", "m = m.bool()"),
    "mask of rows": (Q + "mask = torch.ones(4)\nq[mask]", "mask = mask.bool()"),
    "embedding": (Q + "e = nn.Embedding(4, 2)\nb = a * 2\ne(b)", "b = b.long()"),
    "embedding by function": (Q + "b = a * 2\nF.embedding(b, q)", "b = b.long()"),
    "embedding of torch": (Q + "b = a * 2\ntorch.embedding(q, b)", "b = b.long()"),
}  # fmt: skip
SILENT = {
    "index": "torch.rand(4, 3).gather(1, torch.zeros(4, 1).long())",
    "short index": "torch.rand(4, 3)[torch.tensor([0], dtype=torch.int32)]",
    "out of range": "torch.rand(4, 3).gather(1, torch.full((4, 1), 3))",
    "float": "net(exact.float())",
    "both exact": "nn.Linear(3, 1).double()(exact)",
    "promotion": "total = exact * 2 + torch.rand(8, 3)",
    "classes": "F.cross_entropy(torch.rand(4, 3), torch.rand(4))",
    "shapes": "net(torch.rand(2, 4))",
    "caught": "try:\n    net(exact)\nexcept RuntimeError:\n    net(exact.float())",
}  # fmt: skip


def found(cells):
    everything = findings_in(START, *cells)
    return [finding for finding in everything if finding.slug == "dtype-mismatch"], everything


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


@pytest.mark.parametrize("name", WEIGHTS)
def test_the_weights_of_classes_and_not_the_classes(name):
    cell, subject = WEIGHTS[name]
    (finding,), _ = found([CLASSES, cell])
    assert finding.subject == subject
    assert "has float64 numbers" in finding.message
    assert "y.float()" not in finding.fix


def test_the_fix_of_a_loss_works():
    cell, _ = WEIGHTS["cross-entropy"]
    (finding,), _ = found([CLASSES, cell])
    assert finding.fix.startswith("crit.float()")
    assert found([CLASSES, cell.replace("loss =", f"{finding.fix}\nloss =")])[0] == []


@pytest.mark.parametrize("name", INDEXES)
def test_an_index_of_another_type(name):
    code, fix = INDEXES[name]
    (finding,), _ = found([code])
    assert finding.fix.startswith(fix)
    assert ("a mask must be bool" if "mask" in name else "int64") in finding.message
    if finding.subject:
        before, last = code.rsplit("\n", 1)
        assert found([f"{before}\n{finding.fix}\n{last}"]) == ([], [])


MADE_THERE = {
    "q.gather(1, torch.zeros(4, 1))": ("torch.zeros(4, 1)", "q.gather(1, torch.zeros(4, 1).long())"),
    "e(torch.ones(2) * 1)": ("e", "e((torch.ones(2) * 1).long())"),
    "e(torch.tensor([1.0, 2.0]))": ("e", "e(torch.tensor([1.0, 2.0]).long())"),
    "F.embedding(torch.ones(2) + 1, q)": ("torch.ones(2) + 1", "F.embedding((torch.ones(2) + 1).long(), q)"),
    "F.one_hot(torch.ones(2) * 1, 3)": ("torch.ones(2) * 1", "F.one_hot((torch.ones(2) * 1).long(), 3)"),
    "q @ (q.T * 1.0).double()": ("q @ (q.T * 1.0).double()", "q @ (q.T * 1.0).double().float()"),
    "torch.mm(q.double(), q.T)": ("torch.mm(q.double(), q.T)", "torch.mm(q.double().float(), q.T)"),
}


@pytest.mark.parametrize("code", MADE_THERE)
def test_numbers_that_no_variable_holds_are_named_by_what_takes_them(code):
    subject, fix = MADE_THERE[code]
    before = f"{Q}e = nn.Embedding(4, 2)\n"
    (finding,), _ = found([before, code])
    assert (finding.subject, finding.fix) == (subject, fix)
    assert "int64 and int32" not in finding.message
    assert found([before, fix]) == ([], [])


TABLED = """\
class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.pe = torch.rand(4, 3)
    def forward(self, x):
        return x + self.pe
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.mix = Table(), nn.Linear(3, 2)
    def forward(self, x):
        {}
model = Model().to(torch.bfloat16)"""
BUFFER = 'self.register_buffer("pe", torch.rand(4, 3))  # in __init__ of Table, in place of self.pe = ...'


@pytest.mark.parametrize("line", ["return self.mix(self.table(x))", "h = self.table(x)\n        return self.mix(h)"])
def test_a_plain_attribute_that_kept_its_type_is_told(line):
    with a_notebook() as notebook:
        for code in (START, TABLED.format(line), "model(torch.rand(4, 3, dtype=torch.bfloat16))"):
            run = notebook.run(code)
    (finding,) = run.findings
    assert (finding.subject, finding.fix) == ("model.table.pe", BUFFER)


FILTERS = """\
class Mel(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(8))
        self.fb = torch.rand(33, 8)
    def forward(self, spec):
        return (spec.transpose(1, 2) @ self.fb) * self.gain
mel = Mel()"""


@pytest.mark.parametrize(
    ("cells", "subject"),
    [
        ([f"{FILTERS}.double()", "mel(torch.rand(2, 33, 5).double())"], "mel.fb"),
        ([FILTERS, "mel.double();", "mel(torch.rand(2, 33, 5).double())"], "mel.fb"),
        # The input is the odd one; nobody knows which, as the module has parts of both types.
        ([FILTERS, "mel(torch.rand(2, 33, 5).double())"], "spec"),
        ([f"{FILTERS}\nmel.more = nn.Linear(2, 2).double()", "mel(torch.rand(2, 33, 5).double())"], "spec"),
    ],
)
def test_an_attribute_that_meets_an_input_of_the_type_of_the_weights(cells, subject):
    (finding,) = findings_in(START, *cells, slug="dtype-mismatch", fails=True)
    assert finding.subject == subject
    assert ("register_buffer" in finding.fix) is (subject == "mel.fb")


def test_an_input_of_another_type_is_told_before_an_attribute():
    with a_notebook() as notebook:
        for code in (START, TABLED.format("h = self.mix(x)\n        return h"), "x = torch.rand(4, 3)\nmodel(x)"):
            run = notebook.run(code)
    (finding,) = run.findings
    assert finding.subject == "x"


REFUSED_BACK = {
    "at the top": "loss = nn.HuberLoss()(net(x), y)\nloss.backward()",
    "through another name": "loss = F.huber_loss(net(x), y)\ntotal = loss * 2\ntotal.backward()",
    "in a function": "def step(x, y):\n    loss = nn.HuberLoss()(net(x), y)\n    loss.backward()\nstep(x, y)",
    "without a name": "nn.HuberLoss()(net(x), y).backward()",
}


@pytest.mark.parametrize("name", REFUSED_BACK)
def test_targets_that_backward_refuses_are_named(name):
    data = "x, y = torch.rand(8, 3), torch.zeros(8, 1, dtype=torch.float64)"
    (finding,) = findings_in(START, data, REFUSED_BACK[name], slug="dtype-mismatch", fails=True)
    assert (finding.subject, finding.fix) == ("y", "y = y.float()")


PREPARE = """\
conv = nn.Conv2d(3, 1, 3)
raw = torch.zeros(1, 3, 8, 8, dtype=torch.uint8)
def prepare(image):
    image = image.contiguous()
    image.float()
    return image"""


@pytest.mark.parametrize("cell", ["conv(prepare(raw))", "x = prepare(raw)\nconv(x)"])
def test_a_conversion_that_a_function_throws_away_is_told(cell):
    (finding,) = findings_in(START, PREPARE, cell, slug="dtype-mismatch", fails=True)
    assert "the result of `image.float()` in line 5 of cell 2 is thrown away." in finding.message
    assert finding.fix == "image = image.float()  # line 5 of cell 2"


def test_a_conversion_in_a_function_that_is_not_called_is_no_cause():
    (finding,) = findings_in(START, PREPARE, "conv(raw)", slug="dtype-mismatch", fails=True)
    assert finding.fix == "raw = raw.float()"
